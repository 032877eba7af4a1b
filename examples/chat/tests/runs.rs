//! The output of runs, and interacting with them.

use super::terminal::{Folder, Start, Terminal};

#[test]
fn the_demo_model_says_what_it_is_and_answers_with_a_tool() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    let screen = chat.screen();
    assert!(screen.contains("demo — built in; no language model, it goes by words alone"), "{screen}");
    assert!(screen.contains("there is no --model and no …_DEFAULT_MODEL"), "{screen}");
    assert!(screen.contains("tools: weather, pay, slow_work, count_up"), "{screen}");
    chat.ask("What is the weather in Rome for 3 days?");
    let screen = chat.screen();
    for shown in [
        "┆ That sounds like the tool weather.",
        "One moment.",
        r#"⚙ weather {"city":"Rome","days":"3"}"#,
        r#"~ /days: "3" became 3 (text_to_integer)"#,
        "✓ [{\"number\":1,",
        "weather says: [{",
        "2 turns · 1 call · ",
    ] {
        assert!(screen.contains(shown), "{shown:?} is missing in\n{screen}");
    }
    assert!(chat.looks("That sounds like", vt100::Cell::dim), "thinking is dimmed");
    assert!(!chat.looks("One moment.", vt100::Cell::dim));
    chat.quit();
}

#[test]
fn an_answer_streams_and_words_stay_whole() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]).size(200, 44));
    chat.say("tell a story");
    chat.wait_for("That is all.");
    chat.wait_for_prompt();
    // The answer was drawn many times while it streamed.
    assert!(chat.written().matches("demo replies").count() > 5, "{}", chat.written());
    let screen = chat.screen();
    let rows: Vec<&str> = screen.lines().skip_while(|row| !row.starts_with("Day 1.")).take(3).collect();
    assert_eq!(
        rows[..2],
        ["Day 1. The ferris crab walked sideways", "along the beach, found a shell with the"],
        "{screen}"
    );
    // The status rows below the answer are gone.
    assert_eq!(screen.matches("demo replies").count(), 0, "{screen}");
    assert_eq!(screen.matches("Day 17.").count(), 1);
}

#[test]
fn errors_lists_and_notes_are_broken_between_words() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]).size(200, 44));
    for said in [
        "/help",
        "/tools",
        "/model",
        "/model opnai/x",
        "/tools pay",
        "weather for 99 days",
        "fail",
        "help",
        "/show",
    ] {
        chat.ask(said);
    }
    chat.say("pay Ann 500");
    chat.wait_for("always ›");
    chat.say("edit");
    chat.wait_for("arguments ›");
    chat.send("\x15{\"to\": 5}\r");
    chat.wait_for("does not take these");
    chat.send("\x15\r");
    chat.wait_for("always ›");
    chat.say("no");
    chat.wait_for_prompt();
    // The chat breaks all long lines itself, between words. The terminal breaks none.
    let broken = chat.broken_rows();
    assert!(broken.is_empty(), "{broken:?} in\n{}", chat.screen());
    chat.quit();
}

#[test]
fn a_refused_call_is_shown_with_its_report_and_mended() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.ask("weather for 99 days");
    let screen = chat.screen();
    for shown in [
        r#"⚙ weather {"days":"99"}"#,
        "✗ refused: it was not run, and the model is told",
        "Invalid arguments for `weather`",
        "/city",
        "I got that wrong; once more.",
        r#"{"days":7,"city":"example"}"#,
        "weather says: [{",
    ] {
        assert!(screen.contains(shown), "{shown:?} is missing in\n{screen}");
    }
}

#[test]
fn approvals_are_asked_inline() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    // A payment below the limit needs no approval.
    chat.ask("pay Ann 50");
    assert!(chat.screen().contains("✓ 50 paid to Ann"), "{}", chat.screen());

    chat.say("pay Ann 500");
    chat.wait_for("allow it? yes, no, edit, always ›");
    let screen = chat.screen();
    assert!(screen.contains("? pay wants to run with") && screen.contains("\"amount\": 500"), "{screen}");
    // The question shows which arguments were coerced.
    assert!(screen.contains(r#"~ /amount: "500" became 500 (text_to_integer)"#), "{screen}");
    chat.say("perhaps");
    chat.wait_for("answer yes, no (and why, if you like), edit, or always");
    chat.say("no, too much");
    chat.wait_for("✗ not allowed The person said no: too much");
    chat.wait_for_prompt();
    assert!(
        chat.screen().contains("pay did not work out: The person said no: too much"),
        "{}",
        chat.screen()
    );

    chat.say("pay Bob 600");
    chat.wait_for("\"amount\": 600");
    chat.say("yes");
    chat.wait_for("✓ 600 paid to Bob");
    chat.wait_for_prompt();
    chat.quit();
}

#[test]
fn sub_agents_are_shown_further_in_and_ask_with_their_path() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.say("delegate delegate pay Bob 600");
    chat.wait_for("? delegate > delegate > pay wants to run with");
    chat.say("yes");
    chat.wait_for("delegate > delegate > pay {");
    chat.wait_for_prompt();
    let screen = chat.screen();
    for shown in [
        "600 paid to Bob",
        "delegate > delegate {",
        "⚙ delegate {",
        "delegate says: delegate says: pay says: 600 paid",
    ] {
        assert!(screen.contains(shown), "{shown:?} is missing in\n{screen}");
    }
    chat.quit();
}

