//! The corrected call: the arguments with every mistake fixed in the only possible way.

use super::wrapper::{MAX_WRAPPERS, unwrapped};
use crate::args::diagnose::{Doc, Document, diagnose, fits, inspect, says_nothing};
use crate::args::issue::{Issue, IssueCode};
use crate::args::plan::{Child, Graph, Kind, NodeId, ObjectSpec, Prop, VariantNames};
use crate::args::policy::{CoercionPolicy, Rules};
use crate::args::scalar::{Num, bool_from_text, int_from_f64, int_from_text};
use crate::args::suggest::{did_you_mean, has_close_name, near_names};
use crate::args::text::has_numbered_keys;
use serde_json::{Map, Value};

const MAX_CALL: usize = 500;
/// Longer arguments would still be too long after corrections.
const MAX_SENT: usize = 4 * MAX_CALL;
const MAX_MENDS: usize = 50;

/// Returns the corrected call, if there is exactly one and it is valid.
pub(crate) fn corrected(graph: &Graph, tool: &str, sent: &Doc<'_>, issues: &[Issue]) -> Option<String> {
    mended(graph, tool, sent, issues, MAX_WRAPPERS)
}

/// Returns the call that was meant by text that is not JSON.
pub(crate) fn corrected_spelling(graph: &Graph, tool: &str, meant: &str) -> Option<String> {
    if graph.has_secrets() {
        return None;
    }
    match diagnose(graph, meant) {
        Ok(_) => {
            let mut call = serde_json::from_str(meant).ok()?;
            Mend { graph }.value(graph.root, &mut call, None, true);
            offered(&call.to_string())
        }
        Err(refusal) => refusal.with_sent(|sent| corrected(graph, tool, sent, &refusal.issues))?,
    }
}

fn mended(graph: &Graph, tool: &str, doc: &Doc<'_>, issues: &[Issue], depth: usize) -> Option<String> {
    if doc.raw.len() > MAX_SENT || issues.len() > MAX_MENDS || graph.has_secrets() {
        return None;
    }
    let has_wrapper = issues.iter().any(|issue| is_wrapper(graph, issue));
    let is_mendable = issues.iter().all(|issue| is_mendable(issue, issues));
    if !has_wrapper && !is_mendable {
        return None;
    }
    // Repeated keys below an unknown key have not been reported.
    if doc.repeated_key().is_some() || doc.loses_digits() {
        return None;
    }
    let sent = doc.to_value();
    if has_wrapper
        && depth > 0
        && let Some(inner) = unwrapped(graph, tool, &sent)
    {
        let text = inner.call.to_string();
        let call = match diagnose(graph, &text) {
            Ok(_) => offered(&text),
            Err(refusal) => {
                refusal.with_sent(|sent| mended(graph, tool, sent, &refusal.issues, depth - 1)).flatten()
            }
        };
        if call.is_some() {
            return call;
        }
    }
    if !is_mendable || !sent.is_object() {
        return None;
    }
    let mut mended = sent.clone();
    Mend { graph }.value(graph.root, &mut mended, Some(doc), true);
    if mended == sent {
        return None;
    }
    let text = mended.to_string();
    offered(&text).filter(|text| fits(graph, graph.root, text, true))
}

/// A longer call is not offered.
fn offered(text: &str) -> Option<String> {
    (text.chars().count() <= MAX_CALL).then(|| text.to_owned())
}

/// Can it be that the arguments stand in something of their own, as in `{"args": {…}}`?
fn is_wrapper(graph: &Graph, issue: &Issue) -> bool {
    let is_tag = || matches!(graph.kind(graph.unchecked(graph.root)), Kind::Tagged { .. });
    let at_root = issue.path.rfind('/') == Some(0);
    issue.path.is_empty() && issue.code == IssueCode::Type
        || at_root && (issue.code == IssueCode::Unknown || issue.code == IssueCode::Missing && is_tag())
}

