//! The result cache: it is asked last, and only for the same owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agent::ScriptedModel;
use agent::durable::{Rehearsal, RunRequest, Service};
use agent::message::Message;
use agent::model::reply;
use agent::store::{InvocationQuery, InvocationStatus, MemoryStore, Store};
use agent::{
    Assistant, AssistantBuilder, BeforeCall, Decision, Decisions, EventKind, Tool, ToolContext, ToolSet,
    UsageLimits, Value, json, tool, tool::Source, tools,
};

use crate::assistant_support::assert_sound;

/// How often a body ran.
#[derive(Default)]
struct Runs(AtomicU32);

impl Runs {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

struct User(&'static str);

struct Unrelated;

/// Sends.
#[tool(inline, cache, approval = "always")]
fn send(n: u128, runs: &Runs) -> String {
    format!("{n} sent in run {}", runs.next())
}

/// Reads.
#[tool(inline, cache)]
fn read(n: u32, runs: &Runs) -> String {
    format!("{n} read in run {}", runs.next())
}

/// Reads what belongs to a user.
#[tool(inline, cache)]
fn secret(user: &User, runs: &Runs) -> String {
    runs.next();
    format!("secret of {}", user.0)
}

/// Reads what belongs to a user, from the context.
#[tool(inline, cache)]
fn own(cx: &ToolContext, runs: &Runs) -> String {
    runs.next();
    format!("secret of {}", cx.get::<User>().map_or("nobody", |user| user.0))
}

/// Every prompt makes this call, and is answered with its result.
fn calling(tool: &'static str, args: &'static str) -> ScriptedModel {
    ScriptedModel::from_fn(move |request| match request.messages.last().and_then(|m| m.as_tool_result()) {
        Some(result) => reply().text(result.text()),
        None => reply().tool_call(tool, args),
    })
}

fn built(model: ScriptedModel, runs: &Arc<Runs>) -> AssistantBuilder {
    Assistant::builder(model)
        .tools(tools![send, read, secret, own])
        .shared_state(runs.clone())
        .state(User("nobody"))
}

async fn text(assistant: &Assistant) -> String {
    assistant.prompt("go").await.unwrap().text()
}

#[tokio::test]
async fn approval_is_asked_each_time_although_the_result_is_known() {
    let (runs, asked) = (Arc::<Runs>::default(), Arc::new(AtomicU32::new(0)));
    let count = asked.clone();
    let builder = built(calling("send", r#"{"n": 5}"#), &runs).on_approval(move |_| {
        let is_third = count.fetch_add(1, Ordering::SeqCst) == 2;
        async move { if is_third { Decision::Deny("not again".into()) } else { Decision::Allow } }
    });
    let assistant = builder.build().unwrap();
    let mut run = assistant.prompt("go").stream();
    while run.next().await.is_some() {}
    assert_eq!(text(&assistant).await, "5 sent in run 1");
    assert!(text(&assistant).await.contains("not again"));
    assert_eq!((runs.count(), asked.load(Ordering::SeqCst)), (1, 3));
    assert_sound(&assistant);
}

#[tokio::test]
async fn a_call_that_is_allowed_later_is_answered_from_the_cache() {
    let runs = Arc::<Runs>::default();
    let assistant = built(calling("send", r#"{"n": 5}"#), &runs).build().unwrap();
    for _ in 0..2 {
        let suspended = assistant.prompt("go").await.unwrap().snapshot.unwrap();
        let decisions = Decisions::new().allow(&suspended.requests()[0]);
        let output = assistant.resume(&suspended, decisions).await.unwrap();
        assert_eq!(output.text(), "5 sent in run 1");
    }
    // With other arguments it is another call.
    let suspended = assistant.prompt("go").await.unwrap().snapshot.unwrap();
    let decisions = Decisions::new().allow_with(&suspended.requests()[0], json!({"n": 6}));
    assert_eq!(assistant.resume(&suspended, decisions).await.unwrap().text(), "6 sent in run 2");
    assert_sound(&assistant);
}

#[tokio::test]
async fn hooks_come_before_a_known_result() {
    let (runs, hooked) = (Arc::<Runs>::default(), Arc::new(AtomicU32::new(0)));
    let (count, asked) = (hooked.clone(), Arc::new(AtomicU32::new(0)));
    let again = asked.clone();
    let builder = built(calling("read", r#"{"n": 1}"#), &runs)
        .before_tool_call(move |_| {
            let time = count.fetch_add(1, Ordering::SeqCst);
            async move {
                Ok(match time {
                    0 => BeforeCall::Continue,
                    1 | 2 => BeforeCall::RequireApproval,
                    _ => BeforeCall::block("not any more"),
                })
            }
        })
        .on_approval(move |_| {
            again.fetch_add(1, Ordering::SeqCst);
            async { Decision::Allow }
        });
    let assistant = builder.build().unwrap();
    for _ in 0..3 {
        assert_eq!(text(&assistant).await, "1 read in run 1");
    }
    assert_eq!(text(&assistant).await, "not any more");
    assert_eq!((runs.count(), hooked.load(Ordering::SeqCst), asked.load(Ordering::SeqCst)), (1, 4, 2));
}

#[tokio::test]
async fn another_session_or_source_is_another_owner() {
    let runs = Arc::<Runs>::default();
    let assistant = built(calling("read", r#"{"n": 1}"#), &runs).build().unwrap();
    let (one, other) = (Source::new("ann"), Source::new("ann"));
    let prompt = || assistant.prompt("go");
    let calls = [
        (prompt(), 1),
        (prompt().session_id("ann"), 2),
        (prompt().session_id("bob"), 3),
        (prompt().session_id("ann"), 2),
        (prompt().source(one.clone()), 4),
        (prompt().source(other), 5),
        (prompt().source(one.clone()), 4),
        (prompt().source(one).session_id("ann"), 6),
        (prompt(), 1),
    ];
    for (prompt, run) in calls {
        assert_eq!(prompt.await.unwrap().text(), format!("1 read in run {run}"));
    }
}

#[tokio::test]
async fn nothing_is_kept_that_may_depend_on_the_state_of_a_prompt() {
    for tool in ["secret", "own"] {
        let runs = Arc::<Runs>::default();
        let assistant = built(calling(tool, "{}"), &runs).build().unwrap();
        for (user, ran) in [("ann", 1), ("bob", 2), ("ann", 3)] {
            let output = assistant.prompt("go").with_state(User(user)).await.unwrap();
            assert_eq!((output.text(), runs.count()), (format!("secret of {user}"), ran), "{tool}");
        }
        for _ in 0..2 {
            assert_eq!((text(&assistant).await, runs.count()), ("secret of nobody".to_owned(), 4), "{tool}");
        }
        assert_eq!(assistant.prompt("go").with_state(User("ann")).await.unwrap().text(), "secret of ann");
    }
    // State that the tool cannot read does not matter, unless a hook reads it.
    for (tool, is_hooked, ran) in
        [("read", false, 1), ("secret", false, 1), ("own", false, 2), ("read", true, 2), ("secret", true, 2)]
    {
        let runs = Arc::<Runs>::default();
        let args = if tool == "read" { r#"{"n": 1}"# } else { "{}" };
        let mut builder = built(calling(tool, args), &runs);
        if is_hooked {
            builder = builder.before_tool_call(|_| async { Ok(BeforeCall::Continue) });
        }
        let assistant = builder.build().unwrap();
        for _ in 0..2 {
            assistant.prompt("go").with_state(Unrelated).await.unwrap();
        }
        assert_eq!(runs.count(), ran, "{tool}, hooked: {is_hooked}");
    }
}

#[tokio::test]
async fn a_body_that_takes_the_whole_context_may_read_anything() {
    let runs = Arc::<Runs>::default();
    let count = runs.clone();
    let body = move |_: Value, cx: ToolContext| {
        let text = format!("{} {}", cx.get::<User>().map_or("nobody", |user| user.0), count.next());
        async move { text }
    };
    let who = Tool::new("who", "Says who.", json!({"type": "object"}), body).unwrap();
    let tools = ToolSet::new().with(who.configure(|options| options.cache(true)).unwrap());
    let assistant = Assistant::builder(calling("who", "{}")).tools(tools).build().unwrap();
    for said in ["ann 1", "bob 2"] {
        let user = said.split(' ').next().unwrap();
        let output = assistant.prompt("go").with_state(User(user)).await.unwrap();
        assert_eq!(output.text(), said);
    }
    assert_eq!((text(&assistant).await, text(&assistant).await), ("nobody 3".into(), "nobody 3".into()));
}

#[tokio::test]
async fn every_digit_counts() {
    for numbers in [
        ["1000000000000000000000000000001", "1000000000000000000000000000002"],
        [r#""1000000000000000000000000000001""#, "1000000000000000000000000000002"],
    ] {
        let runs = Arc::<Runs>::default();
        let calls = numbers.map(|n| reply().tool_call("send", format!(r#"{{"n": {n}}}"#)));
        let [one, other] = calls;
        let model = ScriptedModel::new([one, other, reply().text("done")]);
        let builder = built(model, &runs).on_approval(|_| async { Decision::Allow });
        let assistant = builder.build().unwrap();
        text(&assistant).await;
        let results: Vec<_> =
            assistant.messages().iter().filter(|m| m.as_tool_result().is_some()).map(Message::text).collect();
        assert_eq!(
            results,
            [
                "1000000000000000000000000000001 sent in run 1",
                "1000000000000000000000000000002 sent in run 2",
            ]
        );
    }
}

#[tokio::test]
async fn a_known_result_is_an_end_like_any_other() {
    let runs = Arc::<Runs>::default();
    let store = Arc::new(MemoryStore::new());
    let model = ScriptedModel::new([
        reply().tool_call("send", r#"{"n": 5}"#),
        reply().tool_call("send", r#"{"n": "5"}"#),
        reply().text("done"),
    ]);
    let builder = built(model, &runs).store(store.clone()).on_approval(|_| async { Decision::Allow });
    let assistant =
        builder.limits(UsageLimits { tool_calls: Some(2), ..UsageLimits::default() }).build().unwrap();
    let mut run = assistant.prompt("go").stream();
    let mut ends = Vec::new();
    while let Some(event) = run.next().await {
        if let EventKind::ToolExecutionEnd { ran, cached, result, .. } = &event.kind {
            ends.push((*ran, *cached, result.coercions.len()));
        }
    }
    assert_eq!(ends, [(true, false, 0), (false, true, 1)]);
    let records = store.list(InvocationQuery::new()).await.unwrap();
    assert_eq!(records.len(), 2);
    assert!(
        records.iter().all(|record| record.end.as_ref().map(agent::store::InvocationEnd::status)
            == Some(InvocationStatus::Completed)),
        "{records:?}"
    );
}

#[tokio::test]
async fn a_durable_run_keeps_no_results() {
    let runs = Arc::<Runs>::default();
    let model = ScriptedModel::new([
        reply().tool_call("read", r#"{"n": 1}"#),
        reply().tool_call("read", r#"{"n": 1}"#),
        reply().text("done"),
    ]);
    let assistant = built(model, &runs).cache_results().build().unwrap();
    let durable = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "go"));
    // A replay reads what is remembered, and nothing else.
    for _ in 0..2 {
        let outcome = durable.play().await.unwrap();
        let results: Vec<_> =
            outcome.messages.iter().filter(|m| m.as_tool_result().is_some()).map(|m| m.text()).collect();
        assert_eq!(
            (results, runs.count()),
            (vec!["1 read in run 1".to_owned(), "1 read in run 2".to_owned()], 2)
        );
    }
}
