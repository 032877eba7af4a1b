//! Traces, by the names of the OpenTelemetry conventions for generative AI.
//!
//! Source: <https://opentelemetry.io/docs/specs/semconv/gen-ai/>. A run is `invoke_agent`, a request `chat`, and the call
//! of a tool `execute_tool`; what a span is called there is in `otel.name`, since the names of `tracing` are fixed. What is said is not in them unless the application asks for it.

use tracing::Span;
use tracing::field::Empty;

use crate::message::{AssistantMessage, MessageList, Usage};
use crate::model::{ModelInfo, ModelRequest};

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
    )
}

/// The run is over.
pub(super) fn end_run(span: &Span, usage: &Usage, stop: &str, is_error: bool) {
    span.record("gen_ai.usage.input_tokens", usage.input);
    span.record("gen_ai.usage.output_tokens", usage.output);
    span.record("agent.run.stop", stop);
    if is_error {
        span.record("error.type", stop);
    }
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
    span.record("gen_ai.usage.input_tokens", reply.usage.input);
    span.record("gen_ai.usage.output_tokens", reply.usage.output);
    span.record("error.type", error);
}

/// What was said, for an application that asks for it.
pub(super) fn tell_input(span: &Span, messages: &MessageList) {
    let messages: Vec<_> = messages.iter().map(|message| &**message).collect();
    let text = serde_json::to_string(&messages).unwrap_or_default();
    span.in_scope(|| {
        tracing::info!(gen_ai.input.messages = text, "gen_ai.client.inference.operation.details");
    });
}

/// What was answered, for an application that asks for it.
pub(super) fn tell_output(span: &Span, reply: &AssistantMessage) {
    let text = serde_json::to_string(&[reply]).unwrap_or_default();
    span.in_scope(|| {
        tracing::info!(gen_ai.output.messages = text, "gen_ai.client.inference.operation.details");
    });
}
