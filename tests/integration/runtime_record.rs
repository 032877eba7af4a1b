//! Calls that were made outside of a run: recorded as a turn of the conversation, in one process and on an engine.

use std::sync::Arc;

use agent::ScriptedModel;
use agent::durable::{Rehearsal, RunRequest, Service};
use agent::loop_core::{AgentLoop, RecordError};
use agent::message::{Conversation, Message, Part, ToolCall};
use agent::model::reply;
use agent::store::{InvocationQuery, InvocationStatus, MemoryStore, Store as _};
use agent::{
    Assistant, AssistantBuilder, Control, EventKind, RunStop, ToolBuilder, ToolContext, ToolOutcome,
    ToolOutput, Value, json, run::RecordedTurn, tool, tool::IntoOutcome, tools,
};

/// Goes on in the background.
#[tool(follow_up)]
fn export(table: String) -> String {
    format!("the export of {table} has begun")
}

/// What a user looks at.
#[tool(inline)]
fn looked_at(page: String) {
    let _ = page;
}

fn job(says: impl Fn(&str) -> bool + Send + Sync + 'static) -> agent::Tool {
    let job = ToolBuilder::new("job").description("Runs a job.");
    let job = job.required_string("name", "Which.");
    let job = job.triggers_follow_up(move |args, result| {
        // All that is known of the call is there.
        args.value().is_some_and(|args| args["name"] == "nightly") && says(&result.text())
    });
    job.build(|_: Value, _cx: ToolContext| async { "started" }).unwrap()
}

fn builder(model: &ScriptedModel) -> AssistantBuilder {
    let panics = |text: &str| if text == "panic" { panic!("no") } else { text == "failed" };
    Assistant::builder(model.clone()).tools(tools![export, looked_at, { job(panics) }])
}

fn call(name: &str, args: &Value) -> ToolCall {
    ToolCall::new("ui_1", name, args.to_string())
}

fn one(name: &str, args: &Value, outcome: impl IntoOutcome) -> RecordedTurn {
    RecordedTurn::new().with_call(call(name, args), outcome)
}

/// What is recorded, and whether the model is asked then.
fn cases() -> Vec<(RecordedTurn, bool)> {
    let looked = || call("looked_at", &json!({"page": "orders"}));
    let exported = || call("export", &json!({"table": "orders"}));
    let nightly = json!({"name": "nightly"});
    vec![
        (one("looked_at", &json!({"page": "orders"}), "noted"), false),
        (one("export", &json!({"table": "orders"}), "1,200 rows"), true),
        // Any of them is enough.
        (RecordedTurn::new().with_call(looked(), "noted").with_call(exported(), "1,200 rows"), true),
        (RecordedTurn::new().with_text("Here it is.").with_call(looked(), "noted"), false),
        // The tool itself says so, of each record.
        (one("job", &nightly, "failed"), true),
        (one("job", &nightly, "fine"), false),
        (one("job", &json!({"name": "hourly"}), "failed"), false),
        (one("job", &nightly, "panic"), false),
        // Nobody knows the tool any more.
        (one("gone", &json!({}), "done"), false),
        (RecordedTurn::new().with_text("Nothing was called."), false),
    ]
}

#[tokio::test]
async fn the_model_is_asked_only_where_a_tool_says_so() {
    for (turn, asks) in cases() {
        let model = ScriptedModel::new(["I see."]);
        let assistant = builder(&model).build().unwrap();
        let output = assistant.record(turn.clone()).await.unwrap();
        assert_eq!(model.requests().len(), usize::from(asks), "{turn:?}");
        assert_eq!((output.stop, output.turns), (RunStop::Completed, 1 + u32::from(asks)), "{turn:?}");
        let messages = assistant.messages();
        assert_eq!(messages.len(), 1 + turn.calls().len() + usize::from(asks), "{turn:?}");
        let mut repaired = messages.clone();
        assert!(repaired.repair().is_empty(), "{turn:?}");
        if asks {
            let shown = &model.requests()[0].messages;
            assert_eq!(shown.len(), 1 + turn.calls().len());
            assert_eq!(output.text(), "I see.");
        }
    }
}

