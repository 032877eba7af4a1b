//! Drives the [agent loop](crate::loop_core) on any host, with one asynchronous function for each kind of step.
//!
//! [`Assistant`](crate::Assistant) drives the loop in one process on tokio, with live events, queues and hooks. A host that records its
//! steps, such as a durable execution engine or a job queue, implements [`Steps`] instead. Each step has a [`StepKey`] that is the same on
//! every replay, so the host can find the recorded result by its key. If the futures of the host are not `Send`, match on [`Effect`]
//! directly.
//!
//! ```
//! use agent::loop_core::{AgentLoop, CallEnd, LoopConfig, Reply};
//! use agent::message::{Conversation, Message, MessageList, ToolCall};
//! use agent::model::{Model, ModelRequest, ScriptedModel, StepCx, reply};
//! use agent::steps::{StepError, Steps, drive};
//! use agent::{BoxFuture, Registry, StepKey, ToolContext, tool, tools};
//!
//! /// Adds two numbers.
//! #[tool(inline)]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! struct Plain { model: ScriptedModel, tools: Registry }
//!
//! impl Steps for Plain {
//!     fn model(&self, key: StepKey, messages: MessageList) -> BoxFuture<'_, Result<Reply, StepError>> {
//!         let mut request = ModelRequest::default().with_tools(self.tools.definitions());
//!         request.messages = messages;
//!         let reply = self.model.call(&StepCx::new().with_key(key), &request);
//!         Box::pin(async move { reply.await.map(Reply::new).map_err(|error| StepError::terminal(error.to_string())) })
//!     }
//!
//!     fn tools(&self, calls: Vec<(StepKey, ToolCall)>) -> BoxFuture<'_, Result<Vec<CallEnd>, StepError>> {
//!         Box::pin(async move {
//!             let mut ends = Vec::new();
//!             for (key, call) in calls {
//!                 let cx = ToolContext::builder().idempotency_key(key.to_string()).build();
//!                 let result = self.tools.call(&call, &cx.map_err(|error| StepError::terminal(error.to_string()))?).await;
//!                 ends.push(CallEnd::ran(result.outcome, 0));
//!             }
//!             Ok(ends)
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::new([reply().tool_call("add", r#"{"a": 1, "b": 2}"#), reply().text("3")]);
//! let steps = Plain { model, tools: Registry::new(tools![add])? };
//! let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("1 + 2?")]);
//! drive(&mut run, &steps).await?;
//! assert!(run.end().is_some_and(|end| end.is_completed()));
//! assert_eq!(run.conversation().last().unwrap().text(), "3");
//! # Ok(()) }
//! ```

use std::sync::Arc;

use crate::loop_core::{
    AgentLoop, Answer, AnswerError, ApprovalRequest, CallEnd, Decided, Effect, Event, Prepared, Queue, Ready,
    Reply, TurnSummary, Verdict,
};
use crate::message::{Message, MessageList, ToolCall};
use crate::{BoxFuture, StepKey};

/// The work that a run needs, with one function for each [`Effect`]. Each function answers in the order of its arguments.
///
/// What a model or a tool does wrong is part of the answer (a failed [`Reply`], a [`CallEnd`]). An error means that the host failed.
///
/// ```
/// use agent::loop_core::{CallEnd, Reply};
/// use agent::message::{AssistantMessage, MessageList, ToolCall};
/// use agent::steps::{StepError, Steps};
/// use agent::{BoxFuture, StepKey};
///
/// /// Nothing but talk. The [module](self) has one with tools.
/// struct Parrot;
///
/// impl Steps for Parrot {
///     fn model(&self, _: StepKey, messages: MessageList) -> BoxFuture<'_, Result<Reply, StepError>> {
///         let said = messages.last().map(|message| message.text()).unwrap_or_default();
///         Box::pin(async move { Ok(Reply::new(AssistantMessage::from(said))) })
///     }
///
///     fn tools(&self, _: Vec<(StepKey, ToolCall)>) -> BoxFuture<'_, Result<Vec<CallEnd>, StepError>> {
///         Box::pin(async { Err(StepError::terminal("there are no tools")) })
///     }
/// }
/// ```
#[doc = include_str!("docs/steps.md")]
#[expect(unused_variables, reason = "the defaults do nothing")]
pub trait Steps: Send + Sync {
    /// Returns one reply of the model. A streamed reply is read to its end within the step.
    fn model(&self, key: StepKey, messages: MessageList) -> BoxFuture<'_, Result<Reply, StepError>>;

    /// Runs calls, concurrently or one after the other.
    fn tools(&self, calls: Vec<(StepKey, ToolCall)>) -> BoxFuture<'_, Result<Vec<CallEnd>, StepError>>;

    /// Takes messages from a queue. The default returns none.
    fn poll(&self, key: StepKey, queue: Queue) -> BoxFuture<'_, Result<Vec<Arc<Message>>, StepError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Checks calls before they run. By default all of them run, and the validation during the call rejects what is wrong.
    fn prepare(&self, key: StepKey, calls: Vec<ToolCall>) -> BoxFuture<'_, Result<Vec<Prepared>, StepError>> {
        let ready = calls.iter().map(|_| Prepared::Ready(Ready::default())).collect();
        Box::pin(std::future::ready(Ok(ready)))
    }

    /// Asks whether calls may run. By default nobody decides, and the run is suspended.
    fn approvals(
        &self,
        requests: Vec<(StepKey, ApprovalRequest)>,
    ) -> BoxFuture<'_, Result<Vec<Decided>, StepError>> {
        Box::pin(std::future::ready(Ok(vec![Decided::Later; requests.len()])))
    }

    /// Waits for results from outside, by the handles that the tools gave. Returning `None`, the default, suspends the run.
    fn await_deferred(
        &self,
        deferred: Vec<(StepKey, String)>,
    ) -> BoxFuture<'_, Result<Option<Vec<CallEnd>>, StepError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Decides whether the run continues after a turn. By default the turn itself decides.
    fn turn_end(&self, key: StepKey, summary: TurnSummary) -> BoxFuture<'_, Result<Verdict, StepError>> {
        Box::pin(std::future::ready(Ok(Verdict::default())))
    }

    /// Returns the reason if the run is to end. It is called after each step, whose answer still counts. On a replay it must return the
    /// same value at the same step.
    fn cancelled(&self) -> Option<Arc<str>> {
        None
    }

    /// Receives each event. On a replay it receives them again.
    fn event(&self, event: Event) {}
}

