//! Decodes responses of the Responses API: streams and JSON bodies.

use serde_json::Value;

use super::frequent::ItemDelta;
use super::items::{self, PartList};
use crate::message::{Content, Part, ProviderData, StopReason, Usage};
use crate::model::{ModelError, ModelEvent};
use crate::provider::failure;
use crate::provider::frequent;
use crate::provider::openai::errors;
use crate::provider::parts::{JsonSource, cost, count_at, some_text, text};
use crate::provider::protocol::Decoder;
use crate::provider::sse::SseEvent;

/// Decodes one response of the Responses API. A completed item (`output_item.done`) replaces its deltas.
pub(super) struct ResponsesDecoder {
    provider: String,
    items: Vec<OpenItem>,
    parts: usize,
    is_refused: bool,
    /// The refusals of unfinished items. The key is the position of the item in `items`, and the refusal's `content_index`.
    refusals: Vec<((usize, u64), String)>,
    is_started: bool,
    end: Option<ResponseEnd>,
}

struct OpenItem {
    output_index: Option<u64>,
    id: String,
    kind: String,
    parts: Vec<EmittedPart>,
    /// The arguments in `output_item.added`. Some servers repeat them in deltas, so they are used only if no delta follows.
    early: String,
    /// Whether `output_item.added` announced the item. Otherwise the item starts with the first event about it.
    is_added: bool,
    is_done: bool,
    /// Whether the completed item has a refusal.
    is_refused: bool,
}

struct EmittedPart {
    content_index: usize,
    /// The list that contains the part, and the part's index in it. `None` until an event contains both.
    position: Option<(PartList, u64)>,
    emitted: String,
}

struct ResponseEnd {
    reason: StopReason,
    detail: Option<String>,
    raw: Option<String>,
    usage: Option<Usage>,
}

/// The lists of parts in an item, each with the event field that contains a part's index in the list.
const CONTENT: (PartList, &str) = (PartList::Content, "content_index");
const SUMMARY: (PartList, &str) = (PartList::Summary, "summary_index");

const END_WORDS: [&str; 3] = ["failed", "incomplete", "cancelled"];

