//! Traces, by the names of the OpenTelemetry conventions for generative AI.
//!
//! Source: <https://opentelemetry.io/docs/specs/semconv/gen-ai/>. A run is `invoke_agent`, a request `chat`, and the call
//! of a tool `execute_tool`; the `turn` between them is ours. What a span is called there is in `otel.name`, since the names of
//! `tracing` are fixed. What is said is not in them unless the application asks for it. Spans are enough: what sends them to a
//! collector is the application's, and no part of this crate.

use std::sync::Arc;

use tracing::Span;
use tracing::field::Empty;

use super::assistant::Config;
use crate::args::Coercions;
use crate::message::{AssistantMessage, Message, ToolCall, Usage};
use crate::model::{ModelInfo, ModelRequest};
use crate::tool::trace;
use crate::{Tool, ToolContext, ToolOutcome};

/// The span of a run.
pub(super) fn run_span(info: &ModelInfo, run_id: &str, session_id: Option<&str>) -> Span {
    tracing::info_span!(
        "invoke_agent",
        otel.kind = "internal",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = %info.provider,
        gen_ai.request.model = %info.model,
        gen_ai.conversation.id = session_id,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        agent.run.id = run_id,
        agent.run.stop = Empty,
        error.r#type = Empty,
        otel.status_code = Empty,
    )
}

/// The run is over.
pub(super) fn end_run(span: &Span, usage: &Usage, stop: &str, is_error: bool) {
    record_usage(span, usage);
    span.record("agent.run.stop", stop);
    if is_error {
        trace::fail(span, stop);
    }
}

/// As integers with a sign, which every receiver has.
fn record_usage(span: &Span, usage: &Usage) {
    let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    span.record("gen_ai.usage.input_tokens", count(usage.input));
    span.record("gen_ai.usage.output_tokens", count(usage.output));
}

/// The span of a turn: a request and the calls of its reply.
pub(super) fn turn_span(turn: u32) -> Span {
    tracing::info_span!("turn", otel.name = %format_args!("turn {turn}"), otel.kind = "internal", agent.turn = turn)
}

/// The span of a request.
pub(super) fn request_span(info: &ModelInfo, request: &ModelRequest) -> Span {
    tracing::info_span!(
        "chat",
        otel.name = %format_args!("chat {}", info.model),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = %info.provider,
        gen_ai.request.model = %info.model,
        gen_ai.request.max_tokens = request.max_tokens,
        gen_ai.request.temperature = request.temperature,
        gen_ai.request.top_p = request.top_p,
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.r#type = Empty,
        otel.status_code = Empty,
    )
}

/// The reply is there, or why it is not.
pub(super) fn end_request(span: &Span, reply: &AssistantMessage, error: Option<&str>) {
    if span.is_disabled() {
        return;
    }
    span.record("gen_ai.response.id", reply.response_id.as_deref());
    span.record("gen_ai.response.model", reply.response_model.as_deref().unwrap_or(&reply.model));
    span.record("gen_ai.response.finish_reasons", reply.stop_reason.as_str());
    record_usage(span, &reply.usage);
    if let Some(error) = error {
        trace::fail(span, error);
    }
}

/// Records the request without secret arguments, for an application that captures content.
pub(super) fn tell_input(span: &Span, config: &Config, request: &ModelRequest) {
    let Some(capture) = &config.capture else { return };
    if span.is_disabled() {
        return;
    }
    let secrets = config.secrets();
    let messages: Vec<_> = request.messages.iter().map(|message| secrets.shown(message)).collect();
    let messages: Vec<&Message> = messages.iter().map(|message| &**message).collect();
    let system = request.system.as_deref().and_then(|system| capture.json(system));
    let messages = capture.json(&messages);
    span.in_scope(|| {
        tracing::info!(
            gen_ai.system_instructions = system,
            gen_ai.input.messages = messages,
            "gen_ai.client.inference.operation.details"
        );
    });
}

/// Records the reply without secret arguments, for an application that captures content.
pub(super) fn tell_output(span: &Span, config: &Config, reply: &AssistantMessage) {
    let Some(capture) = &config.capture else { return };
    if span.is_disabled() {
        return;
    }
    let reply = config.secrets().shown(&Arc::new(reply.clone().into()));
    let text = capture.json(&[&*reply]);
    span.in_scope(|| {
        tracing::info!(gen_ai.output.messages = text, "gen_ai.client.inference.operation.details");
    });
}

/// A call that ended before its body could run has a span too, with what was wrong.
pub(super) fn refused(tool: Option<&dyn Tool>, call: &ToolCall, reply: &ToolOutcome, cx: &ToolContext) {
    let span = trace::call_span(tool.map_or("unknown", |tool| tool.definition().name()), &call.id);
    match tool {
        Some(tool) => trace::end_call(&span, tool, call.args.text(), reply, &Coercions::default(), cx),
        None => trace::end_span(&span, reply),
    }
}
