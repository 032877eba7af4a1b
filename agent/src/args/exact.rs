//! Whether arguments fit a plan exactly as they are: every value in the form of the schema, every key by its own name, once.
//!
//! Such arguments are read without the plan, which has nothing to change in them. The scan only decides; `serde_json` reads the text
//! afterwards, and so has the last word on what is JSON. A scan that stops decides nothing: the arguments are then read along the
//! plan.

mod scalars;

use super::plan::{
    AdditionalProperties, ArraySpec, ExternalSpec, Graph, Kind, Node, NodeId, ObjectSpec, VariantNames,
};
use super::policy::UnknownKeys;
use super::seen_keys::SeenKeys;
use std::borrow::Cow;

/// Values nest less deep than this, with a few alternatives at each level.
const MAX_DEPTH: u32 = 300;

/// How arguments fit a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Exactly as they are.
    Exact,
    /// Not at all: an object has a key that it does not accept.
    Refused,
    /// Not exactly, or the scan cannot decide.
    Unknown,
}

/// Returns how the arguments, which must be an object, fit the plan.
pub(crate) fn fit(graph: &Graph, text: &str) -> Fit {
    let mut scan = Scan::new(graph, text);
    let start = scan.skip_blank(0);
    if scan.byte(start) != b'{' {
        return Fit::Unknown;
    }
    match scan.value(graph.root, start) {
        Ok(end) if scan.skip_blank(end) == text.len() => Fit::Exact,
        Err(_) if scan.is_refused => Fit::Refused,
        _ => Fit::Unknown,
    }
}

/// Whether a value fits a node exactly. `false` says nothing.
pub(crate) fn value_fits(graph: &Graph, node: NodeId, text: &str) -> bool {
    Scan::new(graph, text).value(node, 0).is_ok_and(|end| end == text.len())
}

/// Why a scan ends early: the value does not fit exactly, so that another alternative may, or the scan cannot decide.
struct Stop {
    /// Where the value was found not to fit; 0 if the scan cannot decide.
    misfit_at: usize,
}

const UNDECIDED: Stop = Stop { misfit_at: 0 };

fn misfit(at: usize) -> Stop {
    Stop { misfit_at: at }
}

/// The position after what was scanned.
type Step = Result<usize, Stop>;

/// What is read after the last byte. No JSON has it.
const END: u8 = 0;

struct Scan<'s> {
    graph: &'s Graph,
    text: &'s str,
    bytes: &'s [u8],
    depth: u32,
    /// The number of open values whose alternative or variant is chosen by their content.
    choices: u32,
    /// The number of bytes that may be scanned again: alternatives in alternatives would multiply the work.
    left: usize,
    /// Whether an object outside of alternatives has a key that it does not accept.
    is_refused: bool,
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "the condition is known where it is called")]
fn fits(fits: bool, end: usize) -> Step {
    if fits { Ok(end) } else { Err(misfit(end)) }
}

