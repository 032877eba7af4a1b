//! The events of a run, kept so that a client can reconnect.

use std::collections::HashSet;
use std::sync::Arc;

use super::earlier::{EarlierMessage, events_of};
use crate::loop_core::{Event, EventKind};
use crate::message::{Content, MediaSource, Message, Part};
use crate::model::ModelEvent;

/// Maximum size of a reply's updates, and of the progress of calls, in bytes. Above it, updates are merged, and only the last progress of
/// each call is kept.
const MAX_UPDATES: usize = 1 << 20;
/// The estimated size of an event without its texts, in bytes.
const PER_EVENT: usize = 128;

/// The events of a run. The updates of a complete reply are left out, because the message of the reply contains their content. If the log
/// is larger than `max_bytes`, the oldest events are dropped, and made again from the messages of the conversation on demand.
pub(super) struct ReplayLog {
    max_bytes: usize,
    run_id: Option<Arc<str>>,
    /// The messages of the dropped events.
    earlier: Vec<EarlierMessage>,
    /// The number of the last dropped event. It is `u64::MAX` if another process began the run.
    earlier_until: u64,
    events: Vec<Arc<Event>>,
    reply_from: Option<usize>,
    bytes: usize,
    /// The bytes of updates and progress since the last merge.
    update_bytes: usize,
    /// The bytes of events of sub-agents.
    child_bytes: usize,
    /// Ranges of event numbers within which some events were left out.
    compacted: Vec<(u64, u64)>,
}

impl ReplayLog {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            run_id: None,
            earlier: Vec::new(),
            earlier_until: 0,
            events: Vec::new(),
            reply_from: None,
            bytes: 0,
            update_bytes: 0,
            child_bytes: 0,
            compacted: Vec::new(),
        }
    }

    /// Creates the log of a run that another process began. That process numbered its events differently, so every client starts again.
    pub(super) fn of_messages(max_bytes: usize, run_id: Arc<str>, earlier: Vec<EarlierMessage>) -> Self {
        Self { run_id: Some(run_id), earlier, earlier_until: u64::MAX, ..Self::new(max_bytes) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.earlier.is_empty() && self.events.is_empty()
    }

    pub(super) fn events(&self) -> (Vec<Arc<Event>>, Option<usize>) {
        let mut all = match &self.run_id {
            Some(run_id) if !self.earlier.is_empty() => events_of(run_id, &self.earlier),
            _ => Vec::new(),
        };
        let reply_from = self.reply_from.map(|from| from + all.len());
        all.extend(self.events.iter().cloned());
        (all, reply_from)
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        let bytes = event_bytes(&event);
        self.bytes += bytes;
        if !event.is_own() {
            self.events.push(event);
            self.child_bytes += bytes;
            if self.child_bytes > self.max_bytes {
                self.forget_children();
            }
            return;
        }
        let mut may_shorten = false;
        match &event.kind {
            EventKind::MessageStart { message } if matches!(**message, Message::Assistant(_)) => {
                self.reply_from = Some(self.events.len());
                self.update_bytes = 0;
            }
            EventKind::MessageUpdate { .. } | EventKind::ToolExecutionUpdate { .. } => {
                self.update_bytes += bytes;
            }
            EventKind::MessageEnd { message, .. } => {
                // The updates of a reply that broke off are kept, because they may contain parts that the message lacks.
                let is_whole = message.as_assistant().is_some_and(|reply| !reply.stop_reason.is_failure());
                if let Some(from) = self.reply_from.take()
                    && is_whole
                {
                    self.leave_out_updates(from, event.seq);
                }
                may_shorten = message.as_tool_result().is_some();
            }
            EventKind::TurnEnd { .. } => may_shorten = true,
            _ => {}
        }
        self.run_id.get_or_insert_with(|| event.run_id.clone());
        self.events.push(event);
        if self.update_bytes > MAX_UPDATES {
            match self.reply_from {
                Some(from) => self.merge_updates(from),
                None => self.keep_last_progress(),
            }
        }
        if may_shorten && self.bytes > self.max_bytes {
            self.shorten();
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
        self.count();
    }

    /// Joins adjacent deltas of the same part. `from` is the position of the first event of the current reply.
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
        if let Some(start) = self.events.get(from) {
            self.compacted.push((start.seq, last_seq));
        }
        self.count();
    }

    /// Drops the older half of the events of sub-agents. Unlike the run's own events, these events cannot be made again from messages,
    /// because the conversation of the thread does not contain the messages of sub-agents.
    fn forget_children(&mut self) {
        let mut surplus = self.child_bytes / 2;
        let (mut last_own, mut until) = (0, 0);
        self.events.retain(|event| {
            if event.is_own() {
                last_own = event.seq;
            }
            if event.is_own() || surplus == 0 {
                return true;
            }
            surplus = surplus.saturating_sub(event_bytes(event));
            until = last_own + 1;
            false
        });
        // A reader that has only received events before `until` must receive the whole run.
        self.compacted.push((0, until));
        self.count();
    }

    /// Keeps only the last progress event of each call, because each one replaces the one before.
    fn keep_last_progress(&mut self) {
        // The log contains no progress of sub-agents, so these numbers belong to the run's own events.
        let numbers = |event: &Arc<Event>| {
            matches!(event.kind, EventKind::ToolExecutionUpdate { .. }).then_some(event.seq)
        };
        let first = self.events.iter().find_map(numbers);
        let last = self.events.iter().rev().find_map(numbers);
        self.compacted.extend(first.zip(last));
        let mut seen = HashSet::new();
        let mut kept: Vec<Arc<Event>> = Vec::with_capacity(self.events.len());
        for event in self.events.drain(..).rev() {
            let is_last = match &event.kind {
                EventKind::ToolExecutionUpdate { call_id, .. } => seen.insert(call_id.clone()),
                _ => true,
            };
            if is_last {
                kept.push(event);
            }
        }
        kept.reverse();
        self.events = kept;
        self.count();
    }

    /// Replaces the events by their messages, up to the last event at which no call was open. Later events are kept.
    fn shorten(&mut self) {
        let (mut open, mut waiting, mut end) = (0_usize, 0_usize, None);
        for (at, event) in self.events.iter().enumerate().filter(|(_, event)| event.is_own()) {
            match &event.kind {
                EventKind::ToolExecutionStart { .. } => open += 1,
                EventKind::ToolExecutionEnd { .. } => {
                    open = open.saturating_sub(1);
                    waiting += 1;
                }
                EventKind::MessageEnd { message, .. } if message.as_tool_result().is_some() => {
                    waiting = waiting.saturating_sub(1);
                    if open == 0 && waiting == 0 {
                        end = Some(at);
                    }
                }
                EventKind::TurnEnd { .. } if open == 0 && waiting == 0 => end = Some(at),
                _ => {}
            }
        }
        let Some(end) = end else { return };
        let rest = self.events.split_off(end + 1);
        let own = std::mem::replace(&mut self.events, rest).into_iter().filter(|event| event.is_own());
        for event in own {
            self.earlier_until = if self.earlier_until == u64::MAX { u64::MAX } else { event.seq };
            if let EventKind::MessageEnd { message, queued_id } = &event.kind {
                let (turn, message) = (event.turn, message.clone());
                self.earlier.push(EarlierMessage { turn, message, queued_id: queued_id.clone() });
            }
        }
        self.compacted.retain(|(_, to)| *to > self.earlier_until);
        self.count();
    }

    fn count(&mut self) {
        let bytes_of = |is_counted: fn(&Event) -> bool| {
            self.events.iter().filter(|event| is_counted(event)).map(|event| event_bytes(event)).sum()
        };
        (self.bytes, self.child_bytes) = (bytes_of(|_| true), bytes_of(|event| !event.is_own()));
        self.update_bytes = 0;
    }

    /// Returns whether all events after the event with this number are kept, so that a client that has received this event can continue.
    pub(super) fn has_all_after(&self, seq: u64) -> bool {
        let is_kept = self.earlier.is_empty() || seq >= self.earlier_until;
        is_kept && !self.compacted.iter().any(|(from, to)| (*from..*to).contains(&seq))
    }
}