/// A failure of the host. The run is as it was before the step, and can be driven further.
///
/// ```
/// use agent::steps::StepError;
///
/// let error = StepError::engine("the journal cannot be reached");
/// assert_eq!(error.to_string(), "the engine failed: the journal cannot be reached");
/// assert!(!matches!(error, StepError::Terminal { .. }));                      // it may be driven on
///
/// let stop = StepError::cancelled("the user left");
/// assert_eq!(stop.to_string(), "the step was cancelled: the user left");
/// let no_tools = StepError::terminal("there are no tools");
/// assert_eq!(no_tools.to_string(), "the step failed for good: there are no tools");
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The host wants the run to end. The caller of [`drive`] decides whether to [`abort`](AgentLoop::abort) it.
    #[error("the step was cancelled: {reason}")]
    #[non_exhaustive]
    Cancelled {
        /// The reason.
        reason: String,
    },
    /// The step failed, and another attempt would not help.
    #[error("the step failed for good: {message}")]
    #[non_exhaustive]
    Terminal {
        /// The error message.
        message: String,
    },
    /// The engine failed. It may try again.
    #[error("the engine failed: {message}")]
    #[non_exhaustive]
    Engine {
        /// The error message.
        message: String,
    },
    /// A step returned an answer that does not fit.
    #[error("a step gave a wrong answer: {0}")]
    Answer(#[from] AnswerError),
}

crate::error_text::debug_is_the_sentence!(StepError);

impl StepError {
    /// Returns an error that says the host wants the run to end.
    pub fn cancelled(reason: impl Into<String>) -> Self {
        Self::Cancelled { reason: reason.into() }
    }

    /// Returns an error for a step that failed permanently.
    pub fn terminal(message: impl Into<String>) -> Self {
        Self::Terminal { message: message.into() }
    }

    /// Returns an error for a failed engine.
    pub fn engine(message: impl Into<String>) -> Self {
        Self::Engine { message: message.into() }
    }
}

/// Drives a run to its [end](AgentLoop::end), or until it is [suspended](AgentLoop::is_suspended).
///
/// A suspended run continues when it is driven again.
///
/// ```
/// use agent::loop_core::{AgentLoop, CallEnd, LoopConfig, Reply};
/// use agent::message::{AssistantMessage, Conversation, Message, MessageList, ToolCall};
/// use agent::steps::{StepError, Steps, drive};
/// use agent::{BoxFuture, StepKey};
///
/// struct Hello;
///
/// impl Steps for Hello {
///     fn model(&self, _: StepKey, _: MessageList) -> BoxFuture<'_, Result<Reply, StepError>> {
///         Box::pin(async { Ok(Reply::new(AssistantMessage::from("Hello!"))) })
///     }
/// #     fn tools(&self, _: Vec<(StepKey, ToolCall)>) -> BoxFuture<'_, Result<Vec<CallEnd>, StepError>> {
/// #         Box::pin(async { Err(StepError::terminal("there are no tools")) })
/// #     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), StepError> {
/// let mut run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
/// drive(&mut run, &Hello).await?;
/// assert_eq!(run.conversation().last().unwrap().text(), "Hello!");
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns an error if a step failed or returned an answer that does not fit. The run still waits for the answer to that step.
pub async fn drive(run: &mut AgentLoop, steps: &(impl Steps + ?Sized)) -> Result<(), StepError> {
    run.resume();
    loop {
        while let Some(event) = run.take_event() {
            steps.event(event);
        }
        let answer = match run.next() {
            Effect::Poll { key, queue } => Answer::Messages(steps.poll(key, queue).await?),
            Effect::CallModel { key, messages } => Answer::Reply(steps.model(key, messages).await?),
            Effect::Prepare { key, calls } => Answer::Prepared(steps.prepare(key, calls).await?),
            Effect::Approve { requests } => {
                let decided = steps.approvals(requests).await?;
                if decided.contains(&Decided::Later) {
                    run.suspend();
                    break;
                }
                Answer::Decisions(decided)
            }
            Effect::CallTools { calls } => Answer::Outcomes(steps.tools(calls).await?),
            Effect::Await { deferred } => {
                let Some(ends) = steps.await_deferred(deferred).await? else {
                    run.suspend();
                    break;
                };
                Answer::Outcomes(ends)
            }
            Effect::TurnEnd { key, summary } => Answer::Verdict(steps.turn_end(key, summary).await?),
            Effect::Done(_) => break,
        };
        run.answer(answer)?;
        if let Some(reason) = steps.cancelled() {
            run.abort(&reason);
        }
    }
    while let Some(event) = run.take_event() {
        steps.event(event);
    }
    Ok(())
}
