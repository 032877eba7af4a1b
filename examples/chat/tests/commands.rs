//! Commands, editing, sessions.

use super::terminal::{Folder, Start, Terminal, program};

#[test]
fn commands_tell_what_they_know() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    for (command, shown) in [
        ("/help", "/save [NAME]"),
        ("/model", "provider/model: demo, anthropic, openai,"),
        ("/model opnai/x", "there is no provider `opnai`"),
        ("/model anthropic/claude-sonnet-5", "`anthropic` needs a key"),
        ("/tools", "pay (may ask you)"),
        ("/tools pay", "\"maximum\": 10000"),
        ("/tools nope", "nope"),
        ("/usage", "this chat: 0 turns"),
        ("/context", "tokens, up to"),
        ("/compact", "there are no summaries"),
        ("/show", "there is no answer yet"),
        ("/show 3", "no tool was called yet"),
        ("/load nobody", "there is no session nobody; none is kept"),
        ("/save ../x", "`../x` is no name for a session"),
        ("/save", "under which name?"),
        ("/usge", "did you mean /usage?"),
        ("/help me", "/help takes nothing behind it"),
    ] {
        chat.ask(command);
        assert!(chat.screen().contains(shown), "{command}: {shown:?} is missing in\n{}", chat.screen());
    }
    chat.ask("weather in Rome");
    chat.ask("/usage");
    assert!(
        chat.screen().contains("this chat: 2 turns") && chat.screen().contains("60 out"),
        "{}",
        chat.screen()
    );
    chat.ask("/context");
    let screen = chat.screen();
    assert!(screen.contains("tool weather") && screen.contains("█"), "{screen}");
    chat.ask("/model demo");
    assert!(chat.screen().contains("answers from now on"), "{}", chat.screen());
    chat.quit();
}

#[test]
fn old_messages_are_summarized_for_the_model_and_stay_here() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &["--window", "8000", "--session", "s"]));
    chat.ask("/compact");
    assert!(chat.screen().contains("there is nothing to summarize yet"), "{}", chat.screen());
    chat.ask("tell a story");
    chat.ask("tell a story");
    chat.ask("weather in Rome");
    chat.ask("/compact the weather");
    assert!(chat.screen().contains("are a summary for the model now"), "{}", chat.screen());
    chat.ask("/context");
    assert!(chat.screen().contains("summary"), "{}", chat.screen());
    chat.ask("/show");
    assert!(chat.screen().contains("Rome"), "{}", chat.screen());
    chat.quit();
    // The session keeps the summary for the next process.
    let chat = Terminal::at_prompt(Start::new(&home, &["--window", "8000", "--session", "s"]));
    chat.ask("/context");
    assert!(chat.screen().contains("summary"), "{}", chat.screen());
    chat.quit();
}

#[test]
fn everything_stays_when_another_model_answers() {
    let home = Folder::new();
    let server = format!("hotels={}", program("mcp_server").display());
    let chat = Terminal::at_prompt(Start::new(&home, &["--mcp", &server, "--session", "s"]));
    chat.say("pay Ann 500");
    chat.wait_for("always ›");
    chat.say("always");
    chat.wait_for("✓ 500 paid to Ann");
    chat.wait_for_prompt();
    chat.ask("/model demo");
    assert!(chat.screen().contains("answers from now on"), "{}", chat.screen());
    // The conversation was kept: with an empty one, the demo model would print its hints.
    chat.ask("hm");
    assert!(chat.screen().contains("I heard: hm"), "{}", chat.screen());
    // Approvals for `always`, the tools and the servers are kept, too.
    chat.ask("pay Bob 700");
    assert!(chat.screen().contains("✓ 700 paid to Bob"), "{}", chat.screen());
    chat.say("find hotels in Paris with 4 stars");
    chat.wait_for("? hotels__find_hotels wants to run with");
    chat.say("yes");
    chat.wait_for("hotels__find_hotels says:");
    chat.wait_for_prompt();
    // Usage, results and session are kept, too.
    chat.ask("/usage");
    let screen = chat.screen();
    assert!(
        screen.contains("this chat: 7 turns") && screen.contains("the conversation: 7 turns"),
        "{screen}"
    );
    chat.ask("/show 1");
    assert!(chat.screen().contains("500 paid to Ann (not really)"), "{}", chat.screen());
    chat.quit();
    let kept = std::fs::read_to_string(home.0.join("sessions/s.jsonl")).unwrap();
    // One line for the model, one for each message.
    assert_eq!(kept.lines().count(), 1 + 14, "{kept}");
}

