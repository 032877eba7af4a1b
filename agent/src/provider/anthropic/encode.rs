//! Encodes requests to Anthropic.

use serde_json::{Value, json};

use super::blocks::{self, BlockTarget, cache_control, is_safe_id, safe_id};
use super::models::{self, ThinkingStyle};
use super::{AnthropicMessages, managed};
use crate::message::kept::TextSegment;
use crate::message::{Content, Part};
use crate::model::{ManagedTool, ModelError, ModelErrorKind, ModelInfo, ModelRequest, Thinking, ToolChoice};
use crate::provider::body::{BodyFields, tool_list, write_json, write_text};
use crate::provider::call_ids::CallIds;
use crate::provider::media_types::UnsupportedPart;
use crate::provider::parts::{JsonObject, OPENING, add_rest, is_assistant_first};
use crate::provider::turns::{
    ForeignMedia, ResultMedia, TurnContent, TurnJoining, TurnShaper, WireResult, WireRules, WireTurn,
    is_plain_reply, plain_text, plain_texts, write_parts,
};
use crate::provider::wire::WireList;
use crate::provider::{HttpRequest, metadata, schema, tools};
use crate::schema::Dialect;
use crate::tool::dialect::written_tools;

/// The default maximum length of a reply without its thinking, in tokens. Anthropic requires a limit in every request.
const MAX_TOKENS: u64 = 4096;

/// Maximum number of cache marks (fields `cache_control`) in a request.
///
/// Source: Anthropic's page on [prompt caching](https://platform.claude.com/docs/en/build-with-claude/prompt-caching).
const MAX_CACHE_MARKS: usize = 4;

/// The text of a failed result that has only media. The media are sent after the results.
const SHOWN_AFTER: &str = "What the tool shows follows the results.";

/// The smallest thinking budget that Anthropic accepts, in tokens.
const MIN_BUDGET: u64 = 1024;

pub(super) fn request(
    protocol: &AnthropicMessages,
    model: &ModelInfo,
    request: &ModelRequest,
) -> Result<HttpRequest, ModelError> {
    let (body, betas) = Encoder { protocol, model, request }.body()?;
    let mut http = HttpRequest::with_body("/v1/messages", body.into_body())
        .with_header("anthropic-version", &*protocol.version);
    let betas: Vec<&str> = betas.into_iter().chain(protocol.betas.iter().map(String::as_str)).collect();
    if !betas.is_empty() {
        http = http.with_header("anthropic-beta", betas.join(","));
    }
    Ok(http)
}

struct Encoder<'a> {
    protocol: &'a AnthropicMessages,
    model: &'a ModelInfo,
    request: &'a ModelRequest,
}

const RULES: WireRules = WireRules {
    protocol: "Anthropic",
    roles: &["system"],
    joining: TurnJoining::ResultsAndUser,
    result_media: ResultMedia::AfterIfFailed(is_no_text),
    foreign_media: ForeignMedia::Inside,
};

/// The name of the compaction beta.
///
/// Source: Anthropic's page on [compaction](https://platform.claude.com/docs/en/build-with-claude/compaction).
const COMPACTION_BETA: &str = "compact-2026-01-12";
/// The smallest input, in tokens, at which Anthropic can be asked to compact. The source is the same page.
const MIN_COMPACTION: u64 = 50_000;

struct ThinkingSettings {
    thinking: Option<Value>,
    effort: Option<&'static str>,
    max_tokens: u64,
}

fn invalid(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::InvalidRequest, message)
}

