//! What is said to a run, in the order of slots that are filled once.
//!
//! A slot is a promise of the workflow that the run is. The run waits for one after the other; its inbox fills them, and at its end the
//! run fills the next one itself. Who comes first is the engine's decision, so nothing is said behind the end, and nothing is lost
//! before it, and a run that nobody talks to asks nobody.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

/// What a slot holds, and who put it there: the same words of two are two things.
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
    /// The run is to end, for this reason.
    Stop(Arc<str>),
    /// The run takes nothing any more.
    Closed,
}

/// The promise's name.
pub(super) fn slot_name(number: u32) -> String {
    format!("news-{number}")
}

/// The slots of a run, as it comes to them: the engine's futures borrow their names.
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

    /// The one behind it.
    pub(super) fn next(&self) -> &Self {
        self.next.get_or_init(|| Box::new(Self::new(self.number.wrapping_add(1))))
    }
}

/// One after the other: a run that was told very often has a long chain.
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
