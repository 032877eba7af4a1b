//! Compares a value with a compiled schema, from the root node down, and finds all issues of the value.

mod checked;
mod choice;
mod object;

pub(crate) use object::says_nothing;

use super::outcome::{TextJudge, WalkState};
use crate::args::coercion::HIDDEN;
use crate::args::document::{Doc, Document, Shape};
use crate::args::issue::{Issue, IssueCode};
use crate::args::plan::{ArraySpec, Graph, NodeId, NodeKind, PickedWord, PlanNode, StrSpec, Words};
use crate::args::policy::Rules;
use crate::args::read::{Context, PlanDe, ValuePosition};
use crate::args::rounding;
use crate::args::scalar::{
    CoercedScalar, Digits, Num, coerced_bool, coerced_float, coerced_int, coerced_num, const_of,
    int_from_text, number_text, same_json,
};
use crate::args::signature::{Side, limits, signature};
use crate::args::suggest::did_you_mean;
use crate::args::text::{has_numbered_keys, push_index, push_segment};
use crate::args::unique::repeated;
use serde::de::Deserialize;
use serde_json::Value;

/// Maximum number of issues that are kept. Further issues are only counted.
const MAX_KEPT: usize = 10_000;
/// Maximum depth of a walk, in schema nodes. One value can have several nodes, for example three for a nullable union of objects.
const MAX_NESTED: usize = 600;
/// Maximum number of issues with suggestions. Reports show fewer issues, and a call with more issues is not corrected.
const MAX_SUGGESTED: usize = 50;
/// Maximum number of issues that list the allowed values, because the lists can be long.
const MAX_ALLOWED_LISTS: usize = 100;

#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct WalkSummary {
    pub(crate) count: usize,
    /// The number of issues about integers that exceed 64 bits or may have been rounded. JSON Schema accepts such integers.
    pub(crate) unrepresentable: usize,
    /// The number of issues about formats for which the Rust type has a better message.
    pub(crate) for_the_type: usize,
    /// Whether the walked value itself has the wrong type, not only an inner value.
    pub(crate) root_type_mismatch: bool,
    /// Whether a value is accepted only by a coercion.
    pub(crate) coerced: bool,
    /// Like `coerced`, except for `1.0` as an integer, which JSON Schema accepts without a coercion.
    pub(crate) non_schema_coercion: bool,
    /// Whether a value is accepted only by a coercion that the policy `strict` does not allow.
    pub(crate) beyond_strict: bool,
}

impl WalkSummary {
    fn and(self, other: WalkSummary) -> WalkSummary {
        WalkSummary {
            count: self.count + other.count,
            unrepresentable: self.unrepresentable + other.unrepresentable,
            for_the_type: self.for_the_type + other.for_the_type,
            root_type_mismatch: self.root_type_mismatch || other.root_type_mismatch,
            coerced: self.coerced || other.coerced,
            non_schema_coercion: self.non_schema_coercion || other.non_schema_coercion,
            beyond_strict: self.beyond_strict || other.beyond_strict,
        }
    }
}

/// Adds the issues of the arguments, at most [`MAX_KEPT`], and returns the number of all issues.
pub(super) fn collect(graph: &Graph, root: &Doc<'_>, issues: &mut Vec<Issue>) -> usize {
    let shared = WalkState::new(graph, root.raw, Some(root), false);
    let mut walk = Walk::new(&shared, Some(issues));
    walk.check(graph.root, root);
    walk.found.count
}

/// Compares a value with a schema node. `root` means that the value is the arguments as a whole.
pub(crate) fn inspect(graph: &Graph, node: NodeId, doc: &Doc<'_>, root: bool) -> WalkSummary {
    Walk::count(&WalkState::new(graph, doc.raw, root.then_some(doc), false), node, doc)
}

/// Returns the issues of a value, and the number of issues about formats, for which the Rust type has better messages. `secret` hides the
/// value in all issues.
#[cfg(feature = "macros")]
pub(crate) fn faults(graph: &Graph, node: NodeId, doc: &Doc<'_>, secret: bool) -> (Vec<Issue>, usize) {
    let (shared, mut issues) = (WalkState::new(graph, doc.raw, None, false), Vec::new());
    let mut walk = Walk::new(&shared, Some(&mut issues));
    walk.secret = secret;
    walk.check(node, doc);
    let of_types = walk.found.for_the_type;
    (issues, of_types)
}