#[tokio::test]
async fn durable_runs_record_the_same_wherever_they_die() {
    for (turn, asks) in cases() {
        let play = async |crash: Option<usize>| {
            let model = ScriptedModel::new(["I see."]);
            let service = Service::new(&builder(&model).build().unwrap()).unwrap();
            let run = Rehearsal::new(service, RunRequest::recorded("r", turn.clone()));
            if let Some(count) = crash {
                assert_eq!(run.crash_before_step(count).await.unwrap(), None);
            }
            let outcome = run.play().await.unwrap();
            (outcome, run.steps())
        };
        let (whole, steps) = play(None).await;
        let model = ScriptedModel::new(["I see."]);
        let here = builder(&model).build().unwrap().record(turn.clone()).await.unwrap();
        let roles = |messages: &[Arc<Message>]| {
            messages.iter().map(|message| (message.role().to_owned(), message.text())).collect::<Vec<_>>()
        };
        assert_eq!(roles(&whole.messages), roles(&here.messages), "{turn:?}");
        assert_eq!((whole.stop, whole.turns), (here.stop, here.turns), "{turn:?}");
        assert_eq!(steps.iter().filter(|step| step.contains("/model/")).count(), usize::from(asks));
        for count in 0..steps.len() {
            assert_eq!(play(Some(count)).await.0, whole, "{turn:?}, dead before {count}");
        }
    }
}

