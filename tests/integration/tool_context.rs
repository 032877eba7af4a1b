//! What a body is told of its call, and what it tells.

#![expect(clippy::unused_async, reason = "tools as people write them")]

use crate::macro_support::text;
use agent::message::ToolCall;
use agent::{Progress, Registry, ToolContext, ToolSet, tool, tools};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span;

/// Says what it knows.
#[tool]
fn facts(cx: &ToolContext, first: u8) -> String {
    format!(
        "{first} {} {} {} {}/{} {:?} {:?} {} {}",
        cx.tool(),
        cx.call_id(),
        cx.idempotency_key(),
        cx.attempt(),
        cx.max_attempts(),
        cx.run_id(),
        cx.session_id(),
        cx.is_cancelled(),
        cx.cancel_token().is_cancelled(),
    )
}

async fn call(set: ToolSet, name: &str, arguments: &str, cx: &ToolContext) -> String {
    let registry = Registry::new(set).expect("sound");
    registry.call(&ToolCall::new("call_1", name, arguments), cx).await.outcome.text().into_owned()
}

#[tokio::test]
async fn the_context_knows_its_call() {
    let said = text(tools![facts], "facts", r#"{"first": 1}"#).await;
    assert_eq!(said, "1 facts call_1 call_1 1/1 None None false false");
    let cx = ToolContext::new()
        .with_run_id("run_1")
        .with_session_id("s")
        .with_idempotency_key("run_1/2/tool/0")
        .with_attempt(2, 3);
    let said = call(tools![facts], "facts", r#"{"first": 1}"#, &cx).await;
    assert_eq!(said, r#"1 facts call_1 run_1/2/tool/0 2/3 Some("run_1") Some("s") false false"#);
}

/// Reads pages.
#[tool]
async fn read(pages: u8, cx: &ToolContext) -> u8 {
    for page in 1..=pages {
        cx.progress(Progress::new("reading").of(page, pages));
    }
    pages
}

/// Reads pages where it may block.
#[tool]
fn read_now(pages: usize, cx: &ToolContext) {
    cx.progress(Progress::new("read").at(pages).with_content([agent::message::Part::text("so far")]));
}

/// Goes on talking.
#[tool]
async fn late(cx: &ToolContext, kept: &Kept) {
    *kept.0.lock().expect("sound") = Some(cx.clone());
}
struct Kept(Mutex<Option<ToolContext>>);

/// The id of the call, the tool, and what it reported.
type Seen = Arc<Mutex<Vec<(String, String, Progress)>>>;

fn watched() -> (Seen, ToolContext) {
    let seen = Seen::default();
    let sink = seen.clone();
    let listener = move |cx: &ToolContext, progress| {
        sink.lock().expect("sound").push((cx.call_id().to_owned(), cx.tool().to_owned(), progress));
    };
    (seen, ToolContext::new().on_progress(listener))
}

#[tokio::test]
async fn progress_is_told_while_the_body_runs() {
    let (seen, cx) = watched();
    assert_eq!(call(tools![read], "read", r#"{"pages": 2}"#, &cx).await, "2");
    call(tools![read_now], "read_now", r#"{"pages": 3}"#, &cx).await;
    let seen = seen.lock().expect("sound");
    let said: Vec<_> =
        seen.iter().map(|(_, tool, p)| format!("{tool} {} {:?}/{:?}", p.message, p.done, p.total)).collect();
    assert_eq!(
        said,
        ["read reading Some(1)/Some(2)", "read reading Some(2)/Some(2)", "read_now read Some(3)/None"]
    );
    assert!(seen.iter().all(|(call, ..)| call == "call_1"));
    assert_eq!(seen[2].2.content.len(), 1);
}

#[tokio::test]
async fn what_is_told_late_is_dropped() {
    let (seen, cx) = watched();
    let kept = Arc::new(Kept(Mutex::default()));
    let cx = cx.with_shared_state(kept.clone()).expect("a context");
    call(tools![late], "late", "", &cx).await;
    let own = kept.0.lock().expect("sound").take().expect("was kept");
    own.progress(Progress::new("too late"));
    assert!(seen.lock().expect("sound").is_empty());
    // The next call of the same context is another one.
    call(tools![read], "read", r#"{"pages": 1}"#, &cx).await;
    assert_eq!(seen.lock().expect("sound").len(), 1);
}

#[tokio::test]
async fn nobody_who_watches_can_make_a_tool_fail() {
    let cx = ToolContext::new().on_progress(|_, _| panic!("no"));
    assert_eq!(call(tools![read], "read", r#"{"pages": 1}"#, &cx).await, "1");
    assert_eq!(text(tools![read], "read", r#"{"pages": 1}"#).await, "1");
}

#[test]
fn numbers_of_progress() {
    assert_eq!(Progress::new("").of(1_usize, 4_u64).fraction(), Some(0.25));
    assert_eq!(Progress::new("").of(-1, 4).done, Some(0));
    assert_eq!(Progress::new("").of(9, 3).fraction(), Some(1.0));
    assert_eq!(Progress::new("").of(0, 0).fraction(), None);
    assert_eq!(Progress::new("").at(1).fraction(), None);
    let json = serde_json::to_value(Progress::new("x").of(1, 2)).expect("JSON");
    assert_eq!(json, serde_json::json!({"message": "x", "done": 1, "total": 2}));
}

/// Keeps the fields of spans, and what is logged in which.
#[derive(Default)]
struct Logs {
    ids: AtomicU64,
    spans: Mutex<Vec<(u64, String)>>,
    events: Mutex<Vec<(u64, String)>>,
}

thread_local! {
    static ENTERED: std::cell::RefCell<Vec<u64>> = const { std::cell::RefCell::new(Vec::new()) };
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        use std::fmt::Write as _;
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

struct Shared(Arc<Logs>);

impl tracing::Subscriber for Shared {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let id = self.0.ids.fetch_add(1, Ordering::SeqCst) + 1;
        let mut text = Text(format!("{} ", attributes.metadata().name()));
        attributes.record(&mut text);
        self.0.spans.lock().expect("sound").push((id, text.0));
        span::Id::from_u64(id)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let inside = ENTERED.with_borrow(|entered| entered.last().copied().unwrap_or(0));
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.events.lock().expect("sound").push((inside, text.0));
    }
    fn enter(&self, id: &span::Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(id.into_u64()));
    }
    fn exit(&self, _: &span::Id) {
        ENTERED.with_borrow_mut(|entered| {
            entered.pop();
        });
    }
}

/// Logs something.
#[tool]
fn log_blocking() {
    tracing::info!("from a pool");
}

/// Logs something later.
#[tool]
async fn log_later() {
    tokio::task::yield_now().await;
    tracing::info!("after a while");
}

#[tokio::test(flavor = "current_thread")]
async fn bodies_log_in_the_span_of_their_call() {
    let logs = Arc::new(Logs::default());
    let _guard = crate::trace_support::hear(Shared(logs.clone()));
    text(tools![log_later], "log_later", "").await;
    {
        let spans = logs.spans.lock().expect("sound");
        let (id, said) =
            spans.iter().find(|(_, said)| said.starts_with("execute_tool")).expect("a span").clone();
        for part in ["gen_ai.tool.name=\"log_later\"", "gen_ai.tool.call.id=\"call_1\""] {
            assert!(said.contains(part), "{said}");
        }
        let events = logs.events.lock().expect("sound");
        assert!(
            events.iter().any(|(inside, said)| *inside == id && said.contains("after a while")),
            "{events:?}"
        );
    }
    // On another thread the subscriber of this one is unknown, so the body runs here.
    let cx = ToolContext::new().with_executor(Arc::new(Here));
    call(tools![log_blocking], "log_blocking", "", &cx).await;
    let events = logs.events.lock().expect("sound");
    assert!(events.iter().any(|(inside, said)| *inside > 0 && said.contains("from a pool")), "{events:?}");
}

/// Runs blocking work where it is awaited.
struct Here;

impl tool::Executor for Here {
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> agent::BoxFuture<'static, ()> {
        Box::pin(async move { work() })
    }
    fn sleep(&self, duration: std::time::Duration) -> Option<agent::BoxFuture<'static, ()>> {
        Some(Box::pin(tokio::time::sleep(duration)))
    }
}
