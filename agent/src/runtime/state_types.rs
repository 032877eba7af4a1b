//! The registered types of serialized state. Their values are stored with a run as JSON, and parsed again where the run continues.

use std::any::type_name;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::loop_core::{RunState, StateError, read_state};
use crate::tool::context::ToolContext;
#[cfg(feature = "durable-restate")]
use crate::tool::problem::RegistryProblem;
#[cfg(feature = "durable-restate")]
use crate::tool::registry::Registry;
use crate::tool::state::StateKey;

#[derive(Clone)]
pub(super) struct StateType {
    pub(super) name: Arc<str>,
    pub(super) key: StateKey,
    /// Parses a value from a JSON text, and adds it to a context. The arguments are the name of the type, the text, and the context.
    rebuild: fn(&str, &str, ToolContext) -> Result<ToolContext, StateError>,
}

impl StateType {
    pub(super) fn new<T: DeserializeOwned + Send + Sync + 'static>(name: Arc<str>) -> Self {
        Self {
            name,
            key: StateKey::of::<T>(),
            rebuild: |name, text, context| Ok(context.adding_state(Arc::new(read_state::<T>(name, text)?))),
        }
    }

    pub(super) fn rebuild(&self, text: &str, context: ToolContext) -> Result<ToolContext, StateError> {
        (self.rebuild)(&self.name, text, context)
    }
}

/// The registered types. No two of them have the same name.
#[derive(Clone)]
pub(super) struct StateTypes(Arc<[StateType]>);

impl From<Vec<StateType>> for StateTypes {
    fn from(types: Vec<StateType>) -> Self {
        Self(types.into())
    }
}

impl StateTypes {
    pub(super) fn rebuild(
        &self,
        state: &RunState,
        mut context: ToolContext,
    ) -> Result<ToolContext, StateError> {
        state.check_size()?;
        for (name, text) in state.iter() {
            context = self.of_name(name)?.rebuild(text, context)?;
        }
        Ok(context)
    }

    pub(super) fn of_name(&self, name: &str) -> Result<&StateType, StateError> {
        let known = self.0.iter().find(|known| *known.name == *name);
        known.ok_or_else(|| StateError::Unregistered { state: name.to_owned() })
    }

    pub(super) fn name_of<T: 'static>(&self) -> Result<&str, StateError> {
        let known = self.0.iter().find(|known| known.key == StateKey::of::<T>());
        known
            .map(|known| &*known.name)
            .ok_or_else(|| StateError::Unregistered { state: type_name::<T>().to_owned() })
    }

    /// Returns the registered types that tools need and the context lacks. The second value is `false` if state of other types is missing;
    /// the list may then be incomplete.
    #[cfg(feature = "durable-restate")]
    pub(super) fn of_requests(&self, registry: &Registry, given: &ToolContext) -> (Vec<StateType>, bool) {
        let Err(error) = registry.check_state(given) else { return (Vec::new(), true) };
        let mut needed: Vec<StateType> = Vec::new();
        for problem in error.problems() {
            let RegistryProblem::MissingState { state, .. } = problem else { return (needed, false) };
            let Some(known) = self.0.iter().find(|known| known.key == *state) else { return (needed, false) };
            if !needed.iter().any(|other| other.key == *state) {
                needed.push(known.clone());
            }
        }
        (needed, true)
    }
}
