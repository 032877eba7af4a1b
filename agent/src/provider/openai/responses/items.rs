//! Converts between the items of the Responses API and [`Part`]s.
//!
//! The provider data of a part contains the fields of its item that `Part` has no field for, so that the item can be written back:
//!
//! * `reasoning`, and tools that the provider runs: the whole item, on the first part;
//! * `message`: the first part has the item's fields as `item`, each part has its own fields as `part`, and further parts have `more`.
//!   `plain` marks content that was a string, and `empty` an empty list;
//! * `function_call`: the fields of the item that `ToolCall` has no field for.

use serde_json::{Value, json};

use crate::message::{Content, Part, ProviderData, ProviderTool, ToolArguments, ToolCall};
use crate::model::ModelEvent;
use crate::provider::parts::{
    JsonObject, JsonSource, add_rest, object, some_text, take_text, text, with_rest,
};

pub(super) fn read(provider: &str, item: Value, source: JsonSource) -> Vec<Part> {
    let parts = match text(&item, "type") {
        Some("reasoning") => Some(reasoning(provider, &item)),
        Some("function_call") => call(provider, &item, source).map(|part| vec![part]),
        Some("message") => message(provider, &item, source),
        None if text(&item, "role") == Some("assistant") => message(provider, &item, source),
        _ => provider_tool(&item)
            .map(|tool| vec![Part::new(tool).with_provider_data(ProviderData::new(provider, item.clone()))]),
    };
    parts.unwrap_or_else(|| vec![Part::opaque(provider, item)])
}

fn reasoning(provider: &str, item: &Value) -> Vec<Part> {
    let texts = ["summary", "content"].into_iter().filter_map(|key| item.get(key)?.as_array()).flatten();
    let mut parts: Vec<Part> = texts.filter_map(|part| text(part, "text")).map(Part::thinking).collect();
    if parts.is_empty() {
        parts.push(Part::thinking(""));
    }
    if let Some(first) = parts.first_mut() {
        first.provider_data = Some(Box::new(ProviderData::new(provider, item.clone())));
    }
    parts
}

fn call(provider: &str, item: &Value, source: JsonSource) -> Option<Part> {
    let Value::Object(mut fields) = item.clone() else { return None };
    fields.shift_remove("type");
    let id = take_text(&mut fields, "call_id").or_else(|| (source == JsonSource::Reply).then(String::new))?;
    let name = take_text(&mut fields, "name")?;
    let arguments = match fields.shift_remove("arguments") {
        Some(Value::String(text)) => ToolArguments::from(text),
        None | Some(Value::Null) => ToolArguments::default(),
        Some(value) => ToolArguments::from(value),
    };
    // If a call was cut before its arguments began, the arguments are incomplete, not empty: they become `{`, which is not valid JSON.
    let is_cut = source == JsonSource::Reply && text(item, "status") == Some("incomplete");
    let arguments = if is_cut && arguments.text() == "{}" { ToolArguments::from("{") } else { arguments };
    if source == JsonSource::Request && text(item, "arguments").is_none_or(|text| text.trim().is_empty()) {
        fields.extend(item.get("arguments").map(|value| ("arguments".to_owned(), value.clone())));
    }
    fields.retain(|_, value| source == JsonSource::Request || !value.is_null());
    // With `JsonSource::Reply`, a call without other fields gets no provider data.
    Some(with_rest(
        Part::new(Content::ToolCall(ToolCall::new(id, name, arguments))),
        provider,
        fields,
        JsonSource::Reply,
    ))
}

