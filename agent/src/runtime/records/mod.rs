//! The records of a run in a store: its calls, and the messages of its session.

mod begin;
mod invoke;
mod keeper;
mod open;
mod owed;
mod session;
mod steps;
#[cfg(test)]
mod tests;

pub(super) use begin::{InterruptedCall, RunRecords};
pub use invoke::InvokeError;
pub(super) use keeper::{StoreAccess, StoreOptions, now};
pub(super) use owed::UnrecordedEnds;
pub(super) use session::{EndedRun, InterruptedTurn, RestoredRun, SessionState, StoredRun};
pub(super) use steps::RecordingSteps;
