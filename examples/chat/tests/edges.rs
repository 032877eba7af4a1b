//! Unusual terminals and input.

use super::terminal::{Folder, Start, Terminal};

#[test]
fn without_colours_there_are_none() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]).env("NO_COLOR", "1"));
    chat.ask("weather in Rome");
    chat.ask("fail");
    let written = chat.written();
    let painted = written.split("\x1b[").skip(1).any(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        rest[end..].starts_with('m')
    });
    assert!(!painted, "{written:?}");
    // Thinking is told apart all the same.
    assert!(chat.screen().contains("┆ That sounds like"), "{}", chat.screen());
    chat.quit();
}

#[test]
fn a_terminal_that_can_only_print_is_served() {
    let home = Folder::new();
    let chat = Start::new(&home, &[]).env("TERM", "dumb").run();
    chat.wait_for("/help lists commands");
    chat.wait_for("› ");
    chat.send("weather in Rome\r");
    chat.wait_for("weather says: [{");
    chat.send("pay Ann 500\r");
    chat.wait_for("allow it?");
    chat.send("yes\r");
    chat.wait_for("500 paid to Ann");
    chat.wait_for("pay says: 500");
    assert!(!chat.written().contains("\x1b["), "{:?}", chat.written());
    chat.send("\x04");
    assert!(chat.end().success());
}

#[test]
fn the_smallest_terminals_and_changes_of_size_do_no_harm() {
    let home = Folder::new();
    for (rows, columns) in [(1, 1), (2, 1), (1, 40), (3, 5)] {
        let chat = Start::new(&home, &[]).size(rows, columns).run();
        std::thread::sleep(std::time::Duration::from_millis(300));
        chat.send("slow work for 2 seconds\r");
        std::thread::sleep(std::time::Duration::from_millis(500));
        chat.send("more\r");
        chat.resize(30, 60);
        chat.wait_for("2 seconds of work are done");
        chat.wait_for("2 turns");
        chat.wait_for_prompt();
        chat.quit();
    }
    let chat = Terminal::at_prompt(Start::new(&home, &[]).size(30, 80));
    chat.say("tell a story");
    chat.wait_for_sign("Day 2.");
    for (rows, columns) in [(10, 20), (1, 1), (40, 120), (24, 80)] {
        chat.resize(rows, columns);
        std::thread::sleep(std::time::Duration::from_millis(150));
    }
    chat.wait_for("That is all.");
    chat.wait_for_prompt();
    chat.quit();
}

#[test]
fn ctrl_d_ends_the_chat() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.send("\x04");
    assert!(chat.end().success());
}

#[test]
fn bytes_that_are_no_text_do_no_harm() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.send_bytes(b"caf\xc3 \xff\xfe");
    chat.wait_for("what was typed is no UTF-8");
    chat.wait_for_prompt();
    chat.ask("think");
    assert!(chat.screen().contains("the answer is 42"), "{}", chat.screen());
    chat.say("slow work for 5 seconds");
    chat.wait_for_sign("working 0/5");
    chat.send_bytes(b"\xff\xfe\xc3(\x15ok\r");
    chat.wait_for("heard before turn 2");
    chat.wait_for_prompt();
    chat.quit();
}

#[test]
fn what_a_model_says_does_nothing_to_the_terminal() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    // The demo model gives back what it is told.
    chat.ask("think");
    chat.send("\x1b[200~so: \x1b]0;evil\x07\x1b[31mred\x1b[201~");
    chat.wait_for("red");
    chat.send("\r");
    chat.wait_for("I heard: so:");
    chat.wait_for_prompt();
    assert!(!chat.written().contains("\x1b]0;evil"), "{:?}", chat.written());
    assert!(!chat.written().contains("\x1b[31mred"), "{:?}", chat.written());
    chat.quit();
}

#[test]
fn a_large_paste_is_one_message() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.ask("think");
    let pasted = "word ".repeat(40_000);
    chat.send(&format!("\x1b[200~{pasted}\nlast line\x1b[201~"));
    chat.wait_for("last line");
    chat.send("\r");
    chat.wait_for("I heard: word word");
    chat.wait_for_prompt();
    // While a run goes on, too: ten megabytes, of which the chat takes one.
    chat.say("slow work for 60 seconds");
    chat.wait_for_sign("working 0/60");
    chat.send(&format!("\x1b[200~{}\x1b[201~\r", "word ".repeat(2 << 20)));
    chat.wait_for_sign("» waits for the next turn: word word");
    chat.send("\x03");
    chat.wait_for("the user cancelled it");
    chat.send("\x03");
    assert!(chat.end().success());
}

#[test]
fn a_paste_that_is_too_long_to_edit_says_so() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]).size(60, 100));
    chat.resize(60, 20);
    // More rows than the line editor counts.
    chat.send(&format!("\x1b[200~{}\x1b[201~", "word ".repeat(300_000)));
    chat.wait_for("too long to edit");
    chat.resize(60, 100);
    chat.wait_for_prompt();
    chat.ask("think");
    assert!(!chat.written().contains("panicked"), "{}", chat.screen());
    chat.quit();
}

#[test]
fn a_program_that_is_told_to_end_leaves_the_terminal_as_it_was() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "gone"]));
    chat.say("slow work for 50 seconds");
    chat.wait_for_sign("working 1/50");
    chat.signal("TERM");
    chat.wait_until(|screen| !screen.contents().contains("type to steer"));
    assert!(!chat.written().ends_with("\x1b[?2004h"), "{:?}", chat.written());
    assert!(chat.end().success());
}