fn message(provider: &str, item: &Value, source: JsonSource) -> Option<Vec<Part>> {
    let Value::Object(mut fields) = item.clone() else { return None };
    if text(item, "role").is_some_and(|role| role != "assistant") {
        return None;
    }
    let is_reply = source == JsonSource::Reply;
    let content = match fields.shift_remove("content").or_else(|| is_reply.then_some(Value::Null))? {
        Value::Null if is_reply => Vec::new(),
        Value::String(said) => {
            let is_empty = said.is_empty();
            let part = Part::text(said);
            fields.shift_remove("role");
            // A message with only a role and a text needs no provider data to be written back unchanged, unless the text is empty.
            if fields.is_empty() && !is_empty {
                return Some(vec![part]);
            }
            fields.insert("role".to_owned(), "assistant".into());
            return Some(vec![
                part.with_provider_data(ProviderData::new(provider, json!({"item": fields, "plain": true}))),
            ]);
        }
        Value::Array(content) => content,
        _ => return None,
    };
    let mut parts = Vec::new();
    for value in content {
        if is_reply && !has_content(&value) {
            continue;
        }
        let Some((read, mut rest)) = read_content(&value, is_reply) else {
            if !is_reply {
                return None;
            }
            let mut data = JsonObject::new();
            if parts.is_empty() {
                data.insert("item".to_owned(), std::mem::take(&mut fields).into());
            } else {
                data.insert("more".to_owned(), true.into());
            }
            parts.push(Part::opaque(provider, value).with_provider_data(ProviderData::new(provider, data)));
            continue;
        };
        if source == JsonSource::Reply {
            // Null fields and empty lists are dropped, except the annotations, which the API's types require.
            rest.retain(|key, value| {
                key == "annotations"
                    || !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
            });
        }
        let mut data = JsonObject::new();
        if parts.is_empty() {
            data.insert("item".to_owned(), std::mem::take(&mut fields).into());
        } else {
            data.insert("more".to_owned(), true.into());
        }
        if !rest.is_empty() || source == JsonSource::Request {
            data.insert("part".to_owned(), rest.into());
        }
        parts.push(Part::new(read).with_provider_data(ProviderData::new(provider, data)));
    }
    if parts.is_empty() {
        // An empty message is kept, because the API refuses reasoning that no item follows.
        let data = json!({"item": fields, "empty": true});
        parts.push(Part::text("").with_provider_data(ProviderData::new(provider, data)));
    }
    Some(parts)
}

/// Returns the content of a message's part, and the part's remaining fields. In replies, an `output_text` part may lack its text, and the
/// type may be `text`, because some servers send such parts.
fn read_content(value: &Value, is_reply: bool) -> Option<(Content, JsonObject)> {
    let mut rest = value.as_object()?.clone();
    let kind = take_text(&mut rest, "type")?;
    let content = match kind.as_str() {
        "output_text" => match take_text(&mut rest, "text") {
            Some(text) => Content::Text(text),
            None if is_reply && rest.get("text").is_none_or(Value::is_null) => Content::Text(String::new()),
            None => return None,
        },
        "refusal" => Content::Refusal(take_text(&mut rest, "refusal")?),
        "text" if is_reply => {
            rest.insert("type".to_owned(), kind.into());
            Content::Text(take_text(&mut rest, "text")?)
        }
        _ => return None,
    };
    Some((content, rest))
}

fn has_content(part: &Value) -> bool {
    let is_no_refusal =
        text(part, "type") == Some("refusal") && part.get("refusal").is_none_or(Value::is_null);
    !part.is_null() && !is_no_refusal
}

