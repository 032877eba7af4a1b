//! Withholds the secret arguments of a run's calls from events.

use std::fmt;
use std::sync::Arc;

use crate::args::Plan;
use crate::message::{Content, Message, Part, ToolArguments};
use crate::model::{ArgumentChange, ModelEvent};
use crate::tool::secrets::SecretArguments;

/// A filter that hides the secret arguments of calls. `==` is always true, because the filter does not change the steps of a run.
#[derive(Clone, Default)]
pub(super) struct RunSecrets(Option<Arc<SecretArguments>>);

impl RunSecrets {
    pub(super) fn new(secrets: Arc<SecretArguments>) -> Self {
        Self(Some(secrets))
    }

    /// Returns the filter for events, which is empty if no tool has secret arguments.
    pub(super) fn for_events(&self) -> Self {
        Self(self.0.as_ref().filter(|secrets| secrets.is_needed()).cloned())
    }

    /// Returns the [`Plan`] of a tool, or `None` if the tool was not passed to the loop.
    pub(super) fn plan(&self, tool: &str) -> Option<Plan> {
        self.0.as_ref()?.plan(tool).cloned()
    }

    /// Returns the arguments without secrets, or `None` if nothing has to be withheld.
    pub(super) fn arguments(&self, tool: &str, args: &ToolArguments) -> Option<ToolArguments> {
        self.0.as_ref()?.arguments(tool, args)
    }

    pub(super) fn message(&self, message: &Message) -> Option<Message> {
        self.0.as_ref()?.message(message).map(|(message, _)| message)
    }

    fn is_needed(&self) -> bool {
        self.0.as_ref().is_some_and(|secrets| secrets.is_needed())
    }

    fn may_hide(&self, tool: &str) -> bool {
        self.0.as_ref().is_some_and(|secrets| secrets.may_hide(tool))
    }
}

impl PartialEq for RunSecrets {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for RunSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EventSecrets {
    pub(super) secrets: RunSecrets,
    /// Whether the event is an update of a reply, and the update may show secret arguments.
    pub(super) hides_update: bool,
}

/// The calls of the streamed reply: the index of each call's content part, and whether its arguments may contain secrets.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamedCalls(Vec<(usize, bool)>);

impl PartialEq for StreamedCalls {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl StreamedCalls {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns whether the update may show secrets. Also remembers each call that starts, for later updates of the call.
    pub(super) fn hides(&mut self, secrets: &RunSecrets, update: &ModelEvent) -> bool {
        if !secrets.is_needed() {
            return false;
        }
        // Data of a provider may contain the arguments of a call whose part has not started yet, so all such data is hidden.
        if matches!(update, ModelEvent::PartData { .. } | ModelEvent::MessageData { .. }) {
            return true;
        }
        let Some(index) = update.content_index() else { return false };
        let name = match update {
            ModelEvent::ToolCallStart { name, .. } => Some(name),
            ModelEvent::Part { part, .. } => part.as_tool_call().map(|call| &call.name),
            _ => None,
        };
        if let Some(name) = name {
            self.0.push((index, secrets.may_hide(name)));
        }
        let known = self.0.iter().rev().find(|(at, _)| *at == index).map(|(_, hides)| *hides);
        match update {
            // If the start of the call did not arrive, the tool of the call is unknown, so the arguments are withheld.
            ModelEvent::ToolCallDelta { .. } | ModelEvent::ToolCallArgument { .. } => known.unwrap_or(true),
            _ => known.unwrap_or_default(),
        }
    }
}

impl RunSecrets {
    /// Returns a copy of the update without the secrets that the update [may show](StreamedCalls::hides).
    pub(super) fn update(&self, update: &ModelEvent) -> ModelEvent {
        let mut shown = update.clone();
        match &mut shown {
            ModelEvent::ToolCallDelta { delta, .. } => delta.clear(),
            ModelEvent::ToolCallArgument { path, secret, change, .. } => {
                if *secret {
                    path.clear();
                }
                match change {
                    ArgumentChange::Appended { fragment } => fragment.clear(),
                    ArgumentChange::Finished { value } => *value = None,
                    ArgumentChange::Started { .. } | ArgumentChange::Refused { .. } => {}
                }
            }
            ModelEvent::Part { part, .. } => self.part(part),
            ModelEvent::PartData { data, .. } | ModelEvent::MessageData { data } => {
                data.data = serde_json::Value::Null;
            }
            _ => {}
        }
        shown
    }

    fn part(&self, part: &mut Part) {
        let Content::ToolCall(call) = &mut part.content else { return };
        if let Some(args) = self.arguments(&call.name, &call.args) {
            call.args = args;
            (part.provider_data, part.extra) = (None, serde_json::Map::new());
        }
    }
}
