//! The keys that an object has had so far: each at most once, all that are required, and as many as the schema allows.

use super::hash::NameHash;
use super::plan::ObjectSpec;
use std::{borrow::Cow, collections::HashSet};

/// The keys of one object while it is read.
#[derive(Default)]
pub(super) struct SeenKeys<'t> {
    /// The first 64 properties, one bit each.
    first: u64,
    /// Keys that do not count: nulls that mean absent, and dropped ones.
    absent: u64,
    more: Option<Box<MoreKeys<'t>>>,
}

/// The keys of large objects and of maps.
#[derive(Default)]
struct MoreKeys<'t> {
    /// The properties after the first 64.
    props: Vec<u64>,
    /// Map entries and unknown keys.
    others: HashSet<Cow<'t, str>, NameHash>,
}

impl<'t> SeenKeys<'t> {
    /// Returns which of the first 64 properties the object had, one bit each.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    #[inline]
    pub(super) fn set_first(&mut self, first: u64) {
        self.first = first;
    }

    /// Adds a property. Returns `false` if the object had it before.
    #[inline]
    pub(super) fn add(&mut self, index: usize) -> bool {
        if index >= 64 {
            return self.add_more(index);
        }
        let bit = 1 << index;
        let new = self.first & bit == 0;
        self.first |= bit;
        new
    }

    #[cold]
    fn add_more(&mut self, index: usize) -> bool {
        let words = &mut self.more.get_or_insert_default().props;
        let at = index / 64 - 1;
        if words.len() <= at {
            words.resize(at + 1, 0);
        }
        let (word, bit) = (&mut words[at], 1 << (index % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Adds a map entry or an unknown key, in its canonical spelling. Returns `false` if the object had it before.
    pub(super) fn add_other(&mut self, key: Cow<'t, str>) -> bool {
        self.more.get_or_insert_default().others.insert(key)
    }

    /// Excludes the last key from the number of keys.
    pub(super) fn add_absent(&mut self) {
        self.absent += 1;
    }

    /// Whether the object had a property after the first 64.
    fn has_more(&self, index: usize) -> bool {
        let word = self.more.as_ref().and_then(|more| more.props.get(index / 64 - 1));
        word.is_some_and(|w| w & 1 << (index % 64) != 0)
    }

    fn count(&self) -> u64 {
        let more = self.more.as_ref().map_or(0, |more| {
            more.props.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() + more.others.len() as u64
        });
        u64::from(self.first.count_ones()) + more - self.absent
    }

    /// Whether the required properties and the number of keys are as the object demands.
    #[inline]
    pub(super) fn are_complete(&self, object: &ObjectSpec) -> bool {
        self.first & object.required == object.required
            && (object.is_complete_with_required || self.are_all(object))
    }

    fn are_all(&self, object: &ObjectSpec) -> bool {
        let mut more = object.props.iter().enumerate().skip(64);
        more.all(|(i, p)| !p.required || self.has_more(i)) && object.takes_length(self.count())
    }
}
