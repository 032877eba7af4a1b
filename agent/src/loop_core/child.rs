//! The loop: runs within a run. A child is the run of an assistant that a call started.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

#[cfg(feature = "runtime")]
use super::agent_loop::Phase;
use super::agent_loop::exceeded;
use super::batch::{Slot, SlotState};
use super::{AgentLoop, LimitReached, UsageLimits};
use crate::message::Usage;

/// The maximum number of runs within one another in a stored run.
#[cfg(feature = "runtime")]
pub(crate) const MAX_DEPTH: usize = 8;

/// The place of a run in its tree: the calls from the root to it, the outermost first. The path of a root is empty.
///
/// ```
/// use agent::run::RunPath;
///
/// let path: RunPath = serde_json::from_str(r#"[{"call_id": "1", "tool": "ask_expert", "run_id": "run/1/tool/0"}]"#)?;
/// assert_eq!((path.calls()[0].tool.as_str(), path.to_string().as_str()), ("ask_expert", "ask_expert"));
/// assert!(RunPath::default().is_root());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<PathCall>", into = "Vec<PathCall>")]
pub struct RunPath(Option<Arc<[PathCall]>>);

/// A call in a [`RunPath`], with the run that it started.
///
/// ```
/// use agent::run::PathCall;
///
/// let call: PathCall = serde_json::from_str(r#"{"call_id": "1", "tool": "ask_expert", "run_id": "run/1/tool/0"}"#)?;
/// assert_eq!((call.call_id.as_str(), &*call.run_id), ("1", "run/1/tool/0"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PathCall {
    /// The id of the call, in the run that made it.
    pub call_id: String,
    /// The name of the tool.
    pub tool: String,
    /// The id of the run that the call started.
    pub run_id: Arc<str>,
}

impl RunPath {
    /// Whether this is the path of a run that no call started.
    pub fn is_root(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the calls, the outermost first.
    pub fn calls(&self) -> &[PathCall] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the path of the run that this call started, of a run with this path.
    pub(crate) fn with(&self, call_id: &str, tool: &str, run_id: &Arc<str>) -> Self {
        let call = PathCall { call_id: call_id.into(), tool: tool.into(), run_id: run_id.clone() };
        Self(Some(self.calls().iter().cloned().chain([call]).collect()))
    }
}

impl From<Vec<PathCall>> for RunPath {
    fn from(calls: Vec<PathCall>) -> Self {
        Self((!calls.is_empty()).then(|| calls.into()))
    }
}

impl From<RunPath> for Vec<PathCall> {
    fn from(path: RunPath) -> Self {
        path.calls().to_vec()
    }
}

/// Shows the names of the tools, as in `ask_expert > book_trip`.
impl fmt::Display for RunPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, call) in self.calls().iter().enumerate() {
            write!(f, "{}{}", if at > 0 { " > " } else { "" }, call.tool)?;
        }
        Ok(())
    }
}

/// What runs have used: that of a tree, or that of the children of a run that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Spent {
    pub(crate) requests: u64,
    pub(crate) tool_calls: u64,
    /// The number of runs.
    pub(crate) runs: u32,
    pub(crate) usage: Usage,
}

impl Spent {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.tool_calls += other.tool_calls;
        self.runs = self.runs.saturating_add(other.runs);
        self.usage += &other.usage;
    }
}

/// What the runs of a tree may use together. The counters are shared, so that children that run at the same time never exceed a limit
/// of requests or calls: each is counted before it is made.
#[derive(Debug)]
pub(crate) struct TreeBudget {
    limits: UsageLimits,
    spent: Mutex<Spent>,
}

/// The budget of the tree that a run belongs to, if it has one. Loops are equal regardless of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedBudget(pub(super) Option<Arc<TreeBudget>>);

impl PartialEq for SharedBudget {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl TreeBudget {
    fn spent(&self) -> std::sync::MutexGuard<'_, Spent> {
        // Nothing can panic while the lock is held.
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the first limit that forbids another request.
    pub(super) fn exceeded(&self) -> Option<LimitReached> {
        let spent = self.spent();
        exceeded(&self.limits, spent.requests, &spent.usage)
    }

    /// Counts a request, unless a limit is reached.
    pub(super) fn take_request(&self) -> Option<LimitReached> {
        let mut spent = self.spent();
        let reached = exceeded(&self.limits, spent.requests, &spent.usage);
        if reached.is_none() {
            spent.requests += 1;
        }
        reached
    }

    /// Counts a call, unless the limit is reached. Returns the limit.
    pub(super) fn take_call(&self) -> Result<(), u64> {
        let mut spent = self.spent();
        match self.limits.tool_calls.filter(|allowed| spent.tool_calls >= *allowed) {
            Some(allowed) => Err(allowed),
            None => {
                spent.tool_calls += 1;
                Ok(())
            }
        }
    }

    /// Returns a call that was counted and did not run.
    pub(super) fn return_call(&self) {
        let mut spent = self.spent();
        spent.tool_calls = spent.tool_calls.saturating_sub(1);
    }

    pub(super) fn add_usage(&self, usage: &Usage) {
        self.spent().usage += usage;
    }

