//! Scans the text of arguments to decide whether they fit a `Plan` exactly: without coercions, aliases and repeated keys. Arguments that
//! fit exactly are read directly into their type; other arguments are read with the help of the `Plan`. The scan is not a full JSON
//! parser: `serde_json` reads the text afterwards, and refuses a text that is not JSON.

mod choices;
mod key_hashes;
mod scalars;

use super::object_keys::{KeyRole, ObjectRules, SeenKeys};
use super::plan::{
    ArraySpec, FrequentValues, Graph, NodeId, NodeKind, ObjectSpec, PlanNode, Prop, first_byte, short_number,
    word_at,
};
use crate::name_hash::NameHash;
use key_hashes::KeyHashes;
use std::borrow::Cow;

/// Maximum number of nested schema nodes. For example, a nullable object counts twice.
const MAX_DEPTH: u32 = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The arguments fit without any change.
    Exact,
    /// The arguments do not fit, not even with coercions: an object has an unknown key, lacks a required key, or has a wrong number of
    /// keys.
    Refused,
    /// The arguments do not fit exactly, or the scan cannot decide.
    Unknown,
}

pub(crate) fn fit(graph: &Graph, text: &str) -> Fit {
    let mut scan = Scan::new(graph, text);
    let start = skip_blank(scan.bytes, 0);
    if byte(scan.bytes, start) != b'{' {
        return Fit::Unknown;
    }
    let step = match graph.kind(graph.root) {
        NodeKind::Object(object) => scan.object(object, start),
        _ => scan.value(graph.root, start),
    };
    match step {
        Ok(end) if skip_blank(scan.bytes, end) == text.len() => Fit::Exact,
        Err(_) if scan.is_refused => Fit::Refused,
        _ => Fit::Unknown,
    }
}

/// Returns whether a value fits a schema node without coercion. `text` is the value without blanks around it. Also returns `false` if the
/// scan cannot decide.
pub(crate) fn value_fits(graph: &Graph, node: NodeId, text: &str) -> bool {
    Scan::new(graph, text).value(node, 0).is_ok_and(|end| end == text.len())
}

/// The reason why a scan ends early: a value does not fit without coercion, or the scan cannot decide whether it fits.
struct ScanStop {
    /// The position at which the scan found that the value does not fit; 0 if the scan cannot decide.
    misfit_at: usize,
}

const UNDECIDED: ScanStop = ScanStop { misfit_at: 0 };

fn misfit(at: usize) -> ScanStop {
    ScanStop { misfit_at: at.max(1) }
}

/// The position after the scanned value, or the early end of the scan.
type ScanStep = Result<usize, ScanStop>;

/// The byte that the function `byte` returns past the end of the text. JSON never contains it.
const END: u8 = 0;

struct Scan<'s> {
    graph: &'s Graph,
    text: &'s str,
    bytes: &'s [u8],
    depth: u32,
    /// Number of enclosing values with a check. A check such as `not` would turn a wrong misfit into a wrong fit. While this number is
    /// above 0, the scan is therefore undecided at an integer such as `1.0`, and at an object whose schema node is `NodeKind::Any`.
    checked: u32,
    /// Number of enclosing alternatives (`anyOf`) and checks (`not`). Inside them, the arguments are not refused because of one value that
    /// does not fit.
    choices: u32,
    /// Number of bytes that were scanned more than once.
    again: usize,
    is_refused: bool,
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "the condition is known where it is called")]
fn fits(fits: bool, end: usize) -> ScanStep {
    if fits { Ok(end) } else { Err(misfit(end)) }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "one comparison")]
fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(END)
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "most texts have no blanks")]
fn skip_blank(text: &[u8], at: usize) -> usize {
    if byte(text, at) > b' ' { at } else { skip_blanks(text, at) }
}

#[inline(never)]
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while let b' ' | b'\n' | b'\r' | b'\t' = byte(text, at) {
        at += 1;
    }
    at
}

