//! Drives a run, independently of its readers: a run waits only briefly for slow readers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::Response;
use tokio::sync::{mpsc, oneshot};

use super::super::{UiEncoder, UiProtocol, UiRequest, UiRequestError};
use super::UiServer;
use super::client_tools::ClientTools;
use super::response::{self, UiBody};
use super::thread::{KEPT, Reservation, ThreadState, UiThread};
use crate::error_text::with_sources;
use crate::loop_core::{Event, EventKind};
use crate::runtime::{ResumeError, Run, RunError, SuspendedRun};

/// Maximum number of pieces of a response that are queued for a reader.
pub(super) const QUEUE: usize = 256;
/// Limits of the wait for a slow reader. The wait is a number of yields to other tasks, and then a number of pauses.
const YIELDS: usize = 64;
const PAUSES: usize = 5;
const PAUSE: Duration = Duration::from_millis(2);

impl UiServer {
    pub(super) async fn begin(
        &self,
        reserved: Reservation,
        protocol: UiProtocol,
        request: &UiRequest,
        run: Run,
        is_resumed: bool,
        tools: Option<ClientTools>,
    ) -> Result<Response<UiBody>, UiRequestError> {
        let thread = reserved.thread().clone();
        let previous_tools = std::mem::replace(&mut thread.lock().client_tools, tools);
        let (registry, options) = self.shown_by(&thread);
        let mut encoder = UiEncoder::new(protocol, &registry, &options, request);
        let (sender, live) = mpsc::channel(QUEUE);
        let is_cut = Arc::new(AtomicBool::new(false));
        if is_resumed {
            // The encoder reads the earlier events of the run to learn its calls. The chunks are dropped, because the client already has
            // them. No other event is added to the log during this time, because the thread is reserved.
            let ((events, _), mut known) = (thread.lock().log.events(), Vec::new());
            for event in &events {
                encoder.encode(event, &mut known);
            }
            encoder.end(&mut known);
        }
        let previous_log = (!is_resumed).then(|| thread.take_log());
        let (id, previous) = {
            let mut state = thread.lock();
            let handle = run.handle();
            let previous = (
                state.run_id.replace(handle.run_id().into()),
                std::mem::replace(&mut state.is_current, request.is_current),
                state.error_code.take(),
            );
            state.handle = Some(handle);
            (state.add_reader(protocol, Some(encoder), sender, is_cut.clone()), previous)
        };
        let begun = launch(reserved, run, move |state| {
            state.client_tools = previous_tools;
            (state.run_id, state.is_current, state.error_code) = previous;
            if let Some(log) = previous_log {
                state.log = log;
            }
        });
        let body = self.body(&thread, protocol, VecDeque::new(), live, is_cut, id);
        begun.await?;
        Ok(response::stream(protocol, body))
    }

    /// Continues the run that an earlier process left in the session of a thread, if [`continue_runs`](Self::continue_runs) is set.
    pub(super) async fn continue_unfinished(
        &self,
        scope: &Arc<str>,
        thread: &Arc<UiThread>,
        tools: Option<ClientTools>,
    ) -> Result<(), UiRequestError> {
        if !self.shared.continues_runs || thread.assistant.unfinished_run().is_none() {
            return Ok(());
        }
        // Without the tools that the front end declares, calls of these tools would end as calls of unknown tools, so the run has to wait.
        if tools.is_none() && self.shared.options.client_tools && thread.needs_client_tools() {
            return Ok(());
        }
        // If the thread is reserved, another request is already continuing this run or beginning another run.
        let Ok(reserved) = thread.reserve() else { return Ok(()) };
        self.shared.check_runs(scope)?;
        let prompt = thread.assistant.continue_run();
        let run = match &tools {
            Some(tools) => prompt.with_tools(tools.tools.clone()).stream(),
            None => prompt.stream(),
        };
        let previous = {
            let mut state = thread.lock();
            state.handle = Some(run.handle());
            (std::mem::replace(&mut state.client_tools, tools), state.error_code.take())
        };
        launch(reserved, run, |state| (state.client_tools, state.error_code) = previous).await
    }

    pub(super) fn body(
        &self,
        thread: &Arc<UiThread>,
        protocol: UiProtocol,
        ready: VecDeque<bytes::Bytes>,
        live: mpsc::Receiver<bytes::Bytes>,
        is_cut: Arc<AtomicBool>,
        id: u64,
    ) -> UiBody {
        let (thread, policy) = (Arc::downgrade(thread), self.shared.reconnect_time);
        UiBody::new(protocol, ready, Some(live), is_cut, self.shared.limits.keep_alive, move || {
            if let Some(thread) = thread.upgrade() {
                leave(&thread, id, policy);
            }
        })
    }
}

