//! What of a run's calls is shown outside of its process.

use std::fmt;
use std::sync::Arc;

use super::AgentLoop;
use crate::ToolDefinition;
use crate::args::Plan;
use crate::message::{Content, Message, Part, ToolArguments};
use crate::model::{ArgumentChange, ModelEvent};
use crate::tool::secrets::SecretArguments;

/// The tools of a run: what withholds the secret arguments of its calls, and reads arguments. It does not affect what the run does.
#[derive(Clone, Default)]
pub(super) struct Secrets(Option<Arc<SecretArguments>>);

impl Secrets {
    pub(super) fn new(secrets: SecretArguments) -> Self {
        Self(Some(Arc::new(secrets)))
    }

    /// Returns what events need of it: nothing if no tool has secrets.
    pub(super) fn shown(&self) -> Self {
        Self(self.0.as_ref().filter(|secrets| secrets.is_needed()).cloned())
    }

    /// Returns what reads the arguments of a tool.
    pub(super) fn plan(&self, tool: &str) -> Option<Plan> {
        self.0.as_ref()?.plan(tool).cloned()
    }

    /// Returns the arguments without secrets, or `None` if they have none.
    pub(super) fn arguments(&self, tool: &str, args: &ToolArguments) -> Option<ToolArguments> {
        self.0.as_ref()?.arguments(tool, args)
    }

    /// Returns the message without secrets, or `None` if it has none.
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

impl PartialEq for Secrets {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

/// What of an event is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ShownEvent {
    pub(super) secrets: Secrets,
    /// Whether it is an update of a call whose arguments may have secrets.
    pub(super) hides_update: bool,
}

/// The calls in the reply that is streamed, as index of the part, with whether their arguments may have secrets.
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

    /// Whether this update may show secrets.
    pub(super) fn hides(&mut self, secrets: &Secrets, update: &ModelEvent) -> bool {
        if !secrets.is_needed() {
            return false;
        }
        // What a provider keeps may quote a call that comes later.
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
            // A call that did not start is not known.
            ModelEvent::ToolCallDelta { .. } | ModelEvent::ToolCallArgument { .. } => known.unwrap_or(true),
            _ => known.unwrap_or_default(),
        }
    }
}

impl Secrets {
    /// Returns an update that [may show secrets](StreamedCalls::hides) without them.
    pub(super) fn update(&self, update: &ModelEvent) -> ModelEvent {
        let mut shown = update.clone();
        match &mut shown {
            ModelEvent::ToolCallDelta { delta, .. } => delta.clear(),
            ModelEvent::ToolCallArgument { argument, .. } => {
                if argument.secret {
                    argument.path.clear();
                }
                match &mut argument.change {
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

impl AgentLoop {
    /// Sets the tools of the run. Approval requests, and events as JSON, leave out their secret arguments, and all arguments of unknown
    /// tools if any of these has secrets. The tools are not part of the stored form.
    ///
    /// An assistant does this itself; the method is for other drivers.
    ///
    /// ```
    /// use agent::loop_core::{AgentLoop, LoopConfig, Reply};
    /// use agent::message::{AssistantMessage, Conversation, Message, Part};
    /// use agent::{Registry, tool, tools};
    ///
    /// /// Signs in.
    /// #[tool]
    /// fn log_in(user: String, #[arg(secret)] password: String) {}
    ///
    /// let tools = Registry::new(tools![log_in])?;
    /// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")])
    ///     .with_tools(tools.definitions());
    /// run.record_messages(Vec::new())?;
    /// let call = Part::tool_call("c1", "log_in", r#"{"user": "ann", "password": "hunter2"}"#);
    /// run.record_reply(Reply::new(AssistantMessage::new([call])))?;
    /// while let Some(event) = run.take_event() {
    ///     assert!(!serde_json::to_string(&event)?.contains("hunter2"));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_tools(mut self, tools: Arc<[ToolDefinition]>) -> Self {
        self.set_secrets(SecretArguments::new([tools]));
        self
    }

    pub(crate) fn set_secrets(&mut self, secrets: SecretArguments) {
        self.secrets = Secrets::new(secrets);
    }
}
