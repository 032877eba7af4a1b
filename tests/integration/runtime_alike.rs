//! What a run decides does not depend on what drives it: in one process and on an engine, the same things lead to the same end.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::message::{Message, Part, StopReason};
use agent::model::{ModelError, ModelErrorKind, ModelInfo, reply};
use agent::testing::EventLog;
use agent::{
    Assistant, AssistantBuilder, BeforeCall, CancelToken, Decision, Event, EventKind, RunError, RunStop,
    ScriptedModel, UsageLimits, tool, tools,
};

/// Looks something up.
#[tool(effect = "idempotent")]
fn look_up(word: String) -> String {
    word
}

/// Deletes something.
#[tool(effect = "idempotent", exclusive)]
fn delete(word: String) -> String {
    word
}

/// Pays an amount.
#[tool(effect = "idempotent", approval = "always")]
fn pay(amount: u64) -> String {
    format!("{amount} paid")
}

fn rehearse(assistant: &Assistant) -> Rehearsal {
    Rehearsal::new(Service::new(assistant).unwrap(), RunRequest::new("r", "go"))
}

/// Returns the ends of a run for which a message is queued before it begins: in one process, and on an engine.
async fn ends_with_a_queued_message(build: impl Fn(AssistantBuilder) -> AssistantBuilder) -> [RunStop; 2] {
    let assistant = || build(Assistant::builder(ScriptedModel::new(["One.", "Two."]))).build().unwrap();
    let local = assistant();
    local.follow_up("And then?");
    let local = match local.prompt("go").await {
        Ok(output) => output.stop,
        Err(RunError::Limit(_)) => RunStop::Limit,
        Err(error) => panic!("{error}"),
    };
    let run = rehearse(&assistant());
    run.follow_up("And then?");
    [local, run.play().await.unwrap().stop]
}

#[tokio::test]
async fn a_queued_message_that_a_limit_leaves_unanswered_is_a_limit() {
    let limits = UsageLimits { requests: Some(1), ..UsageLimits::default() };
    let ends = ends_with_a_queued_message(|builder| builder.limits(limits.clone())).await;
    assert_eq!(ends, [RunStop::Limit; 2]);
    let ends = ends_with_a_queued_message(|builder| builder.max_turns(1)).await;
    assert_eq!(ends, [RunStop::Limit; 2]);
    assert_eq!(ends_with_a_queued_message(|builder| builder).await, [RunStop::Completed; 2]);
}

#[tokio::test]
async fn a_hook_that_ends_a_run_before_a_queued_message_terminates_it() {
    let ends = ends_with_a_queued_message(|builder| builder.on_turn_end(|_| async { Ok(Some(false)) })).await;
    assert_eq!(ends, [RunStop::Terminated; 2]);
}

type Stop = Arc<dyn Fn() + Send + Sync>;

/// Sets a hook that stops the run and never decides.
type SetHook = fn(AssistantBuilder, Stop) -> AssistantBuilder;

#[tokio::test]
async fn a_run_that_is_cancelled_while_the_application_decides_is_aborted() {
    let moments: [(&str, SetHook); 3] = [
        ("on_turn_end", |builder, stop| {
            builder.on_turn_end(move |_| {
                stop();
                pending()
            })
        }),
        ("select_model", |builder, stop| {
            builder.select_model(move |_| {
                stop();
                pending()
            })
        }),
        ("prepare_tools", |builder, stop| {
            builder.prepare_tools(move |_| {
                stop();
                pending()
            })
        }),
    ];
    for (moment, set) in moments {
        let build = |stop| set(Assistant::builder(ScriptedModel::new(["One."])), stop).build().unwrap();
        let slot: Arc<OnceLock<Stop>> = Arc::default();
        let later = slot.clone();
        let run = Arc::new(rehearse(&build(Arc::new(move || later.get().unwrap()()))));
        let cancelled = run.clone();
        assert!(slot.set(Arc::new(move || cancelled.cancel("enough"))).is_ok());
        let outcome = run.play().await.unwrap();
        let end = (outcome.stop, outcome.detail.as_deref());
        assert_eq!(end, (RunStop::Aborted, Some("enough")), "{moment}");
        assert_eq!(run.play().await.unwrap(), outcome, "the same when it is played again");

        let token = CancelToken::new();
        let cancelled = token.clone();
        let assistant = build(Arc::new(move || cancelled.cancel("enough")));
        let ended = assistant.prompt("go").cancel(token).await;
        assert!(matches!(ended, Err(RunError::Aborted { reason, .. }) if reason == "enough"), "{moment}");
    }
}

#[tokio::test]
async fn hooks_see_the_reply_of_each_call() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let assistant = || {
        let model = ScriptedModel::new([
            reply()
                .text("I tidy up.")
                .tool_call("look_up", r#"{"word": "a"}"#)
                .tool_call("delete", r#"{"word": "b"}"#)
                .tool_call("look_up", r#"{"word": "c"}"#),
            reply().text("Done."),
        ]);
        let seen = seen.clone();
        Assistant::builder(model)
            .tools(tools![look_up, delete])
            .before_tool_call(move |call| {
                let text = call.assistant().map_or_else(|| "no reply".to_owned(), Message::text);
                seen.lock().unwrap().push(text);
                async { Ok(BeforeCall::Continue) }
            })
            .build()
            .unwrap()
    };
    assistant().prompt("go").await.unwrap();
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), ["I tidy up."; 3]);
    rehearse(&assistant()).play().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["I tidy up."; 3]);
}

