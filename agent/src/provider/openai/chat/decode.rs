//! Decodes responses of Chat Completions: streams and JSON bodies, of OpenAI and of compatible servers.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::frequent::{CallPiece, ChatChunk, ChatDelta};
use crate::message::{Content, Media, Part, ProviderData, StopReason, ToolArguments, Usage};
use crate::model::{ModelError, ModelEvent};
use crate::provider::failure;
use crate::provider::frequent::{self, Object, has_text};
use crate::provider::openai::errors;
use crate::provider::parts::{
    JsonObject, cost, count_at, data_url, media_from_url, merge_pieces, some_text, take_text, text,
};
use crate::provider::protocol::Decoder;
use crate::provider::sse::SseEvent;

/// The fields in which servers put the model's thinking, in order of preference.
pub(super) const THINKING_FIELDS: [&str; 4] =
    ["reasoning_content", "reasoning", "reasoning_text", "thinking"];

/// The fields of a message that are kept as its provider data. Some servers require the first three back.
const STATE_FIELDS: [&str; 5] =
    ["reasoning_details", "extra_content", "thought_signature", "annotations", "audio"];

/// Decodes one response of Chat Completions. The decoder follows OpenAI's reference. Where compatible servers differ from the reference,
/// the decoder follows recorded traffic of these servers.
pub(super) struct ChatDecoder {
    provider: String,
    is_started: bool,
    text: Option<usize>,
    thinking: Option<usize>,
    calls: Vec<OpenCall>,
    /// The calls of other kinds than functions, with their indexes.
    other_calls: Vec<(Option<u64>, JsonObject)>,
    by_id: HashMap<String, usize>,
    by_index: HashMap<u64, usize>,
    parts: usize,
    refusal: String,
    message_data: JsonObject,
    usage: Option<Value>,
    finish: Option<String>,
    /// Whether a choice was received. Without a choice, the end of the stream is not the end of a reply.
    has_choice: bool,
    is_done: bool,
}

#[derive(Default)]
struct OpenCall {
    id: String,
    name: String,
    /// The server's index of the call. Some servers leave the index out of the first piece.
    index: Option<u64>,
    content_index: Option<usize>,
    /// Arguments that arrived before the name.
    early: String,
    has_arguments: bool,
    data: JsonObject,
}