impl<'s> Scan<'s> {
    #[inline]
    fn new(graph: &'s Graph, text: &'s str) -> Scan<'s> {
        Scan {
            graph,
            text,
            bytes: text.as_bytes(),
            depth: 0,
            choices: 0,
            left: 256 + 4 * text.len(),
            is_refused: false,
        }
    }

    #[inline]
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(END)
    }

    /// Returns the position of the next byte that is not blank.
    #[inline]
    fn skip_blank(&self, at: usize) -> usize {
        if self.byte(at) > b' ' { at } else { self.skip_blanks(at) }
    }

    #[inline(never)]
    fn skip_blanks(&self, mut at: usize) -> usize {
        while let b' ' | b'\n' | b'\r' | b'\t' = self.byte(at) {
            at += 1;
        }
        at
    }

    #[inline]
    fn slice(&self, start: usize, end: usize) -> Result<&'s str, Stop> {
        self.text.get(start..end).ok_or(UNDECIDED)
    }

    #[inline]
    fn word(&self, word: &[u8], at: usize) -> Step {
        fits(self.bytes.get(at..).is_some_and(|rest| rest.starts_with(word)), at + word.len())
    }

    fn value(&mut self, id: NodeId, at: usize) -> Step {
        self.item(id, at)
    }

    /// Scans a value from its first byte.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "most values are scalars in objects and lists")]
    fn item(&mut self, id: NodeId, at: usize) -> Step {
        let node = self.graph.node(id);
        let first = self.byte(at);
        match &node.kind {
            Kind::Str(spec) if first == b'"' => self.string(spec, at),
            Kind::Int(spec) => self.integer(spec, at),
            Kind::Bool if first == b't' => self.word(b"true", at),
            Kind::Bool if first == b'f' => self.word(b"false", at),
            _ => self.nested(node, first, at),
        }
    }

    #[inline(never)]
    fn nested(&mut self, node: &'s Node, first: u8, at: usize) -> Step {
        if self.depth >= MAX_DEPTH {
            return Err(UNDECIDED);
        }
        self.depth += 1;
        let step = match (&node.kind, first) {
            (Kind::Num(spec), b'-' | b'0'..=b'9') => self.number(spec, at),
            (Kind::Enum(words), b'"') => self.closed(words, node, at),
            (Kind::Object(object), b'{') => self.object(object, at),
            (Kind::Array(array), b'[') => self.array(array, at),
            (Kind::Null | Kind::Nullable(_), b'n') => self.word(b"null", at),
            (Kind::Nullable(inner), _) => self.value(*inner, at),
            (Kind::Any, _) => self.anything(at),
            (Kind::Tagged { tag, variants, names }, b'{') => self.tagged(tag, variants, names, node, at),
            (Kind::External(external), b'"') => self.closed(&external.units, node, at),
            (Kind::External(external), b'{') => self.external(external, at),
            (Kind::Union { branches, exclusive: false }, _) => self.union(branches, at),
            (Kind::Union { .. } | Kind::Checked(_) | Kind::Const(_), _) => Err(UNDECIDED),
            _ => Err(misfit(at)),
        };
        self.depth -= 1;
        step
    }

    /// Scans a value of any type. Only digits that a number may lose matter.
    fn anything(&self, start: usize) -> Step {
        let (mut at, mut open) = (start, 0_usize);
        loop {
            at = self.skip_blank(at);
            at = match self.byte(at) {
                b'"' => self.quoted(at)?.0,
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
                b't' => self.word(b"true", at)?,
                b'f' => self.word(b"false", at)?,
                b'n' => self.word(b"null", at)?,
                _ => return Err(UNDECIDED),
            };
            if open == 0 {
                return Ok(at);
            }
        }
    }

    fn array(&mut self, array: &ArraySpec, start: usize) -> Step {
        // Equal items can be written in different ways.
        if array.unique {
            return Err(UNDECIDED);
        }
        let mut at = self.skip_blank(start + 1);
        let mut count = 0;
        if self.byte(at) != b']' {
            loop {
                let end = self.item(array.item(count).ok_or(misfit(at))?, at)?;
                count += 1;
                at = self.skip_blank(end);
                match self.byte(at) {
                    b',' => at = self.skip_blank(at + 1),
                    b']' => break,
                    _ => return Err(UNDECIDED),
                }
            }
        }
        let count = count as u64;
        fits(array.min <= count && count <= array.max, at + 1)
    }

    /// Scans a key without escapes and the colon. Returns the position of the value.
    fn key(&self, at: usize) -> Result<(usize, &'s str), Stop> {
        if self.byte(at) != b'"' {
            return Err(UNDECIDED);
        }
        let (end, key) = self.plain(at)?;
        let colon = self.skip_blank(end);
        if self.byte(colon) == b':' { Ok((self.skip_blank(colon + 1), key)) } else { Err(UNDECIDED) }
    }

    /// Returns the position of the value, if the key is this one and the colon follows.
    #[inline]
    fn key_is(&self, at: usize, name: &str) -> Option<usize> {
        let rest = self.bytes.get(at..)?.strip_prefix(b"\"")?;
        let rest = rest.strip_prefix(name.as_bytes())?.strip_prefix(b"\":")?;
        Some(self.skip_blank(self.bytes.len() - rest.len()))
    }

    fn object(&mut self, object: &'s ObjectSpec, start: usize) -> Step {
        let at = self.skip_blank(start + 1);
        if self.byte(at) == b'}' {
            return fits(SeenKeys::default().are_complete(object), at + 1);
        }
        self.entries(object, SeenKeys::default(), 0, at)
    }

    /// Scans the entries of an object from a key. `hint` is the index after that of the previous property.
    #[inline]
    fn entries(
        &mut self,
        object: &'s ObjectSpec,
        mut seen: SeenKeys<'s>,
        mut hint: usize,
        mut at: usize,
    ) -> Step {
        loop {
            let node = match object.props.get(hint) {
                Some(prop) if self.bytes.get(at..).is_some_and(|rest| rest.starts_with(&prop.token)) => {
                    at = self.skip_blank(at + prop.token.len());
                    if !seen.add(hint) || prop.null_absent && self.byte(at) == b'n' {
                        return Err(misfit(at));
                    }
                    hint += 1;
                    prop.node
                }
                _ => {
                    let (value, key) = self.key(at)?;
                    at = value;
                    self.other(object, key, at, &mut hint, &mut seen)?
                }
            };
            let end = self.item(node, at)?;
            at = self.skip_blank(end);
            match self.byte(at) {
                b',' => at = self.skip_blank(at + 1),
                b'}' => return fits(seen.are_complete(object), at + 1),
                _ => return Err(UNDECIDED),
            }
        }
    }

    /// Returns what a key leads to that is not the next property. Its value is at `at`.
    fn other(
        &mut self,
        object: &'s ObjectSpec,
        key: &'s str,
        at: usize,
        hint: &mut usize,
        seen: &mut SeenKeys<'s>,
    ) -> Result<NodeId, Stop> {
        let found = object.find(key, *hint).and_then(|index| Some((index, object.props.get(index)?)));
        let Some((index, prop)) = found else { return self.entry(object, key, at, seen) };
        // By another name it has to be renamed.
        if !prop.aliases.is_empty() && prop.name != key {
            return Err(UNDECIDED);
        }
        if !seen.add(index) || prop.null_absent && self.byte(at) == b'n' {
            return Err(misfit(at));
        }
        *hint = index + 1;
        Ok(prop.node)
    }

    /// Returns what a key leads to that no property has.
    fn entry(
        &mut self,
        object: &'s ObjectSpec,
        key: &'s str,
        at: usize,
        seen: &mut SeenKeys<'s>,
    ) -> Result<NodeId, Stop> {
        // Integers as keys have several spellings, and some types get them as numbers.
        if object.patterns.iter().any(|(pattern, _)| pattern.is_integer_key()) {
            return Err(UNDECIDED);
        }
        let node = match (object.entry(key), self.graph.options.unknown_keys()) {
            (Some(node), _) => node,
            (None, UnknownKeys::Keep) if object.rest == AdditionalProperties::Unspecified => self.graph.any,
            (None, UnknownKeys::Strip) => return Err(UNDECIDED),
            (None, _) => {
                self.is_refused = self.choices == 0;
                return Err(misfit(at));
            }
        };
        if seen.add_other(Cow::Borrowed(key)) { Ok(node) } else { Err(misfit(at)) }
    }

    fn external(&mut self, external: &'s ExternalSpec, start: usize) -> Step {
        let (at, key) = self.key(self.skip_blank(start + 1))?;
        let variant = external.variant(key).ok_or(misfit(at))?;
        if variant.name != key {
            return Err(UNDECIDED);
        }
        let end = self.value(variant.node, at)?;
        let end = self.skip_blank(end);
        fits(self.byte(end) == b'}', end + 1)
    }

    fn tagged(
        &mut self,
        tag: &str,
        variants: &[(String, NodeId)],
        names: &VariantNames,
        node: &Node,
        start: usize,
    ) -> Step {
        let first = self.skip_blank(start + 1);
        let (at, end, name) = self.tag(tag, first)?;
        let variant = match variants.iter().find(|(known, _)| known == name) {
            Some((_, variant)) => *variant,
            None => match names.pick(variants, name, node.rules) {
                Some((picked, variant)) if !picked.is_coerced && picked.word == name => variant,
                Some((picked, _)) if !picked.is_coerced => return Err(UNDECIDED),
                _ => return Err(misfit(end)),
            },
        };
        self.choices += 1;
        let next = self.skip_blank(end);
        let step = match self.after_tag(variant, tag, name) {
            Some((object, index)) if at == first && self.byte(next) == b',' => {
                let mut seen = SeenKeys::default();
                seen.add(index);
                self.entries(object, seen, index + 1, self.skip_blank(next + 1))
            }
            _ => {
                self.spend(end - start)?;
                self.value(variant, start)
            }
        };
        self.choices -= 1;
        step
    }

    /// Returns the object that a variant is, and the index of its tag, if this name is a word of its tag.
    #[inline]
    fn after_tag(&self, variant: NodeId, tag: &str, name: &str) -> Option<(&'s ObjectSpec, usize)> {
        let Kind::Object(object) = self.graph.kind(variant) else { return None };
        let index = object.find(tag, 0)?;
        let prop = object.props.get(index)?;
        match self.graph.kind(prop.node) {
            Kind::Enum(words) if words.iter().any(|word| word == name) => Some((object, index)),
            _ => None,
        }
    }

    /// Returns where the tag of an object is and where its value ends, and the value. Usually it comes first.
    fn tag(&self, tag: &str, mut at: usize) -> Result<(usize, usize, &'s str), Stop> {
        loop {
            if self.byte(at) == b'}' {
                return Err(misfit(at));
            }
            let (value, is_tag) = match self.key_is(at, tag) {
                Some(value) => (value, true),
                None => self.key(at).map(|(value, key)| (value, key == tag))?,
            };
            if is_tag {
                if self.byte(value) != b'"' {
                    return Err(misfit(value));
                }
                let (end, name) = self.plain(value)?;
                return Ok((at, end, name));
            }
            let end = self.anything(value)?;
            at = self.skip_blank(end);
            if self.byte(at) == b',' {
                at = self.skip_blank(at + 1);
            }
        }
    }

    /// The first alternative that takes the value as it is, which is the one that the plan chooses.
    fn union(&mut self, branches: &[NodeId], start: usize) -> Step {
        let (depth, choices) = (self.depth, self.choices);
        let mut last = misfit(start);
        for branch in branches {
            (self.depth, self.choices) = (depth, choices + 1);
            let tried = self.value(*branch, start);
            (self.depth, self.choices) = (depth, choices);
            match tried {
                Err(stop) if stop.misfit_at > 0 => {
                    self.spend(stop.misfit_at - start)?;
                    last = stop;
                }
                decided => return decided,
            }
        }
        Err(last)
    }

    /// Accounts for bytes that are scanned again.
    fn spend(&mut self, bytes: usize) -> Result<(), Stop> {
        self.left = self.left.checked_sub(bytes + 1).ok_or(UNDECIDED)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
