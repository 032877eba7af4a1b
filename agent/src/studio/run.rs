//! A run that was started in the browser. The run continues even if no browser follows it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::json;
use tokio::sync::watch;

use super::conversations::StudioConversation;
use super::response::{Rejection, StudioResponse, with_headers};
use super::run_log::{LogPosition, RunLog};
use super::waiting::{PageDecision, WaitingRun};
use crate::runtime::{Run, RunError, RunHandle, SuspendedRun};
use crate::serve::{Lifecycle, ShutdownPhase};

const PING: Duration = Duration::from_secs(10);
const MAX_DECISIONS: usize = 1000;

pub(super) struct StudioRun {
    pub(super) conversation: Arc<StudioConversation>,
    pub(super) began: Instant,
    /// The number of messages of the conversation before the run.
    pub(super) from: usize,
    id: String,
    state: Mutex<RunProgress>,
    /// A counter that changes with each event.
    changed: watch::Sender<u64>,
}

struct RunProgress {
    log: RunLog,
    phase: RunPhase,
    /// The reason why the active run was cancelled. If the run was suspended before the cancellation took effect, the suspended run is
    /// abandoned for this reason.
    cancelled: Option<String>,
}

impl RunProgress {
    fn abandon(&mut self, reason: &str) {
        self.log.push_json(json!({"type": "studio_abandoned", "reason": reason}));
    }
}

enum RunPhase {
    Active(RunHandle),
    Waiting(Box<WaitingRun>),
    Over,
}

impl StudioRun {
    /// Creates the state of a run. The caller must then call [`drive`].
    pub(super) fn new(conversation: Arc<StudioConversation>, handle: RunHandle) -> Arc<Self> {
        let (began, from) = (Instant::now(), conversation.assistant.messages().len());
        let id = handle.run_id().to_owned();
        let progress =
            RunProgress { log: RunLog::new(began), phase: RunPhase::Active(handle), cancelled: None };
        let (state, changed) = (Mutex::new(progress), watch::Sender::new(0));
        Arc::new(Self { conversation, began, from, id, state, changed })
    }

    fn lock(&self) -> MutexGuard<'_, RunProgress> {
        // Poisoning is ignored, because no code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.lock().phase, RunPhase::Over)
    }

    pub(super) fn cancel(&self, reason: &str) {
        let mut state = self.lock();
        match &state.phase {
            RunPhase::Active(handle) => {
                let handle = handle.clone();
                state.cancelled = Some(reason.to_owned());
                drop(state);
                handle.cancel(reason);
            }
            RunPhase::Waiting(_) => {
                let waited = std::mem::replace(&mut state.phase, RunPhase::Over);
                state.abandon(reason);
                drop(state);
                drop(waited);
                self.notify();
            }
            RunPhase::Over => {}
        }
    }

    pub(super) fn steer(&self, text: String) -> Result<(), Rejection> {
        let reason = match &self.lock().phase {
            RunPhase::Active(handle) => {
                drop(handle.steer(text));
                return Ok(());
            }
            RunPhase::Waiting(_) => "The run waits for decisions or results: answer its calls first.",
            RunPhase::Over => "The run is over: start another one.",
        };
        Err(Rejection::conflict("not_active", reason))
    }

    fn notify(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Adds answers to a suspended run. Resumes the run when all its requests and questions are answered.
    pub(super) fn decide(self: &Arc<Self>, made: Vec<PageDecision>) -> Result<(), Rejection> {
        if made.is_empty() || made.len() > MAX_DECISIONS {
            return Err(Rejection::invalid(format!("A request has 1 to {MAX_DECISIONS} decisions.")));
        }
        let mut state = self.lock();
        let RunPhase::Waiting(waiting) = &mut state.phase else {
            return Err(Rejection::conflict(
                "not_waiting",
                "The run waits for no decision: another page may have answered.",
            ));
        };
        let ids = waiting.add(made)?;
        let Some(decisions) = waiting.decisions() else {
            state.log.push_json(json!({"type": "studio_answered", "ids": ids}));
            drop(state);
            self.notify();
            return Ok(());
        };
        let run = self.conversation.assistant.resume(waiting.suspended(), decisions).stream();
        let RunPhase::Waiting(waiting) = std::mem::replace(&mut state.phase, RunPhase::Active(run.handle()))
        else {
            return Ok(());
        };
        let suspended = Box::new(waiting.into_suspended());
        drop(state);
        tokio::spawn(drive(self.clone(), run, Some(suspended)));
        Ok(())
    }

    /// Returns a stream of server-sent events: the events after a position, and then each new event.
    pub(super) fn events(self: &Arc<Self>, from: LogPosition, lifecycle: &Lifecycle) -> StudioResponse {
        let reader = RunReader {
            run: self.clone(),
            changed: self.changed.subscribe(),
            at: from,
            lifecycle: lifecycle.clone(),
            is_over: false,
        };
        let frames = futures_util::stream::unfold(reader, |mut reader| async move {
            let bytes = reader.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(bytes)), reader))
        });
        with_headers("text/event-stream", StreamBody::new(frames).boxed_unsync())
    }
}

