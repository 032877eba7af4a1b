//! Decodes responses of Gemini: streams, JSON bodies, and lists of chunks.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::partial::PartialArguments;
use super::{errors, parts};
use crate::message::{Content, ProviderData, StopReason, ToolArguments, Usage};
use crate::model::{ModelError, ModelEvent};
use crate::provider::failure;
use crate::provider::frequent::{self, Object, Text, has_text};
use crate::provider::parts::{JsonObject, JsonSource, count_at, some_text, text};
use crate::provider::protocol::Decoder;
use crate::provider::sse::SseEvent;

/// The fields of a candidate that have no equivalent in this library. They are kept as provider data of the message.
const STATE_FIELDS: [&str; 5] =
    ["groundingMetadata", "citationMetadata", "urlContextMetadata", "safetyRatings", "continuationToken"];

pub(super) const TOKEN: &str = "continuationToken";

/// Decodes one response of Gemini. The chunks follow `GenerateContentResponse` in Gemini's reference. The parts of a chunk are appended to
/// the parts of earlier chunks.
pub(super) struct GeminiDecoder {
    provider: String,
    lenient_end: bool,
    is_started: bool,
    has_candidate: bool,
    parts: usize,
    /// The text or thought that the next delta may continue: its content index, and whether it is a thought.
    open: Option<(usize, bool)>,
    /// The unfinished call, whose arguments arrive value by value: its content index, and the arguments so far.
    call: Option<(usize, PartialArguments)>,
    message_data: JsonObject,
    usage: Option<Value>,
    /// A usage that is newer than `usage`, as JSON text; empty if there is none.
    usage_text: String,
    finish: Option<String>,
    detail: Option<String>,
    blocked: Option<String>,
}

/// A chunk with a text or a thought: the most frequent event of a stream.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TextChunk<'a> {
    #[serde(borrow)]
    candidates: [Object<TextCandidate<'a>>; 1],
    #[serde(borrow)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    model_version: Option<Text<'a>>,
    #[serde(borrow)]
    response_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextCandidate<'a> {
    #[serde(borrow)]
    content: Object<TextContent<'a>>,
    #[serde(default)]
    index: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextContent<'a> {
    #[serde(borrow)]
    parts: [Object<BareText<'a>>; 1],
    #[serde(borrow, rename = "role")]
    _role: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BareText<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(default)]
    thought: bool,
}

impl GeminiDecoder {
    /// Decodes a [`TextChunk`]. Returns `false`, and changes nothing, for every other event.
    fn frequent_event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> bool {
        let Some(chunk) = frequent::read::<TextChunk<'_>>(event) else { return false };
        let TextChunk { candidates: [Object(candidate)], usage_metadata, model_version, response_id } = chunk;
        let begins = !self.is_started && (has_text(response_id.as_ref()) || has_text(model_version.as_ref()));
        let usage = usage_metadata.map(RawValue::get);
        // Usage is parsed only at the end of the reply, so its text is kept only if it is certain to parse.
        let is_usage = |usage: &str| usage.starts_with("{\"") && frequent::is_simple_json(usage);
        if begins || candidate.index != 0 || !usage.is_none_or(is_usage) {
            return false;
        }
        if let Some(usage) = usage {
            self.usage_text.clear();
            self.usage_text.push_str(usage);
        }
        self.has_candidate = true;
        let [Object(BareText { text, thought })] = candidate.content.0.parts;
        self.end_call(out);
        self.emit_text(text.into_string(), thought, out);
        true
    }

    fn emit_text(&mut self, delta: String, is_thought: bool, out: &mut Vec<ModelEvent>) {
        if delta.is_empty() {
            return;
        }
        let open = self.open.filter(|(_, thought)| *thought == is_thought);
        let (content_index, _) = open.unwrap_or_else(|| (self.next_part(), is_thought));
        self.open = Some((content_index, is_thought));
        out.push(if is_thought {
            ModelEvent::ThinkingDelta { content_index, delta }
        } else {
            ModelEvent::TextDelta { content_index, delta }
        });
    }

    pub(super) fn new(provider: &str, lenient_end: bool) -> Self {
        Self {
            provider: provider.to_owned(),
            lenient_end,
            is_started: false,
            has_candidate: false,
            parts: 0,
            open: None,
            call: None,
            message_data: JsonObject::new(),
            usage: None,
            usage_text: String::new(),
            finish: None,
            detail: None,
            blocked: None,
        }
    }