#[test]
fn questions_of_tools_are_asked_until_the_answer_fits() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.say("reserve a table at Sole");
    chat.wait_for("? reserve asks: Which table at Sole?");
    chat.wait_for("answer ›");
    let screen = chat.screen();
    for shown in ["seats: integer from 1 to 12 — How many people come.", "place: one of inside, garden"] {
        assert!(screen.contains(shown), "{shown:?} is missing in\n{screen}");
    }
    chat.say("seven");
    chat.wait_for("write one field, as in seats: …; they are seats, place");
    chat.say("seats: 70");
    chat.say("place: garden");
    chat.wait_for("✗ /seats: out of range; got number 70");
    chat.say(r#"{"seats": "7", "place": "garden"}"#);
    chat.wait_for("7 seats in the garden of Sole are reserved");
    chat.wait_for_prompt();

    // Questions of a sub-agent are answered line by line.
    chat.say("delegate reserve a table at Luna");
    chat.wait_for("? delegate > reserve asks: Which table at Luna?");
    chat.wait_for("answer ›");
    chat.say("place: inside");
    chat.say("seats: 2");
    chat.wait_for("2 seats inside of Luna are reserved");
    chat.wait_for_prompt();
    // Questions can be declined, dismissed, and cancelled.
    for (said, shown) in
        [("/decline", "the person declined to answer"), ("", "the person dismissed the question")]
    {
        chat.ask("/new");
        chat.say("reserve a table at Mare");
        chat.wait_for("Which table at Mare?");
        chat.wait_until(|screen| screen.contents().trim_end().ends_with("answer ›"));
        chat.send(&format!("{said}\r"));
        chat.wait_for(shown);
        chat.wait_for_prompt();
    }
    chat.say("reserve a table at Ponte");
    chat.wait_for("Which table at Ponte?");
    chat.wait_until(|screen| screen.contents().trim_end().ends_with("answer ›"));
    chat.send("\x03");
    chat.wait_for("the user cancelled it");
    chat.wait_for_prompt();
    chat.send("\x03");
    assert!(chat.end().success());
}

