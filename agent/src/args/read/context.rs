//! The state of one parse.

use crate::args::coercion::{CoercedValue, Coercion, CoercionRule, HIDDEN};
use crate::args::hooks::{self, LocatedFinding};
use crate::args::plan::{ArraySpec, Graph, NodeId, NodeKind, PlanNode};
use crate::args::rounding;
use crate::args::text::{offset_in, push_index, push_segment};
use serde::de::Error;
use serde_json::{Value, de::StrRead};
use std::{cell::Cell, cell::RefCell};

/// Where reading ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    /// The pointer to the innermost value that was refused.
    pub(crate) at: String,
    /// Whether its key was refused, and not the value.
    pub(crate) is_key: bool,
}

/// A value while it is read: its node and its path. A linked list on the stack, so that the path costs nothing until it is needed.
pub(crate) struct ValuePosition<'c> {
    pub(super) cx: &'c Context<'c>,
    pub(super) node: &'c PlanNode,
    up: Option<&'c ValuePosition<'c>>,
    segment: PositionSegment<'c>,
    secret: bool,
    pub(super) depth: u32,
}

#[derive(Clone, Copy)]
enum PositionSegment<'c> {
    Root,
    Key(&'c str),
    Index(usize),
}

impl<'c> ValuePosition<'c> {
    /// The arguments as a whole, or a value that is read by itself.
    pub(crate) fn root(cx: &'c Context<'c>, node: &'c PlanNode) -> ValuePosition<'c> {
        ValuePosition { cx, node, up: None, segment: PositionSegment::Root, secret: false, depth: 0 }
    }

    #[inline]
    pub(super) fn key(&'c self, key: &'c str, secret: bool, node: &'c PlanNode) -> ValuePosition<'c> {
        ValuePosition {
            cx: self.cx,
            node,
            up: Some(self),
            segment: PositionSegment::Key(key),
            secret: self.secret || secret,
            depth: self.depth + 1,
        }
    }

    #[inline]
    pub(super) fn index(&'c self, index: usize, node: &'c PlanNode) -> ValuePosition<'c> {
        ValuePosition {
            cx: self.cx,
            node,
            up: Some(self),
            segment: PositionSegment::Index(index),
            secret: self.secret,
            depth: self.depth + 1,
        }
    }

    /// Returns the same place, to be read along another node.
    pub(super) fn along(&self, node: &'c PlanNode) -> ValuePosition<'c> {
        ValuePosition { node, ..*self }
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self.segment, PositionSegment::Root)
    }

    pub(super) fn pointer(&self) -> String {
        let mut out = String::with_capacity(32);
        self.write(&mut out);
        out
    }

    /// At most 128 calls deep, like the parser.
    fn write(&self, out: &mut String) {
        if let Some(up) = self.up {
            up.write(out);
        }
        match self.segment {
            PositionSegment::Root => {}
            PositionSegment::Key(key) => push_segment(out, key),
            PositionSegment::Index(index) => push_index(out, index),
        }
    }
}

/// Looks at values as a whole before they are read, where reading alone cannot decide. The values are parts of the text that is read.
pub(crate) trait ValueJudge {
    /// Returns the branch of a union that fits the value, if one does. `is_root`: it is the arguments as a whole. `is_silent`: sets may
    /// have repeated items.
    fn branch(&self, union: &PlanNode, value: &str, is_root: bool, is_silent: bool) -> Option<NodeId>;

    /// Whether the value passes the checks of a node.
    fn passes(&self, checked: &PlanNode, value: &str, is_root: bool) -> bool;
}

/// The purpose of a reading.
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
    /// The same for canonical arguments: integers beyond 64 bits are read as texts, whatever the policy accepts.
    Canonical,
    /// Only collects what the checks of typed values find, within their scope.
    Checks,
}

pub(crate) struct Context<'c> {
    pub(crate) graph: &'c Graph,
    /// The text being read. Borrowed keys point into it, which gives the place without reading twice.
    text: &'c str,
    /// State that most calls do not need.
    rare: RefCell<Option<Box<RareState>>>,
    /// Looks at whole values; `None` if nothing is read that needs it.
    judge: Option<&'c dyn ValueJudge>,
    purpose: Purpose,
    /// The nesting depth of subtrees that are being read again.
    pub(super) again: Cell<u32>,
    /// Numbers that were read as floats, whose digits are not known: a combination of [`FLOATS`], [`EXPONENTS`] and [`LOSSY`].
    floats: Cell<u8>,
}