pub(crate) fn count(shared: &WalkState<'_>, node: NodeId, doc: &Doc<'_>) -> WalkSummary {
    Walk::count(shared, node, doc)
}

#[derive(Clone, Copy)]
enum WalkSegment<'w> {
    Key(&'w str),
    Index(usize),
}

pub(super) struct Walk<'w, 'o> {
    graph: &'w Graph,
    shared: &'w WalkState<'w>,
    path: Vec<WalkSegment<'w>>,
    /// The issues so far; `None` if they are only counted.
    out: Option<&'o mut Vec<Issue>>,
    secret: bool,
    found: WalkSummary,
}

impl<'w, 'o> Walk<'w, 'o> {
    pub(super) fn new(shared: &'w WalkState<'w>, out: Option<&'o mut Vec<Issue>>) -> Walk<'w, 'o> {
        Walk {
            graph: shared.graph,
            shared,
            path: Vec::new(),
            out,
            secret: false,
            found: WalkSummary::default(),
        }
    }

    pub(super) fn count(shared: &'w WalkState<'w>, node: NodeId, doc: &'w Doc<'_>) -> WalkSummary {
        let mut walk = Walk::new(shared, None);
        walk.check(node, doc);
        walk.found
    }

    fn note_coercion(&mut self) {
        self.found.coerced = true;
        self.found.non_schema_coercion = true;
    }

    fn note_coercion_beyond(&mut self, beyond_strict: bool) {
        self.note_coercion();
        self.found.beyond_strict |= beyond_strict;
    }

    fn pointer(&self) -> String {
        let mut out = String::with_capacity(32 * self.path.len());
        for segment in &self.path {
            match segment {
                WalkSegment::Key(key) => push_segment(&mut out, key),
                WalkSegment::Index(index) => push_index(&mut out, *index),
            }
        }
        out
    }

    fn below(&mut self, segment: WalkSegment<'w>, f: impl FnOnce(&mut Self)) {
        self.path.push(segment);
        f(self);
        self.path.pop();
    }

    /// Counts an issue. `make` fills in its content, and is called only if the issue is kept.
    fn add(&mut self, code: IssueCode, make: impl FnOnce(&Self, &mut Issue)) {
        self.found.count += 1;
        self.found.root_type_mismatch |= self.path.is_empty() && code == IssueCode::Type;
        if self.out.as_ref().is_none_or(|out| out.len() >= MAX_KEPT) {
            return;
        }
        let mut issue = Issue::new(self.pointer(), code, String::new());
        make(self, &mut issue);
        if let Some(out) = &mut self.out {
            out.push(issue);
        }
    }

    /// Returns the number of kept issues. This number is the index of the next issue that is kept.
    fn kept(&self) -> usize {
        self.out.as_ref().map_or(0, |out| out.len())
    }

    fn may_suggest(&self) -> bool {
        self.out.as_ref().is_some_and(|out| out.len() < MAX_SUGGESTED)
    }

    fn list_allowed(&self) -> bool {
        self.out.as_ref().is_some_and(|out| out.len() < MAX_ALLOWED_LISTS)
    }

    /// Describes the sent value briefly. Shows only the type of a value that may be a secret.
    fn received(&self, node: Option<&PlanNode>, doc: &Doc<'_>) -> String {
        let holds =
            node.is_some_and(|n| n.holds_secret) && !matches!(doc.shape, Shape::Object(_) | Shape::Array(_));
        match &doc.shape {
            Shape::Null => "null".into(),
            _ if self.secret || holds => format!("{} {HIDDEN}", doc.kind()),
            _ => doc.shown(),
        }
    }

    fn fault(&mut self, code: IssueCode, problem: impl Into<String>, id: NodeId, doc: &Doc<'_>) {
        self.add(code, |walk, issue| {
            issue.problem = problem.into();
            // For null, the problem already names the value.
            if !(doc.is_null() && code == IssueCode::Type) {
                issue.received = Some(walk.received(Some(walk.graph.node(id)), doc));
            }
            issue.expected = Some(signature(walk.graph, id).into());
        });
    }