/// Can there be one mechanical mend? Most reports need not be tried then.
fn is_mendable(issue: &Issue, all: &[Issue]) -> bool {
    if issue.is_mendable {
        return true;
    }
    match issue.code {
        IssueCode::Type => true,
        IssueCode::Enum => issue.suggestions.len() == 1,
        // A variant's name where its tag belongs.
        IssueCode::Unknown => issue.suggestions.len() == 1 || all.iter().any(|tag| names_variant(issue, tag)),
        // Missing under its name, but there under a name like it.
        IssueCode::Missing => {
            let (parent, name) = issue.path.rsplit_once('/').unwrap_or_default();
            all.iter().any(|other| {
                names_variant(other, issue)
                    || other.is_mendable
                        && other.code == IssueCode::Unknown
                        && other.path.rsplit_once('/').is_some_and(|(other_parent, _)| other_parent == parent)
                    || other.code == IssueCode::Unknown
                        && other.path.rsplit_once('/').is_some_and(|(other_parent, _)| other_parent == parent)
                        && other.suggestions.iter().any(|s| s == name)
            })
        }
        _ => false,
    }
}

/// Is it a key that is called like a variant, where the tag is missing?
fn names_variant(unknown: &Issue, tag: &Issue) -> bool {
    let (parent, name) = unknown.path.rsplit_once('/').unwrap_or_default();
    unknown.code == IssueCode::Unknown
        && tag.code == IssueCode::Missing
        && tag.path.rsplit_once('/').is_some_and(|(other, _)| other == parent)
        && tag.allowed.iter().any(|variant| variant == name)
}

struct Mend<'g> {
    graph: &'g Graph,
}

