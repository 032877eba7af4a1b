//! Runs within runs: assistants as tools.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::message::{Message, Usage};
use agent::model::{ModelRequest, reply};
use agent::run::{Limit, PendingCall, ResumeError};
use agent::store::MemoryStore;
use agent::{
    Assistant, AssistantBuilder, CancelToken, Decision, Decisions, Event, EventKind, RunError, RunStop,
    ScriptedModel, SuspendedRun, ToolContext, ToolOutcome, ToolOutput, UsageLimits, Value, json, tool, tools,
};

const KEY: [u8; 32] = [7; 32];

/// What was booked.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<String>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = self.0.lock().unwrap().clone();
        lines.sort();
        lines
    }
}

/// Books a place.
#[tool(approval = "always", allow_repeat)]
fn book(to: String, log: &Log) -> String {
    log.add(format!("book {to}"));
    format!("booked {to}")
}

/// Orders a ticket, which comes later.
#[tool]
fn order(to: String, log: &Log) -> ToolOutcome {
    log.add(format!("order {to}"));
    ToolOutcome::Deferred { handle: format!("order {to}") }
}

/// Looks something up.
#[tool(allow_repeat)]
fn look(what: String, log: &Log) -> String {
    log.add(format!("look {what}"));
    format!("{what} found")
}

/// The last text of the user, and how many results followed it.
fn asked(request: &ModelRequest) -> (String, usize) {
    let messages: Vec<&Message> = request.messages.iter().map(|message| &**message).collect();
    let at = messages.iter().rposition(|message| matches!(message, Message::User(_))).unwrap();
    let results = messages[at..].iter().filter(|message| message.as_tool_result().is_some()).count();
    (messages[at].text(), results)
}

/// A model whose prompts say what it does: a list of replies, each a list of calls `[tool, argument]`. The argument of an assistant is another such
/// list. At the end it repeats the results.
pub(crate) fn obedient() -> ScriptedModel {
    ScriptedModel::from_fn(|request| {
        let (text, results) = asked(request);
        let replies: Vec<Vec<(String, Value)>> = serde_json::from_str(&text).unwrap();
        let mut done = 0;
        for calls in replies {
            if done == results {
                return calls.into_iter().fold(reply(), |said, (tool, argument)| {
                    let args = match &*tool {
                        "look" => json!({"what": argument}),
                        "book" | "order" | "seat" => json!({"to": argument}),
                        "weigh" => json!({"kilos": argument}),
                        _ => json!({"task": argument.to_string()}),
                    };
                    said.tool_call(tool, args.to_string())
                });
            }
            done += calls.len();
        }
        let messages: Vec<_> = request.messages.iter().collect();
        let results = messages.iter().rev().take_while(|message| !matches!(****message, Message::User(_)));
        let results = results.filter(|message| message.as_tool_result().is_some());
        let mut texts: Vec<_> = results.map(|message| message.text()).collect();
        texts.reverse();
        reply().text(format!("[{}]", texts.join(", ")))
    })
}

/// The prompt for one call.
pub(crate) fn one(tool: &str, argument: impl Into<Value>) -> Value {
    json!([[[tool, argument.into()]]])
}

/// An expert whose tools book, order and look things up.
fn expert(log: &Arc<Log>) -> AssistantBuilder {
    Assistant::builder(obedient()).tools(tools![book, order, look]).shared_state(log.clone())
}

/// An assistant with an expert at each of three depths.
pub(crate) fn tree(log: &Arc<Log>) -> AssistantBuilder {
    let third = expert(log).build().unwrap();
    let second = expert(log).tools(third.as_tool("third", "Knows more.")).build().unwrap();
    let first = expert(log).tools(second.as_tool("second", "Knows things.")).build().unwrap();
    expert(log).tools(first.as_tool("first", "Knows things.")).approval_key(KEY)
}

pub(crate) fn stored(run: &SuspendedRun) -> SuspendedRun {
    serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap()
}

