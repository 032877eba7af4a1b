//! Performs a run, or one tool call, on a durable execution engine.

use std::sync::Arc;
use std::time::Duration;

use super::deadline::{Clock, SharedDeadline, cancel_at, measured};
use super::journal::{Journal, RetryPolicy, RunJournal, StepResult, ToolRequest};
use super::running::{ActiveGuard, ActiveRuns};
use super::steps::JournalSteps;
use super::{Outcome, RunRequest};
use crate::loop_core::{AgentLoop, CallEnd, Queue};
use crate::message::Message;
use crate::run_path::RunPath;
use crate::runtime::{
    CheckedArguments, ChildReport, JournaledCall, NEW_MESSAGE, Performer, ServedAssistant, mark_steered,
};
use crate::steps::{SharedLoop, StepError, drive};
use crate::tool::cancel::CancelToken;

#[derive(Clone)]
pub(super) struct SharedService {
    pub(super) assistant: Arc<ServedAssistant>,
    pub(super) model_timeout: Duration,
    /// The longest time that a call of the assistant or of one of its sub-agents may take, except calls that start a sub-agent.
    pub(super) longest_call: Duration,
    pub(super) running: ActiveRuns,
    pub(super) model_retry: RetryPolicy,
    /// Maximum time that a run waits for a decision, an input or a result from outside.
    pub(super) patience: Duration,
    pub(super) clock: Clock,
}

impl SharedService {
    /// Returns the service with the assistant at `path`: the root or a sub-agent.
    pub(super) fn at(self: &Arc<Self>, path: &RunPath) -> Result<Arc<Self>, StepError> {
        let mut assistant = self.assistant.root().clone();
        for call in path.calls() {
            let Some(Ok(child)) = assistant.child(&call.tool) else {
                return Err(StepError::engine(format!(
                    "the assistant `{path}` is not served; serve the version that started its run"
                )));
            };
            assistant = Arc::new(child);
        }
        Ok(Arc::new(Self { assistant, ..(**self).clone() }))
    }

    pub(super) fn longest_step(&self) -> Duration {
        self.longest_call.max(self.model_timeout.saturating_add(self.assistant.cancel_grace()))
    }

    pub(super) fn time_of_step(&self) -> Option<u64> {
        self.assistant.has_time_limit().then(|| self.clock.now())
    }

    pub(super) fn pushed(&self, run: &str, queue: Queue) {
        if queue == Queue::Steering {
            self.running.steer(run);
        }
    }

    /// Registers a run of the assistant, or a call of such a run, as active in this process until the guard is dropped.
    pub(super) fn enter(&self, run: &str) -> ActiveGuard {
        self.running.enter(run, self.assistant.steering_policy())
    }
}

/// Performs one run from its beginning to its end. `served` has the assistant of the run, which may be a sub-agent.
pub(super) async fn play<J: RunJournal>(
    served: &Arc<SharedService>,
    journal: &J,
    mut request: RunRequest,
    cancel: CancelToken,
) -> Result<Outcome, StepError> {
    let run: Arc<str> = std::mem::take(&mut request.run).into();
    let child = request.child.take();
    let begun = begin(served, journal, &run, request, &cancel).await;
    if matches!(&begun, Err(error) if !matches!(error, StepError::Engine { .. })) {
        // The run is over, so further messages are refused. `close` returns false if a notice to the run arrived first.
        while !journal.close().await? {}
    }
    let (performer, core) = begun?;
    let inherited = child.as_ref().and_then(|child| child.time_limit);
    let time_limit = match served.assistant.wall_time() {
        Some(allowed) => {
            let now = Box::pin(std::future::ready(Ok(served.clock.now())));
            let begun = journal.run(format!("{run}/begun"), RetryPolicy::ONE_ATTEMPT, now).await?;
            Some(SharedDeadline { begun, allowed }.nearer(inherited))
        }
        None => inherited,
    };
    let (is_child, work_limit) = (child.is_some(), child.as_ref().and_then(|child| child.work_limit));
    let (core, path) = (SharedLoop::new(core), child.map(|child| child.path).unwrap_or_default());
    let mut steps = JournalSteps::new(served, journal, performer, time_limit, core.clone(), path);
    steps.work.allowed = work_limit;
    let driven = Box::pin(drive(&core, &mut steps));
    let driven = cancel_at(time_limit, &served.clock, &served.running, &run, driven).await;
    // After a temporary failure of the engine the run is replayed, so its inbox stays open.
    if !matches!(driven, Err(StepError::Engine { .. })) {
        steps.close().await?;
    }
    driven?;
    let worked = steps.work.worked;
    let run = core.lock();
    let answer = served.assistant.answer(&run);
    let report = is_child.then(|| ChildReport { worked, ..served.assistant.child_report(&run, &answer) });
    let outcome = Outcome::new(&run, answer);
    Ok(match report {
        Some(report) => outcome.of_call(report),
        None => outcome,
    })
}

async fn begin<J: RunJournal>(
    served: &SharedService,
    journal: &J,
    run: &Arc<str>,
    mut request: RunRequest,
    cancel: &CancelToken,
) -> Result<(Performer, AgentLoop), StepError> {
    let prompts = request.prompts();
    // State that is missing or invalid is refused here, before the first step.
    let performer = served.assistant.performer(run, cancel, &request.state)?;
    let mut core = served.assistant.begin(run, request.state, request.history, prompts);
    if let Some(turn) = request.recorded {
        // The journal records whether the model is asked, because a function of the application may decide otherwise on a replay.
        let asks = served.assistant.needs_follow_up(&turn);
        let work = Box::pin(std::future::ready(Ok(asks)));
        let asks: bool = journal.run(format!("{run}/recorded"), RetryPolicy::ONE_ATTEMPT, work).await?;
        core.record(turn, asks)?;
    }
    Ok((performer, core))
}

/// Runs one call. For a `once` tool, each attempt first records a unique name in the journal. If the journal already has another name, the
/// tool may have begun before, so the call is lost.
pub(super) async fn call_tool<J: Journal>(
    served: &Arc<SharedService>,
    journal: &J,
    request: ToolRequest,
    (reply, checked): (Option<Arc<Message>>, Option<Arc<CheckedArguments>>),
    cancel: CancelToken,
) -> Result<StepResult<CallEnd>, StepError> {
    let name = request.step_name();
    let ToolRequest { key, call, text, state, inputs, path, limit, .. } = request;
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
        let run = key.run.clone();
        let call = JournaledCall { key, call, reply, text, checked, inputs, is_lost, path, child: None };
        let body = Box::pin(performer.call(call));
        let (mut value, took) = measured(limit, (&served.clock, &served.running), &run, body).await;
        if token.reason().as_deref() == Some(NEW_MESSAGE) {
            mark_steered(&mut value.outcome);
        }
        Ok(StepResult { value, stop: cancel.reason(), at: served.time_of_step(), took })
    });
    journal.run(name, RetryPolicy::ONE_ATTEMPT, work).await
}
