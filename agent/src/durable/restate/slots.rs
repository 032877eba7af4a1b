//! Notices to a run, in numbered slots that are filled once.
//!
//! A slot is a promise of the workflow that is the run. The run waits for one slot after the other. Its inbox fills the slots, and at its
//! end the run fills the next one itself. The engine decides who comes first, so nothing arrives after the end and nothing is lost before
//! it. A run that receives nothing makes no requests.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

/// What a slot holds, and who filled it: equal notices of two senders are two notices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct News {
    pub(super) what: What,
    pub(super) by: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// Messages wait in the inbox.
    Mail,
    /// The run is cancelled, for this reason.
    Stop(Arc<str>),
    /// The run takes nothing more.
    Closed,
}

/// Returns the name of the promise.
pub(super) fn slot_name(number: u32) -> String {
    format!("news-{number}")
}

/// The slots of a run, created as the run reaches them. The engine's futures borrow their names.
#[derive(Debug)]
pub(super) struct Slot {
    number: u32,
    name: String,
    next: OnceLock<Box<Self>>,
}

impl Default for Slot {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Slot {
    fn new(number: u32) -> Self {
        Self { number, name: slot_name(number), next: OnceLock::new() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the next slot.
    pub(super) fn next(&self) -> &Self {
        self.next.get_or_init(|| Box::new(Self::new(self.number.wrapping_add(1))))
    }
}

/// Dropped in a loop, because a run that received many notices has a long chain.
impl Drop for Slot {
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
    fn slots_are_numbered_and_many() {
        let first = Slot::default();
        let mut at = &first;
        for _ in 0..200_000 {
            at = at.next();
        }
        assert_eq!((first.name(), first.next().name(), at.name()), ("news-0", "news-1", "news-200000"));
    }
}
