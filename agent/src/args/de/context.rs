//! The state of one parse.

use crate::args::coercion::{CoercedValue, Coercion, CoercionRule, Coercions, PathWriter};
use crate::args::diagnose::{Choices, Shared};
use crate::args::hooks::{self, CheckFindings};
use crate::args::plan::{Graph, Kind, Node, NodeId};
use crate::args::rounding;
use crate::args::text::{push_index, push_segment};
use serde::de::Error;
use serde_json::Value;
use std::{cell::Cell, cell::RefCell, collections::HashMap, collections::HashSet};

/// Where reading ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    /// The pointer to the innermost value that was refused.
    pub(crate) at: String,
    /// Whether its key was refused, and not the value.
    pub(crate) is_key: bool,
}

/// A value while it is read: what it is read along, and where it is. A linked list on the stack, so that the place costs nothing until it
/// is needed.
pub(crate) struct Position<'c> {
    pub(super) cx: &'c Context<'c>,
    pub(super) node: &'c Node,
    up: Option<&'c Position<'c>>,
    segment: Segment<'c>,
    secret: bool,
    pub(super) depth: u32,
}

#[derive(Clone, Copy)]
enum Segment<'c> {
    Root,
    Key(&'c str),
    Index(usize),
}

impl<'c> Position<'c> {
    /// The arguments as a whole, or a value that is read by itself.
    pub(crate) fn root(cx: &'c Context<'c>, node: &'c Node) -> Position<'c> {
        Position { cx, node, up: None, segment: Segment::Root, secret: false, depth: 0 }
    }

    #[inline]
    pub(super) fn key(&'c self, key: &'c str, secret: bool, node: &'c Node) -> Position<'c> {
        Position {
            cx: self.cx,
            node,
            up: Some(self),
            segment: Segment::Key(key),
            secret: self.secret || secret,
            depth: self.depth + 1,
        }
    }

    #[inline]
    pub(super) fn index(&'c self, index: usize, node: &'c Node) -> Position<'c> {
        Position {
            cx: self.cx,
            node,
            up: Some(self),
            segment: Segment::Index(index),
            secret: self.secret,
            depth: self.depth + 1,
        }
    }

    /// Returns the same place, to be read along another node.
    pub(super) fn along(&self, node: &'c Node) -> Position<'c> {
        Position { node, ..*self }
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self.segment, Segment::Root)
    }

    pub(super) fn pointer(&self) -> String {
        let mut out = String::with_capacity(32);
        self.write(&mut out);
        out
    }

    fn write_record(&self, out: &mut PathWriter<'_>) {
        let mut place = Some(self);
        while let Some(position) = place {
            match position.segment {
                Segment::Root => {}
                Segment::Key(key) => out.key(key),
                Segment::Index(index) => out.index(index),
            }
            place = position.up;
        }
    }

    /// At most 128 calls deep, like the parser.
    fn write(&self, out: &mut String) {
        if let Some(up) = self.up {
            up.write(out);
        }
        match self.segment {
            Segment::Root => {}
            Segment::Key(key) => push_segment(out, key),
            Segment::Index(index) => push_index(out, index),
        }
    }
}

/// What a reading is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The arguments of a call.
    Call,
    /// The same, by the digits of its numbers: it records which of them are rounded.
    Digits,
    /// Arguments that are known to fit as they are, so nothing in them is looked at.
    Exact,
    /// Only coerces: no records, no checks, and sets may have repeated items.
    Silent,
    /// The same for canonical arguments: integers beyond 64 bits are texts, and accepted as such whatever the policy says.
    Canonical,
    /// Only collects what the checks of typed values find, within their scope.
    Checks,
}

pub(crate) struct Context<'c> {
    pub(crate) graph: &'c Graph,
    /// The text being read. Borrowed keys point into it, which gives the place without reading twice.
    text: &'c str,
    log: RefCell<Coercions>,
    /// What most calls do not need.
    rare: RefCell<Option<Box<RareState>>>,
    /// The choices of an earlier walk.
    walked: Option<&'c Shared<'c>>,
    purpose: Purpose,
    /// The nesting depth of subtrees that are being read again.
    pub(super) again: Cell<u32>,
    /// Numbers that were read as floats, whose digits are not known: a combination of [`FLOATS`], [`EXPONENTS`] and [`LOSSY`].
    floats: Cell<u8>,
}

/// The state of a parse that refuses something, chooses between alternatives, or collects.
#[derive(Default)]
struct RareState {
    /// The place of the first refusal.
    failed_at: Option<Failure>,
    /// The branches chosen for unions, by place in the text: chosen once, with everything nested.
    choices: HashMap<(usize, usize), NodeId>,
    /// Nodes with checks, and the places in the text that pass them.
    passed: HashSet<(usize, usize)>,
    placed: Vec<CheckFindings>,
}

/// There are floats: only a long number may have lost digits.
const FLOATS: u8 = 1;
/// There are floats that may also be rounded because of their exponent.
const EXPONENTS: u8 = 1 << 1;
/// A float is such that its digits have to be looked at.
const LOSSY: u8 = 1 << 2;

