//! Typed tool definitions for language models.

// The macros name this crate by its name, also in its own tests.
extern crate self as agent;

pub mod args;
pub mod message;
mod step_key;
mod tool;

pub use step_key::{ParseStepKeyError, StepKey, StepKind};
pub use tool::BoxFuture;
pub use tool::cancel::{CancelToken, Cancelled};
pub use tool::context::{ToolContext, ToolContextBuilder};
pub use tool::definition::{DefinitionError, ToolAnnotations, ToolDefinition};
pub use tool::dynamic::DynamicTool;
pub use tool::error::ToolError;
pub use tool::executor::Executor;
pub use tool::outcome::{
    DenialCode, FailureCode, InterruptionCode, IntoOutcome, ToolOutcome, ToolReply, ToolResult,
};
pub use tool::output::{Control, Json, ToolOutput};
pub use tool::policy::{Effect, Timeout, ToolPolicy};
pub use tool::problem::{RegistryError, RegistryProblem, UnknownTool};
pub use tool::registry::{CallError, CheckedCall, Registry};
pub use tool::set::ToolSet;
pub use tool::state::{DuplicateState, StateKey};
pub use tool::traits::Tool;

/// Where tools block and wait when nobody says otherwise.
fn default_executor() -> std::sync::Arc<dyn Executor> {
    std::sync::Arc::new(tool::executor::InlineExecutor)
}