    /// Reports a number beyond a bound. The issue names the violated bound, even if only the Rust type has this bound. `digits` is the
    /// number after coercion, if the schema requires an integer.
    fn out_of_range(&mut self, problem: &str, digits: Digits, id: NodeId, doc: &Doc<'_>) {
        self.add(IssueCode::Range, |walk, issue| {
            issue.problem = problem.into();
            issue.received = Some(walk.received(Some(walk.graph.node(id)), doc));
            let below = match (walk.graph.kind(id), digits.int()) {
                (NodeKind::Int(spec), Some(sent)) => {
                    spec.min.is_some_and(|min| sent.as_i128().is_some_and(|sent| sent < min))
                }
                _ => doc.is_negative(),
            };
            let side = if below { Side::Below } else { Side::Above };
            issue.expected = Some(limits(walk.graph, id, side));
        });
    }

    fn is_list_of_one(&self, id: NodeId, items: &[Doc<'_>]) -> bool {
        let [inner] = items else { return false };
        self.out.is_some()
            && !self.path.is_empty()
            && self.graph.takes_no_list(id)
            && !inner.is_null()
            && inspect(self.graph, id, inner, false).count == 0
    }

    /// Returns the inner value of a needless wrapper such as `{"value": 3}`, if the inner value alone fits the schema. Never unwraps null
    /// or the arguments as a whole.
    pub(super) fn stands_alone<'e>(
        &self,
        id: NodeId,
        entries: &'e [(std::borrow::Cow<'_, str>, Doc<'e>)],
    ) -> Option<&'e Doc<'e>> {
        let [(key, inner)] = entries else { return None };
        let is_alone = self.out.is_some()
            && !self.path.is_empty()
            && self.graph.takes_alone(id, key)
            && !inner.is_null()
            && inspect(self.graph, id, inner, false).count == 0;
        is_alone.then_some(inner)
    }

    fn what_is_around(&self, id: NodeId, doc: &Doc<'_>) -> Option<&'static str> {
        match &doc.shape {
            Shape::Object(entries) if self.stands_alone(id, entries).is_some() => {
                Some("send the value alone, without an object around it")
            }
            Shape::Array(items) if self.is_list_of_one(id, items) => {
                Some("send the value alone, without a list around it")
            }
            _ => None,
        }
    }

    fn wrong(&mut self, id: NodeId, doc: &Doc<'_>) {
        let problem = match (self.graph.kind(id), &doc.shape) {
            (_, Shape::Null) => "must not be null",
            (NodeKind::Array(array), Shape::Object(entries))
                if array.is_list() && has_numbered_keys(entries.iter().map(|(key, _)| key.as_ref())) =>
            {
                "send a JSON array, not an object with numbered keys"
            }
            (NodeKind::Array(_), Shape::Text(_)) => "send a JSON array, not text",
            (NodeKind::Object(_) | NodeKind::Tagged { .. }, Shape::Text(_)) => "send a JSON object, not text",
            (NodeKind::Array(array), _) if array.is_list() => "must be an array, even for one item",
            (NodeKind::Num(_), Shape::Text(_)) if doc.is_endless() => "too large a number",
            (NodeKind::Int(_), Shape::Number) if rounding::is_whole(doc.raw) => {
                "write the whole number in digits, without a point or an exponent"
            }
            (NodeKind::Int(_), Shape::Number) => "must be a whole number",
            (NodeKind::Str(spec), Shape::Number) if spec.format.as_deref() == Some("duration") => {
                "must be text in quotes, with a unit"
            }
            (NodeKind::Str(_), Shape::Number) => "must be text in quotes",
            _ => "wrong type",
        };
        self.fault(IssueCode::Type, self.what_is_around(id, doc).unwrap_or(problem), id, doc);
    }

    /// Reports a value that is none of the allowed `words`. The issue shows the signature of the node `expected`, if it is given.
    fn not_a_word<'a>(
        &mut self,
        expected: Option<NodeId>,
        words: impl Iterator<Item = &'a str> + Clone,
        sent: Option<&str>,
        doc: &Doc<'_>,
    ) {
        self.add(IssueCode::Enum, |walk, issue| {
            issue.problem = "not an allowed value".into();
            issue.received = Some(walk.received(expected.map(|id| walk.graph.node(id)), doc));
            issue.expected = expected.map(|id| signature(walk.graph, id).into());
            if walk.list_allowed() {
                issue.allowed = words.clone().map(Value::from).collect();
            }
            if let Some(sent) = sent.filter(|_| !walk.secret && walk.may_suggest())
                && walk.shared.may_suggest(words.clone().count(), sent)
            {
                issue.suggestions = did_you_mean(sent, words).into_iter().map(String::from).collect();
            }
        });
    }

