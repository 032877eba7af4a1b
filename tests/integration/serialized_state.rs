//! State of a prompt that travels with its run: in this process, resumed from storage, and on an engine that dies at any step.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use agent::ScriptedModel;
use agent::SuspendedRun;
use agent::durable::{Rehearsal, RunRequest, Service, ServiceError};
use agent::loop_core::{AgentLoop, CallEnd, LoopConfig, ModelReply};
use agent::message::{AssistantMessage, Conversation, Message, MessageList, Part, ToolCall};
use agent::model::reply;
use agent::steps::{SharedLoop, StepError, Steps, drive};
use agent::store::{InvocationQuery, MemoryStore, Store as _};
use agent::ui::{UiEncoder, UiOptions, UiProtocol, UiRequest};
use agent::{
    Assistant, AssistantBuilder, BeforeCall, Decisions, RunError, RunStop, ToolContext, Value, json,
    run::{BuildError, ResumeError, StateError},
    steps::StepKey,
    tool, tools,
};
use serde::{Deserialize, Serialize};

use crate::trace_support::{EveryLine, hear};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Customer {
    id: u64,
    token: String,
    /// Never exact after a careless round trip.
    share: f64,
    #[serde(skip)]
    is_local: bool,
}

const SECRET: &str = "hünter2-SECRET";

fn customer(id: u64) -> Customer {
    Customer { id, token: SECRET.to_owned(), share: 0.1 + 0.2, is_local: true }
}

/// Lists the orders of the customer.
#[tool(inline, effect = "idempotent")]
fn list_orders(customer: &Customer) -> String {
    let Customer { id, token, share, is_local } = customer;
    let is_whole = token == SECRET && share.to_bits() == (0.1_f64 + 0.2).to_bits() && !is_local;
    format!("orders of {id}{}", if is_whole { "" } else { ", damaged" })
}

/// Closes the account of the customer.
#[tool(inline, effect = "idempotent", approval = "always")]
fn close_account(customer: &Customer) -> String {
    format!("account {} is closed", customer.id)
}

/// Reads the plan, which is in no parameter.
#[tool(inline, effect = "idempotent")]
fn read_plan(cx: &ToolContext) -> String {
    cx.get::<Plan>().map_or_else(|| "no plan".to_owned(), |plan| plan.0.clone())
}

#[derive(Serialize, Deserialize)]
struct Plan(String);

const KEY: [u8; 32] = [42; 32];

fn built(model: ScriptedModel) -> AssistantBuilder {
    Assistant::builder(model)
        .tools(tools![list_orders, close_account, read_plan])
        .serialized_state::<Customer>("customer")
        .serialized_state::<Plan>("plan")
        .approval_key(KEY)
}

/// One call, then two side by side, then one that waits for a decision; the last reply says what all of them returned.
fn model() -> ScriptedModel {
    ScriptedModel::from_fn(|request| {
        let results: Vec<String> = request
            .messages
            .iter()
            .filter_map(|message| message.as_tool_result().map(agent::message::ToolResultMessage::text))
            .collect();
        match results.len() {
            0 => reply().tool_call("list_orders", "{}"),
            1 => reply().tool_call("read_plan", "{}").tool_call("list_orders", "{}"),
            3 => reply().tool_call("close_account", "{}"),
            _ => reply().text(results.join("; ")),
        }
    })
}

const ALL: &str = "orders of 7; gold; orders of 7; account 7 is closed";

fn stored(run: &SuspendedRun) -> Value {
    serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap()
}

async fn suspended() -> Value {
    let assistant = built(model()).build().unwrap();
    let prompt = assistant.prompt("go").with_serialized_state(customer(7));
    let output = prompt.with_serialized_state(Plan("gold".to_owned())).await.unwrap();
    assert_eq!(output.stop, RunStop::Suspended);
    stored(&output.snapshot.unwrap())
}

fn allow(run: &SuspendedRun) -> Decisions {
    run.requests().iter().fold(Decisions::new(), Decisions::allow)
}

#[tokio::test]
async fn a_stored_run_has_its_state_in_another_process() {
    let stored = suspended().await;
    assert_eq!(stored["version"], 2);
    let run: SuspendedRun = serde_json::from_value(stored).unwrap();
    let output = built(model()).build().unwrap().resume(&run, allow(&run)).await.unwrap();
    assert_eq!(output.text(), ALL);
    // What the prompt gives replaces what is stored.
    let other = built(model()).build().unwrap().resume(&run, allow(&run)).with_serialized_state(customer(8));
    assert!(other.await.unwrap().text().ends_with("account 8 is closed"));
    let other = built(model()).build().unwrap().resume(&run, allow(&run)).with_state(customer(9));
    assert!(other.await.unwrap().text().ends_with("account 9 is closed"));
}

