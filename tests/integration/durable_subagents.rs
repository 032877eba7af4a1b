//! Assistants as tools on an engine: each call is a run of its own there, wherever the process dies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::durable::{Outcome, Rehearsal, RunRequest, Service, ServiceError};
use agent::message::{Cost, Message, Usage};
use agent::model::reply;
use agent::run::{BuildError, ChildTool, SteeringPolicy};
use agent::store::MemoryStore;
use agent::tool::QuestionInput;
use agent::{
    Assistant, AssistantBuilder, Decision, Event, EventKind, RunStop, ScriptedModel, ToolArgs, ToolContext,
    ToolError, ToolOutcome, ToolOutput, UsageLimits, json, tool, tools,
};
use serde::{Deserialize, Serialize};

use crate::subagents::{Log, obedient, one};

/// Books a place.
#[tool(approval = "always", idempotent)]
fn book(to: String, log: &Log) -> String {
    log.add(format!("book {to}"));
    format!("booked {to}")
}

/// Chooses a seat.
#[tool(idempotent)]
async fn seat(to: String, cx: &ToolContext, log: &Log) -> Result<String, ToolError> {
    let coach: u8 = cx.ask(format!("Which coach to {to}?")).await?;
    log.add(format!("seat {to} {coach}"));
    Ok(format!("coach {coach}"))
}

/// Orders a ticket, which comes later.
#[tool(idempotent)]
fn order(to: String, log: &Log) -> ToolOutcome {
    log.add(format!("order {to}"));
    ToolOutcome::Deferred { handle: format!("order {to}") }
}

/// Looks something up.
#[tool(read_only)]
fn look(what: String, log: &Log) -> String {
    log.add(format!("look {what}"));
    format!("{what} found")
}

/// Pays; nobody knows what happens if it is paid twice.
#[tool(name = "order")]
fn pay(to: String, log: &Log) -> String {
    log.add(format!("pay {to}"));
    format!("paid {to}")
}

fn expert(log: &Arc<Log>) -> AssistantBuilder {
    Assistant::builder(obedient()).tools(tools![book, seat, order, look]).shared_state(log.clone())
}

/// An assistant with an expert at each of three depths.
pub(crate) fn tree(log: &Arc<Log>) -> AssistantBuilder {
    let third = expert(log).build().unwrap();
    let second = expert(log).tools(third.as_tool("third", "Knows more.")).build().unwrap();
    let first = expert(log).tools(second.as_tool("second", "Knows things.")).build().unwrap();
    expert(log).tools(first.as_tool("first", "Knows things."))
}

/// Two runs side by side, one of them three deep, with a decision, a question and a result from outside.
fn rehearsal(assistant: &Assistant) -> Rehearsal {
    let third = json!(["third", [[["book", "Rome"], ["look", "a"]]]]);
    let prompt = json!([
        [
            ["first", [[["second", [[third, ["seat", "Bern"]]]]]]],
            ["first", one("order", "Oslo")],
            ["look", "it"]
        ],
        [["look", "again"]],
    ]);
    let rehearsal =
        Rehearsal::new(Service::new(assistant).unwrap(), RunRequest::new("trip", prompt.to_string()));
    rehearsal.decide("trip/1/tool/0/1/tool/0/1/tool/0/1/approval/0", Decision::Allow);
    rehearsal.answer("trip/1/tool/0/1/tool/0/1/tool/1/ask/0", QuestionInput::Accept(json!(7)));
    rehearsal.deliver("order Oslo", ToolOutput::text("ticket"));
    rehearsal
}

#[tokio::test]
async fn names_of_sub_agents_are_reserved() {
    let log = Arc::new(Log::default());
    let assistant = tree(&log).build().unwrap();
    let run = |name: &str| Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new(name, "[]"));
    let error = run("trip/1/tool/0").play().await.unwrap_err();
    assert!(error.to_string().contains("reserved_name: `trip/1/tool/0`"), "{error}");
    assert!(run("trip/1/tool").play().await.is_ok());
    let opened = tree(&log).store(MemoryStore::new()).session("ann/7/tool/12").await;
    assert!(matches!(opened, Err(BuildError::ReservedName { .. })));
    assert!(tree(&log).store(MemoryStore::new()).session("ann/7/tool/a").await.is_ok());
}