impl<'c> Context<'c> {
    pub(crate) fn new(graph: &'c Graph, text: &'c str) -> Context<'c> {
        Context {
            graph,
            text,
            log: RefCell::default(),
            rare: RefCell::default(),
            walked: None,
            purpose: Purpose::Call,
            again: Cell::new(0),
            floats: Cell::new(0),
        }
    }

    /// Creates a context for arguments that fit exactly.
    pub(crate) fn exact(graph: &'c Graph, text: &'c str) -> Context<'c> {
        Context { purpose: Purpose::Exact, ..Context::new(graph, text) }
    }

    /// Whether the arguments are known to fit as they are.
    #[inline]
    pub(super) fn is_exact(&self) -> bool {
        self.purpose == Purpose::Exact
    }

    /// Whether nothing is recorded and checked.
    #[inline]
    pub(super) fn is_silent(&self) -> bool {
        matches!(self.purpose, Purpose::Silent | Purpose::Canonical)
    }

    /// Whether integers beyond 64 bits are texts.
    #[inline]
    pub(super) fn is_canonical(&self) -> bool {
        self.purpose == Purpose::Canonical
    }

    /// Whether what the checks of typed values find is collected.
    #[inline]
    pub(super) fn collects(&self) -> bool {
        self.purpose == Purpose::Checks
    }

    /// Whether numbers are read by their digits.
    #[inline]
    pub(super) fn reads_digits(&self) -> bool {
        self.purpose == Purpose::Digits
    }

    /// Returns the node that the arguments as a whole are read along: any value, if it is known that they fit exactly.
    pub(crate) fn root(&self) -> &'c Node {
        self.graph.node(if self.is_exact() { self.graph.any } else { self.graph.root })
    }

    /// Notes that a number was read as a float; `single`: for a type of 32 bits.
    #[inline]
    pub(super) fn note_float(&self, float: f64, single: bool) {
        let found = if float == 0.0 {
            FLOATS | EXPONENTS
        } else if rounding::is_extreme(float) || single && !rounding::has_few_digits(float) {
            LOSSY
        } else {
            FLOATS
        };
        self.floats.set(self.floats.get() | found);
    }

    /// Notes that a value is read without the plan, if it may contain numbers.
    pub(super) fn note_any(&self, at: &Position<'_>) {
        let start = match at.segment {
            Segment::Key(key) => self.after_key(key).and_then(|rest| skip_blank(rest).strip_prefix(b":")),
            Segment::Root | Segment::Index(_) => None,
        };
        if !matches!(start.map(skip_blank), Some([b'"' | b't' | b'f' | b'n', ..])) {
            self.floats.set(self.floats.get() | FLOATS | EXPONENTS);
        }
    }

    /// Whether a number in the text may have been rounded.
    #[inline]
    pub(crate) fn may_have_rounded(&self) -> bool {
        let found = self.floats.get();
        found != 0 && (found & LOSSY != 0 || rounding::may_round(self.text, found & EXPONENTS != 0))
    }

    /// Creates a context for reading the same text once more, by the digits of its numbers.
    #[cold]
    pub(crate) fn into_careful(self) -> Context<'c> {
        let log = RefCell::new(self.log.into_inner().only_before());
        Context { log, purpose: Purpose::Digits, ..Context::new(self.graph, self.text) }
    }

    /// Creates a context that looks at a value as it will arrive, without recording anything.
    pub(crate) fn silent(graph: &'c Graph, text: &'c str) -> Context<'c> {
        Context { purpose: Purpose::Silent, ..Context::new(graph, text) }
    }

    /// The same for canonical arguments, which were checked.
    pub(crate) fn canonical(graph: &'c Graph, text: &'c str) -> Context<'c> {
        Context { purpose: Purpose::Canonical, ..Context::new(graph, text) }
    }

    /// Creates a context that collects what checks find.
    pub(crate) fn collecting(graph: &'c Graph, text: &'c str) -> Context<'c> {
        Context { purpose: Purpose::Checks, ..Context::new(graph, text) }
    }

    /// Returns what was found, and the place of the first refusal.
    pub(crate) fn into_placed(self) -> (Vec<CheckFindings>, Failure) {
        let rare = self.rare.into_inner().unwrap_or_default();
        (rare.placed, rare.failed_at.unwrap_or_default())
    }

    /// Assigns what checks have found since the last call to the value at this position.
    #[cold]
    pub(crate) fn place(&self, at: &Position<'_>) {
        let mut rare = self.rare.borrow_mut();
        let placed = &mut rare.get_or_insert_default().placed;
        hooks::place(|| at.pointer(), at.node, at.secret, placed);
    }

    /// Whether serde tries one alternative after the other here, so that a refusal leads to the next one.
    pub(crate) fn is_tried(&self, node: &Node) -> bool {
        match &node.kind {
            Kind::Union { .. } => true,
            Kind::Nullable(inner) => matches!(self.graph.kind(*inner), Kind::Union { .. }),
            _ => false,
        }
    }

    /// Creates a context for text that was changed before.
    pub(crate) fn after(graph: &'c Graph, text: &'c str, before: Vec<Coercion>) -> Context<'c> {
        Context { log: RefCell::new(before.into()), ..Context::new(graph, text) }
    }

    /// Creates a context for looking, with the choices of a walk.
    pub(crate) fn chosen(graph: &'c Graph, text: &'c str, walked: &'c Shared<'c>) -> Context<'c> {
        Context { walked: Some(walked), ..Context::silent(graph, text) }
    }

    pub(crate) fn into_coercions(self) -> Coercions {
        self.log.into_inner()
    }

    #[cold]
    pub(super) fn record(
        &self,
        at: &Position<'_>,
        from: CoercedValue<'_>,
        to: CoercedValue<'_>,
        rule: CoercionRule,
    ) {
        if !self.is_silent() {
            self.log.borrow_mut().add(|out| at.write_record(out), at.secret, from, to, rule);
        }
    }

    /// Records a dropped key without its value if the plan has secrets: the key may be a misspelled secret.
    #[cold]
    pub(super) fn record_dropped(&self, at: &Position<'_>, from: Value) {
        if !self.is_silent() {
            let secret = self.graph.has_secrets();
            let (from, rule) = (CoercedValue::Value(from.into()), CoercionRule::UnknownDropped);
            self.log.borrow_mut().add(|out| at.write_record(out), secret, from, CoercedValue::Null, rule);
        }
    }

    /// Remembers the innermost place of a refusal.
    #[cold]
    pub(super) fn failed(&self, at: &Position<'_>) {
        self.fail(at, false);
    }

    /// Remembers that the type of a map's keys refused this one.
    #[cold]
    pub(super) fn failed_key(&self, at: &Position<'_>) {
        self.fail(at, true);
    }

    fn fail(&self, at: &Position<'_>, is_key: bool) {
        // A refusal is only located where it is looked for.
        if self.collects() {
            let mut rare = self.rare.borrow_mut();
            let failed_at = &mut rare.get_or_insert_default().failed_at;
            failed_at.get_or_insert_with(|| Failure { at: at.pointer(), is_key });
        }
    }

    /// Returns the text after a borrowed key, or `None` if the key is not part of the text (it had escapes).
    #[inline]
    fn after_key(&self, key: &str) -> Option<&'c [u8]> {
        let start = key.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        // The key, its closing quote, then the colon.
        self.text.as_bytes().get(start.checked_add(key.len() + 1)?..)
    }

    /// Whether the value after this key is certainly not null.
    #[inline]
    pub(super) fn value_follows(&self, key: &str) -> bool {
        match self.after_key(key) {
            Some([b':', b' ', first, ..] | [b':', first, ..]) => *first > b' ' && *first != b'n',
            _ => false,
        }
    }

    /// Whether the value after this key is null; `None` if only reading it can tell.
    pub(super) fn null_follows(&self, key: &str) -> Option<bool> {
        let rest = self.after_key(key)?;
        let rest = skip_blank(rest).strip_prefix(b":")?;
        Some(skip_blank(rest).starts_with(b"null"))
    }

    /// Returns the text after this key, if it is one without escapes.
    pub(super) fn plain_text_follows(&self, key: &str) -> Option<&'c str> {
        let rest = skip_blank(self.after_key(key)?).strip_prefix(b":")?;
        let rest = skip_blank(rest).strip_prefix(b"\"")?;
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))?;
        let start = self.text.len() - rest.len();
        let is_plain = rest.get(length) == Some(&b'"');
        self.text.get(start..start + length).filter(|_| is_plain)
    }

    pub(super) fn choice(&self, node: &Node, raw: &str) -> Option<NodeId> {
        let key = choice_key(node, raw);
        let known = self.rare.borrow().as_ref().and_then(|rare| rare.choices.get(&key).copied());
        known.or_else(|| self.walked?.chosen(key))
    }

    pub(super) fn remember(&self, made: Choices) {
        let mut rare = self.rare.borrow_mut();
        let rare = rare.get_or_insert_default();
        rare.choices.extend(made.branches);
        rare.passed.extend(made.passed);
    }

    pub(super) fn has_passed(&self, node: &Node, raw: &str) -> bool {
        self.rare.borrow().as_ref().is_some_and(|rare| rare.passed.contains(&choice_key(node, raw)))
    }
}

/// A union node and a place in the text.
pub(crate) fn choice_key(node: &Node, raw: &str) -> (usize, usize) {
    (std::ptr::from_ref(node).addr(), raw.as_ptr().addr())
}

#[inline]
fn skip_blank(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// The text is never shown unless the diagnosis finds nothing.
#[cold]
pub(super) fn refused<E: Error>(words: &'static str) -> E {
    E::custom(words)
}

/// Converts an error of a re-read subtree to one of the whole.
#[cold]
pub(super) fn nested<E: Error>(error: serde_json::Error) -> E {
    E::custom(error)
}
