//! State of prompts that travels with their runs as JSON, and is rebuilt wherever a run continues.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::approval::verify;
use super::assistant::Config;
use super::begin::RunStart;
use super::{AssistantBuilder, Prompt, ResumeError, RunError};
use crate::loop_core::{RunState, StateError, read_state};
#[cfg(feature = "durable-restate")]
use crate::tool::context::ToolContext;
use crate::tool::context::ToolContextBuilder;
use crate::tool::problem::RegistryProblem;
use crate::tool::state::{DuplicateState, StateKey};

/// A type whose values travel with a run, under a name.
#[derive(Clone)]
pub(super) struct StateType {
    pub(super) name: Arc<str>,
    pub(super) key: StateKey,
    /// Adds the value of this JSON text to a context.
    rebuild: fn(&str, &str, ToolContextBuilder) -> Result<ToolContextBuilder, StateError>,
}

fn rebuild<T: DeserializeOwned + Send + Sync + 'static>(
    name: &str,
    text: &str,
    context: ToolContextBuilder,
) -> Result<ToolContextBuilder, StateError> {
    Ok(context.state(read_state::<T>(name, text)?))
}

impl AssistantBuilder {
    /// Registers a type whose values a prompt brings with [`with_serialized_state`](Prompt::with_serialized_state), under a name. Such a value
    /// travels with its run as JSON, so tools have it wherever the run continues: resumed from storage, or on an engine. It replaces
    /// [`state_per_prompt`](Self::state_per_prompt) for the type.
    ///
    /// The name identifies the type in stored runs and in requests of clients. It is chosen by the application, because the name that the
    /// compiler gives a type changes when the type is moved, and may differ between compilers.
    ///
    /// ```
    /// use agent::durable::{Rehearsal, RunRequest, Service};
    /// use agent::model::{ScriptedModel, reply};
    /// use agent::{Assistant, tool, tools};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Customer {
    ///     id: u64,
    /// }
    ///
    /// /// Lists the orders of the customer.
    /// #[tool(read_only)]
    /// fn list_orders(customer: &Customer) -> String {
    ///     format!("the orders of {}", customer.id)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::from_fn(|request| match request.messages.last().unwrap().as_tool_result() {
    ///     Some(result) => reply().text(result.text()),
    ///     None => reply().tool_call("list_orders", "{}"),
    /// });
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![list_orders])
    ///     .serialized_state::<Customer>("customer")
    ///     .build()?;
    /// let output = assistant.prompt("My orders?").with_serialized_state(Customer { id: 7 }).await?;
    /// assert_eq!(output.text(), "the orders of 7");
    ///
    /// // On an engine the value is in the request, where it has this name.
    /// let request = RunRequest::new("question-1", "My orders?")
    ///     .with_serialized_state("customer", &Customer { id: 8 })?;
    /// let outcome = Rehearsal::new(Service::new(&assistant)?, request).play(None).await?;
    /// assert_eq!(outcome.expect("nothing fails").text(), "the orders of 8");
    /// # Ok(()) }
    /// ```
    pub fn serialized_state<T: Serialize + DeserializeOwned + Send + Sync + 'static>(
        mut self,
        name: impl Into<Arc<str>>,
    ) -> Self {
        let (name, key) = (name.into(), StateKey::of::<T>());
        if self.state_types.iter().any(|known| known.key == key) {
            self.problems.push(RegistryProblem::State(DuplicateState(key)));
        } else if self.state_types.iter().any(|known| known.name == name) {
            self.state_names_twice.get_or_insert(name);
        } else {
            self.state_types.push(StateType { name, key, rebuild: rebuild::<T> });
        }
        self.state_per_prompt::<T>()
    }
}

