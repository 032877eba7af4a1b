//! Parses requests to Anthropic into neutral requests.

use std::collections::HashMap;

use serde_json::Value;

use super::{AnthropicMessages, blocks};
use crate::message::{
    AssistantMessage, CacheMark, CustomMessage, Message, OutcomeKind, Part, ProviderData, ToolResultMessage,
    UserMessage,
};
use crate::model::{
    ManagedTool, ModelError, ModelErrorKind, ModelInfo, ModelRequest, OutputSchema, Thinking, ToolChoice,
};
use crate::provider::Protocol as _;
use crate::provider::parts::{
    JsonObject, JsonSource, mark_assistant_first, name_protocol, options_for, take_text, text,
};
use crate::provider::tools::read_tool;

pub(super) fn request(
    protocol: &AnthropicMessages,
    provider: &str,
    body: &Value,
) -> Result<(String, ModelRequest), ModelError> {
    let invalid = |what: &str| ModelError::new(ModelErrorKind::InvalidRequest, what);
    let given = body.as_object().ok_or_else(|| invalid("a request is a JSON object"))?;
    let model = text(body, "model").ok_or_else(|| invalid("the request names no `model`"))?;
    let messages = given.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| invalid("the request has no `messages`"))?;
    let mut reader =
        Reader { provider, tools_of_calls: HashMap::new(), messages: Vec::new(), after_results: false };
    for message in messages {
        reader.message(message)?;
    }
    mark_assistant_first(&mut reader.messages, provider);
    name_protocol(&mut reader.messages, provider, protocol.api(), model);
    let mut request = ModelRequest::new(reader.messages);
    request.system = system(given.get("system")).map(Into::into);
    request.max_tokens = given.get("max_tokens").and_then(Value::as_u64);
    request.temperature = given.get("temperature").and_then(Value::as_f64);
    request.top_p = given.get("top_p").and_then(Value::as_f64);
    let stop = given.get("stop_sequences").and_then(Value::as_array);
    request.stop = stop.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    request.thinking = thinking(given);
    request.cached_conversation = given.get("cache_control").and_then(cache_mark);
    if let Some(schema) = given.get("output_config").and_then(|config| config.get("format")?.get("schema")) {
        request.output = Some(OutputSchema::new("reply", schema.clone()));
    }
    if let Some(user) = given.get("metadata").and_then(|metadata| metadata.get("user_id")) {
        request.metadata.insert("user_id".into(), user.clone());
    }
    let mut tools = Vec::new();
    for tool in given.get("tools").and_then(Value::as_array).into_iter().flatten() {
        match read_tool(tool, "input_schema") {
            Some(definition) => tools.push(definition),
            None => request.managed_tools.push(ManagedTool::other(provider, tool.clone())),
        }
        request.strict_tools |= tool.get("strict") == Some(&Value::Bool(true));
    }
    request.tools = tools.into();
    if let Some(choice) = given.get("tool_choice") {
        request.tool_choice = match text(choice, "type") {
            Some("none") => ToolChoice::None,
            Some("any") => ToolChoice::Required,
            Some("tool") => ToolChoice::Tool(text(choice, "name").unwrap_or_default().to_owned()),
            _ => ToolChoice::Auto,
        };
        let disabled = choice.get("disable_parallel_tool_use").and_then(Value::as_bool);
        request.parallel_tool_calls = disabled.map(|disabled| !disabled);
    }
    let info = ModelInfo::new(provider, protocol.api(), model);
    let encoded = protocol.encode(&info, &request)?;
    if let Some(options) =
        encoded.json().as_object().and_then(|encoded| options_for(given, encoded, "messages"))
    {
        request.provider_options.insert(provider.to_owned(), options);
    }
    Ok((model.to_owned(), request))
}

fn system(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| text(block, "text")).collect();
            Some(texts.join("\n\n"))
        }
        _ => None,
    }
}

fn thinking(body: &JsonObject) -> Option<Thinking> {
    let effort = || body.get("output_config").and_then(|config| text(config, "effort"))?.parse().ok();
    let thinking = body.get("thinking")?;
    match text(thinking, "type")? {
        "disabled" => Some(Thinking::None),
        "enabled" => {
            let budget = thinking.get("budget_tokens").and_then(Value::as_u64);
            budget.and_then(|tokens| tokens.try_into().ok()).map(Thinking::Budget)
        }
        "adaptive" => effort().or(Some(Thinking::High)),
        _ => None,
    }
}

fn cache_mark(value: &Value) -> Option<CacheMark> {
    match text(value, "ttl") {
        None => Some(CacheMark::Usual),
        Some("5m") => Some(CacheMark::FiveMinutes),
        Some("1h") => Some(CacheMark::Hour),
        Some(_) => None,
    }
}