impl ResponsesDecoder {
    /// Decodes the most frequent events: deltas of text, reasoning or arguments for a part that has started. Returns `None`, and changes
    /// nothing, for every other event.
    fn frequent_event(&mut self, event: &SseEvent<'_>) -> Option<ModelEvent> {
        let event: ItemDelta<'_> = frequent::read(event)?;
        let position = match event.kind.as_str() {
            "response.output_text.delta" | "response.reasoning_text.delta" => {
                Some((PartList::Content, event.content_index?))
            }
            "response.reasoning_summary_text.delta" => Some((PartList::Summary, event.summary_index?)),
            "response.function_call_arguments.delta" => None,
            _ => return None,
        };
        let item = self.items.iter_mut().rfind(|item| item.output_index == Some(event.output_index))?;
        let part = match position {
            Some(_) => item.parts.iter_mut().find(|part| part.position == position)?,
            None => item.parts.first_mut()?,
        };
        if item.is_done || event.delta.as_str().is_empty() {
            return None;
        }
        part.emitted.push_str(event.delta.as_str());
        Some(delta_event(&item.kind, part.content_index, event.delta.into_string()))
    }

    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            items: Vec::new(),
            parts: 0,
            is_refused: false,
            refusals: Vec::new(),
            is_started: false,
            end: None,
        }
    }

    /// Returns the position of the item to which an event belongs. The event's `output_index` decides, because ids may differ between
    /// events. An event without an index belongs to the item with its id, or else to the last unfinished item that was announced with its
    /// kind. An event without index and id belongs to the last unfinished item.
    fn find_item(&self, event: &Value, id: Option<&str>, kind: &str) -> Option<usize> {
        if let Some(index) = event.get("output_index").and_then(Value::as_u64) {
            return self.items.iter().rposition(|item| item.output_index == Some(index));
        }
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return self.items.iter().rposition(|item| !item.is_done);
        };
        let by_id = self.items.iter().rposition(|item| item.id == id);
        by_id.or_else(|| {
            self.items.iter().rposition(|item| item.is_added && !item.is_done && item.kind == kind)
        })
    }

    fn find_or_start_item(&mut self, event: &Value, kind: &str) -> usize {
        let id = text(event, "item_id").unwrap_or_default();
        self.find_item(event, Some(id), kind).unwrap_or_else(|| {
            self.push_item(event.get("output_index").and_then(Value::as_u64), id, kind);
            self.items.len() - 1
        })
    }

    fn push_item(&mut self, output_index: Option<u64>, id: &str, kind: &str) {
        let (id, kind) = (id.to_owned(), kind.to_owned());
        let (parts, early) = (Vec::new(), String::new());
        let (is_added, is_done, is_refused) = (false, false, false);
        self.items.push(OpenItem { output_index, id, kind, parts, early, is_added, is_done, is_refused });
    }

    fn start_item(&mut self, event: &Value, out: &mut Vec<ModelEvent>) {
        let item = event.get("item").unwrap_or(&Value::Null);
        let (id, kind) = (text(item, "id").unwrap_or_default(), text(item, "type").unwrap_or_default());
        self.push_item(event.get("output_index").and_then(Value::as_u64), id, kind);
        let at = self.items.len() - 1;
        if let Some(begun) = self.items.last_mut() {
            begun.is_added = true;
            text(item, "arguments").unwrap_or_default().clone_into(&mut begun.early);
        }
        match kind {
            "reasoning" => {
                self.find_or_start_part(at, None, out);
            }
            "function_call" => {
                let (Some(id), Some(name)) = (text(item, "call_id"), some_text(item, "name")) else { return };
                let content_index = self.next_part(at, None);
                out.push(ModelEvent::ToolCallStart {
                    content_index,
                    id: id.to_owned(),
                    name: name.to_owned(),
                });
            }
            "message" => {}
            _ => {
                let part = items::read(&self.provider, item.clone(), JsonSource::Reply).into_iter().next();
                if let Some(part) = part.filter(|part| matches!(part.content, Content::ProviderTool(_))) {
                    let content_index = self.next_part(at, None);
                    out.push(ModelEvent::Part { content_index, part: Box::new(part) });
                }
            }
        }
    }

    fn next_part(&mut self, at: usize, position: Option<(PartList, u64)>) -> usize {
        let content_index = self.parts;
        self.parts += 1;
        if let Some(item) = self.items.get_mut(at) {
            item.parts.push(EmittedPart { content_index, position, emitted: String::new() });
        }
        content_index
    }

    fn find_or_start_part(
        &mut self,
        at: usize,
        position: Option<(PartList, u64)>,
        out: &mut Vec<ModelEvent>,
    ) -> usize {
        let Some(item) = self.items.get_mut(at) else { return 0 };
        if let Some(found) = item.parts.iter().position(|part| part.position == position) {
            return found;
        }
        if let [only] = &mut item.parts[..]
            && only.position.is_none()
            && item.kind == "reasoning"
        {
            only.position = position;
            return 0;
        }
        let is_reasoning = item.kind == "reasoning";
        let content_index = self.next_part(at, position);
        out.push(if is_reasoning {
            ModelEvent::ThinkingStart { content_index }
        } else {
            ModelEvent::TextStart { content_index }
        });
        self.items.get(at).map_or(0, |item| item.parts.len() - 1)
    }

    fn emit_delta(&mut self, at: usize, number: usize, delta: &str, out: &mut Vec<ModelEvent>) {
        let Some(item) = self.items.get_mut(at) else { return };
        let Some(part) = item.parts.get_mut(number).filter(|_| !item.is_done && !delta.is_empty()) else {
            return;
        };
        part.emitted.push_str(delta);
        out.push(delta_event(&item.kind, part.content_index, delta.to_owned()));
    }

    fn part_delta(
        &mut self,
        event: &Value,
        kind: &str,
        (position, key): (PartList, &str),
        out: &mut Vec<ModelEvent>,
    ) {
        let Some(delta) = some_text(event, "delta") else { return };
        let at = self.find_or_start_item(event, kind);
        if self.items.get(at).is_some_and(|item| item.is_done) {
            return;
        }
        let index = event.get(key).and_then(Value::as_u64).unwrap_or_default();
        let number = self.find_or_start_part(at, Some((position, index)), out);
        self.emit_delta(at, number, delta, out);
    }

    /// Emits the rest of a completed text, after the deltas. Without deltas, the rest is the whole text.
    fn complete_text(
        &mut self,
        event: &Value,
        kind: &str,
        (position, key): (PartList, &str),
        whole: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) {
        let Some(whole) = whole.filter(|whole| !whole.is_empty()) else { return };
        let at = self.find_or_start_item(event, kind);
        if self.items.get(at).is_some_and(|item| item.is_done) {
            return;
        }
        let index = event.get(key).and_then(Value::as_u64).unwrap_or_default();
        let number = if kind == "function_call" {
            0
        } else {
            self.find_or_start_part(at, Some((position, index)), out)
        };
        let emitted = self.items.get(at).and_then(|item| item.parts.get(number));
        let rest =
            emitted.and_then(|part| whole.strip_prefix(part.emitted.as_str())).unwrap_or_default().to_owned();
        self.emit_delta(at, number, &rest, out);
    }

    fn complete_part(&mut self, event: &Value, out: &mut Vec<ModelEvent>) {
        let Some(part) = event.get("part") else { return };
        let part_text = text(part, "text");
        match text(part, "type") {
            Some("output_text") => self.complete_text(event, "message", CONTENT, part_text, out),
            Some("reasoning_text") => self.complete_text(event, "reasoning", CONTENT, part_text, out),
            Some("summary_text") => self.complete_text(event, "reasoning", SUMMARY, part_text, out),
            Some("refusal") => self.record_refusal(event, text(part, "refusal").unwrap_or_default(), true),
            _ => {}
        }
    }

    /// Records a refusal. The whole refusal is emitted when its item is done. If the item does not contain the refusal, or the response
    /// ends before the item is done, the recorded text is emitted at the end of the response.
    fn record_refusal(&mut self, event: &Value, words: &str, is_whole: bool) {
        let at = self.find_or_start_item(event, "message");
        let index = event.get("content_index").and_then(Value::as_u64).unwrap_or_default();
        match self.refusals.iter_mut().find(|(position, _)| *position == (at, index)) {
            Some((_, refusal)) if is_whole => words.clone_into(refusal),
            Some((_, refusal)) => refusal.push_str(words),
            None => self.refusals.push(((at, index), words.to_owned())),
        }
    }

    fn emit_refusals(&mut self, out: &mut Vec<ModelEvent>) {
        for ((at, _), refusal) in std::mem::take(&mut self.refusals) {
            if refusal.is_empty() || self.items.get(at).is_some_and(|item| item.is_refused) {
                continue;
            }
            self.is_refused = true;
            out.push(ModelEvent::Part { content_index: self.parts, part: Box::new(Part::refusal(refusal)) });
            self.parts += 1;
        }
    }

    fn complete_item(&mut self, at: usize, value: &Value, out: &mut Vec<ModelEvent>) {
        let parts = items::read(&self.provider, value.clone(), JsonSource::Reply);
        let Some(item) = self.items.get_mut(at).filter(|item| !item.is_done) else { return };
        item.is_done = true;
        let mut emitted_parts = std::mem::take(&mut item.parts);
        let emitted_kind = item.kind.clone();
        let positions = items::part_positions(value);
        for (number, mut part) in parts.into_iter().enumerate() {
            let position = positions.get(number).copied().unwrap_or((PartList::Content, number as u64));
            let found = emitted_parts.iter().position(|part| part.position == Some(position));
            let found = found.or_else(|| emitted_parts.iter().position(|part| part.position.is_none()));
            // An emitted part keeps its kind. A completed part of another kind becomes a new part.
            let found = found.filter(|_| items::is_of_kind(&part, &emitted_kind));
            let Some(EmittedPart { content_index, emitted, .. }) = found.map(|at| emitted_parts.remove(at))
            else {
                let content_index = self.parts;
                self.parts += 1;
                self.record_part(at, content_index);
                out.push(ModelEvent::Part { content_index, part: Box::new(part) });
                continue;
            };
            self.record_part(at, content_index);
            out.extend(items::missing_delta(&mut part, &emitted, content_index));
            out.push(ModelEvent::Part { content_index, part: Box::new(part) });
        }
        // The rest of `emitted_parts` is not in the completed item, and stays as emitted.
        let refused = |value: &Value| some_text(value, "refusal").is_some();
        let content = value.get("content").and_then(Value::as_array);
        let is_refused = content.is_some_and(|content| content.iter().any(refused));
        self.is_refused |= is_refused;
        if let Some(item) = self.items.get_mut(at) {
            item.is_refused = is_refused;
        }
    }

    fn record_part(&mut self, at: usize, content_index: usize) {
        if let Some(item) = self.items.get_mut(at) {
            item.parts.push(EmittedPart { content_index, position: None, emitted: String::new() });
        }
    }

    /// Completes items from `output`, the item list of the completed response. Adds items and state that only this list contains.
    fn reconcile(&mut self, output: &[Value], out: &mut Vec<ModelEvent>) {
        // An item without a known id or index is found by its position, if no item is missing.
        let is_whole = self.items.len() == output.len();
        for (index, value) in (0u64..).zip(output) {
            let (id, kind) = (text(value, "id").unwrap_or_default(), text(value, "type").unwrap_or_default());
            let by_id =
                self.items.iter().position(|item| !id.is_empty() && item.id == id && item.kind == kind);
            let by_index =
                || self.items.iter().position(|item| item.output_index == Some(index) && item.kind == kind);
            let in_order = || {
                let at = usize::try_from(index).ok().filter(|_| is_whole)?;
                self.items.get(at).filter(|item| item.output_index.is_none() && item.kind == kind).map(|_| at)
            };
            match by_id.or_else(by_index).or_else(in_order) {
                Some(at) if self.items.get(at).is_some_and(|item| !item.is_done) => {
                    self.complete_item(at, value, out);
                }
                Some(at) => self.emit_late_state(at, value, out),
                None => {
                    self.push_item(None, id, kind);
                    self.complete_item(self.items.len() - 1, value, out);
                }
            }
        }
    }

    /// Emits encrypted reasoning that was received only in the last event.
    fn emit_late_state(&mut self, at: usize, value: &Value, out: &mut Vec<ModelEvent>) {
        let first = self.items.get(at).and_then(|item| item.parts.first());
        if let (Some(part), Some(_), Some("reasoning")) =
            (first, some_text(value, "encrypted_content"), text(value, "type"))
        {
            let data = ProviderData::new(self.provider.as_str(), value.clone());
            out.push(ModelEvent::PartData { content_index: part.content_index, data });
        }
    }

    fn start_reply(&mut self, response: &Value, out: &mut Vec<ModelEvent>) {
        let owned = |key| some_text(response, key).map(str::to_owned);
        let (response_id, model) = (owned("id"), owned("model"));
        if !self.is_started && (response_id.is_some() || model.is_some()) {
            self.is_started = true;
            out.push(ModelEvent::ReplyStart { response_id, model });
        }
    }

    /// Ends the reply, or returns its failure. `event` contains the response, or is the response itself.
    ///
    /// The event type `response.failed` takes precedence over the response's status. If the response has no status, the event's type says
    /// how the response ended.
    fn finish_response(
        &mut self,
        event: &Value,
        kind: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let response = event.get("response").filter(|response| response.is_object()).unwrap_or(event);
        self.start_reply(response, out);
        let output = response.get("output").and_then(Value::as_array);
        self.reconcile(output.map(Vec::as_slice).unwrap_or_default(), out);
        for at in 0..self.items.len() {
            let item = self
                .items
                .get_mut(at)
                .filter(|item| item.parts.first().is_some_and(|p| p.emitted.is_empty()));
            let early = item.map(|item| std::mem::take(&mut item.early)).unwrap_or_default();
            self.emit_delta(at, 0, &early, out);
        }
        self.emit_refusals(out);
        let usage = response.get("usage").filter(|usage| usage.is_object()).map(|raw| usage(raw.clone()));
        let by_kind = kind.strip_prefix("response.").filter(|word| END_WORDS.contains(word));
        let status = by_kind.filter(|word| *word == "failed").or(some_text(response, "status")).or(by_kind);
        let error = [response, event].into_iter().find(|value| failure::find_error(value).is_some());
        if error.is_some() || status == Some("failed") {
            out.extend(usage.map(|usage| ModelEvent::Usage { usage: Box::new(usage) }));
            return Err(match error {
                Some(error) => failure::event_error(error, errors::read_report),
                None if some_text(event, "message").is_some() => {
                    failure::event_error(&to_error(event), errors::read_report)
                }
                None => failure::event_error(
                    &serde_json::json!({"error": {"message": "the response failed"}}),
                    errors::read_report,
                ),
            });
        }
        let incomplete =
            |value: &'_ Value| value.get("incomplete_details")?.get("reason")?.as_str().map(str::to_owned);
        let incomplete =
            incomplete(response).or_else(|| incomplete(event)).filter(|reason| !reason.is_empty());
        let reason = match (status, incomplete.as_deref()) {
            (_, Some("max_output_tokens" | "max_tokens")) => StopReason::MaxTokens,
            (_, Some("content_filter")) => StopReason::ContentFilter,
            (None | Some("completed"), None) if self.is_refused => StopReason::ContentFilter,
            (None | Some("completed"), None) => StopReason::Stop,
            (_, Some(other)) | (Some(other), None) => StopReason::Other(other.to_owned()),
        };
        let raw = incomplete.or(status.map(str::to_owned));
        self.end = Some(ResponseEnd { reason, detail: None, raw, usage });
        Ok(())
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) {
        if let Some(ResponseEnd { reason, detail, raw, usage }) = self.end.take() {
            out.extend(usage.map(|usage| ModelEvent::Usage { usage: Box::new(usage) }));
            out.push(ModelEvent::Stop { reason, detail, raw });
        }
    }
}

