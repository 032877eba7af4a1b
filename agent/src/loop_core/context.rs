//! Changes of what the model is sent of the conversation, and other events before a request.

use super::{AgentLoop, EventKind};
use crate::message::{Usage, ViewChange};

impl AgentLoop {
    /// Records a change of the view in the conversation. What its summary used belongs to the run.
    pub(crate) fn record_view_change(&mut self, change: ViewChange) {
        if let Some(usage) = change.usage() {
            let usage = usage.clone();
            self.record_usage(&usage);
        }
        self.conversation.record_view_change(change);
    }

    /// Adds what a request used that was not for a reply.
    pub(crate) fn record_usage(&mut self, usage: &Usage) {
        if !usage.is_empty() {
            self.requests += 1;
            self.usage += usage;
        }
    }

    /// Restores the changes of the view that were stored with the conversation.
    pub(crate) fn restore_view(&mut self, changes: impl IntoIterator<Item = ViewChange>) {
        for change in changes {
            if change.made_at > self.added_from {
                self.record_view_change(change);
            } else {
                self.conversation.record_view_change(change);
            }
        }
    }

    /// Emits an event between two steps.
    pub(crate) fn record_event(&mut self, kind: EventKind) {
        self.emit(|_| kind);
    }
}