#[tokio::test]
async fn a_run_that_is_suspended_twice_keeps_its_state() {
    let twice = || {
        ScriptedModel::from_fn(|request| {
            match request.messages.iter().filter(|m| m.as_tool_result().is_some()).count() {
                0 | 1 => reply().tool_call("close_account", "{}"),
                _ => reply().text(request.messages.last().unwrap().text()),
            }
        })
    };
    let assistant = built(twice()).build().unwrap();
    let output = assistant.prompt("go").with_serialized_state(customer(7)).await.unwrap();
    let run: SuspendedRun = serde_json::from_value(stored(&output.snapshot.unwrap())).unwrap();
    // The second process gives a customer of its own, which the third one gets.
    let resumed = built(twice()).build().unwrap();
    let output = resumed.resume(&run, allow(&run)).with_serialized_state(customer(8)).await.unwrap();
    let run: SuspendedRun = serde_json::from_value(stored(&output.snapshot.unwrap())).unwrap();
    let output = built(twice()).build().unwrap().resume(&run, allow(&run)).await.unwrap();
    assert_eq!(output.text(), "account 8 is closed");
}

#[tokio::test]
async fn stored_state_is_checked_before_anything_runs() {
    let good = suspended().await;
    let resume = |assistant: AssistantBuilder, stored: &Value| {
        let run: SuspendedRun = serde_json::from_value(stored.clone()).unwrap();
        let assistant = assistant.build().unwrap();
        async move { assistant.resume(&run, allow(&run)).await.map(|output| output.text()) }
    };
    assert_eq!(resume(built(model()), &good).await.unwrap(), ALL);

    // Changed, removed, added, or without a key to tell.
    let mut changed = good.clone();
    changed["state"]["customer"] = json!({"id": 1, "token": SECRET, "share": 0.5}).to_string().into();
    let mut removed = good.clone();
    removed.as_object_mut().unwrap().remove("state");
    let mut fewer = good.clone();
    fewer["state"].as_object_mut().unwrap().remove("plan");
    for tampered in [changed, fewer] {
        let error = resume(built(model()), &tampered).await.unwrap_err();
        assert_eq!(error.as_resume_error(), Some(&ResumeError::Changed), "{error}");
    }
    // Nothing is left that a tool could take.
    let error = resume(built(model()), &removed).await.unwrap_err();
    assert!(matches!(error, RunError::MissingState(_)), "{error}");
    let keyless = Assistant::builder(model()).tools(tools![list_orders, close_account, read_plan]);
    let keyless = keyless.serialized_state::<Customer>("customer").serialized_state::<Plan>("plan");
    let error = resume(keyless, &good).await.unwrap_err();
    assert_eq!(error.as_resume_error(), Some(&ResumeError::NotSigned));

    // Other types than before, under the same names or other ones.
    let other = |name: &'static str| {
        let builder = Assistant::builder(model()).tools(tools![read_plan]).approval_key(KEY);
        builder.serialized_state::<u32>(name)
    };
    let error = resume(other("customer").serialized_state::<Plan>("plan"), &good).await.unwrap_err();
    let Some(ResumeError::State(StateError::Invalid { name, state, reason, .. })) = error.as_resume_error()
    else {
        panic!("{error}")
    };
    assert_eq!((&**name, *state, &**reason), ("customer", "u32", "invalid type: map, expected u32"));
    assert!(!format!("{error:?} {error}").contains(SECRET));
    let error = resume(other("client").serialized_state::<Plan>("plan"), &good).await.unwrap_err();
    let unknown =
        matches!(error.as_state_error(), Some(StateError::Unregistered { state, .. }) if state == "customer");
    assert!(unknown, "{error}");
}

#[tokio::test]
async fn a_run_of_the_first_version_has_no_state() {
    let assistant = built(model()).build().unwrap();
    let model = || {
        ScriptedModel::from_fn(|request| match request.messages.last().unwrap().as_tool_result() {
            Some(result) => reply().text(result.text()),
            None => reply().tool_call("close_account", "{}"),
        })
    };
    let output = built(model()).build().unwrap().prompt("go").with_state(customer(7)).await.unwrap();
    let old = stored(&output.snapshot.unwrap());
    assert!(old["version"] == 1 && old.get("state").is_none());
    let run: SuspendedRun = serde_json::from_value(old).unwrap();
    let error = assistant.resume(&run, allow(&run)).await.unwrap_err();
    assert!(matches!(error, RunError::MissingState(_)), "{error}");
    let output = assistant.resume(&run, allow(&run)).with_state(customer(5)).await;
    assert!(output.unwrap().messages.iter().any(|message| message.text() == "account 5 is closed"));
}

