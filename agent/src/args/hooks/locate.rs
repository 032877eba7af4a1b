//! Turns the findings of `#[arg(validate = …)]` functions into issues: finds the sent value that each finding is about.

use super::LocatedFinding;
use super::findings::FindingStep;
use crate::args::issue::{Issue, IssueCode};
use crate::args::plan::{Child, Graph, NodeId, NodeKind, ObjectSpec, Prop, secret_texts};
use crate::args::text::{push_index, push_segment, shown};
use serde_json::Value;
use std::{borrow::Cow, collections::HashMap};

/// Number of characters in a part of a secret. A message must not contain any part. A secret with fewer characters is a single part.
const MAX_SHARED: usize = 3;
/// The text that replaces the message of a check if the message might reveal a secret.
const REFUSED: &str = "refused by the tool's own check";

/// Adds findings of `#[arg(validate = …)]` functions (`placed`) and errors of `Deserialize` impls (`refused`) to `issues`, in the order of
/// the schema. A finding about a value at a path in `touched` is left out, because the function saw a replacement of the sent value.
pub(crate) fn report(
    graph: &Graph,
    sent: &str,
    placed: Vec<LocatedFinding>,
    touched: &[String],
    refused: Vec<Issue>,
    issues: &mut Vec<Issue>,
) {
    if placed.is_empty() && refused.is_empty() {
        return;
    }
    let sent: Value = serde_json::from_str(sent).unwrap_or_default();
    let mut orders = Orders { graph, sent: &sent, positions: HashMap::new() };
    let mut found: Vec<(Vec<usize>, Issue)> = placed
        .into_iter()
        .filter_map(|placed| {
            let seen = placed.found.whole.then(|| placed.path.clone());
            let issue = issue(graph, &sent, placed);
            let seen = seen.as_ref().unwrap_or(&issue.path);
            let is_sent = !touched.iter().any(|at| is_within(at, seen) || is_within(seen, at));
            is_sent.then(|| (orders.of(&issue.path, true), issue))
        })
        .collect();
    found.extend(refused.into_iter().map(|issue| (orders.of(&issue.path, false), issue)));
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    if issues.is_empty() {
        issues.extend(found.into_iter().map(|(_, issue)| issue));
        return;
    }
    let mut walked = std::mem::take(issues);
    // An issue from a `Deserialize` impl or a validation function replaces the format issue at the same path, because its message is more
    // precise. It takes over the code and the expected value of the format issue.
    let mut said: HashMap<String, &mut Issue> =
        found.iter_mut().map(|(_, own)| (own.path.clone(), own)).collect();
    walked.retain(|issue| {
        let same = said.get_mut(&issue.path).filter(|_| issue.code == IssueCode::Format);
        let Some(own) = same else { return true };
        (own.code, own.expected) = (issue.code, issue.expected.clone());
        false
    });
    let mut found = found.into_iter().peekable();
    for issue in walked {
        let place = orders.of(&issue.path, false);
        while let Some((_, earlier)) = found.next_if(|(order, _)| *order < place) {
            issues.push(earlier);
        }
        issues.push(issue);
    }
    issues.extend(found.map(|(_, issue)| issue));
}

pub(crate) fn is_within(at: &str, outer: &str) -> bool {
    at.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn issue(graph: &Graph, sent: &Value, placed: LocatedFinding) -> Issue {
    let LocatedFinding { path, node: id, secret, found } = placed;
    let here = sent.pointer(&path);
    let mut place = LocatedNode { graph, id, sent: here, path, secret };
    let known = found.steps.iter().take_while(|step| place.step(step)).count();
    let (saw, seen) = if found.whole { (id, here) } else { (place.id, place.sent) };
    let names_a_field = known > 0 && known == found.steps.len() && !graph.node(place.id).holds_secret;
    let secret = place.secret
        || graph.node(saw).holds_secret && may_tell_secret(graph, seen, names_a_field, &found.in_words(0));
    // The schema does not know the remaining steps, so the message names them.
    let problem = if secret { REFUSED.to_owned() } else { found.in_words(known) };
    let mut issue = Issue::new(place.path, IssueCode::Value, problem);
    let scalar =
        place.sent.filter(|value| !matches!(value, Value::Array(_) | Value::Object(_) | Value::Null));
    issue.received = scalar.filter(|_| !secret).map(shown);
    issue
}

/// Returns whether the message of a validation function may reveal a secret of the checked value. Returns `true` if the value was not
/// sent. If `names_a_field` is set, returns `true` only for a message that contains a part of a secret. Otherwise, returns `true` for any
/// message about a value with secrets.
fn may_tell_secret(graph: &Graph, seen: Option<&Value>, names_a_field: bool, words: &str) -> bool {
    let Some(seen) = seen else { return true };
    let secrets = secret_texts(graph, seen);
    let words = words.to_lowercase();
    !secrets.is_empty() && (!names_a_field || secrets.iter().any(|secret| shares_part(&words, secret)))
}

fn shares_part(words: &str, secret: &str) -> bool {
    let letters: Vec<char> = secret.trim().to_lowercase().chars().collect();
    let parts = letters.windows(letters.len().clamp(1, MAX_SHARED));
    !letters.is_empty() && parts.map(|part| part.iter().collect::<String>()).any(|part| words.contains(&part))
}

struct LocatedNode<'a> {
    graph: &'a Graph,
    id: NodeId,
    sent: Option<&'a Value>,
    path: String,
    secret: bool,
}

impl<'a> LocatedNode<'a> {
    /// Moves to the field or item that `step` names. A step without a name moves into the variant of an enum. Returns `false` on failure.
    fn step(&mut self, step: &FindingStep) -> bool {
        self.enter(0);
        match step.name() {
            None => self.payload(),
            Some(name) => self.named(name, true),
        }
    }