    /// Compares a value with a schema node. Refuses a value that is nested deeper than [`MAX_NESTED`] nodes, because the recursion might
    /// overflow the stack of the thread.
    pub(super) fn check(&mut self, id: NodeId, doc: &'w Doc<'_>) {
        let depth = self.shared.depth.get();
        if depth >= MAX_NESTED {
            return self.add(IssueCode::Value, |_, issue| issue.problem = "nests too deeply".into());
        }
        self.shared.depth.set(depth + 1);
        self.check_node(id, doc);
        self.shared.depth.set(depth);
    }

    fn check_node(&mut self, id: NodeId, doc: &'w Doc<'_>) {
        let node = self.graph.node(id);
        match (&node.kind, &doc.shape) {
            (NodeKind::Any, _)
            | (NodeKind::Null | NodeKind::Nullable(_), Shape::Null)
            | (NodeKind::Bool, Shape::Bool(_)) => {}
            (NodeKind::Never, _) => self.add(IssueCode::Type, |walk, issue| {
                issue.problem = "no value is allowed here".into();
                issue.received = Some(walk.received(None, doc));
            }),
            (NodeKind::Nullable(inner), _) => self.check(*inner, doc),
            (NodeKind::Bool, Shape::Text(text)) => {
                if self.coerced(node, |rules| coerced_bool(text, rules)).is_none() {
                    self.wrong(id, doc);
                }
            }
            (NodeKind::Int(spec), Shape::Number | Shape::Text(_)) => match self.integer(node, doc) {
                Digits::NotInteger => {
                    // JSON Schema accepts `1e20` as an integer, but the number may be rounded, so it is refused.
                    let is_number = matches!(doc.shape, Shape::Number);
                    self.found.unrepresentable += usize::from(is_number && rounding::is_whole(doc.raw));
                    self.wrong(id, doc);
                }
                Digits::Int(int) if spec.takes(int) => {}
                // The bounds of the JSON Schema allow the number, but the number does not fit in 64 bits.
                digits @ (Digits::Int(_) | Digits::TooWide)
                    if self.graph.foreign && spec.ends_before(digits, doc.is_negative()) =>
                {
                    self.found.unrepresentable += 1;
                    self.fault(IssueCode::Type, "must fit in 64 bits", id, doc);
                }
                // The number is within the bounds but not a multiple, so naming a bound would explain nothing.
                Digits::Int(int) if spec.is_within(int) => {
                    self.fault(IssueCode::Range, "out of range", id, doc);
                }
                digits @ Digits::Int(_) => self.out_of_range("out of range", digits, id, doc),
                Digits::TooWide => self.out_of_range("too large a number", Digits::TooWide, id, doc),
            },
            (NodeKind::Num(spec), Shape::Number | Shape::Text(_)) => match self.number(node, doc) {
                None => self.wrong(id, doc),
                Some(number) if spec.takes(number) => {}
                Some(_) => self.out_of_range("out of range", Digits::NotInteger, id, doc),
            },
            (NodeKind::Str(spec), Shape::Text(text)) => self.text(id, spec, text, doc),
            (NodeKind::Str(spec), Shape::Number) => match self.number_as_text(node, spec, doc) {
                Some(text) => self.text(id, spec, &text, doc),
                None => self.wrong(id, doc),
            },
            (NodeKind::Enum(words), shape) => self.word(id, words, shape, doc),
            (NodeKind::Const(members), _) => {
                let sent = doc.to_value();
                match const_of(members, &sent, doc.raw, node.rules) {
                    Some((member, _)) => {
                        self.found.coerced |= *member != sent;
                        self.found.non_schema_coercion |= !same_json(member, &sent);
                        self.found.beyond_strict |= self.found.non_schema_coercion
                            && const_of(members, &sent, doc.raw, node.rules.within_strict()).is_none();
                        self.repeated(doc);
                    }
                    None => self.add(IssueCode::Enum, |walk, issue| {
                        issue.problem = "not an allowed value".into();
                        issue.received = Some(walk.received(Some(node), doc));
                        issue.expected = Some(signature(walk.graph, id).into());
                        if walk.list_allowed() {
                            issue.allowed.clone_from(members);
                        }
                    }),
                }
            }
            (NodeKind::Array(array), Shape::Array(items)) => self.array(id, array, items, doc),
            (NodeKind::Object(object), Shape::Object(entries)) => self.object(object, doc.raw, entries),
            (NodeKind::Tagged { tag, variants, names }, Shape::Object(_)) => {
                self.tagged(node.rules, tag, variants, names, doc);
            }
            (NodeKind::External(external), Shape::Text(_) | Shape::Object(_)) => {
                self.external(id, external, doc);
            }
            (NodeKind::Union { branches, exclusive }, _) => self.union(id, branches, *exclusive, doc),
            (NodeKind::Checked(checked), _) => self.checked(id, checked, doc),
            _ => self.wrong(id, doc),
        }
    }

