//! The corrected call: the arguments with every mistake fixed in the only possible way.

use crate::args::diagnose::{Document, Refusal, diagnose, fits, inspect, is_filler};
use crate::args::issue::{Issue, IssueCode};
use crate::args::plan::{Child, Graph, Kind, NodeId, ObjectSpec, Prop};
use crate::args::policy::CoercionPolicy;
use crate::args::scalar::{Num, bool_from_text, int_from_f64, int_from_text};
use crate::args::suggest::did_you_mean;
use serde_json::{Map, Value};

const MAX_CALL: usize = 500;
/// Longer arguments would still be too long after corrections.
const MAX_SENT: usize = 4 * MAX_CALL;
const MAX_MENDS: usize = 50;
/// So many wrappers in each other are looked into.
const MAX_WRAPPERS: usize = 3;

/// Returns the corrected call, if there is exactly one and it is valid.
pub(crate) fn corrected(graph: &Graph, sent: &str, issues: &[Issue]) -> Option<String> {
    mended(graph, sent, issues, MAX_WRAPPERS)
}

fn mended(graph: &Graph, sent: &str, issues: &[Issue], depth: usize) -> Option<String> {
    if sent.len() > MAX_SENT || issues.len() > MAX_MENDS || graph.has_secrets() {
        return None;
    }
    let has_wrapper = issues.iter().any(|issue| is_wrapper(graph, issue));
    let is_mendable = issues.iter().all(|issue| is_mendable(issue, issues));
    // Below a key that is no parameter nobody has looked for keys that are there twice.
    if !has_wrapper && !is_mendable || Document::parse(sent).ok()?.root.repeated_key().is_some() {
        return None;
    }
    let sent: Value = serde_json::from_str(sent).ok()?;
    if has_wrapper && let Some(call) = unwrapped(graph, &sent, depth) {
        return Some(call);
    }
    if !is_mendable {
        return None;
    }
    let mut mended = sent.clone();
    Mend { graph }.value(graph.root, &mut mended, true);
    if mended == sent {
        return None;
    }
    let text = mended.to_string();
    (text.chars().count() <= MAX_CALL && fits(graph, graph.root, &text, true)).then_some(text)
}

/// Can it be that the arguments stand in an object of their own, as in `{"args": {…}}`? What is like a parameter is none of
/// these.
fn is_wrapper(graph: &Graph, issue: &Issue) -> bool {
    let is_tag = || matches!(graph.kind(graph.unchecked(graph.root)), Kind::Tagged { .. });
    let at_root = issue.path.rfind('/') == Some(0);
    at_root
        && issue.suggestions.is_empty()
        && (issue.code == IssueCode::Unknown || issue.code == IssueCode::Missing && is_tag())
}

/// Keys that stand beside the arguments where a whole call was sent as its own arguments.
const BESIDE: [&str; 8] = ["name", "tool", "tool_name", "function", "type", "id", "call_id", "tool_call_id"];

