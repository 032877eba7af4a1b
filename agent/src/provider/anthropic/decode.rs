//! Decodes responses of Anthropic: streams and JSON bodies.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{blocks, errors};
use crate::message::{Content, ProviderData, StopReason, Usage};
use crate::model::{ModelError, ModelEvent};
use crate::provider::failure;
use crate::provider::frequent::{self, Object, Text};
use crate::provider::parts::{JsonObject, JsonSource, cost, count, count_at, some_text, text};
use crate::provider::protocol::Decoder;
use crate::provider::sse::SseEvent;

/// Decodes one response of the Messages API. The events follow Anthropic's reference and its page on
/// [streaming](https://platform.claude.com/docs/en/build-with-claude/streaming).
pub(super) struct AnthropicDecoder {
    provider: String,
    usage: JsonObject,
    has_usage: bool,
    message_data: JsonObject,
    stop: StopDetails,
    open: BTreeMap<u64, OpenBlock>,
    parts: usize,
    /// The id of the message, once the message has started.
    started: Option<String>,
    has_stopped: bool,
}

#[derive(Default)]
struct StopDetails {
    reason: Option<String>,
    detail: Option<String>,
}

struct OpenBlock {
    content_index: usize,
    block: JsonObject,
    input: String,
    kind: BlockKind,
}

/// The kind of a block. Blocks of all kinds but `Other` emit events while they grow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    ToolUse,
    Other,
}

