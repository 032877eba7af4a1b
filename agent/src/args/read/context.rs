//! The state of one parse.

use crate::args::coercion::{CoercedValue, Coercion, CoercionRule, HIDDEN};
use crate::args::hooks::{self, LocatedFinding};
use crate::args::plan::{ArraySpec, Graph, NodeId, NodeKind, PlanNode};
use crate::args::rounding;
use crate::args::text::{offset_in, push_index, push_segment};
use serde::de::Error;
use serde_json::{Value, de::StrRead};
use std::{cell::Cell, cell::RefCell};

/// The value or key at which a reading first failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    pub(crate) at: String,
    /// Whether the key at this path was refused, and not its value.
    pub(crate) is_key: bool,
}

/// The path and the schema node of a value that is being read. Positions form a linked list, so that a path is built only when needed.
pub(crate) struct ValuePosition<'c> {
    pub(super) cx: &'c Context<'c>,
    pub(super) node: &'c PlanNode,
    up: Option<&'c ValuePosition<'c>>,
    segment: PositionSegment<'c>,
    secret: bool,
    /// A copy of the purpose in `cx`, because each value needs it.
    purpose: Purpose,
    pub(super) depth: u32,
}

#[derive(Clone, Copy)]
enum PositionSegment<'c> {
    Root,
    Key(&'c str),
    Index(usize),
}

impl<'c> ValuePosition<'c> {
    pub(crate) fn root(cx: &'c Context<'c>, node: &'c PlanNode) -> ValuePosition<'c> {
        ValuePosition {
            cx,
            node,
            up: None,
            segment: PositionSegment::Root,
            secret: false,
            purpose: cx.purpose,
            depth: 0,
        }
    }

    #[inline]
    pub(super) fn key(&'c self, key: &'c str, secret: bool, node: &'c PlanNode) -> ValuePosition<'c> {
        ValuePosition {
            cx: self.cx,
            node,
            up: Some(self),
            segment: PositionSegment::Key(key),
            secret: self.secret || secret,
            purpose: self.purpose,
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
            purpose: self.purpose,
            depth: self.depth + 1,
        }
    }

    pub(super) fn along(&self, node: &'c PlanNode) -> ValuePosition<'c> {
        ValuePosition { node, ..*self }
    }

    /// Returns whether `exact::fit` has already found that the arguments fit the schema without coercion.
    #[inline]
    pub(super) fn is_exact(&self) -> bool {
        self.purpose == Purpose::Exact
    }

    /// Returns whether this reading only collects the findings of checks (`#[arg(validate = …)]`).
    #[inline]
    pub(super) fn collects(&self) -> bool {
        self.purpose == Purpose::Checks
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self.segment, PositionSegment::Root)
    }

    pub(super) fn pointer(&self) -> String {
        let mut out = String::with_capacity(32);
        self.write(&mut out);
        out
    }

    /// Appends the path. Values nest at most 127 deep, so the recursion is at most 128 calls deep.
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

/// Examines a whole value before it is read, for example to choose an alternative of a union. `value` must be a slice of the text being
/// read.
pub(crate) trait ValueJudge {
    /// Returns the alternative of a union that fits the value, or `None` if none does. `is_root` is true for the arguments as a whole. If
    /// `is_silent` is true, `uniqueItems` is ignored.
    fn branch(&self, union: &PlanNode, value: &str, is_root: bool, is_silent: bool) -> Option<NodeId>;

    fn passes(&self, checked: &PlanNode, value: &str, is_root: bool) -> bool;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Call,
    /// Reading the arguments again, to record which numbers lose digits as floats.
    Digits,
    /// Reading arguments without any check, because `exact::fit` has found that they fit the schema as they are.
    Exact,
    /// Coerces values, but records nothing, ignores checks such as `not`, and ignores `uniqueItems`.
    Silent,
    /// Like `Silent`, for arguments that were coerced before. The string `"42"` is accepted as an integer under every policy, because the
    /// earlier coercion turned integers beyond 64 bits into strings.
    Canonical,
    /// Only running checks (`#[arg(validate = …)]`), to collect their findings.
    Checks,
}

pub(crate) struct Context<'c> {
    pub(crate) graph: &'c Graph,
    /// The text being read. A key without escapes is a slice of this text, so its address gives its offset.
    text: &'c str,
    /// State that most calls do not need, created when it is first needed.
    rare: RefCell<Option<Box<RareState>>>,
    /// `None` for arguments that fit exactly.
    judge: Option<&'c dyn ValueJudge>,
    purpose: Purpose,
    /// The current depth of repeated readings, at most `MAX_AGAIN`.
    pub(super) again: Cell<u32>,
    /// A combination of [`FLOATS`], [`EXPONENTS`] and [`LOSSY`], for the floats read so far.
    floats: Cell<u8>,
}

#[derive(Default)]
struct RareState {
    /// The coercions so far. The first `structural` ones changed the text before it was read.
    coercions: Vec<Coercion>,
    structural: usize,
    /// Recorded only while findings are collected.
    failed_at: Option<Failure>,
    placed: Vec<LocatedFinding>,
}

/// A float was read. It may have lost digits if the text has a number of more than 15 digits.
const FLOATS: u8 = 1;
/// A float was read that may be 0. It may also have lost digits if the text has an exponent: `1e-400` is read as 0.
const EXPONENTS: u8 = 1 << 1;
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

    pub(crate) fn exact(graph: &'c Graph, text: &'c str) -> Context<'c> {
        Context { purpose: Purpose::Exact, ..Context::alone(graph, text) }
    }

