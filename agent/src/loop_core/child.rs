//! The children of a run. A child is the run of a sub-agent: a call started it, because the tool of the call is an assistant.

#[cfg(feature = "runtime")]
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::AgentLoop;
#[cfg(feature = "runtime")]
use super::RecordError;
#[cfg(feature = "runtime")]
use super::agent_loop::Phase;
use super::batch::{Slot, SlotState};
use super::budget::Spent;
#[cfg(feature = "runtime")]
use super::budget::{SharedBudget, TreeBudget};
use crate::message::Usage;
use crate::run_path::RunPath;
#[cfg(feature = "runtime")]
use crate::tool::outcome::{OutcomeCode, ToolOutcome};

/// Maximum depth of nested runs. A stored run with a greater depth is not resumed.
#[cfg(feature = "runtime")]
pub(crate) const MAX_DEPTH: u8 = 8;
/// The handle of a deferred call that waits for the run of a sub-agent.
#[cfg(feature = "runtime")]
pub(crate) const CHILD_HANDLE: &str = "agent:child";

/// The metadata key in the result of a sub-agent's call under which the `Spent` of the sub-agent is stored.
pub(crate) const SPENT: &str = "spent";

#[cfg(feature = "runtime")]
pub(crate) enum ChildState {
    Suspended(Box<AgentLoop>),
    /// The child ended, or cannot continue.
    Ended(Box<Spent>),
}

impl AgentLoop {
    pub(super) fn children(&self) -> impl Iterator<Item = (usize, &Slot, &AgentLoop)> {
        self.batch.slots.iter().enumerate().filter_map(|(at, slot)| match &slot.state {
            SlotState::Child(run) => Some((at, slot, &**run)),
            _ => None,
        })
    }

    /// Returns the path of a child. `path` is the path of its parent.
    pub(super) fn path_to(path: &RunPath, slot: &Slot, child: &AgentLoop) -> RunPath {
        path.with(&slot.call.id, &slot.call.name, &child.run)
    }

    /// Returns the amounts that the run and its children have used. The number of runs does not include this run.
    pub(crate) fn spent(&self) -> Spent {
        let mut spent = self.children.as_deref().cloned().unwrap_or_default();
        // The usage of the run includes the usage of children that ended.
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

    pub(super) fn count_child(&mut self, mut spent: Spent) {
        self.usage += &spent.usage;
        self.turn_usage += &spent.usage;
        spent.usage = Usage::default();
        spent.runs = spent.runs.saturating_add(1);
        self.children.get_or_insert_default().add(&spent);
        self.version = Self::VERSION;
    }

    /// Reads the amounts that a child used from the metadata of its call's result. Returns `None` if the tool is not an assistant.
    pub(super) fn spent_of(&self, tool: &str, metadata: &Map<String, Value>) -> Option<Spent> {
        let is_child = self.config.tools.get(tool).is_some_and(|tool| tool.of_assistant);
        Spent::deserialize(metadata.get(SPENT).filter(|_| is_child)?).ok()
    }

    /// Aborts a waiting child, because its call ends. The events of the child precede the end event of the call.
    pub(super) fn end_child(&mut self, at: usize, mut child: Box<AgentLoop>, reason: &str) {
        if let Some(slot) = self.batch.slots.get(at) {
            child.path = Self::path_to(&self.path, slot, &child);
        }
        // A stored child lacks its tools, so its secret arguments are unknown. Therefore, it emits no events.
        child.is_muted = self.is_muted || child.was_stored();
        child.is_driven = false;
        child.abort(reason);
        while let Some(event) = child.take_event() {
            self.events.push_back(event);
        }
        self.count_child(child.spent());
    }

    pub(super) fn waits_for(&self) -> usize {
        let own = |state: &SlotState| {
            matches!(state, SlotState::Undecided(_) | SlotState::Deferred(_) | SlotState::Asked(_))
        };
        let children = self.children().map(|(_, _, child)| child.waits_for());
        self.batch.positions(own).len() + children.sum::<usize>()
    }
}

/// Returns the outcome of a call whose sub-agent cannot continue: its run is lost, or the tool is no longer an assistant.
#[cfg(feature = "runtime")]
pub(crate) fn gone_child() -> ToolOutcome {
    let text = "The sub-agent was interrupted, and is not what it was. Call it again.";
    ToolOutcome::failed(OutcomeCode::new("child_gone"), text)
}

#[cfg(feature = "runtime")]
impl AgentLoop {
    /// Returns the version of the stored run if this version signed the run in an old format. Versions 3 and 4 signed every run in an old
    /// format. Version 5 did so only for a run whose sub-agents had all ended.
    pub(crate) fn version_signed_differently(&self) -> Option<u32> {
        let has_only_ended = self.children.is_some() && self.children().next().is_none();
        let is_old = matches!(self.version, 3..=4) || (self.version < 6 && has_only_ended);
        is_old.then_some(self.version)
    }

