//! The builder method that registers types of serialized state.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::AssistantBuilder;
use crate::runtime::state_types::StateType;
use crate::tool::problem::RegistryProblem;
use crate::tool::state::StateKey;

impl AssistantBuilder {
    /// Registers a type under a name. A prompt adds a value of the type with
    /// [`with_serialized_state`](crate::run::Prompt::with_serialized_state). The value is stored with the run as JSON, so tools also
    /// receive it in a run that is resumed from storage or that runs on a durable engine, such as Restate. This option replaces
    /// [`state_per_prompt`](Self::state_per_prompt) for the type.
    ///
    /// The name identifies the type in stored runs and in requests of clients. The application chooses the name, because the name that the
    /// compiler gives a type changes when the type is moved, and may differ between compilers.
    ///
    /// ```
    /// use agent::durable::{Rehearsal, RunRequest, Service};
    /// use agent::model::reply;
    /// use agent::{Assistant, ScriptedModel, tool, tools};
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
    /// // On an engine, the request contains the value, under the registered name.
    /// let request = RunRequest::new("question-1", "My orders?")
    ///     .with_serialized_state("customer", &Customer { id: 8 })?;
    /// let outcome = Rehearsal::new(Service::new(&assistant)?, request).play().await?;
    /// assert_eq!(outcome.text(), "the orders of 8");
    /// # Ok(()) }
    /// ```
    pub fn serialized_state<T: Serialize + DeserializeOwned + Send + Sync + 'static>(
        mut self,
        name: impl Into<Arc<str>>,
    ) -> Self {
        let (name, key) = (name.into(), StateKey::of::<T>());
        if self.state_types.iter().any(|known| known.key == key) {
            self.problems.push(RegistryProblem::DuplicateState { state: key });
        } else if self.state_types.iter().any(|known| known.name == name) {
            self.state_names_twice.get_or_insert(name);
        } else {
            self.state_types.push(StateType::new::<T>(name));
        }
        self.state_per_prompt::<T>()
    }
}