/// The names of the events whose data must be JSON. An event without a name has the name `message`.
const EVENTS: [&str; 8] = [
    "message",
    "error",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

const DELTAS: [&str; 6] = [
    "text_delta",
    "thinking_delta",
    "input_json_delta",
    "signature_delta",
    "citations_delta",
    "compaction_delta",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockDeltaEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    index: u64,
    #[serde(borrow)]
    delta: Object<BlockDelta<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockDelta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
}

impl AnthropicDecoder {
    /// Decodes the most frequent events without building a [`Value`]: deltas of a text, of thinking and of a call's input. Returns `None`
    /// for every other event.
    fn frequent_event(&mut self, event: &SseEvent<'_>) -> Option<ModelEvent> {
        let BlockDeltaEvent { kind, index, delta: Object(delta) } = frequent::read(event)?;
        if kind.as_str() != "content_block_delta" {
            return None;
        }
        let open = self.open.get_mut(&index)?;
        let content_index = open.content_index;
        let BlockDelta { kind, text, thinking, partial_json } = delta;
        match (kind.as_str(), open.kind) {
            ("text_delta", BlockKind::Text) => {
                Some(ModelEvent::TextDelta { content_index, delta: text?.into_string() })
            }
            ("thinking_delta", BlockKind::Thinking) => {
                Some(ModelEvent::ThinkingDelta { content_index, delta: thinking?.into_string() })
            }
            ("input_json_delta", BlockKind::ToolUse) => {
                let text = partial_json?;
                open.input.push_str(text.as_str());
                Some(ModelEvent::ToolCallDelta { content_index, delta: text.into_string() })
            }
            _ => None,
        }
    }

    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            usage: Map::new(),
            has_usage: false,
            message_data: Map::new(),
            stop: StopDetails::default(),
            open: BTreeMap::new(),
            parts: 0,
            started: None,
            has_stopped: false,
        }
    }

    /// Starts a reply. A repeated start of the same message is ignored. If a different message starts before the end of the current one,
    /// two streams were mixed, which is an error.
    fn start_reply(&mut self, message: &Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let id = text(message, "id").unwrap_or_default();
        match &self.started {
            Some(started) if started == id => return Ok(()),
            Some(started) if !self.has_stopped => {
                let error = format!("message `{id}` began before `{started}` ended");
                return Err(ModelError::protocol(error).with_retryable(true));
            }
            _ => self.started = Some(id.to_owned()),
        }
        self.has_stopped = false;
        let owned = |key| some_text(message, key).map(str::to_owned);
        out.push(ModelEvent::ReplyStart { response_id: owned("id"), model: owned("model") });
        self.read_usage(message.get("usage"));
        self.read_stop(message);
        Ok(())
    }

    /// Reads token counts. The counts are cumulative, so later counts replace earlier ones.
    fn read_usage(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.and_then(Value::as_object) else { return };
        self.has_usage = true;
        for (key, value) in usage.iter().filter(|(_, value)| !value.is_null()) {
            self.usage.insert(key.clone(), value.clone());
        }
    }

    fn read_stop(&mut self, message: &Value) {
        if let Some(reason) = some_text(message, "stop_reason") {
            self.stop.reason = Some(reason.to_owned());
        }
        if let Some(details) = message.get("stop_details") {
            let words = some_text(details, "explanation").or_else(|| some_text(details, "category"));
            self.stop.detail = words.map(str::to_owned).or(self.stop.detail.take());
        }
        for key in ["container", "context_management", "stop_sequence", "stop_details"] {
            match message.get(key) {
                None | Some(Value::Null) => {}
                Some(value) => {
                    self.message_data.insert(key.to_owned(), value.clone());
                }
            }
        }
    }

    fn start_block(&mut self, index: u64, block: Value, out: &mut Vec<ModelEvent>) {
        // A new block ends an open block with the same index.
        self.end_block(index, true, out);
        let content_index = self.parts;
        self.parts += 1;
        let Value::Object(mut block) = block else {
            out.push(ModelEvent::Part {
                content_index,
                part: Box::new(blocks::read(&self.provider, block, None, JsonSource::Reply)),
            });
            return;
        };
        let kind = match block.get("type").and_then(Value::as_str) {
            Some("text") => BlockKind::Text,
            Some("thinking") => BlockKind::Thinking,
            Some("tool_use") if block.get("name").is_some_and(Value::is_string) => BlockKind::ToolUse,
            _ => BlockKind::Other,
        };
        let field = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind {
            BlockKind::Text => {
                out.push(ModelEvent::TextStart { content_index });
                out.push(ModelEvent::TextDelta { content_index, delta: field("text") });
            }
            BlockKind::Thinking => {
                out.push(ModelEvent::ThinkingStart { content_index });
                out.push(ModelEvent::ThinkingDelta { content_index, delta: field("thinking") });
            }
            BlockKind::ToolUse => {
                out.push(ModelEvent::ToolCallStart { content_index, id: field("id"), name: field("name") });
            }
            BlockKind::Other => {
                let part =
                    blocks::read(&self.provider, Value::Object(block.clone()), None, JsonSource::Reply);
                out.push(ModelEvent::Part { content_index, part: Box::new(part) });
            }
        }
        // These fields were emitted as events. They are removed, so that only the other fields become provider data.
        if kind != BlockKind::Other {
            for key in ["text", "thinking", "id", "name"] {
                block.shift_remove(key);
            }
        }
        self.open.insert(index, OpenBlock { content_index, block, input: String::new(), kind });
    }

    fn block_delta(
        &mut self,
        index: u64,
        delta: &Value,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let kind = text(delta, "type").unwrap_or_default();
        let Some(open) = self.open.get_mut(&index) else {
            if !DELTAS.contains(&kind) {
                return Ok(());
            }
            return Err(ModelError::protocol(format!("block {index} of the reply was not begun")));
        };
        let content_index = open.content_index;
        let owned = |key| text(delta, key).unwrap_or_default().to_owned();
        match (kind, open.kind) {
            ("text_delta", BlockKind::Text) => {
                out.push(ModelEvent::TextDelta { content_index, delta: owned("text") });
            }
            ("thinking_delta", BlockKind::Thinking) => {
                out.push(ModelEvent::ThinkingDelta { content_index, delta: owned("thinking") });
            }
            ("input_json_delta", kind) => {
                let delta = owned("partial_json");
                open.input.push_str(&delta);
                if kind == BlockKind::ToolUse {
                    out.push(ModelEvent::ToolCallDelta { content_index, delta });
                }
            }
            ("signature_delta", _) => append(&mut open.block, "signature", &owned("signature")),
            ("citations_delta", _) => {
                let citation = delta.get("citation").cloned().unwrap_or_default();
                match open.block.get_mut("citations") {
                    Some(Value::Array(list)) => list.push(citation),
                    _ => {
                        open.block.insert("citations".into(), Value::Array(vec![citation]));
                    }
                }
            }
            ("compaction_delta", _) => {
                for key in ["content", "encrypted_content"] {
                    if let Some(more) = text(delta, key) {
                        append(&mut open.block, key, more);
                    }
                }
            }
            // A delta of an unknown kind is skipped, and so is a delta that does not fit its block.
            _ => {}
        }
        Ok(())
    }

    /// Ends a block. `is_explicit` says whether the stream itself ended the block. A call without an explicit end may be incomplete: the
    /// reply's stop reason decides whether the call counts.
    fn end_block(&mut self, index: u64, is_explicit: bool, out: &mut Vec<ModelEvent>) {
        let Some(OpenBlock { content_index, mut block, input, kind }) = self.open.remove(&index) else {
            return;
        };
        if kind == BlockKind::Other {
            let input = (!input.is_empty()).then_some(input);
            let part = blocks::read(&self.provider, Value::Object(block), input, JsonSource::Reply);
            out.push(ModelEvent::Part { content_index, part: Box::new(part) });
            return;
        }
        if kind == BlockKind::ToolUse {
            let whole = block.shift_remove("input");
            let whole = whole.filter(|value| !value.is_null() && *value != Value::Object(Map::new()));
            if let (true, Some(value)) = (input.is_empty(), whole) {
                out.push(ModelEvent::ToolCallDelta { content_index, delta: value.to_string() });
            }
        }
        block.shift_remove("type");
        block.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
        if !block.is_empty() {
            let data = ProviderData::new(self.provider.as_str(), block);
            out.push(ModelEvent::PartData { content_index, data });
        }
        out.extend(match kind {
            BlockKind::Thinking => Some(ModelEvent::ThinkingEnd { content_index }),
            BlockKind::ToolUse => is_explicit.then_some(ModelEvent::ToolCallEnd { content_index }),
            _ => Some(ModelEvent::TextEnd { content_index }),
        });
    }

    fn end_all_blocks(&mut self, out: &mut Vec<ModelEvent>) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        for index in open {
            self.end_block(index, false, out);
        }
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) {
        self.emit_held_back(out);
        let StopDetails { reason: raw, detail } = std::mem::take(&mut self.stop);
        out.push(ModelEvent::Stop { reason: stop_reason(raw.as_deref()), detail, raw });
    }

    /// Emits the usage and the provider data of the message. They were held back, because later events may change them.
    fn emit_held_back(&mut self, out: &mut Vec<ModelEvent>) {
        if self.has_usage {
            out.push(ModelEvent::Usage { usage: Box::new(usage(&self.usage)) });
        }
        if !self.message_data.is_empty() {
            let data = ProviderData::new(self.provider.as_str(), std::mem::take(&mut self.message_data));
            out.push(ModelEvent::MessageData { data });
        }
    }
}

