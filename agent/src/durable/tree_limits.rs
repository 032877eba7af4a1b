//! The limits that a durable run shares with the other runs of its tree: the root run and all sub-agents below it.

use std::sync::Arc;

use crate::loop_core::{TreeBudget, UsageLimits};
use crate::runtime::ServedAssistant;

pub(super) struct TreeLimits {
    pub(super) shared: Option<UsageLimits>,
    /// Maximum number of runs in the tree, without the root run.
    pub(super) max_runs: u32,
    /// The calls that this run reserved, and the tokens that it used since its last `TreeReservation`.
    pub(super) calls: Arc<TreeBudget>,
}

impl TreeLimits {
    pub(super) fn new(assistant: &Arc<ServedAssistant>) -> Self {
        let (shared, max_runs) = assistant.tree_limits();
        let calls = Arc::new(TreeBudget::of_calls(shared.as_ref().and_then(|limits| limits.tool_calls)));
        Self { shared, max_runs, calls }
    }
}
