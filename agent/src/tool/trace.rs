//! The traces of calls: one span for each call, with the names of the OpenTelemetry conventions for generative AI
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>), and events for the coercions and faults of its arguments. Content is
//! included only where the application captures it.

use super::context::ToolContext;
use super::outcome::{FailureCode, ToolOutcome};
use super::secrets;
use super::source::Source;
use super::traits::Tool;
use crate::args::{
    Coercion, CoercionRule, Coercions, InvalidArguments, UnknownKeys, cut, push_index, push_segment,
};
use crate::panics::catch;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use tracing::Span;
use tracing::field::Empty;

/// Changes one text, number or boolean of the captured content, given its JSON pointer.
pub(crate) type Redact = dyn Fn(&str, &mut Value) + Send + Sync;

/// Captures content for traces, after the application has redacted it.
#[derive(Clone, Default)]
pub(crate) struct Capture {
    redact: Option<Arc<Redact>>,
}

impl Capture {
    #[cfg(feature = "runtime")]
    pub(crate) fn redacting(redact: Arc<Redact>) -> Self {
        Self { redact: Some(redact) }
    }

    /// Returns the content as JSON text; `None` if the application's function panicked.
    pub(crate) fn json(&self, content: &(impl Serialize + ?Sized)) -> Option<String> {
        let Some(redact) = &self.redact else { return serde_json::to_string(content).ok() };
        let mut content = serde_json::to_value(content).ok()?;
        if catch(|| walk(&mut content, &**redact)).is_err() {
            tracing::error!("the function that redacts captured content panicked; the content is left out");
            return None;
        }
        Some(content.to_string())
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("redacts", &self.redact.is_some()).finish()
    }
}

/// Visits every value that is not a container, at any depth.
fn walk(content: &mut Value, redact: &Redact) {
    let mut open = vec![(String::new(), content)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Null => {}
            Value::Array(items) => open.extend(items.iter_mut().enumerate().map(|(at, item)| {
                let mut path = path.clone();
                push_index(&mut path, at);
                (path, item)
            })),
            Value::Object(map) => open.extend(map.iter_mut().map(|(key, value)| {
                let mut path = path.clone();
                push_segment(&mut path, key);
                (path, value)
            })),
            leaf => redact(&path, leaf),
        }
    }
}

/// Creates the span of a call.
pub(crate) fn call_span(tool: &str, call_id: &str) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = %format_args!("execute_tool {tool}"),
        otel.kind = "internal",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        gen_ai.tool.r#type = "function",
        gen_ai.tool.description = Empty,
        gen_ai.tool.call.id = call_id,
        gen_ai.tool.call.arguments = Empty,
        gen_ai.tool.call.result = Empty,
        error.r#type = Empty,
        otel.status_code = Empty,
    )
}

/// Warns of the arguments that were dropped because the tool does not have them: by name, never by value.
pub(crate) fn warn_of_dropped(tool: &dyn Tool, coercions: &Coercions, cx: &ToolContext) {
    /// Maximum number of names, and of characters in one.
    const NAMES: usize = 10;
    const CHARS: usize = 64;
    let strips = || tool.definition().plan().options().unknown_keys() == UnknownKeys::Strip;
    if coercions.is_empty() || !catch(strips).unwrap_or_default() {
        return;
    }
    let dropped = coercions.iter().filter(|coercion| coercion.rule == CoercionRule::UnknownDropped);
    let name = |coercion: &Coercion| {
        let name = coercion.path.trim_start_matches('/').replace("~1", "/").replace("~0", "~");
        // Quoted: a key may have any characters.
        format!("{:?}", cut(&name, CHARS))
    };
    let names: Vec<String> = dropped.clone().take(NAMES).map(name).collect();
    if names.is_empty() {
        return;
    }
    let more = dropped.count() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let (tool, call, keys) = (cx.tool(), cx.call_id(), format!("{}{more}", names.join(", ")));
    tracing::warn!(tool, call, %keys, "arguments were dropped that the tool does not have");
}

/// Records how a call ended: its kind of error, the coercions and faults of its arguments, and its content where it is captured.
pub(crate) fn end_call(
    span: &Span,
    tool: &dyn Tool,
    arguments: &str,
    outcome: &ToolOutcome,
    coercions: &Coercions,
    cx: &ToolContext,
) {
    if span.is_disabled() {
        return;
    }
    let capture = cx.capture();
    span.record("gen_ai.tool.description", tool.definition().description());
    end_span(span, outcome);
    if let Some(capture) = capture {
        let sent = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
        let sent = secrets::without_secrets(tool, cx.source(), sent);
        span.record("gen_ai.tool.call.arguments", capture.json(&sent));
        span.record("gen_ai.tool.call.result", capture.json(&result(outcome)));
    }
    span.in_scope(|| {
        if !coercions.is_empty() {
            tell_coercions(tool, coercions, capture);
        }
        if outcome.code() == Some(FailureCode::INVALID_ARGUMENTS.as_str())
            && let Some(refusal) = refusal(tool, arguments, cx.source())
        {
            tell_refusal(tool, &refusal, capture);
        }
    });
}

