//! Traces, by the OpenTelemetry conventions for generative AI: <https://github.com/open-telemetry/semantic-conventions-genai>. Three spans
//! are not part of the conventions: `turn` (a request and its calls), `agent.fallback` (the requests of a fallback) and `agent.compact`
//! (the requests for a summary).
//!
//! The exported name of a span is in `otel.name`, because `tracing` needs constant names. Counts are signed, because exporters write
//! unsigned numbers as text. Lists (`string[]`) and structures (`any`) are recorded as JSON, because `tracing` has no fields of these
//! types. An exporter has to convert the lists, as `examples/otel` does.

mod attempts;
mod content;
mod modalities;
mod provider;

use std::sync::Arc;
use std::time::Duration;

use tracing::Span;
use tracing::field::Empty;

use super::config::Config;
use crate::message::{AssistantMessage, Content, Message, Part, ToolCall, Usage};
use crate::model::{ModelAttempt, ModelInfo, ModelRequest, Thinking};
use crate::tool::context::ToolContext;
use crate::tool::outcome::ToolOutcome;
use crate::tool::trace;
use crate::tool::value::Tool;
pub(super) use attempts::trace_attempts;
pub(super) use modalities::ModalityTokens;
#[cfg(feature = "otel")]
pub(super) use modalities::divided;
pub(super) use provider::provider_name;

pub(super) fn run_span(config: &Config, run_id: &str, session_id: Option<&str>) -> Span {
    let (info, name) = (config.model.info(), config.agent_name.as_deref());
    tracing::info_span!(
        "invoke_agent",
        otel.name = name.map(|name| format!("invoke_agent {name}")),
        gen_ai.agent.name = name,
        gen_ai.agent.description = config.agent_description.as_deref(),
        otel.kind = "internal",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = provider_name(info),
        gen_ai.request.model = info.model,
        gen_ai.conversation.id = session_id,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_write.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        agent.run.id = run_id,
        agent.run.stop = Empty,
        error.r#type = Empty,
        otel.status_code = Empty,
    )
}

pub(super) fn end_run(span: &Span, usage: &Usage, stop: &str, is_error: bool) {
    record_usage(span, usage);
    span.record("agent.run.stop", stop);
    if is_error {
        trace::fail(span, stop);
    }
}

fn record_usage(span: &Span, usage: &Usage) {
    if usage.is_empty() {
        return;
    }
    span.record("gen_ai.usage.input_tokens", signed(usage.input));
    span.record("gen_ai.usage.output_tokens", signed(usage.output));
    for (name, tokens) in [
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        ("gen_ai.usage.cache_write.input_tokens", usage.cache_write),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
    ] {
        if tokens > 0 {
            span.record(name, signed(tokens));
        }
    }
}

/// The attributes for input tokens, in the order of `MODALITIES`.
const INPUT_BY_MODALITY: [&str; 3] =
    ["gen_ai.usage.text.input_tokens", "gen_ai.usage.image.input_tokens", "gen_ai.usage.audio.input_tokens"];
const OUTPUT_BY_MODALITY: [&str; 3] = [
    "gen_ai.usage.text.output_tokens",
    "gen_ai.usage.image.output_tokens",
    "gen_ai.usage.audio.output_tokens",
];
const CACHE_BY_MODALITY: [&str; 3] = [
    "gen_ai.usage.text.cache_read.input_tokens",
    "gen_ai.usage.image.cache_read.input_tokens",
    "gen_ai.usage.audio.cache_read.input_tokens",
];