impl ChatDecoder {
    /// Decodes the most frequent event: a [`ChatChunk`] that neither starts a reply nor starts a call. Returns `false`, and changes
    /// nothing, for every other event.
    fn frequent_event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> bool {
        let Some(chunk) = frequent::read::<ChatChunk<'_>>(event) else { return false };
        let begins = !self.is_started && (has_text(chunk.id.as_ref()) || has_text(chunk.model.as_ref()));
        let [Object(choice)] = chunk.choices;
        if begins || choice.index != 0 || chunk.object.is_some_and(|object| object.as_str() == "error") {
            return false;
        }
        let Object(ChatDelta { content, reasoning_content, reasoning, tool_calls, .. }) = choice.delta;
        let call = match tool_calls {
            None => None,
            Some([Object(CallPiece { index, function: Object(function) })]) => {
                // The piece has no id and no name, so it must belong to a call that has already started.
                let call = self.by_index.get(&index).and_then(|at| self.calls.get_mut(*at));
                let Some(call) = call.filter(|call| call.content_index.is_some()) else { return false };
                Some((call, function.arguments))
            }
        };
        let content_index = call.map(|(call, arguments)| {
            call.has_arguments |= !arguments.as_str().is_empty();
            (call.content_index.unwrap_or_default(), arguments)
        });
        self.has_choice = true;
        let thinking = [("reasoning_content", reasoning_content), ("reasoning", reasoning)];
        if let Some((field, Some(text))) = thinking.into_iter().find(|(_, text)| has_text(text.as_ref())) {
            self.emit_thinking(text.as_str(), Some(field), out);
        }
        if let Some(text) = content {
            self.emit_text(text.into_string(), out);
        }
        if let Some((content_index, arguments)) = content_index {
            out.push(ModelEvent::ToolCallDelta { content_index, delta: arguments.into_string() });
        }
        true
    }

    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            is_started: false,
            text: None,
            thinking: None,
            calls: Vec::new(),
            other_calls: Vec::new(),
            by_id: HashMap::new(),
            by_index: HashMap::new(),
            parts: 0,
            refusal: String::new(),
            message_data: Map::new(),
            usage: None,
            finish: None,
            has_choice: false,
            is_done: false,
        }
    }

    fn chunk(&mut self, chunk: &Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let owned = |key| some_text(chunk, key).map(str::to_owned);
        let (response_id, model) = (owned("id"), owned("model"));
        if !self.is_started && (response_id.is_some() || model.is_some()) {
            self.is_started = true;
            out.push(ModelEvent::ReplyStart { response_id, model });
        }
        let choices = chunk.get("choices").and_then(Value::as_array);
        // Only one choice was requested, so choices with an index other than 0 are ignored.
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let numbered = choices.and_then(|choices| choices.iter().find(first));
        // The only choice of a whole response is the reply, whatever its index.
        let only = || {
            choices.and_then(|list| list.first().filter(|c| list.len() == 1 && c.get("message").is_some()))
        };
        if let Some(choice) = numbered.or_else(only) {
            self.has_choice = true;
            if let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()) {
                self.message(delta, false, out);
            } else if let Some(message) = choice.get("message") {
                self.message(message, true, out);
            }
            if let Some(word) = some_text(choice, "finish_reason") {
                self.finish = Some(word.to_owned());
            }
            self.read_usage(choice.get("usage"));
        }
        self.read_usage(chunk.get("x_groq").and_then(|groq| groq.get("usage")));
        self.read_usage(chunk.get("usage"));
        match find_error(chunk) {
            None => Ok(()),
            Some(error) => Err(failure::event_error(&error, errors::read_report)),
        }
    }

    fn read_usage(&mut self, usage: Option<&Value>) {
        if let Some(usage) = usage.filter(|usage| usage.as_object().is_some_and(|usage| !usage.is_empty())) {
            self.usage = Some(usage.clone());
        }
    }

    fn message(&mut self, message: &Value, is_whole: bool, out: &mut Vec<ModelEvent>) {
        let thinking = THINKING_FIELDS.iter().find_map(|field| Some((*field, some_text(message, field)?)));
        let details = message.get("reasoning_details").and_then(Value::as_array);
        if let Some((field, text)) = thinking {
            self.emit_thinking(text, Some(field), out);
        } else {
            for detail in details.into_iter().flatten() {
                let text = some_text(detail, "text").or_else(|| some_text(detail, "summary"));
                self.emit_thinking(text.unwrap_or_default(), None, out);
            }
        }
        match message.get("content") {
            Some(Value::String(text)) => self.emit_text(text.as_str(), out),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.part(part, out)),
            _ => {}
        }
        let images = message.get("images").and_then(Value::as_array);
        images.into_iter().flatten().for_each(|image| self.image(image, out));
        self.refusal.push_str(text(message, "refusal").unwrap_or_default());
        self.record_state(message, is_whole);
        let calls = message.get("tool_calls").and_then(Value::as_array);
        for (position, call) in (0u64..).zip(calls.into_iter().flatten()) {
            let index = if is_whole { Some(position) } else { call.get("index").and_then(Value::as_u64) };
            self.call(call, index, out);
        }
        // `function_call` is the predecessor of `tool_calls`, for a single call.
        if let Some(call) = message.get("function_call")
            && (some_text(call, "name").is_some() || !self.calls.is_empty())
        {
            self.call(&serde_json::json!({ "function": call }), Some(0), out);
        }
    }

    fn emit_text(&mut self, delta: impl AsRef<str> + Into<String>, out: &mut Vec<ModelEvent>) {
        if delta.as_ref().is_empty() {
            return;
        }
        let content_index = *self.text.get_or_insert_with(|| {
            self.parts += 1;
            self.parts - 1
        });
        out.push(ModelEvent::TextDelta { content_index, delta: delta.into() });
    }

    fn emit_thinking(&mut self, delta: &str, field: Option<&str>, out: &mut Vec<ModelEvent>) {
        if delta.is_empty() {
            return;
        }
        let is_new = self.thinking.is_none();
        let content_index = *self.thinking.get_or_insert_with(|| {
            self.parts += 1;
            self.parts - 1
        });
        out.push(ModelEvent::ThinkingDelta { content_index, delta: delta.to_owned() });
        // Thinking is sent back in the field in which it arrived.
        if let (true, Some(field)) = (is_new, field) {
            let data = ProviderData::new(self.provider.as_str(), serde_json::json!({ "field": field }));
            out.push(ModelEvent::PartData { content_index, data });
        }
    }

    fn part(&mut self, part: &Value, out: &mut Vec<ModelEvent>) {
        match text(part, "type") {
            Some("text" | "output_text") => self.emit_text(text(part, "text").unwrap_or_default(), out),
            Some("refusal") => self.refusal.push_str(text(part, "refusal").unwrap_or_default()),
            Some("thinking" | "reasoning") => match part.get("thinking").or_else(|| part.get("text")) {
                Some(Value::String(thought)) => self.emit_thinking(thought, None, out),
                Some(Value::Array(thoughts)) => {
                    for thought in thoughts {
                        self.emit_thinking(text(thought, "text").unwrap_or_default(), None, out);
                    }
                }
                _ => {}
            },
            _ => self.emit_part(Part::opaque(self.provider.as_str(), part.clone()), out),
        }
    }

    fn emit_part(&mut self, part: Part, out: &mut Vec<ModelEvent>) {
        out.push(ModelEvent::Part { content_index: self.parts, part: Box::new(part) });
        self.parts += 1;
    }

    /// Decodes an image that the model generated. `OpenRouter` sends images in a separate field, not in the content. The other fields of an
    /// image are sent back.
    fn image(&mut self, image: &Value, out: &mut Vec<ModelEvent>) {
        let mut rest = image.clone();
        let url = rest.get_mut("image_url").and_then(Value::as_object_mut);
        let part = match url.and_then(|url| take_text(url, "url")) {
            Some(url) => {
                let media = media_from_url(&url);
                let is_same = data_url(&media, "image/png").as_deref() == Some(url.as_str());
                let media = if is_same { media } else { Media::url(url) };
                let data = ProviderData::new(self.provider.as_str(), serde_json::json!({ "image": rest }));
                Part::new(Content::Image(media)).with_provider_data(data)
            }
            // The empty provider data makes the encoder write the image into the list `images`, not into the list `content`.
            None => Part::opaque(self.provider.as_str(), rest)
                .with_provider_data(ProviderData::new(self.provider.as_str(), Map::new())),
        };
        self.emit_part(part, out);
    }

    fn record_state(&mut self, message: &Value, is_whole: bool) {
        for key in STATE_FIELDS {
            let Some(value) = message.get(key) else { continue };
            let has_content = match value {
                Value::Null => false,
                Value::Array(list) => !list.is_empty(),
                Value::Object(map) => map.values().any(|value| value.as_str() != Some("") && *value != 0),
                _ => true,
            };
            if !has_content {
                continue;
            }
            match (self.message_data.get_mut(key), value) {
                (Some(Value::Array(list)), Value::Array(more)) if key == "reasoning_details" && !is_whole => {
                    for detail in more {
                        merge_detail(list, detail);
                    }
                }
                (Some(Value::Array(list)), Value::Array(more)) => list.extend(more.iter().cloned()),
                (Some(Value::Object(known)), Value::Object(more)) if key == "audio" => {
                    merge_pieces(known, more, &["data", "transcript"]);
                }
                _ => {
                    self.message_data.insert(key.to_owned(), value.clone());
                }
            }
        }
    }

    /// Keeps a piece of a call that is not a function call. Returns `false` for any other piece.
    fn other_call(&mut self, piece: &Value, index: Option<u64>) -> bool {
        let is_other = piece.get("function").is_none_or(Value::is_null);
        let Some(fields) = piece.as_object().filter(|_| is_other) else { return false };
        let is_same = |call: &JsonObject| {
            some_text(piece, "id").is_none_or(|id| call.get("id").is_some_and(|known| known == id))
        };
        // Pieces follow each other closely, so only the latest calls are searched.
        let mut latest = self.other_calls.iter_mut().rev().take(128);
        if let Some((_, call)) = latest.find(|(at, call)| *at == index && is_same(call)) {
            merge_pieces(call, fields, &["input"]);
        } else if matches!(text(piece, "type"), None | Some("" | "function")) {
            return false;
        } else {
            self.other_calls.push((index, fields.clone()));
        }
        true
    }

    /// Decodes a call or a piece of a call.
    fn call(&mut self, piece: &Value, index: Option<u64>, out: &mut Vec<ModelEvent>) {
        if self.other_call(piece, index) {
            return;
        }
        let function = piece.get("function").unwrap_or(&Value::Null);
        let (id, name) = (text(piece, "id").unwrap_or_default(), text(function, "name").unwrap_or_default());
        let at = self.find_call(index, id, name);
        let Some(call) = self.calls.get_mut(at) else { return };
        if call.id.is_empty() && !id.is_empty() {
            id.clone_into(&mut call.id);
            let last = self.by_id.entry(call.id.clone()).or_insert(at);
            *last = at.max(*last);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        let arguments = match function.get("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            // Some servers send the arguments as an object, which is converted to text.
            Some(value) => ToolArguments::from(value.clone()).text().to_owned(),
        };
        call.has_arguments |= !arguments.is_empty();
        let state = piece.get("extra_content").filter(|state| !state.is_null());
        let is_started = call.content_index.is_some();
        let mut has_new_state = state.is_some();
        call.data.extend(state.map(|state| ("extra_content".to_owned(), state.clone())));
        if call.name.is_empty() {
            call.early.push_str(&arguments);
            return;
        }
        let content_index = *call.content_index.get_or_insert_with(|| {
            self.parts += 1;
            self.parts - 1
        });
        let mut delta = arguments;
        if !is_started {
            let (id, name) = (call.id.clone(), call.name.clone());
            out.push(ModelEvent::ToolCallStart { content_index, id, name });
            delta = std::mem::take(&mut call.early) + &delta;
            has_new_state = !call.data.is_empty();
        }
        out.push(ModelEvent::ToolCallDelta { content_index, delta });
        if has_new_state {
            let data = ProviderData::new(self.provider.as_str(), call.data.clone());
            out.push(ModelEvent::PartData { content_index, data });
        }
    }

    /// Returns the position in `calls` of the call to which a piece belongs. If the piece starts a call, adds the call.
    fn find_call(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let by_id = self.by_id.get(id).copied();
        let by_index = index.and_then(|index| self.by_index.get(&index).copied());
        // Some servers give every call of a reply the index 0. For these servers, a name with a different id starts a new call. Without
        // ids, a different name that follows arguments starts a new call.
        let is_other = |at: &usize| {
            let Some(known) = self.calls.get(*at).filter(|_| !name.is_empty()) else { return false };
            let is_next = known.has_arguments && !known.name.is_empty() && known.name != name;
            if id.is_empty() { is_next } else { !known.id.is_empty() && known.id != id }
        };
        let found = match by_index {
            Some(at) if is_other(&at) => by_id,
            Some(at) => Some(at),
            // A piece without an index, an id and a name continues the last call.
            None if index.is_none() && name.is_empty() && id.is_empty() => self.calls.len().checked_sub(1),
            None if index.is_none() => by_id,
            // Earlier pieces of the call may lack an index, so a call without an index is continued.
            None => {
                let unnumbered = |at: &usize| self.calls.get(*at).is_some_and(|call| call.index.is_none());
                let last = || self.calls.len().checked_sub(1).filter(|_| name.is_empty() && id.is_empty());
                by_id.or_else(last).filter(unnumbered)
            }
        };
        let at = found.unwrap_or_else(|| {
            self.calls.push(OpenCall::default());
            self.calls.len() - 1
        });
        if let (Some(index), Some(call)) = (index, self.calls.get_mut(at))
            && call.index.is_none()
        {
            call.index = Some(index);
            self.by_index.insert(index, at);
        }
        at
    }

    fn emit_held_back(&mut self, out: &mut Vec<ModelEvent>) {
        if !self.refusal.is_empty() {
            let part = Part::refusal(std::mem::take(&mut self.refusal));
            self.emit_part(part, out);
        }
        if !self.message_data.is_empty() {
            let data = ProviderData::new(self.provider.as_str(), std::mem::take(&mut self.message_data));
            out.push(ModelEvent::MessageData { data });
        }
        if let Some(raw) = self.usage.take() {
            out.push(ModelEvent::Usage { usage: Box::new(usage(raw)) });
        }
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let reason = stop_reason(self.finish.as_deref());
        let is_nameless =
            |call: &OpenCall| call.name.is_empty() && (call.has_arguments || !call.id.is_empty());
        // With any other stop reason, the reply may have been cut before the name.
        if matches!(reason, StopReason::Stop | StopReason::ToolUse) && self.calls.iter().any(is_nameless) {
            return Err(ModelError::protocol("the reply has a call without the name of a function"));
        }
        for (_, mut call) in std::mem::take(&mut self.other_calls) {
            call.shift_remove("index");
            self.emit_part(Part::opaque(self.provider.as_str(), Value::Object(call)), out);
        }
        let refusal = Some(self.refusal.clone()).filter(|refusal| !refusal.is_empty());
        self.emit_held_back(out);
        let reason = match reason {
            StopReason::Stop if refusal.is_some() => StopReason::ContentFilter,
            reason => reason,
        };
        out.push(ModelEvent::Stop { reason, detail: refusal, raw: self.finish.take() });
        Ok(())
    }
}

