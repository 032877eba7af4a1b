//! The corrected call: the arguments with every mistake fixed in the only possible way.

mod tags;
mod written;

use super::wrapper::{MAX_WRAPPERS, may_be_wrapped, unwrapped};
use crate::args::document::{Doc, Document, Shape};
use crate::args::exact::{Fit, fit};
use crate::args::issue::{Issue, IssueCode};
use crate::args::judge::{diagnose, fits, inspect, says_nothing};
use crate::args::plan::{ArraySpec, Child, Graph, NodeId, NodeKind, ObjectSpec, Prop, VariantNames};
use crate::args::policy::{CoercionPolicy, Rules};
use crate::args::scalar::{coerced_bool, coerced_float, coerced_int, coerced_num};
use crate::args::suggest::{did_you_mean, has_close_name, near_names};
use crate::args::text::has_numbered_keys;
use serde_json::{Map, Value};
use std::borrow::Cow;
use written::{NewEntry, canonical, is_canonical, object_text, put};

const MAX_CALL: usize = 500;
/// Maximum length of sent arguments, in bytes. The corrected call of longer arguments would usually be too long to be offered.
const MAX_SENT: usize = 4 * MAX_CALL;
const MAX_CORRECTIONS: usize = 50;

pub(crate) struct Offer {
    pub(crate) text: String,
    pub(crate) fit: Fit,
}

impl Offer {
    /// Returns `None` if the call is longer than [`MAX_CALL`] characters.
    fn new(graph: &Graph, text: String) -> Option<Offer> {
        let is_short = text.len() <= MAX_CALL || text.chars().count() <= MAX_CALL;
        is_short.then(|| Offer { fit: fit(graph, &text), text })
    }
}

/// Returns the corrected call, if exactly one correction is possible and the corrected call is valid.
pub(crate) fn corrected(graph: &Graph, tool: &str, sent: &Doc<'_>, issues: &[Issue]) -> Option<Offer> {
    corrected_inside(graph, tool, sent, issues, MAX_WRAPPERS)
}

/// Returns the corrected call for a text that is not JSON. `meant` is the probable meaning of the text, as JSON.
pub(crate) fn corrected_spelling(graph: &Graph, tool: &str, meant: &str) -> Option<Offer> {
    if graph.has_secrets() {
        return None;
    }
    match diagnose(graph, meant) {
        Ok(_) => {
            if is_lossy(&Document::parse(meant).ok()?.root) {
                return None;
            }
            let text = serde_json::from_str::<Value>(meant).ok()?.to_string();
            let call = Document::parse(&text).ok()?;
            let text = Correction { graph, issues: &[] }.of(graph.root, &call.root, true).into_owned();
            Offer::new(graph, text)
        }
        Err(refusal) => refusal.with_sent(|sent| corrected(graph, tool, sent, &refusal.issues))?,
    }
}

fn corrected_inside(
    graph: &Graph,
    tool: &str,
    sent: &Doc<'_>,
    issues: &[Issue],
    depth: usize,
) -> Option<Offer> {
    if sent.raw.len() > MAX_SENT || issues.len() > MAX_CORRECTIONS || graph.has_secrets() {
        return None;
    }
    let has_wrapper = issues.iter().any(|issue| is_wrapper(graph, issue));
    let is_mendable = issues.iter().all(|issue| is_mendable(issue, issues));
    let has_wrapper = has_wrapper && depth > 0 && may_be_wrapped(graph, sent);
    if !has_wrapper && !is_mendable {
        return None;
    }
    // A correction would drop a repeated key, or digits of a number. `issues` does not list a repeated key below an unknown key, so this
    // check is necessary.
    if is_lossy(sent) {
        return None;
    }
    if has_wrapper && let Some(inner) = unwrapped(graph, tool, &sent.to_value()) {
        let text = inner.call.to_string();
        let call = match diagnose(graph, &text) {
            Ok(_) => Offer::new(graph, text),
            Err(refusal) => refusal
                .with_sent(|sent| corrected_inside(graph, tool, sent, &refusal.issues, depth - 1))
                .flatten(),
        };
        if call.is_some() {
            return call;
        }
    }
    if !is_mendable || !matches!(sent.shape, Shape::Object(_)) {
        return None;
    }
    let text = Correction { graph, issues }.change(graph.root, sent, true)?;
    if is_canonical(&text, sent) {
        return None;
    }
    Offer::new(graph, text)
        .filter(|offer| offer.fit == Fit::Exact || fits(graph, graph.root, &offer.text, true))
}

