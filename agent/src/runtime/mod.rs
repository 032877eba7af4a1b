//! The assistant on tokio: a model, tools, and the loop between them.

mod assistant;
mod builder;
mod error;
mod event;
mod executor;
mod listener;
mod prompt;
mod run;

pub use assistant::Assistant;
pub use builder::{AssistantBuilder, BuildError};
pub use error::RunError;
pub use event::{Event, EventKind};
pub use prompt::{Prompt, RunOutput, RunStop};

pub(crate) use executor::TokioExecutor;
