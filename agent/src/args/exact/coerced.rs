//! Scalars that fit after a coercion.

use super::{CoercedArguments, Fit, Scan, ScanStep, ScanStop, byte};
use crate::args::coercion::HIDDEN;
use crate::args::plan::{ObjectSpec, PlanNode};
use crate::args::read::{Context, coerce_token};
use crate::args::text::{push_index, push_segment};

/// The coerced scalars of a text, in the order of the text.
pub(super) struct CoercedScalars<'s> {
    /// Records the coercions, without paths. The paths are in `segments`.
    cx: Context<'s>,
    segments: Vec<AddedSegment<'s>>,
    /// The sent text before `copied`, with coerced scalars.
    text: String,
    copied: usize,
}

/// A path segment that the coercions `first..end` share.
struct AddedSegment<'s> {
    segment: CoercedSegment<'s>,
    is_secret: bool,
    first: usize,
    end: usize,
}

pub(super) enum CoercedSegment<'s> {
    Name(&'s str),
    Index(usize),
}

impl<'s> Scan<'s> {
    /// Coerces a scalar that does not fit its node, or returns `stop`. Nothing is coerced within alternatives (`anyOf`) and checks
    /// (`not`), because another alternative might then fit.
    #[cold]
    #[inline(never)]
    pub(super) fn coerce(&mut self, node: &'s PlanNode, at: usize, stop: ScanStop) -> ScanStep {
        if !self.coerces || self.choices > 0 || self.checked > 0 || stop.misfit_at == 0 {
            return Err(stop);
        }
        let Some(end) = self.scalar_end(at) else { return Err(stop) };
        let coerced = self.coerced.get_or_insert_with(|| {
            let text = String::with_capacity(self.text.len() + 16);
            let cx = Context::recording(self.graph, self.text);
            Box::new(CoercedScalars { cx, segments: Vec::with_capacity(8), text, copied: 0 })
        });
        let (Some(before), Some(token)) = (self.text.get(coerced.copied..at), self.text.get(at..end)) else {
            return Err(stop);
        };
        coerced.text.push_str(before);
        if !coerce_token(&coerced.cx, node, token, &mut coerced.text) {
            return Err(stop);
        }
        coerced.copied = end;
        self.coercions = coerced.cx.count_coercions();
        Ok(end)
    }

    /// Returns the position after the string or number that starts at `at`.
    fn scalar_end(&self, at: usize) -> Option<usize> {
        match byte(self.bytes, at) {
            b'"' => Some(self.quoted(at).ok()?.0),
            b'-' | b'0'..=b'9' => {
                let rest = self.bytes.get(at..)?;
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                Some(at + rest.iter().take_while(|byte| is_part(byte)).count())
            }
            _ => None,
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn add_key(&mut self, first: usize, object: &ObjectSpec, at: usize) -> Result<(), ScanStop> {
        let (_, key) = self.key(at)?;
        let prop = object.find(key, 0).and_then(|index| object.props.get(index));
        self.add_segment(first, CoercedSegment::Name(key), prop.is_some_and(|prop| prop.secret));
        Ok(())
    }

    /// Adds a segment to the path of each coercion since the index `first`.
    #[cold]
    #[inline(never)]
    pub(super) fn add_segment(&mut self, first: usize, segment: CoercedSegment<'s>, is_secret: bool) {
        let end = self.coercions;
        if let Some(coerced) = &mut self.coerced {
            coerced.segments.push(AddedSegment { segment, is_secret, first, end });
        }
    }
}

impl CoercedScalars<'_> {
    /// Returns the coerced arguments, or `Fit::Unknown` if a number may have lost digits.
    #[cold]
    pub(super) fn finish(mut self, sent: &str) -> Fit {
        let Some(rest) = sent.get(self.copied..).filter(|_| !self.cx.may_have_rounded()) else {
            return Fit::Unknown;
        };
        self.text.push_str(rest);
        let mut coercions = self.cx.into_coercions();
        for AddedSegment { segment, is_secret, first, end } in self.segments.iter().rev() {
            for coercion in coercions.iter_mut().take(*end).skip(*first) {
                match segment {
                    CoercedSegment::Name(name) => push_segment(&mut coercion.path, name),
                    CoercedSegment::Index(index) => push_index(&mut coercion.path, *index),
                }
                if *is_secret {
                    (coercion.from, coercion.to) = (HIDDEN.into(), HIDDEN.into());
                }
            }
        }
        Fit::Coerced(Box::new(CoercedArguments { text: self.text, coercions }))
    }
}