/// Returns whether an issue may mean that the arguments are inside another object, as in `{"args": {…}}`.
fn is_wrapper(graph: &Graph, issue: &Issue) -> bool {
    let is_tag = || matches!(graph.kind(graph.unchecked(graph.root)), NodeKind::Tagged { .. });
    let at_root = || issue.is_at_top();
    match issue.code {
        IssueCode::Type => issue.path.is_empty(),
        IssueCode::Unknown => at_root(),
        IssueCode::Missing => is_tag() && at_root(),
        _ => false,
    }
}

/// Returns whether an issue may have exactly one correction. If one of the issues has none, no corrected call is tried.
fn is_mendable(issue: &Issue, all: &[Issue]) -> bool {
    if issue.is_mendable {
        return true;
    }
    match issue.code {
        IssueCode::Type => true,
        IssueCode::Enum => issue.suggestions.len() == 1,
        // The key is a misspelled parameter, or a variant's name while the tag is missing.
        IssueCode::Unknown => issue.suggestions.len() == 1 || all.iter().any(|tag| names_variant(issue, tag)),
        IssueCode::Missing => {
            let (parent, name) = issue.parent_and_key().unwrap_or_default();
            all.iter().any(|other| {
                let is_unknown = other.code == IssueCode::Unknown;
                let is_beside = || other.parent_and_key().is_some_and(|(other, _)| other == parent);
                let is_meant = || other.is_mendable || other.suggestions.iter().any(|s| s == name);
                is_unknown && is_meant() && is_beside() || names_variant(other, issue)
            })
        }
        _ => false,
    }
}

fn names_variant(unknown: &Issue, tag: &Issue) -> bool {
    if unknown.code != IssueCode::Unknown || tag.code != IssueCode::Missing || tag.allowed.is_empty() {
        return false;
    }
    let (parent, name) = unknown.parent_and_key().unwrap_or_default();
    tag.parent_and_key().is_some_and(|(other, _)| other == parent)
        && tag.allowed.iter().any(|variant| variant == name)
}

type SentEntry<'t> = (Cow<'t, str>, Doc<'t>);

struct Correction<'g> {
    graph: &'g Graph,
    issues: &'g [Issue],
}