    /// Counts a new run. Returns false if the tree has had this number of them.
    #[cfg(feature = "runtime")]
    pub(crate) fn take_run(&self, max: u32) -> bool {
        let mut spent = self.spent();
        let may = spent.runs < max;
        spent.runs += u32::from(may);
        may
    }
}

/// What a call of an assistant leaves behind.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(not(feature = "runtime"), expect(dead_code, reason = "only an assistant has children"))]
pub(crate) enum ChildState {
    /// It waits, and its call with it.
    Suspended(Box<AgentLoop>),
    /// It ended, or was given up.
    Ended(Spent),
}

impl AgentLoop {
    /// Returns the children that wait, with the position of their calls.
    pub(super) fn children(&self) -> impl Iterator<Item = (usize, &Slot, &AgentLoop)> {
        self.batch.slots.iter().enumerate().filter_map(|(at, slot)| match &slot.state {
            SlotState::Child(run) => Some((at, slot, &**run)),
            _ => None,
        })
    }

    /// Returns the path of a child, of a run with this path.
    pub(super) fn path_to(path: &RunPath, slot: &Slot, child: &AgentLoop) -> RunPath {
        path.with(&slot.call.id, &slot.call.name, &child.run)
    }

    /// Returns what the run and its children have used.
    pub(crate) fn spent(&self) -> Spent {
        let mut spent = self.children.clone();
        // The usage of children that ended is in that of the run.
        spent.usage = self.usage.clone();
        spent.requests += self.requests;
        spent.tool_calls += self.tool_calls;
        for (_, _, child) in self.children() {
            let mut of_child = child.spent();
            of_child.runs = of_child.runs.saturating_add(1);
            spent.add(&of_child);
        }
        spent
    }

    /// Takes over what a child has used that ended.
    pub(super) fn count_child(&mut self, mut spent: Spent) {
        self.usage += &spent.usage;
        self.turn_usage += &spent.usage;
        spent.usage = Usage::default();
        spent.runs = spent.runs.saturating_add(1);
        self.children.add(&spent);
    }

    /// Ends a child that waits, whose call ends. Its events come before the end of the call.
    pub(super) fn end_child(&mut self, at: usize, mut child: Box<AgentLoop>, reason: &str) {
        if let Some(slot) = self.batch.slots.get(at) {
            child.path = Self::path_to(&self.path, slot, &child);
        }
        // Without the tools of a stored child, it is not known which of its arguments are secret.
        child.is_muted = self.is_muted || child.was_stored();
        child.is_driven = false;
        child.abort(reason);
        while let Some(event) = child.take_event() {
            self.events.push_back(event);
        }
        self.count_child(child.spent());
    }

    /// Returns how many decisions and results the run and its children wait for.
    pub(super) fn waits_for(&self) -> usize {
        let own = |state: &SlotState| matches!(state, SlotState::Undecided(_) | SlotState::Deferred(_));
        let children = self.children().map(|(_, _, child)| child.waits_for());
        self.batch.positions(own).len() + children.sum::<usize>()
    }
}

#[cfg(feature = "runtime")]
impl AgentLoop {
    /// Sets the place of the run in its tree, and the budget of the tree.
    pub(crate) fn set_tree(&mut self, path: RunPath, budget: Arc<TreeBudget>) {
        for event in &mut self.events {
            event.path = path.clone();
        }
        self.path = path;
        self.budget = SharedBudget(Some(budget));
    }

    /// Returns the place of the run in its tree.
    pub(crate) fn path(&self) -> &RunPath {
        &self.path
    }

    /// Returns the budget that the children of this run share with it.
    pub(crate) fn tree_budget(&mut self) -> Arc<TreeBudget> {
        let limits = self.config.limits.clone();
        let mut spent = self.spent();
        // Counted when its reply arrives.
        spent.requests += u64::from(self.phase == Phase::CallModel);
        let budget = self.budget.0.get_or_insert_with(|| {
            Arc::new(TreeBudget { limits, spent: Mutex::new(spent) })
        });
        budget.clone()
    }

    /// Returns the tokens and cost of the run and its children, also of those that wait.
    pub(crate) fn tree_usage(&self) -> Usage {
        if self.children().next().is_none() { self.usage.clone() } else { self.spent().usage }
    }

    /// Returns the number of runs within one another.
    pub(crate) fn depth(&self) -> usize {
        self.children().map(|(_, _, child)| child.depth() + 1).max().unwrap_or_default()
    }

    /// Returns the children that wait, with the positions of their calls and their paths, of a run with this path.
    pub(crate) fn waiting_children(&self, path: &RunPath) -> impl Iterator<Item = (u32, RunPath, &AgentLoop)> {
        self.children().map(move |(at, slot, child)| {
            (u32::try_from(at).unwrap_or(u32::MAX), Self::path_to(path, slot, child), child)
        })
    }

    /// Takes a child that waits, because its call continues.
    pub(crate) fn continue_child(&mut self, ord: u32) -> Option<Box<AgentLoop>> {
        let slot = self.batch.slots.get_mut(usize::try_from(ord).ok()?)?;
        if self.phase != Phase::Await || !matches!(slot.state, SlotState::Child(_)) {
            return None;
        }
        let SlotState::Child(child) = std::mem::replace(&mut slot.state, SlotState::Ready) else { return None };
        slot.is_approved = true;
        Some(child)
    }

    /// Lets the calls run whose children continue.
    pub(crate) fn continue_calls(&mut self) {
        if self.phase == Phase::Await {
            self.advance();
        }
    }
}
