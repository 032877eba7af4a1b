//! The list of messages in a request, written turn by turn as text. The kept text of the last request is not written again.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use std::sync::Arc;

use serde_json::Value;

use super::body::write_json;
use super::call_ids::CallIds;
use super::turns::TurnBoundary;
use crate::message::kept::{KeptText, ResumePoint, TextSegment};
use crate::message::{AssistantMessage, MessageList};

/// The messages of a request, while they are written as text.
///
/// The text of a conversation's last request is kept, because the next request usually begins with the same messages. Only the messages
/// after the kept text are written.
///
/// An item is one message in the provider's format. A later turn can join the last item: the results of several calls become one item.
/// Kept text cannot be changed, so a turn can join an item of the kept text only after a [rewind](Self::rewind).
pub(super) struct WireList<'a> {
    messages: &'a MessageList,
    content: &'static str,
    kept: KeptText,
    stable: usize,
    resumed: ResumePoint,
    text: String,
    points: Vec<ResumePoint>,
    items: usize,
    last: LastItem,
    marks: CacheMarks,
}

enum LastItem {
    /// The last item is in the kept text, or the list is empty.
    Kept,
    /// The last item is at the end of `text`. If `can_grow` is set, more content can be inserted before its final `]}`.
    Written {
        can_grow: bool,
    },
    Open(Value),
}

/// Counts of the [`CacheMark`](crate::message::CacheMark)s in the messages. A request may have only a limited number of marks, so the
/// first `skip` marks are left out.
#[derive(Clone, Copy, Default)]
struct CacheMarks {
    seen: usize,
    skipped: usize,
    skip: usize,
}

/// The key of a kept text: everything on which the text depends, except the messages.
#[derive(PartialEq)]
struct Key<K> {
    key: K,
}

