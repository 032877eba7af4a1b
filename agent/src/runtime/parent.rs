//! Calls that start a child: the run of a sub-agent. [`ParentRun`] holds the options, limits and listeners that a child takes from the run
//! that calls it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::approval::Resumption;
use super::assistant::Assistant;
use super::config::Config;
use super::in_process::InProcessSteps;
use super::listener::EventSlot;
#[cfg(feature = "durable-restate")]
use crate::loop_core::CHILD_HANDLE;
use crate::loop_core::{AgentLoop, ChildState, Event, RunPath, Spent, TreeBudget};
use crate::message::ToolCall;
#[cfg(feature = "durable-restate")]
use crate::message::UserMessage;
use crate::step_key::StepKey;
use crate::steps::{SharedLoop, StepError};
#[cfg(feature = "durable-restate")]
use crate::tool::outcome::ToolOutcome;

/// Additional grace period of a cancelled call that runs a sub-agent, in which the sub-agent records the ends of its own calls.
pub(crate) const CHILD_GRACE: Duration = Duration::from_secs(2);

/// The calls of a run that started children and have not ended, each with its position in the reply.
pub(super) type RunningChildren = Arc<Mutex<Vec<(u32, Arc<ChildCall>)>>>;

/// Returns a copy of a run with its running children. The end of a child is recorded under the lock of the run, so the copy misses no
/// child.
fn snapshot_of_tree(run: &SharedLoop, children: &RunningChildren) -> AgentLoop {
    let run = run.lock();
    let mut copy = run.snapshot();
    for (ord, call) in lock_children(children).iter() {
        if let Some(child) = call.snapshot() {
            copy.embed_child(*ord, Box::new(child));
        }
    }
    copy
}

pub(super) fn lock_children(children: &RunningChildren) -> MutexGuard<'_, Vec<(u32, Arc<ChildCall>)>> {
    // Nothing that can panic runs while the lock is held, so it is never poisoned.
    children.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct ParentRun {
    assistant: Assistant,
    reader: Option<EventSlot>,
    config: Arc<Config>,
    pub(super) has_session: bool,
    pub(super) path: RunPath,
    pub(super) budget: Arc<TreeBudget>,
    pub(super) max_children: u32,
    /// The permits for concurrent requests, shared by all sub-agents of the root run. A run makes no requests while its children run, so
    /// no child waits for a permit of its parent.
    requests: Arc<Semaphore>,
    above: Option<Arc<ParentRun>>,
}

impl ParentRun {
    /// Notifies the listeners and readers of this run and of all runs above it. `is_measured` is true if a meter of a run below this run
    /// has measured the event.
    pub(super) async fn notify(&self, event: &Arc<Event>, mut is_measured: bool) {
        let mut parent = Some(self);
        while let Some(run) = parent {
            let listeners = run.assistant.state().listeners.clone();
            listeners.notify_above(event, is_measured);
            is_measured |= run.config.is_measured();
            if let Some(reader) = &run.reader {
                reader.hand_over(event.clone()).await;
            }
            parent = run.above.as_deref();
        }
    }

    /// Returns whether the depth limit forbids children of this run.
    pub(super) fn is_too_deep(&self) -> bool {
        self.config.max_depth == 0
    }

    /// Notifies the listeners of this run and of all runs above it, but not the readers of their streams. This function is called while a
    /// run is dropped, and dropping cannot wait for a reader.
    pub(super) fn notify_at_once(&self, event: &Arc<Event>, mut is_measured: bool) {
        let mut parent = Some(self);
        while let Some(run) = parent {
            let listeners = run.assistant.state().listeners.clone();
            listeners.notify_above(event, is_measured);
            is_measured |= run.config.is_measured();
            parent = run.above.as_deref();
        }
    }

    /// Returns the assistant of a sub-agent: a copy of `of`, or else a copy of this run's assistant without messages.
    pub(super) fn assistant_of_child(&self, of: Option<&Assistant>) -> Assistant {
        let messages = of.map(Assistant::messages).unwrap_or_default();
        #[cfg_attr(not(feature = "studio"), expect(unused_mut, reason = "only the studio wraps models"))]
        let mut config = of.unwrap_or(&self.assistant).config().within(&self.config);
        #[cfg(feature = "studio")]
        if let (Some(_), Some(wrap)) = (of, &self.assistant.config().wrap_model) {
            config.wrap_models(wrap.clone());
        }
        Assistant::new(Arc::new(config), messages)
    }
}

impl Config {
    /// Returns the configuration for runs of this assistant as a sub-agent of a run with the configuration `parent`.
    pub(super) fn within(&self, parent: &Self) -> Self {
        let mut config = self.clone();
        config.approver = config.approver.or_else(|| parent.approver.clone());
        config.answerer = config.answerer.or_else(|| parent.answerer.clone());
        config.keeper.clone_from(&parent.keeper);
        // Only the root run is signed. Its signature covers the runs of its sub-agents.
        config.signer = None;
        config.max_depth = parent.max_depth.saturating_sub(1);
        config.show_tools(config.registry.definitions());
        config
    }
}

/// The state value from which the function of a sub-agent's tool gets the [`ChildCall`].
pub(super) struct ChildHandle(pub(super) Arc<ChildCall>);