impl Decoder for ResponsesDecoder {
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.end.is_some() || event.data.trim() == "[DONE]" {
            return Ok(());
        }
        if let Some(event) = self.frequent_event(event) {
            out.push(event);
            return Ok(());
        }
        let value = match failure::parse_event(event) {
            // Keep-alive events have other names and may contain any data, so malformed data of these events is ignored.
            Err(_)
                if !event.event.starts_with("response.") && !matches!(event.event, "message" | "error") =>
            {
                return Ok(());
            }
            value => value?,
        };
        if !value.is_object() {
            return Err(ModelError::protocol("an event of the stream is not an object").with_body(event.data));
        }
        let response = || value.get("response").unwrap_or(&Value::Null);
        let kind = some_text(&value, "type").unwrap_or(event.event);
        match kind {
            "response.created" | "response.queued" | "response.in_progress" => {
                self.start_reply(response(), out);
            }
            "response.output_item.added" => self.start_item(&value, out),
            "response.output_text.delta" => self.part_delta(&value, "message", CONTENT, out),
            "response.reasoning_text.delta" => self.part_delta(&value, "reasoning", CONTENT, out),
            "response.reasoning_summary_text.delta" => self.part_delta(&value, "reasoning", SUMMARY, out),
            "response.refusal.delta" => {
                self.record_refusal(&value, text(&value, "delta").unwrap_or_default(), false);
            }
            "response.function_call_arguments.delta" => {
                let at = self.find_item(&value, text(&value, "item_id"), "function_call");
                if let (Some(at), Some(delta)) = (at, some_text(&value, "delta")) {
                    self.emit_delta(at, 0, delta, out);
                }
            }
            // Servers that send no deltas send the whole text in the `done` events.
            "response.output_text.done" => {
                self.complete_text(&value, "message", CONTENT, text(&value, "text"), out);
            }
            "response.reasoning_text.done" => {
                self.complete_text(&value, "reasoning", CONTENT, text(&value, "text"), out);
            }
            "response.reasoning_summary_text.done" => {
                self.complete_text(&value, "reasoning", SUMMARY, text(&value, "text"), out);
            }
            "response.refusal.done" => {
                self.record_refusal(&value, text(&value, "refusal").unwrap_or_default(), true);
            }
            "response.function_call_arguments.done" => {
                self.complete_text(&value, "function_call", CONTENT, text(&value, "arguments"), out);
            }
            "response.content_part.done" | "response.reasoning_summary_part.done" => {
                self.complete_part(&value, out);
            }
            "response.output_item.done" => {
                let item = value.get("item").unwrap_or(&Value::Null);
                let (id, kind) =
                    (text(item, "id").unwrap_or_default(), text(item, "type").unwrap_or_default());
                let at = self.find_item(&value, Some(id), kind).unwrap_or_else(|| {
                    self.push_item(value.get("output_index").and_then(Value::as_u64), id, kind);
                    self.items.len() - 1
                });
                self.complete_item(at, item, out);
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.done"
            | "response.cancelled" => self.finish_response(&value, kind, out)?,
            "error" => return Err(failure::event_error(&to_error(&value), errors::read_report)),
            // An error in another `response.` event, such as an error of a tool that the provider ran, does not fail the reply.
            _ if !kind.starts_with("response.") && failure::find_error(&value).is_some() => {
                return Err(failure::event_error(&value, errors::read_report));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.end.is_some() {
            self.complete(out);
            return Ok(());
        }
        let error = if self.is_started || !self.items.is_empty() {
            "the stream ended before the reply did: no `response.completed`"
        } else {
            "the stream has no reply in it"
        };
        Err(ModelError::protocol(error).with_retryable(true))
    }

    fn abandon(&mut self, out: &mut Vec<ModelEvent>) {
        self.emit_refusals(out);
    }

    fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    fn body(&mut self, body: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let response: Value = serde_json::from_slice(body)
            .map_err(|error| failure::not_a_reply(body, "it is not JSON").with_source(error))?;
        if failure::find_error(&response).is_none() && !response.get("output").is_some_and(Value::is_array) {
            return Err(failure::not_a_reply(body, "it has no `output`"));
        }
        self.finish_response(&response, "", out)?;
        self.complete(out);
        Ok(())
    }
}

fn delta_event(kind: &str, content_index: usize, delta: String) -> ModelEvent {
    match kind {
        "reasoning" => ModelEvent::ThinkingDelta { content_index, delta },
        "function_call" => ModelEvent::ToolCallDelta { content_index, delta },
        _ => ModelEvent::TextDelta { content_index, delta },
    }
}

/// Converts `{"type": "error", "code", "message", "param"}` to the usual form `{"error": {…}}`.
fn to_error(event: &Value) -> Value {
    if failure::find_error(event).is_some() {
        return event.clone();
    }
    let mut error = event.clone();
    if let Some(error) = error.as_object_mut() {
        error.shift_remove("type");
    }
    serde_json::json!({ "error": error })
}

/// Converts token counts. Cached input is part of the input, and reasoning is part of the output.
fn usage(raw: Value) -> Usage {
    let count = |path: &[&str]| count_at(&raw, path).unwrap_or_default();
    let mut usage = Usage::new(count(&["input_tokens"]), count(&["output_tokens"]));
    usage.cache_read = count(&["input_tokens_details", "cached_tokens"]);
    usage.cache_write = count(&["input_tokens_details", "cache_write_tokens"]);
    usage.reasoning = count(&["output_tokens_details", "reasoning_tokens"]);
    usage.total = count_at(&raw, &["total_tokens"]).unwrap_or(usage.total);
    usage.cost = cost(&raw);
    usage.raw = Some(Box::new(raw));
    usage
}
