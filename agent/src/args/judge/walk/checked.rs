//! Assertions about a value after coercion, such as `not`, `if` and `contains`.

use super::Walk;
use crate::args::coercion::HIDDEN;
use crate::args::document::{Doc, Document, Shape};
use crate::args::issue::{Issue, IssueCode};
use crate::args::judge::outcome::WalkState;
use crate::args::plan::{CheckedSpec, Graph, NodeCheck, NodeId, NodeKind};
use crate::args::signature::signature;
use crate::args::text::{MAX_VALUE, cut, push_segment};
use serde_json::Value;

/// Maximum length, in characters, of the description of a schema or of a list of names in a message.
const MAX_WORDS: usize = 120;

impl<'w> Walk<'w, '_> {
    pub(super) fn checked(&mut self, id: NodeId, spec: &'w CheckedSpec, doc: &'w Doc<'_>) {
        // A node with checks needs three times as much stack, so it counts as three levels.
        let depth = self.shared.depth.get();
        self.shared.depth.set(depth + 2);
        self.pass(id, spec, doc);
        self.shared.depth.set(depth);
    }

    fn pass(&mut self, id: NodeId, spec: &'w CheckedSpec, doc: &'w Doc<'_>) {
        let before = std::mem::take(&mut self.found);
        let told = self.kept();
        self.check(spec.base, doc);
        let own = self.found;
        self.found = before.and(own);
        let graph = self.graph;
        let verdict = if own.count > 0 && own.non_schema_coercion {
            // A value with issues is not coerced, so its checks may fail without a reason. Only checks for the presence of keys stay
            // reliable, unless a null may count as an absent key.
            if doc.has_null_entry() {
                return;
            }
            let presence = spec.checks.iter().filter(|check| check.is_about_presence());
            CheckJudge { shared: self.shared, collect: self.out.is_some() }.all(presence, doc)
        } else if own.non_schema_coercion {
            let text = self.shared.arrived(spec.base, doc);
            let Some(text) = text.as_deref() else { return };
            let Ok(document) = Document::parse(text) else { return };
            let shared = self.shared.another(text);
            let verdict = CheckJudge { shared: &shared, collect: self.out.is_some() }
                .all(spec.checks.iter(), &document.root);
            self.shared.take_back(&shared);
            verdict
        } else {
            CheckJudge { shared: self.shared, collect: self.out.is_some() }.all(spec.checks.iter(), doc)
        };
        if own.count == 0 && verdict.count == 0 {
            let clean = self.found.count;
            if spec.checks.iter().any(NodeCheck::may_turn) {
                self.repeated(doc);
            }
            if self.found.count == clean {
                self.shared.passed(id, doc.raw);
            }
            return;
        }
        self.found.root_type_mismatch |= verdict.root_type_mismatch && self.path.is_empty();
        if self.out.is_none() {
            self.found.count += verdict.count;
            return;
        }
        let pointer = self.pointer();
        for mut issue in verdict.issues {
            if issue.code == IssueCode::Missing
                && let Some(node) = named(graph, spec.base, &issue.path)
            {
                issue.expected = Some(signature(graph, node).into());
            }
            issue.path.insert_str(0, &pointer);
            let known =
                |before: &Issue| before.path == issue.path && (own.count > 0 || before.code == issue.code);
            if self.out.as_ref().is_some_and(|out| out.iter().skip(told).any(known)) {
                continue;
            }
            self.found.count += 1;
            if self.secret {
                issue.received = issue.received.map(|_| HIDDEN.to_owned());
            }
            if let Some(out) = self.out.as_mut().filter(|out| out.len() < super::MAX_KEPT) {
                out.push(issue);
            }
        }
    }
}

/// Returns the node of the property that a JSON pointer such as `/limit` names. Returns `None` for any other pointer.
fn named(graph: &Graph, base: NodeId, pointer: &str) -> Option<NodeId> {
    let NodeKind::Object(object) = graph.kind(graph.unchecked(base)) else { return None };
    let name = pointer.strip_prefix('/').filter(|name| !name.contains('/'))?;
    let name = name.replace("~1", "/").replace("~0", "~");
    object.props.iter().find(|prop| prop.name == name).map(|prop| prop.node)
}

/// The issues that checks such as `not` find in a value. Paths are relative to the value.
#[derive(Default)]
struct CheckSummary {
    issues: Vec<Issue>,
    count: usize,
    root_type_mismatch: bool,
}

impl CheckSummary {
    fn add(&mut self, collect: bool, make: impl FnOnce() -> Issue) {
        self.count += 1;
        if collect && self.issues.len() < super::MAX_KEPT {
            self.issues.push(make());
        }
    }
}

struct CheckJudge<'x> {
    shared: &'x WalkState<'x>,
    collect: bool,
}

