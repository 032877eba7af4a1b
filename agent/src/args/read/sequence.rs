//! Arrays and tuples.

use super::PlanSeed;
use super::context::{ValuePosition, list, refused};
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use std::fmt;

pub(super) struct SequenceVisitor<'c, V> {
    pub(super) visitor: V,
    pub(super) at: &'c ValuePosition<'c>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for SequenceVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let mut count = 0;
        let items = Items { access, at: self.at, count: &mut count };
        let out = self.visitor.visit_seq(items);
        // Tests `out` in place, because moving a large value costs time.
        if out.is_ok() && !self.at.is_exact() && !takes_length(self.at, count) {
            return Err(refused("length"));
        }
        out
    }
}

struct Items<'c, 'n, A> {
    access: A,
    at: &'c ValuePosition<'c>,
    count: &'n mut usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<'_, '_, A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let along;
        let at = if self.at.is_exact() {
            self.at
        } else {
            match position(self.at, *self.count) {
                Some(position) => along = position,
                // The tuple type has no further items. If the text has more items, `serde_json` reports them.
                None => return Ok(None),
            }
            &along
        };
        let item = self.access.next_element_seed(PlanSeed { seed, at });
        if let Ok(Some(_)) = &item {
            *self.count += 1;
        }
        item
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.size_hint()
    }
}

#[inline(never)]
fn takes_length(at: &ValuePosition<'_>, count: usize) -> bool {
    list(at).is_some_and(|array| array.takes_length(count as u64))
}

#[inline(never)]
fn position<'c>(at: &'c ValuePosition<'c>, index: usize) -> Option<ValuePosition<'c>> {
    let node = list(at)?.item(index)?;
    Some(at.index(index, at.cx.graph.node(node)))
}