/// Returns the position of the next byte that is not blank, and the eight bytes from there.
#[inline(always)]
#[expect(clippy::inline_always, reason = "most texts have no blanks")]
fn next_word(text: &[u8], at: usize) -> (usize, u64) {
    let word = word_at(text, at);
    if first_byte(word) > b' ' {
        return (at, word);
    }
    let at = skip_blanks(text, at);
    (at, word_at(text, at))
}

/// Returns the next byte that is not blank, and the position after it.
#[inline(always)]
#[expect(clippy::inline_always, reason = "most texts have no blanks")]
fn delimiter(text: &[u8], at: usize) -> (u8, usize) {
    let found = byte(text, at);
    if found > b' ' {
        return (found, at + 1);
    }
    let at = skip_blanks(text, at);
    (byte(text, at), at + 1)
}

/// Returns the index of the property whose key is at `at`, and the position after the colon. The position is 0 if the key is unknown, or
/// not written in the usual way. Unlike an `Option`, two numbers are returned in registers.
#[inline(never)]
fn written_at(object: &ObjectSpec, text: &[u8], at: usize) -> (usize, usize) {
    object.written_at(text, at).unwrap_or_default()
}

fn word(text: &[u8], word: &[u8], at: usize) -> ScanStep {
    fits(text.get(at..).is_some_and(|rest| rest.starts_with(word)), at + word.len())
}