#[test]
fn lines_are_completed_edited_and_remembered() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.send("/us\t");
    chat.wait_for("› /usage ");
    chat.send("\r");
    chat.wait_for("this chat: 0 turns");
    chat.wait_for_prompt();
    chat.send("/tools we\t");
    chat.wait_for("› /tools weather");
    // Ctrl-U clears the line, and Ctrl-A goes to its beginning.
    chat.send("\x15think\x01I \r");
    chat.wait_for("› I think");
    chat.wait_for("the answer is 42");
    chat.wait_for_prompt();
    chat.send("\x1b[A");
    chat.wait_for("› I think");
    chat.send("\x15");
    chat.quit();

    // The next chat remembers the line, too.
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.send("\x1b[A\x1b[A");
    chat.wait_for("› I think");
}

#[test]
fn a_message_may_have_several_lines() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "s"]));
    chat.send("think\\\r");
    chat.wait_until(|screen| {
        screen.cursor_position().1 == 0 && screen.contents().trim_end().ends_with("› think\\")
    });
    // Alt-Enter starts a new line, too.
    chat.send("about\x1b\rthis");
    chat.wait_for("about\nthis");
    chat.send("\r");
    chat.wait_for("the answer is 42");
    chat.wait_for_prompt();
    chat.quit();
    let kept = std::fs::read_to_string(home.0.join("sessions/s.jsonl")).unwrap();
    assert!(kept.contains(r"think\nabout\nthis"), "{kept}");
}

#[test]
fn a_session_is_kept_and_gone_on_with() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "trip"]));
    assert!(chat.screen().contains("session trip (0 messages)"), "{}", chat.screen());
    chat.ask("weather in Rome");
    chat.quit();

    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "trip"]));
    let screen = chat.screen();
    assert!(screen.contains("session trip (4 messages)") && screen.contains("› weather in Rome"), "{screen}");
    assert!(screen.contains(r#"⚙ weather {"city":"Rome"}"#), "{screen}");
    assert!(screen.contains("weather says: [{") && !screen.contains("before"), "{screen}");
    chat.ask("/usage");
    assert!(chat.screen().contains("the conversation: 2 turns"), "{}", chat.screen());
    chat.ask("/save other");
    chat.ask("think");
    chat.ask("/load trip");
    assert!(chat.screen().contains("session trip (4 messages)"), "{}", chat.screen());
    chat.ask("/load other");
    assert!(chat.screen().contains("session other (6 messages)"), "{}", chat.screen());
    chat.ask("/save trip");
    assert!(chat.screen().contains("there is a session trip; /load it"), "{}", chat.screen());
    chat.ask("/new");
    chat.ask("/load");
    assert!(chat.screen().contains("  trip") && chat.screen().contains("  other"), "{}", chat.screen());
    chat.quit();
}

#[test]
fn a_session_that_cannot_be_kept_at_the_end_says_so() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "s"]));
    chat.say("slow work for 60 seconds");
    chat.wait_for_sign("working 0/60");
    std::fs::write(home.0.join("sessions/s.jsonl"), "{\"model\":\"demo\"}\n").unwrap();
    chat.signal("TERM");
    chat.wait_for("chat: not kept: somebody else went on");
    assert!(chat.end().success());
}

/// Writes a session that was made with `model`. No test sends a request to that model.
fn made_with(home: &Folder, name: &str, model: &str) {
    let folder = home.0.join("sessions");
    std::fs::create_dir_all(&folder).unwrap();
    let said = r#"{"role":"user","content":[{"type":"text","text":"hello"}]}"#;
    std::fs::write(folder.join(format!("{name}.jsonl")), format!("{{\"model\":\"{model}\"}}\n{said}\n"))
        .unwrap();
}