    /// Reports the first key that an object in the value has twice.
    fn repeated(&mut self, doc: &Doc<'_>) {
        if let Some(below) = doc.repeated_key() {
            self.add(IssueCode::Duplicate, |_, issue| {
                issue.path.push_str(&below);
                issue.problem = "given twice".into();
            });
        }
    }

    /// Coerces a value by the rules of the node, and records the coercion. Returns `None` if the rules do not allow a coercion of the
    /// value.
    fn coerced<T>(
        &mut self,
        node: &PlanNode,
        coerce: impl Fn(Rules) -> Option<CoercedScalar<T>>,
    ) -> Option<CoercedScalar<T>> {
        let coerced = coerce(node.rules)?;
        let in_strict = coerce(node.rules.within_strict());
        self.note_coercion_beyond(in_strict.is_none_or(|strict| strict.rule != coerced.rule));
        Some(coerced)
    }

    fn integer(&mut self, node: &PlanNode, doc: &Doc<'_>) -> Digits {
        match &doc.shape {
            Shape::Number if doc.is_integer_token() => int_from_text(doc.raw),
            Shape::Number => {
                let coerced = doc.exact_f64().and_then(|float| coerced_float(float, node.rules));
                self.found.coerced |= coerced.is_some();
                coerced.map_or(Digits::NotInteger, |coerced| Digits::Int(coerced.value))
            }
            Shape::Text(text) => {
                let coerced = self.coerced(node, |rules| coerced_int(text, rules));
                coerced.map_or(Digits::NotInteger, |coerced| coerced.value)
            }
            _ => Digits::NotInteger,
        }
    }

    fn number(&mut self, node: &PlanNode, doc: &Doc<'_>) -> Option<Num> {
        match &doc.shape {
            Shape::Number => Num::of_token(doc.raw),
            Shape::Text(text) => Some(self.coerced(node, |rules| coerced_num(text, rules))?.value?.0),
            _ => None,
        }
    }

    fn number_as_text(&mut self, node: &PlanNode, spec: &StrSpec, doc: &Doc<'_>) -> Option<String> {
        if !doc.is_integer_token() {
            doc.exact_f64()?;
        }
        let value = doc.to_value();
        if !spec.takes_number(&value, node.rules) {
            return None;
        }
        self.note_coercion_beyond(!spec.takes_number(&value, node.rules.within_strict()));
        number_text(&value)
    }

    fn text(&mut self, id: NodeId, spec: &StrSpec, text: &str, doc: &Doc<'_>) {
        if spec.is_plain {
            return;
        }
        if let Some((code, problem)) = spec.fault(text) {
            self.found.for_the_type += usize::from(spec.is_for_the_type(text));
            self.fault(code, problem, id, doc);
        }
    }

