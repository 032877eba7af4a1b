//! Notices to a run (about messages or a cancellation), in numbered slots that are filled once.
//!
//! A slot is a Restate promise of the run's workflow, and the engine accepts only its first value. The inbox fills the slots in order with
//! notices, and the run itself fills the next slot at its end. So either a notice reaches the run, or its sender learns that the run is
//! over. Without a notice, the run does not ask its inbox for messages.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

/// The content of a slot. A notice names its sender, because another sender may send an equal notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Notice {
    #[serde(rename = "what")]
    pub(super) kind: NoticeKind,
    #[serde(rename = "by")]
    pub(super) sender: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NoticeKind {
    Mail,
    Stop(Arc<str>),
    Closed,
}

pub(super) fn slot_name(number: u32) -> String {
    format!("news-{number}")
}

/// A slot for one notice, in a linked list. Slots live as long as the run, because the engine's futures borrow the names of the slots.
#[derive(Debug)]
pub(super) struct NoticeSlot {
    number: u32,
    name: String,
    next: OnceLock<Box<Self>>,
}

impl Default for NoticeSlot {
    fn default() -> Self {
        Self::new(0)
    }
}

impl NoticeSlot {
    fn new(number: u32) -> Self {
        Self { number, name: slot_name(number), next: OnceLock::new() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn next(&self) -> &Self {
        self.next.get_or_init(|| Box::new(Self::new(self.number.wrapping_add(1))))
    }
}

/// Drops the following slots in a loop. After many notices, a recursive drop would exceed the stack.
impl Drop for NoticeSlot {
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(mut slot) = next {
            next = slot.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_notices_keep_their_form() {
        let notice = |kind| Notice { kind, sender: "inv_1".to_owned() };
        for (kind, json) in [
            (NoticeKind::Mail, r#"{"what":"mail","by":"inv_1"}"#),
            (NoticeKind::Stop("enough".into()), r#"{"what":{"stop":"enough"},"by":"inv_1"}"#),
            (NoticeKind::Closed, r#"{"what":"closed","by":"inv_1"}"#),
        ] {
            assert_eq!(serde_json::to_string(&notice(kind.clone())).unwrap(), json);
            assert_eq!(serde_json::from_str::<Notice>(json).unwrap(), notice(kind));
        }
    }

    #[test]
    fn slots_are_numbered_and_many() {
        let first = NoticeSlot::default();
        let mut at = &first;
        for _ in 0..200_000 {
            at = at.next();
        }
        assert_eq!((first.name(), first.next().name(), at.name()), ("news-0", "news-1", "news-200000"));
    }
}
