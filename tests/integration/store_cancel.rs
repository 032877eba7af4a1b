//! Runs that have to end while their store hangs: they end soon, say what they came to, and nothing is lost.

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agent::ScriptedModel;
use agent::message::Message;
use agent::model::{ScriptedReply, reply};
use agent::store::{InvocationQuery, InvocationStatus, MemoryStore, Store as _, StoreErrorKind};
use agent::{
    Assistant, AssistantBuilder, CancelToken, RunError, RunOutput, RunStop, ToolContext, ToolOutcome,
    UsageLimits, json, tool, tools,
};
use tokio::time::Instant;

use crate::assistant_support::assert_sound;
use crate::store_support::{Fault, Faulty};

/// When the run is cancelled. A test's clock stands still but for waits, so the store hangs by then.
const CANCELLED_AT: Duration = Duration::from_millis(50);

/// What the store is waited for then: a second for what hangs, and one more to look what became of it.
const SOON: Duration = Duration::from_millis(2_050);

/// How often each body ran.
#[derive(Default)]
struct Ran {
    once: AtomicU32,
    waits: AtomicU32,
}

/// Must not happen twice.
#[tool(inline, effect = "once")]
fn once(ran: &Ran) -> &'static str {
    ran.once.fetch_add(1, Ordering::SeqCst);
    "once"
}

/// Waits until its run is cancelled.
#[tool(effect = "once")]
async fn wait(ran: &Ran, cx: &ToolContext) -> Result<(), &'static str> {
    ran.waits.fetch_add(1, Ordering::SeqCst);
    cx.cancelled().await;
    Err("stopped")
}

fn builder(replies: impl IntoIterator<Item = ScriptedReply>, ran: &Arc<Ran>) -> AssistantBuilder {
    Assistant::builder(ScriptedModel::new(replies)).tools(tools![once, wait]).shared_state(ran.clone())
}

fn replies() -> [ScriptedReply; 3] {
    let calls = reply().text("Well.").tool_call("once", "{}").tool_call("none", "{}").tool_call("once", "[]");
    [calls, reply().text("Done."), reply().text("And that, too.")]
}

fn what_it_came_to(error: RunError) -> RunOutput {
    match error {
        RunError::Store { error, output, .. } => {
            assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error}");
            *output
        }
        error => panic!("{error}"),
    }
}

/// The results of a run, by their outcomes.
fn results(output: &RunOutput) -> Vec<String> {
    let results = output.messages.iter().filter_map(|message| match &**message {
        Message::ToolResult(result) => Some(result.text()),
        _ => None,
    });
    results.collect()
}

/// The store hangs from each of its requests on; the run is cancelled; then the store is well, and the same process or
/// another one goes on.
async fn sweep(fault: Fault, is_new_process: bool) {
    let mut at = 1;
    loop {
        let what = format!("{fault:?} from request {at} on");
        let (inner, ran) = (MemoryStore::new(), Arc::<Ran>::default());
        let store = Faulty::new(&inner, fault, at, usize::MAX);
        let assistant = builder(replies(), &ran).store(store.clone()).session("s").await.unwrap();
        let (cancel, begun) = (CancelToken::new(), Instant::now());
        let prompt = assistant.prompt("go").cancel(cancel.clone());
        let cancelled = async {
            tokio::time::sleep(CANCELLED_AT).await;
            cancel.cancel("the user left");
        };
        let (result, ()) = tokio::join!(prompt, cancelled);
        if store.asked() <= at {
            result.unwrap_or_else(|error| panic!("{what}: nothing was wrong, but {error}"));
            assert!(at > 4, "{what}: a run asks more of its store");
            break;
        }
        assert!(begun.elapsed() <= SOON, "{what}: {:?} until it ended", begun.elapsed());
        let output = what_it_came_to(result.expect_err(&what));
        // Where only the end of the run was left to be told, it had come to its end.
        let is_over = output.messages.last().is_some_and(|last| last.text() == "Done.");
        assert!(output.stop == RunStop::Aborted || is_over, "{what}: {:?}", output.stop);
        assert_sound(&assistant);
        let has_run = ran.once.load(Ordering::SeqCst);
        let told = results(&output);
        // What ran says so; what did not begin is interrupted.
        if let Some(first) = told.first() {
            assert_eq!(first == "once", has_run == 1, "{what}: {told:?}");
        }
        store.heal();
        if is_new_process {
            assistant_goes_on(&inner, &ran, &what).await;
        } else {
            // What hung may have been done, which is found out.
            assistant.prompt("and now?").await.unwrap_or_else(|error| panic!("{what}, then: {error}"));
            assert_stored(&assistant, &inner, &what).await;
            assert!(!told.is_empty() || has_run == 0, "{what}: what ran was told");
        }
        assert!(ran.once.load(Ordering::SeqCst) <= 1, "{what}: `once` ran twice");
        let records = inner.list(InvocationQuery::new()).await.unwrap();
        assert!(
            records.iter().all(|record| record.status != InvocationStatus::Pending),
            "{what}: {records:?}"
        );
        if !is_new_process {
            // Each call that was answered has its record, which says what the model was told.
            let of_run = records.iter().filter(|record| record.key.run == output.run_id);
            let mut recorded: Vec<_> = of_run.collect();
            assert_eq!(recorded.len(), told.len(), "{what}: {recorded:?}, {told:?}");
            recorded.sort_by_key(|record| record.key.ord);
            for (record, told) in recorded.iter().zip(&told) {
                assert_eq!(&record.outcome().unwrap().text(), told, "{what}");
            }
        }
        at += 1;
    }
}

