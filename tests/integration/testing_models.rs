//! Models of tests: a closure, one that tries every tool, and recordings.

use agent::message::{Message, Part, Usage};
use agent::model::{Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, StepCx, reply};
use agent::testing::{Cassette, EventLog, FakeClock, SchemaModel};
use agent::{
    Assistant, Registry, ScriptedModel, ToolArgs, ToolContext, json, message::ToolCall, tool, tools,
};
use expect_test::expect;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Doubles a number.
#[tool]
fn double(n: i64) -> Result<i64, String> {
    n.checked_mul(2).ok_or_else(|| "too large".to_owned())
}

/// Doubles any number at all.
#[tool(name = "double")]
fn other(n: i64) -> i64 {
    n * 2
}

/// Books a room.
#[tool]
fn book(
    #[arg(length(1..=10))] city: String,
    #[arg(range(1..=30))] nights: u32,
    board: Option<Board>,
    #[arg(length(..=3))] guests: Vec<Guest>,
) -> String {
    format!(
        "{city} {nights} {} {}",
        board.map_or(0, |board| board as u8),
        guests.iter().map(|guest| guest.name.len()).sum::<usize>()
    )
}

#[derive(ToolArgs, Clone, Copy)]
enum Board {
    None,
    Full,
}

#[derive(ToolArgs)]
struct Guest {
    name: String,
}

/// Breaks at thirteen.
#[tool]
fn breaks(#[arg(range(0..=13))] n: u32) -> u32 {
    assert!(n < 13, "thirteen");
    n
}

#[tokio::test]
async fn a_closure_is_a_model_and_its_calls_have_ids_of_their_own() {
    let model = ScriptedModel::from_async_fn(|request: ModelRequest| async move {
        tokio::task::yield_now().await;
        match request.messages.len() {
            1 => reply().tool_call("double", r#"{"n": 1}"#).tool_call("double", r#"{"n": 2}"#),
            4 => reply().tool_call("double", r#"{"n": 3}"#),
            _ => reply().text("done").usage(Usage::default()),
        }
    });
    let assistant = Assistant::builder(model.clone()).tools(tools![double]).build().expect("an assistant");
    assert_eq!(assistant.prompt("Go.").await.expect("an answer").text(), "done");
    let ids: Vec<String> = assistant
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::Assistant(message) => {
                Some(message.tool_calls().map(|call| call.id.clone()).collect::<Vec<_>>())
            }
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3"]);
    assert_eq!(model.requests().len(), 3);
    assert_eq!(model.info().model, "scripted");
}

#[tokio::test]
async fn a_closure_may_fail_and_may_be_cancelled() {
    let failing =
        ScriptedModel::from_async_fn(|_| async { ModelError::new(ModelErrorKind::Overloaded, "busy") });
    let error =
        failing.call(&StepCx::new(), &ModelRequest::new([Message::user("Hi")])).await.expect_err("it fails");
    assert_eq!(error.kind(), ModelErrorKind::Overloaded);

    let hanging = ScriptedModel::from_async_fn(|_| std::future::pending::<&str>())
        .with_info(ModelInfo::new("a", "b", "c"));
    let cx = StepCx::new();
    let asked = hanging.call(&cx, &ModelRequest::new([Message::user("Hi")]));
    cx.cancel.cancel("enough");
    assert!(asked.await.expect_err("it ends").is_aborted());
}

#[tokio::test]
async fn every_tool_is_tried_rightly_and_wrongly() {
    let model = SchemaModel::new();
    let assistant =
        Assistant::builder(model.clone()).tools(tools![double, book]).build().expect("an assistant");
    assert_eq!(assistant.prompt("Go.").await.expect("an answer").text(), "Every tool was tried.");
    model.assert_safe();
    let calls = model.calls();
    let of = |tool: &str, kind: &str| {
        calls.iter().filter(|call| call.tool == tool && call.kind().to_string().starts_with(kind)).count()
    };
    for tool in ["double", "book"] {
        assert!(of(tool, "right") >= 3 && of(tool, "at an edge") >= 2 && of(tool, "slip: ") >= 10, "{model}");
    }
    assert!(of("book", "beyond an edge") >= 4, "{model}");
    assert!(calls.iter().all(|call| call.outcome.is_some()), "each call has its end");
    // The same again.
    let again = SchemaModel::new();
    let assistant =
        Assistant::builder(again.clone()).tools(tools![double, book]).build().expect("an assistant");
    assistant.prompt("Go.").await.expect("an answer");
    assert_eq!(again.calls(), calls);
}

#[tokio::test]
async fn a_tool_that_panics_is_found() {
    let model = SchemaModel::new().only(["breaks"]).with_slips(0).with_text("over");
    let assistant =
        Assistant::builder(model.clone()).tools(tools![double, breaks]).build().expect("an assistant");
    assert_eq!(assistant.prompt("Go.").await.expect("an answer").text(), "over");
    assert!(model.calls().iter().all(|call| call.tool == "breaks"));
    let text = model.to_string();
    assert!(text.contains("`breaks`, right: the tool panicked\n  sent: {\"n\":13}"), "{text}");
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| model.assert_safe())).is_err());
}