#[tokio::test]
async fn state_that_no_run_can_have_is_refused_before_anything_runs() {
    let assistant = built(model()).build().unwrap();
    let error = assistant.prompt("go").await.unwrap_err();
    assert!(matches!(error, RunError::MissingState(_)), "{error}");
    let prompt = || assistant.prompt("go").with_serialized_state(customer(7));

    let error = prompt().with_serialized_state(7_u8).await.unwrap_err();
    let unknown =
        matches!(error.as_state_error(), Some(StateError::Unregistered { state, .. }) if state == "u8");
    assert!(unknown && error.code() == "state", "{error}");
    let error = prompt().with_serialized_state(customer(8)).await.unwrap_err();
    assert!(matches!(error.as_state_error(), Some(StateError::Duplicate { name, .. }) if name == "customer"));
    for both in [
        prompt().with_state(customer(8)),
        assistant.prompt("go").with_state(customer(8)).with_serialized_state(customer(7)),
    ] {
        let error = both.await.unwrap_err();
        assert!(
            matches!(&error, RunError::DuplicateState(twice) if twice.to_string().contains("Customer` is given twice"))
        );
    }
    let error = prompt().with_serialized_state(Plan("x".repeat(70_000))).await.unwrap_err();
    assert!(matches!(error.as_state_error(), Some(StateError::TooLarge { allowed: 65_536, .. })), "{error}");
    // JSON has no form for it, so that it would be lost when the run is resumed.
    let error = assistant.prompt("go").with_serialized_state(Customer { share: f64::NAN, ..customer(7) });
    let error = error.await.unwrap_err();
    assert!(
        matches!(error.as_state_error(), Some(StateError::Invalid { name, .. }) if name == "customer"),
        "{error}"
    );
    assert!(assistant.messages().is_empty() && !assistant.is_busy(), "nothing began");

    let twice = built(model()).serialized_state::<u8>("plan").build().unwrap_err();
    assert!(
        matches!(&twice, BuildError::State(StateError::Duplicate { name, .. }) if name == "plan"),
        "{twice}"
    );
    let twice = built(model()).serialized_state::<Plan>("tariff").build().unwrap_err();
    assert!(twice.to_string().contains("Plan` is given twice"), "{twice}");
}

#[tokio::test]
async fn a_prompt_shadows_the_state_of_the_assistant_and_is_not_cached() {
    let runs = Arc::new(AtomicU32::new(0));
    let model = ScriptedModel::from_fn(|request| match request.messages.last().unwrap().as_tool_result() {
        Some(result) => reply().text(result.text()),
        None => reply().tool_call("list_orders", "{}"),
    });
    let counter = runs.clone();
    let assistant = built(model)
        .state(customer(1))
        .cache_results()
        .after_tool_call(move |_, _| {
            counter.fetch_add(1, Ordering::Relaxed);
            async { Ok(agent::hooks::AfterCall::default()) }
        })
        .build()
        .unwrap();
    assert_eq!(assistant.prompt("go").await.unwrap().text(), "orders of 1, damaged", "it is not from JSON");
    for id in [7, 7, 8] {
        let output = assistant.prompt("go").with_serialized_state(customer(id)).await.unwrap();
        assert_eq!(output.text(), format!("orders of {id}"));
    }
    assert_eq!(runs.load(Ordering::Relaxed), 4);
    assert!(assistant.uncached_tools().iter().any(|(tool, _)| tool == "list_orders"));
}

#[tokio::test]
async fn hooks_and_the_choice_of_tools_see_it_on_both_drivers() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let assistant = || {
        let (chosen, called) = (seen.clone(), seen.clone());
        built(model())
            .prepare_tools(move |turn| {
                chosen.lock().unwrap().push(turn.context().get::<Customer>().map(|customer| customer.id));
                async move { Ok(turn) }
            })
            .before_tool_call(move |call| {
                called.lock().unwrap().push(call.context().get::<Customer>().map(|customer| customer.id));
                async { Ok(BeforeCall::Continue) }
            })
            .on_approval(|_| async { agent::Decision::Allow })
            .build()
            .unwrap()
    };
    let prompt = assistant().prompt("go").with_serialized_state(customer(7));
    let output = prompt.with_serialized_state(Plan("gold".to_owned())).await.unwrap();
    assert_eq!(output.text(), ALL);
    let count = seen.lock().unwrap().len();
    assert!(count >= 8);
    let run = Rehearsal::new(Service::new(&assistant()).unwrap(), request());
    run.decide("r/3/approval/0", agent::Decision::Allow);
    assert_eq!(run.play().await.unwrap().text(), ALL);
    let seen = seen.lock().unwrap();
    assert!(seen.len() == 2 * count && seen.iter().all(|id| *id == Some(7)), "{seen:?}");
}

