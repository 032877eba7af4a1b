//! Arrays and tuples.

use super::PlanSeed;
use super::context::{ValuePosition, refused};
use crate::args::plan::ArraySpec;
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use std::fmt;

pub(super) struct SequenceVisitor<'c, V> {
    pub(super) visitor: V,
    pub(super) at: &'c ValuePosition<'c>,
    pub(super) array: &'c ArraySpec,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for SequenceVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let mut count = 0;
        let array = self.array;
        let out = self.visitor.visit_seq(Items { access, at: self.at, array, count: &mut count });
        let count = count as u64;
        if out.is_ok() && !array.takes_length(count) {
            return Err(refused("length"));
        }
        out
    }
}

struct Items<'c, 'n, A> {
    access: A,
    at: &'c ValuePosition<'c>,
    array: &'c ArraySpec,
    count: &'n mut usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<'_, '_, A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let cx = self.at.cx;
        let along;
        let at = if cx.is_exact() {
            self.at
        } else {
            // After the last item of a tuple: serde_json finds what is too much.
            let Some(node) = self.array.item(*self.count) else { return Ok(None) };
            along = self.at.index(*self.count, cx.graph.node(node));
            &along
        };
        match self.access.next_element_seed(PlanSeed { seed, at }) {
            Ok(Some(item)) => {
                *self.count += 1;
                Ok(Some(item))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                cx.failed(at);
                Err(error)
            }
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.size_hint()
    }
}