/// The session is the conversation of the assistant.
async fn assert_stored(assistant: &Assistant, inner: &MemoryStore, what: &str) {
    let stored = builder([], &Arc::default()).store(inner.clone()).session("s").await.unwrap();
    assert_eq!(stored.messages().shared(), assistant.messages().shared(), "{what}");
    assert!(stored.unfinished_run().is_none(), "{what}");
}

/// A prompt is dropped while the store works, and the next one continues.
#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_dropped_while_the_store_works_leaves_a_session_that_continues() {
    for fault in [Fault::Hangs, Fault::HangsWhenDone] {
        let mut at = 1;
        loop {
            let what = format!("{fault:?} at request {at}");
            let (inner, ran) = (MemoryStore::new(), Arc::<Ran>::default());
            let store = Faulty::new(&inner, fault, at, usize::MAX);
            let assistant = builder(replies(), &ran).store(store.clone()).session("s").await.unwrap();
            let dropped = tokio::time::timeout(CANCELLED_AT, assistant.prompt("go").into_future()).await;
            if dropped.is_ok() {
                assert!(at > 4, "{what}: a run asks more of its store");
                break;
            }
            store.heal();
            assistant.prompt("and now?").await.unwrap_or_else(|error| panic!("{what}, then: {error}"));
            assert_sound(&assistant);
            assert_stored(&assistant, &inner, &what).await;
            at += 1;
        }
    }
}