    pub(crate) fn tool_of(&self, ord: u32) -> Option<&str> {
        Some(&self.batch.slots.get(usize::try_from(ord).ok()?)?.call.name)
    }

    pub(crate) fn child_tool(&self, ord: u32) -> Option<&str> {
        let slot = self.batch.slots.get(usize::try_from(ord).ok()?)?;
        matches!(slot.state, SlotState::Child(_)).then_some(&slot.call.name)
    }

    pub(crate) fn set_tree(&mut self, path: RunPath, budget: Arc<TreeBudget>) {
        self.set_path(path);
        self.budget = SharedBudget(Some(budget));
    }

    fn set_path(&mut self, path: RunPath) {
        for event in &mut self.events {
            event.path = path.clone();
        }
        self.path = path;
    }

    pub(crate) fn path(&self) -> &RunPath {
        &self.path
    }

    /// Returns the budget that this run shares with its children. Creates the budget first if necessary, with the limits and the used
    /// amounts of this run.
    pub(crate) fn tree_budget(&mut self) -> Arc<TreeBudget> {
        let limits = self.config.limits.clone();
        let mut spent = self.spent();
        // The run counts the current request only when the reply arrives, so the request is added here.
        spent.requests += u64::from(self.phase == Phase::CallModel);
        self.budget.0.get_or_insert_with(|| Arc::new(TreeBudget::new(limits, spent))).clone()
    }

    pub(crate) fn tree_usage(&self) -> Usage {
        if self.children().next().is_none() { self.usage.clone() } else { self.spent().usage }
    }

    pub(crate) fn depth(&self) -> usize {
        self.children().map(|(_, _, child)| child.depth() + 1).max().unwrap_or_default()
    }

    /// Returns the waiting children, each with the position of its call and its path. `path` is the path of this run.
    pub(crate) fn waiting_children(
        &self,
        path: &RunPath,
    ) -> impl Iterator<Item = (u32, RunPath, &AgentLoop)> {
        self.children().map(move |(at, slot, child)| {
            (u32::try_from(at).unwrap_or(u32::MAX), Self::path_to(path, slot, child), child)
        })
    }

    /// Puts a waiting child into the call at position `ord`. `self` is a copy of the parent, made during the call.
    pub(crate) fn embed_child(&mut self, ord: u32, mut child: Box<AgentLoop>) {
        let slot = usize::try_from(ord).ok().and_then(|at| self.batch.slots.get_mut(at));
        let Some(slot) = slot.filter(|slot| slot.state == SlotState::Ready) else { return };
        (child.path, child.budget) = (RunPath::default(), SharedBudget::default());
        slot.mac = None;
        slot.state = SlotState::Child(child);
        self.version = Self::VERSION;
        if self.phase == Phase::CallTools && !self.batch.any(|state| *state == SlotState::Ready) {
            self.phase = Phase::Await;
        }
    }

    pub(crate) fn continue_child(&mut self, ord: u32) -> Option<Box<AgentLoop>> {
        let slot = self.batch.slots.get_mut(usize::try_from(ord).ok()?)?;
        let runs = matches!(self.phase, Phase::Await | Phase::CallTools);
        if !runs || !matches!(slot.state, SlotState::Child(_)) {
            return None;
        }
        let SlotState::Child(child) = std::mem::replace(&mut slot.state, SlotState::Ready) else {
            return None;
        };
        slot.is_approved = true;
        Some(child)
    }

    /// Records that a child ended or waits. Returns true if the child waits. In this case, the call of the child must not be ended.
    pub(crate) fn record_child(&mut self, ord: u32, state: ChildState) -> Result<bool, RecordError> {
        let at = self.running(ord)?;
        match state {
            ChildState::Ended(spent) => self.count_child(*spent),
            ChildState::Suspended(mut child) => {
                // The path and the budget are not stored, because they follow from the parent.
                (child.path, child.budget) = (RunPath::default(), SharedBudget::default());
                if let Some(slot) = self.batch.slots.get_mut(at) {
                    slot.mac = None;
                    slot.state = SlotState::Child(child);
                }
                self.version = Self::VERSION;
                self.settle();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Leaves the phase `Await`, if no call is awaited any longer.
    pub(crate) fn continue_calls(&mut self) {
        if self.phase == Phase::Await {
            self.advance();
        }
    }
}