struct RunReader {
    run: Arc<StudioRun>,
    changed: watch::Receiver<u64>,
    at: LogPosition,
    lifecycle: Lifecycle,
    is_over: bool,
}

impl RunReader {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_over {
                return None;
            }
            // The change is marked as seen before the log is read, so that no later change is missed.
            self.changed.mark_unchanged();
            let (text, is_run_over) = {
                let state = self.run.lock();
                let (text, at) = state.log.after(self.at);
                self.at = at;
                (text, matches!(state.phase, RunPhase::Over))
            };
            if !text.is_empty() {
                return Some(text.into());
            }
            if is_run_over {
                self.is_over = true;
                return Some(Bytes::from_static(b"event: over\ndata: {}\n\n"));
            }
            tokio::select! {
                changed = self.changed.changed() => changed.ok()?,
                () = tokio::time::sleep(PING) => return Some(Bytes::from_static(b": still here\n\n")),
                () = self.lifecycle.reached(ShutdownPhase::Draining) => return None,
            }
        }
    }
}

/// Logs the events of a run until it ends or is suspended. `before` is the suspended run that was resumed. If resuming fails, `before`
/// waits again.
pub(super) async fn drive(to: Arc<StudioRun>, mut run: Run, before: Option<Box<SuspendedRun>>) {
    let mut unfinished = OverOnDrop(Some(to.clone()));
    while let Some(event) = run.next().await {
        to.lock().log.push(&event);
        to.notify();
    }
    let (mut waits, error) = match run.output().await {
        Ok(output) => (output.snapshot.map(Box::new), None),
        Err(RunError::Suspended(snapshot)) => (Some(Box::new(snapshot)), None),
        Err(error @ RunError::Resume(_)) => (before, Some(error)),
        Err(error) => (None, Some(error)),
    };
    unfinished.0 = None;
    let mut state = to.lock();
    if let Some(error) = error {
        state.log.push_json(json!({"type": "studio_error", "message": error.to_string()}));
    }
    let cancelled = state.cancelled.take();
    let abandoned = waits.take_if(|_| cancelled.is_some());
    if let (Some(_), Some(reason)) = (&abandoned, cancelled) {
        state.abandon(&reason);
    }
    state.phase = match waits {
        Some(suspended) => {
            let waiting = WaitingRun::new(*suspended);
            state.log.push_json(waiting.to_event());
            RunPhase::Waiting(Box::new(waiting))
        }
        None => RunPhase::Over,
    };
    drop(state);
    to.notify();
}

/// Guard that marks a run as over if its task ends early, for example by a panic.
struct OverOnDrop(Option<Arc<StudioRun>>);

impl Drop for OverOnDrop {
    fn drop(&mut self) {
        if let Some(run) = self.0.take() {
            run.lock().phase = RunPhase::Over;
            run.notify();
        }
    }
}