fn request() -> RunRequest {
    let request = RunRequest::new("r", "go").with_serialized_state("plan", "gold").unwrap();
    request.with_serialized_state("customer", &customer(7)).unwrap()
}

fn rehearse(request: RunRequest) -> Rehearsal {
    let run = Rehearsal::new(Service::new(&built(model()).build().unwrap()).unwrap(), request);
    run.decide("r/3/approval/0", agent::Decision::Allow);
    run
}

#[tokio::test]
async fn a_durable_run_has_its_state_wherever_it_dies() {
    let whole = rehearse(request());
    let outcome = whole.play().await.unwrap();
    assert_eq!(outcome.text(), ALL);
    let steps = whole.steps();
    assert!(steps.len() >= 10, "{steps:?}");
    for count in 0..steps.len() {
        let run = rehearse(request());
        assert_eq!(run.crash_before_step(count).await.unwrap(), None);
        // The request is what the engine has of it: JSON.
        assert_eq!(run.play().await.unwrap(), outcome, "dead before step {count}");
    }
    for step in steps.iter().filter(|step| step.contains("/tool/")) {
        let run = rehearse(request());
        assert_eq!(run.crash_after(&**step).await.unwrap(), None);
        assert_eq!(run.play().await.unwrap(), outcome, "dead after {step}");
    }
    // Any client can write it.
    let body = json!({"run": "r", "prompt": "go", "state": {"plan": "gold", "customer": {"id": 7, "token": SECRET, "share": 0.1 + 0.2}}});
    let sent: RunRequest = serde_json::from_str(&body.to_string()).unwrap();
    assert!(!format!("{sent:?}").contains(SECRET));
    assert_eq!(rehearse(sent).play().await.unwrap(), outcome);
    assert!(!serde_json::to_string(&outcome).unwrap().contains(SECRET));
}

#[tokio::test]
async fn a_durable_run_without_its_state_is_refused_before_its_first_step() {
    let refused = |state: Value| async move {
        let sent = serde_json::from_value(json!({"run": "r", "prompt": "go", "state": state})).unwrap();
        let run = rehearse(sent);
        let error = run.play().await.unwrap_err();
        assert_eq!(run.steps(), ["close"], "it takes no more messages");
        match error {
            StepError::State(error) => error,
            other => panic!("{other}"),
        }
    };
    let error = refused(json!({})).await;
    assert!(
        matches!(&error, StateError::Missing { name, state, .. } if name == "customer" && state.ends_with("Customer"))
    );
    assert!(error.to_string().contains("lacks the state `customer` of type"), "{error}");
    let error = refused(json!({"customer": {"id": SECRET}})).await;
    assert!(
        matches!(&error, StateError::Invalid { reason, .. } if reason == "invalid type: string, expected u64"),
        "{error}"
    );
    let error = refused(json!({"customer": 7, "other": 7})).await;
    assert!(matches!(&error, StateError::Invalid { .. }), "{error}");
    let good = json!({"id": 7, "token": SECRET, "share": 0.5});
    let error = refused(json!({"customer": good, "other": 7})).await;
    assert!(matches!(&error, StateError::Unregistered { state, .. } if state == "other"), "{error}");
    let error = refused(json!({"customer": good, "plan": "x".repeat(70_000)})).await;
    assert!(matches!(&error, StateError::TooLarge { .. }), "{error}");

    // State that is given in one process cannot be in another one.
    let local = Assistant::builder(model()).tools(tools![list_orders]).state_per_prompt::<Customer>().build();
    let error = Service::new(&local.unwrap()).unwrap_err();
    assert!(matches!(&error, ServiceError::Unsupported { .. }));
    assert!(error.to_string().contains("register the types with `serialized_state`"), "{error}");
    // An assistant that has a value needs none in the request.
    let own = built(model()).state(customer(1)).build().unwrap();
    let run = Rehearsal::new(Service::new(&own).unwrap(), RunRequest::new("r", "go"));
    run.play().await.unwrap();
}

/// A driver of an application.
struct Own;