#[tokio::test]
async fn a_request_at_the_leaf_reaches_the_root_and_the_decision_comes_back() {
    let log = Arc::new(Log::default());
    let output = tree(&log)
        .build()
        .unwrap()
        .prompt(one("first", one("second", one("third", one("book", "Rome")))).to_string())
        .await
        .unwrap();
    assert_eq!(output.stop, RunStop::Suspended);
    let suspended = stored(&output.snapshot.unwrap());
    let requests = suspended.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].path.to_string(), "first > second > third");
    let run = &output.run_id;
    assert_eq!(requests[0].request_id, format!("{run}/1/tool/0/1/tool/0/1/tool/0/1/approval/0"));
    assert!(
        matches!(&suspended.pending()[..], [PendingCall::Approval { path, .. }] if path.calls().len() == 3)
    );

    // In another process.
    let other = tree(&log).build().unwrap();
    let output = other.resume(&suspended, Decisions::new().allow(&requests[0])).await.unwrap();
    assert_eq!(output.text(), "[[[[booked Rome]]]]");
    assert_eq!(log.lines(), ["book Rome"]);
    assert_eq!(other.messages().len(), 4);
}

#[tokio::test]
async fn two_children_wait_side_by_side_and_each_decision_reaches_its_call() {
    let log = Arc::new(Log::default());
    let prompt = json!([[
        ["first", [[["book", "Rome"], ["look", "Rome"]]]],
        ["first", [[["order", "Bern"], ["look", "Bern"]]]],
        ["look", "it"],
        ["first", one("second", json!([[["book", "Oslo"], ["book", "Wien"]]]))],
    ]])
    .to_string();
    let output = tree(&log).build().unwrap().prompt(prompt).await.unwrap();
    let suspended = stored(&output.snapshot.unwrap());
    // What needs no decision ran; nothing that waits for one did. In the first child, the calls of one reply wait together.
    assert_eq!(log.lines(), ["look Bern", "look it", "order Bern"]);
    let pending = suspended.pending();
    assert_eq!(pending.len(), 4);
    let [rome, oslo, wien] = &suspended.requests()[..] else { panic!("{:?}", suspended.requests()) };

    // One of two decisions of one run is not enough, and nothing happens.
    let other = tree(&log).build().unwrap();
    let error = other.resume(&suspended, Decisions::new().allow(oslo)).await.unwrap_err();
    assert!(
        matches!(error.as_resume_error(), Some(ResumeError::Undecided { request_id, .. }) if *request_id == wien.request_id)
    );
    let error = other.resume(&suspended, Decisions::new()).await.unwrap_err();
    assert!(
        matches!(error.as_resume_error(), Some(ResumeError::Undecided { request_id, .. }) if *request_id == rome.request_id)
    );

    // The children are independent: the third continues alone.
    let decisions = Decisions::new().allow_with(oslo, json!({"to": "Bergen"})).deny(wien, "too far");
    let output = other.resume(&suspended, decisions).await.unwrap();
    assert_eq!(log.lines(), ["book Bergen", "look Bern", "look it", "order Bern"]);
    let suspended = stored(&output.snapshot.unwrap());
    assert_eq!(suspended.pending().len(), 2);
    let error = other.resume(&suspended, Decisions::new().allow(oslo)).await.unwrap_err();
    assert!(matches!(error.as_resume_error(), Some(ResumeError::NotPending { .. })));

    // The same ids in both children: the call is named with its path.
    let deferred =
        suspended.pending().into_iter().find(|call| matches!(call, PendingCall::Deferred { .. })).unwrap();
    let another = tree(&log).build().unwrap();
    let arrived = || Decisions::new().deliver_to(&deferred, ToolOutput::text("ticket"));
    let twice = arrived().deliver_to(&deferred, ToolOutput::text("ticket"));
    let error = another.resume(&suspended, twice).await.unwrap_err();
    assert!(matches!(error.as_resume_error(), Some(ResumeError::AnsweredTwice { .. })));
    let output = another.resume(&suspended, arrived()).await.unwrap();
    let suspended = stored(&output.snapshot.unwrap());
    let decisions = suspended.decide(|_| Decision::Allow);
    let output = another.resume(&suspended, decisions).await.unwrap();
    let text = output.text();
    assert!(text.starts_with("[[booked Rome, Rome found], [ticket, Bern found], it found, [["), "{text}");
    assert!(text.contains("Bergen") && text.contains("too far"), "{text}");
    assert_eq!(log.lines(), ["book Bergen", "book Rome", "look Bern", "look Rome", "look it", "order Bern"]);
}