const ANSWER: &str = "[[[[booked Rome, a found], coach 7]], [ticket], it found, again found]";

fn texts(outcome: &Outcome) -> Vec<String> {
    outcome.messages.iter().map(|message| message.text()).collect()
}

#[tokio::test]
async fn a_tree_waits_at_each_depth_and_ends_alike_wherever_it_dies() {
    let log = Arc::new(Log::default());
    let undisturbed = rehearsal(&tree(&log).build().unwrap());
    let whole = undisturbed.play().await.unwrap();
    assert_eq!(whole.text(), ANSWER);
    let steps = undisturbed.steps().len();
    let wanted = log.lines();
    assert_eq!(wanted, ["book Rome", "look a", "look again", "look it", "order Oslo", "seat Bern 7"]);
    for step in 0..steps {
        let log = Arc::new(Log::default());
        let rehearsal = rehearsal(&tree(&log).build().unwrap());
        assert!(rehearsal.crash_before_step(step).await.unwrap().is_none(), "killed before step {step}");
        let outcome = rehearsal.play().await.unwrap();
        assert_eq!(texts(&outcome), texts(&whole), "killed before step {step}");
        let mut lines = log.lines();
        lines.dedup();
        assert_eq!(lines, wanted, "killed before step {step}");
        assert_eq!(outcome.usage, whole.usage);
    }
    // Once more behind the work of each step, and then before the next ones.
    for name in undisturbed.steps() {
        let log = Arc::new(Log::default());
        let rehearsal = rehearsal(&tree(&log).build().unwrap());
        let _ = rehearsal.crash_after(&*name).await.unwrap();
        let _ = rehearsal.crash_before_step(2).await.unwrap();
        assert_eq!(texts(&rehearsal.play().await.unwrap()), texts(&whole), "killed after {name}");
    }
}

#[tokio::test]
async fn a_call_that_must_not_run_twice_is_lost_in_its_own_run_alone() {
    let log = Arc::new(Log::default());
    let child =
        || Assistant::builder(obedient()).tools(tools![pay]).shared_state(log.clone()).build().unwrap();
    let middle = expert(&log).tools(child().as_tool("second", "Pays.")).build().unwrap();
    let root = expert(&log).tools(middle.as_tool("first", "Knows things.")).build().unwrap();
    let prompt = one("first", one("second", one("order", "Rome"))).to_string();
    let rehearsal = Rehearsal::new(Service::new(&root).unwrap(), RunRequest::new("r", prompt));
    assert!(rehearsal.crash_after("r/1/tool/0/1/tool/0/1/tool/0").await.unwrap().is_none());
    let text = rehearsal.play().await.unwrap().text();
    assert!(text.starts_with("[[[No result of this call was recorded."), "{text}");
    assert_eq!(log.lines(), ["pay Rome"]);
}

#[tokio::test]
async fn a_child_without_a_decision_tells_its_own_model() {
    let log = Arc::new(Log::default());
    let prompt = one("first", one("book", "Rome")).to_string();
    let service = Service::new(&tree(&log).build().unwrap()).unwrap();
    let rehearsal = Rehearsal::new(service, RunRequest::new("r", prompt));
    rehearsal.decide("r/1/tool/0/1/approval/0", Decision::Deny("too far".to_owned()));
    assert_eq!(rehearsal.play().await.unwrap().text(), "[[too far]]");
    assert!(log.lines().is_empty());
}

/// Waits until it is cancelled.
#[tool(name = "look", idempotent)]
async fn wait(what: String, cx: &ToolContext, log: &Log) -> Result<String, ToolError> {
    log.add(format!("waits {what}"));
    cx.cancelled().await;
    log.add(format!("stops {what}"));
    Err(ToolError::new("stopped"))
}

