//! Parses recorded Chat Completions requests, the inverse of `encode`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Compat, OpenAiChat, decode, encode};
use crate::message::{
    AssistantMessage, Content, CustomMessage, Media, Message, OutcomeKind, Part, ProviderData, ToolArguments,
    ToolResultMessage, UserMessage,
};
use crate::model::{ManagedTool, ModelError, ModelInfo, ModelRequest, OutputSchema};
use crate::provider::Protocol as _;
use crate::provider::openai::content::invalid;
use crate::provider::openai::read::{read_content, read_tool_choice, take_content};
use crate::provider::parts::{
    JsonObject, JsonSource, media_from_url, name_protocol, options_for, some_text, take_text, text, with_rest,
};
use crate::provider::tools::read_tool;

pub(super) fn request(
    protocol: &OpenAiChat,
    provider: &str,
    body: &Value,
) -> Result<(String, ModelRequest), ModelError> {
    let given = body.as_object().ok_or_else(|| invalid("a request is a JSON object"))?;
    let model = text(body, "model").ok_or_else(|| invalid("the request names no `model`"))?;
    let messages = given.get("messages").and_then(Value::as_array);
    let mut messages = messages.ok_or_else(|| invalid("the request has no `messages`"))?.iter().peekable();
    let role = encode::system_role(&protocol.compat, model);
    let system = messages.next_if(|message| {
        let plain = message.as_object().is_some_and(|fields| fields.len() == 2);
        plain
            && role != "user"
            && text(message, "role") == Some(role)
            && some_text(message, "content").is_some()
    });
    let compat = &protocol.compat;
    let mut reader = Reader { provider, compat, tools_of_calls: HashMap::new(), messages: Vec::new() };
    for message in messages {
        reader.message(message)?;
    }
    name_protocol(&mut reader.messages, provider, protocol.api(), model);
    let mut request = ModelRequest::new(reader.messages);
    request.system = system.and_then(|system| text(system, "content")).map(Into::into);
    let number = |key: &str| given.get(key).and_then(Value::as_u64);
    request.max_tokens = number("max_completion_tokens").or_else(|| number("max_tokens"));
    request.temperature = given.get("temperature").and_then(Value::as_f64);
    request.top_p = given.get("top_p").and_then(Value::as_f64);
    request.stop = match given.get("stop") {
        Some(Value::String(word)) => vec![word.clone()],
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    request.thinking = text(body, "reasoning_effort").and_then(|effort| effort.parse().ok());
    request.parallel_tool_calls = given.get("parallel_tool_calls").and_then(Value::as_bool);
    request.cache_key = text(body, "prompt_cache_key").map(str::to_owned);
    if let Some(user) = given.get("user") {
        request.metadata.insert("user_id".into(), user.clone());
    }
    if let Some(format) = given.get("response_format").and_then(|format| format.get("json_schema"))
        && let Some(schema) = format.get("schema")
    {
        let mut output = OutputSchema::new(text(format, "name").unwrap_or("reply"), schema.clone());
        output.description = text(format, "description").map(str::to_owned);
        request.output = Some(output);
    }
    let mut tools = Vec::new();
    for tool in given.get("tools").and_then(Value::as_array).into_iter().flatten() {
        let function = tool.get("function").unwrap_or(&Value::Null);
        match read_tool(function, "parameters") {
            Some(definition) => tools.push(definition),
            None => request.managed_tools.push(ManagedTool::other(provider, tool.clone())),
        }
        request.strict_tools |= function.get("strict") == Some(&Value::Bool(true));
    }
    request.tools = tools.into();
    request.tool_choice =
        read_tool_choice(given.get("tool_choice"), |choice| text(choice.get("function")?, "name"));
    let info = ModelInfo::new(provider, protocol.api(), model);
    let encoded = protocol.encode(&info, &request)?;
    if let Some(options) =
        encoded.json().as_object().and_then(|encoded| options_for(given, encoded, "messages"))
    {
        request.provider_options.insert(provider.to_owned(), options);
    }
    Ok((model.to_owned(), request))
}

struct Reader<'a> {
    provider: &'a str,
    compat: &'a Compat,
    tools_of_calls: HashMap<String, String>,
    messages: Vec<Message>,
}

