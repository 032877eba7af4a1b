//! Parses recorded Responses requests, the inverse of `encode`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{OpenAiResponses, encode, items};
use crate::message::{
    AssistantMessage, Content, CustomMessage, Media, Message, OutcomeKind, Part, ProviderData,
    ToolResultMessage, UserMessage,
};
use crate::model::{ManagedTool, ModelError, ModelInfo, ModelRequest, OutputSchema};
use crate::provider::Protocol as _;
use crate::provider::openai::content::invalid;
use crate::provider::openai::read::{read_content, read_tool_choice, rest_data, take_content};
use crate::provider::parts::{
    JsonSource, media_from_url, name_protocol, options_for, take_text, text, with_rest,
};
use crate::provider::tools::read_tool;

pub(super) fn request(
    protocol: &OpenAiResponses,
    provider: &str,
    body: &Value,
) -> Result<(String, ModelRequest), ModelError> {
    let given = body.as_object().ok_or_else(|| invalid("a request is a JSON object"))?;
    let model = text(body, "model").ok_or_else(|| invalid("the request names no `model`"))?;
    let mut reader =
        Reader { provider, tools_of_calls: HashMap::new(), messages: Vec::new(), reply: Vec::new() };
    match given.get("input") {
        Some(Value::String(said)) => {
            let mut user = UserMessage::from(said.as_str());
            let data = Map::from_iter([("input".to_owned(), Value::from("string"))]);
            user.provider_data = Some(Box::new(ProviderData::new(provider, data)));
            reader.messages.push(user.into());
        }
        Some(Value::Array(items)) => items.iter().for_each(|item| reader.item(item)),
        // A request without `input` continues something that the provider stores, for example by `previous_response_id`.
        None | Some(Value::Null) => {}
        Some(_) => return Err(invalid("the `input` of a request is a text or a list")),
    }
    reader.end_reply();
    name_protocol(&mut reader.messages, provider, protocol.api(), model);
    let mut request = ModelRequest::new(reader.messages);
    request.system = text(body, "instructions").map(Into::into);
    request.max_tokens = given.get("max_output_tokens").and_then(Value::as_u64);
    request.temperature = given.get("temperature").and_then(Value::as_f64);
    request.top_p = given.get("top_p").and_then(Value::as_f64);
    request.thinking = given
        .get("reasoning")
        .and_then(|reasoning| text(reasoning, "effort"))
        .and_then(|word| word.parse().ok());
    request.parallel_tool_calls = given.get("parallel_tool_calls").and_then(Value::as_bool);
    request.cache_key = text(body, "prompt_cache_key").map(str::to_owned);
    if let Some(user) = given.get("safety_identifier") {
        request.metadata.insert("user_id".into(), user.clone());
    }
    if let Some(format) = given.get("text").and_then(|text| text.get("format"))
        && let (Some(schema), Some(name)) = (format.get("schema"), text(format, "name"))
    {
        let mut output = OutputSchema::new(name, schema.clone());
        output.description = text(format, "description").map(str::to_owned);
        request.output = Some(output);
    }
    let mut tools = Vec::new();
    for tool in given.get("tools").and_then(Value::as_array).into_iter().flatten() {
        let definition =
            if text(tool, "type") == Some("function") { read_tool(tool, "parameters") } else { None };
        match definition {
            Some(definition) => tools.push(definition),
            None => request.managed_tools.push(ManagedTool::other(provider, tool.clone())),
        }
        request.strict_tools |= tool.get("strict") == Some(&Value::Bool(true));
    }
    request.tools = tools.into();
    request.tool_choice = read_tool_choice(given.get("tool_choice"), |choice| {
        (text(choice, "type") == Some("function")).then(|| text(choice, "name").unwrap_or_default())
    });
    // `store` is set before `encode`, because it decides which reasoning is sent back.
    let store = Map::from_iter([("store".to_owned(), given.get("store").cloned().unwrap_or_default())]);
    request.provider_options.insert(provider.to_owned(), store.into());
    let info = ModelInfo::new(provider, protocol.api(), model);
    let encoded = protocol.encode(&info, &request)?;
    request.provider_options.shift_remove(provider);
    let mut encoded = encoded.json().as_object().cloned().unwrap_or_default();
    encoded.insert("store".to_owned(), protocol.store.into());
    if let Some(options) = options_for(given, &encoded, "input") {
        request.provider_options.insert(provider.to_owned(), options);
    }
    Ok((model.to_owned(), request))
}

