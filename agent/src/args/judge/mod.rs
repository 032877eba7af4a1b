//! Walks: comparisons of a value with the compiled schema. While arguments are read, walks decide which alternative of a union (`anyOf`) a
//! value fits, and whether a value passes checks such as `not`. After a refusal, the structure is repaired as far as the policy allows,
//! and a walk finds every issue.

mod early;
mod outcome;
mod repair;
mod spelling;
mod syntax;
mod walk;

pub(crate) use early::EarlyCheck;
pub(crate) use outcome::{TextJudge, WalkState};
#[cfg(feature = "macros")]
pub(crate) use walk::faults;
pub(crate) use walk::{count, fits, inspect, says_nothing};

use super::coercion::{Coercion, CoercionRule, HIDDEN, recorded};
use super::document::{Doc, Document, Shape};
use super::issue::{Issue, IssueCode};
use super::plan::Graph;
use super::policy::Rules;
use super::wrapped::WrappedValues;
use serde_json::{Value, json};

pub(crate) struct RefusedArguments<'t> {
    pub(crate) issues: Vec<Issue>,
    /// The number of all issues, including those that are not kept in `issues`.
    pub(crate) count: usize,
    /// The text of the sent arguments after decoding and repairs, or `None` if the text is not JSON.
    pub(crate) sent: Option<std::borrow::Cow<'t, str>>,
    /// The parsed form of `sent`, if `sent` is the text that was received.
    document: Option<Box<Document<'t>>>,
    /// The probable meaning of text that is not JSON, as JSON.
    pub(crate) respelled: Option<String>,
    pub(crate) wrapped: WrappedValues,
}

impl RefusedArguments<'_> {
    pub(crate) fn with_sent<T>(&self, look: impl FnOnce(&Doc<'_>) -> T) -> Option<T> {
        match (&self.document, &self.sent) {
            (Some(document), _) => Some(look(&document.root)),
            (None, Some(sent)) => Some(look(&Document::parse(sent).ok()?.root)),
            (None, None) => None,
        }
    }
}

/// Arguments that fit the `Plan` after repairs and coercions.
pub(crate) struct Mended {
    /// The text to read instead of the sent text; `None` if the structure needed no repair.
    pub(crate) text: Option<String>,
    pub(crate) coercions: Vec<Coercion>,
}

/// Repairs arguments that were refused while they were read, or returns all their issues.
pub(crate) fn diagnose<'t>(graph: &Graph, text: &'t str) -> Result<Mended, RefusedArguments<'t>> {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let respelled = spelling::respelled(text);
            let hint = respelled.as_ref().map(|respelled| respelled.hint);
            let issue = syntax::fault(text, &error, graph.has_secrets(), hint.unwrap_or_default());
            let respelled = respelled.map(|respelled| respelled.text);
            let wrapped = WrappedValues::default();
            return Err(RefusedArguments {
                issues: vec![issue],
                count: 1,
                sent: None,
                document: None,
                respelled,
                wrapped,
            });
        }
    };
    match unwrapped(graph, &document.root) {
        None => check(graph, document, text, Vec::new(), None),
        Some((inner, coercion)) => {
            let refusal = |r: RefusedArguments<'_>| RefusedArguments {
                issues: r.issues,
                count: r.count,
                sent: r.sent.map(|s| s.into_owned().into()),
                document: None,
                respelled: None,
                wrapped: r.wrapped,
            };
            let document = Document::parse(&inner).map_err(|_| RefusedArguments {
                issues: Vec::new(),
                count: 0,
                sent: None,
                document: None,
                respelled: None,
                wrapped: WrappedValues::default(),
            })?;
            check(graph, document, &inner, vec![coercion], Some(inner.clone())).map_err(refusal)
        }
    }
}

/// Unwraps the arguments as a whole: null for no arguments, or an object that was sent as a JSON string.
/// Returns `None` if there is nothing to unwrap.
fn unwrapped(graph: &Graph, root: &Doc<'_>) -> Option<(String, Coercion)> {
    let hide = |v: Value| if graph.has_secrets() { HIDDEN.into() } else { recorded(v) };
    match &root.shape {
        Shape::Null if graph.root_rules().has(Rules::NULL_ROOT) => {
            let rule = CoercionRule::NullAsEmpty;
            Some(("{}".into(), Coercion { path: String::new(), from: Value::Null, to: json!({}), rule }))
        }
        Shape::Text(text) if graph.root_rules().has(Rules::TEXT_ROOT) => {
            let inner = Document::parse(text).ok()?;
            if !matches!(inner.root.shape, Shape::Object(_)) {
                return None;
            }
            let from = hide(text.as_ref().into());
            let to = hide(inner.root.to_value());
            let rule = CoercionRule::JsonTextDecoded;
            Some((text.as_ref().to_owned(), Coercion { path: String::new(), from, to, rule }))
        }
        _ => None,
    }
}

fn check<'t>(
    graph: &Graph,
    document: Document<'t>,
    text: &'t str,
    mut coercions: Vec<Coercion>,
    mut replaced: Option<String>,
) -> Result<Mended, RefusedArguments<'t>> {
    let root = &document.root;
    if !matches!(root.shape, Shape::Object(_)) {
        let mut issue = Issue::new(String::new(), IssueCode::Type, "must be one JSON object");
        let hidden = graph.has_secrets() && !matches!(root.shape, Shape::Array(_) | Shape::Null);
        issue.received = Some(if hidden { format!("{} {HIDDEN}", root.kind()) } else { root.shown() });
        issue.expected = Some("an object with the parameters below".into());
        return Err(RefusedArguments {
            issues: vec![issue],
            count: 1,
            sent: Some(text.into()),
            document: Some(Box::new(document)),
            respelled: None,
            wrapped: WrappedValues::default(),
        });
    }
    let unrepaired = coercions.len();
    let mut mended = repair::repair(graph, root, &mut coercions);
    let mut issues = Vec::new();
    let walked = mended.as_deref().and_then(|mended| {
        let document = Document::parse(mended).ok()?;
        Some(walk::collect(graph, &document.root, &mut issues))
    });
    let count = walked.unwrap_or_else(|| {
        // A repair may replace a string by the JSON in it, and this JSON may nest too deeply. The arguments then stay without repairs.
        mended = None;
        coercions.truncate(unrepaired);
        walk::collect(graph, root, &mut issues)
    });
    if mended.is_some() {
        replaced = mended;
    }
    if count == 0 {
        return Ok(Mended { text: replaced, coercions });
    }
    let (sent, document) = match replaced {
        Some(mended) => (mended.into(), None),
        None => (text.into(), Some(Box::new(document))),
    };
    let wrapped = WrappedValues::of(&coercions);
    Err(RefusedArguments { issues, count, sent: Some(sent), document, respelled: None, wrapped })
}
