//! Handles to a run.

use std::fmt;
use std::sync::Arc;

use super::assistant::Assistant;
use super::queue::Receipt;
use super::suspended::SuspendedRun;
use crate::message::UserMessage;
use crate::tool::cancel::CancelToken;

/// A handle that controls a run while other code drives it.
///
/// ```
/// use agent::model::reply;
/// use agent::{Assistant, ScriptedModel, run::RunHandle};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new([reply().hang()])).build()?;
/// let run: RunHandle = assistant.prompt("Hi").start()?;
/// run.cancel("the user left");
/// assistant.wait_until_idle().await;
/// assert!(!assistant.is_busy());
/// # Ok(()) }
/// ```
///
/// A handle can also send messages to the run:
///
/// ```
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!", "Bonjour !"])).build()?;
/// let run = assistant.prompt("Say hello.").start()?;
/// run.steer("Be brief.");
/// run.follow_up("And in French?");
/// assistant.wait_until_idle().await;
/// let said: Vec<_> = assistant.messages().iter().map(|message| message.text()).collect();
/// assert_eq!(said, ["Say hello.", "Be brief.", "Hello!", "And in French?", "Bonjour !"]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RunHandle {
    pub(super) assistant: Assistant,
    pub(super) run_id: Arc<str>,
    pub(super) cancel: CancelToken,
}

impl RunHandle {
    /// Returns the id of the run, the same as in its events.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Cancels the run. Its prompt fails with [`RunError::Aborted`](super::RunError::Aborted). Only the first reason is kept.
    pub fn cancel(&self, reason: impl Into<Arc<str>>) {
        self.cancel.cancel(reason);
    }

    /// Queues a message for the current run, like [`Assistant::steer`].
    pub fn steer(&self, message: impl Into<UserMessage>) -> Receipt {
        self.assistant.steer(message)
    }

    /// Queues a message for the end of the current run, like [`Assistant::follow_up`].
    pub fn follow_up(&self, message: impl Into<UserMessage>) -> Receipt {
        self.assistant.follow_up(message)
    }

    /// Returns a snapshot of the run that can be stored and [resumed](Assistant::resume), or `None` if this run is not active. The
    /// snapshot contains the secret arguments of calls, and the suspended runs of sub-agents. Without a session, it also contains the
    /// active runs of sub-agents.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, SuspendedRun, model::reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new([reply().hang()])).build()?;
    /// let mut run = assistant.prompt("Hi").stream();
    /// let handle = run.handle();
    /// run.next().await.expect("a run has events");
    /// let stored = serde_json::to_string(&handle.snapshot().expect("it goes on"))?;
    /// assert_eq!(serde_json::from_str::<SuspendedRun>(&stored)?.run_id(), handle.run_id());
    ///
    /// handle.cancel("the process ends");
    /// assert!(run.output().await.unwrap_err().is_aborted());
    /// assert!(handle.snapshot().is_none());
    /// # Ok(()) }
    /// ```
    pub fn snapshot(&self) -> Option<SuspendedRun> {
        let active = self.assistant.state();
        let (run, copy_tree) =
            active.active.as_ref().map(|active| (active.run.clone(), active.copy_tree.clone()))?;
        drop(active);
        if *run.lock().run_id() != self.run_id {
            return None;
        }
        // With a session, sub-agents continue from their own sessions, so the snapshot does not contain them.
        let copy_tree = copy_tree.filter(|_| self.assistant.session().is_none());
        let mut run = copy_tree.map_or_else(|| run.lock().snapshot(), |copy| copy());
        self.assistant.config().sign(&mut run);
        Some(SuspendedRun::new(run))
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}