impl Decoder for AnthropicDecoder {
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        if !self.has_stopped
            && let Some(event) = self.frequent_event(event)
        {
            out.push(event);
            return Ok(());
        }
        let value = match failure::parse_event(event) {
            // The data of keep-alive events and of events after the end need not be JSON, so malformed data of these events is ignored.
            Err(_) if self.has_stopped || !EVENTS.contains(&event.event) => return Ok(()),
            value => value?,
        };
        let index = || value.get("index").and_then(Value::as_u64).unwrap_or_default();
        let kind = some_text(&value, "type").unwrap_or(event.event);
        // After the end of a message, only the start of a further message is read. Recordings may contain several messages, whose parts are
        // read as the parts of one reply.
        if self.has_stopped && kind != "message_start" {
            return Ok(());
        }
        let has_error = failure::find_error(&value).is_some();
        if event.event == "error" || kind == "error" || kind.ends_with("_error") || has_error {
            return Err(failure::event_error(&value, errors::read_report));
        }
        match kind {
            "message_start" => self.start_reply(value.get("message").unwrap_or(&Value::Null), out)?,
            "content_block_start" => {
                let block = value.get("content_block").cloned().unwrap_or_default();
                self.start_block(index(), block, out);
            }
            "content_block_delta" => {
                self.block_delta(index(), value.get("delta").unwrap_or(&Value::Null), out)?;
            }
            "content_block_stop" => self.end_block(index(), true, out),
            "message_delta" => {
                self.read_stop(value.get("delta").unwrap_or(&Value::Null));
                self.read_stop(&value);
                self.read_usage(value.get("usage"));
            }
            "message_stop" => {
                self.end_all_blocks(out);
                self.has_stopped = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.has_stopped {
            self.complete(out);
            return Ok(());
        }
        Err(ModelError::protocol("the stream ended before `message_stop`").with_retryable(true))
    }

    fn abandon(&mut self, out: &mut Vec<ModelEvent>) {
        self.emit_held_back(out);
    }

    fn has_ended(&self) -> bool {
        self.has_stopped
    }

    fn is_complete(&self) -> bool {
        self.has_stopped
    }

    fn body(&mut self, body: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        /// The input of a call as text, because a parsed value would lose repeated keys and the digits of long numbers.
        #[derive(Deserialize)]
        struct RawInput<'a> {
            #[serde(borrow)]
            input: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct RawBody<'a> {
            #[serde(borrow)]
            content: Option<Vec<&'a RawValue>>,
        }
        let message: Value = serde_json::from_slice(body)
            .map_err(|error| failure::not_a_reply(body, "it is not JSON").with_source(error))?;
        if text(&message, "type") == Some("error") || failure::find_error(&message).is_some() {
            return Err(failure::event_error(&message, errors::read_report));
        }
        let content = serde_json::from_slice::<RawBody<'_>>(body).ok().and_then(|body| body.content);
        let Some(content) = content else { return Err(failure::not_a_reply(body, "it has no `content`")) };
        self.start_reply(&message, out)?;
        for raw in content {
            let block = serde_json::from_str(raw.get()).unwrap_or_default();
            let input = serde_json::from_str::<RawInput<'_>>(raw.get()).ok().and_then(|block| block.input);
            let input = input.map(|input| input.get().to_owned()).filter(|input| input != "null");
            let mut part = blocks::read(&self.provider, block, input, JsonSource::Reply);
            if let Content::ToolCall(call) = &mut part.content
                && call.args.text() == "{}"
            {
                call.args = crate::message::ToolArguments::default();
            }
            out.push(ModelEvent::Part { content_index: self.parts, part: Box::new(part) });
            self.parts += 1;
        }
        self.complete(out);
        Ok(())
    }
}