#[test]
fn a_session_goes_on_with_its_model() {
    let home = Folder::new();
    made_with(&home, "trip", "ollama/qwen3");
    made_with(&home, "secret", "anthropic/claude-sonnet-5");
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "trip"]));
    let screen = chat.screen();
    assert!(screen.starts_with("ollama/qwen3\n(session trip was made with it)"), "{screen}");
    assert!(screen.contains("session trip (1 message)"), "{screen}");
    // The session remembers the new model at once.
    chat.ask("/model ollama/gemma3");
    chat.quit();
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "trip"]));
    assert!(chat.screen().starts_with("ollama/gemma3\n"), "{}", chat.screen());
    chat.quit();
    // `--model` takes precedence over the model of the session.
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "trip", "--model", "demo"]));
    assert!(chat.screen().starts_with("demo — "), "{}", chat.screen());
    chat.ask("think");
    chat.quit();
    // A loaded session brings its model along, unless that model is unavailable.
    made_with(&home, "other", "ollama/qwen3");
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "trip"]));
    assert!(chat.screen().starts_with("demo — "), "{}", chat.screen());
    chat.ask("/load other");
    assert!(chat.screen().contains("ollama/qwen3 answers from now on"), "{}", chat.screen());
    chat.ask("/load secret");
    let refused = "✗ session secret was made with anthropic/claude-sonnet-5, which cannot be had: `anthropic` needs a key";
    assert!(chat.screen().contains(refused), "{}", chat.screen());
    chat.ask("/model");
    assert!(
        chat.screen().contains("ollama/qwen3 (because session other was made with it)"),
        "{}",
        chat.screen()
    );
    chat.quit();
    let chat = Terminal::at_prompt(Start::new(&home, &["--model", "demo"]));
    chat.ask("/load other");
    assert!(!chat.screen().contains("answers from now on"), "{}", chat.screen());
    chat.quit();
}

#[test]
fn exit_and_quit_end_the_chat() {
    let home = Folder::new();
    for word in ["exit", "quit"] {
        let chat = Terminal::at_prompt(Start::new(&home, &["--session", word]));
        // Inside a sentence, both are ordinary words.
        chat.ask(&format!("{word} now"));
        assert!(chat.screen().contains("I am the demo model"), "{}", chat.screen());
        // During a run, the word is not sent to the model. It waits at the prompt.
        chat.say("slow work for 2 seconds");
        chat.wait_for_sign("working 0/2");
        chat.send(word);
        chat.send("\r");
        chat.wait_for("commands wait for the answer");
        chat.wait_until(|screen| {
            let screen = screen.contents();
            screen.contains("2 turns · ") && screen.trim_end().ends_with(&format!("› {word}"))
        });
        chat.send("\r");
        let status = chat.end();
        assert!(status.success(), "{word}: {status}");
        let kept = std::fs::read_to_string(home.0.join(format!("sessions/{word}.jsonl"))).unwrap();
        assert!(!kept.contains(&format!("\"{word}\"")), "{kept}");
    }
}

#[test]
fn a_long_conversation_is_told_from_its_end() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "s"]));
    for city in ["Rome", "Oslo", "Paris", "Cairo"] {
        chat.ask(&format!("weather in {city}"));
    }
    chat.quit();
    let chat = Terminal::at_prompt(Start::new(&home, &[]));
    chat.ask("/load s");
    let screen = chat.screen();
    let told: Vec<&str> = screen.lines().skip_while(|line| !line.contains("session s (16")).collect();
    assert!(told[1].starts_with("… 8 messages before"), "{screen}");
    assert!(told[2].starts_with("› weather in Paris") && screen.contains("› weather in Cairo"), "{screen}");
    assert!(!screen.contains("weather in Oslo"), "{screen}");
    chat.quit();
}

#[test]
fn a_chat_that_is_killed_loses_the_open_turn_alone() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "s"]));
    chat.ask("weather in Rome");
    chat.say("slow work for 50 seconds");
    chat.wait_for_sign("working 0/50");
    drop(chat);
    let chat = Terminal::at_prompt(Start::new(&home, &["--session", "s"]));
    assert!(chat.screen().contains("session s (4 messages)"), "{}", chat.screen());
    chat.ask("weather in Oslo");
    assert!(chat.screen().contains("{\"city\":\"Oslo\"}"), "{}", chat.screen());
    chat.quit();
}

#[test]
fn long_output_comes_in_pages() {
    let home = Folder::new();
    let chat = Terminal::at_prompt(Start::new(&home, &[]).size(12, 80));
    chat.ask("count up to 100");
    // During a run, only the beginning of a result is shown.
    assert!(chat.screen().contains("… 94 lines more: /show 1"), "{}", chat.screen());
    chat.say("/show 1");
    chat.wait_for("— 91 more: Space for a page, Enter for a line, q to stop —");
    chat.send("\r");
    chat.wait_for("— 90 more");
    chat.send(" ");
    chat.wait_for("— 80 more");
    assert!(chat.screen().contains("\n19\n") && !chat.screen().contains("\n9\n"), "{}", chat.screen());
    chat.send("q");
    chat.wait_for_prompt();
    assert!(!chat.screen().contains("Space for a page"), "{}", chat.screen());
    chat.quit();
}