    /// Decodes a chunk of a stream, or a whole response. `json` is the text of `chunk`.
    fn chunk(&mut self, chunk: &Value, json: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let owned = |value: &Value, key| some_text(value, key).map(str::to_owned);
        let (response_id, model) = (owned(chunk, "responseId"), owned(chunk, "modelVersion"));
        if !self.is_started && (response_id.is_some() || model.is_some()) {
            self.is_started = true;
            out.push(ModelEvent::ReplyStart { response_id, model });
        }
        if let Some(usage) =
            chunk.get("usageMetadata").filter(|usage| usage.as_object().is_some_and(|u| !u.is_empty()))
        {
            self.usage = Some(usage.clone());
            self.usage_text.clear();
        }
        if let Some(feedback) = chunk.get("promptFeedback")
            && let Some(reason) = some_text(feedback, "blockReason")
        {
            self.blocked = Some(reason.to_owned());
            self.detail = owned(feedback, "blockReasonMessage").or_else(|| Some(reason.to_owned()));
        }
        let candidates = chunk.get("candidates").and_then(Value::as_array);
        let first = |candidate: &&Value| candidate.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        if let Some(candidate) = candidates.and_then(|candidates| candidates.iter().find(first)) {
            self.has_candidate = true;
            let content = candidate.get("content").and_then(|content| content.get("parts")?.as_array());
            let texts = if json.contains("\"functionCall\"") { argument_texts(json) } else { Vec::new() };
            for (number, part) in content.into_iter().flatten().enumerate() {
                self.part(part, texts.get(number).cloned().flatten(), out);
            }
            if let Some(word) = some_text(candidate, "finishReason") {
                self.finish = Some(word.to_owned());
                self.detail = owned(candidate, "finishMessage").or(self.detail.take());
            }
            for key in STATE_FIELDS {
                let Some(value) = candidate.get(key).filter(|value| has_content(value)) else { continue };
                match (self.message_data.get_mut(key), value) {
                    (Some(Value::Object(known)), Value::Object(more)) if key == "citationMetadata" => {
                        add_citations(known, more);
                    }
                    _ => {
                        self.message_data.insert(key.to_owned(), value.clone());
                    }
                }
            }
        }
        match failure::find_error(chunk) {
            None => Ok(()),
            Some(_) => Err(failure::event_error(chunk, errors::read_report)),
        }
    }

    fn part(&mut self, part: &Value, args: Option<String>, out: &mut Vec<ModelEvent>) {
        // Some servers send fields that are null, and empty parts (`null`, `{}` or `{"text": null}`), which are skipped.
        let mut given = Cow::Borrowed(part);
        if part.as_object().is_some_and(|fields| fields.values().any(Value::is_null))
            && let Value::Object(fields) = given.to_mut()
        {
            fields.retain(|_, value| !value.is_null());
        }
        let part = &*given;
        if part.is_null() || part.as_object().is_some_and(JsonObject::is_empty) {
            return;
        }
        if let Some(call) = part.get("functionCall") {
            let pieces = call.get("partialArgs").and_then(Value::as_array);
            let is_piece = is_continued(call) || pieces.is_some_and(|pieces| !pieces.is_empty());
            if is_piece || some_text(call, "name").is_none() {
                self.call_piece(part, call, args, out);
                return;
            }
        }
        self.end_call(out);
        let is_state = |key: &String| key != "text" && key != "thought";
        let is_bare = part.as_object().is_some_and(|fields| !fields.keys().any(is_state));
        match text(part, "text") {
            // A text with further fields, such as a signature, is a part of its own, because a signature covers exactly the text of its
            // part.
            Some(delta) if is_bare => {
                let is_thought = part.get("thought") == Some(&Value::Bool(true));
                self.emit_text(delta.to_owned(), is_thought, out);
            }
            _ => {
                self.open = None;
                let part = without_pieces(part);
                let mut part = parts::read(&self.provider, part, args, JsonSource::Reply);
                if let Content::ToolCall(call) = &mut part.content
                    && call.args.text() == "{}"
                {
                    call.args = ToolArguments::default();
                }
                out.push(ModelEvent::Part { content_index: self.next_part(), part: Box::new(part) });
            }
        }
    }

    fn next_part(&mut self) -> usize {
        self.parts += 1;
        self.parts - 1
    }