fn append(block: &mut JsonObject, key: &str, more: &str) {
    match block.get_mut(key) {
        Some(Value::String(text)) => text.push_str(more),
        _ => {
            block.insert(key.to_owned(), more.into());
        }
    }
}

fn stop_reason(word: Option<&str>) -> StopReason {
    match word {
        None | Some("end_turn" | "stop_sequence") => StopReason::Stop,
        Some("tool_use") => StopReason::ToolUse,
        Some("max_tokens") => StopReason::MaxTokens,
        Some("model_context_window_exceeded") => StopReason::ContextFull,
        // After a compaction, the reply is continued like a paused reply.
        Some("pause_turn" | "compaction") => StopReason::Pause,
        Some("refusal") => StopReason::ContentFilter,
        Some(other) => StopReason::Other(other.to_owned()),
    }
}

/// Converts token counts. Anthropic counts cached input separately; in the result, `input` includes cached input. A reply may take several
/// requests at the provider, for example because of a compaction or of tools that Anthropic runs. The result is then the sum of all
/// [`requests`].
fn usage(raw: &JsonObject) -> Usage {
    let raw = Value::Object(raw.clone());
    let mut usage = counts(&raw);
    let requests = requests(&raw);
    let sum = requests.iter().sum::<Usage>();
    if requests.len() > 1 && sum.total >= usage.total {
        let last = requests.iter().rfind(|request| has_conversation(request)).unwrap_or(&usage).clone();
        usage = Usage { reasoning: usage.reasoning.max(sum.reasoning), ..sum };
        usage.set_last_request(&last);
    }
    usage.cost = cost(&raw);
    usage.raw = Some(Box::new(raw));
    usage
}

/// Returns the tokens of each request behind a reply, if Anthropic lists them in `iterations`.
///
/// Source: Anthropic's [reference](https://platform.claude.com/docs/en/api/beta/messages) (`BetaIterationsUsage`): the counts of the reply
/// are the sum of its requests, but without those of compactions and advisors.
pub(in crate::provider) fn requests(raw: &Value) -> Vec<Usage> {
    let list = raw.get("iterations").and_then(Value::as_array).into_iter().flatten();
    let request = |raw: &Value| Usage { raw: Some(Box::new(raw.clone())), ..counts(raw) };
    list.filter(|raw| raw.is_object()).map(request).collect()
}

/// Returns whether a request had the conversation as its input. A compaction or an advisor has a different input.
fn has_conversation(request: &Usage) -> bool {
    let kind = request.raw.as_ref().and_then(|raw| some_text(raw, "type"));
    !matches!(kind, Some("compaction" | "advisor_message"))
}

fn counts(raw: &Value) -> Usage {
    let count = |key: &str| raw.get(key).and_then(count).unwrap_or_default();
    let (cache_read, cache_write) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    let input = count("input_tokens").saturating_add(cache_read).saturating_add(cache_write);
    let reasoning = count_at(raw, &["output_tokens_details", "thinking_tokens"]);
    let mut usage = Usage::new(input, count("output_tokens"));
    (usage.cache_read, usage.cache_write) = (cache_read, cache_write);
    usage.reasoning = reasoning.unwrap_or_default();
    usage
}
