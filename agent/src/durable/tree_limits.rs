//! The limits of a tree of runs, as one durable run applies them.

use std::sync::Arc;

use crate::loop_core::{TreeBudget, UsageLimits};
use crate::runtime::ServedAssistant;

/// The limits of a tree of runs, and the calls and tokens of one run of the tree.
pub(super) struct TreeLimits {
    /// The limits that the runs of the tree share, if there are any.
    pub(super) shared: Option<UsageLimits>,
    /// Maximum number of runs that calls of the tree may start.
    pub(super) max_runs: u32,
    /// The calls that this run may make, and the tokens that it has used since its last reservation.
    pub(super) calls: Arc<TreeBudget>,
}

impl TreeLimits {
    pub(super) fn new(assistant: &Arc<ServedAssistant>) -> Self {
        let (shared, max_runs) = assistant.tree_limits();
        let calls = Arc::new(TreeBudget::of_calls(shared.as_ref().and_then(|limits| limits.tool_calls)));
        Self { shared, max_runs, calls }
    }
}