impl<'a> WireList<'a> {
    /// Creates the list. If the last request had the same `key`, its text is reused up to the first changed message. The text of the first
    /// `stable` messages does not depend on later messages.
    pub(super) fn new<K: PartialEq + Send + Sync + 'static>(
        messages: &'a MessageList,
        content: &'static str,
        key: K,
        stable: usize,
    ) -> Self {
        let key = Key { key };
        let kept = messages
            .slot()
            .take()
            .filter(|kept| kept.key.downcast_ref::<Key<K>>().is_some_and(|known| *known == key));
        let kept = kept.unwrap_or_else(|| KeptText {
            key: Arc::new(key),
            list: messages.number(),
            messages: Vec::new(),
            points: Vec::new(),
            segments: Vec::new(),
            has_own_ids: true,
        });
        let mut list = Self {
            messages,
            content,
            kept,
            stable,
            resumed: ResumePoint::default(),
            text: String::new(),
            points: Vec::new(),
            items: 0,
            last: LastItem::Kept,
            marks: CacheMarks::default(),
        };
        let known = &list.kept.messages;
        let same = if list.kept.list == messages.number() {
            known.len()
        } else {
            known.iter().zip(&**messages).take_while(|(one, other)| Arc::ptr_eq(one, other)).count()
        };
        list.kept.list = messages.number();
        // The last message of a request may be written differently from the others, so the last message is always written again.
        let limit = same.min(stable).min(messages.len().saturating_sub(1));
        list.marks.skip = list.kept.points.last().map_or(0, |point| point.skipped_marks);
        list.resume(|point| point.messages <= limit);
        list
    }

    /// Continues from the last kept position that fits, or from the beginning if none fits.
    fn resume(&mut self, fits: impl Fn(&ResumePoint) -> bool) {
        // A position before a tool result does not fit, because media of earlier results may still follow that result.
        let is_open = |point: &ResumePoint| {
            self.messages.get(point.messages).is_some_and(|next| next.as_tool_result().is_some())
        };
        let fits = |point: &ResumePoint| fits(point) && !is_open(point);
        let count = self.kept.points.iter().rposition(fits).map_or(0, |at| at + 1);
        self.kept.points.truncate(count);
        self.resumed = self.kept.points.last().copied().unwrap_or_default();
        self.kept.messages.truncate(self.resumed.messages);
        let mut length = 0;
        for segment in &mut self.kept.segments {
            segment.truncate(self.resumed.length - length);
            length += segment.as_str().len();
        }
        self.kept.segments.retain(|segment| !segment.as_str().is_empty());
        self.text.clear();
        self.points.clear();
        self.items = self.resumed.items;
        self.last = LastItem::Kept;
        (self.marks.seen, self.marks.skipped) = (self.resumed.marks, self.resumed.skipped_marks);
    }

    /// Assigns the ids of the calls with [`CallIds::new`], unless `is_fine` accepts all ids unchanged.
    pub(super) fn call_ids(
        &mut self,
        is_fine: impl Fn(&str, Option<&AssistantMessage>) -> bool,
        fit: impl Fn(&str, Option<&AssistantMessage>, u32) -> String,
    ) -> CallIds {
        let known = if self.kept.has_own_ids { self.resumed.messages } else { 0 };
        let ids = if CallIds::are_fine(self.messages.get(known..).unwrap_or_default(), is_fine) {
            CallIds::unchanged()
        } else {
            CallIds::new(self.messages, fit)
        };
        self.kept.has_own_ids = ids.is_unchanged();
        ids
    }

    /// Goes back to the last kept position before the current one, or to the beginning.
    pub(super) fn rewind(&mut self) {
        let now = self.resumed.messages;
        self.resume(|point| point.messages < now);
    }

    /// Keeps only the last `max` cache marks. Returns the number of removed marks, or `None` if the caller must write the turns from
    /// [`start`](Self::start) again.
    pub(super) fn limit_marks(&mut self, max: usize) -> Option<usize> {
        self.close();
        let skip = self.marks.seen.saturating_sub(max);
        if self.marks.skipped == skip {
            return Some(skip);
        }
        self.marks.skip = skip;
        self.resume(|point| point.skipped_marks == point.marks.min(skip));
        None
    }

    pub(super) fn start(&self) -> TurnBoundary {
        TurnBoundary { messages: self.resumed.messages, follows_result: self.resumed.follows_result }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Returns whether the last item is in the kept text and therefore cannot be changed.
    pub(super) fn ends_kept(&self) -> bool {
        matches!(self.last, LastItem::Kept) && self.resumed.messages > 0
    }

    pub(super) fn push(&mut self, start: Option<TurnBoundary>, item: Value) {
        self.begin(start);
        self.last = LastItem::Open(item);
    }

    /// Appends an item as text. With `can_grow`, [`join`](Self::join) can add blocks later; the text must then end with a non-empty list
    /// and `}`.
    pub(super) fn push_text(
        &mut self,
        start: Option<TurnBoundary>,
        can_grow: bool,
        write: impl FnOnce(&mut String),
    ) {
        self.begin(start);
        write(&mut self.text);
        self.last = LastItem::Written { can_grow };
    }

    fn begin(&mut self, start: Option<TurnBoundary>) {
        self.close();
        if let Some(TurnBoundary { messages, follows_result }) = start
            && messages > self.resumed.messages
            && messages <= self.stable
        {
            self.points.push(ResumePoint {
                messages,
                length: self.resumed.length + self.text.len(),
                items: self.items,
                marks: self.marks.seen,
                skipped_marks: self.marks.skipped,
                follows_result,
            });
        }
        if self.items > 0 {
            self.text.push(',');
        }
        self.items += 1;
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Value> {
        match &mut self.last {
            LastItem::Open(item) => Some(item),
            _ => None,
        }
    }

    /// Adds `more` to the last item. If the item cannot be changed, returns `more` as the error.
    pub(super) fn join(&mut self, more: Vec<Value>) -> Result<(), Vec<Value>> {
        match &mut self.last {
            LastItem::Open(item) => match item.get_mut(self.content).and_then(Value::as_array_mut) {
                Some(list) => list.extend(more),
                None => return Err(more),
            },
            LastItem::Written { can_grow: true } => {
                for mut block in more {
                    self.marks.limit_block(&mut block);
                    self.join_text(|text| write_json(text, &block));
                }
            }
            _ => return Err(more),
        }
        Ok(())
    }

    /// Adds a block to the last item as text. Returns `false`, and adds nothing, unless the item was appended as text and can grow.
    pub(super) fn join_text(&mut self, write: impl FnOnce(&mut String)) -> bool {
        let can_grow = matches!(self.last, LastItem::Written { can_grow: true });
        if can_grow {
            self.text.truncate(self.text.len().saturating_sub("]}".len()));
            self.text.push(',');
            write(&mut self.text);
            self.text.push_str("]}");
        }
        can_grow
    }

    /// Writes the last item as text, unless it is text already. No turn can join the item afterwards.
    fn close(&mut self) {
        if let LastItem::Open(mut item) =
            std::mem::replace(&mut self.last, LastItem::Written { can_grow: false })
        {
            let blocks = item.get_mut(self.content).and_then(Value::as_array_mut);
            blocks.into_iter().flatten().for_each(|block| self.marks.limit_block(block));
            write_json(&mut self.text, &item);
        }
    }

    /// Returns the text of all items. Keeps the text up to the last `ResumePoint` for the next request.
    pub(super) fn finish(mut self) -> Vec<TextSegment> {
        self.close();
        let Self { messages, mut kept, resumed, text, points, .. } = self;
        let end = points.last().map_or(resumed, |point| *point);
        let rest = text.get(end.length - resumed.length..).unwrap_or_default().to_owned();
        if end.length > resumed.length {
            let mut stable = text;
            stable.truncate(end.length - resumed.length);
            kept.segments.push(stable.into());
        }
        join_last(&mut kept.segments);
        let mut segments = kept.segments.clone();
        segments.push(rest.into());
        if messages.slot().is_some() {
            kept.messages
                .extend(messages.get(resumed.messages..end.messages).unwrap_or_default().iter().cloned());
            kept.points.extend(points);
            messages.slot().put(kept);
        }
        segments
    }
}

/// Joins the last segments until each segment is more than twice as long as the next segment. The number of segments stays small, and each
/// byte is copied only a few times while a conversation grows.
fn join_last(segments: &mut Vec<TextSegment>) {
    let (mut length, mut joined) = (0, 0);
    for segment in segments.iter().rev().map(TextSegment::as_str) {
        if segment.len() > 2 * length && joined > 0 {
            break;
        }
        length += segment.len();
        joined += 1;
    }
    if joined > 1 {
        let mut text = String::with_capacity(length);
        let last = segments.drain(segments.len() - joined..);
        last.for_each(|segment| text.push_str(segment.as_str()));
        segments.push(text.into());
    }
}

impl CacheMarks {
    fn limit_block(&mut self, block: &mut Value) {
        if block.get("type").is_some_and(|kind| kind == "tool_result") {
            let inner = block.get_mut("content").and_then(Value::as_array_mut);
            inner.into_iter().flatten().for_each(|block| self.limit(block));
        }
        self.limit(block);
    }

    fn limit(&mut self, block: &mut Value) {
        let Some(block) = block.as_object_mut().filter(|block| block.contains_key("cache_control")) else {
            return;
        };
        self.seen += 1;
        if self.skipped < self.skip {
            self.skipped += 1;
            block.shift_remove("cache_control");
        }
    }
}