#[test]
fn arguments_are_edited_until_they_fit() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.say("pay Ann 500");
    chat.wait_for("always ›");
    chat.say("edit");
    chat.wait_for(r#"arguments › {"to":"Ann","amount":500}"#);
    chat.send("\x7f oops");
    chat.wait_for("500 oops");
    chat.send("\r");
    chat.wait_for("this is no JSON");
    chat.send("\x15");
    chat.say(r#"{"to": "Ann", "amount": 50000}"#);
    chat.wait_for("pay does not take these; change them once more");
    chat.wait_for("- /amount: out of range; got number 50000");
    assert!(!chat.screen().contains("Call `pay` again"), "{}", chat.screen());
    chat.send("\x15");
    chat.say(r#"{"to": "Ann", "amount": 42}"#);
    chat.wait_for("✓ 42 paid to Ann");
    chat.wait_for_prompt();
    // The screen shows the arguments that ran, not those that the model sent.
    let ran = r#"⚙ pay {"to":"Ann","amount":42} (as you changed it)"#;
    assert!(chat.screen().contains(ran), "{}", chat.screen());
    chat.ask("/show 1");
    assert!(chat.screen().contains(r#"pay {"to":"Ann","amount":42}"#), "{}", chat.screen());
}

#[test]
fn secret_arguments_are_neither_on_the_screen_nor_in_the_log() {
    let home = Folder::new();
    let log = home.0.join("traffic.jsonl");
    let chat = Terminal::at_prompt(Start::new(&home, &["--log", log.to_str().unwrap(), "--session", "s"]));
    chat.say("unlock door Garage, 4711");
    chat.wait_for("always ›");
    assert!(chat.screen().contains(r#""code": "[secret]""#), "{}", chat.screen());
    chat.say("edit");
    chat.wait_for(r#"arguments › {"door":"Garage","code":"[secret]"}"#);
    chat.wait_for("[secret] stays what it is");
    // Only the door changes. The code stays.
    chat.send("\x15");
    chat.say(r#"{"door":"Cellar","code":"[secret]"}"#);
    chat.wait_for("✓ Cellar is open (not really), by a code whose digits add up to 13");
    chat.wait_for_prompt();
    let ran = r#"⚙ unlock {"door":"Cellar","code":"[secret]"} (as you changed it)"#;
    assert!(chat.screen().contains(ran), "{}", chat.screen());
    // The code is on the screen once, in the person's message.
    assert_eq!(chat.screen().matches("4711").count(), 1, "{}", chat.screen());
    chat.ask("think");
    chat.quit();

    let log = std::fs::read_to_string(log).unwrap();
    let (call, ran) =
        (r#""args":{"door":"Garage","code":"[secret]"}"#, r#"{"door":"Cellar","code":"[secret]"}"#);
    assert!(log.contains(call) && log.contains(ran), "{log}");
    // The log omits the reply that calls `unlock`, and keeps replies without such a call.
    assert!(log.contains("it calls a tool that has secret arguments"), "{log}");
    assert!(log.contains("\"update\":\"text_delta\""), "{log}");
    // Only whole numbers count: times in the log may have the same digits.
    let numbers = log.split(|c: char| !c.is_ascii_digit()).filter(|number| *number == "4711");
    assert_eq!(numbers.count(), log.matches("unlock door Garage, 4711").count(), "{log}");
    // The session keeps the code, because the model needs it, and only the owner can read the file.
    let session = home.0.join("sessions/s.jsonl");
    assert!(std::fs::read_to_string(&session).unwrap().contains(r#""code":"4711""#));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(session).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_tool_that_is_always_allowed_is_not_asked_about_again() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.say("pay Ann 500");
    chat.wait_for("always ›");
    chat.say("always");
    chat.wait_for("pay is not asked about again in this chat");
    chat.wait_for("✓ 500 paid to Ann");
    chat.wait_for_prompt();
    chat.ask("pay Bob 700");
    let screen = chat.screen();
    assert!(screen.contains("✓ 700 paid to Bob"), "{screen}");
    assert_eq!(screen.matches("allow it?").count(), 1, "{screen}");
    chat.ask("/tools");
    assert!(chat.screen().contains("pay (always allowed)"), "{}", chat.screen());
}

#[test]
fn ctrl_c_at_an_approval_cancels_the_run() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.say("pay Ann 500");
    chat.wait_for("always ›");
    chat.send("\x03");
    chat.wait_for("the user cancelled it");
    chat.wait_for_prompt();
    assert!(!chat.screen().contains("paid"), "{}", chat.screen());
    chat.ask("pay Ann 5");
    assert!(chat.screen().contains("✓ 5 paid to Ann"), "{}", chat.screen());
}

#[test]
fn a_running_call_has_a_spinner_and_what_is_typed_steers() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.say("slow work for 5 seconds");
    chat.wait_for_sign("working 1/5 ▓▓░░░░░░░░");
    chat.wait_for_sign(" slow_work {\"seconds\":\"5\"} ");
    chat.send("and the weather in Oslx\x7fo");
    chat.wait_for_sign("› and the weather in Oslo");
    chat.send("\r");
    chat.wait_for_sign("» waits for the next turn: and the weather in Oslo");
    chat.wait_for(" s) 5 seconds of work are done");
    chat.wait_for("» heard before turn 2: and the weather in Oslo");
    chat.wait_for(r#"⚙ weather {"city":"Oslo"}"#);
    chat.wait_for_prompt();
    assert!(!chat.screen().contains("waits for the next turn"), "{}", chat.screen());
    chat.quit();
}

#[test]
fn what_is_typed_and_not_entered_stands_at_the_prompt() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.say("slow work for 1 second");
    chat.wait_for_sign("working 0/1");
    chat.send("half a tho");
    chat.wait_for("1 seconds of work are done");
    chat.wait_for("2 turns · 1 call");
    chat.send("ught");
    chat.wait_for("› half a thought");
}

#[test]
fn ctrl_c_cancels_the_turn_and_a_second_one_quits() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.say("slow work for 50 seconds");
    chat.wait_for_sign("working 0/50");
    chat.send("then this\r");
    chat.wait_for_sign("» waits for the next turn: then this");
    chat.send("\x03");
    chat.wait_for("✗ the run was aborted: the user cancelled it");
    // The message that the model did not receive is back at the prompt.
    chat.wait_for("› then this");
    chat.send("\x15");
    chat.wait_for_prompt();
    // The conversation can continue after the cancelled run.
    chat.ask("weather in Rome");
    assert!(chat.screen().contains("weather says: [{"), "{}", chat.screen());

    chat.say("slow work for 50 seconds");
    chat.wait_for_sign("working 1/50");
    chat.send("\x03");
    chat.wait_for("› ");
    chat.send("\x03");
    assert!(chat.end().success());
}

#[test]
fn ctrl_c_at_the_prompt_warns_first() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.send("\x03");
    chat.wait_for("Ctrl-C once more");
    chat.wait_for_prompt();
    chat.send("\x03");
    assert!(chat.end().success());
}

#[test]
fn a_model_that_fails_is_told_and_the_chat_goes_on() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.ask("fail");
    let screen = chat.screen();
    assert!(
        screen.contains("I am about to\n") && screen.contains("the demo model was told to fail"),
        "{screen}"
    );
    assert!(chat.looks("✗ the model failed", |cell| cell.fgcolor() == vt100::Color::Idx(1)));
    chat.ask("think");
    assert!(chat.screen().contains("the answer is 42"), "{}", chat.screen());
    chat.quit();
}