#[tokio::test]
async fn a_cancelled_run_ends_after_its_children() {
    let log = Arc::new(Log::default());
    let child =
        || Assistant::builder(obedient()).tools(tools![wait]).shared_state(log.clone()).build().unwrap();
    let middle = expert(&log).tools(child().as_tool("second", "Waits.")).build().unwrap();
    let (events, record) = recorder();
    let root = expert(&log).tools(middle.as_tool("first", "Knows things.")).on_event(record).build().unwrap();
    let prompt = json!([[["first", one("second", one("look", "a"))], ["first", one("look", "b")]]]);
    let rehearsal = Rehearsal::new(Service::new(&root).unwrap(), RunRequest::new("r", prompt.to_string()));
    let cancel = async {
        while log.lines() != ["look b", "waits a"] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        rehearsal.cancel("enough");
    };
    let (outcome, ()) = tokio::join!(rehearsal.play(), cancel);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.stop, outcome.detail.as_deref()), (RunStop::Aborted, Some("enough")));
    assert_eq!(log.lines(), ["look b", "stops a", "waits a"]);
    // Each of the four runs has ended, the inner ones first, and each call has a result.
    let events = events.lock().unwrap().clone();
    let ends: Vec<usize> = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::AgentEnd { .. }))
        .map(|event| event.path.calls().len())
        .collect();
    // The run that only looks may end before or after the cancellation.
    assert!(matches!(*ends, [1, 2, 1, 0] | [2, 1, 1, 0]), "{ends:?}");
    assert_eq!(texts(&outcome).len(), 4);

    // A cancel that comes before a child begins prevents it.
    let log = Arc::new(Log::default());
    let service = Service::new(&tree(&log).build().unwrap()).unwrap();
    let rehearsal = Rehearsal::new(service, RunRequest::new("r", one("first", one("look", "a")).to_string()));
    assert!(rehearsal.crash_after("r/1/tool/0/message").await.unwrap().is_none());
    rehearsal.cancel("enough");
    assert_eq!(rehearsal.play().await.unwrap().stop, RunStop::Aborted);
    assert!(log.lines().is_empty() && !rehearsal.steps().contains(&"children".to_owned()));
}

#[tokio::test]
async fn a_steering_message_ends_children_as_in_this_process() {
    fn results<'m>(messages: impl Iterator<Item = &'m Message>) -> Vec<(String, Option<String>)> {
        let results = messages.filter_map(|message| message.as_tool_result());
        results.map(|result| (result.text(), result.code.as_ref().map(ToString::to_string))).collect()
    }
    /// Waits until it is cancelled, or for a moment.
    #[tool(name = "look", idempotent)]
    async fn wait_a_moment(what: String, cx: &ToolContext, log: &Log) {
        log.add(format!("waits {what}"));
        let moment = Duration::from_millis(if what == "it" { 0 } else { 300 });
        let _ = tokio::time::timeout(moment, cx.cancelled()).await;
        log.add(format!("stops {what}"));
    }
    for policy in [SteeringPolicy::AfterBatch, SteeringPolicy::SkipUnstarted, SteeringPolicy::CancelRunning] {
        let build = |log: &Arc<Log>| {
            let model = || Assistant::builder(obedient()).shared_state(log.clone());
            let last = model().tools(tools![wait_a_moment]).build().unwrap();
            let middle = model().tools(last.as_tool("second", "Waits.")).build().unwrap();
            let root = expert(log).tools(middle.as_tool("first", "Knows things."));
            root.steering_policy(policy).build().unwrap()
        };
        let slow = |what: &str| json!(["first", one("second", one("look", what))]);
        let prompt = json!([[slow("a"), slow("b")]]).to_string();
        let next = one("look", "it").to_string();
        let waits = async |log: &Log| {
            while log.lines().len() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };

        let log = Arc::new(Log::default());
        let rehearsal = Rehearsal::new(Service::new(&build(&log)).unwrap(), RunRequest::new("r", &*prompt));
        let steers = async {
            waits(&log).await;
            rehearsal.steer(&*next);
        };
        let (outcome, ()) = tokio::join!(rehearsal.play(), steers);
        let outcome = outcome.unwrap();
        let on_engine = results(outcome.messages.iter().map(|message| &**message));

        let own = Arc::new(Log::default());
        let root = build(&own);
        let steers = async {
            waits(&own).await;
            root.steer(&*next);
        };
        let (output, ()) = tokio::join!(root.prompt(&*prompt).into_future(), steers);
        let here = results(output.unwrap().messages.iter().map(|message| &**message));
        assert_eq!(here, on_engine, "{policy:?}");
        let cancelled = policy == SteeringPolicy::CancelRunning;
        let codes: Vec<_> = here.iter().map(|(_, code)| code.as_deref().unwrap_or_default()).collect();
        assert_eq!(codes, if cancelled { ["steered", "steered", ""] } else { ["", "", ""] }, "{policy:?}");
        // On a replay it is the same.
        let names = rehearsal.steps();
        assert_eq!(rehearsal.play().await.unwrap().messages, outcome.messages, "{names:?}");
    }
}