/// The state of a parse that coerces or collects.
#[derive(Default)]
struct RareState {
    /// The changes so far. The first ones were structural, before anything was read.
    coercions: Vec<Coercion>,
    structural: usize,
    /// The place of the first refusal.
    failed_at: Option<Failure>,
    placed: Vec<LocatedFinding>,
}

/// There are floats: only a long number may have lost digits.
const FLOATS: u8 = 1;
/// There are floats that may also be rounded because of their exponent.
const EXPONENTS: u8 = 1 << 1;
/// A float may have lost digits.
const LOSSY: u8 = 1 << 2;

impl<'c> Context<'c> {
    pub(crate) fn new(graph: &'c Graph, text: &'c str, judge: &'c dyn ValueJudge) -> Context<'c> {
        Context { judge: Some(judge), ..Context::alone(graph, text) }
    }

    fn alone(graph: &'c Graph, text: &'c str) -> Context<'c> {
        Context {
            graph,
            text,
            rare: RefCell::default(),
            judge: None,
            purpose: Purpose::Call,
            again: Cell::new(0),
            floats: Cell::new(0),
        }
    }

    /// Creates a context for arguments that fit exactly.
    pub(crate) fn exact(graph: &'c Graph, text: &'c str) -> Context<'c> {
        Context { purpose: Purpose::Exact, ..Context::alone(graph, text) }
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

    /// Whether integers beyond 64 bits are read as texts.
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

    /// Increases the depth of re-reading. Returns what it was before.
    pub(super) fn read_again(&self, steps: u32) -> u32 {
        self.again.replace(self.again.get() + steps)
    }