/// Records each event of a run.
fn recorder() -> (Arc<Mutex<Vec<Event>>>, impl Fn(&Event) + Send + Sync + 'static) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = events.clone();
    (events, move |event: &Event| sink.lock().unwrap().push(event.clone()))
}

#[tokio::test]
async fn listeners_receive_the_events_of_all_depths_with_their_paths() {
    let log = Arc::new(Log::default());
    let (events, record) = recorder();
    let (of_child, record_child) = recorder();
    let second = expert(&log).on_event(record_child).build().unwrap();
    let first = expert(&log).tools(second.as_tool("second", "Knows things.")).build().unwrap();
    let root = expert(&log).tools(first.as_tool("first", "Knows things.")).on_event(record).build().unwrap();
    let mut run = root
        .prompt(
            json!([[["first", one("second", one("look", "tea"))], ["first", one("look", "coffee")]]])
                .to_string(),
        )
        .stream();
    let mut read = Vec::new();
    while let Some(event) = run.next().await {
        read.push((*event).clone());
    }
    assert_eq!(run.output().await.unwrap().text(), "[[[tea found]], [coffee found]]");
    let events = events.lock().unwrap().clone();
    // Runs side by side hand over in turn, and each keeps its order.
    let of_run = |events: &[Event], id: &str| {
        events.iter().filter(|event| &*event.run_id == id).cloned().collect::<Vec<_>>()
    };
    assert!(read.iter().all(|event| of_run(&read, &event.run_id) == of_run(&events, &event.run_id)));
    assert_eq!(read.len(), events.len());
    let mut by_run: std::collections::BTreeMap<String, Vec<Event>> = std::collections::BTreeMap::new();
    for event in &events {
        by_run.entry(event.run_id.to_string()).or_default().push(event.clone());
    }
    assert_eq!(by_run.len(), 4);
    for (run_id, events) in &by_run {
        let depth = events[0].path.calls().len();
        assert_eq!(depth, run_id.matches("/tool/").count());
        assert!(events.iter().all(|event| event.path == events[0].path && event.is_own() == (depth == 0)));
        assert!(events.iter().map(|event| event.seq).eq(1..=events.len() as u64), "{run_id}");
        assert!(matches!(events.last().unwrap().kind, EventKind::AgentEnd { .. }));
    }
    // Those of a child are between the start and the end of its call.
    let at = |find: &dyn Fn(&Event) -> bool| events.iter().position(find).unwrap();
    let first_id = by_run.keys().nth(1).unwrap();
    let begins = at(&|event| event.run_id.as_ref() == first_id);
    let ends = events.iter().rposition(|event| event.run_id.as_ref() == first_id).unwrap();
    let starts = at(&|event| event.is_own() && matches!(event.kind, EventKind::ToolExecutionStart { .. }));
    let end = at(&|event| {
        event.is_own()
            && matches!(&event.kind, EventKind::ToolExecutionEnd { result, .. } if result.outcome.text() == "[[tea found]]")
    });
    assert!(starts < begins && ends < end);
    let of_child = of_child.lock().unwrap().clone();
    assert_eq!(of_child, by_run.values().nth(2).unwrap().clone());
    let json = serde_json::to_value(&of_child[0]).unwrap();
    assert_eq!(json["path"][1]["tool"], "second");
}

