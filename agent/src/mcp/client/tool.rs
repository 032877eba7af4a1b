//! A server's tool as a [`Tool`](crate::Tool).

use super::Inner;
use super::call::call;
use super::listing::OfferedTool;
use crate::tool::BoxFuture;
use crate::tool::annotations::ToolAnnotations;
use crate::tool::body::{AcceptedArguments, ToolBody};
use crate::tool::context::ToolContext;
use crate::tool::definition::ToolDefinition;
use crate::tool::definition_error::DefinitionError;
use crate::tool::options::ToolOptions;
use crate::tool::outcome::ToolOutcome;
use crate::tool::policy::Effect;
use crate::tool::set::ToolSet;
use crate::tool::value::Tool;
use std::sync::Arc;
use std::time::Duration;

/// The time by which a tool's timeout exceeds the limit of the client, so that the client ends the call first, with a more specific error.
const SLACK: Duration = Duration::from_secs(5);

struct RemoteBody {
    inner: Arc<Inner>,
    original: String,
    /// The tool as it was offered when this value was created.
    known: OfferedTool,
}

pub(super) fn tools(inner: &Arc<Inner>, server: &str) -> ToolSet {
    let mut set = ToolSet::new();
    let listing = inner.listing();
    for (original, name) in listing.names(server, &inner.config) {
        let Some(known) = listing.tools.get(&original) else { continue };
        let definition = definition(inner, known, &name);
        let body = RemoteBody { inner: inner.clone(), original, known: known.clone() };
        let tool = definition.map(|definition| Tool::from_body(definition, body));
        set.push(tool.map_err(|error| (name, error)));
    }
    set
}

fn definition(inner: &Inner, known: &OfferedTool, name: &str) -> Result<ToolDefinition, DefinitionError> {
    let hints = if inner.config.trusts_hints { known.hints } else { ToolAnnotations::default() };
    let set = |options: ToolOptions| {
        let mut options = options.name(name).timeout(inner.config.limits.longest_call.saturating_add(SLACK));
        if inner.config.untrusted {
            options = options.untrusted();
        }
        if inner.config.neutralizes {
            options = options.neutralize();
        }
        match (hints.read_only, hints.idempotent) {
            (Some(true), _) => options.effect(Effect::Pure),
            (_, Some(true)) => options.effect(Effect::Idempotent),
            _ => options,
        }
    };
    known.definition.clone().configure(set)
}

impl ToolBody for RemoteBody {
    fn call<'a>(
        &'a self,
        arguments: &'a AcceptedArguments,
        cx: &'a ToolContext,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            self.inner.refresh_if_stale().await;
            call(&self.inner, &self.original, &self.known, arguments, cx).await
        })
    }
}