    /// Decodes a piece of a call: its name, values of its arguments, or its end.
    fn call_piece(&mut self, part: &Value, call: &Value, args: Option<String>, out: &mut Vec<ModelEvent>) {
        self.open = None;
        if some_text(call, "name").is_some() {
            self.end_call(out);
            let content_index = self.next_part();
            let begun = parts::read(&self.provider, without_pieces(part), None, JsonSource::Reply);
            if let Content::ToolCall(call) = begun.content {
                out.push(ModelEvent::ToolCallStart { content_index, id: call.id, name: call.name });
                out.extend(
                    begun.provider_data.map(|data| ModelEvent::PartData { content_index, data: *data }),
                );
                self.call = Some((content_index, PartialArguments::default()));
            }
        }
        if let Some((_, arguments)) = &mut self.call {
            arguments.merge(call.get("args").unwrap_or(&Value::Null), args);
            let pieces = call.get("partialArgs").and_then(Value::as_array);
            pieces.into_iter().flatten().for_each(|piece| arguments.push(piece));
        }
        if !is_continued(call) {
            self.emit_call(false, out);
        }
    }

    /// Ends a call whose end Gemini did not send. Its arguments are complete if their last value is complete.
    fn end_call(&mut self, out: &mut Vec<ModelEvent>) {
        let is_cut = self.call.as_ref().is_some_and(|(_, arguments)| arguments.is_open());
        self.emit_call(is_cut, out);
    }

    fn emit_call(&mut self, is_cut: bool, out: &mut Vec<ModelEvent>) {
        if let Some((content_index, arguments)) = self.call.take() {
            let delta = if is_cut { arguments.into_cut_text() } else { arguments.into_text() };
            out.push(ModelEvent::ToolCallDelta { content_index, delta });
            out.push(ModelEvent::ToolCallEnd { content_index });
        }
    }

    fn emit_held_back(&mut self, out: &mut Vec<ModelEvent>) {
        let latest = serde_json::from_str(&std::mem::take(&mut self.usage_text)).ok();
        out.extend(latest.or(self.usage.take()).map(|raw| ModelEvent::Usage { usage: Box::new(usage(raw)) }));
        if !self.message_data.is_empty() {
            let data = ProviderData::new(self.provider.as_str(), std::mem::take(&mut self.message_data));
            out.push(ModelEvent::MessageData { data });
        }
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) {
        // If the reply ends for another reason than `STOP`, the arguments of an unfinished call may be incomplete. They are then written
        // without closing brackets, so that they do not look complete.
        if self.finish.as_deref() == Some("STOP") {
            self.end_call(out);
        } else {
            self.emit_call(true, out);
        }
        let token = self.message_data.get(TOKEN).and_then(Value::as_str);
        let has_token = token.is_some_and(|token| !token.is_empty());
        self.emit_held_back(out);
        let (reason, raw) = match (self.finish.take(), self.blocked.take()) {
            (Some(word), _) if word == "CONTINUATION" && has_token => (StopReason::Pause, Some(word)),
            (Some(word), _) => (stop_reason(&word), Some(word)),
            (None, Some(word)) => (StopReason::ContentFilter, Some(word)),
            (None, None) => (StopReason::Stop, None),
        };
        let detail = self.detail.take().filter(|_| reason != StopReason::Stop);
        out.push(ModelEvent::Stop { reason, detail, raw });
    }

    fn has_stopped(&self) -> bool {
        self.finish.is_some() || self.blocked.is_some()
    }
}