async fn assistant_goes_on(inner: &MemoryStore, ran: &Arc<Ran>, what: &str) {
    let stored = inner.load("s", 0, 99).await.unwrap();
    let asked = stored.iter().any(|stored| {
        matches!(&stored.1.kind, agent::store::EntryKind::Message { message, .. } if message.as_assistant().is_some())
    });
    let next = builder(replies().into_iter().skip(usize::from(asked)), ran).store(inner.clone());
    let next = next.session("s").await.unwrap();
    let went_on = match next.unfinished_run() {
        Some(_) => next.continue_run().await.map(drop),
        None => next.prompt("go").await.map(drop),
    };
    went_on.unwrap_or_else(|error| panic!("{what}, then: {error}"));
    assert_sound(&next);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_does_not_wait_for_a_store_that_hangs() {
    for fault in [Fault::Hangs, Fault::HangsWhenDone] {
        sweep(fault, true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_store_was_not_told_is_told_by_the_next_prompt() {
    for fault in [Fault::Hangs, Fault::HangsWhenDone] {
        sweep(fault, false).await;
    }
}

/// A call that had begun is interrupted; one whose begin was not recorded was not run.
#[tokio::test(start_paused = true)]
async fn calls_say_whether_they_had_begun() {
    let (inner, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    // The begin of the first call is answered, that of the second one is not.
    let store = Faulty::new(&inner, Fault::Hangs, 1, usize::MAX);
    let calls = reply().tool_call("wait", "{}").tool_call("once", "{}");
    let assistant = builder([calls, reply().text("Well.")], &ran).store(store.clone()).build().unwrap();
    let (cancel, begun) = (CancelToken::new(), Instant::now());
    let prompt = assistant.prompt("go").cancel(cancel.clone());
    let (result, ()) = tokio::join!(prompt, async {
        tokio::time::sleep(CANCELLED_AT).await;
        cancel.cancel("the user left");
    });
    assert!(begun.elapsed() <= SOON, "{:?}", begun.elapsed());
    let output = what_it_came_to(result.unwrap_err());
    assert_eq!(output.stop, RunStop::Aborted);
    assert_eq!(
        results(&output),
        ["The call was stopped: the user left.", "The call was not run: it could not be recorded."]
    );
    assert_eq!((ran.waits.load(Ordering::SeqCst), ran.once.load(Ordering::SeqCst)), (1, 0));
    let pending = inner.pending_before(i64::MAX, 9).await.unwrap();
    assert_eq!(pending.iter().map(|record| &*record.tool).collect::<Vec<_>>(), ["wait"]);

    store.heal();
    assistant.prompt("again").await.unwrap();
    let records = inner.list(InvocationQuery::new()).await.unwrap();
    let mut ends: Vec<_> = records.iter().map(|record| (record.key.ord, record.error_code())).collect();
    ends.sort_unstable();
    assert_eq!(ends, [(0, Some("aborted")), (1, Some("aborted"))]);
}

/// A run that is cancelled while the begin of a call is being recorded does not begin it.
#[tokio::test(start_paused = true)]
async fn a_call_whose_begin_is_slow_does_not_run_after_the_cancel() {
    let (inner, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    let store = Faulty::new(&inner, Fault::Slow(Duration::from_millis(500)), 0, usize::MAX);
    let assistant = builder([reply().tool_call("once", "{}")], &ran).store(store).build().unwrap();
    let cancel = CancelToken::new();
    let prompt = assistant.prompt("go").cancel(cancel.clone());
    let (result, ()) = tokio::join!(prompt, async {
        tokio::time::sleep(CANCELLED_AT).await;
        cancel.cancel("the user left");
    });
    assert!(matches!(result, Err(RunError::Aborted { .. })), "{result:?}");
    assert_eq!(ran.once.load(Ordering::SeqCst), 0);
    let records = inner.list(InvocationQuery::new()).await.unwrap();
    let Some(ToolOutcome::Interrupted { reason, .. }) = records[0].outcome() else { panic!("{records:?}") };
    assert_eq!(reason, "The call was not run: the user left.");
    assert_eq!(records[0].args, json!({}));
}

/// The time limit of a run counts as well when nothing but its store is waited for.
#[tokio::test(start_paused = true)]
async fn a_run_whose_time_is_up_does_not_wait_either() {
    let ran = Arc::<Ran>::default();
    for at in [1, 2] {
        let store = Faulty::new(&MemoryStore::new(), Fault::Hangs, at, usize::MAX);
        let limits = UsageLimits { wall_time: Some(Duration::from_millis(50)), ..UsageLimits::default() };
        let assistant = builder(replies(), &ran).limits(limits).store(store).session("s").await.unwrap();
        let begun = Instant::now();
        let output = what_it_came_to(assistant.prompt("go").await.unwrap_err());
        assert!(begun.elapsed() <= SOON, "{:?}", begun.elapsed());
        assert_eq!(output.stop, RunStop::Limit, "request {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_end_that_a_dropped_run_cannot_record_does_not_keep_the_others() {
    let (inner, ran) = (MemoryStore::new(), Arc::<Ran>::default());
    // Two begins, and the first end.
    let store = Faulty::new(&inner, Fault::Fails(StoreErrorKind::Full), 2, 1);
    let calls = reply().tool_call("wait", "{}").tool_call("wait", "{}");
    let assistant = builder([calls, reply().text("Well.")], &ran).store(store).build().unwrap();
    let dropped = tokio::time::timeout(CANCELLED_AT, assistant.prompt("go").into_future()).await;
    assert!(dropped.is_err());
    tokio::time::sleep(CANCELLED_AT).await;
    assert_eq!(inner.pending_before(i64::MAX, 9).await.unwrap().len(), 1);
    assistant.prompt("again").await.unwrap();
    let records = inner.list(InvocationQuery::new()).await.unwrap();
    let codes: Vec<_> = records.iter().map(|record| record.error_code()).collect();
    assert_eq!(codes, [Some("aborted"), Some("aborted")]);
}