    /// Returns the node that the arguments as a whole are read along: any value, if it is known that they fit exactly.
    pub(crate) fn root(&self) -> &'c PlanNode {
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
    pub(super) fn note_any(&self, at: &ValuePosition<'_>) {
        let start = match at.segment {
            PositionSegment::Key(key) => {
                self.after_key(key).and_then(|rest| skip_blank(rest).strip_prefix(b":"))
            }
            PositionSegment::Root | PositionSegment::Index(_) => None,
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
        let rare = self.rare.into_inner().map(|rare| {
            let (structural, mut coercions) = (rare.structural, rare.coercions);
            coercions.truncate(structural);
            Box::new(RareState { coercions, structural, ..RareState::default() })
        });
        let (rare, purpose) = (RefCell::new(rare), Purpose::Digits);
        Context { rare, purpose, judge: self.judge, ..Context::alone(self.graph, self.text) }
    }

    /// Creates a context that looks at a value as it will arrive, without recording anything.
    pub(crate) fn silent(graph: &'c Graph, text: &'c str, judge: &'c dyn ValueJudge) -> Context<'c> {
        Context { purpose: Purpose::Silent, ..Context::new(graph, text, judge) }
    }

    /// The same for canonical arguments, which were checked.
    pub(crate) fn canonical(graph: &'c Graph, text: &'c str, judge: &'c dyn ValueJudge) -> Context<'c> {
        Context { purpose: Purpose::Canonical, ..Context::new(graph, text, judge) }
    }

    /// Creates a context that collects what checks find.
    pub(crate) fn collecting(graph: &'c Graph, text: &'c str, judge: &'c dyn ValueJudge) -> Context<'c> {
        Context { purpose: Purpose::Checks, ..Context::new(graph, text, judge) }
    }

    /// Returns what was found, and the place of the first refusal.
    pub(crate) fn into_placed(self) -> (Vec<LocatedFinding>, Failure) {
        let rare = self.rare.into_inner().unwrap_or_default();
        (rare.placed, rare.failed_at.unwrap_or_default())
    }

    /// Assigns what checks have found since the last call to the value at this position.
    fn place(&self, at: &ValuePosition<'_>) {
        let mut rare = self.rare.borrow_mut();
        let placed = &mut rare.get_or_insert_default().placed;
        hooks::place(|| at.pointer(), at.node.id, at.secret, placed);
    }

    /// Whether serde tries one alternative after the other here, so that a refusal leads to the next one.
    fn is_tried(&self, node: &PlanNode) -> bool {
        match &node.kind {
            NodeKind::Union { .. } => true,
            NodeKind::Nullable(inner) => matches!(self.graph.kind(*inner), NodeKind::Union { .. }),
            _ => false,
        }
    }

    /// Creates a context for text that was changed before.
    pub(crate) fn after(
        graph: &'c Graph,
        text: &'c str,
        judge: &'c dyn ValueJudge,
        before: Vec<Coercion>,
    ) -> Context<'c> {
        let structural = before.len();
        let rare = Box::new(RareState { coercions: before, structural, ..RareState::default() });
        Context { rare: RefCell::new(Some(rare)), ..Context::new(graph, text, judge) }
    }

    /// Creates a context that looks at a part of the text as it will arrive.
    pub(super) fn silent_part(&self) -> Context<'c> {
        Context { purpose: Purpose::Silent, judge: self.judge, ..Context::alone(self.graph, self.text) }
    }

    pub(crate) fn into_coercions(self) -> Vec<Coercion> {
        self.rare.into_inner().map_or_else(Vec::new, |rare| rare.coercions)
    }

    #[cold]
    pub(super) fn record(
        &self,
        at: &ValuePosition<'_>,
        from: CoercedValue<'_>,
        to: CoercedValue<'_>,
        rule: CoercionRule,
    ) {
        self.push(at, at.secret, from, to, rule);
    }

    /// Records a dropped key without its value if the plan has secrets: the key may be a misspelled secret.
    #[cold]
    pub(super) fn record_dropped(&self, at: &ValuePosition<'_>, from: Value) {
        let (from, rule) = (CoercedValue::Value(from.into()), CoercionRule::UnknownDropped);
        self.push(at, self.graph.has_secrets(), from, CoercedValue::Null, rule);
    }

    fn push(
        &self,
        at: &ValuePosition<'_>,
        is_secret: bool,
        from: CoercedValue<'_>,
        to: CoercedValue<'_>,
        rule: CoercionRule,
    ) {
        if self.is_silent() {
            return;
        }
        let (from, to) =
            if is_secret { (HIDDEN.into(), HIDDEN.into()) } else { (from.recorded(), to.recorded()) };
        let mut rare = self.rare.borrow_mut();
        let coercions = &mut rare.get_or_insert_default().coercions;
        if coercions.is_empty() {
            coercions.reserve(8);
        }
        coercions.push(Coercion { path: at.pointer(), from, to, rule });
    }

    /// Begins to read a value whose findings are collected. Returns whether this is a place where serde tries alternatives.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter(&self, node: &PlanNode) -> bool {
        self.is_tried(node) && hooks::suspend()
    }

    /// Ends it: what checks have found is assigned to the value, and a refusal to its innermost place. `is_tried`: what `enter` has
    /// returned.
    #[cold]
    #[inline(never)]
    pub(crate) fn leave(&self, at: &ValuePosition<'_>, is_tried: bool, is_read: bool) {
        if is_read {
            self.place(at);
        } else {
            self.fail(at, false);
        }
        if is_tried {
            hooks::resume();
        }
    }

    /// Remembers that the type of a map's keys refused this one.
    #[cold]
    pub(super) fn failed_key(&self, at: &ValuePosition<'_>) {
        self.fail(at, true);
    }

    fn fail(&self, at: &ValuePosition<'_>, is_key: bool) {
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
        // The key, its closing quote, then the colon.
        self.text.as_bytes().get(offset_in(self.text, key)? + key.len() + 1..)
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

    /// Returns the branch of a union that fits the value at a position.
    pub(super) fn branch(&self, at: &ValuePosition<'_>, value: &str) -> Option<NodeId> {
        self.judge?.branch(at.node, value, at.is_root(), self.is_silent())
    }

    /// Whether the value at a position passes the checks of its node.
    pub(super) fn passes(&self, at: &ValuePosition<'_>, value: &str) -> bool {
        self.judge.is_some_and(|judge| judge.passes(at.node, value, at.is_root()))
    }
}

/// Returns what a list is read along, if the node is one.
#[inline]
pub(super) fn list<'c>(at: &ValuePosition<'c>) -> Option<&'c ArraySpec> {
    match &at.node.kind {
        NodeKind::Any => Some(&at.cx.graph.any_array),
        NodeKind::Array(array) => Some(array),
        _ => None,
    }
}

/// Returns the JSON reader of a text.
#[inline(never)]
pub(super) fn text_reader(text: &str) -> serde_json::Deserializer<StrRead<'_>> {
    serde_json::Deserializer::from_str(text)
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
