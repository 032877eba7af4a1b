//! Durable runs on a journal in memory that is cut: the same runs as in one process, wherever they die. `.ci/restate` does it with the
//! real engine.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ScriptedModel;
use agent::durable::{Outcome, Rehearsal, RunRequest, Service, ServiceError};
use agent::message::{AssistantMessage, Message};
use agent::model::{ModelError, ModelErrorKind, ModelRequest, reply};
use agent::store::{InvocationQuery, InvocationStatus, MemoryStore, Store as _};
use agent::{
    Assistant, BeforeCall, CancelToken, Decision, RunStop, ToolOutput, json, run::Queue, tool, tools,
};
use serde_json::Value;

use super::runtime_scenarios::{given, model, setup};

fn on_a_virtual_clock<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

/// What a conversation says, without what differs between two runs.
fn said<'m>(messages: impl IntoIterator<Item = &'m Arc<Message>>) -> Vec<Value> {
    messages
        .into_iter()
        .map(|message| {
            let calls: Vec<_> = message
                .as_assistant()
                .into_iter()
                .flat_map(AssistantMessage::tool_calls)
                .map(|call| (&call.id, &call.name, call.args.text()))
                .collect();
            json!({"role": message.role(), "text": message.text(), "calls": calls})
        })
        .collect()
}

