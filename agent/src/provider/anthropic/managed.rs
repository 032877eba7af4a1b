//! Tools that Anthropic runs: how they are requested, and their results.

use serde_json::{Value, json};

use super::models;
use crate::message::{AssistantMessage, Media};
use crate::model::{Capabilities, ManagedResult, ManagedTool, ModelError};
use crate::provider::managed::{ManagedCall, list, source};
use crate::provider::parts::{some_text, text};

/// Sets the capabilities for the tools that Anthropic runs, as far as the model's name tells.
///
/// Source: Anthropic's pages on its [server tools](https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview).
pub(super) fn capabilities(model: &str, mut known: Capabilities) -> Capabilities {
    let has = models::has_server_tools(model);
    (known.web_search, known.web_fetch, known.code_execution) = (has, has, has);
    known
}

pub(super) fn tool(
    tool: &ManagedTool,
    own: &str,
    betas: &mut Vec<&'static str>,
) -> Result<Value, ModelError> {
    let limits = |mut tool: Value, uses: Option<u32>, allowed: &[String], blocked: &[String]| {
        if let Some(uses) = uses {
            tool["max_uses"] = uses.into();
        }
        if !allowed.is_empty() {
            tool["allowed_domains"] = allowed.into();
        }
        if !blocked.is_empty() {
            tool["blocked_domains"] = blocked.into();
        }
        tool
    };
    Ok(match tool {
        ManagedTool::WebSearch { max_uses, allowed_domains, blocked_domains } => {
            let tool = json!({"type": "web_search_20250305", "name": "web_search"});
            limits(tool, *max_uses, allowed_domains, blocked_domains)
        }
        ManagedTool::WebFetch { max_uses, allowed_domains, blocked_domains } => {
            betas.push("web-fetch-2025-09-10");
            let tool = json!({"type": "web_fetch_20250910", "name": "web_fetch"});
            limits(tool, *max_uses, allowed_domains, blocked_domains)
        }
        ManagedTool::CodeExecution => {
            betas.push("code-execution-2025-08-25");
            json!({"type": "code_execution_20250825", "name": "code_execution"})
        }
        ManagedTool::Other { provider, definition } if *provider == own => definition.clone(),
        other => return Err(other.refused_by(own)),
    })
}

/// Returns the results of the web searches, web fetches and code that Anthropic ran. [`ManagedResult`] has no variant for Anthropic's
/// other tools, such as the tool that edits files.
pub(super) fn results(reply: &AssistantMessage) -> Vec<ManagedResult> {
    ManagedCall::all(reply).iter().filter_map(result).collect()
}

fn result(run: &ManagedCall<'_>) -> Option<ManagedResult> {
    let (input, output) = (run.input(), run.output());
    let own = |value: &Value, key: &str| some_text(value, key).map(str::to_owned);
    let error = run.error("error_code");
    Some(match run.name() {
        "web_search" => {
            let pages = output.as_array().map(Vec::as_slice).unwrap_or_default();
            let sources = pages.iter().filter_map(|page| source(page, "url", "title")).collect();
            ManagedResult::WebSearch { queries: own(input, "query").into_iter().collect(), sources, error }
        }
        "web_fetch" => {
            let document = output.get("content").unwrap_or(&Value::Null);
            let body = document.get("source").filter(|source| text(source, "type") == Some("text"));
            ManagedResult::WebFetch {
                url: own(output, "url").or_else(|| own(input, "url")),
                title: own(document, "title"),
                text: body.and_then(|body| own(body, "data")),
                error,
            }
        }
        "code_execution" | "bash_code_execution" => {
            let files = list(output, "content");
            ManagedResult::CodeExecution {
                code: own(input, "code").or_else(|| own(input, "command")),
                stdout: own(output, "stdout").unwrap_or_default(),
                stderr: own(output, "stderr").unwrap_or_default(),
                exit_code: output.get("return_code").and_then(Value::as_i64),
                files: files
                    .iter()
                    .filter_map(|file| some_text(file, "file_id"))
                    .map(Media::file_id)
                    .collect(),
                error,
            }
        }
        _ => return None,
    })
}
