//! Encodes provider-neutral requests, and decodes and re-encodes those of providers.

use std::error::Error;

use agent::args::{Plan, PlanOptions};
use agent::message::{CacheMark, Conversation, Message};
use agent::model::{ManagedTool, ModelRequest, OutputSchema, ToolChoice};
use agent::provider::HttpRequest;
use agent::{ToolDefinition, Value, json, tool::ToolOptions};

use crate::Options;

/// A stored conversation as the request that an assistant would send: the messages after the hand-off to this model, and beside
/// them what a request may have, under the names of [`ModelRequest`]'s fields.
pub(crate) fn encode(options: &Options, file: &str, given: &Value) -> Result<Value, Box<dyn Error>> {
    let model = given.get("model").and_then(Value::as_str).unwrap_or(&options.model);
    let request = neutral(options, given, model)?;
    let http = options.protocol.encode(&options.info(model), &request)?;
    Ok(line(options, file, &http))
}

/// A provider's request, read into neutral words and written again.
pub(crate) fn roundtrip(options: &Options, file: &str, given: &Value) -> Result<Value, Box<dyn Error>> {
    let (model, request) = options.protocol.parse_request(&options.provider, given)?;
    // Gemini names the model in the path.
    let model = if model.is_empty() { options.model.clone() } else { model };
    let http = options.protocol.encode(&options.info(&model), &request)?;
    Ok(line(options, file, &http))
}

fn line(options: &Options, file: &str, http: &HttpRequest) -> Value {
    let headers: serde_json::Map<String, Value> =
        http.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let url = http.url(options.protocol.base_url());
    json!({"file": file, "method": http.method, "url": url, "headers": headers, "body": http.json()})
}

/// What an assistant sends of a conversation to this model.
fn handed_off(options: &Options, conversation: &Conversation, model: &str) -> Vec<Message> {
    let info = options.info(model).with_capabilities(options.protocol.capabilities(model));
    let told = |message: &Message| match message {
        Message::ToolResult(result) if result.edited_args.is_some() => {
            result.clone().with_content(result.content_for_model().into_owned()).into()
        }
        message => message.clone(),
    };
    info.hand_off(conversation).iter().map(|message| told(message)).collect()
}

fn neutral(options: &Options, given: &Value, model: &str) -> Result<ModelRequest, Box<dyn Error>> {
    let list =
        if given.is_array() { given } else { given.get("messages").ok_or("the file has no `messages`")? };
    let mut conversation: Conversation = serde_json::from_value(list.clone())?;
    conversation.repair();
    let mut request = ModelRequest::new(handed_off(options, &conversation, model));
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    request.system = text("system").map(Into::into);
    let mut tools = Vec::new();
    for tool in given.get("tools").and_then(Value::as_array).into_iter().flatten() {
        let word = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default();
        let schema = tool.get("parameters").cloned().unwrap_or_else(|| json!({"type": "object"}));
        let plan = Plan::compile(word("name"), &schema, PlanOptions::default())?;
        let examples = tool.get("examples").and_then(Value::as_array).into_iter().flatten();
        let definition = ToolDefinition::new(plan, word("description"))?;
        tools.push(definition.configure(|options| examples.cloned().fold(options, ToolOptions::example))?);
    }
    let is_set = |key: &str| given.get(key).and_then(Value::as_bool).unwrap_or_default();
    request.examples_in_descriptions = is_set("examples_in_descriptions");
    request.tools = tools.into();
    request.strict_tools = is_set("strict_tools");
    if let Some(cache) = given.get("cache") {
        let mark = |key: &str| {
            cache.get(key).map(|mark| serde_json::from_value::<CacheMark>(mark.clone())).transpose()
        };
        (request.cached_system, request.cached_tools, request.cached_conversation) =
            (mark("system")?, mark("tools")?, mark("automatic")?);
        request.cache_key = cache.get("key").and_then(Value::as_str).map(str::to_owned);
    }
    request.tool_choice = match given.get("tool_choice") {
        Some(Value::String(word)) => match word.as_str() {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            other => return Err(format!("`{other}` is no tool choice").into()),
        },
        Some(choice) => {
            ToolChoice::Tool(choice["tool"].as_str().ok_or("a choice names a `tool`")?.to_owned())
        }
        None => ToolChoice::Auto,
    };
    request.parallel_tool_calls = given.get("parallel_tool_calls").and_then(Value::as_bool);
    request.max_tokens = given.get("max_tokens").and_then(Value::as_u64);
    request.temperature = given.get("temperature").and_then(Value::as_f64);
    request.top_p = given.get("top_p").and_then(Value::as_f64);
    let stop = given.get("stop").and_then(Value::as_array).into_iter().flatten();
    request.stop = stop.filter_map(Value::as_str).map(str::to_owned).collect();
    request.thinking = match given.get("thinking") {
        Some(Value::String(level)) => Some(level.parse()?),
        Some(tokens) => Some(tokens.to_string().parse()?),
        None => None,
    };
    for tool in given.get("managed_tools").and_then(Value::as_array).into_iter().flatten() {
        request.managed_tools.push(match tool.as_str() {
            Some("web_search") => ManagedTool::web_search(),
            Some("web_fetch") => ManagedTool::web_fetch(),
            Some("code_execution") => ManagedTool::CodeExecution,
            Some("image_generation") => ManagedTool::ImageGeneration,
            _ => ManagedTool::other(options.provider.as_str(), tool.clone()),
        });
    }
    if let Some(output) = given.get("output") {
        let name = output.get("name").and_then(Value::as_str).unwrap_or("reply");
        request.output = Some(OutputSchema::new(name, output.get("schema").cloned().unwrap_or_default()));
    }
    for (field, key) in
        [(&mut request.metadata, "metadata"), (&mut request.provider_options, "provider_options")]
    {
        field.extend(given.get(key).and_then(Value::as_object).cloned().unwrap_or_default());
    }
    Ok(request)
}
