//! Limits on the requests, calls, tokens and cost of a tree of runs: a root run and all sub-agents below it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::AgentLoop;
use super::config::UsageLimits;
use super::end::{Limit, LimitReached};
use crate::message::Usage;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Spent {
    pub(crate) requests: u64,
    pub(crate) tool_calls: u64,
    pub(crate) runs: u32,
    pub(crate) usage: Usage,
}

impl Spent {
    pub(super) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.tool_calls += other.tool_calls;
        self.runs = self.runs.saturating_add(other.runs);
        self.usage += &other.usage;
    }
}

/// The limits of a tree of runs, and the counters that its runs share. Requests and calls are counted before they are made, so that
/// concurrent runs do not exceed these limits together.
#[derive(Debug)]
pub(crate) struct TreeBudget {
    limits: UsageLimits,
    spent: Mutex<Spent>,
}

/// The budget of the tree, if it has one. `==` is always true, so that the comparison of two loops ignores the budget.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedBudget(pub(super) Option<Arc<TreeBudget>>);

impl PartialEq for SharedBudget {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl TreeBudget {
    #[cfg(feature = "runtime")]
    pub(super) fn new(limits: UsageLimits, spent: Spent) -> Self {
        Self { limits, spent: Mutex::new(spent) }
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        // No code can panic while it holds the lock, so the lock is never poisoned.
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn exceeded(&self) -> Option<LimitReached> {
        let spent = self.spent();
        exceeded(&self.limits, spent.requests, &spent.usage)
    }

    #[cfg(feature = "runtime")]
    pub(super) fn limit_of_tokens(&self) -> Option<LimitReached> {
        exceeded_by_usage(&self.limits, &self.spent().usage)
    }

    /// Counts a request, or returns the limit that forbids it.
    pub(super) fn take_request(&self) -> Option<LimitReached> {
        let mut spent = self.spent();
        let reached = exceeded(&self.limits, spent.requests, &spent.usage);
        if reached.is_none() {
            spent.requests += 1;
        }
        reached
    }

    /// Counts a call. The error is the maximum number of calls.
    pub(super) fn take_call(&self) -> Result<(), u64> {
        let mut spent = self.spent();
        if let Some(allowed) = self.limits.tool_calls.filter(|allowed| spent.tool_calls >= *allowed) {
            return Err(allowed);
        }
        spent.tool_calls += 1;
        Ok(())
    }

    pub(super) fn return_call(&self) {
        let mut spent = self.spent();
        spent.tool_calls = spent.tool_calls.saturating_sub(1);
    }

    pub(super) fn add_usage(&self, usage: &Usage) {
        self.spent().usage += usage;
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn add(&self, spent: &Spent) {
        self.spent().add(spent);
    }

    /// Counts a run that a call starts. Returns false, and counts nothing, if calls have already started `max` runs.
    #[cfg(feature = "runtime")]
    pub(crate) fn take_run(&self, max: u32) -> bool {
        let mut spent = self.spent();
        let may = spent.runs < max;
        spent.runs += u32::from(may);
        may
    }
}

/// A request for a part of the limits that a root run shares with its sub-agents. The `Inbox` of the root run keeps the counts, because
/// the runs may be in different processes.
#[cfg(feature = "durable-restate")]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TreeReservation {
    pub(crate) limits: UsageLimits,
    /// Maximum number of runs in the tree, without the root run.
    pub(crate) max_runs: u32,
    /// The requests, calls and runs to reserve. The `usage` is the usage of the run since its last reservation.
    pub(crate) wanted: Spent,
    /// The number of reserved calls that did not run.
    pub(crate) returned: u64,
}

#[cfg(feature = "durable-restate")]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReservedPart {
    /// The limit that forbids the wanted request, if any.
    pub(crate) reached: Option<LimitReached>,
    pub(crate) tool_calls: u64,
    pub(crate) runs: u32,
}

#[cfg(feature = "durable-restate")]
impl Spent {
    pub(crate) fn reserve(
        &mut self,
        TreeReservation { limits, max_runs, wanted, returned }: TreeReservation,
    ) -> ReservedPart {
        self.usage += &wanted.usage;
        self.tool_calls = self.tool_calls.saturating_sub(returned);
        let reached = exceeded(&limits, self.requests, &self.usage).filter(|_| wanted.requests > 0);
        if reached.is_none() {
            self.requests += wanted.requests;
        }
        let left = limits.tool_calls.map_or(u64::MAX, |allowed| allowed.saturating_sub(self.tool_calls));
        let tool_calls = wanted.tool_calls.min(left);
        let runs = wanted.runs.min(max_runs.saturating_sub(self.runs));
        self.tool_calls += tool_calls;
        self.runs += runs;
        ReservedPart { reached, tool_calls, runs }
    }
}

#[cfg(feature = "durable-restate")]
impl TreeBudget {
    /// Creates the budget of one durable run. If calls are limited, no call is allowed before [`set_calls`](Self::set_calls).
    pub(crate) fn of_calls(tool_calls: Option<u64>) -> Self {
        let spent = Spent { tool_calls: tool_calls.unwrap_or_default(), ..Spent::default() };
        Self::new(UsageLimits { tool_calls, ..UsageLimits::default() }, spent)
    }