impl Decoder for ChatDecoder {
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.is_done {
            return Ok(());
        }
        if event.data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        if self.frequent_event(event, out) {
            return Ok(());
        }
        let chunk = match failure::parse_event(event) {
            // After the finish reason, malformed events are ignored, because only usage may follow. Malformed events with other names than
            // `message` and `error` are always ignored, because they are keep-alive events.
            Err(_) if self.finish.is_some() || !matches!(event.event, "message" | "error") => return Ok(()),
            chunk => chunk?,
        };
        if event.event == "error" && failure::find_error(&chunk).is_none() {
            return Err(failure::event_error(&serde_json::json!({ "error": chunk }), errors::read_report));
        }
        match &chunk {
            Value::Array(chunks) => chunks.iter().try_for_each(|chunk| self.chunk(chunk, out)),
            chunk => self.chunk(chunk, out),
        }
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.has_ended() {
            return self.complete(out);
        }
        let error = if (self.has_choice || self.is_started) && !self.is_done {
            "the stream ended before the reply did: no `finish_reason`, no `[DONE]`"
        } else {
            "the stream has no reply in it"
        };
        Err(ModelError::protocol(error).with_retryable(true))
    }

    fn abandon(&mut self, out: &mut Vec<ModelEvent>) {
        self.emit_held_back(out);
    }

    fn has_ended(&self) -> bool {
        self.has_choice && (self.is_done || self.finish.is_some())
    }

    fn is_complete(&self) -> bool {
        self.is_done
    }

    fn body(&mut self, body: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| failure::not_a_reply(body, "it is not JSON").with_source(error))?;
        // Some servers put an error in a list, so the first item of a list is decoded.
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(&value);
        self.chunk(value, out)?;
        if !self.has_choice {
            return Err(failure::not_a_reply(body, "it has no `choices`"));
        }
        self.complete(out)
    }
}