impl Correction<'_> {
    /// Returns the corrected value as JSON text, or the value as `serde_json` writes it if there is no correction.
    fn of<'d>(&self, id: NodeId, doc: &'d Doc<'_>, root: bool) -> Cow<'d, str> {
        self.change(id, doc, root).map_or_else(|| canonical(doc), Cow::Owned)
    }

    fn of_text(&self, id: NodeId, text: String) -> String {
        let document = Document::parse(&text).ok();
        document.and_then(|document| self.change(id, &document.root, false)).unwrap_or(text)
    }

    /// Returns the value, corrected to fit the schema; `None` if the value is accepted unchanged, or if no correction is certain.
    fn change(&self, id: NodeId, doc: &Doc<'_>, root: bool) -> Option<String> {
        // Arguments with issues are not accepted, so they need no test.
        if (!root || self.issues.is_empty()) && self.is_taken(id, doc, root) {
            return None;
        }
        if !root && let Some(inner) = self.alone(id, doc).or_else(|| self.word_as_key(id, doc)) {
            return Some(inner);
        }
        let lenient = CoercionPolicy::lenient().rules();
        match (self.graph.kind(id), &doc.shape) {
            (NodeKind::Str(spec), Shape::Number) if spec.format.is_none() => {
                let number = doc.to_value();
                (!number.is_f64()).then(|| Value::from(number.to_string()).to_string())
            }
            (NodeKind::Int(_), Shape::Text(text)) => {
                Some(coerced_int(text, lenient)?.value.int()?.to_value().to_string())
            }
            (NodeKind::Int(_), Shape::Number) => {
                let number = doc.to_value();
                let float = number.as_f64().filter(|_| number.is_f64())?;
                Some(coerced_float(float, lenient)?.value.to_value().to_string())
            }
            (NodeKind::Num(_), Shape::Text(text)) => {
                let (number, digits) = coerced_num(text, lenient)?.value?;
                let written = serde_json::from_str(digits.trim().trim_start_matches('+'));
                Some(written.unwrap_or_else(|_| number.to_value()).to_string())
            }
            (NodeKind::Bool, Shape::Text(text)) => Some(coerced_bool(text, lenient)?.value.to_string()),
            (NodeKind::Enum(words), Shape::Text(text)) => {
                if words.pick(text, self.graph.node(id).rules).is_some() {
                    return None;
                }
                match did_you_mean(text, words.iter().map(String::as_str))[..] {
                    [only] => Some(Value::from(only).to_string()),
                    _ => None,
                }
            }
            (NodeKind::Object(object), _) => self.object(object, id, doc, root),
            (NodeKind::Array(array), _) => self.array(array, doc),
            (NodeKind::Tagged { tag, variants, names }, _) => {
                self.tagged(tag, variants, names, self.graph.node(id).rules, doc)
            }
            (NodeKind::External(external), Shape::Text(text)) => {
                Some(self.of_text(external.object, decoded_object(text)?))
            }
            (NodeKind::Union { branches, .. }, Shape::Text(text)) => self.union(branches, text),
            (kind, _) => {
                let root = root && matches!(kind, NodeKind::Checked(_));
                self.change(doc.referred(self.graph, id)?, doc, root)
            }
        }
    }

    /// Corrects an object or list that was sent as JSON text. Other text might fit several alternatives.
    fn union(&self, branches: &[NodeId], text: &str) -> Option<String> {
        let objects = |id: &&NodeId| {
            matches!(
                self.graph.kind(self.graph.unchecked(**id)),
                NodeKind::Object(_) | NodeKind::Tagged { .. } | NodeKind::External(_) | NodeKind::Array(_)
            )
        };
        branches.iter().filter(objects).find_map(|id| {
            let own: Value = serde_json::from_str(text).ok()?;
            let is_list = matches!(self.graph.kind(self.graph.unchecked(*id)), NodeKind::Array(_));
            if is_list != own.is_array() {
                return None;
            }
            Some(self.of_text(*id, own.to_string())).filter(|text| fits(self.graph, *id, text, false))
        })
    }

    /// Returns the only value inside an object or a list, if this value fits without its container. For example, returns 3
    /// for `{"value": 3}`.
    fn alone(&self, id: NodeId, doc: &Doc<'_>) -> Option<String> {
        let (is_taken, inner) = match &doc.shape {
            Shape::Array(items) => {
                (self.graph.takes_no_list(id), items.first().filter(|_| items.len() == 1)?)
            }
            _ => only_entry(doc).map(|(key, inner)| (self.graph.takes_alone(id, key), inner))?,
        };
        (is_taken && self.is_taken(id, inner, false)).then(|| canonical(inner).into_owned())
    }

    /// Returns the enum value that was sent as the only key of an object, with `{}`, null or true as the value. For example, returns
    /// `"Newest"` for `{"Newest": {}}`.
    fn word_as_key(&self, id: NodeId, doc: &Doc<'_>) -> Option<String> {
        let (key, inner) = only_entry(doc)?;
        let is_bare = match &inner.shape {
            Shape::Null | Shape::Bool(true) => true,
            Shape::Object(inner) => inner.is_empty(),
            _ => false,
        };
        self.graph.word(id, key).filter(|_| is_bare).map(|word| Value::from(word).to_string())
    }

    /// Wraps a scalar in an object, if exactly one field of the object accepts the scalar and no other field is required.
    fn only_field(&self, object: &ObjectSpec, id: NodeId, doc: &Doc<'_>) -> Option<String> {
        if matches!(doc.shape, Shape::Object(_) | Shape::Array(_) | Shape::Null) {
            return None;
        }
        let is_json = doc.text().is_some_and(|text| text.trim_start().starts_with(['{', '[']));
        if is_json || self.is_nothing(id, doc) {
            return None;
        }
        let mut takers = object.props.iter().filter(|prop| self.is_taken(prop.node, doc, false));
        let (Some(only), None) = (takers.next(), takers.next()) else { return None };
        if object.props.iter().any(|prop| prop.required && prop.name != only.name) {
            return None;
        }
        Some(object_text(&[NewEntry::new(&only.name, Some(only), canonical(doc))]))
    }

    /// Returns whether a value other than null means an absent value, for example the text `none`.
    fn is_nothing(&self, id: NodeId, doc: &Doc<'_>) -> bool {
        !doc.is_null() && says_nothing(self.graph, id, doc)
    }

    fn is_taken(&self, id: NodeId, doc: &Doc<'_>, root: bool) -> bool {
        if doc.fits_exactly(self.graph, id) {
            return true;
        }
        let found = inspect(self.graph, id, doc, root);
        found.count == 0 && !found.coerced
    }

    fn object(&self, object: &ObjectSpec, id: NodeId, doc: &Doc<'_>, root: bool) -> Option<String> {
        if !root && let Some(wrapped) = self.only_field(object, id, doc) {
            return Some(wrapped);
        }
        match &doc.shape {
            Shape::Object(entries) => self.renamed(object, entries),
            Shape::Text(text) => {
                let text = decoded_object(text)?;
                match Document::parse(&text).ok()?.root.shape {
                    Shape::Object(entries) => self.renamed(object, &entries),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns `None` if a value that belongs elsewhere would replace another value, or get lost.
    fn renamed(&self, object: &ObjectSpec, old: &[SentEntry<'_>]) -> Option<String> {
        let was_given = |name: &str| old.iter().any(|(key, _)| key == name);
        let (children, free) = children(object, old);
        let (mut new, mut moved): (Vec<NewEntry<'_>>, Vec<_>) = (Vec::with_capacity(old.len()), Vec::new());
        let meant = self.meant(object, old, &children, &free);
        for ((key, doc), child) in old.iter().zip(children) {
            let (mut key, mut child) = (key.as_ref(), child);
            if child.is_none() {
                let near = self.near(object, key, &free);
                let may_belong = near.is_empty() || key.contains(['.', '/']);
                let home = if may_belong { self.graph.home(object, key) } else { None };
                let is_new = |name: &str| !new.iter().any(|known| known.key == name);
                match (meant.filter(|(own, _)| *own == key), home, &near[..]) {
                    (Some((_, name)), ..) => key = name,
                    (None, Some((Some(home), name)), _) => {
                        moved.push((home, name, doc));
                        continue;
                    }
                    (None, Some((None, name)), _) if !was_given(name) && is_new(name) => key = name,
                    (None, None, [only]) if is_new(only) => key = only,
                    _ => {}
                }
                child = object.child(key, 0);
            }
            let Some(child) = child else {
                new.push(NewEntry::new(key, None, canonical(doc)));
                continue;
            };
            let (id, prop) = (child.node(), child.prop(object));
            let is_absent = doc.is_null() && prop.is_some_and(|prop| prop.null_absent);
            let is_optional = prop.is_some_and(|prop| !prop.required);
            if is_absent || is_optional && self.is_nothing(id, doc) && !self.is_taken(id, doc, false) {
                continue;
            }
            new.push(NewEntry::new(key, prop, self.of(id, doc, false)));
        }
        for (home, name, doc) in moved {
            let known = new.iter().find(|known| known.key == home);
            let known = known.and_then(|known| serde_json::from_str(&known.value).ok());
            let mut value = known.unwrap_or_else(|| Value::Object(Map::new()));
            if value.as_object_mut()?.insert(name.to_owned(), doc.to_value()).is_some() {
                return None;
            }
            let text = match object.child(home, 0) {
                Some(Child::Prop(_, id)) => self.of_text(id, value.to_string()),
                _ => value.to_string(),
            };
            put(&mut new, home, text.into());
        }
        Some(object_text(&new))
    }

    /// Returns the parameters that an unknown key probably means: the suggestions of its issue, or else the parameters with a similar
    /// name.
    fn near<'o>(&self, object: &'o ObjectSpec, key: &str, free: &'o [bool]) -> Vec<&'o str> {
        let is_own = |issue: &&Issue| {
            issue.code == IssueCode::Unknown
                && issue.path.strip_suffix(key).is_some_and(|above| above.ends_with('/'))
        };
        let mut own = self.issues.iter().filter(is_own);
        if let (Some(issue), None) = (own.next(), own.next())
            && !issue.suggestions.is_empty()
        {
            let named = |name: &String| {
                let (_, prop) =
                    object.props.iter().enumerate().find(|(index, prop)| {
                        prop.name == *name && free.get(*index).is_some_and(|free| *free)
                    })?;
                Some(prop.name.as_str())
            };
            if let Some(names) = issue.suggestions.iter().map(named).collect() {
                return names;
            }
        }
        near_names(key, object.names(|index| free.get(index).is_some_and(|free| *free)))
    }

    /// Returns the only unknown key and the only missing required parameter, if the value of the key fits the parameter.
    fn meant<'o>(
        &self,
        object: &'o ObjectSpec,
        old: &'o [SentEntry<'_>],
        children: &[Option<Child>],
        free: &[bool],
    ) -> Option<(&'o str, &'o str)> {
        let mut unknown = old.iter().zip(children).filter(|(_, child)| child.is_none());
        let (Some(((key, doc), _)), None) = (unknown.next(), unknown.next()) else { return None };
        let mut missing = object.props.iter().zip(free).filter(|(prop, is_free)| prop.required && **is_free);
        let (Some((prop, _)), None) = (missing.next(), missing.next()) else { return None };
        let takes_anything = matches!(self.graph.kind(prop.node), NodeKind::Any);
        let is_given = |other: &Prop| old.iter().any(|(key, _)| *key == other.name);
        let is_free = |index: usize| {
            let is_missing = free.get(index).is_some_and(|free| *free);
            let is_free = |other: &Prop| is_missing || !other.aliases.is_empty() && !is_given(other);
            object.props.get(index).is_some_and(|other| is_free(other) && !std::ptr::eq(other, prop))
        };
        let is_near = || has_close_name(key, object.names(is_free));
        if takes_anything || (0..object.props.len()).any(is_free) && is_near() {
            return None;
        }
        let fits = inspect(self.graph, prop.node, doc, false).count == 0;
        fits.then_some((key.as_ref(), prop.name.as_str()))
    }

    fn array(&self, array: &ArraySpec, doc: &Doc<'_>) -> Option<String> {
        if let Shape::Text(text) = &doc.shape
            && let Ok(inner @ Value::Array(_)) = serde_json::from_str(text)
        {
            let text = inner.to_string();
            return self.array(array, &Document::parse(&text).ok()?.root);
        }
        let items: Vec<&Doc<'_>> = match &doc.shape {
            Shape::Array(items) => items.iter().collect(),
            Shape::Object(entries) if self.is_numbered(array, entries, doc) => {
                entries.iter().map(|(_, item)| item).collect()
            }
            Shape::Null => return None,
            // It is uncertain whether a text such as `a, b` is a list or one item.
            Shape::Text(text) if text.contains([',', '[', '\n']) => return None,
            // A single value becomes a list. In a list of lists, the level of the value is uncertain.
            _ => {
                let is_item_list = |item| {
                    self.is_array(item)
                        || only_entry(doc).is_some_and(|(key, _)| self.graph.takes_alone(item, key))
                };
                if !array.is_list() || array.item(0).is_some_and(is_item_list) {
                    return None;
                }
                vec![doc]
            }
        };
        let items = items.into_iter().enumerate().map(|(index, item)| match array.item(index) {
            None => canonical(item),
            Some(id) => match (self.graph.kind(id), &item.shape) {
                (NodeKind::Str(spec), Shape::Number) if spec.format.is_none() && array.is_list() => {
                    Value::from(item.to_value().to_string()).to_string().into()
                }
                _ => self.of(id, item, false),
            },
        });
        Some(format!("[{}]", items.collect::<Vec<_>>().join(",")))
    }

    /// Returns whether an object is probably meant as a list: its keys are numbered, and the object as a whole is not accepted
    /// as an item.
    fn is_numbered(&self, array: &ArraySpec, entries: &[SentEntry<'_>], doc: &Doc<'_>) -> bool {
        array.is_list()
            && has_numbered_keys(entries.iter().map(|(key, _)| key.as_ref()))
            && array.items.is_some_and(|item| !self.is_taken(item, doc, false))
    }

    fn is_array(&self, id: NodeId) -> bool {
        matches!(self.graph.kind(self.graph.non_null(id)), NodeKind::Array(_))
    }

    fn tagged(
        &self,
        tag: &str,
        variants: &[(String, NodeId)],
        known: &VariantNames,
        rules: Rules,
        doc: &Doc<'_>,
    ) -> Option<String> {
        if doc.entry(tag).is_some() {
            return self.variant(tag, variants, known, rules, doc);
        }
        let text = self.with_tag(tag, variants, doc.to_value())?.to_string();
        let changed = Document::parse(&text).ok()?;
        Some(
            self.variant(tag, variants, known, rules, &changed.root)
                .unwrap_or_else(|| canonical(&changed.root).into_owned()),
        )
    }

    fn variant(
        &self,
        tag: &str,
        variants: &[(String, NodeId)],
        known: &VariantNames,
        rules: Rules,
        doc: &Doc<'_>,
    ) -> Option<String> {
        let sent = doc.entry(tag)?.text()?;
        let picked = known.pick(variants, sent, rules).or_else(|| {
            match did_you_mean(sent, variants.iter().map(|v| v.0.as_str()))[..] {
                [only] => known.pick(variants, only, rules),
                _ => None,
            }
        });
        let (name, variant) = picked?;
        if name.word == sent {
            return self.change(variant, doc, false);
        }
        let mut value = doc.to_value();
        value[tag] = name.word.into();
        Some(self.of_text(variant, value.to_string()))
    }
}

/// Returns the property or entry of each key (`None` for an unknown key), and for each property whether no key names it.
fn children(object: &ObjectSpec, old: &[SentEntry<'_>]) -> (Vec<Option<Child>>, Vec<bool>) {
    let (mut free, mut hint) = (vec![true; object.props.len()], 0);
    let children = old.iter().map(|(key, _)| {
        let child = object.child(key, hint);
        if let Some(Child::Prop(index, _)) = child {
            free[index] = false;
            hint = index + 1;
        }
        child
    });
    (children.collect(), free)
}

/// Returns whether a value, or JSON in one of its texts, has a repeated key, or a number whose digits a `Value` cannot hold.
fn is_lossy(doc: &Doc<'_>) -> bool {
    fn is_lossy_text(doc: &Doc<'_>) -> bool {
        match &doc.shape {
            Shape::Array(items) => items.iter().any(is_lossy_text),
            Shape::Object(entries) => entries.iter().any(|(_, item)| is_lossy_text(item)),
            Shape::Text(text) if text.contains(['{', '[']) => {
                Document::parse(text).is_ok_and(|inner| is_lossy(&inner.root))
            }
            _ => false,
        }
    }
    doc.repeated_key().is_some() || doc.loses_digits() || is_lossy_text(doc)
}

fn decoded_object(text: &str) -> Option<String> {
    let inner: Value = serde_json::from_str(text).ok()?;
    inner.is_object().then(|| inner.to_string())
}

fn only_entry<'d>(doc: &'d Doc<'_>) -> Option<(&'d str, &'d Doc<'d>)> {
    match &doc.shape {
        Shape::Object(entries) => match entries.as_slice() {
            [(key, inner)] => Some((key.as_ref(), inner)),
            _ => None,
        },
        _ => None,
    }
}
