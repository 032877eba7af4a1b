//! A server's tool as a [`Tool`](crate::Tool).

use super::Inner;
use super::call::{call, current};
use super::listing::OfferedTool;
use crate::{
    BoxFuture, DefinitionError, Effect, Tool, ToolContext, ToolDefinition, ToolPolicy, ToolReply, ToolSet,
};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Extra time of the tool's own timeout, so that the limits of the call end it first: their errors are more specific.
const SLACK: Duration = Duration::from_secs(5);

/// A server's tool under the name that models see.
struct RemoteTool {
    inner: Arc<Inner>,
    /// The server's name of the tool.
    original: String,
    /// The tool at the time when this value was created.
    known: OfferedTool,
    definition: ToolDefinition,
    policy: ToolPolicy,
}

/// Returns the current tools of a server.
pub(super) fn tools(inner: &Arc<Inner>, server: &str) -> ToolSet {
    let mut set = ToolSet::new();
    let listing = inner.listing();
    for (original, name) in listing.names(server, &inner.config) {
        let Some(known) = listing.tools.get(&original) else { continue };
        set.push(match named(&known.definition, &name) {
            Ok(definition) => Ok(Arc::new(RemoteTool {
                inner: inner.clone(),
                original,
                policy: policy(inner, known),
                known: known.clone(),
                definition,
            }) as Arc<dyn Tool>),
            Err(error) => Err((name, error)),
        });
    }
    set
}

/// Returns the same definition under another name.
fn named(definition: &ToolDefinition, name: &str) -> Result<ToolDefinition, DefinitionError> {
    let plan = definition.plan().with_name(name);
    let mut named = if definition.description().is_empty() {
        ToolDefinition::without_description(plan)?
    } else {
        ToolDefinition::new(plan, definition.description())?
    };
    named = named.with_annotations(*definition.annotations());
    if let Some(title) = definition.title() {
        named = named.with_title(title);
    }
    if let Some(schema) = definition.output_schema() {
        named = named.with_output_schema(schema.clone());
    }
    Ok(named)
}

fn policy(inner: &Inner, known: &OfferedTool) -> ToolPolicy {
    let policy = ToolPolicy::default().with_timeout(inner.config.limits.longest_call + SLACK);
    let hints = if inner.config.trusts_hints { known.hints } else { crate::ToolAnnotations::NONE };
    match (hints.read_only, hints.idempotent) {
        (Some(true), _) => policy.with_effect(Effect::Pure),
        (_, Some(true)) => policy.with_effect(Effect::Idempotent),
        _ => policy,
    }
}

impl Tool for RemoteTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(&'a self, arguments: &'a str, cx: &'a ToolContext) -> BoxFuture<'a, ToolReply> {
        Box::pin(async move {
            // Invalid arguments are refused without a request to the server.
            let checked = match self.definition.plan().parse::<Value>(arguments) {
                Ok(checked) => checked,
                Err(refusal) => return refusal.into(),
            };
            self.inner.refresh_if_stale().await;
            let now = match current(&self.inner, &self.original, &self.known) {
                Ok(now) => now,
                Err(outcome) => return (*outcome).into(),
            };
            // After an accepted change, the arguments must fit the current definition.
            let checked = if now.fingerprint == self.known.fingerprint {
                checked
            } else {
                match now.definition.plan().parse::<Value>(arguments) {
                    Ok(checked) => checked,
                    Err(refusal) => return refusal.into(),
                }
            };
            let arguments = match checked.value {
                Value::Object(arguments) => arguments,
                _ => Map::new(),
            };
            let outcome = call(&self.inner, &self.original, &now, arguments, cx).await;
            ToolReply::new(outcome).with_coercions(checked.coercions)
        })
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }
}