/// Merges a piece into `OpenRouter`'s reasoning details. A piece extends the last block if both have the same type and do not differ in
/// id, data or signature. Text after a signature starts a new block.
fn merge_detail(list: &mut Vec<Value>, piece: &Value) {
    let is_continued = |last: &JsonObject| {
        let both = |key: &str| Some((last.get(key)?.as_str()?, some_text(piece, key)?));
        let is_same = |key: &str| both(key).is_none_or(|(one, other)| one == other);
        let adds_text = some_text(piece, "text").is_some() || some_text(piece, "summary").is_some();
        let is_signed =
            last.get("signature").is_some_and(|value| value.as_str().is_some_and(|s| !s.is_empty()));
        last.get("type").and_then(Value::as_str) == text(piece, "type")
            && is_same("id")
            && is_same("data")
            && is_same("signature")
            && !(is_signed && adds_text)
    };
    let before = list.last_mut().and_then(Value::as_object_mut).filter(|before| is_continued(before));
    let (Some(before), Some(piece)) = (before, piece.as_object()) else {
        list.push(piece.clone());
        return;
    };
    for (key, value) in piece {
        match (before.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) if key == "text" || key == "summary" => {
                text.push_str(more);
            }
            (Some(Value::Null) | None, _) => {
                before.insert(key.clone(), value.clone());
            }
            (Some(Value::String(known)), Value::String(_)) if known.is_empty() => {
                before.insert(key.clone(), value.clone());
            }
            _ => {}
        }
    }
}