impl<'x> CheckJudge<'x> {
    fn all<'k>(&self, checks: impl Iterator<Item = &'k NodeCheck>, doc: &'x Doc<'_>) -> CheckSummary {
        let mut verdict = CheckSummary::default();
        for check in checks {
            if !self.shared.may_check(doc.raw) {
                verdict.add(self.collect, || {
                    Issue::new(
                        String::new(),
                        IssueCode::Value,
                        "takes too long to check: send something simpler",
                    )
                });
                break;
            }
            self.one(check, doc, &mut verdict);
        }
        verdict
    }

    fn one(&self, check: &NodeCheck, doc: &'x Doc<'_>, verdict: &mut CheckSummary) {
        match (check, &doc.shape) {
            (NodeCheck::Also(node), _) => self.fit(*node, doc, None, verdict),
            (NodeCheck::Not { node, given }, _) if self.fits(*node, doc) => {
                verdict.root_type_mismatch |= matches!(self.graph().kind(*node), NodeKind::Any);
                verdict.add(self.collect, || self.forbidden(*node, given, doc));
            }
            (NodeCheck::If { condition, then, otherwise, when }, _) => {
                let holds = self.fits(*condition, doc);
                let (node, word) = if holds { (then, "when") } else { (otherwise, "unless") };
                if let Some(node) = node {
                    // A condition on a property also holds if the property is absent, or if the value is not an object.
                    let is_told = self.collect && matches!(doc.shape, Shape::Object(_));
                    let why = when.as_ref().filter(|_| is_told).map(|when| {
                        let part = |(name, words): &(String, String)| match doc.entry(name) {
                            None if holds => format!("{words} or absent"),
                            _ => words.clone(),
                        };
                        format!("{word} {}", when.iter().map(part).collect::<Vec<_>>().join(" and "))
                    });
                    self.fit(*node, doc, why.as_deref(), verdict);
                }
            }
            (NodeCheck::Contains { node, min, max }, Shape::Array(items)) => {
                let fitting = items.iter().filter(|item| self.fits(*node, item)).count() as u64;
                if fitting < *min || fitting > *max {
                    let (few, bound) = if fitting < *min { ("few", min) } else { ("many", max) };
                    verdict.add(self.collect, || {
                        let item = cut(signature(self.graph(), *node), MAX_WORDS);
                        let words = format!("too {few} items that are {item} ({fitting})");
                        let mut issue = Issue::new(String::new(), IssueCode::Length, words);
                        let side = if fitting < *min { "at least" } else { "at most" };
                        issue.expected = Some(format!("{side} {bound} such"));
                        issue
                    });
                }
            }
            (NodeCheck::Names(node), Shape::Object(entries)) => {
                for (key, _) in entries {
                    self.name(*node, key, verdict);
                }
            }
            (NodeCheck::Requires(name, needed), Shape::Object(_)) if doc.entry(name).is_some() => {
                for needed in needed.iter().filter(|needed| doc.entry(needed).is_none()) {
                    verdict.add(self.collect, || {
                        let words =
                            format!("required, but missing (when `{}` is given)", cut(name, MAX_VALUE));
                        Issue::new(at(needed), IssueCode::Missing, words)
                    });
                }
            }
            (NodeCheck::Depends(name, node), Shape::Object(_)) if doc.entry(name).is_some() => {
                let why = format!("when `{}` is given", cut(name, MAX_VALUE));
                self.fit(*node, doc, Some(&why), verdict);
            }
            _ => {}
        }
    }

    fn graph(&self) -> &'x Graph {
        self.shared.graph
    }

    fn fits(&self, node: NodeId, doc: &'x Doc<'_>) -> bool {
        Walk::count(self.shared, node, doc).count == 0
    }

    /// Adds the issues of a value to `verdict`, each with the reason `why`, such as `when x is given`.
    fn fit(&self, node: NodeId, doc: &'x Doc<'_>, why: Option<&str>, verdict: &mut CheckSummary) {
        let mut issues = Vec::new();
        let mut walk = Walk::new(self.shared, self.collect.then_some(&mut issues));
        walk.check(node, doc);
        let found = walk.found;
        verdict.count += found.count;
        verdict.root_type_mismatch |= found.root_type_mismatch;
        for mut issue in issues {
            if let Some(why) = why {
                issue.problem = format!("{} ({why})", issue.problem);
            }
            verdict.issues.push(issue);
        }
    }

    fn forbidden(&self, node: NodeId, given: &[String], doc: &Doc<'_>) -> Issue {
        match given {
            [] => {
                let code = match self.graph().kind(node) {
                    NodeKind::Enum(_) | NodeKind::Const(_) => IssueCode::Enum,
                    NodeKind::Any | NodeKind::Null | NodeKind::Bool | NodeKind::Int(_) | NodeKind::Num(_) => {
                        IssueCode::Type
                    }
                    NodeKind::Str(spec) if spec.is_plain => IssueCode::Type,
                    NodeKind::Str(spec) if spec.pattern.is_some() => IssueCode::Pattern,
                    _ => IssueCode::Value,
                };
                let words = match self.graph().kind(node) {
                    NodeKind::Any => "no value is allowed here".to_owned(),
                    _ => format!("must not be {}", cut(signature(self.graph(), node), MAX_WORDS)),
                };
                let mut issue = Issue::new(String::new(), code, words);
                issue.received = Some(doc.shown());
                issue
            }
            [only] => Issue::new(at(only), IssueCode::Value, "must not be given"),
            several => {
                let names: Vec<String> = several.iter().map(|name| format!("`{name}`")).collect();
                let words = format!("must not have {} together", cut(&names.join(" and "), MAX_WORDS));
                Issue::new(String::new(), IssueCode::Value, words)
            }
        }
    }

    fn name(&self, node: NodeId, key: &str, verdict: &mut CheckSummary) {
        let text = Value::from(key).to_string();
        let Ok(document) = Document::parse(&text) else { return };
        let shared = self.shared.another(&text);
        let mut issues = Vec::new();
        let mut walk = Walk::new(&shared, Some(&mut issues));
        walk.check(node, &document.root);
        self.shared.take_back(&shared);
        if let Some(mut issue) = issues.into_iter().next() {
            verdict.add(self.collect, || {
                issue.problem = format!("as a key: {}", issue.problem);
                issue.path = at(key);
                issue
            });
        }
    }
}

fn at(key: &str) -> String {
    let mut out = String::new();
    push_segment(&mut out, key);
    out
}