impl Prompt {
    /// Adds a state value for this prompt only, like [`with_state`](Self::with_state). It is part of the run: a run that is stored and
    /// resumed, also in another process, still has it, without being given it again. The type is
    /// [registered](AssistantBuilder::serialized_state) with the assistant.
    ///
    /// The value is written as JSON at once, and tools receive the value that is read from this JSON, also in this process, so that they
    /// receive the same one wherever the run continues. All values of a run together have at most 64 KiB. They are in no event, trace or
    /// record; but a stored run contains them. A stored run with state is resumed only if it is signed, see
    /// [`approval_key`](AssistantBuilder::approval_key).
    ///
    /// When a suspended run is resumed, state of the prompt replaces the stored state of the same type. A run that is continued from a
    /// [session](AssistantBuilder::session) after a crash has none: give it again.
    ///
    /// The prompt fails before anything runs: with [`RunError::State`] if the type is not registered, or the value cannot be written or is
    /// too large, with [`RunError::DuplicateState`] if [`with_state`](Self::with_state) gave a value of the type, too, and with
    /// [`ResumeError::State`] if stored state is not a value of the registered type.
    ///
    /// ```
    /// # #[cfg(feature = "approvals-signed")] mod example {
    /// use agent::loop_core::AgentLoop;
    /// use agent::model::{ScriptedModel, reply};
    /// use agent::{Assistant, BuildError, Decisions, tool, tools};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Customer {
    ///     id: u64,
    /// }
    ///
    /// /// Closes the account of the customer.
    /// #[tool(approval = "always")]
    /// fn close_account(customer: &Customer) -> String {
    ///     format!("account {} is closed", customer.id)
    /// }
    ///
    /// fn assistant() -> Result<Assistant, BuildError> {
    ///     let model = ScriptedModel::from_fn(|request| match request.messages.last().unwrap().as_tool_result() {
    ///         Some(result) => reply().text(result.text()),
    ///         None => reply().tool_call("close_account", "{}"),
    ///     });
    ///     Assistant::builder(model)
    ///         .tools(tools![close_account])
    ///         .serialized_state::<Customer>("customer")
    ///         .approval_key([7; 32]) // 32 secret bytes
    ///         .build()
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let prompt = assistant()?.prompt("Close it.").with_serialized_state(Customer { id: 7 });
    /// let stored = serde_json::to_string(&prompt.await?.snapshot.expect("it waits"))?;
    ///
    /// // Tomorrow, in another process:
    /// let suspended: AgentLoop = serde_json::from_str(&stored)?;
    /// let decisions = Decisions::new().allow(&suspended.approval_requests()[0]);
    /// let output = assistant()?.resume(&suspended, decisions).await?;
    /// assert_eq!(output.text(), "account 7 is closed");
    /// # Ok(()) }
    /// # }
    /// # #[cfg(feature = "approvals-signed")] example::main().unwrap();
    /// ```
    pub fn with_serialized_state<T: Serialize + 'static>(mut self, value: T) -> Self {
        if let Ok(state) = &mut self.state {
            let types = &self.assistant.config().state_types;
            let added = match types.iter().find(|known| known.key == StateKey::of::<T>()) {
                Some(known) => state.add(&known.name, &value),
                None => Err(StateError::Unregistered { state: std::any::type_name::<T>().to_owned() }),
            };
            if let Err(error) = added {
                self.state = Err(error);
            }
        }
        self
    }
}

impl Config {
    /// Rebuilds the values of this state, and adds them to a context.
    pub(super) fn rebuild_state(
        &self,
        state: &RunState,
        mut context: ToolContextBuilder,
    ) -> Result<ToolContextBuilder, StateError> {
        state.check_size()?;
        for (name, text) in state.iter() {
            context = (self.state_type(name)?.rebuild)(name, text, context)?;
        }
        Ok(context)
    }

    /// Returns the state of a run that begins or is resumed, and adds its values to the context: those of the prompt, and those stored with
    /// the run whose types the prompt does not give.
    pub(super) fn add_state(
        &self,
        given: RunState,
        start: &RunStart,
        context: ToolContextBuilder,
    ) -> Result<(RunState, ToolContextBuilder), RunError> {
        let mut context = self.rebuild_state(&given, context)?;
        let RunStart::Resume { run, .. } = start else { return Ok((given, context)) };
        let (stored, _) = &**run;
        if stored.state().is_empty() {
            return Ok((given, context));
        }
        if stored.was_stored() {
            // Nothing of a run that was changed is read.
            verify(stored, self.signer.as_deref()).map_err(RunError::Resume)?;
        }
        let mut state = given;
        for (name, text) in stored.state().iter() {
            let known = self.state_type(name).map_err(|error| RunError::Resume(ResumeError::State(error)))?;
            if !context.has(&known.key) {
                let added = (known.rebuild)(name, text, context);
                context = added.map_err(|error| RunError::Resume(ResumeError::State(error)))?;
                state.insert(name.clone(), text.to_owned());
            }
        }
        state.check_size()?;
        Ok((state, context))
    }

    /// Returns the registered types that tools need and the assistant does not have, and whether there are no other such types.
    #[cfg(feature = "durable-restate")]
    pub(super) fn state_of_requests(&self) -> (Vec<StateType>, bool) {
        let Err(error) = self.registry.check_state(&ToolContext::new()) else { return (Vec::new(), true) };
        let mut needed: Vec<StateType> = Vec::new();
        for problem in error.problems() {
            let RegistryProblem::MissingState { state, .. } = problem else { return (needed, false) };
            let Some(known) = self.state_types.iter().find(|known| known.key == *state) else {
                return (needed, false);
            };
            if !needed.iter().any(|other| other.key == *state) {
                needed.push(known.clone());
            }
        }
        (needed, true)
    }

    fn state_type(&self, name: &str) -> Result<&StateType, StateError> {
        let known = self.state_types.iter().find(|known| *known.name == *name);
        known.ok_or_else(|| StateError::Unregistered { state: name.to_owned() })
    }
}