/// Returns the list and the index of each part that has content.
pub(super) fn part_positions(item: &Value) -> Vec<(PartList, u64)> {
    let is_reasoning = text(item, "type") == Some("reasoning");
    let of = |list: PartList, key: &str| -> Vec<(PartList, u64)> {
        let parts = item.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let numbered = (0u64..).zip(parts);
        let kept = |part: &Value| if is_reasoning { text(part, "text").is_some() } else { has_content(part) };
        numbered.filter(|(_, part)| kept(part)).map(|(number, _)| (list, number)).collect()
    };
    [of(PartList::Summary, "summary"), of(PartList::Content, "content")].concat()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartList {
    Summary,
    Content,
}

fn provider_tool(item: &Value) -> Option<Content> {
    let field = |key: &str| item.get(key).filter(|value| !value.is_null()).cloned();
    let (name, input, output) = match text(item, "type")? {
        "web_search_call" => ("web_search", field("action"), None),
        "file_search_call" => ("file_search", field("queries"), field("results")),
        "code_interpreter_call" => ("code_interpreter", field("code"), field("outputs")),
        "image_generation_call" => ("image_generation", field("revised_prompt"), field("result")),
        "mcp_list_tools" => ("mcp_list_tools", field("server_label"), field("tools")),
        "mcp_call" => {
            let input = text(item, "arguments").and_then(|text| serde_json::from_str(text).ok());
            (some_text(item, "name")?, input, field("output").or_else(|| field("error")))
        }
        _ => return None,
    };
    let mut tool = ProviderTool::new(name);
    tool.id = some_text(item, "id").map(str::to_owned);
    (tool.input, tool.output) = (input, output);
    tool.is_error = text(item, "status") == Some("failed") || field("error").is_some();
    Some(Content::ProviderTool(Box::new(tool)))
}

/// Writes the parts of an assistant message as items.
///
/// Encrypted reasoning is written only with the item that followed it, because the API refuses encrypted reasoning alone. Reasoning that
/// is not encrypted is written if its text is visible, or if `stored` is set, because the provider may have stored it.
///
/// `is_own` is `false` if another model wrote the message. Its calls are then written without item ids: for a call with an id, the API
/// requires the reasoning before the call, and reasoning of other models is not sent.
pub(super) fn write(parts: &[Part], provider: &str, stored: bool, is_own: bool) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    // Whether the last item is a message of plain text. If so, the next plain text is appended to it.
    let mut takes_text = false;
    // The number of items up to and including the last message. Further parts are added to this message until another item is written.
    let mut message_end = 0;
    for (at, part) in parts.iter().enumerate() {
        let rest = part.provider_data_of(provider);
        let took_text = std::mem::take(&mut takes_text);
        let is_more = message_end == items.len() && is_further(rest);
        let message = items.last_mut().filter(|_| is_more);
        let list = message.and_then(|item| item.get_mut("content")?.as_array_mut());
        match &part.content {
            Content::Text(said) | Content::Refusal(said) => match (rest, list) {
                (Some(data), Some(list)) => list.push(message_part(part, said, data)),
                (Some(data), _) if data.get("item").is_some() => {
                    items.push(start_message(part, said, data));
                    message_end = items.len();
                }
                _ => match items.last_mut().and_then(|item| item.get_mut("content")) {
                    Some(Value::String(before)) if took_text => {
                        before.push_str(said);
                        takes_text = true;
                    }
                    _ if said.is_empty() => {}
                    _ => {
                        items.push(json!({"role": "assistant", "content": said}));
                        takes_text = true;
                    }
                },
            },
            Content::ToolCall(call) => {
                let mut item = JsonObject::new();
                item.insert("type".into(), "function_call".into());
                item.insert("call_id".into(), call.id.as_str().into());
                item.insert("name".into(), call.name.as_str().into());
                item.insert("arguments".into(), call.args.text().into());
                add_rest(&mut item, rest);
                if !is_own {
                    item.shift_remove("id");
                }
                items.push(item.into());
            }
            Content::Thinking { .. } => {
                if let Some(item) = rest.filter(|item| is_usable(item, parts.get(at + 1..), provider, stored))
                {
                    items.push(item.clone());
                }
            }
            Content::ProviderTool(_) => items.extend(rest.cloned()),
            Content::Opaque(opaque) if opaque.provider == provider => match (rest, list) {
                (_, Some(list)) => list.push(opaque.data.clone()),
                (Some(data), _) if data.get("item").is_some() || is_further(rest) => {
                    let item = data.get("item").and_then(Value::as_object).cloned();
                    let mut item = item.unwrap_or_else(|| {
                        object([("type", "message".into()), ("role", "assistant".into())])
                    });
                    item.insert("content".to_owned(), json!([opaque.data]));
                    items.push(item.into());
                    message_end = items.len();
                }
                _ => items.push(opaque.data.clone()),
            },
            _ => {}
        }
    }
    items
}