/// Returns the text of a result; the object, if it is one as text.
fn result(outcome: &ToolOutcome) -> Value {
    let text = outcome.text();
    let object = serde_json::from_str(&text).ok().filter(Value::is_object);
    object.unwrap_or_else(|| Value::from(&*text))
}

/// Records the kind of error, if it is one.
pub(crate) fn end_span(span: &Span, outcome: &ToolOutcome) {
    if outcome.is_error() {
        fail(span, outcome.code().unwrap_or("retry"));
    }
}

/// Records that the span's operation failed with this kind of error.
pub(crate) fn fail(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

fn tell_coercions(tool: &dyn Tool, coercions: &Coercions, capture: Option<&Capture>) {
    let names = Names::of(tool);
    for coercion in coercions {
        let (from, to) = (
            capture.and_then(|capture| capture.json(&coercion.from)),
            capture.and_then(|capture| capture.json(&coercion.to)),
        );
        tracing::info!(
            agent.argument.path = %names.shown(&coercion.path, capture),
            agent.argument.rule = coercion.rule.as_str(),
            agent.argument.from = from,
            agent.argument.to = to,
            "agent.argument.coerced"
        );
    }
}

fn tell_refusal(tool: &dyn Tool, refusal: &InvalidArguments, capture: Option<&Capture>) {
    let names = Names::of(tool);
    for issue in refusal.issues() {
        tracing::info!(
            agent.argument.path = %names.shown(&issue.path, capture),
            agent.argument.code = issue.code.as_str(),
            agent.argument.received = capture.and_then(|capture| capture.json(issue.received.as_ref()?)),
            "agent.argument.refused"
        );
    }
}

/// Returns why the arguments were refused. They are checked once more, which costs only those who use traces.
fn refusal(tool: &dyn Tool, arguments: &str, source: Option<&Source>) -> Option<InvalidArguments> {
    let check = || {
        let own = source.and_then(|source| tool.definition_for(source).ok().flatten());
        let prepared = tool.prepare(arguments).ok().flatten();
        let arguments = prepared.as_deref().unwrap_or(arguments);
        match own {
            Some(own) => own.plan().parse::<Value>(arguments).err(),
            None => tool.validate(arguments).err(),
        }
    };
    catch(check).ok().flatten()
}

/// The names of a tool's parameters, at any depth: everything else in a path was made up by the model.
struct Names<'a> {
    known: HashSet<&'a str>,
    has_secrets: bool,
}

impl<'a> Names<'a> {
    fn of(tool: &'a dyn Tool) -> Self {
        let (mut names, mut open) = (HashSet::new(), vec![tool.definition().plan().schema()]);
        while let Some(schema) = open.pop() {
            match schema {
                Value::Array(items) => open.extend(items),
                Value::Object(map) => {
                    if let Some(Value::Object(properties)) = map.get("properties") {
                        names.extend(properties.keys().map(String::as_str));
                    }
                    open.extend(map.values());
                }
                _ => {}
            }
        }
        Self { known: names, has_secrets: tool.definition().plan().graph().has_secrets() }
    }

    /// Returns the path, with `*` for keys that the model chose, unless content is captured. A key of a tool with secrets may be one.
    fn shown(&self, path: &str, capture: Option<&Capture>) -> String {
        if capture.is_some() && !self.has_secrets {
            return path.to_owned();
        }
        // An index has few digits; a number as a key may be anything.
        let is_index = |part: &str| part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_known = |part: &str| {
            part.is_empty()
                || is_index(part)
                || self.known.contains(&*part.replace("~1", "/").replace("~0", "~"))
        };
        let parts: Vec<&str> = path.split('/').map(|part| if is_known(part) { part } else { "*" }).collect();
        parts.join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_leaf_is_redacted_by_its_place_and_its_text() {
        let redact = |path: &str, value: &mut Value| {
            if path.ends_with("/card") {
                *value = json!("[card]");
            } else if let Value::String(text) = value {
                *text = text.replace("tulip", "[word]");
            }
        };
        let content = json!([{"content": [{"text": "a tulip"}, {"args": {"card": 4111, "a/b": ["tulip", null, true]}}]}]);
        let text = Capture::redacting(Arc::new(redact)).json(&content).unwrap();
        let wanted = json!([{"content": [{"text": "a [word]"}, {"args": {"card": "[card]", "a/b": ["[word]", null, true]}}]}]);
        assert_eq!(text, wanted.to_string());
        assert_eq!(Capture::default().json(&content).unwrap(), content.to_string());
    }

    #[test]
    fn what_cannot_be_redacted_is_left_out() {
        let capture = Capture::redacting(Arc::new(|_: &str, _: &mut Value| panic!("no")));
        assert_eq!(capture.json("tulip"), None);
        assert_eq!(
            capture.json(&json!({"none": null})),
            Some(r#"{"none":null}"#.to_owned()),
            "nothing to redact"
        );
    }
}
