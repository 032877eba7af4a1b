//! A run, and a call, from the beginning to the end on an engine.

use std::sync::Arc;
use std::time::Duration;

use super::deadline::{Clock, SharedDeadline, cancel_at};
use super::journal::{Journal, RetryPolicy, RunJournal, StepResult, ToolRequest};
use super::running::{ActiveRuns, STEERED};
use super::steps::JournalSteps;
use super::{Outcome, RunRequest};
use crate::loop_core::{CallEnd, Queue, SteeringPolicy};
use crate::message::Message;
use crate::runtime::{JournaledCall, ServedAssistant, mark_steered};
use crate::steps::{SharedLoop, StepError, drive};
use crate::tool::cancel::CancelToken;

/// The assistant that is served, the same for every run.
pub(super) struct SharedService {
    pub(super) assistant: ServedAssistant,
    pub(super) running: ActiveRuns,
    /// The attempts for one reply of the model.
    pub(super) model_retry: RetryPolicy,
    /// The time that a run waits for a decision or a result from outside.
    pub(super) patience: Duration,
    pub(super) clock: Clock,
}

impl SharedService {
    /// Returns the time to remember with a step, if runs have a time limit.
    pub(super) fn time_of_step(&self) -> Option<u64> {
        self.assistant.wall_time().map(|_| self.clock.now())
    }

    /// Acts on a message that was accepted for a run: it may stop the calls that run in this process.
    pub(super) fn pushed(&self, run: &str, queue: Queue) {
        if queue == Queue::Steering && self.assistant.steering_policy() == SteeringPolicy::CancelRunning {
            self.running.stop_calls(run);
        }
    }
}

/// Drives one run from its beginning to its end.
pub(super) async fn play<J: RunJournal>(
    served: &Arc<SharedService>,
    journal: &J,
    mut request: RunRequest,
    cancel: CancelToken,
) -> Result<Outcome, StepError> {
    let run: Arc<str> = std::mem::take(&mut request.run).into();
    let prompts = request.prompts();
    // State that does not fit is refused before the first step.
    let performer = served.assistant.performer(&run, &cancel, &request.state)?;
    let mut core = served.assistant.begin(&run, request.state, request.history, prompts);
    if let Some(turn) = request.recorded {
        // Remembered, because the tool's answer may change from one moment to the next.
        let asks = served.assistant.needs_follow_up(&turn);
        let work = Box::pin(std::future::ready(Ok(asks)));
        let asks: bool = journal.run(format!("{run}/recorded"), RetryPolicy::ONE_ATTEMPT, work).await?;
        core.record(turn, asks)?;
    }
    let time_limit = match served.assistant.wall_time() {
        Some(allowed) => {
            let now = Box::pin(std::future::ready(Ok(served.clock.now())));
            let begun = journal.run(format!("{run}/begun"), RetryPolicy::ONE_ATTEMPT, now).await?;
            Some(SharedDeadline { begun, allowed })
        }
        None => None,
    };
    let core = SharedLoop::new(core);
    let mut steps = JournalSteps::new(served, journal, performer, time_limit);
    let driven = Box::pin(drive(&core, &mut steps));
    let driven = cancel_at(time_limit, &served.clock, &served.running, &run, driven).await;
    // An engine that failed temporarily replays all of this.
    if !matches!(driven, Err(StepError::Engine { .. })) {
        steps.close().await?;
    }
    driven?;
    let run = core.lock();
    Ok(Outcome::new(&run, served.assistant.answer(&run)))
}

/// Runs one call. If the tool is `once`, the call begins at most once: its begin is remembered first, under a name unique to this attempt. An
/// attempt that finds another name knows that the body may have begun before.
pub(super) async fn call_tool<J: Journal>(
    served: &Arc<SharedService>,
    journal: &J,
    request: ToolRequest,
    reply: Option<Arc<Message>>,
    cancel: CancelToken,
) -> Result<StepResult<CallEnd>, StepError> {
    let name = request.step_name();
    let ToolRequest { key, call, text, state, inputs, .. } = request;
    let mut is_lost = false;
    if served.assistant.is_once(&call) {
        let mine = crate::runtime::new_id("attempt");
        let own = mine.clone();
        let begins = Box::pin(async move { Ok(own) });
        let begun: String = journal.run(format!("{name}/begin"), RetryPolicy::ONE_ATTEMPT, begins).await?;
        is_lost = begun != mine;
    }
    let token = served.running.call_token(&key.run).unwrap_or_else(|| cancel.clone());
    let performer = served.assistant.performer(&key.run, &token, &state)?;
    let served = served.clone();
    let work = Box::pin(async move {
        let mut value = performer.call(JournaledCall { key, call, reply, text, inputs, is_lost }).await;
        if token.reason().as_deref() == Some(STEERED) {
            mark_steered(&mut value.outcome);
        }
        Ok(StepResult { value, stop: cancel.reason(), at: served.time_of_step() })
    });
    journal.run(name, RetryPolicy::ONE_ATTEMPT, work).await
}