impl Reader<'_> {
    fn message(&mut self, message: &Value) -> Result<(), ModelError> {
        let Value::Object(mut fields) = message.clone() else {
            return Err(invalid(format!("a message is an object, found {message}")));
        };
        let role = take_text(&mut fields, "role").unwrap_or_default();
        match role.as_str() {
            "assistant" => {
                let message = self.assistant(fields);
                self.messages.push(message.into());
            }
            "user" => {
                let mut user = UserMessage::new(self.parts(take_content(&mut fields, "content")));
                user.provider_data = self.rest(fields, JsonObject::new()).map(Box::new);
                self.messages.push(user.into());
            }
            "system" | "developer" => {
                let parts = self.parts(take_content(&mut fields, "content"));
                let mut custom = CustomMessage::new(role, Value::Null).with_for_model(parts);
                custom.provider_data = self.rest(fields, JsonObject::new()).map(Box::new);
                self.messages.push(custom.into());
            }
            // A result for the older `function_call` has the role `function`, and the function's name instead of a call id.
            "tool" | "function" => {
                let id = take_text(&mut fields, "tool_call_id").unwrap_or_default();
                let name = text(message, "name").map(str::to_owned);
                let tool = self.tools_of_calls.get(&id).cloned().or(name).unwrap_or_default();
                let mut result = ToolResultMessage::new(id, tool, OutcomeKind::Completed);
                result.content = self.parts(take_content(&mut fields, "content"));
                if role == "function" {
                    fields.insert("role".to_owned(), role.into());
                }
                result.provider_data = self.rest(fields, JsonObject::new()).map(Box::new);
                self.messages.push(result.into());
            }
            other => return Err(invalid(format!("Chat Completions has no role `{other}`"))),
        }
        Ok(())
    }

    /// Returns provider data with the entries of `data`, and the unparsed fields as `message`. Returns `None` if both are empty.
    fn rest(&self, fields: JsonObject, mut data: JsonObject) -> Option<ProviderData> {
        if !fields.is_empty() {
            data.insert("message".to_owned(), fields.into());
        }
        (!data.is_empty()).then(|| ProviderData::new(self.provider, data))
    }

    fn assistant(&mut self, mut fields: JsonObject) -> AssistantMessage {
        let mut parts = Vec::new();
        for field in decode::THINKING_FIELDS {
            if let Some(thought) = take_text(&mut fields, field) {
                let data = Map::from_iter([("field".to_owned(), field.into())]);
                parts.push(with_rest(Part::thinking(thought), self.provider, data, JsonSource::Request));
            }
        }
        let mut data = JsonObject::new();
        if !fields.contains_key("content") {
            data.insert("no_content".to_owned(), true.into());
        }
        // The encoder writes null content for a message with calls, so the null is not kept.
        if fields.get("content").is_some_and(Value::is_null) && fields.contains_key("tool_calls") {
            fields.shift_remove("content");
        }
        parts.extend(self.parts(take_content(&mut fields, "content")));
        if fields.get("refusal").and_then(Value::as_str).is_some_and(|refusal| !refusal.is_empty()) {
            parts.extend(take_text(&mut fields, "refusal").map(Part::refusal));
        }
        if let Some(Value::Array(calls)) = fields.get("tool_calls")
            && let Some(calls) = calls.iter().map(|call| self.call(call)).collect::<Option<Vec<Part>>>()
            && !calls.is_empty()
        {
            parts.extend(calls);
            fields.shift_remove("tool_calls");
        }
        let mut message = AssistantMessage::new(parts);
        for call in message.tool_calls() {
            self.tools_of_calls.insert(call.id.clone(), call.name.clone());
        }
        message.provider_data = self.rest(fields, data).map(Box::new);
        message
    }

    fn call(&self, call: &Value) -> Option<Part> {
        let Value::Object(mut fields) = call.clone() else { return None };
        let function = fields.shift_remove("function")?;
        let Value::Object(mut function) = function else { return None };
        let name = take_text(&mut function, "name")?;
        let arguments = take_text(&mut function, "arguments")?;
        let id = take_text(&mut fields, "id")?;
        if fields.get("type").and_then(Value::as_str) == Some("function") {
            fields.shift_remove("type");
        } else {
            return None;
        }
        // Blank arguments are kept, although they mean `{}`, so that they are written back unchanged.
        if !function.is_empty() || arguments.trim().is_empty() {
            if arguments.trim().is_empty() {
                function.insert("arguments".to_owned(), arguments.as_str().into());
            }
            fields.insert("function".to_owned(), function.into());
        }
        let part = Part::tool_call(id, name, ToolArguments::from(arguments));
        Some(with_rest(part, self.provider, fields, JsonSource::Reply))
    }

    fn parts(&self, content: Option<Value>) -> Vec<Part> {
        let write = |part: &Part| encode::write(part, self.provider, self.compat).ok().flatten();
        read_content(content, self.provider, |value| self.known_part(value), write)
    }

    fn known_part(&self, value: &Value) -> Option<Part> {
        let Value::Object(mut fields) = value.clone() else { return None };
        let kind = take_text(&mut fields, "type")?;
        let content = match kind.as_str() {
            "text" => Content::Text(take_text(&mut fields, "text")?),
            "refusal" => Content::Refusal(take_text(&mut fields, "refusal")?),
            _ => {
                let Value::Object(mut inner) = fields.shift_remove(kind.as_str())? else { return None };
                let content = match kind.as_str() {
                    "image_url" => Content::Image(media_from_url(&take_text(&mut inner, "url")?)),
                    "file" => {
                        let media = match take_text(&mut inner, "file_data") {
                            Some(data) => media_from_url(&data),
                            None => Media::file_id(take_text(&mut inner, "file_id")?),
                        };
                        Content::Document(Media { name: take_text(&mut inner, "filename"), ..media })
                    }
                    "input_audio" => {
                        let format = take_text(&mut inner, "format")?;
                        let mime = match format.as_str() {
                            "mp3" => "audio/mpeg".to_owned(),
                            "m4a" => "audio/mp4".to_owned(),
                            format => format!("audio/{format}"),
                        };
                        let data = take_text(&mut inner, "data")?;
                        Content::Audio(Media::from_base64(&data, mime).ok()?)
                    }
                    _ => return None,
                };
                if !inner.is_empty() {
                    fields.insert(kind, inner.into());
                }
                content
            }
        };
        Some(with_rest(Part::new(content), self.provider, fields, JsonSource::Request))
    }
}