#[tokio::test]
async fn a_steering_message_skips_the_runs_that_wait_for_a_place() {
    let log = Arc::new(Log::default());
    let root = Assistant::builder(obedient()).tools(tools![wait]).shared_state(log.clone());
    let root = root.tools(expert(&log).build().unwrap().as_tool("first", "Knows things."));
    let root = root.steering_policy(SteeringPolicy::CancelRunning).max_concurrency(1).build().unwrap();
    let first = |what: &str| json!(["first", one("look", what)]);
    let prompt = json!([[first("a"), first("b"), ["look", "it"]]]).to_string();
    let rehearsal = Rehearsal::new(Service::new(&root).unwrap(), RunRequest::new("r", prompt));
    let steers = async {
        while log.lines().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        rehearsal.steer("[]");
    };
    let (outcome, ()) = tokio::join!(rehearsal.play(), steers);
    let outcome = outcome.unwrap();
    let results: Vec<_> = outcome.messages.iter().filter_map(|message| message.as_tool_result()).collect();
    let code = results[1].code.as_ref().map(ToString::to_string);
    assert_eq!(code.as_deref(), Some("steered"), "{results:?}");
    assert_eq!(log.lines(), ["look a", "stops it", "waits it"]);
}

fn recorder() -> (Arc<Mutex<Vec<Event>>>, impl Fn(&Event) + Send + Sync + 'static) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = events.clone();
    (events, move |event: &Event| sink.lock().unwrap().push(event.clone()))
}