/// Returns the call in a wrapper: what stands under the only key that is no parameter, as an object or as text of one; names and
/// ids of a call may stand beside it. If what it holds has mistakes, they are fixed, too.
fn unwrapped(graph: &Graph, sent: &Value, depth: usize) -> Option<String> {
    let is_parameter = |key: &str| match graph.kind(graph.unchecked(graph.root)) {
        Kind::Object(object) => object.child(key, 0).is_some(),
        Kind::Tagged { tag, variants, .. } => key == tag || graph.has_key(variants, key),
        _ => true,
    };
    let object = |value: &Value| match value {
        Value::Object(_) => Some(value.clone()),
        Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    };
    let entries = sent.as_object()?;
    let mut held = entries.iter().filter_map(|(key, value)| Some((key, object(value)?)));
    let (Some((key, inner)), None) = (held.next(), held.next()) else { return None };
    let beside = |own: &String| own == key || BESIDE.contains(&own.as_str());
    if depth == 0 || is_parameter(key) || !entries.keys().all(beside) || inner.as_object()?.is_empty() {
        return None;
    }
    let text = inner.to_string();
    match diagnose(graph, &text) {
        Ok(_) => (text.chars().count() <= MAX_CALL).then_some(text),
        Err(Refusal { issues, sent, .. }) => mended(graph, sent.as_deref()?, &issues, depth - 1),
    }
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
    /// A value that is accepted unchanged stays; everything else is rewritten into the form of the schema.
    fn value(&self, id: NodeId, value: &mut Value, root: bool) {
        if self.is_taken(id, value, root) {
            return;
        }
        let lenient = CoercionPolicy::lenient().rules();
        match (self.graph.kind(id), &mut *value) {
            (Kind::Nullable(inner), _) => self.value(*inner, value, false),
            (Kind::Checked(checked), _) => self.value(checked.base, value, root),
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
                if let [only] = did_you_mean(text, words.iter().map(String::as_str))[..] {
                    *value = only.into();
                }
            }
            (Kind::Object(object), _) => self.object(object, value),
            (Kind::Array(_), _) => self.array(id, value),
            (Kind::Tagged { tag, variants, .. }, _) => self.tagged(tag, variants, value),
            (Kind::External(external), _) => {
                decode_object(value);
                if value.is_object() {
                    self.value(external.object, value, false);
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
                    let mut own = serde_json::from_str(value.as_str()?).ok()?;
                    self.value(*id, &mut own, false);
                    fits(self.graph, *id, &own.to_string(), false).then_some(own)
                });
                if let Some(mended) = mended {
                    *value = mended;
                }
            }
            _ => {}
        }
    }

    fn is_taken(&self, id: NodeId, value: &Value, root: bool) -> bool {
        let text = value.to_string();
        Document::parse(&text).is_ok_and(|document| {
            let found = inspect(self.graph, id, &document.root, root);
            found.count == 0 && !found.coerced
        })
    }

    fn object(&self, object: &ObjectSpec, value: &mut Value) {
        decode_object(value);
        let Value::Object(map) = value else { return };
        let old = std::mem::take(map);
        let is_free =
            |p: &&Prop| !old.contains_key(&p.name) && !p.aliases.iter().any(|alias| old.contains_key(alias));
        let free: Vec<&str> = object.props.iter().filter(is_free).map(|p| p.name.as_str()).collect();
        *map = self.renamed(object, &old, &free);
    }

    fn renamed(&self, object: &ObjectSpec, old: &Map<String, Value>, free: &[&str]) -> Map<String, Value> {
        let mut map = Map::new();
        let meant = self.meant(object, old);
        for (key, value) in old {
            let (mut key, mut value) = (key.as_str(), value.clone());
            if object.child(key, 0).is_none()
                && let [only] = did_you_mean(key, free.iter().copied())[..]
                && !map.contains_key(only)
            {
                key = only;
            } else if let Some((_, name)) = meant.filter(|(own, _)| *own == key) {
                key = name;
            }
            if let Some(child) = object.child(key, 0) {
                let (Child::Prop(_, id) | Child::Entry(id)) = child;
                let absent = matches!(child, Child::Prop(i, _) if object.props[i].null_absent);
                if value.is_null() && absent {
                    continue;
                }
                let is_optional = matches!(child, Child::Prop(i, _) if !object.props[i].required);
                if is_optional && is_nothing(&value) && !self.is_taken(id, &value, false) {
                    continue;
                }
                self.value(id, &mut value, false);
            }
            map.insert(key.into(), value);
        }
        map
    }

    /// The only unknown key, with the only required parameter that is missing, if the value fits it.
    fn meant<'o>(&self, object: &'o ObjectSpec, old: &'o Map<String, Value>) -> Option<(&'o str, &'o str)> {
        let mut unknown = old.iter().filter(|(key, _)| object.child(key, 0).is_none());
        let is_missing = |p: &&Prop| {
            p.required && !old.contains_key(&p.name) && !p.aliases.iter().any(|a| old.contains_key(a))
        };
        let mut missing = object.props.iter().filter(is_missing);
        let (Some((key, value)), None) = (unknown.next(), unknown.next()) else { return None };
        let (Some(prop), None) = (missing.next(), missing.next()) else { return None };
        let takes_anything = matches!(self.graph.kind(prop.node), Kind::Any);
        (!takes_anything && fits(self.graph, prop.node, &value.to_string(), false))
            .then_some((key.as_str(), prop.name.as_str()))
    }

    fn array(&self, id: NodeId, value: &mut Value) {
        let Kind::Array(array) = self.graph.kind(id) else { return };
        if let Value::String(text) = &*value
            && let Ok(inner @ Value::Array(_)) = serde_json::from_str(text)
        {
            *value = inner;
        }
        // "a, b" may be a list: not ours to decide.
        let may_be_list = value.as_str().is_some_and(|s| s.contains([',', '[', '\n']));
        // Nor how deep it belongs in a list of lists, which may have no end.
        if array.is_list()
            && !array.item(0).is_some_and(|item| self.is_array(item))
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
                _ => self.value(id, item, false),
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

    /// `{"add": {…}}` for `{"kind": "add", …}`.
    fn variant_as_key(&self, tag: &str, variants: &[(String, NodeId)], map: &mut Map<String, Value>) {
        let mut entries = map.iter();
        let (Some((key, Value::Object(inner))), None) = (entries.next(), entries.next()) else { return };
        if variants.iter().any(|(name, _)| name == key)
            && !self.graph.has_key(variants, key)
            && !inner.contains_key(tag)
        {
            let told = std::iter::once((tag.to_owned(), Value::from(key.as_str())));
            *map = told.chain(inner.iter().map(|(key, value)| (key.clone(), value.clone()))).collect();
        }
    }

    fn tagged(&self, tag: &str, variants: &[(String, NodeId)], value: &mut Value) {
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
        let names = || variants.iter().map(|v| v.0.as_str());
        let name = match did_you_mean(sent, names())[..] {
            [only] if !names().any(|n| n == sent) => only.to_owned(),
            _ => sent.to_owned(),
        };
        if let Some((_, variant)) = variants.iter().find(|v| v.0 == name) {
            value[tag] = name.as_str().into();
            self.value(*variant, value, false);
        }
    }
}

/// Decodes an object that was sent as text.
fn decode_object(value: &mut Value) {
    if let Value::String(text) = &*value
        && let Ok(inner @ Value::Object(_)) = serde_json::from_str(text)
    {
        *value = inner;
    }
}

/// Whether a value is a filler for one that does not exist.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::String(text) => is_filler(text),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
