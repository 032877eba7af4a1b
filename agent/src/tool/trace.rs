//! The traces of calls: one span for each call, with the names of the OpenTelemetry conventions for generative AI
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>), and events for coerced and for refused arguments. Content is included only if
//! the application captures it.

#[cfg(feature = "runtime")]
use super::call_error::CallError;
use super::capture::Capture;
use super::context::ToolContext;
use super::outcome::ToolOutcome;
use super::secrets;
use super::value::Tool;
use crate::args::{Coercion, CoercionRule, InvalidArguments, UnknownKeys, cut};
use serde_json::Value;
use std::collections::HashSet;
use tracing::Span;
use tracing::field::Empty;

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

/// Logs a warning with the names, and never the values, of the arguments that were dropped because the tool does not have them.
pub(crate) fn warn_of_dropped(tool: &Tool, coercions: &[Coercion], cx: &ToolContext) {
    /// Maximum number of names, and of characters in a name.
    const NAMES: usize = 10;
    const CHARS: usize = 64;
    if coercions.is_empty() || tool.definition().plan().options().unknown_keys() != UnknownKeys::Strip {
        return;
    }
    let dropped = coercions.iter().filter(|coercion| coercion.rule == CoercionRule::UnknownDropped);
    let name = |coercion: &Coercion| {
        let name = coercion.path.trim_start_matches('/').replace("~1", "/").replace("~0", "~");
        // The name is quoted, because a key may have any characters.
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

pub(crate) fn end_call(
    span: &Span,
    tool: &Tool,
    arguments: &str,
    outcome: &ToolOutcome,
    checked: Result<&[Coercion], Option<&InvalidArguments>>,
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
    span.in_scope(|| match checked {
        Ok([]) => {}
        Ok(coercions) => emit_coercions(tool, coercions, capture),
        Err(refusal) => refusal.into_iter().for_each(|refusal| emit_refusal(tool, refusal, capture)),
    });
}

/// Records the end of a call whose arguments were already refused. If traces are recorded, the arguments are checked again to get the
/// report.
#[cfg(feature = "runtime")]
pub(crate) fn end_refused_call(
    span: &Span,
    tool: &Tool,
    arguments: &str,
    outcome: &ToolOutcome,
    cx: &ToolContext,
) {
    if span.is_disabled() {
        return;
    }
    let refused = match tool.check(arguments, cx.source()) {
        Err(CallError::InvalidArguments(report)) => Some(report),
        _ => None,
    };
    end_call(span, tool, arguments, outcome, Err(refused.as_ref()), cx);
}

fn result(outcome: &ToolOutcome) -> Value {
    let text = outcome.text();
    let object = serde_json::from_str(&text).ok().filter(Value::is_object);
    object.unwrap_or_else(|| Value::from(&*text))
}

pub(crate) fn end_span(span: &Span, outcome: &ToolOutcome) {
    if outcome.is_error() {
        fail(span, outcome.code().unwrap_or("retry"));
    }
}

pub(crate) fn fail(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

fn emit_coercions(tool: &Tool, coercions: &[Coercion], capture: Option<&Capture>) {
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

fn emit_refusal(tool: &Tool, refusal: &InvalidArguments, capture: Option<&Capture>) {
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

/// The names of a tool's parameters, at any depth. All other keys in a path were chosen by the model.
struct Names<'a> {
    known: HashSet<&'a str>,
    has_secrets: bool,
}

impl<'a> Names<'a> {
    fn of(tool: &'a Tool) -> Self {
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

    /// Returns the path, with `*` for each key that the model chose. If content is captured, these keys are shown, except for a tool with
    /// secret arguments.
    fn shown(&self, path: &str, capture: Option<&Capture>) -> String {
        if capture.is_some() && !self.has_secrets {
            return path.to_owned();
        }
        // At most 4 digits count as an index. A longer number may be a key.
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