/// A rehearsal of a scenario; none of one that cannot be played step by step.
fn rehearsal(given: &Arc<given::Given>) -> Option<Rehearsal> {
    let assistant = setup::assistant(given, model::scripted(given)).unwrap();
    let service = match Service::new(&assistant) {
        Ok(service) => service,
        Err(ServiceError::Unsupported { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    let mut prompts = given.prompt.iter().flatten();
    let request = RunRequest::new("run", &**prompts.next()?);
    let request = prompts.fold(request, |request, text| request.with_message(Message::user(&**text)));
    let rehearsal = Rehearsal::new(service, request);
    given.steering_queued.iter().for_each(|text| rehearsal.steer(&**text));
    given.follow_up_queued.iter().for_each(|text| rehearsal.follow_up(&**text));
    Some(rehearsal)
}

/// The run in one process, by the assistant.
async fn in_process(given: &Arc<given::Given>) -> (Vec<Value>, Value) {
    let assistant = setup::assistant(given, model::scripted(given)).unwrap();
    given.steering_queued.iter().for_each(|text| drop(assistant.steer(&**text)));
    given.follow_up_queued.iter().for_each(|text| drop(assistant.follow_up(&**text)));
    let before = assistant.messages().len();
    let ended = Arc::new(Mutex::new(Value::Null));
    let table = ended.clone();
    assistant
        .subscribe(move |event| {
            if let agent::EventKind::AgentEnd { stop, detail, .. } = &event.kind {
                *table.lock().unwrap() = json!({"stop": stop, "detail": detail});
            }
        })
        .forever();
    let mut prompts = given.prompt.iter().flatten();
    let prompt = assistant.prompt(&**prompts.next().unwrap());
    let prompt = prompts.fold(prompt, |prompt, text| prompt.with_message(Message::user(&**text)));
    drop(prompt.await);
    let messages = assistant.messages();
    let ended = ended.lock().unwrap().clone();
    (said(&messages.shared()[before..]), ended)
}

fn ended(outcome: &Outcome) -> (Vec<Value>, Value) {
    (said(&outcome.messages), json!({"stop": outcome.stop, "detail": outcome.detail}))
}

#[test]
fn written_down_runs_are_the_same_on_both_drivers_wherever_they_die() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/runs.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let (mut played, mut cuts, mut lossy, mut wrong) = (0, 0, 0, Vec::new());
    for scenario in file["scenarios"].as_array().unwrap() {
        // What happens from outside at an event is for drivers that tell events once, and a run that waits is no outcome.
        if scenario["given"]["actions"].as_array().is_some_and(|actions| !actions.is_empty())
            || scenario["expect"]["end"]["stop"] == "suspended"
        {
            continue;
        }
        let read = || Arc::new(given::Given::read(&scenario["given"].to_string()).unwrap());
        let Some(whole) = rehearsal(&read()) else { continue };
        let id = &scenario["id"];
        let expected = on_a_virtual_clock(async { in_process(&read()).await });
        let outcome = on_a_virtual_clock(async { whole.play().await.unwrap() });
        if ended(&outcome) != expected {
            wrong.push(format!("{id}:\nwanted {expected:?}\n   got {:?}", ended(&outcome)));
            continue;
        }
        for count in 0..whole.steps().len() {
            let cut = rehearsal(&read()).unwrap();
            let (kept, outcome) = on_a_virtual_clock(async {
                let died = cut.crash_before_step(count).await.unwrap();
                assert_eq!(died, None, "{id} dies before step {count}");
                (cut.steps(), cut.play().await.unwrap())
            });
            cuts += 1;
            let begun: Vec<_> = kept.iter().filter_map(|step| step.strip_suffix("/begin")).collect();
            if begun.iter().any(|call| !kept.iter().any(|step| step == call)) {
                // Tools of scenarios are `once`: one that may have begun is not run, and the run may go another way from there.
                let lost = said(&outcome.messages).into_iter().find(|message| {
                    message["role"] == "tool_result"
                        && message["text"]
                            .as_str()
                            .unwrap()
                            .starts_with("No result of this call was recorded")
                });
                assert!(lost.is_some(), "{id}, dead before step {count}: nothing is lost");
                lossy += 1;
            } else if ended(&outcome) != expected {
                wrong.push(format!(
                    "{id}, dead before step {count}:\nwanted {expected:?}\n   got {:?}",
                    ended(&outcome)
                ));
            }
        }
        played += 1;
    }
    println!("{played} runs, {cuts} cuts, {lossy} of them where a call may have begun");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(played >= 15 && cuts >= 100, "{played} runs, {cuts} cuts");
}

/// How often each body ran.
#[derive(Default)]
struct Counts {
    sent: AtomicU32,
    put: AtomicU32,
    keys: Mutex<Vec<String>>,
}

/// Must not be done twice.
#[tool(inline, effect = "once")]
fn send(to: u32, counts: &Counts, cx: &agent::ToolContext) -> String {
    counts.sent.fetch_add(1, Ordering::Relaxed);
    counts.keys.lock().unwrap().push(cx.idempotency_key().to_owned());
    format!("sent to {to}")
}

/// May be done twice.
#[tool(inline, effect = "idempotent")]
fn put(value: u32, counts: &Counts, cx: &agent::ToolContext) -> String {
    counts.put.fetch_add(1, Ordering::Relaxed);
    counts.keys.lock().unwrap().push(cx.idempotency_key().to_owned());
    format!("put {value}")
}

fn of(model: ScriptedModel, counts: &Arc<Counts>) -> agent::AssistantBuilder {
    Assistant::builder(model).tools(tools![send, put]).shared_state(counts.clone())
}

fn rehearse(assistant: &Assistant) -> Rehearsal {
    Rehearsal::new(Service::new(assistant).unwrap(), RunRequest::new("r", "go"))
}

fn two_calls() -> ScriptedModel {
    ScriptedModel::new([
        reply().tool_call("send", r#"{"to": 1}"#).tool_call("put", r#"{"value": 2}"#),
        reply().text("done"),
    ])
}

#[tokio::test]
async fn what_was_under_way_runs_again_with_its_key_unless_it_must_not() {
    for calls in [1, 2] {
        let counts = Arc::<Counts>::default();
        let model = if calls == 2 {
            two_calls()
        } else {
            ScriptedModel::new([reply().tool_call("put", r#"{"value": 2}"#), reply().text("done")])
        };
        let run = rehearse(&of(model, &counts).build().unwrap());
        let key = format!("r/1/tool/{}", calls - 1);
        assert_eq!(run.crash_after(&*key).await.unwrap(), None);
        let outcome = run.play().await.unwrap();
        assert!(outcome.is_completed());
        assert_eq!(counts.put.load(Ordering::Relaxed), 2);
        let keys = counts.keys.lock().unwrap().clone();
        assert_eq!(keys.iter().filter(|other| **other == key).count(), 2);
        // Its sibling was done, and that was remembered.
        assert_eq!(counts.sent.load(Ordering::Relaxed), calls - 1);
    }
}

#[tokio::test]
async fn once_is_never_begun_again() {
    // The body ran; or the process died between the step's begin and the body.
    for place in ["r/1/tool/0", "r/1/tool/0/begin"] {
        let counts = Arc::<Counts>::default();
        let run = rehearse(&of(two_calls(), &counts).build().unwrap());
        assert_eq!(run.crash_after(place).await.unwrap(), None);
        let ran = counts.sent.load(Ordering::Relaxed);
        let outcome = run.play().await.unwrap();
        let results: Vec<_> =
            outcome.messages.iter().filter(|message| message.role() == "tool_result").collect();
        assert_eq!(results.len(), 2);
        if place.ends_with("begin") {
            // That it begins was not remembered either, so it had not begun.
            assert_eq!((ran, counts.sent.load(Ordering::Relaxed)), (0, 1));
            assert_eq!(results[0].text(), "sent to 1");
        } else {
            assert_eq!((ran, counts.sent.load(Ordering::Relaxed)), (1, 1));
            assert!(
                results[0].text().starts_with("No result of this call was recorded"),
                "{}",
                results[0].text()
            );
        }
        assert_eq!(results[1].text(), "put 2");
    }
    // It begins, and the process dies before the body's step.
    let counts = Arc::<Counts>::default();
    let model = ScriptedModel::new([reply().tool_call("send", r#"{"to": 1}"#), reply().text("done")]);
    let run = rehearse(&of(model, &counts).build().unwrap());
    // Model, begin.
    assert_eq!(run.crash_before_step(2).await.unwrap(), None);
    assert_eq!(run.steps(), ["r/1/model/0", "r/1/tool/0/begin"]);
    let outcome = run.play().await.unwrap();
    assert_eq!(counts.sent.load(Ordering::Relaxed), 0);
    assert!(outcome.messages[2].text().starts_with("No result of this call was recorded"));
}

#[tokio::test]
async fn a_store_knows_the_result_that_the_engine_does_not() {
    let (counts, store) = (Arc::<Counts>::default(), MemoryStore::new());
    let model =
        ScriptedModel::new([reply().text("Well.").tool_call("send", r#"{"to": 1}"#), reply().text("done")]);
    let run = rehearse(&of(model, &counts).store(store.clone()).build().unwrap());
    assert_eq!(run.crash_after("r/1/tool/0").await.unwrap(), None);
    let outcome = run.play().await.unwrap();
    assert_eq!((outcome.messages[2].text().as_str(), counts.sent.load(Ordering::Relaxed)), ("sent to 1", 1));
    let page = store.list(InvocationQuery::new()).await.unwrap();
    assert_eq!((page.len(), page[0].status), (1, InvocationStatus::Completed));
    assert_eq!((page[0].text.as_str(), page[0].key.to_string()), ("Well.", "r/1/tool/0".to_owned()));
}

#[tokio::test]
async fn steering_comes_once_and_in_order() {
    let counts = Arc::<Counts>::default();
    let model = ScriptedModel::new([
        reply().tool_call("put", r#"{"value": 1}"#),
        reply().text("done"),
        reply().text("bye"),
    ]);
    let assistant = of(model.clone(), &counts).deliver_all(Queue::Steering).build().unwrap();
    let run = rehearse(&assistant);
    assert_eq!(run.crash_before_step(1).await.unwrap(), None);
    run.steer("one");
    run.steer("two");
    run.follow_up("three");
    assert_eq!(run.crash_after("r/2/model/0").await.unwrap(), None);
    let outcome = run.play().await.unwrap();
    let texts: Vec<_> = outcome.messages.iter().map(|message| message.text()).collect();
    assert_eq!(texts[3..5], ["one", "two"], "{texts:?}");
    assert_eq!(
        texts.iter().filter(|text| ["one", "two", "three"].contains(&&***text)).count(),
        3,
        "{texts:?}"
    );
}

#[tokio::test]
async fn an_inbox_that_nobody_wrote_to_is_never_asked() {
    let counts = Arc::<Counts>::default();
    let turns = (0..3).map(|at| reply().tool_call("put", format!(r#"{{"value": {at}}}"#)));
    let model = ScriptedModel::new(turns.chain([reply().text("done")]));
    let run = rehearse(&of(model, &counts).build().unwrap());
    assert!(run.play().await.unwrap().is_completed());
    let asked: Vec<_> = run.steps().into_iter().filter(|step| !step.starts_with("r/")).collect();
    assert_eq!(asked, ["close"]);
    assert_eq!(run.steps().last().map(String::as_str), Some("close"));
}

#[tokio::test]
async fn what_is_said_while_the_last_reply_comes_is_heard() {
    for is_steering in [true, false] {
        let (asked, said) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let (told, goes_on) = (asked.clone(), said.clone());
        let model = ScriptedModel::from_async_fn(move |request: ModelRequest| {
            let (told, goes_on) = (told.clone(), goes_on.clone());
            async move {
                let heard = request.messages.iter().any(|message| message.text() == "late");
                if !heard {
                    told.notify_one();
                    goes_on.notified().await;
                }
                reply().text(if heard { "heard" } else { "done" })
            }
        });
        let run = rehearse(&Assistant::builder(model).build().unwrap());
        let (outcome, ()) = tokio::join!(run.play(), async {
            asked.notified().await;
            if is_steering {
                run.steer("late");
            } else {
                run.follow_up("late");
            }
            said.notify_one();
        });
        let outcome = outcome.unwrap();
        let texts: Vec<_> = outcome.messages.iter().map(|message| message.text()).collect();
        assert_eq!(texts, ["go", "done", "late", "heard"]);
        // Another process goes the same way.
        assert_eq!(run.play().await.unwrap(), outcome);
    }
}

/// Waits for somebody.
#[tool(inline, approval = "always", effect = "idempotent")]
fn pay(amount: u32) -> String {
    format!("paid {amount}")
}

/// Comes later.
#[tool(inline)]
fn order(what: String) -> agent::ToolOutcome {
    agent::ToolOutcome::Deferred { handle: format!("order {what}") }
}

#[tokio::test]
async fn decisions_come_from_outside_or_the_time_is_up() {
    for (decision, expected) in [
        (Some(Decision::Allow), "paid 5"),
        (Some(Decision::AllowWith(json!({"amount": 3}))), "paid 3"),
        (Some(Decision::Deny("too much".to_owned())), "too much"),
        (Some(Decision::Later), "No decision on this call arrived in time."),
        (None, "No decision on this call arrived in time."),
    ] {
        let model = ScriptedModel::new([reply().tool_call("pay", r#"{"amount": 5}"#), reply().text("done")]);
        let run = rehearse(&Assistant::builder(model).tools(tools![pay]).build().unwrap());
        if let Some(decision) = decision.clone() {
            run.decide("r/1/approval/0", decision);
        }
        let outcome = run.play().await.unwrap();
        assert!(
            outcome.messages[2].text().contains(expected),
            "{decision:?}: {}",
            outcome.messages[2].text()
        );
    }
}

#[tokio::test]
async fn results_come_from_outside() {
    let model = ScriptedModel::new([reply().tool_call("order", r#"{"what": "tea"}"#), reply().text("done")]);
    let run = rehearse(&Assistant::builder(model).tools(tools![order]).build().unwrap());
    run.deliver("order tea", ToolOutput::text("tea is here"));
    assert_eq!(run.play().await.unwrap().messages[2].text(), "tea is here");
    let model = ScriptedModel::new([reply().tool_call("order", r#"{"what": "tea"}"#), reply().text("done")]);
    let run = rehearse(&Assistant::builder(model).tools(tools![order]).build().unwrap());
    assert_eq!(run.play().await.unwrap().messages[2].text(), "The result did not arrive in time.");
}

/// Goes on until it is told to stop.
#[tool(effect = "idempotent")]
async fn wait(cx: &agent::ToolContext, told: &tokio::sync::Notify) -> Result<String, agent::ToolError> {
    told.notify_one();
    cx.cancelled().await;
    Err(agent::ToolError::new("stopped"))
}

#[tokio::test]
async fn a_cancelled_run_stops_its_tools_and_has_an_outcome() {
    for calls in [1, 2] {
        let told = Arc::new(tokio::sync::Notify::new());
        let model = ScriptedModel::new([
            (0..calls).fold(reply(), |reply, _| reply.tool_call("wait", "{}")),
            reply().text("never"),
        ]);
        let assistant =
            Assistant::builder(model).tools(tools![wait]).shared_state(told.clone()).build().unwrap();
        let run = rehearse(&assistant);
        let (outcome, ()) = tokio::join!(run.play(), async {
            told.notified().await;
            run.cancel("enough");
        });
        let outcome = outcome.unwrap();
        assert_eq!((outcome.stop, outcome.detail.as_deref()), (RunStop::Aborted, Some("enough")));
        let results = outcome.messages.iter().filter(|message| message.role() == "tool_result");
        assert_eq!(results.count(), calls);
        // The same when it is played again: that it was to end is remembered.
        assert_eq!(run.play().await.unwrap(), outcome);
    }
}

#[tokio::test]
async fn a_run_that_takes_another_way_is_noticed() {
    let counts = Arc::<Counts>::default();
    let calls = Arc::new(AtomicU32::new(0));
    let rule = calls.clone();
    // A hook is a step; what it says is remembered.
    let hooked = of(two_calls(), &counts)
        .before_tool_call(move |_| {
            let asked = rule.fetch_add(1, Ordering::Relaxed);
            async move { Ok(if asked < 2 { BeforeCall::Continue } else { BeforeCall::block("another time") }) }
        })
        .build()
        .unwrap();
    let run = rehearse(&hooked);
    assert_eq!(run.crash_after("r/2/model/0").await.unwrap(), None);
    let outcome = run.play().await.unwrap();
    assert!(!outcome.messages[2].text().contains("another time"));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_model_that_fails_for_good_is_an_outcome() {
    for kind in [ModelErrorKind::Other, ModelErrorKind::Overloaded] {
        let model = ScriptedModel::new([reply().error(ModelError::new(kind, "out of order"))]);
        let run = rehearse(&Assistant::builder(model).build().unwrap());
        let outcome = run.play().await.unwrap();
        assert_eq!(outcome.stop, RunStop::Error);
        assert!(outcome.detail.unwrap().contains("out of order"));
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let of = || Assistant::builder(ScriptedModel::new(["Hello!"]));
    let assistant = of().spill_results(std::env::temp_dir()).build().unwrap();
    let error = Service::new(&assistant).unwrap_err();
    assert_eq!(
        error.to_string(),
        "durable runs do not support `spill_results`, because its files are those of one machine; build the assistant without these features"
    );
    let endless = agent::ToolBuilder::new("endless")
        .description("Takes as long as it likes.")
        .without_timeout()
        .build(|_args: Value, _cx: agent::ToolContext| async move { "done".to_owned() })
        .unwrap();
    let error = Service::new(&of().tools(tools![{ endless }]).build().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "tools without a time limit: endless; give them one");
    let endless = of().tools(tools![pay]).tool_timeout(Duration::MAX).build().unwrap();
    let error = Service::new(&endless).unwrap_err();
    assert_eq!(error.to_string(), "tools without a time limit: pay; give them one");
    let service = Service::new(&of().build().unwrap()).unwrap();
    assert!(matches!(service.identity_key("secret").unwrap_err(), ServiceError::IdentityKey { .. }));
}

#[tokio::test]
async fn without_identity_a_service_listens_on_loopback_alone() {
    let service =
        || Service::new(&Assistant::builder(ScriptedModel::new(["Hello!"])).build().unwrap()).unwrap();
    let stopped = || {
        let stop = CancelToken::new();
        stop.cancel("at once");
        stop
    };
    for open in ["0.0.0.0:0", "[::]:0"] {
        // Some machines have no IPv6.
        let Ok(listener) = std::net::TcpListener::bind(open) else { continue };
        let error = service().serve_until(listener, stopped()).await.unwrap_err();
        assert!(matches!(error, ServiceError::Anonymous { .. }), "{error}");
        assert!(error.to_string().contains("allow_anonymous"), "{error}");
        let error = service().serve(open.parse().unwrap()).await.unwrap_err();
        assert!(matches!(error, ServiceError::Anonymous { .. }), "{error}");
    }
    // No request is answered: the servers end at once.
    let open = || std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    service().allow_anonymous().serve_until(open(), stopped()).await.unwrap();
    let key = "publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp";
    service().identity_key(key).unwrap().serve_until(open(), stopped()).await.unwrap();
    let local = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    service().serve_until(local, stopped()).await.unwrap();
}

/// Picks a number.
#[tool(idempotent, max_result_bytes = 400)]
fn pick(a: u8, b: u8, c: u8) -> Result<u32, agent::ToolError> {
    if a > 100 {
        return Err(agent::ToolError::retry(format!("{a} is too much")));
    }
    Ok(u32::from(a) + u32::from(b) + u32::from(c))
}

#[test]
fn tries_are_counted_the_same_wherever_a_run_dies() {
    // Worse, better, the same, other mistakes, and bodies that ask for another call.
    let tries = [
        [r#"{"a": "x", "b": "y"}"#, r#"{"a": 200, "b": 1, "c": 1}"#],
        [r#"{"a": "x", "b": 1, "c": 1}"#, r#"{"a": 201, "b": 1, "c": 1}"#],
        [r#"{"a": "z", "b": 1, "c": 1}"#, r#"{"a": 1, "b": 1, "c": 1, "d": 1}"#],
        [r#"{"a": 1, "b": 999, "c": 1}"#, r#"{"a": 1}"#],
        [r#"{"a": 1, "b": 1, "c": 1}"#, r#"{"a": 202, "b": 1, "c": 1}"#],
    ];
    let assistant = || {
        let turns = tries.iter().map(|calls| {
            calls.iter().fold(reply(), |reply, args| reply.tool_call("pick", args.replace(' ', "")))
        });
        let model = ScriptedModel::new(turns.chain([reply().text("done")]));
        Assistant::builder(model).tools(tools![pick]).build().unwrap()
    };
    let expected = on_a_virtual_clock(async {
        let assistant = assistant();
        assistant.prompt("go").await.unwrap();
        said(assistant.messages().shared())
    });
    assert!(expected.iter().any(|message| message["text"].as_str().unwrap().contains("the last of")));
    let whole = rehearse(&assistant());
    let outcome = on_a_virtual_clock(async { whole.play().await.unwrap() });
    assert_eq!(said(&outcome.messages), expected);
    for count in 0..whole.steps().len() {
        let cut = rehearse(&assistant());
        let outcome = on_a_virtual_clock(async {
            assert_eq!(cut.crash_before_step(count).await.unwrap(), None);
            cut.play().await.unwrap()
        });
        assert_eq!(said(&outcome.messages), expected, "dead before step {count}");
    }
}