/// Drives a run in a separate task. The returned future completes when the run has begun, or failed to begin. `restore` is called if the
/// run fails to begin, before another run can begin.
fn launch(
    reserved: Reservation,
    run: Run,
    restore: impl FnOnce(&mut ThreadState) + Send + 'static,
) -> impl Future<Output = Result<(), UiRequestError>> {
    let (begun, has_begun) = oneshot::channel();
    tokio::spawn(drive(reserved.thread().clone(), run, begun, restore));
    reserved.keep();
    async {
        match has_begun.await {
            Ok(begun) => begun.map_err(|error| rejected(&error)),
            Err(_) => Err(UiRequestError::Unavailable),
        }
    }
}

/// Removes a reader. If no reader is left, the run is cancelled after `reconnect_time`, unless a reader connects before that time.
fn leave(thread: &Arc<UiThread>, id: u64, reconnect_time: Duration) {
    let (gone, handle, attendance) = {
        let mut state = thread.lock();
        let gone = state.remove_reader(id);
        let is_alone = !state.has_readers() && state.is_active();
        (gone, state.handle.clone().filter(|_| is_alone), state.attendance)
    };
    drop(gone);
    let Some(handle) = handle else { return };
    if reconnect_time.is_zero() {
        return handle.cancel("the reader disconnected");
    }
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let thread = Arc::downgrade(thread);
    runtime.spawn(async move {
        tokio::time::sleep(reconnect_time).await;
        let Some(thread) = thread.upgrade() else { return };
        let is_still_alone = {
            let state = thread.lock();
            state.attendance == attendance && !state.has_readers()
        };
        if is_still_alone {
            handle.cancel("no reader came back");
        }
    });
}

/// A guard that makes a thread idle again, even if the task that drives its run ends early.
struct SettleOnDrop(Option<Arc<UiThread>>);

impl Drop for SettleOnDrop {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            thread.settle(None);
        }
    }
}

async fn drive(
    thread: Arc<UiThread>,
    mut run: Run,
    begun: oneshot::Sender<Result<(), RunError>>,
    restore: impl FnOnce(&mut ThreadState),
) {
    let mut unsettled = SettleOnDrop(Some(thread.clone()));
    let Some(first) = run.next().await else {
        let error = run.output().await.err().unwrap_or(RunError::NoRuntime);
        let suspended = thread.suspended();
        restore(&mut thread.lock());
        unsettled.0 = None;
        thread.settle(suspended);
        drop(begun.send(Err(error)));
        return;
    };
    // `restore` holds the events of the previous run, which are not needed during this run.
    drop(restore);
    let mut begun = Some(begun);
    let mut next = Some(first);
    let mut last = None;
    while let Some(event) = next {
        if event.is_own() && matches!(event.kind, EventKind::AgentEnd { .. }) {
            // The last event is sent later, because the kind of an error is known only when the run has returned.
            last = Some(event);
        } else {
            publish(&thread, &event).await;
        }
        if let Some(begun) = begun.take() {
            drop(begun.send(Ok(())));
        }
        next = run.next().await;
    }
    let run_id = run.handle().run_id().to_owned();
    let (suspended, error): (Option<SuspendedRun>, Option<RunError>) = match run.output().await {
        Ok(output) => (output.snapshot, None),
        Err(RunError::Suspended(snapshot)) => (Some(snapshot), None),
        Err(error) => (None, Some(error)),
    };
    if let Some(error) = error {
        let code = code_of(&error);
        tracing::warn!(%run_id, code, error = %with_sources(&error), "a run of a front end failed");
        thread.lock().error_code = Some(code.to_owned());
    }
    if let Some(event) = last {
        publish(&thread, &event).await;
    }
    // Disarms the guard, because another run may have begun when the guard is dropped.
    unsettled.0 = None;
    thread.settle(suspended);
    let thread = Arc::downgrade(&thread);
    tokio::time::sleep(KEPT).await;
    if let Some(thread) = thread.upgrade() {
        thread.forget(&run_id);
    }
}

/// Sends an event to the readers. If the queue of a reader is more than half full, waits briefly until the reader catches up.
async fn publish(thread: &UiThread, event: &Arc<Event>) {
    if !thread.publish(event) {
        return;
    }
    for turn in 0..YIELDS + PAUSES {
        if turn < YIELDS {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(PAUSE).await;
        }
        if !thread.has_late_reader() {
            return;
        }
    }
}

fn code_of(error: &RunError) -> &'static str {
    match error.as_model_error() {
        Some(error) => error.kind().as_str(),
        None => error.code(),
    }
}

/// Converts the error of a run that does not begin. The log contains the code of the error, or the text of a failed resumption.
fn rejected(error: &RunError) -> UiRequestError {
    match error {
        RunError::Resume(ResumeError::InputRefused { request_id, error }) => {
            UiRequestError::refused_input(request_id, error)
        }
        RunError::Resume(error) => {
            tracing::warn!(error = %with_sources(error), "a run that waited cannot be resumed");
            UiRequestError::NotPending
        }
        RunError::Busy => UiRequestError::Busy { run_id: String::new() },
        error => {
            let text = with_sources(error);
            tracing::error!(code = error.code(), error = %text, "a run of a front end does not begin");
            UiRequestError::Unavailable
        }
    }
}