    pub(crate) fn set_calls(&self, number: u64) {
        if let Some(allowed) = self.limits.tool_calls {
            self.spent().tool_calls = allowed.saturating_sub(number);
        }
    }

    /// Takes all calls that may still be made, and the usage since the last `take_rest`.
    pub(crate) fn take_rest(&self) -> (u64, Usage) {
        let mut spent = self.spent();
        let allowed = self.limits.tool_calls.unwrap_or(spent.tool_calls);
        let calls = allowed.saturating_sub(std::mem::replace(&mut spent.tool_calls, allowed));
        (calls, std::mem::take(&mut spent.usage))
    }
}

impl AgentLoop {
    pub(super) fn limit_of_next_turn(&self) -> Option<LimitReached> {
        let max = self.config.max_turns.max(1);
        let turns = (self.turn >= max).then(|| LimitReached::new(Limit::Turns, max.into(), self.turn.into()));
        turns.or_else(|| self.limit_of_request(0, TreeBudget::exceeded))
    }

    pub(crate) fn take_request(&mut self) -> Result<(), LimitReached> {
        self.limit_of_request(0, TreeBudget::take_request).map_or(Ok(()), Err)
    }

    /// Reserves a request for a summary, in addition to the request that needs the summary.
    #[cfg(feature = "runtime")]
    pub(crate) fn take_summary_request(&mut self) -> Result<(), LimitReached> {
        self.limit_of_request(1, TreeBudget::take_request).map_or(Ok(()), Err)
    }

    /// Returns the limit that forbids another request: a limit of this run, or of the tree of runs, which `of_tree` checks. `reserved`
    /// further requests must stay possible.
    fn limit_of_request(
        &self,
        reserved: u64,
        of_tree: impl FnOnce(&TreeBudget) -> Option<LimitReached>,
    ) -> Option<LimitReached> {
        let own = exceeded(&self.config.limits, self.requests + reserved, &self.usage);
        own.or_else(|| self.budget.0.as_deref().and_then(of_tree))
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn is_at_limit(&self) -> bool {
        self.limit_of_next_turn().is_some()
    }
}

fn exceeded(limits: &UsageLimits, requests: u64, usage: &Usage) -> Option<LimitReached> {
    reached(Limit::Requests, limits.requests, requests).or_else(|| exceeded_by_usage(limits, usage))
}

pub(super) fn exceeded_by_usage(limits: &UsageLimits, usage: &Usage) -> Option<LimitReached> {
    let counts = [
        (Limit::InputTokens, limits.input_tokens, usage.input),
        (Limit::OutputTokens, limits.output_tokens, usage.output),
        (Limit::TotalTokens, limits.total_tokens, usage.total),
    ];
    let count = counts.into_iter().find_map(|(limit, allowed, used)| reached(limit, allowed, used));
    let cost = || {
        let (allowed, used) = (limits.cost?, usage.cost?.total);
        (used >= allowed).then(|| LimitReached::new(Limit::Cost, allowed, used))
    };
    count.or_else(cost)
}

#[expect(clippy::cast_precision_loss, reason = "for a text; counts of tokens are exact up to 2^53")]
fn reached(limit: Limit, allowed: Option<u64>, used: u64) -> Option<LimitReached> {
    let allowed = allowed.filter(|allowed| used >= *allowed)?;
    Some(LimitReached::new(limit, allowed as f64, used as f64))
}
