//! Parts of an application that misbehave, one by one: whatever it is, the run ends or goes on as specified, the
//! conversation is sound, no task is left, and the next prompt works.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ScriptedModel;
use agent::hooks::Hooks;
use agent::message::{CustomMessage, Part};
use agent::model::{Model, ModelEvent, ModelInfo, ModelRequest, ModelStream, StepCx, reply};
use agent::{
    Approval, Assistant, AssistantBuilder, BeforeCall, Decision, EventKind, RunError, Tool, ToolContext,
    ToolOutput, ToolSet, Value, json,
};
use tokio::time::{Instant, sleep};

use crate::assistant_support::{assert_sound, assistant, outline};

/// The conversation is sound, nothing runs, and the assistant answers once more.
async fn assert_goes_on(assistant: &Assistant) {
    assert!(!assistant.is_busy());
    assert!(assistant.pending_calls().is_empty());
    assert_sound(assistant);
    assistant.prompt("again").await.unwrap();
    assert_sound(assistant);
    tokio::task::yield_now().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "no task is left");
}

fn calling(tool: &str) -> ScriptedModel {
    ScriptedModel::new([reply().tool_call(tool, "{}"), reply().text("done"), reply().text("and on")])
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_is_given_up_when_its_time_is_up() {
    let assistant = assistant(&calling("deaf")).build().unwrap();
    let begun = Instant::now();
    assert_eq!(assistant.prompt("go").await.unwrap().text(), "done");
    assert_eq!(begun.elapsed(), Duration::from_secs(300));
    assert_eq!(outline(&assistant)[2], "deaf failed(timeout)");
    assert_goes_on(&assistant).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_cancelling_has_its_grace_and_no_more() {
    let assistant = assistant(&calling("deaf")).cancel_grace(Duration::from_secs(2)).build().unwrap();
    let canceller = assistant.clone();
    let begun = Instant::now();
    let (result, ()) = tokio::join!(assistant.prompt("go").into_future(), async {
        sleep(Duration::from_secs(1)).await;
        canceller.cancel("enough");
    });
    assert!(result.unwrap_err().is_aborted());
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
    assert_eq!(outline(&assistant)[2], "deaf interrupted(aborted)");
    assert_goes_on(&assistant).await;
}

#[tokio::test]
async fn a_tool_that_panics_is_a_result() {
    let panics =
        Tool::new("panics", "Panics.", json!({"type": "object"}), |_: Value, _: ToolContext| async {
            panic!("{}", "a secret of the application");
            #[expect(unreachable_code, reason = "its type")]
            ToolOutput::empty()
        });
    let assistant =
        Assistant::builder(calling("panics")).tools(ToolSet::new().with(panics.unwrap())).build().unwrap();
    assert_eq!(assistant.prompt("go").await.unwrap().text(), "done");
    assert_eq!(outline(&assistant)[2], "panics failed(panic)");
    assert!(!assistant.messages().get(2).unwrap().text().contains("secret"), "what it said goes to the log");
    assert_goes_on(&assistant).await;
}

/// A model whose replies end without a word.
struct BreaksOff(ModelInfo, AtomicUsize);

impl Model for BreaksOff {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let delta = |text: &str| Ok(ModelEvent::TextDelta { content_index: 0, delta: text.to_owned() });
        match self.1.fetch_add(1, Ordering::SeqCst) {
            0 => ModelStream::from_events(cx, &self.0, [delta("half a sen")]),
            1 => panic!("a client's bug"),
            2 => ModelStream::from_events(cx, &self.0, [Ok(ModelEvent::TextEnd { content_index: 7 })]),
            _ => ScriptedModel::new(["whole"]).stream(cx, request),
        }
    }
}

#[tokio::test]
async fn a_model_that_breaks_off_panics_or_talks_nonsense_is_an_error_and_no_more() {
    let model = BreaksOff(ModelInfo::default(), AtomicUsize::new(0));
    let assistant = Assistant::builder(model).build().unwrap();
    for (n, expected) in ["broke off", "panicked", "part"].into_iter().enumerate() {
        let error = assistant.prompt("go").await.unwrap_err();
        assert!(error.as_model_error().is_some() && error.to_string().contains(expected), "{n}: {error}");
        assert_sound(&assistant);
    }
    assert_eq!(outline(&assistant)[1], "error half a sen", "what had come is kept");
    assert_goes_on(&assistant).await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_ends_is_ended_by_the_limit_of_time() {
    let model = ScriptedModel::new([reply().text("hm").hang(), reply().text("and on")]);
    let limits =
        agent::UsageLimits { wall_time: Some(Duration::from_secs(9)), ..agent::UsageLimits::default() };
    let assistant = Assistant::builder(model).limits(limits).build().unwrap();
    let error = assistant.prompt("go").await.unwrap_err();
    assert_eq!(error.as_limit().unwrap().limit, agent::run::Limit::WallTime);
    assert_goes_on(&assistant).await;
}

#[tokio::test]
async fn hooks_that_fail_are_results_or_end_the_run() {
    type Build = fn(AssistantBuilder) -> AssistantBuilder;
    let results: [(&str, Build); 4] = [
        ("an error before", |builder| builder.before_tool_call(|_| async { Err("no".into()) })),
        ("an error after", |builder| builder.after_tool_call(|_, _| async { Err("no".into()) })),
        ("a rule over arguments", |builder| {
            let rule = Approval::when(|_: &Value| panic!("a rule"));
            let bad = Tool::new("bad", "", json!({"type": "object"}), |_: Value, _: ToolContext| async {});
            let bad = bad.or_else(|_| {
                Tool::new("bad", "Bad.", json!({"type": "object"}), |_: Value, _: ToolContext| async {})
            });
            builder
                .tools(ToolSet::new().with(bad.unwrap().configure(|options| options.approval(rule)).unwrap()))
        }),
        ("arguments of a hook that do not fit", |builder| {
            builder.before_tool_call(|call| async move {
                let is_it = call.call().name == "double";
                Ok(if is_it { BeforeCall::Replace(json!({"value": "x"})) } else { BeforeCall::Continue })
            })
        }),
    ];
    for (what, build) in results {
        let tool = match what {
            "a rule over arguments" => "bad",
            "arguments of a hook that do not fit" => "double",
            _ => "fast",
        };
        let args = if tool == "double" { r#"{"value": 1}"# } else { "{}" };
        let model =
            ScriptedModel::new([reply().tool_call(tool, args), reply().text("done"), reply().text("on")]);
        let assistant = build(assistant(&model)).build().unwrap();
        assert_eq!(assistant.prompt("go").await.unwrap().text(), "done", "{what}");
        let code = if tool == "double" { "invalid_arguments" } else { "hook_error" };
        assert_eq!(outline(&assistant)[2], format!("{tool} failed({code})"), "{what}");
        assert_goes_on(&assistant).await;
    }
    let first = Arc::new(AtomicUsize::new(0));
    let ends: [(&str, Build); 3] = [
        ("transform_context", |builder| {
            builder.transform_context(|messages, _| async move {
                if messages.len() == 1 { Err("no context".into()) } else { Ok(messages) }
            })
        }),
        ("before_request", |builder| {
            builder.before_request(|request, _| async move {
                if request.messages.len() == 1 { Err("no request".into()) } else { Ok(request) }
            })
        }),
        ("on_turn_end", |builder| {
            builder.on_turn_end(|turn| async move {
                let has_results = !turn.tool_results.is_empty();
                if has_results { Err("no end".into()) } else { Ok(None) }
            })
        }),
    ];
    for (what, build) in ends {
        let assistant = build(assistant(&calling("fast"))).build().unwrap();
        let error = assistant.prompt("go").await.unwrap_err();
        assert!(matches!(error, RunError::Request { .. }), "{what}: {error}");
        assert!(assistant.last_error().is_some_and(|error| error.starts_with("no ")), "{what}");
        assert_sound(&assistant);
        first.fetch_add(1, Ordering::SeqCst);
        let _ = assistant.prompt("again").await;
        assert_sound(&assistant);
    }
    assert_eq!(first.load(Ordering::SeqCst), 3);
}

struct PanickingConverter;
impl Hooks for PanickingConverter {
    fn convert(&self, _: &CustomMessage) -> Option<Vec<Part>> {
        panic!("convert")
    }
}

#[tokio::test]
async fn whoever_converts_or_approves_may_panic() {
    let note = CustomMessage::new("note", json!(1)).with_for_model("seen");
    let model = ScriptedModel::new(["fine", "and on"]);
    let converts = Assistant::builder(model.clone()).hooks(PanickingConverter).build().unwrap();
    converts.prompt("go").with_message(note).await.unwrap();
    assert_eq!(model.requests()[0].messages.len(), 1, "its message is left out");
    assert_goes_on(&converts).await;

    let approves = assistant(&calling("fast"))
        .before_tool_call(|_| async { Ok(BeforeCall::RequireApproval) })
        .on_approval(|_| async { panic!("approve") })
        .build()
        .unwrap();
    approves.prompt("go").await.unwrap();
    assert_eq!(outline(&approves)[2], "fast denied(denied)", "nobody allowed it");
    assert_goes_on(&approves).await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_panics_does_not_end_a_run() {
    let assistant = assistant(&ScriptedModel::new(["fine", "and on"])).build().unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let count = told.clone();
    assistant
        .subscribe(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            panic!("at once")
        })
        .forever();
    assistant.prompt("go").await.unwrap();
    assert_eq!(told.load(Ordering::SeqCst), 1, "who panicked is not told again");
    assert_goes_on(&assistant).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_in_a_task_of_its_own_ends_and_leaves_nothing() {
    let assistant =
        assistant(&ScriptedModel::new([reply().tool_call("slow", "{}"), reply().text("done")])).build();
    let assistant = assistant.unwrap();
    let ended: Arc<Mutex<Option<String>>> = Arc::default();
    let write = ended.clone();
    let _told = assistant.subscribe(move |event| {
        if let EventKind::AgentEnd { stop, .. } = &event.kind {
            *write.lock().unwrap() = Some(stop.to_string());
        }
    });
    let run = assistant.prompt("go").start().unwrap();
    assert!(assistant.is_busy(), "it has begun when it is started");
    assert!(assistant.prompt("me too").start().unwrap_err().is_busy());
    assert!(assistant.prompt("me three").await.unwrap_err().is_busy());
    sleep(Duration::from_millis(50)).await;
    run.cancel("enough");
    assistant.wait_until_idle().await;
    assert_eq!(ended.lock().unwrap().as_deref(), Some("aborted"));
    assert_eq!(outline(&assistant)[2], "slow slow done", "it came in its grace");
    assert_goes_on(&assistant).await;
    assert!(
        std::thread::spawn(move || assistant.prompt("go").start().unwrap_err().code())
            .join()
            .is_ok_and(|code| code == "no_runtime")
    );
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_nobody_gives_is_not_waited_for_after_a_cancel() {
    let assistant = assistant(&calling("fast"))
        .before_tool_call(|_| async { Ok(BeforeCall::RequireApproval) })
        .on_approval(|_| async {
            std::future::pending::<()>().await;
            Decision::Allow
        })
        .build()
        .unwrap();
    let canceller = assistant.clone();
    let (result, ()) = tokio::join!(assistant.prompt("go").into_future(), async {
        sleep(Duration::from_secs(1)).await;
        canceller.cancel("enough");
    });
    assert!(result.unwrap_err().is_aborted());
    assert_eq!(outline(&assistant)[2], "fast interrupted(aborted)");
    assert_sound(&assistant);
}

#[tokio::test]
async fn files_of_long_results_go_with_the_last_assistant_that_names_them() {
    let folder = std::env::temp_dir().join(format!("agent-spilled-{}", std::process::id()));
    let long =
        Tool::new("long", "Returns much.", json!({"type": "object"}), |_: Value, _: ToolContext| async {
            ToolOutput::text("x".repeat(5000))
        });
    let model = ScriptedModel::from_fn(|request| match request.messages.last().map(|last| last.role()) {
        Some("user") => reply().tool_call("long", "{}"),
        _ => reply().text("done"),
    });
    let builder = Assistant::builder(model).tools(ToolSet::new().with(long.unwrap()));
    let assistant = builder.max_result_bytes(1000).spill_results(&folder).build().unwrap();
    let files = || std::fs::read_dir(&folder).unwrap().count();
    assistant.prompt("go").await.unwrap();
    assert_eq!(files(), 1);
    let fork = assistant.fork();
    fork.prompt("more").await.unwrap();
    assert_eq!(files(), 2);
    assistant.reset().await;
    assert_eq!(files(), 2, "the fork's conversation names both");
    drop(fork);
    assert_eq!(files(), 0);
    assistant.prompt("go").await.unwrap();
    assert_eq!(files(), 1);
    drop(assistant);
    assert_eq!(files(), 0);
    std::fs::remove_dir(&folder).unwrap();
}

#[tokio::test]
async fn arguments_are_events_while_they_arrive_where_they_are_asked_for() {
    let model = ScriptedModel::new([reply().tool_call("double", r#"{"value": "x"}"#), reply().text("done")]);
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let write = seen.clone();
    let assistant = assistant(&model)
        .request(ModelRequest::with_argument_events)
        .on_event(move |event| {
            if let EventKind::MessageUpdate { update: update @ ModelEvent::ToolCallArgument { .. }, .. } =
                &event.kind
            {
                write.lock().unwrap().push(serde_json::to_value(update).unwrap());
            }
        })
        .build()
        .unwrap();
    assistant.prompt("go").await.unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.iter().any(|update| update["argument"]["path"] == "/value"), "{seen:?}");
    assert!(
        seen.iter().any(|update| update["argument"]["change"] == "refused"),
        "before the call is whole: {seen:?}"
    );
}

#[tokio::test]
async fn a_model_that_is_always_ready_does_not_keep_others_from_their_turns() {
    let long = ScriptedModel::new(["x".repeat(20_000)]).with_chunk_size(1);
    let assistant = Assistant::builder(long).build().unwrap();
    let turns = Arc::new(AtomicUsize::new(0));
    let count = turns.clone();
    let other = tokio::spawn(async move {
        loop {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
        }
    });
    assistant.prompt("go").await.unwrap();
    other.abort();
    assert!(turns.load(Ordering::SeqCst) > 100, "{turns:?}");
}

#[test]
fn outcomes_of_later_versions_load_and_are_kept() {
    let stored = json!({"outcome": "postponed", "until": 5, "message": "tomorrow", "code": "holiday"});
    let outcome: agent::ToolOutcome = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(
        (outcome.text().as_ref(), outcome.code(), outcome.is_error()),
        ("tomorrow", Some("holiday"), true)
    );
    assert_eq!(outcome.kind().unwrap().as_str(), "postponed");
    assert_eq!(serde_json::to_value(&outcome).unwrap(), stored);
    let missing = serde_json::from_value::<agent::ToolOutcome>(json!({"outcome": "failed"})).unwrap_err();
    assert!(missing.to_string().contains("code"), "{missing}");
    assert!(serde_json::from_value::<agent::ToolOutcome>(json!({"message": "?"})).is_err());
    for outcome in [
        agent::ToolOutcome::from(ToolOutput::text("a").with_metadata("k", 1)),
        agent::ToolOutcome::failed(agent::tool::OutcomeCode::new("own_word"), "b"),
        agent::ToolOutcome::Deferred { handle: "h".into() },
    ] {
        let again: agent::ToolOutcome =
            serde_json::from_value(serde_json::to_value(&outcome).unwrap()).unwrap();
        assert_eq!(again, outcome);
    }
}
