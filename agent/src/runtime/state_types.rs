//! The types of state that travels with runs as JSON, and is rebuilt wherever a run continues.

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

/// A type whose values travel with a run, under a name.
#[derive(Clone)]
pub(super) struct StateType {
    pub(super) name: Arc<str>,
    pub(super) key: StateKey,
    /// Adds the value of this JSON text to a context.
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

/// The registered types, each with a name of its own.
#[derive(Clone)]
pub(super) struct StateTypes(Arc<[StateType]>);

impl From<Vec<StateType>> for StateTypes {
    fn from(types: Vec<StateType>) -> Self {
        Self(types.into())
    }
}

impl StateTypes {
    /// Rebuilds the values of this state, and adds them to a context.
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

    /// Returns the type with this name.
    pub(super) fn of_name(&self, name: &str) -> Result<&StateType, StateError> {
        let known = self.0.iter().find(|known| *known.name == *name);
        known.ok_or_else(|| StateError::Unregistered { state: name.to_owned() })
    }

    /// Returns the name of a type.
    pub(super) fn name_of<T: 'static>(&self) -> Result<&str, StateError> {
        let known = self.0.iter().find(|known| known.key == StateKey::of::<T>());
        known
            .map(|known| &*known.name)
            .ok_or_else(|| StateError::Unregistered { state: type_name::<T>().to_owned() })
    }

    /// Returns the registered types that tools need and this context does not have, and whether nothing else is missing.
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
