//! Methods for the state of a run, and for the tools whose secret arguments are withheld.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::AgentLoop;
use super::secrets::RunSecrets;
use super::state::{RunState, StateError, read_state};
use crate::tool::definition::ToolDefinition;
use crate::tool::secrets::SecretArguments;

impl AgentLoop {
    /// Adds a value to the state of the run, under a name. The value is stored with the run as JSON. [Drivers](crate::steps::drive) read it
    /// with [`serialized_state`](Self::serialized_state); an [`Assistant`](crate::AssistantBuilder::serialized_state) reads it itself.
    ///
    /// ```
    /// use agent::loop_core::{AgentLoop, LoopConfig};
    /// use agent::message::{Conversation, Message};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Customer {
    ///     id: u64,
    /// }
    ///
    /// let run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")])
    ///     .with_serialized_state("customer", &Customer { id: 7 })?;
    /// let stored = serde_json::to_string(&run)?;
    ///
    /// let run: AgentLoop = serde_json::from_str(&stored)?;
    /// assert_eq!(run.serialized_state::<Customer>("customer")?.map(|customer| customer.id), Some(7));
    /// assert!(run.serialized_state::<Customer>("supplier")?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the run has a value of this name, if the value cannot be written as JSON, or if all state of the run together has more than
    /// 64 KiB.
    pub fn with_serialized_state(
        mut self,
        name: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<Self, StateError> {
        let mut state = self.state.clone();
        state.add(name, value)?;
        self.set_state(state);
        Ok(self)
    }

    /// Returns the value of this name in the state of the run, or `None` if the state has no value of this name.
    /// [`with_serialized_state`](Self::with_serialized_state) has an example.
    ///
    /// # Errors
    /// Fails if the stored value is not a `T`.
    pub fn serialized_state<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StateError> {
        self.state.get(name).map(|text| read_state(name, text)).transpose()
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn state(&self) -> &RunState {
        &self.state
    }

    pub(crate) fn set_state(&mut self, state: RunState) {
        if !state.is_empty() {
            // An older library would ignore the state. The higher version prevents such a library from continuing the run.
            self.version = self.version.max(Self::STATE_VERSION);
        }
        self.state = state;
    }
}

impl AgentLoop {
    /// Sets the tools of the run. Approval requests, and events as JSON, leave out the secret arguments of these tools. If any tool has
    /// secret arguments, all arguments of calls of unknown tools are left out, too. The tools are not part of the stored form.
    ///
    /// An assistant sets its tools itself. This method is for applications that drive a loop themselves.
    ///
    /// ```
    /// use agent::loop_core::{AgentLoop, LoopConfig, ModelReply};
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
    /// run.record_reply(ModelReply::new(AssistantMessage::new([call])))?;
    /// while let Some(event) = run.take_event() {
    ///     assert!(!serde_json::to_string(&event)?.contains("hunter2"));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_tools(mut self, tools: Arc<[ToolDefinition]>) -> Self {
        self.set_secrets(Arc::new(SecretArguments::new([tools])));
        self
    }

    pub(crate) fn set_secrets(&mut self, secrets: Arc<SecretArguments>) {
        self.secrets = RunSecrets::new(secrets);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::loop_core::LoopConfig;
    use crate::loop_core::state::MAX_BYTES;
    use crate::message::{Conversation, Message};

    #[test]
    fn state_is_limited_and_hidden_and_raises_the_version() {
        let run = || AgentLoop::new("r", LoopConfig::default(), Conversation::new(), [Message::user("go")]);
        let plain = serde_json::to_value(run()).unwrap();
        assert!(plain["version"] == 1 && plain.get("state").is_none());
        let run = run().with_serialized_state("account", "hunter2").unwrap();
        assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
        assert_eq!(serde_json::to_value(&run).unwrap()["version"], AgentLoop::STATE_VERSION);
        let twice = run.clone().with_serialized_state("account", "again").unwrap_err();
        assert_eq!(twice, StateError::Duplicate { name: "account".to_owned() });
        let large = run.clone().with_serialized_state("large", &"x".repeat(MAX_BYTES)).unwrap_err();
        assert_eq!(large, StateError::TooLarge { allowed: MAX_BYTES });
        let keys: BTreeMap<Vec<u8>, u8> = BTreeMap::from([(vec![1], 1)]);
        let unwritable = run.with_serialized_state("keys", &keys).unwrap_err();
        assert_eq!(unwritable, StateError::Unwritable { name: "keys".to_owned() });
    }
}