impl Encoder<'_> {
    fn body(&self) -> Result<(BodyFields, Vec<&'static str>), ModelError> {
        let request = self.request;
        let settings = self.thinking()?;
        let mut body = BodyFields::default();
        body.set("model", self.model.model.as_str().into());
        body.set("max_tokens", settings.max_tokens.into());
        body.set_list("messages", self.messages()?);
        if let Some(thinking) = &settings.thinking {
            body.set("thinking", thinking.clone());
        }
        let mut output_config = JsonObject::new();
        output_config.extend(settings.effort.map(|effort| ("effort".to_owned(), effort.into())));
        if let Some(output) = &request.output {
            let (schema, _) = schema::render_output(output, Dialect::AnthropicStrict);
            output_config.insert("format".into(), json!({"type": "json_schema", "schema": schema}));
        }
        if !output_config.is_empty() {
            body.set("output_config", output_config.into());
        }
        if let Some(system) = request.system.as_deref().filter(|system| !system.is_empty()) {
            body.set(
                "system",
                match request.cached_system {
                    None => system.into(),
                    Some(mark) => {
                        json!([{"type": "text", "text": system, "cache_control": cache_control(mark)}])
                    }
                },
            );
        }
        let (tools, mut betas) = self.tools()?;
        if let Some(tools) = tools {
            body.set_list("tools", tools);
            body.set("tool_choice", self.tool_choice());
        }
        if let Some(mark) = request.cached_conversation {
            body.set("cache_control", cache_control(mark));
        }
        if let Some(container) = self.container() {
            body.set("container", container.clone());
        }
        // Anthropic refuses blank stop sequences. Source: the error `stop_sequences: each stop sequence must contain non-whitespace`.
        if request.stop.iter().any(|stop| stop.trim().is_empty()) {
            let text = "Anthropic does not take a stop sequence of white space";
            return Err(invalid(text.to_owned()).with_code("blank_stop_sequence"));
        }
        if !request.stop.is_empty() {
            body.set("stop_sequences", request.stop.clone().into());
        }
        metadata::refuse_others(request, "Anthropic")?;
        if let Some(user) = metadata::user_id(request)? {
            body.set("metadata", json!({"user_id": user}));
        }
        if let Some(tokens) = request.compact_at {
            let trigger = json!({"type": "input_tokens", "value": tokens.max(MIN_COMPACTION)});
            let edit = json!({"type": "compact_20260112", "trigger": trigger});
            body.set("context_management", json!({"edits": [edit]}));
            betas.push(COMPACTION_BETA);
        }
        self.sampling(&settings, &mut body);
        body.set("stream", true.into());
        body.add_options(request.provider_options.get(&self.model.provider))?;
        Ok((body, betas))
    }

    /// Returns the maximum number of cache marks in the messages. All other marks, such as the mark of the tools, are kept. If the
    /// messages have too many marks, the last ones are kept, because a mark covers everything before it.
    fn max_marks_of_messages(&self) -> usize {
        let request = self.request;
        let has_system = request.system.as_deref().is_some_and(|text| !text.is_empty());
        let system = request.cached_system.filter(|_| has_system);
        let has_tools = !request.tools.is_empty() || !request.managed_tools.is_empty();
        let tools = request.cached_tools.filter(|_| has_tools);
        MAX_CACHE_MARKS - [request.cached_conversation, system, tools].iter().flatten().count()
    }

    /// Returns the id of the container in which code ran last, so that the next reply runs its code in the same container.
    fn container(&self) -> Option<&Value> {
        if self.request.managed_tools.is_empty() {
            return None;
        }
        let replies = self.request.messages.iter().rev().filter_map(|message| message.as_assistant());
        let mut own = replies
            .filter_map(|reply| reply.provider_data.as_ref())
            .filter(|data| data.provider == self.model.provider);
        own.find_map(|data| data.data.get("container")?.get("id"))
    }

    /// Writes the sampling settings that Anthropic accepts. Anthropic rejects `temperature` and `top_p` in three cases: together with
    /// thinking, for models from version 4.7 on, and for API versions from `2026-10-21` on. Models 4.5 and 4.6 accept only one of the two
    /// settings, so `top_p` is left out if both are set.
    fn sampling(&self, settings: &ThinkingSettings, body: &mut BodyFields) {
        let thinks = settings.thinking.as_ref().is_some_and(|thinking| thinking["type"] != "disabled");
        let values = [("temperature", self.request.temperature), ("top_p", self.request.top_p)];
        for (name, value) in values.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            if self.protocol.is_stricter()
                || thinks
                || models::has_fixed_sampling(&self.model.model)
                || (name == "top_p"
                    && self.request.temperature.is_some()
                    && models::has_single_sampling_setting(&self.model.model))
            {
                tracing::warn!(
                    setting = name,
                    model = self.model.model,
                    "Anthropic does not take this setting here: left out"
                );
            } else {
                body.set(name, value.into());
            }
        }
    }

    fn thinking(&self) -> Result<ThinkingSettings, ModelError> {
        let (name, request) = (self.model.model.as_str(), self.request);
        // Thinking counts towards the token limit, so the default limit leaves room for the thinking and the rest of the reply.
        let plain = |thinking: u64| ThinkingSettings {
            thinking: None,
            effort: None,
            max_tokens: request.max_tokens.unwrap_or(MAX_TOKENS + thinking),
        };
        let style = models::thinking_style(name);
        let Some(level) = request.thinking.filter(|_| style != ThinkingStyle::None) else {
            let thinks = models::thinks_by_default(name);
            return Ok(plain(if thinks { models::budget(Thinking::High) } else { 0 }));
        };
        let is_excluded = self.is_forced() && models::can_be_forced(name);
        if is_excluded && level != Thinking::None {
            tracing::warn!(
                model = name,
                "a forced choice of tools and thinking exclude each other: thinking left out"
            );
        }
        if level == Thinking::None || (is_excluded && style == ThinkingStyle::Adaptive) {
            let off = models::without_thinking(name);
            let effort = off.is_none().then(|| models::effort(name, Thinking::None));
            let least = if off == Some("disabled") { 0 } else { MIN_BUDGET };
            let thinking = off.map(|kind| json!({"type": kind}));
            return Ok(ThinkingSettings { thinking, effort, ..plain(least) });
        }
        if is_excluded {
            return Ok(plain(0));
        }
        let wanted = models::budget(level).max(MIN_BUDGET);
        let max_tokens = plain(wanted).max_tokens;
        if style == ThinkingStyle::Adaptive {
            let thinking = Some(json!({"type": "adaptive"}));
            return Ok(ThinkingSettings { thinking, effort: Some(models::effort(name, level)), max_tokens });
        }
        let budget = if wanted < max_tokens { wanted } else { max_tokens.saturating_sub(1) };
        if budget < MIN_BUDGET || (budget < wanted && matches!(level, Thinking::Budget(_))) {
            return Err(invalid(format!(
                "a thinking budget of {wanted} tokens does not fit into max_tokens {max_tokens}: raise max_tokens above \
                 it, or leave it unset"
            )));
        }
        let thinking = Some(json!({"type": "enabled", "budget_tokens": budget}));
        Ok(ThinkingSettings { thinking, effort: None, max_tokens })
    }

    fn is_forced(&self) -> bool {
        matches!(self.request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_))
    }

    fn tool_choice(&self) -> Value {
        let mut choice = match &self.request.tool_choice {
            ToolChoice::Required | ToolChoice::Tool(_) if !models::can_be_forced(&self.model.model) => {
                tracing::warn!(
                    model = self.model.model,
                    "the model refuses a forced choice of tools: it chooses itself"
                );
                json!({"type": "auto"})
            }
            ToolChoice::Auto => json!({"type": "auto"}),
            ToolChoice::None => return json!({"type": "none"}),
            ToolChoice::Required => json!({"type": "any"}),
            ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
        };
        if let Some(parallel) = self.request.parallel_tool_calls {
            choice["disable_parallel_tool_use"] = (!parallel).into();
        }
        choice
    }

    fn tools(&self) -> Result<(Option<Vec<TextSegment>>, Vec<&'static str>), ModelError> {
        let (request, mut betas) = (self.request, Vec::new());
        let (dialect, is_asked) = (Dialect::AnthropicStrict, request.strict_tools);
        let mut texts =
            written_tools(&request.tools, dialect, is_asked, "anthropic", |definition, rendered| {
                let is_strict = rendered.dialect.is_strict();
                let examples = tools::allowed_examples(definition, &rendered.schema);
                let mut tool = String::from(r#"{"name":"#);
                write_text(&mut tool, definition.name());
                tool.push_str(r#","description":"#);
                write_text(&mut tool, definition.description());
                tool.push_str(r#","input_schema":"#);
                write_json(&mut tool, &rendered.schema);
                if is_strict {
                    tool.push_str(r#","strict":true"#);
                }
                if !examples.is_empty() {
                    tool.push_str(r#","input_examples":"#);
                    write_json(&mut tool, &examples.into());
                }
                tool.push('}');
                tool
            });
        let mut managed_tools = Vec::new();
        for tool in request.managed_tools.iter().map(ManagedTool::as_requested) {
            managed_tools.push(managed::tool(tool, &self.model.provider, &mut betas)?);
        }
        if let Some(mark) = request.cached_tools {
            if let Some(last) = managed_tools.last_mut() {
                last["cache_control"] = cache_control(mark);
            } else if let Some(last) = texts.last_mut() {
                let open = last.strip_suffix('}').unwrap_or(last);
                *last = format!(r#"{open},"cache_control":{}}}"#, cache_control(mark)).into();
            }
        }
        let has_tools = !texts.is_empty() || !managed_tools.is_empty();
        Ok((has_tools.then(|| tool_list(&texts, &managed_tools)), betas))
    }

    fn messages(&self) -> Result<Vec<TextSegment>, ModelError> {
        let messages = &self.request.messages;
        let key = (self.model.clone(), self.protocol.version.clone());
        let mut list = WireList::new(messages, "content", key, messages.len());
        let ids = list.call_ids(|id, _| is_safe_id(id), |id, _, number| safe_id(id, number));
        let max_marks = self.max_marks_of_messages();
        let removed = loop {
            if !self.push_turns(&ids, &mut list)? {
                list.rewind();
            } else if let Some(removed) = list.limit_marks(max_marks) {
                break removed;
            }
        };
        if removed > 0 {
            tracing::warn!(
                removed,
                model = self.model.model,
                "Anthropic takes {MAX_CACHE_MARKS} cache marks: the first ones of the messages are left out"
            );
        }
        if list.is_empty() && !messages.is_empty() {
            return Err(invalid(
                "nothing of the conversation is left to send: it is all white space".to_owned(),
            ));
        }
        Ok(list.finish())
    }

    /// Appends the turns that begin at [`WireList::start`]. The text of the earlier turns is reused from the last request. Returns `false`
    /// if the last reused message must be written again.
    fn push_turns(&self, ids: &CallIds, list: &mut WireList<'_>) -> Result<bool, ModelError> {
        let messages = &self.request.messages;
        // Anthropic requires that a request begins with a user message. If the conversation begins with a reply, a user message is put
        // before the reply. A parsed request that begins with the assistant is written back unchanged. Source: the error
        // `messages: first message must use the "user" role` (https://github.com/lobehub/lobehub/issues/1601).
        let needs_user = !is_assistant_first(messages, &self.model.provider);
        let write = |part: &Part| self.write(part, false, ids);
        let shaper = TurnShaper { rules: &RULES, model: self.model, ids, write: &write };
        for mut turn in shaper.turns(messages, list.start())? {
            if turn.joins && list.ends_kept() {
                return Ok(false);
            }
            if needs_user && list.is_empty() && matches!(turn.content, TurnContent::Reply { .. }) {
                let TurnContent::Reply { message, .. } = &turn.content else { continue };
                if is_blank(&self.content(&message.content, true, ids)?) {
                    continue;
                }
                list.push(turn.start.take(), json!({"role": "user", "content": OPENING}));
            }
            if self.push_plain(&turn, ids, list) {
                continue;
            }
            let (role, content) = match turn.content {
                TurnContent::Input { role, parts } => (role, self.content(parts, false, ids)?),
                TurnContent::Reply { message, .. } => {
                    ("assistant", self.content(&message.content, true, ids)?)
                }
                TurnContent::Result(result) => {
                    ("user", vec![self.tool_result(&result, turn.data, ids)?].into())
                }
                TurnContent::Media(media) => ("user", media.into()),
            };
            if is_blank(&content) {
                continue;
            }
            let content = if turn.joins {
                let blocks = match content {
                    Value::Array(blocks) => blocks,
                    text => vec![json!({"type": "text", "text": text})],
                };
                match list.join(blocks) {
                    Ok(()) => continue,
                    Err(blocks) => blocks.into(),
                }
            } else {
                content
            };
            let mut message = JsonObject::new();
            message.insert("role".into(), role.into());
            message.insert("content".into(), content);
            add_rest(&mut message, turn.data.and_then(|data| data.get("message")));
            list.push(turn.start, message.into());
        }
        if list.ends_kept() {
            return Ok(false);
        }
        list.last_mut().into_iter().for_each(trim);
        Ok(true)
    }

    /// Writes a turn of a frequent form, such as a single text, without building a [`Value`]. Returns `false`, and writes nothing, for any
    /// other turn.
    fn push_plain(&self, turn: &WireTurn<'_>, ids: &CallIds, list: &mut WireList<'_>) -> bool {
        let provider = self.model.provider.as_str();
        if turn.data.is_some() {
            return false;
        }
        match &turn.content {
            TurnContent::Input { role, parts } if !turn.joins => {
                let texts = plain_texts(parts, provider);
                let Some(&[text]) = texts.as_deref() else { return false };
                if !text.trim().is_empty() {
                    list.push_text(turn.start, false, |out| {
                        out.push_str(r#"{"role":"#);
                        write_text(out, role);
                        out.push_str(r#","content":"#);
                        write_text(out, text);
                        out.push('}');
                    });
                }
            }
            TurnContent::Reply { message, .. } if is_plain_reply(message, None, provider) => {
                // The last message must not end in whitespace. A reply that ends in whitespace is therefore written by the general path,
                // which trims the last message.
                let Some(part) = message.content.last() else { return false };
                if let Some(text) = part.as_text() {
                    let is_single = message.content.len() == 1;
                    if !is_single || text.is_empty() || text.ends_with(char::is_whitespace) {
                        return false;
                    }
                    list.push_text(turn.start, false, |out| {
                        out.push_str(r#"{"role":"assistant","content":"#);
                        write_text(out, text);
                        out.push('}');
                    });
                    return true;
                }
                if part.as_tool_call().is_none() {
                    return false;
                }
                list.push_text(turn.start, true, |out| {
                    out.push_str(r#"{"role":"assistant","content":["#);
                    let mut is_first = true;
                    for part in &message.content {
                        let text = part.as_text().filter(|text| !text.trim().is_empty());
                        if text.is_none() && part.as_tool_call().is_none() {
                            continue;
                        }
                        if !std::mem::take(&mut is_first) {
                            out.push(',');
                        }
                        match (text, part.as_tool_call()) {
                            (_, Some(call)) => blocks::write_call(out, call, ids),
                            (text, None) => blocks::write_text_block(out, text.unwrap_or_default()),
                        }
                    }
                    out.push_str("]}");
                });
            }
            TurnContent::Result(result) if !result.has_media_after => {
                let texts = plain_texts(&result.parts, provider);
                let Some(&[text]) = texts.as_deref() else { return false };
                let write = |out: &mut String| blocks::write_result(out, result, text);
                if !(turn.joins && list.join_text(write)) {
                    if turn.joins && list.last_mut().is_some() {
                        return false;
                    }
                    list.push_text(turn.start, true, |out| {
                        out.push_str(r#"{"role":"user","content":["#);
                        write(out);
                        out.push_str("]}");
                    });
                }
            }
            _ => return false,
        }
        true
    }

    fn write(
        &self,
        part: &Part,
        is_assistant: bool,
        ids: &CallIds,
    ) -> Result<Option<Value>, UnsupportedPart> {
        let is_2026 = self.protocol.is_stricter();
        blocks::write(part, &self.model.provider, BlockTarget { is_assistant, is_2026 }, ids)
    }

    fn content(&self, parts: &[Part], is_assistant: bool, ids: &CallIds) -> Result<Value, ModelError> {
        match plain_text(parts, &self.model.provider)
            .filter(|_| parts.iter().all(|part| part.cache.is_none()))
        {
            Some(text) => Ok(text.into()),
            None => Ok(write_parts(parts, &RULES, |part| self.write(part, is_assistant, ids))?.into()),
        }
    }

    fn tool_result(
        &self,
        result: &WireResult<'_>,
        data: Option<&Value>,
        ids: &CallIds,
    ) -> Result<Value, ModelError> {
        let mut block = JsonObject::new();
        block.insert("type".into(), "tool_result".into());
        block.insert("tool_use_id".into(), result.call_id.into());
        let content = if result.has_media_after {
            let mut texts = write_parts(&result.parts, &RULES, |part| self.write(part, false, ids))?;
            if texts.is_empty() {
                texts.push(json!({"type": "text", "text": SHOWN_AFTER}));
            }
            texts.into()
        } else {
            self.content(&result.parts, false, ids)?
        };
        if !is_blank(&content) {
            block.insert("content".into(), content);
        }
        if result.message.is_error {
            block.insert("is_error".into(), true.into());
        }
        add_rest(&mut block, data.and_then(|data| data.get("block")));
        Ok(block.into())
    }
}

/// Returns whether a part is not allowed in a failed result: Anthropic accepts only texts in failed results.
///
/// Source: the error for a failed result with other content, `all content must be type "text" if "is_error" is true`.
fn is_no_text(part: &Part, provider: &str) -> bool {
    match &part.content {
        Content::Image(_) | Content::Document(_) | Content::Audio(_) => true,
        Content::Opaque(opaque) => opaque.provider == provider && opaque.data["type"] != "text",
        _ => false,
    }
}

fn is_blank(content: &Value) -> bool {
    match content {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(blocks) => blocks.is_empty(),
        _ => false,
    }
}

/// Trims the last message if it is the assistant's, because a message that the model continues must not end in whitespace.
fn trim(last: &mut Value) {
    if last["role"] != "assistant" {
        return;
    }
    let content = &mut last["content"];
    let text = if content.is_array() {
        content.as_array_mut().and_then(|blocks| blocks.last_mut()?.get_mut("text"))
    } else {
        Some(content)
    };
    if let Some(Value::String(text)) = text {
        text.truncate(text.trim_end().len());
    }
}