#[tokio::test]
async fn listeners_and_usage_of_the_root_have_the_children() {
    let log = Arc::new(Log::default());
    let (events, record) = recorder();
    let rehearsal = rehearsal(&tree(&log).on_event(record).build().unwrap());
    rehearsal.play().await.unwrap();
    let mut by_run: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    for event in events.lock().unwrap().iter() {
        by_run.entry(event.run_id.to_string()).or_default().push(event.clone());
    }
    assert_eq!(by_run.len(), 5);
    for (run, events) in &by_run {
        assert_eq!(events[0].path.calls().len(), run.matches("/tool/").count());
        assert!(events.iter().map(|event| event.seq).eq(1..=events.len() as u64), "{run}");
    }

    let model = ScriptedModel::from_fn(|request| {
        let said = match request.messages.len() {
            1 if request.messages[0].text() == "go" => reply().tool_call("ask", r#"{"task": "a"}"#),
            _ => reply().text("done"),
        };
        let mut usage = Usage::default();
        (usage.input, usage.output) = (100, 10);
        said.usage(usage)
    });
    let child = Assistant::builder(model.clone()).build().unwrap();
    let root = Assistant::builder(model).tools(child.as_tool("ask", "Thinks.")).build().unwrap();
    let outcome =
        Rehearsal::new(Service::new(&root).unwrap(), RunRequest::new("r", "go")).play().await.unwrap();
    assert_eq!((outcome.usage.input, outcome.usage.output), (300, 30));
}

#[derive(Serialize, Deserialize)]
struct Customer {
    id: u64,
}

struct House(&'static str);

/// Returns the customer.
#[tool(read_only)]
fn customer(customer: &Customer, house: &House) -> String {
    format!("{} of {}", customer.id, house.0)
}

#[derive(ToolArgs)]
struct Trip {
    to: String,
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only its schema is used")]
struct Train {
    changes: u8,
}

#[tokio::test]
async fn a_child_has_its_own_arguments_and_answer_and_the_state_above_it() {
    let model = ScriptedModel::from_fn(|request| {
        if request.messages.len() == 1 {
            return reply().tool_call("customer", "{}");
        }
        let seen: Vec<_> = request.messages.iter().map(|message| message.text()).collect();
        assert_eq!((&*seen[0], &*seen[2]), ("To Rome?", "7 of Bern"));
        reply().tool_call("structured_output", r#"{"changes": 1}"#)
    });
    let expert = Assistant::builder(model)
        .tools(tools![customer])
        .state_per_prompt::<Customer>()
        .state_per_prompt::<House>()
        .build()
        .unwrap();
    let find = expert.as_tool("find", "Finds a train.").input(|trip: Trip| format!("To {}?", trip.to));
    let find = find.output::<Train>();
    let root = |model: ScriptedModel| Assistant::builder(model).tools(find.clone()).state(House("Bern"));
    let model =
        || ScriptedModel::new([reply().tool_call("find", r#"{"to": "Rome"}"#), reply().text("Once.")]);
    let error = Service::new(&root(model()).build().unwrap()).unwrap_err();
    assert!(
        matches!(&error, ServiceError::Unsupported { path, what, .. } if path == "find" && what[0].contains("state_per_prompt")),
        "{error}"
    );
    let root = root(model()).serialized_state::<Customer>("customer").build().unwrap();
    let request = RunRequest::new("r", "Rome");
    let missing = Rehearsal::new(Service::new(&root).unwrap(), request.clone()).play().await.unwrap_err();
    assert!(missing.to_string().contains("customer"), "{missing}");
    let request = request.with_serialized_state("customer", &Customer { id: 7 }).unwrap();
    let outcome = Rehearsal::new(Service::new(&root).unwrap(), request).play().await.unwrap();
    assert_eq!(outcome.messages[2].text(), r#"{"changes":1}"#);
    assert_eq!(outcome.text(), "Once.");
}

#[tokio::test]
async fn an_assistant_runs_itself_down_to_the_limit() {
    let log = Arc::new(Log::default());
    let assistant = expert(&log).self_as_tool("self", "Does a part.").max_depth(2).build().unwrap();
    let prompt = one("self", one("self", one("self", one("look", "a")))).to_string();
    let rehearsal = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", prompt));
    let text = rehearsal.play().await.unwrap().text();
    assert!(text.contains("this run is at depth 2, the limit"), "{text}");
    assert!(log.lines().is_empty());
}

#[tokio::test]
async fn a_tree_with_an_assistant_that_cannot_be_durable_is_refused_with_its_path() {
    let log = Arc::new(Log::default());
    let third = expert(&log).spill_results(std::env::temp_dir()).build().unwrap();
    let second = expert(&log).tools(third.as_tool("third", "Knows more.")).build().unwrap();
    let root = expert(&log).tools(second.as_tool("second", "Knows things.")).build().unwrap();
    let error = Service::new(&root).unwrap_err();
    assert!(
        error.to_string().contains("build the assistant of the tool `second > third` without"),
        "{error}"
    );
}

#[tokio::test]
async fn limits_of_the_root_hold_for_all_runs_side_by_side() {
    let width = 32;
    let calls = json!([vec![json!(["first", one("look", "tea")]); width]]).to_string();
    let root = |log: &Arc<Log>, limits| {
        let first = expert(log).build().unwrap();
        let root = expert(log).tools(first.as_tool("first", "Knows things."));
        root.max_concurrency(width).without_loop_guard().limits(limits)
    };
    for allowed in [0_u8, 9, 40, 64] {
        let log = Arc::new(Log::default());
        let limits = UsageLimits { tool_calls: Some(allowed.into()), ..UsageLimits::default() };
        let service = Service::new(&root(&log, limits).build().unwrap()).unwrap();
        let outcome = Rehearsal::new(service, RunRequest::new("r", &*calls)).play().await.unwrap();
        let ran = log.lines().len() + usize::min(allowed.into(), width);
        assert_eq!(ran, usize::from(allowed), "{:?}", log.lines());
        assert_eq!(outcome.stop == RunStop::Limit, usize::from(allowed) < width, "{:?}", outcome.stop);
    }
    // 32 children would make 64 requests beside the two of the root.
    for allowed in [1_u64, 2, 20] {
        let log = Arc::new(Log::default());
        let limits = UsageLimits { requests: Some(allowed), ..UsageLimits::default() };
        let service = Service::new(&root(&log, limits).build().unwrap()).unwrap();
        let rehearsal = Rehearsal::new(service, RunRequest::new("r", &*calls));
        let outcome = rehearsal.play().await.unwrap();
        assert_eq!((outcome.stop, outcome.detail.as_deref()), (RunStop::Limit, Some("requests")));
        let asked = rehearsal.steps().iter().filter(|step| step.contains("/model/")).count();
        assert_eq!(asked as u64, allowed);
    }
    let log = Arc::new(Log::default());
    let limits = UsageLimits { requests: Some(1000), ..UsageLimits::default() };
    let assistant = root(&log, limits).max_children(5).build().unwrap();
    let rehearsal = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", &*calls));
    let outcome = rehearsal.play().await.unwrap();
    assert_eq!(log.lines().len(), 5);
    let refused =
        texts(&outcome).into_iter().filter(|text| text.contains("the run has started 5, the limit"));
    assert_eq!(refused.count(), width - 5 + 1);
}

#[tokio::test]
async fn tokens_and_cost_of_all_runs_count_against_the_limits_of_the_root() {
    // Four calls one after the other, each a run with one reply. Every reply has 110 tokens and costs 1.
    let model = ScriptedModel::from_fn(|request| {
        let results = request.messages.iter().filter(|message| message.as_tool_result().is_some()).count();
        let said = match request.messages[0].text().as_str() {
            "go" if results < 4 => reply().tool_call("ask", json!({"task": results.to_string()}).to_string()),
            "all" if results == 0 => (0..32)
                .fold(reply(), |said, at| said.tool_call("ask", json!({"task": at.to_string()}).to_string())),
            _ => reply().text("done"),
        };
        let (mut usage, mut cost) = (Usage::new(100, 10), Cost::default());
        cost.total = 1.0;
        usage.cost = Some(cost);
        said.usage(usage)
    });
    let root = |limits| {
        let middle = Assistant::builder(model.clone()).build().unwrap();
        let root = Assistant::builder(model.clone()).tools(middle.as_tool("ask", "Thinks."));
        root.limits(limits).build().unwrap()
    };
    let none = UsageLimits::default;
    for (limits, name, replies) in [
        (UsageLimits { input_tokens: Some(300), ..none() }, "input_tokens", 3),
        (UsageLimits { output_tokens: Some(31), ..none() }, "output_tokens", 4),
        (UsageLimits { total_tokens: Some(440), ..none() }, "total_tokens", 4),
        (UsageLimits { cost: Some(4.5), ..none() }, "cost", 5),
        (UsageLimits { cost: Some(8.5), ..none() }, "", 9),
    ] {
        let rehearsal = |limits: &UsageLimits| {
            Rehearsal::new(Service::new(&root(limits.clone())).unwrap(), RunRequest::new("r", "go"))
        };
        let before = model.requests().len();
        let undisturbed = rehearsal(&limits);
        let whole = undisturbed.play().await.unwrap();
        assert_eq!(model.requests().len() - before, replies, "{name}");
        assert_eq!(whole.detail.as_deref().unwrap_or_default(), name);
        assert_eq!(whole.usage.total, 110 * replies as u64, "{name}");
        // In this process it is the same.
        let output = root(limits.clone()).prompt("go").await;
        let reached = output.as_ref().err().and_then(|error| error.as_limit());
        assert_eq!(reached.map(|reached| reached.limit.as_str()).unwrap_or_default(), name);
        assert_eq!(model.requests().len() - before, 2 * replies, "{name}");
        // And so it is wherever the process dies: what was used before counts.
        for step in 0..undisturbed.steps().len() {
            let rehearsal = rehearsal(&limits);
            assert!(rehearsal.crash_before_step(step).await.unwrap().is_none());
            let outcome = rehearsal.play().await.unwrap();
            assert_eq!(texts(&outcome), texts(&whole), "{name}, killed before step {step}");
            assert_eq!((outcome.detail, outcome.usage), (whole.detail.clone(), whole.usage.clone()));
        }
    }
    // Side by side: no request is made once the limit is reached.
    let root = root(UsageLimits { total_tokens: Some(221), ..none() });
    let rehearsal = Rehearsal::new(Service::new(&root).unwrap(), RunRequest::new("r", "all"));
    let outcome = rehearsal.play().await.unwrap();
    assert_eq!((outcome.stop, outcome.detail.as_deref()), (RunStop::Limit, Some("total_tokens")));
    let asked = rehearsal.steps().iter().filter(|step| step.contains("/model/")).count();
    assert_eq!((asked, outcome.usage.total), (3, 330));
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_tool_counts_the_work_of_its_run() {
    /// Takes so many seconds.
    #[tool(name = "look", read_only, allow_repeat)]
    async fn take(what: u64, log: &Log) -> String {
        tokio::time::sleep(Duration::from_secs(what)).await;
        log.add(format!("look {what}"));
        format!("{what} s")
    }
    let log = Arc::new(Log::default());
    let minute = |tool: ChildTool| tool.options(|options| options.timeout(Duration::from_secs(60)));
    let build = || {
        let model = || Assistant::builder(obedient()).shared_state(log.clone()).without_loop_guard();
        let third = model().tools(tools![take, book]).build().unwrap();
        let second = model().tools(tools![take]).tools(third.as_tool("third", "Works.")).build().unwrap();
        let first = model().tools(minute(second.as_tool("second", "Works."))).build().unwrap();
        model().tools(first.as_tool("first", "Works.")).build().unwrap()
    };
    let late = "[[The tool did not finish within 60 s.]]";
    for (plan, answer) in [
        (one("look", 59), "[[[59 s]]]"),
        (one("look", 100), late),
        (json!([[["look", 40]], [["look", 40]]]), late),
        // Side by side, and in runs within it.
        (json!([[["look", 40], ["look", 30], ["third", one("look", 50)]]]), "[[[40 s, 30 s, [50 s]]]]"),
        (json!([[["look", 30]], [["third", one("look", 40)]]]), late),
        (json!([[["third", one("look", 20)], ["third", one("look", 30)]], [["look", 40]]]), late),
        (
            json!([[["third", json!([[["look", 30]], [["book", "Rome"]], [["look", 20]]])]]]),
            "[[[[30 s, booked Rome, 20 s]]]]",
        ),
    ] {
        let prompt = one("first", one("second", plan)).to_string();
        let rehearsal = || {
            let new = Rehearsal::new(Service::new(&build()).unwrap(), RunRequest::new("r", &*prompt));
            new.decide("r/1/tool/0/1/tool/0/1/tool/0/2/approval/0", Decision::Allow);
            new
        };
        let undisturbed = rehearsal();
        assert_eq!(undisturbed.play().await.unwrap().text(), answer, "{prompt}");
        for step in 0..undisturbed.steps().len() {
            let rehearsal = rehearsal();
            assert!(rehearsal.crash_before_step(step).await.unwrap().is_none());
            assert_eq!(rehearsal.play().await.unwrap().text(), answer, "{prompt}, killed before step {step}");
        }
        // In this process it is the same, where nothing waits.
        if !prompt.contains("book") {
            assert_eq!(build().prompt(&*prompt).await.unwrap().text(), answer, "{prompt}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_of_the_root_ends_the_runs_within_it() {
    let log = Arc::new(Log::default());
    let build = || {
        let model = || Assistant::builder(obedient()).shared_state(log.clone());
        let last = model().tools(tools![wait]).build().unwrap();
        let middle = model().tools(last.as_tool("second", "Waits.")).build().unwrap();
        let limits = UsageLimits { wall_time: Some(Duration::from_secs(60)), ..UsageLimits::default() };
        model().tools(middle.as_tool("first", "Knows things.")).limits(limits).build().unwrap()
    };
    let prompt = one("first", one("second", one("look", "a"))).to_string();
    let error = build().prompt(&*prompt).await.unwrap_err();
    assert_eq!(error.as_limit().unwrap().limit.as_str(), "wall_time");
    assert_eq!(log.lines(), ["stops a", "waits a"]);

    let rehearsal = Rehearsal::new(Service::new(&build()).unwrap(), RunRequest::new("r", prompt));
    let outcome = rehearsal.play().await.unwrap();
    assert_eq!((outcome.stop, outcome.detail.as_deref()), (RunStop::Limit, Some("wall_time")));
    assert_eq!(log.lines(), ["stops a", "stops a", "waits a", "waits a"]);
}
