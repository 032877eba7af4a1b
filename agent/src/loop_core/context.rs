//! Records what happens before a request: changes of the view, requests for summaries, and failed attempts at the request. The view is the
//! form of the conversation that is sent to the model.

use super::agent_loop::Phase;
use super::batch::with_unique_ids;
use super::budget::{Spent, exceeded_by_usage};
use super::end::LimitReached;
use super::{AgentLoop, EventKind, RecordError};
use crate::message::{AssistantMessage, StopReason, Usage, ViewChange};

const REPLACED: &str = "the reply was cut before it was complete, so the request was made again";

/// Returns whether this reply was replaced: it was cut, so its request was made again.
pub(super) fn is_replaced(reply: &AssistantMessage) -> bool {
    reply.stop_reason == StopReason::Error && reply.error.as_deref() == Some(REPLACED)
}

impl AgentLoop {
    pub(crate) fn record_view_change(&mut self, change: ViewChange) {
        self.conversation.record_view_change(change);
    }

    /// Records a [`ViewChange`] that the application requested or a store returned. A summary with usage counts as one request.
    pub(crate) fn record_made_change(&mut self, change: ViewChange) {
        if let Some(usage) = change.usage().filter(|usage| !usage.is_empty()) {
            self.requests += 1;
            self.usage += usage;
            if let Some(budget) = &self.budget.0 {
                budget.add(&Spent { requests: 1, usage: usage.clone(), ..Spent::default() });
            }
        }
        self.record_view_change(change);
    }

    /// Counts a request for a summary with its usage. The request was [reserved](Self::take_summary_request) before.
    pub(crate) fn record_summary_request(&mut self, usage: &Usage) {
        self.requests += 1;
        self.usage += usage;
        if let Some(budget) = &self.budget.0 {
            budget.add_usage(usage);
        }
    }

    /// Returns the reached limit on tokens or cost, if any. The limit on requests is left out, because the next request is already
    /// counted.
    pub(crate) fn limit_of_tokens(&self) -> Option<LimitReached> {
        let of_tree = || self.budget.0.as_ref().and_then(|budget| budget.limit_of_tokens());
        exceeded_by_usage(&self.config.limits, &self.usage).or_else(of_tree)
    }

    /// Counts a request that the provider refused as too long, before the request is made again with fewer messages.
    pub(crate) fn record_refused_request(&mut self) {
        self.count_request(&Usage::default());
    }

    /// Records a cut reply, before the request is made again. The reply stays in the conversation as a failed reply: no request contains
    /// it, and its calls do not count.
    pub(crate) fn record_replaced_reply(&mut self, mut reply: AssistantMessage) -> Result<(), RecordError> {
        if self.phase != Phase::CallModel {
            return Err(self.unexpected());
        }
        self.count_request(&reply.usage);
        (reply.stop_reason, reply.error) = (StopReason::Error, Some(REPLACED.to_owned()));
        self.keep_reply(with_unique_ids(reply.into()));
        Ok(())
    }

    /// Restores stored [`ViewChange`]s. Summaries that this run wrote count toward its usage.
    pub(crate) fn restore_view(&mut self, changes: impl IntoIterator<Item = ViewChange>) {
        for change in changes {
            if change.made_at > self.added_from {
                self.record_made_change(change);
            } else {
                self.conversation.record_view_change(change);
            }
        }
    }

    pub(crate) fn record_event(&mut self, kind: EventKind) {
        self.emit(|_| kind);
    }
}