    /// Returns whether this reading only coerces: it checks and records nothing.
    #[inline]
    pub(super) fn is_silent(&self) -> bool {
        matches!(self.purpose, Purpose::Silent | Purpose::Canonical)
    }

    /// Returns whether this reading accepts the string `"42"` as the integer 42 under every policy.
    #[inline]
    pub(super) fn is_canonical(&self) -> bool {
        self.purpose == Purpose::Canonical
    }

    /// Returns whether this reading finds rounded numbers, by comparing the digits of each number with its float.
    #[inline]
    pub(super) fn reads_digits(&self) -> bool {
        self.purpose == Purpose::Digits
    }

    /// Increases the depth of repeated readings. Returns the previous depth, which the caller restores.
    pub(super) fn read_again(&self, steps: u32) -> u32 {
        self.again.replace(self.again.get() + steps)
    }

    /// Returns the root node of the schema. Arguments that fit exactly are read without the schema, so the returned node then accepts any
    /// value.
    pub(crate) fn root(&self) -> &'c PlanNode {
        self.graph.node(if self.purpose == Purpose::Exact { self.graph.any } else { self.graph.root })
    }

    /// Records that a number was read as a float, an `f32` if `single` is true.
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

    /// Records that a value of any type may contain floats. Does nothing if the first character shows a string, a boolean or null.
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

    #[inline]
    pub(crate) fn may_have_rounded(&self) -> bool {
        let found = self.floats.get();
        found != 0 && (found & LOSSY != 0 || rounding::may_round(self.text, found & EXPONENTS != 0))
    }

    /// Creates a context to read the text again, in search of numbers that lose digits as floats. The second reading repeats the coercions
    /// of the first, so these are removed.
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

    pub(crate) fn silent(graph: &'c Graph, text: &'c str, judge: &'c dyn ValueJudge) -> Context<'c> {
        Context { purpose: Purpose::Silent, ..Context::new(graph, text, judge) }
    }

    pub(crate) fn canonical(graph: &'c Graph, text: &'c str, judge: &'c dyn ValueJudge) -> Context<'c> {
        Context { purpose: Purpose::Canonical, ..Context::new(graph, text, judge) }
    }

    pub(crate) fn collecting(graph: &'c Graph, text: &'c str, judge: &'c dyn ValueJudge) -> Context<'c> {
        Context { purpose: Purpose::Checks, ..Context::new(graph, text, judge) }
    }

    pub(crate) fn into_placed(self) -> (Vec<LocatedFinding>, Failure) {
        let rare = self.rare.into_inner().unwrap_or_default();
        (rare.placed, rare.failed_at.unwrap_or_default())
    }

    fn place(&self, at: &ValuePosition<'_>) {
        let mut rare = self.rare.borrow_mut();
        let placed = &mut rare.get_or_insert_default().placed;
        hooks::place(|| at.pointer(), at.node.id, at.secret, placed);
    }

    /// Returns whether serde tries alternatives at this node. A refusal of one alternative is then not final.
    fn is_tried(&self, node: &PlanNode) -> bool {
        match &node.kind {
            NodeKind::Union { .. } => true,
            NodeKind::Nullable(inner) => matches!(self.graph.kind(*inner), NodeKind::Union { .. }),
            _ => false,
        }
    }

    /// Creates a context for a text that the coercions in `before` have already changed.
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

    /// Records a dropped key. If the schema has secrets, the value is hidden, because the key may be a misspelled secret.
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

    /// Turns findings into errors if serde tries alternatives at this node, because serde tries the next alternative only after an error.
    /// Returns whether this call did so.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter(&self, node: &PlanNode) -> bool {
        self.is_tried(node) && hooks::suspend()
    }

    /// Ends the reading that `enter` began; `is_tried` is the result of `enter`. Records the path of the value: for the findings of the
    /// value if `is_read` is true, or else as the place of the refusal.
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

    #[cold]
    pub(super) fn failed_key(&self, at: &ValuePosition<'_>) {
        self.fail(at, true);
    }

    fn fail(&self, at: &ValuePosition<'_>, is_key: bool) {
        // Only a reading that collects findings needs the position of a refusal.
        if self.purpose == Purpose::Checks {
            let mut rare = self.rare.borrow_mut();
            let failed_at = &mut rare.get_or_insert_default().failed_at;
            failed_at.get_or_insert_with(|| Failure { at: at.pointer(), is_key });
        }
    }

    /// Returns the text after a key and its closing quote, or `None` if the key is not a slice of the text because it had escapes.
    #[inline]
    fn after_key(&self, key: &str) -> Option<&'c [u8]> {
        self.text.as_bytes().get(offset_in(self.text, key)? + key.len() + 1..)
    }

    /// Returns `true` if the value after this key is certainly not null, and `false` if it may be null.
    #[inline]
    pub(super) fn value_follows(&self, key: &str) -> bool {
        match self.after_key(key) {
            Some([b':', b' ', first, ..] | [b':', first, ..]) => *first > b' ' && *first != b'n',
            _ => false,
        }
    }

    /// Returns whether the value after this key is null. Returns `None` if the key has escapes, or if no colon follows it.
    pub(super) fn null_follows(&self, key: &str) -> Option<bool> {
        let rest = self.after_key(key)?;
        let rest = skip_blank(rest).strip_prefix(b":")?;
        Some(skip_blank(rest).starts_with(b"null"))
    }

    /// Returns the string after this key. Returns `None` for any other value, and if the key or the string has escapes.
    pub(super) fn plain_text_follows(&self, key: &str) -> Option<&'c str> {
        let rest = skip_blank(self.after_key(key)?).strip_prefix(b":")?;
        let rest = skip_blank(rest).strip_prefix(b"\"")?;
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))?;
        let start = self.text.len() - rest.len();
        let is_plain = rest.get(length) == Some(&b'"');
        self.text.get(start..start + length).filter(|_| is_plain)
    }

    pub(super) fn branch(&self, at: &ValuePosition<'_>, value: &str) -> Option<NodeId> {
        self.judge?.branch(at.node, value, at.is_root(), self.is_silent())
    }

    pub(super) fn passes(&self, at: &ValuePosition<'_>, value: &str) -> bool {
        self.judge.is_some_and(|judge| judge.passes(at.node, value, at.is_root()))
    }
}

#[inline]
pub(super) fn list<'c>(at: &ValuePosition<'c>) -> Option<&'c ArraySpec> {
    match &at.node.kind {
        NodeKind::Any => Some(&at.cx.graph.any_array),
        NodeKind::Array(array) => Some(array),
        _ => None,
    }
}

/// Creates a JSON reader. Never inlined, so that the code of the reader is compiled only once.
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

/// Creates the error for a value that the schema refuses. The model sees `words` only if `args::judge` finds no issue to report.
#[cold]
pub(super) fn refused<E: Error>(words: &'static str) -> E {
    E::custom(words)
}

/// Converts the error of a separate reader, for the text of one value, into an error of the outer reader.
#[cold]
pub(super) fn nested<E: Error>(error: serde_json::Error) -> E {
    E::custom(error)
}