/// Finds the error in a chunk: in the chunk itself, in its field `x_groq` (Groq) or in its first choice (`OpenRouter`). A chunk whose
/// `object` is `error` is an error itself (vLLM).
fn find_error(chunk: &Value) -> Option<Value> {
    let reported = |value: &Value| failure::find_error(value).cloned();
    let of_choice = || reported(chunk.get("choices")?.get(0)?);
    if reported(chunk).is_some() || text(chunk, "object") == Some("error") {
        return Some(chunk.clone());
    }
    let error = chunk.get("x_groq").and_then(reported).or_else(of_choice)?;
    Some(serde_json::json!({ "error": error }))
}

fn stop_reason(word: Option<&str>) -> StopReason {
    match word {
        None | Some("stop" | "eos" | "end_turn" | "stop_sequence") => StopReason::Stop,
        Some("length" | "max_tokens" | "model_length") => StopReason::MaxTokens,
        Some("tool_calls" | "function_call" | "tool_use") => StopReason::ToolUse,
        Some("content_filter") => StopReason::ContentFilter,
        Some("error") => StopReason::Error,
        Some(other) => StopReason::Other(other.to_owned()),
    }
}

/// Converts token counts. In the result, cached input is part of the input, and reasoning is part of the output. Some servers (xAI) count
/// reasoning separately, so that their input, output and reasoning add up to the total. In this case, reasoning is added to the output.
fn usage(raw: Value) -> Usage {
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| count_at(&raw, path)).unwrap_or_default();
    let input = first(&[&["prompt_tokens"], &["input_tokens"]]);
    let completion = first(&[&["completion_tokens"], &["output_tokens"]]);
    let reasoning = first(&[
        &["completion_tokens_details", "reasoning_tokens"],
        &["output_tokens_details", "reasoning_tokens"],
        &["reasoning_tokens"],
    ]);
    let total = count_at(&raw, &["total_tokens"]);
    let is_separate =
        reasoning > 0 && total == input.checked_add(completion).and_then(|sum| sum.checked_add(reasoning));
    let output = if is_separate { completion.saturating_add(reasoning) } else { completion };
    let mut usage = Usage::new(input, output);
    usage.reasoning = reasoning;
    usage.cache_read = first(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["input_tokens_details", "cached_tokens"],
        &["prompt_cache_hit_tokens"],
        &["num_cached_tokens"],
        &["cached_tokens"],
        &["cache_read_input_tokens"],
    ]);
    usage.cache_write = first(&[
        &["prompt_tokens_details", "cache_write_tokens"],
        &["input_tokens_details", "cache_write_tokens"],
        &["cache_creation_input_tokens"],
    ]);
    usage.total = total.unwrap_or(usage.total);
    usage.cost = cost(&raw);
    usage.raw = Some(Box::new(raw));
    usage
}