fn record_modalities(span: &Span, usage: &Usage) {
    let ModalityTokens { input, output, cache_read } = ModalityTokens::of(usage);
    for (names, counts) in
        [(INPUT_BY_MODALITY, input), (OUTPUT_BY_MODALITY, output), (CACHE_BY_MODALITY, cache_read)]
    {
        for (name, tokens) in names.into_iter().zip(counts).filter(|(_, tokens)| *tokens > 0) {
            span.record(name, signed(tokens));
        }
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn turn_span(turn: u32) -> Span {
    tracing::info_span!(
        "turn",
        otel.name = %format_args!("turn {turn}"),
        otel.kind = "internal",
        agent.turn = i64::from(turn),
    )
}

pub(super) fn request_span(info: &ModelInfo, request: &ModelRequest, session_id: Option<&str>) -> Span {
    if info.is_fallback {
        return tracing::info_span!(
            "agent.fallback",
            otel.kind = "internal",
            agent.fallback.attempts = Empty,
            agent.fallback.answered = Empty,
            error.r#type = Empty,
            otel.status_code = Empty,
        );
    }
    let stop = Some(&request.stop).filter(|stop| !stop.is_empty()).map(|stop| json_text(stop));
    let operation = operation_name(provider_name(info));
    let level = request.thinking.filter(|level| !matches!(level, Thinking::Budget(_)));
    tracing::info_span!(
        "chat",
        otel.name = %format_args!("{operation} {}", info.model),
        otel.kind = "client",
        gen_ai.operation.name = operation,
        gen_ai.provider.name = provider_name(info),
        gen_ai.request.model = info.model,
        server.address = info.server_address,
        server.port = info.server_port.map(i64::from),
        gen_ai.conversation.id = session_id,
        gen_ai.conversation.compacted = is_compacted(&request.messages).then_some(true),
        gen_ai.request.stream = true,
        gen_ai.request.max_tokens = request.max_tokens.map(signed),
        gen_ai.request.temperature = request.temperature,
        gen_ai.request.top_p = request.top_p,
        gen_ai.request.stop_sequences = stop,
        gen_ai.request.reasoning.level = level.map(|level| level.to_string()),
        gen_ai.output.r#type = request.output.is_some().then_some("json"),
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_write.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        gen_ai.usage.text.input_tokens = Empty,
        gen_ai.usage.text.output_tokens = Empty,
        gen_ai.usage.text.cache_read.input_tokens = Empty,
        gen_ai.usage.image.input_tokens = Empty,
        gen_ai.usage.image.output_tokens = Empty,
        gen_ai.usage.image.cache_read.input_tokens = Empty,
        gen_ai.usage.audio.input_tokens = Empty,
        gen_ai.usage.audio.output_tokens = Empty,
        gen_ai.usage.audio.cache_read.input_tokens = Empty,
        gen_ai.system_instructions = Empty,
        gen_ai.tool.definitions = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        agent.stop_reason = Empty,
        agent.fallback.attempts = Empty,
        agent.fallback.answered = Empty,
        error.r#type = Empty,
        otel.status_code = Empty,
    )
}

/// Returns whether this is the span of a single request, not the span around the requests of a fallback.
fn is_request(span: &Span) -> bool {
    span.has_field("gen_ai.operation.name")
}

pub(super) fn operation_name(provider: &str) -> &'static str {
    if provider.starts_with("gcp.") { "generate_content" } else { "chat" }
}

fn is_compacted(messages: &[Arc<Message>]) -> bool {
    let is_block = |part: &Part| match &part.content {
        Content::Opaque(opaque) => opaque.data.get("type").is_some_and(|kind| kind == "compaction"),
        _ => false,
    };
    match messages.first().map(|message| &**message) {
        Some(Message::User(user)) => user.is_summary(),
        Some(Message::Assistant(reply)) => reply.content.iter().any(is_block),
        _ => false,
    }
}

fn json_text(list: &[impl serde::Serialize]) -> String {
    serde_json::to_string(list).unwrap_or_default()
}

pub(super) fn end_request(
    span: &Span,
    reply: &AssistantMessage,
    error: Option<&str>,
    first_piece: Option<Duration>,
) {
    if span.is_disabled() {
        return;
    }
    let reason = if error.is_some() { "error" } else { content::finish_reason(&reply.stop_reason) };
    span.record("gen_ai.response.finish_reasons", json_text(&[reason]));
    span.record("gen_ai.response.id", reply.response_id.as_deref());
    let model = reply.response_model.as_deref().unwrap_or(&reply.model);
    span.record("gen_ai.response.model", Some(model).filter(|model| !model.is_empty()));
    span.record("gen_ai.response.time_to_first_chunk", first_piece.map(|took| took.as_secs_f64()));
    let word = reply.provider_stop_reason.as_deref().unwrap_or(reply.stop_reason.as_str());
    span.record("agent.stop_reason", word);
    record_usage(span, &reply.usage);
    record_modalities(span, &reply.usage);
    let attempts = ModelAttempt::before(reply);
    if !attempts.is_empty() {
        span.record("agent.fallback.attempts", i64::try_from(attempts.len()).unwrap_or(i64::MAX));
        span.in_scope(|| attempts.iter().for_each(record_attempt));
        if error.is_none() {
            span.record("agent.fallback.answered", format!("{}/{}", reply.provider, reply.model));
        }
    }
    let Some(error) = error else { return };
    trace::fail(span, error);
    // A fallback has this event in the span of each attempt, not in the span around the attempts.
    if is_request(span) {
        // The message of the error is left out, because it may quote content.
        span.in_scope(|| {
            tracing::event!(
                name: "gen_ai.client.operation.exception",
                tracing::Level::WARN,
                { exception.r#type = error },
                "a request to a model failed"
            );
        });
    }
}

fn record_attempt(attempt: &ModelAttempt) {
    let info = ModelInfo::new(&*attempt.provider, "", &*attempt.model);
    tracing::event!(
        name: "agent.fallback.attempt",
        tracing::Level::WARN,
        {
            gen_ai.provider.name = provider_name(&info),
            gen_ai.request.model = attempt.model,
            error.r#type = attempt.kind,
        },
        "agent.fallback.attempt"
    );
}

/// Records the content of a request, if the application captures content. Secret arguments are left out.
pub(super) fn record_input(span: &Span, config: &Config, request: &ModelRequest) {
    let Some(capture) = &config.capture else { return };
    if span.is_disabled() || !is_request(span) {
        return;
    }
    let secrets = config.secrets();
    let messages: Vec<_> = request.messages.iter().map(|message| secrets.shown(message)).collect();
    let messages = content::input(messages.iter().map(|message| &**message));
    let system = request.system.as_deref().map(content::instructions);
    span.record("gen_ai.system_instructions", system.and_then(|system| capture.json(&system)));
    span.record("gen_ai.input.messages", capture.json(&messages));
    if !request.tools.is_empty() || !request.managed_tools.is_empty() {
        span.record("gen_ai.tool.definitions", capture.json(&content::definitions(request)));
    }
}

pub(super) fn record_output(span: &Span, config: &Config, reply: &AssistantMessage) {
    let Some(capture) = &config.capture else { return };
    if span.is_disabled() || !is_request(span) {
        return;
    }
    let reply: Arc<Message> = config.secrets().shown(&Arc::new(reply.clone().into()));
    span.record("gen_ai.output.messages", capture.json(&content::output(&reply)));
}

/// Creates and ends the span of a call that ended before its tool could run.
pub(super) fn record_refusal(tool: Option<&Tool>, call: &ToolCall, reply: &ToolOutcome, cx: &ToolContext) {
    let span = trace::call_span(tool.map_or("unknown", |tool| tool.definition().name()), &call.id);
    match tool {
        Some(tool) => trace::end_refused_call(&span, tool, call.args.text(), reply, cx),
        None => trace::end_span(&span, reply),
    }
}
