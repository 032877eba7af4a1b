//! Finds arguments inside wrappers: an object such as `{"name": …, "arguments": {…}}`, a list with one object, or JSON in a text. In an
//! object, exactly one key holds the inner arguments (see [`content`]). Parameters next to this key are added to the inner arguments.
//! Other keys may only hold texts or nothing.

use crate::args::document::{Doc, Shape};
use crate::args::issue::{Issue, IssueCode};
use crate::args::judge::{RefusedArguments, diagnose};
use crate::args::plan::{Graph, NodeKind};
use crate::args::suggest::did_you_mean;
use crate::args::text::{MAX_VALUE, cut, push_segment};
use serde_json::{Map, Value};

pub(super) const MAX_WRAPPERS: usize = 5;
const MAX_DECODED: usize = 4;

/// Arguments without their outermost wrapper.
pub(super) struct Unwrapped {
    pub(super) call: Value,
    /// The JSON pointer from the wrapper to the inner arguments.
    at: String,
    is_text: bool,
    /// The keys of the inner arguments. `call` may also have parameters that were next to the inner arguments.
    keys: Vec<String>,
}

/// Returns whether [`unwrapped`] or [`several`] may find a wrapper. Most calls have no key that could hold wrapped arguments.
pub(super) fn may_be_wrapped(graph: &Graph, sent: &Doc<'_>) -> bool {
    let Shape::Object(entries) = &sent.shape else { return true };
    entries.iter().any(|(key, doc)| match &doc.shape {
        Shape::Object(_) | Shape::Array(_) => !is_parameter(graph, key),
        Shape::Text(text) => text.trim_start().starts_with(['{', '"']) && !is_parameter(graph, key),
        _ => false,
    })
}

/// Returns the arguments without their outermost wrapper, if there is one. The caller checks whether the result fits the tool.
pub(super) fn unwrapped(graph: &Graph, tool: &str, sent: &Value) -> Option<Unwrapped> {
    let alone = |call: Value, at: &str| {
        let keys = call.as_object()?.keys().cloned().collect();
        Some(Unwrapped { call, at: at.to_owned(), is_text: sent.is_string(), keys })
    };
    match sent {
        Value::Object(entries) => around_entries(graph, tool, entries),
        Value::Array(items) => match items.as_slice() {
            [only @ Value::Object(_)] => alone(only.clone(), "/0"),
            _ => None,
        },
        _ => alone(decoded(sent)?, ""),
    }
}

fn around_entries(graph: &Graph, tool: &str, entries: &Map<String, Value>) -> Option<Unwrapped> {
    let others = || entries.iter().filter(|(key, _)| !is_parameter(graph, key));
    let held =
        others().filter(|(_, value)| entries.len() == 1 || !is_without_data(value) || value.is_string());
    let mut held = held.filter_map(|(key, value)| Some((key, content(graph, tool, value)?)));
    let (Some((holder, (inner, below))), None) = (held.next(), held.next()) else { return None };
    let free = free_names(graph, entries);
    let is_near = |key: &str| !did_you_mean(key, free.iter().copied()).is_empty();
    let names_tool = |value: &Value| value.as_str().is_some_and(|text| text.ends_with(tool));
    let is_label = |(key, value): (&String, &Value)| {
        key == holder || names_tool(value) || is_without_data(value) && !is_near(key)
    };
    if is_near(holder) || !others().all(is_label) {
        return None;
    }
    let Value::Object(mut call) = inner else { return None };
    if call.is_empty() && graph.root_object().is_none_or(|object| !object.props.is_empty()) {
        return None;
    }
    let keys = call.keys().cloned().collect();
    for (key, value) in entries.iter().filter(|(key, _)| is_parameter(graph, key)) {
        if !call.contains_key(key) {
            call.insert(key.clone(), value.clone());
        } else if !names_tool(value) {
            return None;
        }
    }
    let mut at = String::new();
    push_segment(&mut at, holder);
    let is_text = entries.get(holder).is_some_and(Value::is_string);
    Some(Unwrapped { call: call.into(), at: at + below, is_text, keys })
}

/// Returns the object in `value`, and its JSON pointer. `value` is an object, JSON text, a list with one wrapper, or a list of names and
/// values.
fn content(graph: &Graph, tool: &str, value: &Value) -> Option<(Value, &'static str)> {
    match value {
        Value::Object(_) => Some((value.clone(), "")),
        Value::String(_) => decoded(value).map(|object| (object, "")),
        Value::Array(items) => match items.as_slice() {
            [Value::Object(only)] if around_entries(graph, tool, only).is_some() => {
                Some((Value::Object(only.clone()), "/0"))
            }
            items => pairs(graph, items).map(|call| (call.into(), "")),
        },
        _ => None,
    }
}

/// Returns the arguments in a list such as `[{"name": "city", "value": "Rome"}]`. In each item, exactly one of the two values must be the
/// name of a parameter.
fn pairs(graph: &Graph, items: &[Value]) -> Option<Map<String, Value>> {
    let mut call = Map::new();
    for item in items {
        let mut entries = item.as_object()?.values();
        let (Some(one), Some(two), None) = (entries.next(), entries.next(), entries.next()) else {
            return None;
        };
        let is_name = |value: &Value| value.as_str().is_some_and(|name| is_parameter(graph, name));
        let (name, value) = match (is_name(one), is_name(two)) {
            (true, false) => (one, two),
            (false, true) => (two, one),
            _ => return None,
        };
        if call.insert(name.as_str()?.to_owned(), value.clone()).is_some() {
            return None;
        }
    }
    (!call.is_empty()).then_some(call)
}

