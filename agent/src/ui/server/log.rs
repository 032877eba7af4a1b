//! The events of a run, kept so that a client can reconnect.

use std::sync::Arc;

use crate::loop_core::{Event, EventKind};
use crate::message::Message;
use crate::model::ModelEvent;

/// Updates of one reply beyond this many bytes are merged.
const MAX_UPDATES: usize = 1 << 20;

/// The events of a run. Updates of a reply that is complete are left out, because its message has everything.
#[derive(Default)]
pub(super) struct ReplayLog {
    events: Vec<Arc<Event>>,
    /// Where the reply that grows now begins.
    reply_from: Option<usize>,
    update_bytes: usize,
    /// The numbers of events of which some were left out, from the first to the last.
    compacted: Vec<(u64, u64)>,
}

impl ReplayLog {
    pub(super) fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// Returns the position of the reply that grows now.
    pub(super) fn open_reply(&self) -> Option<usize> {
        self.reply_from
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        match &event.kind {
            EventKind::MessageStart { message } if matches!(**message, Message::Assistant(_)) => {
                self.reply_from = Some(self.events.len());
                self.update_bytes = 0;
            }
            EventKind::MessageUpdate { update } => self.update_bytes += update_bytes(update),
            EventKind::MessageEnd { message, .. } => {
                // A reply that broke off may have begun more than its message has.
                let is_whole = message.as_assistant().is_some_and(|reply| !reply.stop_reason.is_failure());
                if let Some(from) = self.reply_from.take()
                    && is_whole
                {
                    self.leave_out_updates(from, event.seq);
                }
            }
            _ => {}
        }
        self.events.push(event);
        if self.update_bytes > MAX_UPDATES
            && let Some(from) = self.reply_from
        {
            self.merge_updates(from);
        }
    }

    fn leave_out_updates(&mut self, from: usize, end: u64) {
        let updates = self.events.split_off((from + 1).min(self.events.len()));
        let before = updates.len();
        let rest = updates.into_iter().filter(|event| !matches!(event.kind, EventKind::MessageUpdate { .. }));
        self.events.extend(rest);
        if before > 0
            && let Some(start) = self.events.get(from)
        {
            self.compacted.push((start.seq, end));
        }
    }

    /// Joins neighbouring deltas of one part.
    fn merge_updates(&mut self, from: usize) {
        let updates = self.events.split_off((from + 1).min(self.events.len()));
        let mut last_seq = 0;
        for event in updates {
            last_seq = event.seq;
            let joined = self.events.last().and_then(|last| joined(last, &event));
            match joined {
                Some(joined) => {
                    if let Some(last) = self.events.last_mut() {
                        *last = Arc::new(joined);
                    }
                }
                None => self.events.push(event),
            }
        }
        // Bytes that are merged are not counted again.
        self.update_bytes = 0;
        if let Some(start) = self.events.get(from) {
            self.compacted.push((start.seq, last_seq));
        }
    }

    /// Whether a client that saw the event with this number can get the rest without a repetition.
    pub(super) fn has_all_after(&self, seq: u64) -> bool {
        !self.compacted.iter().any(|(from, to)| (*from..*to).contains(&seq))
    }
}

fn update_bytes(update: &ModelEvent) -> usize {
    update.delta().map_or(64, str::len)
}

/// Returns one event for two deltas of one part.
fn joined(one: &Event, other: &Event) -> Option<Event> {
    let (EventKind::MessageUpdate { update }, EventKind::MessageUpdate { update: more }) =
        (&one.kind, &other.kind)
    else {
        return None;
    };
    let mut update = update.clone();
    match (&mut update, more) {
        (
            ModelEvent::TextDelta { content_index, delta },
            ModelEvent::TextDelta { content_index: other, delta: more },
        )
        | (
            ModelEvent::ThinkingDelta { content_index, delta },
            ModelEvent::ThinkingDelta { content_index: other, delta: more },
        )
        | (
            ModelEvent::ToolCallDelta { content_index, delta },
            ModelEvent::ToolCallDelta { content_index: other, delta: more },
        ) if content_index == other => delta.push_str(more),
        _ => return None,
    }
    let mut event = other.clone();
    event.kind = EventKind::MessageUpdate { update };
    Some(event)
}
