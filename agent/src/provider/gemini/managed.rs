//! Tools that Gemini runs: how they are requested, and their results.

use serde_json::{Value, json};

use super::models;
use crate::message::AssistantMessage;
use crate::model::{Capabilities, ManagedResult, ManagedTool, ModelError, ModelErrorKind};
use crate::provider::managed::{ManagedCall, add_cited, add_generated_images, list, source, texts};
use crate::provider::parts::{own_data, some_text, text};

/// Sets the capabilities for tools that Gemini runs, by the model's name. Models before Gemini 3 get none, because they cannot combine
/// these tools with functions. Image models get only image generation.
///
/// Source: Google's page on [combining tools](https://ai.google.dev/gemini-api/docs/tool-combination).
pub(super) fn capabilities(model: &str, mut known: Capabilities) -> Capabilities {
    let is_image_model = models::is_image_model(model);
    let has = !is_image_model
        && model.contains("gemini")
        && models::version(model).is_none_or(|version| version >= (3, 0));
    (known.web_search, known.web_fetch, known.code_execution) = (has, has, has);
    known.image_generation = is_image_model;
    known
}

/// Writes a tool for a request. Returns `None` for image generation, which another field requests. `max_uses` is left out, with a warning.
pub(super) fn tool(tool: &ManagedTool, own: &str, model: &str) -> Result<Option<Value>, ModelError> {
    let no_limits = |is_limited: bool| {
        if is_limited {
            let message = "Gemini chooses by itself which pages it reads";
            return Err(ModelError::new(ModelErrorKind::InvalidRequest, message));
        }
        Ok(())
    };
    tool.warn_about_uses(own);
    Ok(Some(match tool {
        ManagedTool::WebSearch { allowed_domains, blocked_domains, .. } => {
            no_limits(!allowed_domains.is_empty() || !blocked_domains.is_empty())?;
            json!({"googleSearch": {}})
        }
        ManagedTool::WebFetch { allowed_domains, blocked_domains, .. } => {
            no_limits(!allowed_domains.is_empty() || !blocked_domains.is_empty())?;
            json!({"urlContext": {}})
        }
        ManagedTool::CodeExecution => json!({"codeExecution": {}}),
        // The field `responseModalities` requests images, so the list of tools has no entry for them.
        ManagedTool::ImageGeneration if models::is_image_model(model) => return Ok(None),
        ManagedTool::Other { provider, definition } if *provider == own => definition.clone(),
        other => return Err(other.refused_by(own)),
    }))
}

/// Returns the results of the tools that Gemini ran. Code and images are in the parts of the reply. Searches and web pages are in the
/// reply's metadata, but some queries are only in a search call.
pub(super) fn results(reply: &AssistantMessage) -> Vec<ManagedResult> {
    let data = own_data(&reply.provider, reply.provider_data.as_deref()).unwrap_or(&Value::Null);
    let grounding = data.get("groundingMetadata").unwrap_or(&Value::Null);
    let mut results: Vec<ManagedResult> = Vec::new();
    let mut queries = texts(grounding, "webSearchQueries");
    let has_queries = !queries.is_empty();
    for run in ManagedCall::all(reply) {
        match run.name() {
            "code_execution" => results.push(code_execution(&run)),
            name if name.starts_with("google_search") && !has_queries => {
                queries.extend(texts(run.input(), "queries"));
            }
            _ => {}
        }
    }
    if !queries.is_empty() {
        results.push(ManagedResult::WebSearch { queries, sources: Vec::new(), error: None });
    }
    let chunks = list(grounding, "groundingChunks");
    add_cited(&mut results, chunks.iter().filter_map(|chunk| source(chunk.get("web")?, "uri", "title")));
    let read = data.get("urlContextMetadata").unwrap_or(&Value::Null);
    results.extend(list(read, "urlMetadata").iter().map(|page| {
        let status =
            text(page, "urlRetrievalStatus").filter(|status| *status != "URL_RETRIEVAL_STATUS_SUCCESS");
        ManagedResult::WebFetch {
            url: some_text(page, "retrievedUrl").map(str::to_owned),
            title: None,
            text: None,
            error: status.map(str::to_owned),
        }
    }));
    add_generated_images(&mut results, reply);
    results
}

fn code_execution(run: &ManagedCall<'_>) -> ManagedResult {
    ManagedResult::CodeExecution {
        code: some_text(run.input(), "code").map(str::to_owned),
        stdout: some_text(run.output(), "output").unwrap_or_default().to_owned(),
        stderr: String::new(),
        exit_code: None,
        files: Vec::new(),
        error: run.error("outcome"),
    }
}