struct Reader<'a> {
    provider: &'a str,
    /// The name of each call's tool, by the call's id.
    tools_of_calls: HashMap<String, String>,
    messages: Vec<Message>,
    /// Whether the previous message has results. If so, a user message after it is marked as separate, because encoding would join the two.
    after_results: bool,
}

impl Reader<'_> {
    fn message(&mut self, message: &Value) -> Result<(), ModelError> {
        let invalid = |what: String| ModelError::new(ModelErrorKind::InvalidRequest, what);
        let Value::Object(mut fields) = message.clone() else {
            return Err(invalid(format!("a message is an object, found {message}")));
        };
        let role = take_text(&mut fields, "role").unwrap_or_default();
        let content = fields.shift_remove("content").unwrap_or_default();
        let is_separate = std::mem::take(&mut self.after_results) && role == "user";
        let provider = self.provider;
        let data = |fields: JsonObject, is_separate: bool| {
            let mut data = JsonObject::new();
            if !fields.is_empty() {
                data.insert("message".to_owned(), fields.into());
            }
            if is_separate {
                data.insert("apart".to_owned(), true.into());
            }
            (!data.is_empty()).then(|| ProviderData::new(provider, data))
        };
        match role.as_str() {
            "assistant" => {
                let mut assistant = AssistantMessage::new(self.parts(content));
                for call in assistant.tool_calls() {
                    self.tools_of_calls.insert(call.id.clone(), call.name.clone());
                }
                assistant.provider_data = data(fields, false).map(Box::new);
                self.messages.push(assistant.into());
            }
            "user" => {
                let mut blocks = match content {
                    Value::Array(blocks) => blocks,
                    text => {
                        let mut user = UserMessage::new(self.parts(text));
                        user.provider_data = data(fields, is_separate).map(Box::new);
                        self.messages.push(user.into());
                        return Ok(());
                    }
                };
                let others = blocks.iter().position(|block| text(block, "type") != Some("tool_result"));
                let others = blocks.split_off(others.unwrap_or(blocks.len()));
                let has_results = !blocks.is_empty();
                let rest = data(fields, is_separate && !has_results);
                for (at, block) in blocks.into_iter().enumerate() {
                    let result = self.tool_result(block, is_separate && at == 0);
                    self.messages.push(result.into());
                }
                self.after_results = has_results;
                if !others.is_empty() || !has_results || rest.is_some() {
                    let mut user = UserMessage::new(self.parts(Value::Array(others)));
                    user.provider_data = rest.map(Box::new);
                    self.messages.push(user.into());
                }
            }
            "system" => {
                let parts = self.parts(content);
                let mut custom = CustomMessage::new("system", Value::Null).with_for_model(parts);
                custom.provider_data = data(fields, false).map(Box::new);
                self.messages.push(custom.into());
            }
            other => return Err(invalid(format!("Anthropic has no role `{other}`"))),
        }
        Ok(())
    }

    fn parts(&self, content: Value) -> Vec<Part> {
        match content {
            Value::String(text) => vec![Part::text(text)],
            Value::Array(blocks) => blocks
                .into_iter()
                .map(|block| blocks::read(self.provider, block, None, JsonSource::Request))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn tool_result(&self, block: Value, is_separate: bool) -> ToolResultMessage {
        let Value::Object(mut fields) = block else {
            return ToolResultMessage::new("", "", OutcomeKind::Completed);
        };
        fields.shift_remove("type");
        let id = take_text(&mut fields, "tool_use_id").unwrap_or_default();
        let failed = fields.get("is_error") == Some(&Value::Bool(true));
        if failed {
            fields.shift_remove("is_error");
        }
        let tool = self.tools_of_calls.get(&id).cloned().unwrap_or_default();
        let outcome = if failed { OutcomeKind::Failed } else { OutcomeKind::Completed };
        let mut result = ToolResultMessage::new(id, tool, outcome);
        // An empty content stays in the fields, so that it is written back unchanged.
        if fields.get("content").is_some_and(|content| match content {
            Value::String(text) => !text.trim().is_empty(),
            content => content.as_array().is_some_and(|blocks| !blocks.is_empty()),
        }) {
            result.content = self.parts(fields.shift_remove("content").unwrap_or_default());
        }
        let mut data = JsonObject::new();
        if !fields.is_empty() {
            data.insert("block".to_owned(), fields.into());
        }
        if is_separate {
            data.insert("apart".to_owned(), true.into());
        }
        if !data.is_empty() {
            result.provider_data = Some(Box::new(ProviderData::new(self.provider, data)));
        }
        result
    }
}