impl Decoder for GeminiDecoder {
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if event.data.trim() == "[DONE]" || self.frequent_event(event, out) {
            return Ok(());
        }
        let chunk = match failure::parse_event(event) {
            // After the finish reason only usage may follow, so malformed events are ignored.
            Err(_) if self.has_stopped() => return Ok(()),
            chunk => chunk?,
        };
        if event.event == "error" && failure::find_error(&chunk).is_none() {
            return Err(failure::event_error(&chunk, errors::read_report));
        }
        if let Value::Array(chunks) = &chunk {
            let texts: Vec<&RawValue> = serde_json::from_str(event.data).unwrap_or_default();
            let mut chunks = chunks.iter().zip(texts);
            return chunks.try_for_each(|(chunk, text)| self.chunk(chunk, text.get(), out));
        }
        if !chunk.is_object() {
            return Err(ModelError::protocol("an event of the stream is not an object").with_body(event.data));
        }
        self.chunk(&chunk, event.data, out)
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.has_stopped() || (self.lenient_end && self.has_candidate) {
            self.complete(out);
            return Ok(());
        }
        let error = if self.has_candidate {
            "the stream ended before the reply did: no `finishReason`"
        } else {
            "the stream has no reply in it"
        };
        Err(ModelError::protocol(error).with_retryable(true))
    }

    fn abandon(&mut self, out: &mut Vec<ModelEvent>) {
        self.emit_held_back(out);
    }

    fn has_ended(&self) -> bool {
        self.has_stopped()
    }

    /// Returns `false`, because there is no final event: usage may follow the finish reason.
    fn is_complete(&self) -> bool {
        false
    }

    fn body(&mut self, body: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let no_json = |error| failure::not_a_reply(body, "it is not JSON").with_source(error);
        // A stream requested without `alt=sse` is a list of chunks.
        let chunks: Vec<&RawValue> = match serde_json::from_slice::<Vec<&RawValue>>(body) {
            Ok(chunks) => chunks,
            Err(_) => vec![serde_json::from_slice(body).map_err(no_json)?],
        };
        for chunk in chunks {
            self.chunk(&serde_json::from_str(chunk.get()).map_err(no_json)?, chunk.get(), out)?;
        }
        if !self.has_candidate && self.blocked.is_none() {
            return Err(failure::not_a_reply(body, "it has no `candidates`"));
        }
        self.complete(out);
        Ok(())
    }
}

fn is_continued(call: &Value) -> bool {
    call.get("willContinue") == Some(&Value::Bool(true))
}

fn without_pieces(part: &Value) -> Value {
    let mut part = part.clone();
    if let Some(call) = part.get_mut("functionCall").and_then(Value::as_object_mut) {
        call.shift_remove("willContinue");
        call.shift_remove("partialArgs");
    }
    part
}

/// Adds the citations of a further chunk, which may repeat all earlier citations.
fn add_citations(known: &mut JsonObject, more: &JsonObject) {
    for (key, value) in more {
        match (known.get_mut(key), value) {
            (Some(Value::Array(list)), Value::Array(more)) if !more.starts_with(list) => {
                list.extend(more.iter().cloned());
            }
            _ => {
                known.insert(key.clone(), value.clone());
            }
        }
    }
}

fn has_content(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

/// Returns the JSON texts of the arguments in the first candidate of a chunk, one entry for each part. A parsed value would lose repeated
/// keys and the digits of long numbers.
fn argument_texts(json: &str) -> Vec<Option<String>> {
    #[derive(Deserialize)]
    struct RawChunk<'a> {
        #[serde(borrow)]
        candidates: Vec<RawCandidate<'a>>,
    }
    #[derive(Deserialize)]
    struct RawCandidate<'a> {
        #[serde(default)]
        index: u64,
        #[serde(borrow)]
        content: Option<RawContent<'a>>,
    }
    #[derive(Deserialize)]
    struct RawContent<'a> {
        #[serde(borrow)]
        parts: Option<Vec<Option<RawPart<'a>>>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RawPart<'a> {
        #[serde(borrow)]
        function_call: Option<RawCall<'a>>,
    }
    #[derive(Deserialize)]
    struct RawCall<'a> {
        #[serde(borrow)]
        args: Option<&'a RawValue>,
    }
    let Ok(chunk) = serde_json::from_str::<RawChunk<'_>>(json) else { return Vec::new() };
    let first = chunk.candidates.into_iter().find(|candidate| candidate.index == 0);
    let parts = first.and_then(|candidate| candidate.content?.parts).unwrap_or_default();
    let text = |part: Option<RawPart<'_>>| {
        Some(part?.function_call?.args?.get().to_owned()).filter(|text| text != "null")
    };
    parts.into_iter().map(text).collect()
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "STOP" => StopReason::Stop,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => StopReason::ContentFilter,
        other => StopReason::Other(other.to_owned()),
    }
}

/// Converts token counts. Gemini counts thoughts separately; in the result, `output` includes thoughts. Tokens that tools at the provider
/// added to the prompt count as input.
fn usage(raw: Value) -> Usage {
    let count = |key: &str| count_at(&raw, &[key]).unwrap_or_default();
    let reasoning = count("thoughtsTokenCount");
    let input = count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount"));
    let mut usage = Usage::new(input, count("candidatesTokenCount").saturating_add(reasoning));
    usage.reasoning = reasoning;
    usage.cache_read = count("cachedContentTokenCount");
    usage.total = count_at(&raw, &["totalTokenCount"]).unwrap_or(usage.total);
    usage.raw = Some(Box::new(raw));
    usage
}
