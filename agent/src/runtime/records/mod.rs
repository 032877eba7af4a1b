//! The records of a run in a store: its calls, and the messages of its session.

mod begin;
mod invoke;
mod keeper;
mod open;
mod owed;
mod session;
mod steps;

pub(super) use begin::{CallStart, InterruptedCall, RunRecords};
pub use invoke::InvokeError;
pub(super) use keeper::{StoreAccess, StoreOptions};
use owed::UnrecordedEnd;
pub(super) use owed::UnrecordedEnds;
pub(super) use session::{InterruptedTurn, RestoredRun, SessionState};
pub(super) use steps::RecordingSteps;

/// Returns milliseconds since 1970. They are only informative, because clocks jump: no decision depends on them.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default()
}
