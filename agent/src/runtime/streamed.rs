//! A run that is read as a stream of events.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use serde_json::Value;

use super::answer::{PartialAnswer, TypedAnswer};
use super::error::RunError;
use super::handle::RunHandle;
use super::listener::EventSlot;
use super::run_output::RunOutput;
use crate::loop_core::Event;
use crate::tool::BoxFuture;

/// A stream of the events of a run. [`output`](Self::output) returns the output of the run.
///
/// Reading the stream drives the run: the run never gets ahead of its reader. Dropping the stream cancels the run and leaves the
/// conversation sound.
///
/// ```
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let mut run = assistant.prompt("Hi").stream();
/// let first = run.next().await.expect("a run has events");
/// assert_eq!((first.seq, first.turn), (1, 0));
/// assert_eq!(run.handle().run_id(), &*first.run_id);
/// assert_eq!(run.output().await?.text(), "Hello!");            // reads the rest
/// # Ok(()) }
/// ```
#[must_use = "a run does nothing until it is read"]
pub struct Run<T = ()> {
    pub(super) running: Option<BoxFuture<'static, Result<RunOutput, RunError>>>,
    pub(super) slot: EventSlot,
    pub(super) handle: RunHandle,
    pub(super) result: Option<Result<RunOutput, RunError>>,
    pub(super) answer: Result<TypedAnswer<T>, RunError>,
    pub(super) partial: Option<PartialAnswer>,
}

impl<T> Run<T> {
    /// Returns the next event, or `None` if the run has ended, was suspended or could not begin.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns a handle that controls the run while the stream is read. See [`RunHandle::snapshot`] for an example.
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// Returns the answer so far, if the prompt asked for an answer [of a type](super::Prompt::output) or [by a
    /// schema](super::Prompt::output_schema). It contains all complete values, and the beginning of an incomplete string. If the complete
    /// answer is refused, the model answers again from the beginning, after the next [`TurnStart`](crate::EventKind::TurnStart). Takes
    /// time linear in the length of the answer.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, ScriptedModel, ToolArgs, json};
    ///
    /// #[derive(ToolArgs)]
    /// struct Recipe { title: String, steps: Vec<String> }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let answer = r#"{"title": "Tea", "steps": ["boil water", "wait"]}"#;
    /// let assistant = Assistant::builder(ScriptedModel::new([reply().text(answer)])).build()?;
    /// let mut run = assistant.prompt("Tea?").output::<Recipe>().stream();
    /// let mut seen = Vec::new();
    /// while run.next().await.is_some() {
    ///     seen.extend(run.partial());
    /// }
    /// assert!(seen.contains(&json!({"title": "Tea", "steps": ["boil wat"]})));
    /// assert_eq!(run.output().await?.value.steps.len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn partial(&self) -> Option<Value> {
        self.partial.as_ref()?.snapshot()
    }

    /// Returns the output of the run, after reading all remaining events.
    ///
    /// # Errors
    /// Returns the errors of an awaited [`Prompt`](super::Prompt).
    pub async fn output(mut self) -> Result<RunOutput<T>, RunError> {
        while self.next().await.is_some() {}
        let answer = self.answer?;
        // The result is set once all events have been read, so this error does not occur.
        let gone = || Err(RunError::Aborted { reason: "the run is gone".to_owned() });
        answer.read(self.result.take().unwrap_or_else(gone)?)
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Event>>> {
        if let Some(event) = self.slot.take() {
            return Poll::Ready(Some(event));
        }
        let Some(running) = &mut self.running else { return Poll::Ready(None) };
        if let Poll::Ready(result) = running.as_mut().poll(cx) {
            self.running = None;
            self.result = Some(result);
            return Poll::Ready(self.slot.take());
        }
        match self.slot.take() {
            Some(event) => Poll::Ready(Some(event)),
            None => Poll::Pending,
        }
    }
}

impl<T> Stream for Run<T> {
    type Item = Arc<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(self.poll_event(cx));
        if let (Some(event), Some(partial)) =
            (event.as_ref().filter(|event| event.is_own()), &mut self.partial)
        {
            partial.update(&event.kind);
        }
        Poll::Ready(event)
    }
}

impl<T> fmt::Debug for Run<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("run_id", &self.handle.run_id).finish_non_exhaustive()
    }
}