#[tokio::test]
async fn an_answer_of_a_type_is_made_from_its_schema() {
    #[derive(ToolArgs, Debug)]
    struct Verdict {
        #[arg(range(1..=5))]
        stars: u8,
        title: String,
    }
    let assistant = Assistant::builder(SchemaModel::new()).build().expect("an assistant");
    let verdict: Verdict = assistant.prompt("Your verdict?").output().await.expect("a verdict").value;
    assert!((1..=5).contains(&verdict.stars), "{verdict:?}");
    let _ = verdict.title;
}

#[tokio::test]
async fn events_are_lines() {
    let model = ScriptedModel::new([
        reply().text("One moment.").tool_call("double", r#"{"n": "21"}"#).tool_call("nothing", "{}"),
        reply().tool_call("double", r#"{"n": 9000000000000000000}"#),
        reply().text("A long answer that goes on and on, until nobody wants to read it any more.\nAnd on."),
    ]);
    let log = EventLog::new();
    let assistant = Assistant::builder(model)
        .tools(tools![double])
        .on_event(log.listener())
        .build()
        .expect("an assistant");
    assistant.prompt("Double 21.").await.expect("an answer");
    expect![[r#"
        run begins
        turn 1 begins
        message user "Double 21."
        message assistant "One moment." calls double, nothing
        call double {"n": "21"}
        call nothing {}
        end nothing failed unknown_tool "There is no tool \"nothing\". Tools: double.", not run
        end double completed "42" (/n text_to_integer)
        message tool_result "42"
        message tool_result "There is no tool \"nothing\". Tools: double."
        turn 1 ends: tool_use
        turn 2 begins
        message assistant calls double
        call double {"n": 9000000000000000000}
        end double failed tool_error "too large"
        message tool_result "too large"
        turn 2 ends: tool_use
        turn 3 begins
        message assistant "A long answer that goes on and on, until nobody wants to rea…"
        turn 3 ends: stop
        run ends: completed"#]]
    .assert_eq(&log.outline());
    log.assert_sequence(&["call double", "end double failed", "run ends"]);
    log.assert_never("run waits");
    let text = panic_of(|| log.assert_sequence(&["run begins", "end double failed", "call double"]));
    assert!(
        text.starts_with(
            "no line begins with \"call double\" after the 2 that were found (>):\n> run begins\n  turn 1"
        ),
        "{text}"
    );
    assert!(panic_of(|| log.assert_never("call nothing")).starts_with("a line begins with \"call nothing\""));
    log.clear();
    assert!(log.events().is_empty());
}

#[tokio::test]
async fn a_fake_clock_moves_only_when_it_is_moved() {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    /// Waits.
    #[tool(timeout = "10s")]
    async fn wait() {
        STARTED.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<()>().await;
    }
    let clock = FakeClock::new();
    let registry = Registry::new(tools![wait]).expect("a registry");
    let cx = ToolContext::new().with_executor(Arc::new(clock.clone()));
    let call = ToolCall::new("1", "wait", "{}");
    let running = registry.call(&call, &cx);
    let moving = async {
        clock.advance(Duration::from_secs(9));
        tokio::task::yield_now().await;
        assert_eq!(STARTED.load(Ordering::Relaxed), 1);
        clock.advance(Duration::from_millis(1_500));
    };
    let (result, ()) = tokio::join!(running, moving);
    assert_eq!((result.outcome.code(), clock.now()), (Some("timeout"), Duration::from_millis(10_500)));
}

/// What the panic of a failing assertion says.
fn panic_of(check: impl FnOnce()) -> String {
    let end = std::panic::catch_unwind(AssertUnwindSafe(check)).expect_err("it fails");
    end.downcast_ref::<String>().cloned().unwrap_or_default()
}

/// A folder that is gone in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("agent-tests-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn script() -> ScriptedModel {
    ScriptedModel::new([
        reply().thinking("Hm.").tool_call("double", r#"{"n": 21}"#),
        reply().text("It is 42. Use sk-abcdefghijklmnopqrstuv."),
    ])
    .with_info(ModelInfo::new("zoo", "parrot", "grey-1"))
}

fn assistant(model: impl Model + 'static) -> Assistant {
    Assistant::builder(model).system("Be brief.").tools(tools![double]).build().expect("an assistant")
}

#[tokio::test]
async fn what_was_recorded_is_played_and_the_file_can_be_read() {
    let folder = Folder::new("recorded");
    let path = folder.file("deep/double.json");
    let recording = Cassette::record(&path, script()).secret("hunter2");
    assert!(recording.is_recording());
    let asked = "My password is hunter2. Double 21.";
    assert_eq!(
        assistant(recording.clone()).prompt(asked).await.expect("an answer").text(),
        "It is 42. Use sk-abcdefghijklmnopqrstuv."
    );
    recording.assert_played();

    let text = std::fs::read_to_string(&path).expect("a file");
    assert!(!text.contains("hunter2") && !text.contains("sk-abc"), "{text}");
    let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&file["model"]["provider"], &file["model"]["native_output"]), (&json!("zoo"), &json!(false)));
    assert_eq!(file["exchanges"][0]["request"]["system"], "Be brief.");
    // Messages that were there before are not written again.
    assert_eq!(file["exchanges"][1]["request"]["continues"], 1);
    assert_eq!(file["exchanges"][1]["request"]["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!(file["tools"].as_object().map(serde_json::Map::len), Some(1));

    let playing = Cassette::play(&path).expect("a cassette").secret("hunter2");
    assert_eq!((playing.len(), playing.is_empty(), playing.info().model.as_str()), (2, false, "grey-1"));
    let played = assistant(playing.clone());
    let output = played.prompt(asked).await.expect("an answer");
    assert_eq!(output.text(), "It is 42. Use [scrubbed].");
    playing.assert_played();
    let thinking = played
        .messages()
        .iter()
        .any(|message| matches!(message, Message::Assistant(reply) if reply.thinking() == "Hm."));
    assert!(thinking, "a reply is played with all its parts");

    let twice = assistant(playing).prompt(asked).await.expect_err("played already").to_string();
    assert!(twice.contains("was played already"), "{twice}");
    let half = Cassette::play(&path).expect("a cassette").secret("hunter2");
    let text = panic_of(|| half.assert_played());
    assert!(text.starts_with("exchanges [1, 2] of 2 in"), "{text}");
}

#[tokio::test]
async fn a_request_that_was_not_recorded_is_loud_and_shows_the_nearest() {
    let folder = Folder::new("miss");
    let path = folder.file("double.json");
    assistant(Cassette::record(&path, script())).prompt("Double 21.").await.expect("an answer");

    let play = || Cassette::play(&path).expect("a cassette");
    let error = assistant(play()).prompt("Double 22.").await.expect_err("another prompt").to_string();
    assert!(
        error.contains(
            "Of 2 recorded, number 1 is the nearest; it differs in\n  /messages/0/content/0/text\n"
        ),
        "{error}"
    );
    assert!(error.contains("recorded: \"Double 21.\"\n    asked:    \"Double 22.\"\n"), "{error}");
    assert!(error.contains("AGENT_CASSETTES=record"), "{error}");

    let changed =
        Assistant::builder(play()).system("Be brief.").tools(tools![other]).build().expect("an assistant");
    let error = changed.prompt("Double 21.").await.expect_err("another tool").to_string();
    assert!(error.contains("/tools/0/description\n    recorded: \"Doubles a number.\"\n    asked:    \"Doubles any number at all.\""), "{error}");
}

#[tokio::test]
async fn errors_are_recorded_too_and_texts_can_be_made_the_same() {
    let folder = Folder::new("errors");
    let path = folder.file("error.json");
    let failing = ScriptedModel::new([ModelError::new(ModelErrorKind::RateLimit, "slow down")
        .with_status(429)
        .with_code("rate_limit_error")
        .with_retry_after(Duration::from_millis(1_500))
        .with_retryable(false)]);
    let no_digits = |text: &str| {
        text.chars().map(|char| if char.is_ascii_digit() { '0' } else { char }).collect::<String>()
    };
    let request = |text: &str| ModelRequest::new([Message::user([Part::text(text)])]);
    let recording = Cassette::record(&path, failing).scrub(no_digits);
    recording.call(&StepCx::new(), &request("It is 2026-11-22.")).await.expect_err("it fails");
    let playing = Cassette::play(&path).expect("a cassette").scrub(no_digits);
    let error = playing.call(&StepCx::new(), &request("It is 2027-01-01.")).await.expect_err("it fails");
    assert_eq!(
        (error.kind(), error.message(), error.status(), error.code(), error.retry_after()),
        (
            ModelErrorKind::RateLimit,
            "slow down",
            Some(429),
            Some("rate_limit_error"),
            Some(Duration::from_millis(1_500))
        )
    );
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn an_error_is_kept_if_the_file_cannot_be_written() {
    let folder = Folder::new("unwritten");
    // A file cannot replace a folder.
    let path = folder.file("folder");
    std::fs::create_dir(&path).expect("a folder");
    let failing = ScriptedModel::new([ModelError::new(ModelErrorKind::RateLimit, "slow down")]);
    let recording = Cassette::record(&path, failing);
    let error = recording.call(&StepCx::new(), &ModelRequest::default()).await.expect_err("it fails");
    assert!(error.message().starts_with("the cassette could not be written: "), "{error}");
    let source = std::error::Error::source(&error).expect("the error of the model");
    assert_eq!(source.to_string(), "rate limit: slow down");
}

#[tokio::test]
async fn every_setting_is_compared_and_older_files_are_played() {
    let folder = Folder::new("settings");
    let path = folder.file("settings.json");
    let request = |compact_at: Option<u64>| {
        let mut request = ModelRequest::new([Message::user(r#"{"password": 4711}"#)]);
        (request.compact_at, request.examples_in_descriptions) = (compact_at, compact_at.is_some());
        request
    };
    let recording = Cassette::record(&path, ScriptedModel::new(["Hello."]));
    recording.call(&StepCx::new(), &request(None)).await.expect("a reply");
    let play = || Cassette::play(&path).expect("a cassette");
    let error = play().call(&StepCx::new(), &request(Some(9))).await.expect_err("other settings").to_string();
    assert!(error.contains("/compact_at\n") && error.contains("/examples_in_descriptions\n"), "{error}");

    let text = std::fs::read_to_string(&path).expect("a file");
    let older = text.replace(r#""cassette": 2"#, r#""cassette": 1"#).replace(r#"\"[scrubbed]\""#, "4711");
    assert!(older.contains(r#""cassette": 1"#) && older.contains("4711"), "{older}");
    std::fs::write(&path, older).expect("a file");
    let played = play().call(&StepCx::new(), &request(Some(9))).await.expect("a reply");
    assert_eq!(played.text(), "Hello.");
}

#[test]
fn a_file_that_is_no_cassette_is_told() {
    let folder = Folder::new("broken");
    let missing = Cassette::play(folder.file("missing.json")).expect_err("not there");
    assert!(
        std::error::Error::source(&missing).is_some()
            && missing.message().ends_with("record it with AGENT_CASSETTES=record")
    );
    let of = |text: &str| {
        let path = folder.file("broken.json");
        std::fs::write(&path, text).expect("a file");
        let error = Cassette::play(&path).expect_err("broken");
        error.message().rsplit_once("cassette: ").map(|(_, reason)| reason.to_owned()).unwrap_or_default()
    };
    assert!(of("{").starts_with("EOF while parsing"));
    std::fs::write(folder.file("cut.json"), "{").expect("a file");
    let cut = Cassette::play(folder.file("cut.json")).expect_err("broken");
    assert!(std::error::Error::source(&cut).is_some());
    assert_eq!(of(r#"{"cassette": 9}"#), "`cassette` is not 1 to 2: record it again");
    assert_eq!(of(r#"{"cassette": 1, "exchanges": [{}]}"#), "exchange 1: no `request`");
    assert_eq!(
        of(r#"{"cassette": 1, "exchanges": [{"request": {}}]}"#),
        "exchange 1: it needs either `reply` or `error`"
    );
    assert_eq!(
        of(r#"{"cassette": 1, "exchanges": [{"request": {"tools": ["a@1"]}, "reply": {}}]}"#),
        "exchange 1: there is no tool \"a@1\""
    );
    assert_eq!(
        of(r#"{"cassette": 1, "exchanges": [{"request": {"continues": 1, "messages": []}, "reply": {}}]}"#),
        "exchange 1: `continues` is not an earlier exchange"
    );
}

/// Converts an amount of money to another currency.
#[tool(defer)]
fn convert_currency(amount: f64, to: String) -> String {
    format!("{amount} {to}")
}

#[tokio::test]
async fn a_run_shows_a_deferred_tool_once_it_was_found_and_in_later_runs() {
    let model = ScriptedModel::new([
        reply().tool_call("search_tools", r#"{"query": "currency"}"#),
        reply().tool_call("convert_currency", r#"{"amount": 5, "to": "EUR"}"#),
        reply().text("5 EUR"),
        reply().text("Yes."),
    ]);
    let tools = tools![double, convert_currency];
    let assistant = Assistant::builder(model.clone()).tools(tools).build().expect("an assistant");
    assert_eq!(assistant.prompt("5 in euros?").await.expect("an answer").text(), "5 EUR");
    assistant.prompt("Sure?").await.expect("an answer");
    let shown: Vec<Vec<String>> = model
        .requests()
        .iter()
        .map(|request| request.tools.iter().map(|tool| tool.name().to_owned()).collect())
        .collect();
    let found = ["double", "search_tools", "convert_currency"];
    assert_eq!(shown[0], ["double", "search_tools"]);
    assert!(shown[1..].iter().all(|shown| *shown == found), "{shown:?}");
}
