//! What a run leaves in a store: a record of each call, the messages of its session.

mod begin;
mod invoke;
mod keeper;
mod open;
mod owed;
mod session;
mod steps;

pub(super) use begin::{Found, RunRecords, Started};
pub use invoke::InvokeError;
pub(super) use keeper::{StoreAccess, StoreOptions};
use owed::UnrecordedEnd;
pub(super) use owed::UnrecordedEnds;
pub(super) use session::{InterruptedTurn, Restored, SessionState};
pub(super) use steps::RecordingSteps;

/// Milliseconds since 1970. Nothing is decided by it: clocks jump.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default()
}