impl Mend<'_> {
    /// A value that is accepted unchanged stays; everything else is rewritten into the form of the schema. `doc` is the value as
    /// it was sent, if it is still that.
    fn value(&self, id: NodeId, value: &mut Value, doc: Option<&Doc<'_>>, root: bool) {
        if self.is_taken(id, value, doc, root) {
            return;
        }
        let lenient = CoercionPolicy::lenient().rules();
        if let Some(inner) =
            self.alone(id, value, doc).or_else(|| self.word_as_key(id, value)).filter(|_| !root)
        {
            *value = inner;
            return;
        }
        match (self.graph.kind(id), &mut *value) {
            (Kind::Nullable(inner), _) => self.value(*inner, value, doc, false),
            (Kind::Checked(checked), _) => self.value(checked.base, value, doc, root),
            (Kind::Str(spec), Value::Number(n)) if spec.format.is_none() && !n.is_f64() => {
                *value = n.to_string().into();
            }
            (Kind::Int(_), Value::String(text)) => {
                if let Some(int) = int_from_text(text).int() {
                    *value = int.to_value();
                }
            }
            (Kind::Int(_), Value::Number(n)) if n.is_f64() => {
                if let Some(int) = n.as_f64().and_then(int_from_f64) {
                    *value = int.to_value();
                }
            }
            (Kind::Num(_), Value::String(text)) => {
                if let Some(number) = Num::of_text(text) {
                    *value = serde_json::from_str(text.trim().trim_start_matches('+'))
                        .unwrap_or_else(|_| number.to_value());
                }
            }
            (Kind::Bool, Value::String(text)) => {
                if let Some(b) = bool_from_text(text, lenient) {
                    *value = b.into();
                }
            }
            (Kind::Enum(words), Value::String(text)) => {
                if words.pick(text, self.graph.node(id).rules).is_none()
                    && let [only] = did_you_mean(text, words.iter().map(String::as_str))[..]
                {
                    *value = only.into();
                }
            }
            (Kind::Object(object), _) => self.object(object, id, value, doc, root),
            (Kind::Array(_), _) => self.array(id, value, doc),
            (Kind::Tagged { tag, variants, names }, _) => {
                self.tagged(tag, variants, names, self.graph.node(id).rules, value, doc);
            }
            (Kind::External(external), _) => {
                let doc = doc.filter(|_| !decode_object(value));
                if value.is_object() {
                    self.value(external.object, value, doc, false);
                }
            }
            (Kind::Union { branches, .. }, _) => {
                let objects = |id: &&NodeId| {
                    matches!(
                        self.graph.kind(self.graph.unchecked(**id)),
                        Kind::Object(_) | Kind::Tagged { .. } | Kind::External(_) | Kind::Array(_)
                    )
                };
                // Only what is JSON in text: which alternative another value is meant for is not ours to decide.
                let mended = branches.iter().filter(objects).filter(|_| value.is_string()).find_map(|id| {
                    let mut own: Value = serde_json::from_str(value.as_str()?).ok()?;
                    let is_list = matches!(self.graph.kind(self.graph.unchecked(*id)), Kind::Array(_));
                    if is_list != own.is_array() {
                        return None;
                    }
                    self.value(*id, &mut own, None, false);
                    fits(self.graph, *id, &own.to_string(), false).then_some(own)
                });
                if let Some(mended) = mended {
                    *value = mended;
                }
            }
            _ => {}
        }
    }

    /// Returns a value that stands in an object of its own: `{"value": 3}` for 3.
    fn alone(&self, id: NodeId, value: &Value, doc: Option<&Doc<'_>>) -> Option<Value> {
        let (is_taken, inner, doc) = match value {
            Value::Array(items) => {
                let inner = items.first().filter(|_| items.len() == 1)?;
                (self.graph.takes_no_list(id), inner, doc.and_then(|doc| doc.item(0)))
            }
            _ => {
                let (key, inner) = only_entry(value)?;
                (self.graph.takes_alone(id, key), inner, doc.and_then(|doc| doc.entry(key)))
            }
        };
        (is_taken && self.is_taken(id, inner, doc, false)).then(|| inner.clone())
    }

    /// Returns the word that stands as the key of an object without content: `{"Newest": {}}`.
    fn word_as_key(&self, id: NodeId, value: &Value) -> Option<Value> {
        let (key, inner) = only_entry(value)?;
        let is_bare = match inner {
            Value::Null | Value::Bool(true) => true,
            Value::Object(inner) => inner.is_empty(),
            _ => false,
        };
        self.graph.word(id, key).filter(|_| is_bare).map(Value::from)
    }

    /// Puts a value into the only field of an object that takes it, if the object needs no other.
    fn only_field(&self, object: &ObjectSpec, id: NodeId, value: &mut Value, doc: Option<&Doc<'_>>) -> bool {
        if matches!(value, Value::Object(_) | Value::Array(_) | Value::Null) {
            return false;
        }
        let is_json = value.as_str().is_some_and(|text| text.trim_start().starts_with(['{', '[']));
        if is_json || self.is_nothing(id, value, doc) {
            return false;
        }
        let mut takers = object.props.iter().filter(|prop| self.is_taken(prop.node, value, doc, false));
        let (Some(only), None) = (takers.next(), takers.next()) else { return false };
        if object.props.iter().any(|prop| prop.required && prop.name != only.name) {
            return false;
        }
        *value = Value::Object(Map::from_iter([(only.name.clone(), value.take())]));
        true
    }

    /// Whether a value is a filler for one that does not exist.
    fn is_nothing(&self, id: NodeId, value: &Value, doc: Option<&Doc<'_>>) -> bool {
        !value.is_null() && with_doc(value, doc, |doc| says_nothing(self.graph, id, doc)).unwrap_or_default()
    }

    fn is_taken(&self, id: NodeId, value: &Value, doc: Option<&Doc<'_>>, root: bool) -> bool {
        let found = with_doc(value, doc, |doc| inspect(self.graph, id, doc, root));
        found.is_some_and(|found| found.count == 0 && !found.coerced)
    }

    fn object(&self, object: &ObjectSpec, id: NodeId, value: &mut Value, doc: Option<&Doc<'_>>, root: bool) {
        if !root && self.only_field(object, id, value, doc) {
            return;
        }
        let doc = doc.filter(|_| !decode_object(value));
        let Value::Object(map) = value else { return };
        let old = std::mem::take(map);
        let is_free =
            |p: &&Prop| !old.contains_key(&p.name) && !p.aliases.iter().any(|alias| old.contains_key(alias));
        let free: Vec<bool> = object.props.iter().map(|prop| is_free(&prop)).collect();
        *map = self.renamed(object, &old, doc, &free);
    }

    fn renamed(
        &self,
        object: &ObjectSpec,
        old: &Map<String, Value>,
        doc: Option<&Doc<'_>>,
        free: &[bool],
    ) -> Map<String, Value> {
        let (mut map, mut moved) = (Map::new(), Vec::new());
        let meant = self.meant(object, old, doc);
        for (key, value) in old {
            let doc = doc.and_then(|doc| doc.entry(key));
            let (mut key, mut value) = (key.as_str(), value.clone());
            if object.child(key, 0).is_none() {
                let is_free = |index: usize| free.get(index).is_some_and(|free| *free);
                let near = near_names(key, object.names(is_free));
                let is_path = key.contains(['.', '/']);
                let home = self.graph.home(object, key).filter(|_| near.is_empty() || is_path);
                match (meant.filter(|(own, _)| *own == key), home, &near[..]) {
                    (Some((_, name)), ..) => key = name,
                    (None, Some((Some(home), name)), _) => {
                        moved.push((home, name, value));
                        continue;
                    }
                    (None, Some((None, name)), _) if !old.contains_key(name) && !map.contains_key(name) => {
                        key = name;
                    }
                    (None, None, [only]) if !map.contains_key(*only) => key = only,
                    _ => {}
                }
            }
            if let Some(child) = object.child(key, 0) {
                let (Child::Prop(_, id) | Child::Entry(id)) = child;
                let absent = matches!(child, Child::Prop(i, _) if object.props[i].null_absent);
                if value.is_null() && absent {
                    continue;
                }
                let is_optional = matches!(child, Child::Prop(i, _) if !object.props[i].required);
                if is_optional && self.is_nothing(id, &value, doc) && !self.is_taken(id, &value, doc, false) {
                    continue;
                }
                self.value(id, &mut value, doc, false);
            }
            map.insert(key.into(), value);
        }
        for (home, name, value) in moved {
            if let Some(map) = map.entry(home).or_insert_with(|| Value::Object(Map::new())).as_object_mut() {
                map.entry(name).or_insert(value);
            }
            if let (Some(Child::Prop(_, id)), Some(value)) = (object.child(home, 0), map.get_mut(home)) {
                self.value(id, value, None, false);
            }
        }
        map
    }

    /// The only unknown key, with the only required parameter that is missing, if the value fits it.
    fn meant<'o>(
        &self,
        object: &'o ObjectSpec,
        old: &'o Map<String, Value>,
        doc: Option<&Doc<'_>>,
    ) -> Option<(&'o str, &'o str)> {
        let mut unknown = old.iter().filter(|(key, _)| object.child(key, 0).is_none());
        let is_missing = |p: &&Prop| {
            p.required && !old.contains_key(&p.name) && !p.aliases.iter().any(|a| old.contains_key(a))
        };
        let mut missing = object.props.iter().filter(is_missing);
        let (Some((key, value)), None) = (unknown.next(), unknown.next()) else { return None };
        let (Some(prop), None) = (missing.next(), missing.next()) else { return None };
        let takes_anything = matches!(self.graph.kind(prop.node), Kind::Any);
        let is_free = |index: usize| {
            let other = object.props.get(index).map(|other| other.name.as_str());
            other.is_some_and(|other| other != prop.name && !old.contains_key(other))
        };
        if has_close_name(key, object.names(is_free)) {
            return None;
        }
        let doc = doc.and_then(|doc| doc.entry(key));
        let fits = || with_doc(value, doc, |doc| inspect(self.graph, prop.node, doc, false).count == 0);
        (!takes_anything && fits() == Some(true)).then_some((key.as_str(), prop.name.as_str()))
    }

    fn array(&self, id: NodeId, value: &mut Value, doc: Option<&Doc<'_>>) {
        let Kind::Array(array) = self.graph.kind(id) else { return };
        let doc = doc.filter(|_| value.is_array());
        if let Value::String(text) = &*value
            && let Ok(inner @ Value::Array(_)) = serde_json::from_str(text)
        {
            *value = inner;
        }
        if let (Value::Object(map), Some(item)) = (&mut *value, array.items)
            && array.is_list()
            && has_numbered_keys(map.keys().map(String::as_str))
            && !self.is_taken(item, &map.clone().into(), None, false)
        {
            *value = std::mem::take(map).into_iter().map(|(_, item)| item).collect();
        }
        // "a, b" may be a list: not ours to decide.
        let may_be_list = value.as_str().is_some_and(|s| s.contains([',', '[', '\n']));
        // Nor how deep it belongs in a list of lists, which may have no end.
        if array.is_list()
            && !array.item(0).is_some_and(|item| {
                self.is_array(item)
                    || only_entry(value).is_some_and(|(key, _)| self.graph.takes_alone(item, key))
            })
            && !value.is_array()
            && !value.is_null()
            && !may_be_list
        {
            *value = Value::Array(vec![value.take()]);
        }
        let Value::Array(items) = value else { return };
        for (i, item) in items.iter_mut().enumerate() {
            let Some(id) = array.item(i) else { break };
            match (self.graph.kind(id), &*item) {
                (Kind::Str(spec), Value::Number(n)) if spec.format.is_none() && array.is_list() => {
                    *item = n.to_string().into();
                }
                _ => self.value(id, item, doc.and_then(|doc| doc.item(i)), false),
            }
        }
    }

    fn is_array(&self, id: NodeId) -> bool {
        match self.graph.kind(self.graph.unchecked(id)) {
            Kind::Array(_) => true,
            Kind::Nullable(inner) => matches!(self.graph.kind(self.graph.unchecked(*inner)), Kind::Array(_)),
            _ => false,
        }
    }

    /// `{"add": {…}}` for `{"kind": "add", …}`, and `{"add": 5}` for `{"kind": "add", "count": 5}`.
    fn variant_as_key(&self, tag: &str, variants: &[(String, NodeId)], map: &mut Map<String, Value>) {
        let mut entries = map.iter();
        let (Some((key, inner)), None) = (entries.next(), entries.next()) else { return };
        let Some((_, variant)) = variants.iter().find(|(name, _)| name == key) else { return };
        if self.graph.has_key(variants, key) {
            return;
        }
        let named = std::iter::once((tag.to_owned(), Value::from(key.as_str())));
        match inner {
            Value::Object(inner) if !inner.contains_key(tag) => {
                *map = named.chain(inner.iter().map(|(key, value)| (key.clone(), value.clone()))).collect();
            }
            Value::Object(_) => {}
            inner => {
                let Kind::Object(object) = self.graph.kind(self.graph.unchecked(*variant)) else { return };
                let mut required = object.props.iter().filter(|prop| prop.required && prop.name != tag);
                if let (Some(only), None) = (required.next(), required.next()) {
                    *map = named.chain([(only.name.clone(), inner.clone())]).collect();
                }
            }
        }
    }

    fn tagged(
        &self,
        tag: &str,
        variants: &[(String, NodeId)],
        known: &VariantNames,
        rules: Rules,
        value: &mut Value,
        doc: Option<&Doc<'_>>,
    ) {
        let doc = doc.filter(|_| value.get(tag).is_some());
        if let Value::String(text) = &*value
            && variants.iter().any(|(name, _)| name == text)
        {
            *value = Value::Object(Map::from_iter([(tag.to_owned(), value.take())]));
        }
        decode_object(value);
        if let Value::Object(map) = value
            && !map.contains_key(tag)
        {
            self.variant_as_key(tag, variants, map);
        }
        if let Value::Object(map) = value
            && !map.contains_key(tag)
        {
            let near =
                |key: &&String| !self.graph.has_key(variants, key) && !did_you_mean(key, [tag]).is_empty();
            let other = || {
                self.graph.other_tag(variants, map.iter().map(|(key, value)| (key.as_str(), value.as_str())))
            };
            let misspelled = map.keys().find(near).map(String::as_str).or_else(other);
            let Some(misspelled) = misspelled.map(str::to_owned) else { return };
            let renamed =
                |(key, value)| if key == misspelled { (tag.to_owned(), value) } else { (key, value) };
            *map = std::mem::take(map).into_iter().map(renamed).collect();
        }
        let Some(sent) = value.get(tag).and_then(Value::as_str) else { return };
        let sent = sent.to_owned();
        let picked = known.pick(variants, &sent, rules).or_else(|| {
            match did_you_mean(&sent, variants.iter().map(|v| v.0.as_str()))[..] {
                [only] => known.pick(variants, only, rules),
                _ => None,
            }
        });
        if let Some((name, variant)) = picked {
            let doc = doc.filter(|_| name.word == sent);
            value[tag] = name.word.into();
            self.value(variant, value, doc, false);
        }
    }
}

/// Looks at a value as it was sent, or as it would be sent now.
fn with_doc<T>(value: &Value, doc: Option<&Doc<'_>>, look: impl FnOnce(&Doc<'_>) -> T) -> Option<T> {
    match doc {
        Some(doc) => Some(look(doc)),
        None => Some(look(&Document::parse(&value.to_string()).ok()?.root)),
    }
}

/// Decodes an object that was sent as text. Returns whether it was one.
fn decode_object(value: &mut Value) -> bool {
    if let Value::String(text) = &*value
        && let Ok(inner @ Value::Object(_)) = serde_json::from_str(text)
    {
        *value = inner;
        return true;
    }
    false
}

/// Returns the only entry of an object.
fn only_entry(value: &Value) -> Option<(&String, &Value)> {
    let mut entries = value.as_object()?.iter();
    entries.next().filter(|_| entries.next().is_none())
}