#[tokio::test]
async fn usage_counts_once_and_the_limits_of_the_root_hold_for_all() {
    let log = Arc::new(Log::default());
    let width = 32;
    let calls = json!([vec![json!(["first", one("look", "tea")]); width]]).to_string();
    for allowed in [0_u8, 9, 40, 64] {
        let limits = UsageLimits { tool_calls: Some(allowed.into()), ..UsageLimits::default() };
        log.0.lock().unwrap().clear();
        let root = tree(&log).max_concurrency(32).without_loop_guard().limits(limits).build().unwrap();
        let _ = root.prompt(calls.as_str()).await;
        let ran = log.lines().len() + usize::min(allowed.into(), width);
        assert_eq!(ran, usize::from(allowed), "{:?}", log.lines());
    }
    let model = ScriptedModel::from_fn(|request| {
        let (text, results) = asked(request);
        let said = if text.contains("first") && results == 0 {
            reply().tool_call("first", r#"{"task": "think"}"#).tool_call("first", r#"{"task": "think"}"#)
        } else {
            reply().text("done")
        };
        let mut usage = Usage::default();
        (usage.input, usage.output) = (100, 10);
        said.usage(usage)
    });
    let child = Assistant::builder(model.clone()).build().unwrap();
    let build = |limits| {
        let root = Assistant::builder(model.clone()).tools(child.as_tool("first", "Thinks."));
        root.without_loop_guard().limits(limits).build().unwrap()
    };
    let output = build(UsageLimits::default()).prompt("first").await.unwrap();
    assert_eq!((output.usage.input, output.usage.output), (400, 40));
    let error =
        build(UsageLimits { requests: Some(2), ..UsageLimits::default() }).prompt("first").await.unwrap_err();
    assert_eq!(error.as_limit().unwrap().limit, Limit::Requests);
    assert_eq!(model.requests().len(), 4 + 2);
}

/// Counts a body that ends.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until it is cancelled.
#[tool]
async fn wait(cx: &ToolContext, waiting: &AtomicUsize) {
    waiting.fetch_add(1, Ordering::SeqCst);
    let _ends = Ends(waiting);
    cx.cancelled().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_parent_leaves_no_child_running() {
    let waiting = Arc::new(AtomicUsize::new(0));
    let model = ScriptedModel::from_fn(|request| match request.tools[0].name() {
        "ask" => reply().tool_call("ask", r#"{"task": "a"}"#).tool_call("ask", r#"{"task": "b"}"#),
        _ => reply().tool_call("wait", "{}"),
    });
    let child = Assistant::builder(model.clone())
        .tools(tools![wait])
        .state_per_prompt::<AtomicUsize>()
        .build()
        .unwrap();
    let build = || {
        let root = Assistant::builder(model.clone()).tools(child.as_tool("ask", "Waits.").options(|own| own));
        root.shared_state(waiting.clone()).build().unwrap()
    };
    let (root, token) = (build(), CancelToken::new());
    let run = tokio::spawn(root.prompt("go").cancel(token.clone()).into_future());
    while waiting.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    token.cancel("enough");
    let error = run.await.unwrap().unwrap_err();
    assert!(error.is_aborted());
    assert_eq!(waiting.load(Ordering::SeqCst), 0);
    assert!(root.messages().is_sound());

    // Dropped instead.
    let root = build();
    let mut run = Box::pin(root.prompt("go").into_future());
    while waiting.load(Ordering::SeqCst) < 2 {
        assert!(futures_util::poll!(&mut run).is_pending());
        tokio::task::yield_now().await;
    }
    drop(run);
    assert_eq!(waiting.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_new_prompt_ends_the_children_that_wait() {
    let log = Arc::new(Log::default());
    let root = tree(&log).build().unwrap();
    let suspended = root
        .prompt(
            json!([[["first", one("book", "Rome")], ["first", one("second", one("book", "Bern"))]]])
                .to_string(),
        )
        .await
        .unwrap()
        .snapshot
        .unwrap();
    root.prompt(one("look", "tea").to_string()).await.unwrap();
    assert!(root.messages().is_sound());
    let error = root.resume(&suspended, suspended.decide(|_| Decision::Allow)).await.unwrap_err();
    assert!(matches!(error.as_resume_error(), Some(ResumeError::ConversationMovedOn)));
    assert_eq!(log.lines(), ["look tea"]);

    // Resumed under a token that is cancelled, each child ends with its own run.
    let (events, record) = recorder();
    let other = tree(&log).on_event(record).build().unwrap();
    let token = CancelToken::new();
    token.cancel("enough");
    let error =
        other.resume(&suspended, suspended.decide(|_| Decision::Allow)).cancel(token).await.unwrap_err();
    assert!(error.is_aborted());
    let ends = events
        .lock()
        .unwrap()
        .iter()
        .filter(|event| matches!(event.kind, EventKind::AgentEnd { .. }))
        .count();
    assert_eq!(ends, 4);
    assert!(
        other.messages().get(2).unwrap().text().contains("while it waited for 1 decision"),
        "{:?}",
        other.messages().get(2)
    );
}

#[tokio::test]
async fn depth_and_number_are_limited() {
    let model = ScriptedModel::from_fn(|request| {
        let (text, results) = asked(request);
        if results == 0 {
            reply().tool_call("again", json!({"task": format!("{text}!")}).to_string())
        } else {
            let last = request.messages.iter().last().unwrap().text();
            reply().text(last)
        }
    });
    let root = Assistant::builder(model.clone()).self_as_tool("again", "Asks again.").build().unwrap();
    let text = root.prompt("go").await.unwrap().text();
    assert_eq!(text, "No sub-agent was started: this run is at depth 3, the limit (`max_depth`).");
    // At the limit the tool is not shown.
    assert_eq!(
        model.requests().iter().map(|request| request.tools.len()).collect::<Vec<_>>()[..4],
        [1, 1, 1, 0]
    );
}

#[tokio::test]
async fn a_prompt_in_a_tool_that_ends_suspended_says_what_to_use() {
    /// Asks an expert.
    #[tool]
    async fn ask(expert: &Assistant) -> Result<String, RunError> {
        Ok(expert.fork().prompt(one("book", "Rome").to_string()).await?.text())
    }
    let log = Arc::new(Log::default());
    let model = ScriptedModel::new([reply().tool_call("ask", "{}"), reply().text("I could not.")]);
    let root =
        Assistant::builder(model).tools(tools![ask]).state(expert(&log).build().unwrap()).build().unwrap();
    root.prompt("go").await.unwrap();
    let result = root.messages().get(2).unwrap().text();
    assert!(result.contains("`ask`") && result.contains("Assistant::as_tool"), "{result}");
}

#[tokio::test]
async fn a_child_asks_the_function_of_the_run_around_it() {
    let log = Arc::new(Log::default());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let root = tree(&log).on_approval(move |request| {
        seen.lock().unwrap().push(request.path.to_string());
        async move {
            if request.path.calls().len() == 1 { Decision::Allow } else { Decision::Deny("too deep".into()) }
        }
    });
    let text = root
        .build()
        .unwrap()
        .prompt(
            json!([[["first", one("book", "Rome")], ["first", one("second", one("book", "Bern"))]]])
                .to_string(),
        )
        .await
        .unwrap()
        .text();
    assert!(text.contains("booked Rome") && text.contains("too deep"), "{text}");
    assert_eq!(*asked.lock().unwrap(), ["first", "first > second"]);
}

/// Weighs something.
#[tool]
fn weigh(kilos: f64) -> f64 {
    kilos
}

/// All places of a JSON value, as pointers.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(key, item)| places(item, &format!("{at}/{key}"), all));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, item)| {
            places(item, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), all);
        }),
        _ => {}
    }
}