/// Returns the estimated size of an event, in bytes. Messages of the run itself are not counted, because the conversation holds them, too.
fn event_bytes(event: &Event) -> usize {
    let message = match &event.kind {
        EventKind::MessageEnd { message, .. } if !event.is_own() => {
            message.content().iter().map(part_bytes).sum()
        }
        _ => 0,
    };
    PER_EVENT + message + text_bytes(&event.kind)
}

fn text_bytes(kind: &EventKind) -> usize {
    match kind {
        EventKind::MessageUpdate { update } => update_bytes(update),
        EventKind::ToolExecutionStart { call } => call.args.text().len(),
        EventKind::ApprovalRequired { args, .. } => args.text().len(),
        EventKind::ToolExecutionUpdate { partial, .. } => {
            partial.message.len() + partial.content.iter().map(part_bytes).sum::<usize>()
        }
        EventKind::ToolExecutionEnd { result, .. } => result.outcome.output().map_or_else(
            || result.outcome.text().len(),
            // A structured value is about as long as the text with the same content.
            |output| {
                let content: usize = output.content.iter().map(part_bytes).sum();
                if output.structured.is_some() { content * 2 } else { content }
            },
        ),
        _ => 0,
    }
}

fn part_bytes(part: &Part) -> usize {
    match &part.content {
        Content::Text(text) | Content::Refusal(text) | Content::Thinking { text, .. } => text.len(),
        Content::ToolCall(call) => call.args.text().len(),
        Content::Image(media) | Content::Document(media) | Content::Audio(media) => match &media.source {
            MediaSource::Data(blob) => blob.len(),
            _ => PER_EVENT,
        },
        Content::Resource(resource) => {
            resource.as_text().map_or_else(|| resource.as_data().map_or(0, <[u8]>::len), str::len)
        }
        _ => PER_EVENT,
    }
}
fn update_bytes(update: &ModelEvent) -> usize {
    update.delta().map_or(64, str::len)
}

/// Joins two deltas of the same part to one event. Returns `None` for other events.
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