    fn word(&mut self, id: NodeId, words: &Words, shape: &Shape<'_>, doc: &Doc<'_>) {
        let names = words.names();
        match shape {
            Shape::Text(text) => match words.pick(text, self.graph.node(id).rules) {
                Some(PickedWord { is_coerced: false, .. }) => {}
                Some(_) => self.note_coercion_beyond(true),
                None => self.not_a_word(Some(id), names, Some(text), doc),
            },
            Shape::Null => self.wrong(id, doc),
            _ => {
                let around = self.what_is_around(id, doc).or_else(|| self.word_as_key(id, doc));
                let known = self.kept();
                self.not_a_word(Some(id), names, None, doc);
                self.advise(known, around);
            }
        }
    }

    /// Returns the advice for an enum value that was sent as a key, such as `{"Newest": {}}` instead of `"Newest"`. Returns `None` for any
    /// other value.
    pub(super) fn word_as_key(&self, id: NodeId, doc: &Doc<'_>) -> Option<&'static str> {
        let Shape::Object(entries) = &doc.shape else { return None };
        let [(key, inner)] = entries.as_slice() else { return None };
        let is_bare = match &inner.shape {
            Shape::Null => true,
            Shape::Object(inner) => inner.is_empty(),
            _ => inner.raw == "true",
        };
        (self.out.is_some() && is_bare && self.graph.word(id, key).is_some())
            .then_some("send the name alone, without an object around it")
    }

    /// Sets the problem of the issue at `index`. Does nothing if `problem` is `None`, or if the issue was counted but not kept.
    pub(super) fn advise(&mut self, index: usize, problem: Option<&str>) {
        if let (Some(problem), Some(issue)) = (problem, self.out.as_mut().and_then(|out| out.get_mut(index)))
        {
            issue.problem = problem.to_owned();
            issue.suggestions.clear();
            issue.is_mendable = true;
        }
    }

    fn array(&mut self, id: NodeId, array: &ArraySpec, items: &'w [Doc<'_>], doc: &'w Doc<'_>) {
        let count = items.len() as u64;
        if !array.takes_length(count) {
            let problem = if array.min == array.max && array.max == array.prefix.len() as u64 {
                format!("must have exactly {} items, has {count}", array.max)
            } else if count < array.min {
                format!("too few items ({count})")
            } else {
                format!("too many items ({count})")
            };
            self.add(IssueCode::Length, |walk, issue| {
                issue.problem = problem;
                issue.expected = Some(signature(walk.graph, id).into());
            });
        }
        for (i, item) in items.iter().enumerate() {
            let Some(node) = array.item(i) else { break };
            self.below(WalkSegment::Index(i), |walk| walk.check(node, item));
        }
        if array.unique
            && !self.shared.silent
            && let Some((first, second)) = self.coerced_items(id, doc).and_then(|items| repeated(&items))
            && let Some(item) = items.get(second)
        {
            self.below(WalkSegment::Index(second), |walk| {
                walk.add(IssueCode::Unique, |walk, issue| {
                    issue.problem = format!("repeats item {first}");
                    issue.received =
                        Some(walk.received(array.item(second).map(|id| walk.graph.node(id)), item));
                });
            });
        }
    }

    /// Returns the items after coercion, or the sent items if the array is refused.
    fn coerced_items(&self, id: NodeId, doc: &Doc<'_>) -> Option<Vec<Value>> {
        let judge = TextJudge::new(self.graph, doc.raw);
        let cx = Context::silent(self.graph, doc.raw, &judge);
        let mut de = serde_json::Deserializer::from_str(doc.raw);
        let coerced =
            Value::deserialize(PlanDe { de: &mut de, at: &ValuePosition::root(&cx, self.graph.node(id)) });
        match coerced.unwrap_or_else(|_| doc.to_value()) {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }
}

/// Returns whether a text is JSON that fits a schema node. `root` means that the text is the arguments as a whole.
pub(crate) fn fits(graph: &Graph, node: NodeId, text: &str, root: bool) -> bool {
    Document::parse(text).is_ok_and(|document| inspect(graph, node, &document.root, root).count == 0)
}
