//! The assistant: drives the [agent loop](crate::loop_core) on tokio, with a model, tools, hooks, queues and listeners.

mod answer;
mod approval;
mod ask;
mod assistant;
mod begin;
mod body;
mod budget;
mod builder;
mod cache;
mod checked;
mod child;
mod clock;
mod compact;
mod config;
mod context;
mod drive;
#[cfg(feature = "durable-restate")]
mod engine_child;
mod entry;
mod error;
mod executor;
mod facts;
mod growing;
mod handle;
mod hooks;
mod in_process;
#[cfg(feature = "studio")]
mod inspected;
#[cfg(feature = "otel")]
mod instruments;
mod listener;
mod observe;
mod output;
mod parent;
mod perform;
mod prepare;
mod progress;
mod prompt;
mod queue;
mod records;
mod run_output;
mod segment;
#[cfg(feature = "durable-restate")]
mod served;
mod spill;
mod state_types;
mod stop;
mod streamed;
mod suspended;
mod telemetry;
mod turn;
mod turn_start;

pub use approval::{Decision, Decisions};
pub use assistant::Assistant;
pub use budget::Budget;
pub use builder::AssistantBuilder;
pub use cache::ResultCache;
pub use child::ChildTool;
pub use compact::Compaction;
pub use error::{BuildError, ResumeError, RunError};
pub use handle::RunHandle;
pub use hooks::{AfterCall, BeforeCall, HookError, Hooks, ToolCallInfo};
pub use listener::Subscription;
pub use observe::Metric;
pub use prompt::Prompt;
pub use queue::{Delivery, Receipt};
pub use records::InvokeError;
pub use run_output::RunOutput;
pub use streamed::Run;
pub use suspended::SuspendedRun;
pub use turn_start::TurnStart;

#[cfg(feature = "durable-restate")]
pub(crate) use approval::CheckedAgain;
#[cfg(feature = "durable-restate")]
pub(crate) use checked::CheckedArguments;
pub(crate) use clock::TokioClock;
#[cfg(feature = "durable-restate")]
pub(crate) use context::ContextState;
#[cfg(feature = "durable-restate")]
pub(crate) use engine_child::{ChildReport, is_child_handle, too_many_children, waiting_child};
pub(crate) use executor::TokioExecutor;
#[cfg(feature = "durable-restate")]
pub(crate) use parent::CHILD_GRACE;
#[cfg(feature = "durable-restate")]
pub(crate) use perform::Performer;
#[cfg(feature = "durable-restate")]
pub(crate) use segment::{JournaledCall, NEW_MESSAGE, mark_steered};
#[cfg(feature = "durable-restate")]
pub(crate) use served::{ServedAssistant, UnservedAssistant};
#[cfg(feature = "durable-restate")]
pub(crate) use turn::{TurnChoices, TurnSteps, end_turn, next_reply};

/// Returns a unique id: `kind`, an underscore, and 128 bits in hexadecimal. The bits are hashes of the time, with random keys of the
/// standard library.
pub(crate) fn new_id(kind: &str) -> String {
    use std::hash::{BuildHasher as _, RandomState};
    // Random keys alone are not enough, because a copy of a process, for example in a cloned virtual machine, has the same keys.
    let time = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let time = time.as_secs() << 30 ^ u64::from(time.subsec_nanos());
    let random = RandomState::new();
    let halves = [random.hash_one(time), random.hash_one(!time)].map(u64::to_be_bytes);
    let mut digits = [0; 32];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(halves.as_flattened()) {
        pair.copy_from_slice(&[byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    }
    let mut id = String::with_capacity(kind.len() + 1 + digits.len());
    id.push_str(kind);
    id.push('_');
    id.push_str(str::from_utf8(&digits).unwrap_or_default());
    id
}