/// Returns whether a part is not the first part of its message.
fn is_further(data: Option<&Value>) -> bool {
    data.is_some_and(|data| data.get("more").is_some())
}

/// Returns whether the provider accepts a reasoning item: an encrypted item before another item, or an item that contains its text or is
/// stored at the provider.
fn is_usable(item: &Value, after: Option<&[Part]>, provider: &str, stored: bool) -> bool {
    if text(item, "type") != Some("reasoning") {
        return false;
    }
    if some_text(item, "encrypted_content").is_none() {
        let shows = item.get("content").and_then(Value::as_array).is_some_and(|content| !content.is_empty());
        return stored || shows;
    }
    let next =
        after.unwrap_or_default().iter().find(|part| !matches!(part.content, Content::Thinking { .. }));
    next.is_some_and(|part| match &part.content {
        Content::ToolCall(_) => true,
        // The start of this part's message is missing, so the part is not written as the item that followed the reasoning.
        _ if is_further(part.provider_data_of(provider)) => false,
        Content::Opaque(opaque) => opaque.provider == provider,
        _ => part.provider_data_of(provider).is_some(),
    })
}

fn start_message(part: &Part, said: &str, data: &Value) -> Value {
    let mut item = data.get("item").and_then(Value::as_object).cloned().unwrap_or_default();
    let content = if data.get("plain").is_some() {
        said.into()
    } else if data.get("empty").is_some() && said.is_empty() {
        json!([])
    } else {
        json!([message_part(part, said, data)])
    };
    item.insert("content".to_owned(), content);
    item.into()
}

fn message_part(part: &Part, said: &str, data: &Value) -> Value {
    let is_refusal = matches!(part.content, Content::Refusal(_));
    let mut wire = JsonObject::new();
    if is_refusal {
        wire.insert("type".into(), "refusal".into());
        wire.insert("refusal".into(), said.into());
    } else {
        wire.insert("type".into(), "output_text".into());
        wire.insert("text".into(), said.into());
    }
    add_rest(&mut wire, data.get("part"));
    wire.into()
}

pub(super) fn is_of_kind(part: &Part, kind: &str) -> bool {
    match kind {
        "reasoning" => matches!(part.content, Content::Thinking { .. }),
        "function_call" => matches!(part.content, Content::ToolCall(_)),
        "message" => matches!(part.content, Content::Text(_)),
        _ => matches!(part.content, Content::ProviderTool(_)),
    }
}

/// Returns the end of a completed part that is not in `emitted` yet, as a delta. Fills an empty part with `emitted` instead.
pub(super) fn missing_delta(part: &mut Part, emitted: &str, content_index: usize) -> Option<ModelEvent> {
    let rest = |whole: &str| whole.strip_prefix(emitted).filter(|rest| !rest.is_empty()).map(str::to_owned);
    match &mut part.content {
        Content::Text(text) | Content::Thinking { text, .. } if text.is_empty() => {
            emitted.clone_into(text);
            None
        }
        Content::Text(text) => rest(text).map(|delta| ModelEvent::TextDelta { content_index, delta }),
        Content::Thinking { text, .. } => {
            rest(text).map(|delta| ModelEvent::ThinkingDelta { content_index, delta })
        }
        Content::ToolCall(call) if call.args.text() == "{}" => {
            call.args = emitted.into();
            None
        }
        Content::ToolCall(call) => {
            rest(call.args.text()).map(|delta| ModelEvent::ToolCallDelta { content_index, delta })
        }
        _ => None,
    }
}
