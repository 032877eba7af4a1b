//! Switching the terminal between the line editor and a run loses no input, not even a Ctrl-C.

use super::terminal::{Folder, Start, Terminal};
use std::thread::{scope, sleep};
use std::time::Duration;

/// Runs the check once for each moment, in parallel, each time in a new chat.
fn at_each(moments: impl IntoIterator<Item = u64>, check: impl Fn(Duration, &Terminal) + Sync) {
    let check = &check;
    scope(|scope| {
        for moment in moments {
            scope.spawn(move || {
                let home = Folder::new();
                let chat = Terminal::at_prompt(Start::new(&home, &[]));
                check(Duration::from_millis(moment), &chat);
                // The check has sent one Ctrl-C, so a second one ends the chat.
                chat.send("\x03");
                let status = chat.end();
                assert!(status.success(), "{moment} ms: {status}");
            });
        }
    });
}

fn heard(chat: &Terminal) {
    chat.wait_until(|screen| {
        let screen = screen.contents();
        screen.contains("the user cancelled it") || screen.contains("Ctrl-C once more")
    });
}

#[test]
fn a_ctrl_c_is_heard_in_every_moment_of_a_run() {
    at_each((0..12).map(|n| n * n * 12), |moment, chat| {
        chat.say("think");
        sleep(moment);
        chat.send("\x03");
        heard(chat);
    });
}

#[test]
fn a_ctrl_c_is_heard_where_a_run_ends() {
    at_each((0..12).map(|n| n * 8), |moment, chat| {
        chat.say("think");
        chat.wait_for("the answer is");
        sleep(moment);
        chat.send("\x03");
        heard(chat);
    });
}

#[test]
fn a_ctrl_c_is_heard_where_somebody_is_asked() {
    at_each((0..10).map(|n| n * 6), |moment, chat| {
        chat.say("pay Ann 500");
        chat.wait_for("One moment.");
        sleep(moment);
        chat.send("\x03");
        heard(chat);
    });
}

#[test]
fn two_ctrl_c_end_it_whatever_is_between_them() {
    at_each((0..14).map(|n| n * n), |gap, chat| {
        chat.say("slow work for 60 seconds");
        chat.wait_for_sign("working 0/60");
        chat.send("\x03");
        sleep(gap);
    });
}

#[test]
fn a_signal_is_heard_like_the_key() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.say("slow work for 60 seconds");
    chat.wait_for_sign("working 0/60");
    chat.signal("INT");
    chat.wait_for("the user cancelled it");
    chat.wait_for_prompt();
    chat.ask("think");
    chat.signal("INT");
    chat.wait_for("Ctrl-C once more");
    chat.wait_for_prompt();
    chat.signal("INT");
    assert!(chat.end().success());
}

#[test]
fn a_program_that_is_told_to_end_does_at_the_prompt_in_a_page_and_at_a_question() {
    let home = Folder::new();
    for signal in ["TERM", "HUP"] {
        let chat = Terminal::at_prompt(Start::new(&home, &[]));
        chat.ask("think");
        chat.signal(signal);
        assert!(chat.end().success(), "{signal}");
    }
    let chat = Terminal::at_prompt(Start::new(&home, &[]).size(12, 80));
    chat.ask("count up to 100");
    chat.say("/show 1");
    chat.wait_for("Space for a page");
    chat.signal("TERM");
    assert!(chat.end().success());
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.say("pay Ann 500");
    chat.wait_for("always ›");
    chat.signal("TERM");
    assert!(chat.end().success());
}

#[test]
fn a_terminal_that_can_only_print_hears_ctrl_c() {
    let home = Folder::new();
    let chat = Start::new(&home, &[]).env("TERM", "dumb").run();
    chat.wait_for("/help lists commands");
    chat.wait_for("› ");
    chat.send("slow work for 60 seconds\r");
    chat.wait_for("One moment.");
    chat.send("\x03");
    chat.wait_until(|screen| screen.contents().trim_end().ends_with('›'));
    chat.send("think\r");
    chat.wait_for("the answer is 42");
    chat.wait_until(|screen| screen.contents().trim_end().ends_with('›'));
    chat.send("\x03");
    chat.wait_for("Ctrl-C once more");
    chat.send("\x03");
    assert!(chat.end().success());
}

#[test]
fn what_is_typed_where_a_run_ends_stands_at_the_prompt() {
    at_each((0..10).map(|n| n * 8), |moment, chat| {
        chat.say("think");
        chat.wait_for("the answer is");
        sleep(moment);
        for piece in ["so ", "it ", "go", "es"] {
            chat.send(piece);
            sleep(Duration::from_millis(5));
        }
        chat.wait_until(|screen| {
            let screen = screen.contents();
            screen.contains("1 turn · ") && screen.trim_end().ends_with("› so it goes")
        });
        chat.send("\x03");
        heard(chat);
    });
}

#[test]
fn a_paste_that_goes_on_when_a_run_ends_is_one_text() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]).size(40, 2000));
    chat.say("think");
    chat.wait_for("┆ They want");
    chat.send("\x1b[200~");
    let mut pasted = String::new();
    let mut after = 0;
    while after < 10 {
        chat.send("word ");
        pasted.push_str("word ");
        after += usize::from(chat.screen().contains("the answer is 42."));
        sleep(Duration::from_millis(30));
    }
    chat.send("end\x1b[201~");
    chat.wait_until(|screen| screen.contents().trim_end().ends_with(&format!("› {pasted}end")));
    // The next run still reacts to Ctrl-C.
    chat.send("\x15");
    chat.wait_for_prompt();
    chat.say("slow work for 60 seconds");
    chat.wait_for_sign("working 0/60");
    chat.send("\x03");
    chat.wait_for("the user cancelled it");
    chat.send("\x03");
    assert!(chat.end().success());
}

#[test]
fn what_is_typed_ahead_is_asked_in_its_turn() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.send("think\rweather in Rome\r/usage\r");
    chat.wait_for("the answer is 42");
    chat.wait_for("weather says: [{");
    chat.wait_for("this chat: 3 turns");
    chat.wait_for_prompt();
    chat.quit();
}

#[test]
fn a_size_that_changes_at_a_question_is_known_afterwards() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]).size(60, 100));
    chat.say("pay Ann 500");
    chat.wait_for("always ›");
    chat.resize(60, 40);
    chat.wait_for("always ›");
    chat.say("yes");
    chat.wait_for("2 turns");
    chat.wait_for_prompt();
    // The result takes one row, cut to the new width.
    let screen = chat.screen();
    let result = screen.lines().find(|line| line.starts_with("pay says:"));
    assert!(result.is_some_and(|line| line.chars().count() <= 40), "{screen}");
    chat.quit();
}