impl<'s> Scan<'s> {
    #[inline]
    fn new(graph: &'s Graph, text: &'s str) -> Scan<'s> {
        Scan {
            graph,
            text,
            bytes: text.as_bytes(),
            depth: 0,
            checked: 0,
            choices: 0,
            again: 0,
            is_refused: false,
        }
    }

    #[inline]
    fn slice(&self, start: usize, end: usize) -> Result<&'s str, ScanStop> {
        self.text.get(start..end).ok_or(UNDECIDED)
    }

    /// Ends the scan at a value that no coercion can make fit. This refuses the arguments, except within alternatives (`anyOf`) and checks
    /// (`not`).
    #[cold]
    fn refuse(&mut self, at: usize) -> ScanStop {
        self.is_refused = self.choices == 0;
        misfit(at)
    }

    fn value(&mut self, id: NodeId, at: usize) -> ScanStep {
        self.item(self.graph.node(id), at)
    }

    #[inline(never)]
    fn item(&mut self, node: &'s PlanNode, at: usize) -> ScanStep {
        if self.depth >= MAX_DEPTH {
            return Err(UNDECIDED);
        }
        self.depth += 1;
        let step = match (&node.kind, byte(self.bytes, at)) {
            (NodeKind::Str(spec), b'"') => self.string(spec, at),
            (NodeKind::Int(spec), _) => self.integer(spec, at),
            (NodeKind::Num(spec), _) => self.number(spec, at),
            (NodeKind::Bool, b't') => word(self.bytes, b"true", at),
            (NodeKind::Bool, b'f') => word(self.bytes, b"false", at),
            (NodeKind::Enum(words), b'"') => self.closed(words, node, at),
            (NodeKind::Object(object), b'{') => self.object(object, at),
            (NodeKind::Array(array), b'[') => self.array(array, at),
            (NodeKind::Null | NodeKind::Nullable(_), b'n') => word(self.bytes, b"null", at),
            (NodeKind::Nullable(inner), _) => self.value(*inner, at),
            (NodeKind::Any, _) => self.anything(at),
            (NodeKind::Tagged { .. }, b'{') => self.tagged(node, at),
            (NodeKind::External(external), b'"') => self.closed(&external.units, node, at),
            (NodeKind::External(external), b'{') => self.variant(external.object, at),
            (NodeKind::Union { branches, exclusive: false }, _) => self.union(branches, at),
            (NodeKind::Checked(checked), _) => self.checked(checked, at),
            (NodeKind::Union { .. } | NodeKind::Const(_), _) => Err(UNDECIDED),
            _ => Err(misfit(at)),
        };
        self.depth -= 1;
        step
    }

    /// Scans a value of any type. Within a `NodeKind::Checked`, an object is undecided, because its keys may repeat.
    fn anything(&self, start: usize) -> ScanStep {
        let (mut at, mut open) = (start, 0_usize);
        loop {
            at = skip_blank(self.bytes, at);
            at = match byte(self.bytes, at) {
                b'"' => self.quoted(at)?.0,
                b'{' if self.checked > 0 => return Err(UNDECIDED),
                b'{' | b'[' => {
                    open += 1;
                    at + 1
                }
                b'}' | b']' => {
                    open = open.checked_sub(1).ok_or(UNDECIDED)?;
                    at + 1
                }
                b'-' | b'0'..=b'9' => self.token(at)?,
                b',' | b':' if open > 0 => at + 1,
                b't' => word(self.bytes, b"true", at)?,
                b'f' => word(self.bytes, b"false", at)?,
                b'n' => word(self.bytes, b"null", at)?,
                _ => return Err(UNDECIDED),
            };
            if open == 0 {
                return Ok(at);
            }
        }
    }

    fn array(&mut self, array: &'s ArraySpec, start: usize) -> ScanStep {
        // Equal items can have different texts, so the scan cannot compare them.
        if array.unique {
            return Err(UNDECIDED);
        }
        let text = self.bytes;
        let at = skip_blank(text, start + 1);
        let (count, end) = if byte(text, at) == b']' {
            (0, at + 1)
        } else {
            let first = array.item(0).filter(|_| array.is_list());
            match first.map_or(FrequentValues::Nothing, |item| self.graph.kind(item).frequent()) {
                FrequentValues::Nothing => self.items(array, at, |_| 0, |_, _| 0)?,
                FrequentValues::Integers(range) => {
                    let end = |at, head| range.end(text, at, head);
                    self.items(array, at, |head| range.short_length(head), end)?
                }
                FrequentValues::Numbers => {
                    let end = |at, head| FrequentValues::Numbers.end(text, at, head);
                    self.items(array, at, short_number, end)?
                }
                FrequentValues::Texts => {
                    self.items(array, at, |_| 0, |at, head| FrequentValues::Texts.end(text, at, head))?
                }
                bools @ FrequentValues::Bools => {
                    self.items(array, at, |_| 0, |at, head| bools.end(text, at, head))?
                }
            }
        };
        fits(array.takes_length(count), end)
    }

    /// Scans the items of a list. Returns the number of items and the position after the list. `short` and `frequent` are fast paths:
    /// `short` returns the length of an item that ends with a comma within the next eight bytes, and `frequent` returns the position after
    /// an item. Both return 0 for any other item.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the items are known where it is called")]
    fn items(
        &mut self,
        array: &'s ArraySpec,
        mut at: usize,
        short: impl Fn(u64) -> usize,
        frequent: impl Fn(usize, u64) -> usize,
    ) -> Result<(u64, usize), ScanStop> {
        let text = self.bytes;
        let mut count = 0;
        loop {
            while let length @ 1.. = short(word_at(text, at)) {
                count += 1;
                at += length + 1;
            }
            let (start, head) = next_word(text, at);
            let mut end = frequent(start, head);
            if end == 0 {
                end = self.value(array.item(count).ok_or(misfit(start))?, start)?;
            }
            count += 1;
            let found;
            (found, at) = delimiter(text, end);
            match found {
                b',' => {}
                b']' => return Ok((count as u64, at)),
                _ => return Err(UNDECIDED),
            }
        }
    }

    /// Scans a key without escapes, and the colon after it. Returns the position of the value, and the key.
    #[inline(never)]
    fn key(&self, at: usize) -> Result<(usize, &'s str), ScanStop> {
        if byte(self.bytes, at) != b'"' {
            return Err(UNDECIDED);
        }
        let (end, key) = self.plain(at)?;
        let colon = skip_blank(self.bytes, end);
        if byte(self.bytes, colon) == b':' {
            Ok((skip_blank(self.bytes, colon + 1), key))
        } else {
            Err(UNDECIDED)
        }
    }

    fn object(&mut self, object: &'s ObjectSpec, start: usize) -> ScanStep {
        let at = skip_blank(self.bytes, start + 1);
        if byte(self.bytes, at) == b'}' {
            return self.closed_early(object, 0, at + 1);
        }
        match object.map_values() {
            Some(node) => self.map(object, node, at),
            None => self.entries(object, 0, 0, at),
        }
    }

    #[inline(never)]
    fn map(&mut self, map: &ObjectSpec, node: NodeId, mut at: usize) -> ScanStep {
        let (text, seed) = (self.bytes, NameHash::default());
        let frequent = self.graph.kind(node).frequent();
        let mut keys = KeyHashes::default();
        loop {
            let (start, head) = next_word(text, at);
            let mut end = FrequentValues::Texts.end(text, start, head);
            if end == 0 {
                (end, _) = if first_byte(head) == b'"' { self.plain(start)? } else { return Err(UNDECIDED) };
            }
            // Either the key is repeated, or a different key has the same hash. The scan cannot tell which.
            if !keys.add(text.get(start + 1..end - 1).unwrap_or_default(), seed) {
                return Err(UNDECIDED);
            }
            let (b':', colon) = delimiter(text, end) else { return Err(UNDECIDED) };
            let (value, head) = next_word(text, colon);
            end = frequent.end(text, value, head);
            if end == 0 {
                end = self.value(node, value)?;
            }
            let found;
            (found, at) = delimiter(text, end);
            match found {
                b',' => {}
                b'}' if map.takes_length(keys.len() as u64) => return Ok(at),
                b'}' => return Err(self.refuse(at)),
                _ => return Err(UNDECIDED),
            }
        }
    }

    /// Ends an object. Refuses it if a required key is missing, or if the number of keys is wrong.
    fn closed_object(&mut self, object: &ObjectSpec, seen: &SeenKeys<'s>, end: usize) -> ScanStep {
        if seen.are_complete(object) { Ok(end) } else { Err(self.refuse(end)) }
    }

    /// Ends an object like `closed_object`. All keys are among the first 64 properties, which have one bit each in `bits`.
    #[inline(never)]
    fn closed_early(&mut self, object: &ObjectSpec, bits: u64, end: usize) -> ScanStep {
        if object.is_complete_of(bits) { Ok(end) } else { Err(self.refuse(end)) }
    }

    /// Scans the entries of an object from a key on. `other_entries` takes over at a key that has escapes or is not among the first 64
    /// properties. `bits` marks the scanned properties, and `next` is the index of the property that is expected next.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is called in two places, for every object")]
    fn entries(&mut self, object: &'s ObjectSpec, mut bits: u64, next: usize, mut at: usize) -> ScanStep {
        let text = self.bytes;
        let first = object.props.get(..64).unwrap_or(&object.props);
        let mut expected = first.get(next..).unwrap_or_default();
        loop {
            let mut end;
            if let Some(after) = expected.first().and_then(|prop| prop.token.end(text, at)) {
                end = after;
            } else if let (index, after) = written_at(object, text, at)
                && after > 0
                && let Some(found) = first.get(index..)
                && !found.is_empty()
            {
                (expected, end) = (found, after);
            } else {
                return self.other_entries(
                    object,
                    SeenKeys::of_first(bits),
                    first.len() - expected.len(),
                    at,
                );
            }
            let begin = first.len() - expected.len();
            while let [prop, after @ ..] = expected {
                expected = after;
                let (value, head) = next_word(text, end);
                end = prop.frequent.end(text, value, head);
                if end == 0 {
                    end = self.property(prop, value)?;
                }
                // Usually the next property follows in the order of the schema.
                let Some(next) = after.first() else { break };
                let Some(after) = next.token.end_after_comma(text, end) else { break };
                end = after;
            }
            let run = u64::MAX >> (64 - (first.len() - expected.len() - begin)) << begin;
            if bits & run != 0 {
                return Err(misfit(end));
            }
            bits |= run;
            let found;
            (found, at) = delimiter(text, end);
            match found {
                b',' => at = skip_blank(text, at),
                b'}' if object.is_complete_with(bits) => return Ok(at),
                b'}' => return self.closed_early(object, bits, at),
                _ => return Err(UNDECIDED),
            }
        }
    }

    #[inline(never)]
    fn property(&mut self, prop: &'s Prop, at: usize) -> ScanStep {
        // A null for an absent parameter needs a coercion, so the object does not fit exactly.
        if prop.null_absent && byte(self.bytes, at) == b'n' {
            Err(misfit(at))
        } else {
            self.value(prop.node, at)
        }
    }

    #[inline(never)]
    fn other_entries(
        &mut self,
        object: &'s ObjectSpec,
        mut seen: SeenKeys<'s>,
        mut next: usize,
        mut at: usize,
    ) -> ScanStep {
        let text = self.bytes;
        // The index of the next key's property, and the position after the colon. `(0, 0)` if `written_at` does not find the key.
        let mut usual = (0, 0);
        loop {
            let (node, value);
            if let (index, end @ 1..) = usual
                && let Some(prop) = object.props.get(index)
            {
                value = skip_blank(text, end);
                if !seen.add(index) || prop.null_absent && byte(text, value) == b'n' {
                    return Err(misfit(value));
                }
                (node, next) = (prop.node, index + 1);
            } else {
                (node, next, value) = self.other(object, at, next, &mut seen)?;
            }
            let end = self.value(node, value)?;
            let found;
            (found, at) = delimiter(text, end);
            match found {
                b',' => {
                    at = skip_blank(text, at);
                    usual = written_at(object, text, at);
                }
                b'}' => return self.closed_object(object, &seen, at),
                _ => return Err(UNDECIDED),
            }
        }
    }

    /// Scans a key that the fast paths do not handle, such as an unknown key. Returns the schema node of the value, the index of the next
    /// expected property, and the position of the value.
    #[inline(never)]
    fn other(
        &mut self,
        object: &'s ObjectSpec,
        at: usize,
        next: usize,
        seen: &mut SeenKeys<'s>,
    ) -> Result<(NodeId, usize, usize), ScanStop> {
        let (at, key) = self.key(at)?;
        let mut next = next;
        // The object may be the root, where unknown keys may be dropped. With `true`, such a key is `UNDECIDED` instead of refused.
        match ObjectRules::new(self.graph, object, true).role(key, &mut next) {
            KeyRole::Property(index) => match object.props.get(index) {
                Some(prop) if prop.name == key => {
                    if !seen.add(index) || prop.null_absent && byte(self.bytes, at) == b'n' {
                        return Err(misfit(at));
                    }
                    Ok((prop.node, next, at))
                }
                // A property that was sent under an alias has to be renamed.
                _ => Err(UNDECIDED),
            },
            // Types that read keys as numbers accept several spellings of one key, so the scan cannot decide.
            _ if object.patterns.iter().any(|(pattern, _)| pattern.is_integer_key()) => Err(UNDECIDED),
            KeyRole::Entry(node) if seen.add_other(Cow::Borrowed(key), ()) => Ok((node, next, at)),
            KeyRole::Entry(_) => Err(misfit(at)),
            KeyRole::Dropped => Err(UNDECIDED),
            KeyRole::Unknown => Err(self.refuse(at)),
        }
    }

    /// Scans the object `{"Variant": …}` of an externally tagged enum.
    fn variant(&mut self, object: NodeId, at: usize) -> ScanStep {
        match self.graph.kind(object) {
            NodeKind::Object(object) => self.object(object, at),
            _ => Err(UNDECIDED),
        }
    }
}

#[cfg(test)]
mod tests;
