//! Parses the JSON of requests to Gemini into [`ModelRequest`]s.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::{Gemini, encode, parts};
use crate::message::{
    AssistantMessage, Message, OutcomeKind, Part, ProviderData, ToolResultMessage, UserMessage,
};
use crate::model::{
    ManagedTool, ModelError, ModelErrorKind, ModelInfo, ModelRequest, OutputSchema, Thinking, ToolChoice,
};
use crate::provider::Protocol as _;
use crate::provider::parts::{
    JsonObject, JsonSource, mark_assistant_first, merge_options_for, name_protocol, take_text, text,
};
use crate::provider::tools::read_tool;

fn invalid(what: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::InvalidRequest, what)
}

/// Parses a request. The name of the model is empty, because it is in the path and not in the body.
pub(super) fn request(
    protocol: &Gemini,
    provider: &str,
    body: &Value,
) -> Result<(String, ModelRequest), ModelError> {
    let given = body.as_object().ok_or_else(|| invalid("a request is a JSON object"))?;
    let contents = given.get("contents").and_then(Value::as_array);
    let contents = contents.ok_or_else(|| invalid("the request has no `contents`"))?;
    let mut reader = Reader { provider, calls: VecDeque::new(), generated_ids: 0, messages: Vec::new() };
    for content in contents {
        reader.content(content)?;
    }
    mark_assistant_first(&mut reader.messages, provider);
    name_protocol(&mut reader.messages, provider, protocol.api(), "");
    let mut request = ModelRequest::new(reader.messages);
    request.system = given.get("systemInstruction").and_then(system).map(Into::into);
    if let Some(config) = given.get("generationConfig") {
        request.max_tokens = config.get("maxOutputTokens").and_then(Value::as_u64);
        request.temperature = config.get("temperature").and_then(Value::as_f64);
        request.top_p = config.get("topP").and_then(Value::as_f64);
        let stop = config.get("stopSequences").and_then(Value::as_array);
        request.stop = stop.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        request.thinking = config.get("thinkingConfig").and_then(thinking);
        let schema = config.get("responseJsonSchema").or_else(|| config.get("responseSchema"));
        request.output = schema.map(|schema| OutputSchema::new("reply", schema.clone()));
    }
    let mut tools = Vec::new();
    for tool in given.get("tools").and_then(Value::as_array).into_iter().flatten() {
        let declarations = tool.get("functionDeclarations").and_then(Value::as_array);
        let is_known = |tool: &&Value| declaration(tool).is_some();
        match declarations.filter(|list| list.iter().all(|tool| is_known(&tool))) {
            Some(list) if tools.is_empty() => tools.extend(list.iter().filter_map(declaration)),
            _ => request.managed_tools.push(ManagedTool::other(provider, tool.clone())),
        }
    }
    request.tools = tools.into();
    let choice = given.get("toolConfig").and_then(|config| config.get("functionCallingConfig"));
    let names = choice.and_then(|choice| choice.get("allowedFunctionNames")?.as_array());
    match choice.and_then(|choice| text(choice, "mode")) {
        Some("NONE") => request.tool_choice = ToolChoice::None,
        Some("ANY") => {
            request.tool_choice = match names.map(Vec::as_slice) {
                Some([Value::String(name)]) => ToolChoice::Tool(name.clone()),
                _ => ToolChoice::Required,
            };
        }
        Some("VALIDATED") => request.strict_tools = true,
        _ => {}
    }
    let model = String::new();
    let info = ModelInfo::new(provider, protocol.api(), model.as_str());
    // Cached content contains the system prompt and the tools, so a request with cached content is encoded without them.
    if let Some(cached) = given.get("cachedContent") {
        request.provider_options.insert(provider.to_owned(), json!({"cachedContent": cached}));
    }
    let encoded = protocol.encode(&info, &request)?;
    request.provider_options.shift_remove(provider);
    let mut encoded = encoded.json().as_object().cloned().unwrap_or_default();
    encoded.shift_remove("cachedContent");
    if let Some(options) = merge_options_for(given, &encoded, "contents") {
        request.provider_options.insert(provider.to_owned(), options);
    }
    Ok((model, request))
}

fn declaration(tool: &Value) -> Option<crate::tool::definition::ToolDefinition> {
    ["parametersJsonSchema", "parameters_json_schema", "parameters"]
        .iter()
        .find_map(|key| read_tool(tool, key))
}

fn system(value: &Value) -> Option<String> {
    let parts = value.get("parts").and_then(Value::as_array)?;
    let texts: Vec<&str> = parts.iter().filter_map(|part| text(part, "text")).collect();
    Some(texts.join("\n\n"))
}

fn thinking(config: &Value) -> Option<Thinking> {
    if let Some(word) = text(config, "thinkingLevel") {
        return word.to_lowercase().parse().ok();
    }
    match config.get("thinkingBudget")?.as_i64()? {
        0 => Some(Thinking::None),
        tokens => u32::try_from(tokens).ok().map(Thinking::Budget),
    }
}

struct Reader<'a> {
    provider: &'a str,
    /// The ids and names of the last reply's calls that have no result yet.
    calls: VecDeque<(String, String)>,
    generated_ids: usize,
    messages: Vec<Message>,
}

/// Returns the fields of a content for which a message has no equivalent. The encoder needs them to write the content back unchanged.
fn other_fields(content: &Value, role: &str) -> JsonObject {
    let mut rest = content.as_object().cloned().unwrap_or_default();
    match rest.get("role") {
        None => drop(rest.insert("no_role".to_owned(), true.into())),
        Some(given) if given == role => drop(rest.shift_remove("role")),
        Some(_) => {}
    }
    // An empty list stays, because the encoder otherwise leaves out a content without parts.
    if rest.get("parts").and_then(Value::as_array).is_some_and(|parts| !parts.is_empty()) {
        rest.shift_remove("parts");
    }
    rest
}