#[tokio::test]
async fn it_is_a_turn_like_any_other() {
    let (model, store) = (ScriptedModel::new(["I see.", "Yes?"]), MemoryStore::new());
    let build = || builder(&model).store(store.clone()).session("s");
    let assistant = build().await.unwrap();
    let turn = RecordedTurn::new()
        .with_text("It is done.")
        .with_call(call("export", &json!({"table": "orders"})), ToolOutput::text("1,200 rows"))
        .with_call(ToolCall::new("ui_2", "looked_at", r#"{"page": "orders"}"#), ToolOutcome::aborted("left"));
    let mut run = assistant.record(turn).with_message(Message::user("Tell me when it is done.")).stream();
    let mut told = Vec::new();
    while let Some(event) = run.next().await {
        told.push(match &event.kind {
            EventKind::AgentStart => "agent_start",
            EventKind::TurnStart => "turn_start",
            EventKind::MessageStart { .. } | EventKind::MessageUpdate { .. } => continue,
            EventKind::MessageEnd { message, .. } => match message.role() {
                "user" => "user",
                "assistant" => "assistant",
                _ => "result",
            },
            EventKind::ToolExecutionStart { .. } => "start",
            EventKind::ToolExecutionEnd { .. } => "end",
            EventKind::TurnEnd { .. } => "turn_end",
            EventKind::AgentEnd { .. } => "agent_end",
            _ => "other",
        });
    }
    run.output().await.unwrap();
    let first = [
        "agent_start",
        "turn_start",
        "user",
        "assistant",
        "start",
        "end",
        "start",
        "end",
        "result",
        "result",
    ];
    assert_eq!(told[..10], first);
    assert_eq!(told[10..], ["turn_end", "turn_start", "assistant", "turn_end", "agent_end"]);
    // Each call has its record, and the session has the messages.
    let page = store.list(InvocationQuery::new()).await.unwrap();
    let kept: Vec<_> = page.iter().map(|record| (record.tool.as_str(), record.status)).collect();
    assert_eq!(kept, [("export", InvocationStatus::Completed), ("looked_at", InvocationStatus::Failed)]);
    assert_eq!(page[0].text, "It is done.");
    drop(assistant);
    let again = build().await.unwrap();
    assert_eq!(again.unfinished_run(), None);
    assert_eq!(again.messages().len(), 5);
    assert_eq!(again.prompt("And?").await.unwrap().text(), "Yes?");
}

#[tokio::test]
async fn what_waits_or_ends_counts_as_in_any_turn() {
    // A message that waits is answered, whatever the tool says.
    let model = ScriptedModel::new(["Hello!"]);
    let assistant = builder(&model).build().unwrap();
    assistant.steer("Are you there?");
    let output = assistant.record(one("looked_at", &json!({"page": "orders"}), "noted")).await.unwrap();
    assert_eq!((output.text().as_str(), output.turns), ("Hello!", 2));
    // A result that ends the run ends it.
    let model = ScriptedModel::new([reply().text("never")]);
    let assistant = builder(&model).build().unwrap();
    let last = ToolOutput::text("1,200 rows").with_control(Control::EndNow);
    let output = assistant.record(one("export", &json!({"table": "t"}), last)).await.unwrap();
    assert_eq!((output.stop, model.requests().len()), (RunStop::Terminated, 0));
    // One that is none says so.
    let deferred = ToolOutcome::Deferred { handle: "h".to_owned() };
    let assistant = builder(&ScriptedModel::new(["?"])).build().unwrap();
    assistant.record(one("looked_at", &json!({"page": "p"}), deferred)).await.unwrap();
    assert_eq!(assistant.messages().last().unwrap().text(), "The call was recorded without a result.");
}

#[test]
fn a_run_that_has_begun_is_refused() {
    let mut run = AgentLoop::new("r", agent::loop_core::LoopConfig::default(), Conversation::new(), []);
    run.record(one("t", &json!({}), "done"), false).unwrap();
    let before = run.clone();
    let error = run.record(one("t", &json!({}), "done"), false).unwrap_err();
    assert!(matches!(error, RecordError::WrongKind { .. }), "{error}");
    assert_eq!(run, before);
    // It can be stored in between, and goes on as it was.
    let stored: AgentLoop = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
    assert_eq!(stored.next(), run.next());
}

/// Shows live what is recorded.
fn live(now: Arc<std::sync::atomic::AtomicU32>) -> agent::Tool {
    ToolBuilder::new("live")
        .description("Shows how far it is.")
        .required_integer("id", "Which.")
        .format_result(move |args, result| {
            let id = args.value()?["id"].as_u64()?;
            let now = now.load(std::sync::atomic::Ordering::SeqCst);
            Some(vec![Part::text(format!("{}: job {id} is at {now} %", result.text()))])
        })
        .build(|_: Value, _cx: ToolContext| async { "started" })
        .unwrap()
}

#[tokio::test]
async fn results_are_shown_live_on_both_drivers() {
    let now = Arc::new(std::sync::atomic::AtomicU32::new(30));
    let script = || {
        ScriptedModel::new([
            reply().tool_call("live", r#"{"id": 7}"#),
            reply().text("soon"),
            reply().text("ok"),
        ])
    };
    let model = script();
    let assistant = Assistant::builder(model.clone()).tools(tools![{ live(now.clone()) }]).build().unwrap();
    assistant.prompt("go").await.unwrap();
    now.store(80, std::sync::atomic::Ordering::SeqCst);
    assistant.prompt("and now?").await.unwrap();
    let shown: Vec<_> = model.requests()[1..].iter().map(|request| request.messages[2].text()).collect();
    assert_eq!(shown, ["started: job 7 is at 30 %", "started: job 7 is at 80 %"]);
    assert_eq!(assistant.messages().get(2).unwrap().text(), "started");
    let model = script();
    let assistant = Assistant::builder(model.clone()).tools(tools![{ live(now.clone()) }]).build().unwrap();
    let run = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "go"));
    let outcome = run.play().await.unwrap();
    assert_eq!(model.requests()[1].messages[2].text(), "started: job 7 is at 80 %");
    assert_eq!(outcome.messages[2].text(), "started");
}