impl Steps for Own {
    async fn model(&mut self, key: StepKey, _: MessageList, _: &SharedLoop) -> Result<ModelReply, StepError> {
        let call = AssistantMessage::new([Part::tool_call("1", "greet", "{}")]);
        Ok(ModelReply::new(if key.turn == 1 { call } else { AssistantMessage::from("done") }))
    }

    async fn tools(
        &mut self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        for (key, _) in calls {
            let mut run = run.lock();
            let plan = run.serialized_state::<Plan>("plan")?.ok_or_else(|| StepError::terminal("no plan"))?;
            let outcome = agent::ToolOutcome::Completed(agent::ToolOutput::text(plan.0));
            run.record_call_end(key.ord, CallEnd::ran(outcome, 0))?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn drivers_of_applications_read_the_state_of_a_run() {
    let run = || AgentLoop::new("r", LoopConfig::default(), Conversation::new(), [Message::user("go")]);
    let run_with = |plan: Value| async move {
        let stored = serde_json::to_string(&run().with_serialized_state("plan", &plan).unwrap()).unwrap();
        let shared = SharedLoop::new(serde_json::from_str(&stored).unwrap());
        drive(&shared, &mut Own).await.map(|()| shared.into_inner())
    };
    let ended = run_with(json!("gold")).await.unwrap();
    assert_eq!(ended.conversation().get(2).unwrap().text(), "gold");
    let error = run_with(json!(777_777)).await.unwrap_err();
    assert!(
        matches!(&error, StepError::State(StateError::Invalid { name, .. }) if name == "plan"),
        "{error}"
    );
    assert!(!error.to_string().contains("777777"));
}

#[tokio::test]
async fn state_is_in_no_event_trace_record_or_stream() {
    let (lines, store) = (EveryLine::default(), MemoryStore::new());
    let guard = hear(lines.clone());
    let found = Arc::new(Mutex::new(String::new()));
    let (events, asked, metrics) = (found.clone(), found.clone(), found.clone());
    let registry = agent::Registry::new(tools![list_orders, close_account, read_plan]).unwrap();
    let encoder = |protocol| UiEncoder::new(protocol, &registry, &UiOptions::default(), &UiRequest::new("t"));
    let encoders = Mutex::new([UiProtocol::AiSdk, UiProtocol::AgUi].map(encoder));
    let assistant = built(model())
        .capture_content()
        .on_event(move |event| {
            let mut text = events.lock().unwrap();
            text.extend([format!("{} {event:?}", serde_json::to_string(event).unwrap())]);
            for encoder in encoders.lock().unwrap().iter_mut() {
                let mut chunks = Vec::new();
                encoder.encode(event, &mut chunks);
                text.extend([format!("{chunks:?}")]);
            }
        })
        .on_approval(move |request| {
            asked
                .lock()
                .unwrap()
                .extend([format!("{} {request:?}", serde_json::to_string(&request).unwrap())]);
            async { agent::Decision::Allow }
        })
        .on_metric(move |metric| metrics.lock().unwrap().extend([format!("{metric:?}")]))
        .store(store.clone())
        .session("s")
        .await
        .unwrap();
    let prompt = assistant.prompt("go").with_serialized_state(customer(7));
    let shown = format!("{prompt:?}");
    let output = prompt.with_serialized_state(Plan("gold".to_owned())).await.unwrap();
    assert_eq!(output.text(), ALL);
    let mut text = std::mem::take(&mut *found.lock().unwrap());
    text.extend([format!("{shown} {output:?} {assistant:?} {}", lines.text())]);
    let records = store.list(InvocationQuery::new()).await.unwrap();
    assert_eq!(records.len(), 4);
    text.extend([format!("{records:?} {:?}", store.load("s", 0, 100).await.unwrap())]);
    drop(guard);

    let suspended: SuspendedRun = serde_json::from_value(suspended().await).unwrap();
    assert!(serde_json::to_string(&suspended).unwrap().contains(SECRET), "it is stored with the run");
    text.extend([format!("{suspended:?} {:?}", suspended.pending())]);
    for error in [
        assistant.prompt("go").with_serialized_state(Some(SECRET)).await.unwrap_err(),
        assistant.prompt("go").with_serialized_state(Plan(SECRET.repeat(9_000))).await.unwrap_err(),
    ] {
        text.extend([format!("{error} {error:?}")]);
    }
    assert!(text.contains("close_account") && text.len() > 10_000);
    let at = text.find("SECRET");
    assert!(at.is_none(), "…{}…", text.get(at.unwrap() - 200..).unwrap_or_default());
}