/// Returns whether a value next to the arguments can be ignored, because it probably describes the call.
fn is_without_data(value: &Value) -> bool {
    match value {
        Value::Null | Value::String(_) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Returns an object, or the object in a text that was encoded as JSON up to [`MAX_DECODED`] times; `None` for any other value.
fn decoded(value: &Value) -> Option<Value> {
    let mut value = value.clone();
    for _ in 0..MAX_DECODED {
        match &value {
            Value::Object(_) => return Some(value),
            Value::String(text) => value = serde_json::from_str(text).ok()?,
            _ => return None,
        }
    }
    value.is_object().then_some(value)
}

fn is_parameter(graph: &Graph, key: &str) -> bool {
    match graph.kind(graph.unchecked(graph.root)) {
        NodeKind::Object(object) => object.child(key, 0).is_some(),
        NodeKind::Tagged { tag, variants, .. } => key == tag || graph.has_key(variants, key),
        _ => true,
    }
}

/// Returns the names of the parameters that were not sent. For a tagged enum, returns only the tag.
fn free_names<'g>(graph: &'g Graph, entries: &Map<String, Value>) -> Vec<&'g str> {
    match graph.kind(graph.unchecked(graph.root)) {
        NodeKind::Object(object) => {
            let names = object.props.iter().map(|prop| prop.name.as_str());
            names.filter(|name| !entries.contains_key(*name)).collect()
        }
        NodeKind::Tagged { tag, .. } => vec![tag.as_str()],
        _ => Vec::new(),
    }
}

/// Returns the issues that replace `issues` if the arguments are inside wrappers, such as `{"args": {…}}`. These issues are advice about
/// the wrappers, unknown keys next to a wrapper, and issues of the inner arguments. Also returns the number of all mistakes, which may be
/// larger than the number of returned issues.
pub(crate) fn issues_inside(
    graph: &Graph,
    tool: &str,
    sent: &Doc<'_>,
    issues: &[Issue],
) -> Option<(Vec<Issue>, usize)> {
    if !may_be_wrapped(graph, sent) || sent.repeated_key().is_some() {
        return None;
    }
    let sent: Value = serde_json::from_str(sent.raw).ok()?;
    let unknown = |issue: &&Issue| issue.code == IssueCode::Unknown && issue.is_at_top();
    let mut told: Vec<Issue> = issues.iter().filter(unknown).cloned().collect();
    if let Some((at, calls)) = several(graph, tool, &sent) {
        let issue = told.iter_mut().find(|issue| issue.path == at)?;
        issue.problem =
            format!("unknown parameter: send {calls} calls, each with what is inside one of these");
        let is_beside = |issue: &&Issue| {
            !issue.is_at_top() || !matches!(issue.code, IssueCode::Unknown | IssueCode::Missing)
        };
        told.extend(issues.iter().filter(is_beside).cloned());
        let count = told.len();
        return Some((told, count));
    }
    let (mut at, mut keys, mut call, mut is_text) = (String::new(), Vec::new(), sent, false);
    for _ in 0..MAX_WRAPPERS {
        let Some(next) = unwrapped(graph, tool, &call) else { break };
        // `at` ends at a JSON text, because a pointer cannot lead into it.
        at += if is_text { "" } else { &next.at };
        is_text |= next.is_text;
        (keys, call) = (next.keys, next.call);
    }
    if !keys.iter().any(|key| is_parameter(graph, key)) {
        return None;
    }
    let issue = told.iter_mut().find(|issue| {
        at.strip_prefix(&issue.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })?;
    issue.problem = if issue.path == at {
        "unknown parameter: send what is inside, without anything around it".into()
    } else {
        format!(
            "unknown parameter: send what is inside `{}`, without anything around it",
            cut(&at, MAX_VALUE)
        )
    };
    issue.suggestions.clear();
    let mut count = told.len();
    if let Err(RefusedArguments { mut issues, count: inner, wrapped, .. }) =
        diagnose(graph, &call.to_string())
    {
        wrapped.move_back(&mut issues);
        count += inner;
        told.extend(issues.into_iter().map(|mut issue| {
            let key = issue.path.split('/').nth(1).unwrap_or_default().replace("~1", "/").replace("~0", "~");
            // Issues of missing parameters and of the inner arguments are moved to `at` or below it. Issues of keys next to the wrapper
            // keep their path.
            let is_parameter_missing = issue.code == IssueCode::Missing && issue.is_at_top();
            if !is_parameter_missing && !keys.contains(&key) {
                return issue;
            }
            if is_text {
                issue.problem.insert_str(0, &format!("{} in this text: ", cut(&issue.path, MAX_VALUE)));
                issue.path.clone_from(&at);
            } else {
                issue.path.insert_str(0, &at);
            }
            issue
        }));
    }
    Some((told, count))
}

/// Returns the pointer to a list of several calls, and the number of calls. Returns `None` if there is no such list, or more than one.
fn several(graph: &Graph, tool: &str, sent: &Value) -> Option<(String, usize)> {
    let is_call = |item: &Value| match item {
        Value::Object(entries) => {
            entries.keys().any(|key| is_parameter(graph, key))
                || around_entries(graph, tool, entries).is_some()
        }
        _ => false,
    };
    let mut lists = sent.as_object()?.iter().filter_map(|(key, value)| {
        let items = value.as_array().filter(|items| items.len() > 1 && items.iter().all(is_call))?;
        (!is_parameter(graph, key)).then_some((key, items.len()))
    });
    let (Some((key, count)), None) = (lists.next(), lists.next()) else { return None };
    let mut at = String::new();
    push_segment(&mut at, key);
    Some((at, count))
}