pub(super) struct ChildCall {
    pub(super) parent: Arc<ParentRun>,
    /// The id of the child's run, which is the text of the call's [`StepKey`].
    pub(super) run_id: Arc<str>,
    pub(super) path: RunPath,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    continued: Option<(Box<AgentLoop>, Resumption)>,
    run: Option<SharedLoop>,
    children: RunningChildren,
    suspended: Option<Box<AgentLoop>>,
    /// The amounts that the child used, if it ended in an earlier process.
    ended: Option<Box<Spent>>,
}

impl ChildCall {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_continued(&self) -> bool {
        self.inner().continued.is_some()
    }

    pub(super) fn take_continued(&self) -> Option<(Box<AgentLoop>, Resumption)> {
        self.inner().continued.take()
    }

    /// Records that the child has begun. Returns the list to which the child adds its own children.
    pub(super) fn begun(&self, run: &SharedLoop) -> RunningChildren {
        let mut inner = self.inner();
        inner.run = Some(run.clone());
        inner.children.clone()
    }

    /// Returns a copy of the child's run, or `None` if a new child has not begun.
    fn snapshot(&self) -> Option<AgentLoop> {
        let inner = self.inner();
        match (&inner.suspended, &inner.run) {
            (Some(run), _) => Some((**run).clone()),
            (None, Some(run)) => Some(snapshot_of_tree(run, &inner.children)),
            (None, None) => inner.continued.as_ref().map(|(run, _)| (**run).clone()),
        }
    }

    pub(super) fn suspended(&self, run: AgentLoop) {
        self.inner().suspended = Some(Box::new(run));
    }

    pub(super) fn ended(&self, spent: Spent) {
        self.parent.budget.add(&Spent { runs: spent.runs.saturating_add(1), ..spent.clone() });
        self.inner().ended = Some(Box::new(spent));
    }

    /// Returns the amounts that the child used, or `None` if the child has not begun or is suspended.
    pub(super) fn spent(&self) -> Option<Spent> {
        let inner = self.inner();
        let of_run = || inner.run.as_ref().map(|run| run.lock().spent());
        inner.ended.as_deref().cloned().or_else(of_run).filter(|_| inner.suspended.is_none())
    }

    /// Removes and returns the state of the sub-agent's run, or `None` if no run began. Called after the tool's function has ended.
    pub(super) fn take_state(&self) -> Option<ChildState> {
        let spent = self.spent();
        let suspended = std::mem::take(&mut *self.inner()).suspended;
        suspended.map(ChildState::Suspended).or_else(|| spent.map(|spent| ChildState::Ended(Box::new(spent))))
    }
}

impl InProcessSteps {
    pub(super) fn child_call(&mut self, key: &StepKey, call: &ToolCall) -> Arc<ChildCall> {
        let parent = self.as_parent();
        let run_id: Arc<str> = key.to_string().into();
        let path = parent.path.with(&call.id, &call.name, &run_id);
        let inner = Inner { continued: self.continued.remove(&key.ord), ..Inner::default() };
        let call = Arc::new(ChildCall { parent, run_id, path, inner: Mutex::new(inner) });
        let children = self.children.get_or_insert_default();
        lock_children(children).push((key.ord, call.clone()));
        if let Some(active) = &mut self.assistant.state().active
            && active.copy_tree.is_none()
        {
            let (run, children) = (self.run.clone(), children.clone());
            active.copy_tree = Some(Arc::new(move || snapshot_of_tree(&run, &children)));
        }
        call
    }

    /// Waits for a permit to make a request. Returns `None` at once if the run has no parent. Fails if the run is stopped.
    pub(super) async fn request_place(&mut self) -> Result<Option<OwnedSemaphorePermit>, StepError> {
        let Some(parent) = &self.parent else { return Ok(None) };
        let place = Box::pin(parent.requests.clone().acquire_owned());
        // Acquiring fails only if the semaphore is closed, which never happens.
        self.performer.until_stopped(place).await.map(Result::ok).ok_or_else(|| self.stopped())
    }

    pub(super) fn as_parent(&mut self) -> Arc<ParentRun> {
        if let Some(parent) = &self.as_parent {
            return parent.clone();
        }
        let config = &self.performer.config;
        let (path, budget) = {
            let mut run = self.run.lock();
            (run.path().clone(), run.tree_budget())
        };
        let parent = Arc::new(ParentRun {
            assistant: self.assistant.clone(),
            reader: self.reader.clone(),
            config: config.clone(),
            has_session: self.assistant.session().is_some(),
            path,
            budget,
            max_children: self.parent.as_ref().map_or(config.max_children, |parent| parent.max_children),
            requests: match &self.parent {
                Some(parent) => parent.requests.clone(),
                None => Arc::new(Semaphore::new(config.max_requests_in_flight)),
            },
            above: self.parent.clone(),
        });
        self.as_parent = Some(parent.clone());
        parent
    }
}

/// The state for the function of a sub-agent's tool on a durable engine, such as Restate. The function runs before the child, to make the
/// child's first message, and again after the child, to return the outcome.
#[cfg(feature = "durable-restate")]
pub(super) enum EngineChild {
    /// The child has not begun. The method `outcome` stores the child's first message here.
    Begins(Mutex<Option<UserMessage>>),
    Ended(ToolOutcome),
}

#[cfg(feature = "durable-restate")]
impl EngineChild {
    pub(super) fn outcome(&self, message: UserMessage) -> ToolOutcome {
        match self {
            Self::Begins(first) => {
                *first.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
                ToolOutcome::Deferred { handle: CHILD_HANDLE.to_owned() }
            }
            Self::Ended(outcome) => outcome.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