/// Returns provider data that records to which content a message belongs. `rest` is `None` if the content is that of the previous message.
/// Otherwise `rest` has the [`other_fields`] of a new content. The data of a result always contains `joined`, because the encoder joins
/// results by default.
fn position_data(rest: Option<JsonObject>, is_result: bool) -> JsonObject {
    let mut data = JsonObject::new();
    if rest.is_none() || is_result {
        data.insert("joined".to_owned(), rest.is_none().into());
    }
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        data.insert("content".to_owned(), rest.into());
    }
    data
}

impl Reader<'_> {
    fn content(&mut self, content: &Value) -> Result<(), ModelError> {
        let list = content.get("parts").and_then(Value::as_array).cloned().unwrap_or_default();
        match text(content, "role") {
            Some("model") => self.reply(list, other_fields(content, "model")),
            Some("user" | "function") | None => self.user_content(list, other_fields(content, "user")),
            Some(other) => return Err(invalid(format!("Gemini has no role `{other}`"))),
        }
        Ok(())
    }

    fn reply(&mut self, list: Vec<Value>, rest: JsonObject) {
        self.calls.clear();
        let mut read: Vec<Part> = list
            .into_iter()
            .map(|part| parts::read(self.provider, part, None, JsonSource::Request))
            .collect();
        for part in &mut read {
            let crate::message::Content::ToolCall(call) = &mut part.content else { continue };
            if call.id.is_empty() {
                self.generated_ids += 1;
                call.id = format!("call_{}", self.generated_ids);
            }
            self.calls.push_back((call.id.clone(), call.name.clone()));
        }
        let mut message = AssistantMessage::new(read);
        message.provider_data = self.data(position_data(Some(rest), false)).map(Box::new);
        self.messages.push(message.into());
    }

    fn data(&self, data: JsonObject) -> Option<ProviderData> {
        (!data.is_empty()).then(|| ProviderData::new(self.provider, data))
    }

    /// Reads a user's content: each result becomes one message, and so does each sequence of other parts.
    fn user_content(&mut self, list: Vec<Value>, rest: JsonObject) {
        let mut rest = Some(rest);
        let mut user_parts: Vec<Part> = Vec::new();
        for part in list {
            if part.get("functionResponse").is_none() {
                user_parts.push(self.part(part));
                continue;
            }
            if !user_parts.is_empty() {
                self.push_user(std::mem::take(&mut user_parts), rest.take());
            }
            let result = self.result(part, position_data(rest.take(), true));
            self.messages.push(result.into());
        }
        if !user_parts.is_empty() || rest.is_some() {
            self.push_user(user_parts, rest);
        }
    }

    fn push_user(&mut self, user_parts: Vec<Part>, rest: Option<JsonObject>) {
        let mut user = UserMessage::new(user_parts);
        user.provider_data = self.data(position_data(rest, false)).map(Box::new);
        self.messages.push(user.into());
    }

    /// Reads a part. A part that would not be written back unchanged becomes an opaque part.
    fn part(&self, value: Value) -> Part {
        let part = parts::read(self.provider, value.clone(), None, JsonSource::Request);
        match parts::write(&part, self.provider) {
            Ok(Some(written)) if written == value => part,
            _ => Part::opaque(self.provider, value),
        }
    }

    fn result(&mut self, part: Value, mut data: JsonObject) -> ToolResultMessage {
        let Value::Object(mut part) = part else {
            return ToolResultMessage::new("", "", OutcomeKind::Completed);
        };
        let mut response = match part.shift_remove("functionResponse") {
            Some(Value::Object(response)) => response,
            _ => JsonObject::new(),
        };
        let name = take_text(&mut response, "name").unwrap_or_default();
        let given_id = take_text(&mut response, "id");
        let by_id = given_id.as_ref().and_then(|id| self.calls.iter().position(|(known, _)| known == id));
        let at = by_id.or_else(|| self.calls.iter().position(|(_, known)| *known == name));
        let id = at.and_then(|at| self.calls.remove(at)).map(|(id, _)| id);
        let id = id.or_else(|| given_id.clone()).unwrap_or_default();
        let response_content = response.shift_remove("response");
        let output = response_content.as_ref().unwrap_or(&Value::Null);
        let failed = text(output, "error");
        let outcome = if failed.is_some() { OutcomeKind::Failed } else { OutcomeKind::Completed };
        let words =
            failed.or_else(|| text(output, "output")).map_or_else(|| output.to_string(), str::to_owned);
        let mut result = ToolResultMessage::new(id, name, outcome).with_content(words);
        data.insert("id".to_owned(), given_id.map(Value::from).unwrap_or_default());
        match response_content {
            None => {
                data.insert("no_response".to_owned(), true.into());
            }
            Some(response_content)
                if encode::encode_response(&result.content, &result) != response_content =>
            {
                data.insert("response".to_owned(), response_content);
            }
            Some(_) => {}
        }
        if response.get("parts").and_then(Value::as_array).is_some_and(|parts| !parts.is_empty())
            && let Some(Value::Array(media)) = response.shift_remove("parts")
        {
            result.content.extend(media.into_iter().map(|media| self.part(media)));
        }
        for (key, rest) in [("functionResponse", response), ("part", part)] {
            if !rest.is_empty() {
                data.insert(key.to_owned(), rest.into());
            }
        }
        result.provider_data = self.data(data).map(Box::new);
        result
    }
}