#[tokio::test]
async fn a_stored_run_that_was_altered_anywhere_is_refused() {
    let log = Arc::new(Log::default());
    let prompt = json!([
        [["look", "tea"]],
        [
            ["first", [[["look", "tea"]], [["second", one("third", one("book", "Rome"))]]]],
            ["first", one("order", "Bern")],
            ["weigh", 0.3],
        ],
    ])
    .to_string();
    let tree = |log: &Arc<Log>| {
        let limits = UsageLimits { cost: Some(0.75), ..UsageLimits::default() };
        tree(log).tools(tools![weigh]).limits(limits)
    };
    let output = tree(&log).build().unwrap().prompt(prompt).await.unwrap();
    let whole = serde_json::to_value(output.snapshot.unwrap()).unwrap();
    let before = log.lines();
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    let mut accepted = Vec::new();
    for place in all.iter().filter(|place| !place.is_empty()) {
        for change in 0..3 {
            let mut altered = whole.clone();
            let (parent, key) = place.rsplit_once('/').unwrap();
            match change {
                0 => {
                    let value = altered.pointer_mut(place).unwrap();
                    *value = match &*value {
                        Value::String(text) => json!(format!("{text}x")),
                        Value::Number(number) if number.is_f64() => json!(number.as_f64().unwrap() + 0.25),
                        Value::Number(number) => json!(number.as_u64().unwrap() + 1),
                        Value::Bool(is) => json!(!*is),
                        Value::Null => json!(1),
                        Value::Array(_) => json!([]),
                        Value::Object(_) => json!({}),
                    };
                }
                1 => match altered.pointer_mut(parent).unwrap() {
                    Value::Array(items) => drop(items.remove(key.parse().unwrap())),
                    Value::Object(fields) => drop(fields.remove(&key.replace("~1", "/").replace("~0", "~"))),
                    _ => unreachable!(),
                },
                _ => match altered.pointer_mut(parent).unwrap() {
                    Value::Array(items) => {
                        let copy = items[key.parse::<usize>().unwrap()].clone();
                        items.push(copy);
                    }
                    _ => continue,
                },
            }
            if altered == whole {
                continue;
            }
            let Ok(suspended) = serde_json::from_value::<SuspendedRun>(altered) else {
                continue;
            };
            if serde_json::to_value(&suspended).unwrap() == whole {
                continue;
            }
            let decisions = suspended.decide(|_| Decision::Deny("no".into()));
            let result = tree(&log).build().unwrap().resume(&suspended, decisions).await;
            if !matches!(&result, Err(RunError::Resume(_))) {
                accepted.push(format!("{place} ({change})"));
            }
        }
    }
    assert_eq!(accepted, [""; 0]);
    // Stores may change the last digits of a number.
    let spelled = whole.to_string().replace(r#"{"kilos":0.3}"#, r#"{"kilos":0.30000000000000004}"#);
    assert_eq!(spelled.matches("0.30000000000000004").count(), 2);
    let suspended: SuspendedRun = serde_json::from_str(&spelled).unwrap();
    let decisions = suspended.decide(|_| Decision::Deny("no".into()));
    tree(&log).build().unwrap().resume(&suspended, decisions).await.unwrap();
    assert_eq!(log.lines(), before);
    // A run of an earlier release is refused by its version.
    let mut old = whole.clone();
    old["version"] = json!(4);
    let suspended: SuspendedRun = serde_json::from_value(old).unwrap();
    let decisions = suspended.decide(|_| Decision::Deny("no".into()));
    let refused = tree(&log).build().unwrap().resume(&suspended, decisions).await.unwrap_err();
    assert!(refused.to_string().contains("has version 4"), "{refused}");
    let other_key = tree(&log).approval_key([8; 32]).build().unwrap();
    let suspended: SuspendedRun = serde_json::from_value(whole).unwrap();
    let decisions = suspended.decide(|_| Decision::Deny("no".into()));
    assert!(other_key.resume(&suspended, decisions).await.is_err());
}

#[tokio::test]
async fn requests_at_the_same_time_are_limited_in_the_whole_tree() {
    for (allowed, has_store) in [(1, false), (1, true), (3, false)] {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (asks, peak) = (now.clone(), most.clone());
        let model = ScriptedModel::from_async_fn(move |request| {
            let (asks, peak) = (asks.clone(), peak.clone());
            async move {
                peak.fetch_max(asks.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(5)).await;
                asks.fetch_sub(1, Ordering::SeqCst);
                match (asked(&request), request.tools.first().map(agent::ToolDefinition::name)) {
                    ((_, 0), Some(tool)) => (0..4).fold(reply(), |said, at| {
                        said.tool_call(tool, json!({"task": at.to_string()}).to_string())
                    }),
                    _ => reply().text("done"),
                }
            }
        });
        // With a store, and with requests that may be made again.
        let builder = || {
            let plain = Assistant::builder(model.clone());
            if has_store { plain.store(MemoryStore::new()).continue_length(1) } else { plain }
        };
        let leaf = builder().build().unwrap();
        let middle = builder().tools(leaf.as_tool("leaf", "Thinks.")).build().unwrap();
        let root = builder().tools(middle.as_tool("middle", "Thinks."));
        let root = root.max_concurrency(8).max_requests_in_flight(allowed).build().unwrap();
        assert_eq!(root.prompt("go").await.unwrap().text(), "done");
        assert_eq!((model.requests().len(), most.load(Ordering::SeqCst)), (2 + 8 + 16, allowed));
    }
}