    /// Moves from a nullable node or a tagged enum to the schema node within, repeatedly. The tag of the sent value selects the variant.
    fn enter(&mut self, depth: usize) {
        let node = self.graph.node(self.id);
        let next = match &node.kind {
            NodeKind::External(_) | NodeKind::Checked(_) => None,
            _ => node.referred(|tag| self.sent?.get(tag)?.as_str().map(Cow::Borrowed)),
        };
        if let Some(next) = next.filter(|_| depth < 64) {
            self.id = next;
            self.enter(depth + 1);
        }
    }

    fn payload(&mut self) -> bool {
        let NodeKind::External(external) = self.graph.kind(self.id) else { return false };
        let entry = self.sent.and_then(Value::as_object).and_then(|object| object.iter().next());
        let Some((key, below)) = entry else { return false };
        let Some(variant) = external.variant(key) else { return false };
        push_segment(&mut self.path, key);
        (self.id, self.sent) = (variant.node, Some(below));
        true
    }

    /// Moves to the field, entry or item called `name`. In a union, the first alternative with this name counts. With `in_rust`, `name` may
    /// also be the name of a field in Rust. Returns `false` if nothing has this name.
    fn named(&mut self, name: &str, in_rust: bool) -> bool {
        let graph = self.graph;
        match graph.kind(self.id) {
            NodeKind::Object(object) => self.key(object, name, in_rust),
            NodeKind::Array(array) => {
                let Some(index) = name.parse::<usize>().ok() else { return false };
                let Some(item) = array.item(index) else { return false };
                push_index(&mut self.path, index);
                (self.id, self.sent) = (item, self.sent.and_then(|sent| sent.get(index)));
                true
            }
            NodeKind::Union { branches, .. } => branches.iter().any(|branch| {
                let mut place = LocatedNode { id: *branch, path: self.path.clone(), ..*self };
                place.enter(0);
                let found =
                    !matches!(graph.kind(place.id), NodeKind::Union { .. }) && place.named(name, in_rust);
                if found {
                    *self = place;
                }
                found
            }),
            _ => false,
        }
    }

    fn key(&mut self, object: &'a ObjectSpec, name: &str, in_rust: bool) -> bool {
        // A validation function usually names fields as they are declared in Rust, so such a name takes precedence.
        let by_field = object.props.iter().find(|prop| in_rust && prop.field.as_deref() == Some(name));
        let prop = by_field.or_else(|| object.find(name, 0).and_then(|index| object.props.get(index)));
        if let Some(prop) = prop {
            let key = self.sent_as(prop);
            push_segment(&mut self.path, key);
            self.secret |= prop.secret;
            (self.id, self.sent) = (prop.node, self.sent.and_then(|sent| sent.get(key)));
            return true;
        }
        match (object.child(name, 0), self.sent.and_then(|sent| sent.get(name))) {
            (Some(Child::Entry(id)), Some(value)) => {
                push_segment(&mut self.path, name);
                (self.id, self.sent) = (id, Some(value));
                true
            }
            _ => false,
        }
    }

    /// Returns the name or alias under which a parameter was sent, or its name if it was not sent.
    fn sent_as(&self, prop: &'a Prop) -> &'a str {
        let names = std::iter::once(&prop.name).chain(&prop.aliases);
        let sent =
            names.into_iter().find(|name| self.sent.is_some_and(|sent| sent.get(name.as_str()).is_some()));
        sent.unwrap_or(&prop.name)
    }
}

struct Orders<'a> {
    graph: &'a Graph,
    sent: &'a Value,
    /// The position of each key of an object, by the path of the object.
    positions: HashMap<String, HashMap<&'a str, usize>>,
}

impl<'a> Orders<'a> {
    /// Returns a sort key for an issue. Issues of an object itself come first, then unknown keys, then parameters as declared, then map
    /// entries as sent. `checked` means that the issue is a finding of a validation function. Such an issue comes after all other issues
    /// at or below its path.
    fn of(&mut self, pointer: &str, checked: bool) -> Vec<usize> {
        let graph = self.graph;
        let mut out = Vec::new();
        let mut place =
            LocatedNode { graph, id: graph.root, sent: Some(self.sent), path: String::new(), secret: false };
        for segment in pointer.split('/').skip(1) {
            let key = segment.replace("~1", "/").replace("~0", "~");
            let position = self.position(&place.path, place.sent, &key);
            place.enter(0);
            let group = match graph.kind(place.id) {
                NodeKind::Object(object) => match object.child(&key, 0) {
                    None => [0, position],
                    Some(Child::Prop(index, _)) => [1, index],
                    Some(Child::Entry(_)) => [2, position],
                },
                _ => [1, key.parse().unwrap_or(position)],
            };
            out.extend(group);
            let known = match graph.kind(place.id) {
                NodeKind::External(_) => place.payload(),
                _ => place.named(&key, false),
            };
            if !known {
                place.sent = None;
                place.id = graph.any;
            }
        }
        if checked {
            out.push(usize::MAX);
        }
        out
    }

    fn position(&mut self, pointer: &str, object: Option<&'a Value>, key: &str) -> usize {
        let Some(object) = object.and_then(Value::as_object) else { return usize::MAX - 1 };
        if !self.positions.contains_key(pointer) {
            let keys = object.keys().enumerate().map(|(at, key)| (key.as_str(), at)).collect();
            self.positions.insert(pointer.to_owned(), keys);
        }
        let position = self.positions.get(pointer).and_then(|keys| keys.get(key));
        position.copied().unwrap_or(usize::MAX - 1)
    }
}
