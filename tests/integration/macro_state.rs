//! Injected parameters.

#![expect(clippy::unused_async, reason = "tools are async where that is what is tested")]

use crate::macro_support::outcome;
use agent::{Registry, ToolContext, ToolOutcome, tool, tools};
use std::sync::Arc;

#[derive(Debug)]
struct Database(&'static str);
type Db = Database;
type Cx = ToolContext;

trait Clock: Send + Sync {
    fn now(&self) -> u64;
}
struct Fixed(u64);
impl Clock for Fixed {
    fn now(&self) -> u64 {
        self.0
    }
}
struct Holder<'a>(&'a str);

/// Uses everything.
#[tool]
async fn everything(db: &Db, n: u8, clock: &dyn Clock, cx: &Cx, held: &Holder<'_>, _: &dyn Clock) -> String {
    format!("{} {n} {} {} {}", db.0, clock.now(), cx.call_id(), held.0)
}

/// The same, on the blocking pool.
#[tool]
fn everything_sync<'a>(db: &'a Db, n: u8, clock: &dyn Clock, _cx: &Cx, held: &'a Holder<'a>) -> String {
    format!("{} {n} {} {}", db.0, clock.now(), held.0)
}

fn context() -> ToolContext {
    let clock: Arc<dyn Clock> = Arc::new(Fixed(5));
    let built = ToolContext::new().with_state(Database("db")).and_then(|cx| cx.with_state(Holder("held")));
    built.and_then(|cx| cx.with_shared_state(clock)).expect("one of each")
}

#[tokio::test]
async fn state_and_context_are_injected() {
    let sent = r#"{"n": 1}"#;
    assert_eq!(
        outcome(tools![everything], "everything", sent, &context()).await.text(),
        "db 1 5 call_1 held"
    );
    assert_eq!(
        outcome(tools![everything_sync], "everything_sync", sent, &context()).await.text(),
        "db 1 5 held"
    );
}

#[test]
fn injected_parameters_are_not_shown_to_the_model() {
    let definition = crate::macro_support::definition(tools![everything]);
    let names: Vec<_> =
        definition.parameters()["properties"].as_object().expect("an object").keys().collect();
    assert_eq!(names, ["n"]);
}

#[test]
fn missing_state_is_found_before_the_call() {
    let registry = Registry::new(tools![everything, everything_sync]).expect("sound");
    let error = registry.check_state(&ToolContext::new()).expect_err("nothing is there");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(
        text.contains("`everything_sync`") && text.contains("Database") && text.contains("dyn "),
        "{text}"
    );
    assert!(!text.contains("ToolContext"), "{text}");
    registry.check_state(&context()).expect("all is there");
}

#[tokio::test]
async fn missing_state_is_an_outcome_of_the_call() {
    let outcome = outcome(tools![everything], "everything", r#"{"n": 1}"#, &ToolContext::new()).await;
    assert!(matches!(outcome, ToolOutcome::Failed { .. }), "{outcome:?}");
    assert!(!outcome.text().contains("Database"), "the model has no use for the names of types");
}

#[tokio::test]
async fn a_tool_called_by_hand_looks_for_its_state_itself() {
    let registry = Registry::new(tools![everything, everything_sync]).expect("sound");
    for name in ["everything", "everything_sync"] {
        let tool = registry.get(name).expect("there");
        let cx = ToolContext::new();
        let reply = tool.call(r#"{"n": 1}"#, &cx).await;
        assert!(matches!(reply.outcome, ToolOutcome::Failed { .. }), "{reply:?}");
    }
}

#[tokio::test]
async fn work_that_nobody_waits_for_does_not_begin() {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    /// Keeps the work for later.
    #[derive(Default)]
    struct Later(Mutex<Vec<Box<dyn FnOnce() + Send>>>);
    impl tool::Executor for Later {
        fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> agent::BoxFuture<'static, ()> {
            self.0.lock().expect("sound").push(work);
            Box::pin(std::future::pending())
        }
        fn sleep(&self, _: std::time::Duration) -> Option<agent::BoxFuture<'static, ()>> {
            None
        }
    }
    struct Ran(AtomicBool);
    /// Says that it ran.
    #[tool]
    fn mark(ran: &Ran) {
        ran.0.store(true, Ordering::SeqCst);
    }

    let (later, ran) = (Arc::new(Later::default()), Arc::new(Ran(AtomicBool::new(false))));
    let cx = ToolContext::new().with_shared_state(ran.clone()).expect("one").with_executor(later.clone());
    let registry = Registry::new(tools![mark]).expect("sound");
    let tool = registry.get("mark").expect("there");
    let mut call = Box::pin(tool.call("{}", &cx));
    let poll =
        std::future::poll_fn(|task| std::task::Poll::Ready(call.as_mut().poll(task).is_pending())).await;
    assert!(poll);
    drop(call);
    for work in later.0.lock().expect("sound").drain(..) {
        work();
    }
    assert!(!ran.0.load(Ordering::SeqCst));
}
