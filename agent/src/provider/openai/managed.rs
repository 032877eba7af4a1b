//! Tools that OpenAI runs: how they are requested, and their results.

use serde_json::{Value, json};

use super::content::invalid;
use super::models;
use crate::message::{AssistantMessage, Content, Media, Part, ProviderTool, ResourceLink};
use crate::model::{Capabilities, ManagedResult, ManagedTool, ModelError};
use crate::provider::managed::{add_cited, add_generated_images, list, source, texts};
use crate::provider::parts::{own_data, some_text, text};

/// Sets the capabilities for the tools that OpenAI runs in the Responses API. Source: OpenAI's model pages.
pub(super) fn capabilities(model: &str, mut known: Capabilities) -> Capabilities {
    let has = models::has_hosted_tools(model);
    (known.web_search, known.code_execution, known.image_generation) = (has, has, has);
    known
}

pub(super) fn tool(tool: &ManagedTool, own: &str) -> Result<Value, ModelError> {
    Ok(match tool {
        ManagedTool::WebSearch { allowed_domains, blocked_domains, .. } => {
            if !blocked_domains.is_empty() {
                return Err(invalid(
                    "the Responses API searches allowed domains alone: it blocks none".to_owned(),
                ));
            }
            tool.warn_about_uses(own);
            let mut search = json!({"type": "web_search"});
            if !allowed_domains.is_empty() {
                search["filters"] = json!({"allowed_domains": allowed_domains});
            }
            search
        }
        ManagedTool::CodeExecution => json!({"type": "code_interpreter", "container": {"type": "auto"}}),
        ManagedTool::ImageGeneration => json!({"type": "image_generation"}),
        ManagedTool::Other { provider, definition } if *provider == own => definition.clone(),
        other => return Err(other.refused_by(own)),
    })
}

/// Returns the name of a tool's results in the field `include`, if the Responses API sends the results only when they are requested.
pub(super) fn included(tool: &ManagedTool) -> Option<&'static str> {
    match tool {
        ManagedTool::WebSearch { .. } => Some("web_search_call.action.sources"),
        ManagedTool::CodeExecution => Some("code_interpreter_call.outputs"),
        _ => None,
    }
}

/// Returns the field of Chat Completions that requests a web search, and its value. Returns `None` for other tools.
pub(super) fn chat_search<'f>(
    tool: &ManagedTool,
    field: Option<&'f str>,
    own: &str,
    model: &str,
) -> Result<Option<(&'f str, Value)>, ModelError> {
    let ManagedTool::WebSearch { allowed_domains, blocked_domains, .. } = tool else { return Ok(None) };
    let Some(field) = field else { return Err(tool.refused_by(own)) };
    let value = match field {
        "web_search_options" if models::can_search_in_chat(model) => json!({}),
        "web_search_options" => {
            return Err(invalid(format!(
                "`{own}` cannot run web search for `{model}` by Chat Completions: its search models can, and the Responses API \
                 (`openai-responses/{model}`)"
            )));
        }
        "plugins" => json!([{"id": "web"}]),
        _ => true.into(),
    };
    if !allowed_domains.is_empty() || !blocked_domains.is_empty() {
        return Err(invalid(format!("`{own}` chooses by itself which pages it reads")));
    }
    tool.warn_about_uses(own);
    Ok(Some((field, value)))
}

pub(super) fn results(reply: &AssistantMessage) -> Vec<ManagedResult> {
    let mut results: Vec<ManagedResult> = reply
        .content
        .iter()
        .filter_map(|part| match &part.content {
            Content::ProviderTool(tool) => result(tool, part.provider_data_of(&reply.provider)),
            _ => None,
        })
        .collect();
    let cited = |part: &Part| {
        let annotations =
            part.provider_data_of(&reply.provider)?.get("part")?.get("annotations")?.as_array()?;
        Some(annotations.iter().filter_map(|found| source(found, "url", "title")).collect::<Vec<_>>())
    };
    add_cited(&mut results, reply.content.iter().filter_map(cited).flatten());
    results
}

fn result(tool: &ProviderTool, item: Option<&Value>) -> Option<ManagedResult> {
    let input = tool.input.as_ref().unwrap_or(&Value::Null);
    let outputs = tool.output.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let error = tool.is_error.then(|| "failed".to_owned());
    let own = |key: &str| some_text(input, key).map(str::to_owned);
    Some(match tool.name.as_str() {
        "web_search" if matches!(text(input, "type"), None | Some("search")) => {
            let mut queries = texts(input, "queries");
            if queries.is_empty() {
                queries.extend(own("query"));
            }
            let sources =
                list(input, "sources").iter().filter_map(|page| source(page, "url", "title")).collect();
            ManagedResult::WebSearch { queries, sources, error }
        }
        // The `web_search` actions `open_page` and `find_in_page` read a page.
        "web_search" => ManagedResult::WebFetch { url: own("url"), title: None, text: None, error },
        "code_interpreter" => ManagedResult::CodeExecution {
            code: input.as_str().map(str::to_owned),
            stdout: outputs.iter().filter_map(|output| text(output, "logs")).collect(),
            stderr: String::new(),
            exit_code: None,
            files: outputs.iter().filter_map(|output| some_text(output, "url")).map(Media::url).collect(),
            error,
        },
        "image_generation" => {
            let format = item.and_then(|item| some_text(item, "output_format")).unwrap_or("png");
            let data = tool.output.as_ref().and_then(Value::as_str);
            ManagedResult::ImageGeneration {
                image: data.and_then(|data| Media::from_base64(data, format!("image/{format}")).ok()),
                prompt: input.as_str().map(str::to_owned),
                error,
            }
        }
        _ => return None,
    })
}

/// Returns the results that Chat Completions reports: the web pages that the reply cites, and generated images.
pub(super) fn chat_results(reply: &AssistantMessage) -> Vec<ManagedResult> {
    let data = own_data(&reply.provider, reply.provider_data.as_deref());
    let annotations = data.and_then(|data| data.get("annotations")?.as_array());
    let cited = annotations.into_iter().flatten().filter_map(|found| -> Option<ResourceLink> {
        source(found.get("url_citation").unwrap_or(found), "url", "title")
    });
    let mut results = Vec::new();
    add_cited(&mut results, cited);
    add_generated_images(&mut results, reply);
    results
}