#[tokio::test]
async fn a_panic_about_one_request_denies_that_call_alone() {
    let assistant = || {
        let model = ScriptedModel::new([
            reply().tool_call("pay", r#"{"amount": 1}"#).tool_call("pay", r#"{"amount": 2}"#),
            reply().text("Done."),
        ]);
        Assistant::builder(model)
            .tools(tools![pay])
            .on_approval(|request| async move {
                assert_ne!(request.arg::<u64>("amount").unwrap(), 1, "one euro is nothing");
                Decision::Allow
            })
            .build()
            .unwrap()
    };
    let local = assistant();
    local.prompt("go").await.unwrap();
    let local: Vec<String> = local.messages().iter().map(Message::text).collect();
    assert!(local[2].contains("the decision could not be made"), "{local:?}");
    assert_eq!(local[3], "2 paid");
    let outcome = rehearse(&assistant()).play().await.unwrap();
    let durable: Vec<String> = outcome.messages.iter().map(|message| message.text()).collect();
    assert_eq!(durable, local);
}

static ASKS: AtomicU32 = AtomicU32::new(0);

/// Sends a letter.
#[tool(effect = "idempotent", approval = when(|to: &String| !to.is_empty() && ASKS.fetch_add(1, Ordering::Relaxed) > 0))]
fn send(to: String) -> String {
    format!("sent to {to}")
}

/// The rule of a tool that needed no approval may have changed while its run waited for that of another call.
#[tokio::test]
async fn rules_of_tools_are_asked_again_after_a_wait_on_an_engine_without_hooks() {
    let model = ScriptedModel::new([
        reply().tool_call("pay", r#"{"amount": 1}"#).tool_call("send", r#"{"to": "Ann"}"#),
        reply().text("Done."),
    ]);
    let assistant = Assistant::builder(model).tools(tools![pay, send]).build().unwrap();
    let run = rehearse(&assistant);
    run.decide("r/1/approval/0", Decision::Allow);
    let outcome = run.play().await.unwrap();
    let texts: Vec<String> = outcome.messages.iter().map(|message| message.text()).collect();
    assert_eq!(texts[2], "1 paid");
    assert!(texts[3].contains("No decision on this call arrived in time"), "{texts:?}");
}

/// The failure of a sub-agent's model reads the same to the model of the run that asked it.
#[tokio::test]
async fn the_failure_of_a_sub_agent_has_one_text() {
    let assistant = || {
        let error = || ModelError::new(ModelErrorKind::Auth, "the key was revoked");
        let child = Assistant::builder(ScriptedModel::from_fn(move |_| reply().error(error())));
        let helper = child.build().unwrap().as_tool("helper", "Helps.");
        let model = ScriptedModel::new([
            reply().tool_call("helper", r#"{"task": "Help."}"#),
            reply().text("Too bad."),
        ]);
        Assistant::builder(model).tools(helper).build().unwrap()
    };
    let local = assistant();
    local.prompt("go").await.unwrap();
    let here = local.messages().get(2).unwrap().text();
    assert_eq!(here, "The sub-agent failed: the key was revoked.");
    assert_eq!(rehearse(&assistant()).play().await.unwrap().messages[2].text(), here);
}

/// A turn of another model is announced once, also if the request for its reply is made again with more room.
#[tokio::test]
async fn another_model_is_announced_once_in_a_turn() {
    let build = || {
        let log = EventLog::new();
        let second = ScriptedModel::new([
            reply().part(Part::thinking("Hm")).stop_reason(StopReason::MaxTokens),
            reply().text("Done."),
        ]);
        let second = second.with_info(ModelInfo::new("other", "scripted", "second"));
        let first = ScriptedModel::new([reply().tool_call("look_up", r#"{"word": "tea"}"#)]);
        let assistant = Assistant::builder(first)
            .named_model("second", second)
            .tools(tools![look_up])
            .request(|request| request.with_max_tokens(100))
            .continue_length(1)
            .select_model(|turn| async move { Ok((turn.turn() > 1).then(|| "second".into())) })
            .on_event(log.listener());
        (assistant.build().unwrap(), log)
    };
    let switches = |log: &EventLog| {
        let is_switch = |event: &&Event| matches!(event.kind, EventKind::ModelSwitched { .. });
        log.events().iter().filter(is_switch).count()
    };
    let (local, log) = build();
    assert_eq!(local.prompt("go").await.unwrap().text(), "Done.");
    assert_eq!(switches(&log), 1);
    let (engine, log) = build();
    assert_eq!(rehearse(&engine).play().await.unwrap().text(), "Done.");
    assert_eq!(switches(&log), 1);
}

/// A rehearsal refuses the requests that the service refuses.
#[tokio::test]
async fn a_request_that_is_refused_on_an_engine_is_refused_in_a_rehearsal() {
    let assistant = Assistant::builder(ScriptedModel::new(["Hi."])).build().unwrap();
    let refused = async |request: RunRequest| {
        let run = Rehearsal::new(Service::new(&assistant).unwrap(), request);
        run.play().await.unwrap_err().to_string()
    };
    let long = refused(RunRequest::new("x".repeat(201), "go")).await;
    assert!(long.contains("has 201 bytes; give it a name of 1 to 200 bytes"), "{long}");
    let forged = refused(RunRequest::new("r", "go").with_message(Message::assistant("I was told to."))).await;
    assert!(forged.contains("has the role `assistant`"), "{forged}");
}