struct Reader<'a> {
    provider: &'a str,
    tools_of_calls: HashMap<String, String>,
    messages: Vec<Message>,
    /// The parts that the model wrote since the last item of the user, the system or a tool.
    reply: Vec<Part>,
}

impl Reader<'_> {
    fn item(&mut self, item: &Value) {
        match (text(item, "type"), text(item, "role")) {
            (None | Some("message"), Some("user" | "system" | "developer")) => self.input_message(item),
            (Some("function_call_output"), _) => self.result(item),
            _ => {
                let is_plain = |part: &Part| part.as_text().is_some() && part.provider_data.is_none();
                let parts = items::read(self.provider, item.clone(), JsonSource::Request);
                // Two plain messages of the assistant in a row stay two messages.
                if parts.first().is_some_and(is_plain) && self.reply.last().is_some_and(is_plain) {
                    self.end_reply();
                }
                for call in parts.iter().filter_map(Part::as_tool_call) {
                    self.tools_of_calls.insert(call.id.clone(), call.name.clone());
                }
                self.reply.extend(parts);
            }
        }
    }

    fn end_reply(&mut self) {
        if !self.reply.is_empty() {
            let message = AssistantMessage::new(std::mem::take(&mut self.reply));
            self.messages.push(message.into());
        }
    }

    fn input_message(&mut self, item: &Value) {
        self.end_reply();
        let mut fields = item.as_object().cloned().unwrap_or_default();
        let role = take_text(&mut fields, "role").unwrap_or_default();
        let parts = self.parts(take_content(&mut fields, "content"));
        if role == "user" {
            let mut user = UserMessage::new(parts);
            user.provider_data = rest_data(self.provider, fields).map(Box::new);
            self.messages.push(user.into());
        } else {
            let mut custom = CustomMessage::new(role, Value::Null).with_for_model(parts);
            custom.provider_data = rest_data(self.provider, fields).map(Box::new);
            self.messages.push(custom.into());
        }
    }

    fn result(&mut self, item: &Value) {
        self.end_reply();
        let mut fields = item.as_object().cloned().unwrap_or_default();
        fields.shift_remove("type");
        let id = take_text(&mut fields, "call_id").unwrap_or_default();
        let tool = self.tools_of_calls.get(&id).cloned().unwrap_or_default();
        let mut result = ToolResultMessage::new(id, tool, OutcomeKind::Completed);
        result.content = self.parts(take_content(&mut fields, "output"));
        result.provider_data = rest_data(self.provider, fields).map(Box::new);
        self.messages.push(result.into());
    }

    fn parts(&self, content: Option<Value>) -> Vec<Part> {
        let write = |part: &Part| encode::write(part, self.provider).ok().flatten();
        read_content(content, self.provider, |value| self.known_part(value), write)
    }

    fn known_part(&self, value: &Value) -> Option<Part> {
        let Value::Object(mut fields) = value.clone() else { return None };
        let content = match take_text(&mut fields, "type")?.as_str() {
            "input_text" => Content::Text(take_text(&mut fields, "text")?),
            "input_image" => {
                if text(value, "detail") == Some("auto") {
                    fields.shift_remove("detail");
                }
                Content::Image(match take_text(&mut fields, "image_url") {
                    Some(url) => media_from_url(&url),
                    None => Media::file_id(take_text(&mut fields, "file_id")?),
                })
            }
            "input_file" => {
                let media = if let Some(data) = take_text(&mut fields, "file_data") {
                    media_from_url(&data)
                } else if let Some(url) = take_text(&mut fields, "file_url") {
                    Media::url(url)
                } else {
                    Media::file_id(take_text(&mut fields, "file_id")?)
                };
                Content::Document(Media { name: take_text(&mut fields, "filename"), ..media })
            }
            _ => return None,
        };
        Some(with_rest(Part::new(content), self.provider, fields, JsonSource::Request))
    }
}
