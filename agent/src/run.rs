//! Runs: how to begin, watch, steer and resume a run, and how a run ends.
//!
//! [`Assistant::prompt`](crate::Assistant::prompt) makes a [`Prompt`]. Await it for the [output](crate::RunOutput), or
//! [stream](Prompt::stream) the events of the run.
//!
//! ```
//! # #[cfg(feature = "runtime")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use agent::{Assistant, EventKind, ScriptedModel};
//!
//! let assistant = Assistant::builder(ScriptedModel::new(["Hello!", "Bye!"])).build()?;
//! assert_eq!(assistant.prompt("Hi").await?.text(), "Hello!");
//!
//! let mut run = assistant.prompt("Bye").stream();
//! while let Some(event) = run.next().await {
//!     if let EventKind::MessageUpdate { update, .. } = &event.kind {
//!         print!("{}", update.text_delta().unwrap_or_default());
//!     }
//! }
//! assert_eq!(run.output().await?.text(), "Bye!");
//! # Ok(()) }
//! # #[cfg(not(feature = "runtime"))] fn main() {}
//! ```

pub use crate::loop_core::config::SteeringPolicy;
pub use crate::loop_core::end::{Limit, LimitReached};
pub use crate::loop_core::record::RecordedTurn;
pub use crate::loop_core::state::StateError;
pub use crate::loop_core::step::{ApprovalRequest, PendingCall, Queue, TurnSummary};
pub use crate::run_path::{PathCall, RunPath};
#[cfg(feature = "runtime")]
pub use crate::runtime::{
    Budget, BuildError, ChildTool, Compaction, Delivery, InvokeError, Metric, Prompt, Receipt, ResultCache,
    ResumeError, Run, RunHandle, Subscription,
};
