//! The chat without a terminal.

use super::terminal::{Folder, Start, program};
use std::io::{Read as _, Write as _};
use std::process::{Command, Output, Stdio};

fn command(home: &Folder, args: &[&str]) -> Command {
    let mut command = Command::new(program("chat"));
    command.args(args).env_clear().envs(Start::new(home, &[]).variables()).current_dir(&home.0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let home = Folder::new();
    run_in(&home, args, input)
}

fn run_in(home: &Folder, args: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let mut child = command(home, args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The write may fail, because the program may exit before it has read everything.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn a_question_is_answered_on_standard_output_alone() {
    let (code, answer, notes) = run(&[], b"weather in Rome for 3 days\n");
    assert_eq!(code, Some(0), "{notes}");
    assert!(answer.starts_with("One moment.\nweather says: [{"), "{answer}");
    assert!(!answer.contains("⚙") && !answer.contains("┆"), "{answer}");
    for shown in
        ["the demo model answers, because there is no --model", "┆ That sounds like", "⚙ weather", "became 3"]
    {
        assert!(notes.contains(shown), "{shown} is missing in\n{notes}");
    }
    assert!(!answer.contains('\x1b') && !notes.contains('\x1b'));
}

#[test]
fn a_question_of_the_command_line_goes_before_what_is_piped() {
    let (code, answer, notes) = run(&["--model", "demo", "weather", "in", "Rome"], b"");
    assert_eq!((code, answer.contains("weather says")), (Some(0), true), "{notes}");
    assert!(!notes.contains("because"), "who asks for the demo model knows that it answers: {notes}");
    let (code, answer, _) = run(&["think about this"], b"a text");
    assert_eq!((code, answer.as_str()), (Some(0), "I thought about it, and the answer is 42.\n"));
}

#[test]
fn how_it_ends_says_what_happened() {
    let (code, answer, notes) = run(&["fail"], b"");
    assert_eq!((code, answer.as_str()), (Some(1), "I am about to\n"), "{notes}");
    assert!(notes.contains("the demo model was told to fail"), "{notes}");
    for (args, input, said) in [
        (&["--modle", "x"][..], &b"hi"[..], "did you mean --model? known are --model, --mcp"),
        (&["--model", "opnai/gpt-5"], b"hi", "did you mean `openai`?"),
        (
            &["--model", "openai/gpt-5"],
            b"hi",
            "`openai` needs a key: give one to the builder, or set OPENAI_API_KEY",
        ),
        (&["--thinking", "hard"], b"hi", "none, minimal, low, medium, high, xhigh, max"),
        (&["--allow", "pya"], b"hi", "there is no such tool; known are weather, pay"),
        (&["--session", "a/b"], b"hi", "no name for a session"),
        (&["--log", "/nowhere/at/all"], b"hi", "/nowhere/at/all"),
        (&["--mcp", "a 'b"], b"hi", "a quote is not closed"),
        (&[], b" \n", "nothing was asked"),
        (&[], b"caf\xc3\xff", "standard input is not UTF-8 at byte 3"),
    ] {
        let (code, answer, notes) = run(args, input);
        assert_eq!((code, answer.as_str()), (Some(2), ""), "{args:?}: {notes}");
        assert!(notes.contains(said), "{args:?}: {notes}");
    }
    // The chat names each server that it cannot connect to, and continues without it.
    let slow = "sleepy=sh -c 'echo warming up >&2; exec sleep 60'";
    let dead = "sh -c 'echo no database there >&2; exit 1'";
    let args = [
        "--mcp",
        "/no/such/server",
        "--mcp",
        slow,
        "--mcp-timeout",
        "2",
        "--mcp",
        dead,
        "--allow",
        "sleepy__*",
        "hi",
    ];
    let (code, answer, notes) = run(&args, b"");
    assert_eq!((code, answer.is_empty()), (Some(0), false), "{notes}");
    for (server, cause) in [
        ("/no/such/server", "the program cannot be started (No such file"),
        ("sleepy", "it did not answer within 2 s; its last words on standard error: warming up"),
        ("sh", "the program ended before it answered; its last words on standard error: no database there"),
    ] {
        let line = notes.lines().find(|line| line.contains(&format!("cannot connect to {server}: ")));
        let line = line.unwrap_or_else(|| panic!("{server}: {notes}"));
        assert!(line.contains(cause) && line.ends_with("the chat goes on without it"), "{line}");
    }
    let (code, help, _) = run(&["--help"], b"");
    assert_eq!((code, help.contains("--session NAME")), (Some(0), true));
}

#[test]
fn nobody_allows_anything_in_a_pipe_unless_it_was_allowed_before() {
    let (code, answer, notes) = run(&[], b"pay Ann 500");
    assert_eq!(
        (code, answer.contains("pay did not work out: Nobody is there to allow it")),
        (Some(0), true),
        "{notes}"
    );
    let (code, answer, notes) = run(&["--allow", "pay"], b"pay Ann 500");
    assert_eq!((code, answer.contains("500 paid to Ann")), (Some(0), true), "{notes}");
}

#[test]
fn a_command_works_in_a_pipe() {
    let (code, said, _) = run(&["/tools"], b"");
    assert_eq!((code, said.contains("pay (may ask you)")), (Some(0), true), "{said}");
}

#[test]
fn ten_megabytes_are_a_question_and_more_is_too_much() {
    let (code, answer, notes) = run(&[], &b"think ".repeat(10 << 17));
    assert_eq!((code, answer.contains("42")), (Some(0), true), "{notes}");
    let (code, _, notes) = run(&[], &vec![b'a'; (16 << 20) + 1]);
    assert_eq!(code, Some(2), "{notes}");
    assert!(notes.contains("more than 16777216 bytes"), "{notes}");
}

#[test]
fn who_does_not_read_to_the_end_gets_no_panic() {
    let home = Folder::new();
    let mut child = command(&home, &["tell a story"]).spawn().unwrap();
    drop(child.stdin.take());
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{notes}");
    assert!(!notes.contains("panicked"), "{notes}");
}

#[test]
fn a_session_goes_on_from_pipe_to_pipe() {
    let home = Folder::new();
    for (question, messages) in [("weather in Rome", 4), ("think", 6)] {
        let (code, _, notes) = run_in(&home, &["--session", "p", question], b"");
        assert_eq!(code, Some(0), "{notes}");
        let kept = std::fs::read_to_string(home.0.join("sessions/p.jsonl")).unwrap();
        // One line for the model, one for each message.
        assert_eq!(kept.lines().count(), 1 + messages);
    }
}

#[test]
fn a_session_whose_model_cannot_be_had_is_refused_in_one_line() {
    let home = Folder::new();
    let folder = home.0.join("sessions");
    std::fs::create_dir_all(&folder).unwrap();
    let kept = "{\"model\":\"anthropic/claude-sonnet-5\"}\n";
    std::fs::write(folder.join("p.jsonl"), kept).unwrap();
    let (code, answer, notes) = run_in(&home, &["--session", "p", "think"], b"");
    assert_eq!((code, answer.as_str()), (Some(2), ""), "{notes}");
    assert!(
        notes.starts_with(
            "chat: session p was made with anthropic/claude-sonnet-5, which cannot be had: `anthropic` needs a key"
        ),
        "{notes}"
    );
    assert!(notes.contains("--model demo") && notes.lines().count() == 1, "{notes}");
    assert_eq!(std::fs::read_to_string(folder.join("p.jsonl")).unwrap(), kept);
    let (code, _, notes) = run_in(&home, &["--session", "p", "--model", "demo", "think"], b"");
    assert_eq!(code, Some(0), "{notes}");
    // A run with an unavailable model creates no session.
    let (code, ..) = run_in(&home, &["--session", "q", "--model", "anthropic/claude-sonnet-5", "think"], b"");
    assert_eq!((code, folder.join("q.jsonl").exists()), (Some(2), false));
}

#[test]
fn an_interrupt_ends_it_and_keeps_what_was_said() {
    let home = Folder::new();
    let mut child = command(&home, &["--session", "p", "slow work for 50 seconds"]).spawn().unwrap();
    drop(child.stdin.take());
    let mut stdout = child.stdout.take().unwrap();
    // Waits until the program has begun to answer.
    stdout.read_exact(&mut [0; 10]).unwrap();
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let kept = std::fs::read_to_string(home.0.join("sessions/p.jsonl")).unwrap();
    let lines: Vec<&str> = kept.lines().collect();
    assert!(lines[0] == r#"{"model":"demo"}"# && lines[1].starts_with(r#"{"role":"user""#), "{kept}");
}
