//! Scans of strings and numbers.

use super::{Scan, ScanStep, ScanStop, UNDECIDED, byte, fits, misfit};
use crate::args::plan::{
    FrequentValues, IntSpec, NumSpec, PlanNode, StrSpec, Words, before_quote, leading_digits, word_at,
};
use crate::args::rounding;
use crate::args::scalar::{Int, Num, int_from_text};
use std::borrow::Cow;

/// Maximum length of a scanned string, in bytes. A longer string usually ends the scan, so that the string is not read twice.
const LONG_TEXT: usize = 512;

impl<'s> Scan<'s> {
    /// Scans a string. Returns the position after it, and whether it has escapes.
    #[inline]
    pub(super) fn quoted(&self, at: usize) -> Result<(usize, bool), ScanStop> {
        let end = self.text_end(at + 1)?;
        if byte(self.bytes, end) == b'"' { Ok((end + 1, false)) } else { self.escaped(at, end) }
    }

    /// Returns the position of the first quote or escape from `start` on.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "most keys and many texts are short")]
    pub(super) fn text_end(&self, start: usize) -> ScanStep {
        let length = before_quote(word_at(self.bytes, start));
        if length < 8 {
            return Ok(start + length);
        }
        let length = before_quote(word_at(self.bytes, start + 8));
        if length < 8 {
            return Ok(start + 8 + length);
        }
        self.long_text_end(start + 16)
    }

    #[inline(never)]
    fn long_text_end(&self, start: usize) -> ScanStep {
        let mut at = start;
        loop {
            let length = before_quote(word_at(self.bytes, at));
            at += length;
            if length < 8 {
                return Ok(at);
            }
            if at >= self.bytes.len() || at - start > LONG_TEXT && self.choices == 0 {
                return Err(UNDECIDED);
            }
        }
    }

    /// Scans a string with escapes. `first` is the position of the first escape.
    #[inline(never)]
    pub(super) fn escaped(&self, start: usize, first: usize) -> Result<(usize, bool), ScanStop> {
        let mut at = first;
        while byte(self.bytes, at) != b'"' {
            // An escape `\ud…` may be half of a surrogate pair. The scan does not pair surrogates, so it ends undecided.
            if let Some([b'u', b'd' | b'D']) = self.bytes.get(at + 1..at + 3) {
                return Err(UNDECIDED);
            }
            if at - start > LONG_TEXT && self.choices == 0 {
                return Err(UNDECIDED);
            }
            at = self.text_end(at + 2)?;
        }
        Ok((at + 1, true))
    }

    pub(super) fn string(&self, spec: &StrSpec, at: usize) -> ScanStep {
        let end = self.text_end(at + 1)?;
        if spec.is_plain && byte(self.bytes, end) == b'"' {
            Ok(end + 1)
        } else {
            self.other_string(spec, at, end)
        }
    }

    /// Scans a string that has escapes or must fulfil constraints. `end` is the position of the first escape or of the closing
    /// quote.
    #[inline(never)]
    fn other_string(&self, spec: &StrSpec, start: usize, end: usize) -> ScanStep {
        let (end, has_escapes) =
            if byte(self.bytes, end) == b'"' { (end + 1, false) } else { self.escaped(start, end)? };
        if spec.is_plain { Ok(end) } else { self.restricted_string(spec, start, end, has_escapes) }
    }

    fn restricted_string(&self, spec: &StrSpec, start: usize, end: usize, has_escapes: bool) -> ScanStep {
        let text = if has_escapes {
            let token = self.slice(start, end)?;
            Cow::Owned(serde_json::from_str::<String>(token).map_err(|_| UNDECIDED)?)
        } else {
            Cow::Borrowed(self.slice(start + 1, end - 1)?)
        };
        fits(spec.takes(&text), end)
    }

    /// Scans a string without escapes. Returns the position after it, and its content.
    #[inline]
    pub(super) fn plain(&self, at: usize) -> Result<(usize, &'s str), ScanStop> {
        let (end, has_escapes) = self.quoted(at)?;
        if has_escapes { Err(UNDECIDED) } else { Ok((end, self.slice(at + 1, end - 1)?)) }
    }

    pub(super) fn closed(&self, words: &Words, node: &PlanNode, at: usize) -> ScanStep {
        if let Some(end) = words.end(self.bytes, at) {
            return Ok(end);
        }
        let (end, text) = self.plain(at)?;
        match words.pick(text, node.rules) {
            Some(picked) if !picked.is_coerced => Err(UNDECIDED),
            _ => Err(misfit(end)),
        }
    }

    pub(super) fn digits(&self, mut at: usize) -> usize {
        loop {
            let length = leading_digits(word_at(self.bytes, at));
            at += length;
            if length < 8 {
                return at;
            }
        }
    }

    pub(super) fn integer(&self, spec: &IntSpec, start: usize) -> ScanStep {
        let end = self.digits(start + usize::from(byte(self.bytes, start) == b'-'));
        if let b'.' | b'e' | b'E' = byte(self.bytes, end) {
            // In a check such as `not`, `1.0` is an integer, as in JSON Schema, so the scan cannot decide.
            return Err(if self.checked > 0 { UNDECIDED } else { misfit(end) });
        }
        let token = self.slice(start, end)?;
        // `serde_json` reads `-0` as a float, so `-0` does not fit. In a check such as `not`, `-0` is an integer, so the scan cannot
        // decide.
        match int_from_text(token).int() {
            Some(_) if self.checked > 0 && token == "-0" => Err(UNDECIDED),
            Some(int @ (Int::Signed(_) | Int::Unsigned(_))) => fits(token != "-0" && spec.takes(int), end),
            Some(_) => Err(UNDECIDED),
            None => Err(misfit(end)),
        }
    }

    /// Scans a number. Returns `UNDECIDED` if the number may lose digits as a float.
    #[inline]
    pub(super) fn token(&self, start: usize) -> ScanStep {
        match FrequentValues::Numbers.end(self.bytes, start, word_at(self.bytes, start)) {
            0 => Err(UNDECIDED),
            end => Ok(end),
        }
    }

    pub(super) fn number(&self, spec: &NumSpec, start: usize) -> ScanStep {
        if !matches!(byte(self.bytes, start), b'-' | b'0'..=b'9') {
            return Err(misfit(start));
        }
        let end = self.token(start)?;
        match Num::of_token(self.slice(start, end)?) {
            Some(Num::Float(float)) if spec.single && !rounding::has_few_digits(float) => Err(UNDECIDED),
            Some(Num::Signed(whole)) if spec.rounded_whole(whole.into()).is_some() => Err(UNDECIDED),
            number => fits(number.is_some_and(|number| spec.takes(number)), end),
        }
    }
}
