//! Shows the tools and their schemas, checks arguments, and calls tools.

use std::time::Instant;

use serde_json::{Value, json};

use super::cut::{MAX_TEXT, cut_texts};
use super::response::Rejection;
use super::shared::StudioShared;
use crate::args::secret_names;
use crate::message::{ToolArguments, ToolCall};
use crate::model::{ContextReport, ContextSource, ModelRequest};
use crate::runtime::new_id;
use crate::schema::Dialect;
use crate::tool::approval::Approval;
use crate::tool::body::AcceptedArguments;
use crate::tool::call_error::CallError;
use crate::tool::dialect::tools_in_dialect;
use crate::tool::policy::Effect;
use crate::tool::secrets::without_secrets;
use crate::tool::value::Tool;

impl StudioShared {
    pub(super) fn tool_list(&self) -> Value {
        let registry = self.template.registry();
        let request = ModelRequest::default().with_tools(registry.definitions());
        let tokens = ContextReport::of(&request, self.template.model());
        let lint = registry.lint();
        let definitions = registry.definitions();
        let tools = definitions.iter().filter_map(|definition| {
            let tool = registry.get(definition.name())?;
            let policy = tool.policy();
            let findings = lint.iter().filter(|finding| finding.tool == definition.name());
            let findings = findings.map(|finding| {
                json!({"lint": finding.lint.as_str(), "path": finding.path, "message": finding.message})
            });
            let timeout = policy.timeout.filter(|time| *time < std::time::Duration::MAX);
            let timeout = timeout.and_then(|time| u64::try_from(time.as_millis()).ok());
            Some(json!({
                "name": definition.name(),
                "title": definition.title(),
                "description": definition.description(),
                "effect": policy.effect,
                "read_only": definition.read_only(),
                "destructive": definition.destructive(),
                "has_approval": policy.approval != Approval::NEVER,
                "is_exclusive": policy.exclusive,
                "timeout_ms": timeout,
                "needs_confirmation": needs_confirmation(tool),
                "tokens": tokens.tokens_of(&ContextSource::Tool(definition.name().to_owned())),
                "findings": findings.collect::<Vec<_>>(),
            }))
        });
        json!({"tools": tools.collect::<Vec<_>>(), "tokens": tokens.used})
    }

    fn tool(&self, name: &str) -> Result<&Tool, Rejection> {
        self.template.registry().get(name).ok_or_else(|| Rejection::not_found("tool"))
    }

    pub(super) fn tool_schemas(&self, name: &str) -> Result<Value, Rejection> {
        let definition = self.tool(name)?.definition();
        let dialects = Dialect::ALL.into_iter().map(|dialect| {
            let tools = tools_in_dialect(&self.template.registry().definitions(), dialect, true);
            let Some(tool) = tools.into_iter().find(|tool| tool.tool == name) else { return Value::Null };
            let changes: Vec<Value> = tool.changes.iter().map(|change| {
                json!({"path": change.path, "text": change.to_string(), "is_lost": change.is_not_expressible()})
            }).collect();
            json!({
                "dialect": dialect.as_str(),
                "schema": tool.schema,
                "is_strict": tool.is_strict(),
                "over_budget": tool.over_budget,
                "changes": changes,
            })
        });
        Ok(json!({
            "schema": definition.plan().schema(),
            "examples": definition.examples(),
            "output": definition.output_schema(),
            "secrets": secret_names(definition.plan().graph()),
            "dialects": dialects.collect::<Vec<_>>(),
        }))
    }

    fn validate(&self, call: &ToolCall) -> Result<AcceptedArguments, CallError> {
        self.template.registry().validate(call)
    }

    /// Checks arguments as a run does. The text is not parsed first, so that invalid JSON gets the same report as in a run.
    pub(super) fn check(&self, name: &str, text: String) -> Result<Value, Rejection> {
        let tool = self.tool(name)?;
        let call = ToolCall::new("check", name, ToolArguments::from(text));
        Ok(match self.validate(&call) {
            Ok(accepted) => accepted_json(tool, &accepted),
            Err(error) => refused_json(&error),
        })
    }

    /// Checks arguments, and calls the tool. The call is cancelled if the browser disconnects, or if the call is still running some time
    /// after the studio ends.
    pub(super) async fn call(
        &self,
        name: &str,
        text: String,
        is_confirmed: bool,
    ) -> Result<Value, Rejection> {
        let tool = self.tool(name)?;
        let call = ToolCall::new(new_id("call"), name, ToolArguments::from(text));
        let accepted = match self.validate(&call) {
            Ok(accepted) => accepted,
            Err(error) => return Ok(refused_json(&error)),
        };
        let mut out = accepted_json(tool, &accepted);
        if needs_confirmation(tool) && !is_confirmed {
            let message = format!("`{name}` changes something: confirm the call.");
            return Err(Rejection::conflict("needs_confirmation", message).with_data(out));
        }
        let cancel = self.lifecycle.stop().child();
        let context = self.template.call_context(cancel.clone());
        let _running = self.lifecycle.begin();
        let cancelled = StopOnDrop(cancel);
        let began = Instant::now();
        let result = self.template.registry().call_accepted(&call, &accepted, &context).await;
        let duration = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        drop(cancelled);
        out["duration_ms"] = duration.into();
        out["result"] = match result.to_message() {
            Some(message) => json!(message),
            None => {
                json!({"outcome": "deferred", "content": [{"type": "text", "text": result.outcome.text()}]})
            }
        };
        out["is_cut"] = cut_texts(&mut out["result"], MAX_TEXT).into();
        Ok(out)
    }
}

/// Guard that cancels the call if its request is dropped, which happens when the browser disconnects.
struct StopOnDrop(crate::tool::cancel::CancelToken);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel("the page does not wait for the result");
    }
}

fn needs_confirmation(tool: &Tool) -> bool {
    let policy = tool.policy();
    policy.effect == Effect::Once
        || policy.approval != Approval::NEVER
        || tool.definition().destructive() == Some(true)
}

fn accepted_json(tool: &Tool, accepted: &AcceptedArguments) -> Value {
    json!({
        "is_accepted": true,
        "arguments": without_secrets(tool, None, accepted.value().clone()),
        "coercions": accepted.coercions(),
    })
}

fn refused_json(error: &CallError) -> Value {
    let mut out = json!({"is_accepted": false, "text": error.to_string()});
    if let CallError::InvalidArguments(report) = error {
        out["report"] = report.to_json();
        out["corrected"] = report.corrected().into();
    }
    out
}
