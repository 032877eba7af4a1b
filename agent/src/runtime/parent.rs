//! A run as the runs within it see it, and the calls that start these.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::approval::{Approver, Resumption};
use super::assistant::Assistant;
use super::config::Config;
use super::in_process::InProcessSteps;
use super::listener::EventSlot;
use super::records::StoreAccess;
use crate::loop_core::{AgentLoop, ChildState, Event, RunPath, TreeBudget};
use crate::message::ToolCall;
use crate::step_key::StepKey;
use crate::steps::SharedLoop;
use crate::tool::asking::Answerer;
use crate::tool::definition::ToolDefinition;

/// The time for which a cancelled run waits for a child beyond that for other calls, so that the ends of its calls are recorded.
pub(super) const CHILD_GRACE: Duration = Duration::from_secs(2);

/// The handle under which the record of a call waits whose child waits.
pub(super) const CHILD_HANDLE: &str = "agent:child";

/// A run, as the runs within it see it.
pub(super) struct ParentRun {
    /// Its listeners are notified of the events of its children.
    assistant: Assistant,
    reader: Option<EventSlot>,
    pub(super) approver: Option<Approver>,
    answerer: Option<Answerer>,
    /// Where children are recorded, if this run is.
    pub(super) keeper: Option<Arc<StoreAccess>>,
    /// Whether its messages are stored, and those of its children with them.
    pub(super) has_session: bool,
    pub(super) path: RunPath,
    pub(super) budget: Arc<TreeBudget>,
    pub(super) max_children: u32,
    /// The number of further runs that may be within one another.
    depth_left: u8,
    above: Option<Arc<ParentRun>>,
}

impl ParentRun {
    /// Notifies the listeners of this run and of all above it.
    pub(super) async fn notify(&self, event: &Arc<Event>) {
        let mut parent = Some(self);
        while let Some(run) = parent {
            let listeners = run.assistant.state().listeners.clone();
            listeners.notify(event);
            if let Some(reader) = &run.reader {
                reader.hand_over(event.clone()).await;
            }
            parent = run.above.as_deref();
        }
    }

    /// Whether no more runs may be within this one.
    pub(super) fn is_too_deep(&self) -> bool {
        self.depth_left == 0
    }

    /// Notifies the listeners without waiting for them.
    pub(super) fn notify_at_once(&self, event: &Arc<Event>) {
        let mut parent = Some(self);
        while let Some(run) = parent {
            let listeners = run.assistant.state().listeners.clone();
            listeners.notify(event);
            parent = run.above.as_deref();
        }
    }

    /// Returns the assistant of a child: a fork of this one, or one like that of this run, with no messages.
    pub(super) fn assistant_of_child(&self, of: Option<&Assistant>) -> Assistant {
        let messages = of.map(Assistant::messages).unwrap_or_default();
        let mut config = Config::clone(of.unwrap_or(&self.assistant).config());
        #[cfg(feature = "studio")]
        if let (Some(_), Some(wrap)) = (of, &self.assistant.config().wrap_model) {
            config.wrap_models(wrap.clone());
        }
        config.approver = config.approver.or_else(|| self.approver.clone());
        config.answerer = config.answerer.or_else(|| self.answerer.clone());
        config.keeper.clone_from(&self.keeper);
        // The root signs the whole tree.
        config.signer = None;
        config.max_depth = self.depth_left.saturating_sub(1);
        if config.max_depth == 0 {
            let shown = |tool: &ToolDefinition| {
                config.registry.get(tool.name()).is_none_or(|tool| !tool.is_of_assistant())
            };
            config.request.tools = config.request.tools.iter().filter(|tool| shown(tool)).cloned().collect();
        }
        Assistant::new(Arc::new(config), messages)
    }
}

/// A call of an assistant, for its body.
pub(super) struct ChildHandle(pub(super) Arc<ChildCall>);

/// A call whose body is a run of an assistant.
pub(super) struct ChildCall {
    pub(super) parent: Arc<ParentRun>,
    /// The text of its key is the id of the run.
    pub(super) run_id: Arc<str>,
    pub(super) path: RunPath,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The run that continues, and what it waited for.
    continued: Option<(Box<AgentLoop>, Resumption)>,
    /// The run, once it has begun.
    run: Option<SharedLoop>,
    suspended: Option<Box<AgentLoop>>,
}

impl ChildCall {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the run that continues.
    pub(super) fn take_continued(&self) -> Option<(Box<AgentLoop>, Resumption)> {
        self.inner().continued.take()
    }

    /// The run has begun.
    pub(super) fn begun(&self, run: &SharedLoop) {
        self.inner().run = Some(run.clone());
    }

    /// The run waits.
    pub(super) fn suspended(&self, run: AgentLoop) {
        self.inner().suspended = Some(Box::new(run));
    }

    /// Takes what the call leaves behind; `None` if no run began.
    pub(super) fn take_state(&self) -> Option<ChildState> {
        let Inner { run, suspended, .. } = std::mem::take(&mut *self.inner());
        if let Some(run) = suspended {
            return Some(ChildState::Suspended(run));
        }
        run.map(|run| ChildState::Ended(Box::new(run.lock().spent())))
    }
}

impl InProcessSteps {
    /// Returns the call of an assistant's tool, as its body needs it.
    pub(super) fn child_call(&mut self, key: &StepKey, call: &ToolCall) -> Arc<ChildCall> {
        let parent = self.as_parent();
        let run_id: Arc<str> = key.to_string().into();
        let path = parent.path.with(&call.id, &call.name, &run_id);
        let inner = Inner { continued: self.continued.remove(&key.ord), ..Inner::default() };
        Arc::new(ChildCall { parent, run_id, path, inner: Mutex::new(inner) })
    }

    /// Returns this run as its children see it.
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
            approver: config.approver.clone(),
            answerer: config.answerer.clone(),
            keeper: config.keeper.clone(),
            has_session: self.assistant.session().is_some(),
            path,
            budget,
            max_children: self.parent.as_ref().map_or(config.max_children, |parent| parent.max_children),
            depth_left: config.max_depth,
            above: self.parent.clone(),
        });
        self.as_parent = Some(parent.clone());
        parent
    }
}
