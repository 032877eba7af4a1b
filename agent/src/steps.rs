//! Drives the [agent loop](crate::loop_core) on any executor. An implementation of [`Steps`] has one asynchronous function for each
//! [`Step`] that the loop asks for.
//!
//! [`drive`] runs the loop. [`Assistant`](crate::Assistant) and durable runs implement [`Steps`], and so can types of your own, for
//! example for a job queue. Each step has a [`StepKey`] that is the same on every replay, so an implementation that records its steps
//! finds a recorded result by its key. If your futures are not `Send`, match on [`Step`] directly.
//!
//! ```
//! use agent::loop_core::{AgentLoop, CallEnd, LoopConfig, ModelReply};
//! use agent::message::{Conversation, Message, MessageList, ToolCall};
//! use agent::model::{Model, ModelRequest, StepCx, reply};
//! use agent::ScriptedModel;
//! use agent::steps::{SharedLoop, StepError, Steps, drive};
//! use agent::{Registry, ToolContext, steps::StepKey, tool, tools};
//! use std::sync::Arc;
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
//!     async fn model(&mut self, key: StepKey, messages: MessageList, _: &SharedLoop) -> Result<ModelReply, StepError> {
//!         let mut request = ModelRequest::default().with_tools(self.tools.definitions());
//!         request.messages = messages;
//!         let reply = self.model.call(&StepCx::new().with_key(key), &request).await;
//!         reply.map(ModelReply::new).map_err(|error| StepError::terminal(error.to_string()))
//!     }
//!
//!     async fn tools(&mut self, calls: Vec<(StepKey, Arc<ToolCall>)>, run: &SharedLoop) -> Result<(), StepError> {
//!         for (key, call) in calls {
//!             let cx = ToolContext::new().with_idempotency_key(key.to_string());
//!             let result = self.tools.call(&call, &cx).await;
//!             run.lock().record_call_end(key.ord, CallEnd::ran(result.outcome, 0))?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::new([reply().tool_call("add", r#"{"a": 1, "b": 2}"#), reply().text("3")]);
//! let mut steps = Plain { model, tools: Registry::new(tools![add])? };
//! let run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("1 + 2?")]);
//! let run = SharedLoop::new(run);
//! drive(&run, &mut steps).await?;
//! assert!(run.lock().end().is_some_and(|end| end.is_completed()));
//! assert_eq!(run.lock().conversation().last().unwrap().text(), "3");
//! # Ok(()) }
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::loop_core::{
    AgentLoop, ApprovalRequest, CallDecision, CallEnd, Event, LimitReached, ModelReply, Queue, Ready,
    RecordError, StateError, Step, TurnSummary,
};
use crate::message::{Message, MessageList, ToolCall};
pub use crate::step_key::{StepKey, StepKind};
use crate::tool::outcome::ToolOutcome;

/// The [`AgentLoop`] of a run, shared by [`drive`] and other code. `drive` records results in the loop. Other code may inspect the loop.
///
/// ```
/// use agent::loop_core::{AgentLoop, LoopConfig};
/// use agent::message::{Conversation, Message};
/// use agent::steps::SharedLoop;
///
/// let run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
/// let run = SharedLoop::new(run);
/// let other = run.clone();
/// assert_eq!(other.lock().turn(), 1);
/// assert_eq!(run.into_inner().conversation().len(), 1);
/// ```
#[derive(Clone)]
pub struct SharedLoop(Arc<Mutex<AgentLoop>>);

impl SharedLoop {
    /// Creates a shared loop for [`drive`].
    pub fn new(mut run: AgentLoop) -> Self {
        run.set_driven(true);
        Self(Arc::new(Mutex::new(run)))
    }

    /// Locks the loop, to inspect it or to record a result. The run does not continue until the guard is dropped.
    pub fn lock(&self) -> MutexGuard<'_, AgentLoop> {
        // A poisoned lock is harmless: the loop runs no code of the application, and is consistent between two calls.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the loop. If this value has other clones, returns a copy of the loop.
    pub fn into_inner(self) -> AgentLoop {
        let mut run = match Arc::try_unwrap(self.0) {
            Ok(run) => run.into_inner().unwrap_or_else(PoisonError::into_inner),
            Err(shared) => Self(shared).lock().clone(),
        };
        run.set_driven(false);
        run
    }
}

impl fmt::Debug for SharedLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLoop").field("run_id", self.lock().run_id()).finish_non_exhaustive()
    }
}

/// The work that a run needs, with one function for each [`Step`].
///
/// The functions [`prepare`](Self::prepare) and [`tools`](Self::tools) themselves record the result of each call as soon as it arrives.
/// The functions of the other steps return their results, and [`drive`] records them. A failure of a model or a tool is a result, too (a
/// failed [`ModelReply`], a [`CallEnd`]). An error means that the implementation failed, or that the run has to end: see [`StepError`].
///
/// If a step fails and the run does not end, the run keeps the results that the step has recorded: prepared and ended calls, and the start
/// of a reply. Driving the run again repeats the step without these calls. A reply is requested again from its beginning, but its start is
/// not announced twice.
///
/// ```
/// use agent::steps::StepKey;
/// use agent::loop_core::ModelReply;
/// use agent::message::{AssistantMessage, MessageList, ToolCall};
/// use agent::steps::{SharedLoop, StepError, Steps};
/// use std::sync::Arc;
///
/// /// Repeats the last message. The example of the module has tools, too.
/// struct Parrot;
///
/// impl Steps for Parrot {
///     async fn model(&mut self, _: StepKey, messages: MessageList, _: &SharedLoop) -> Result<ModelReply, StepError> {
///         let last = messages.last().map(|message| message.text()).unwrap_or_default();
///         Ok(ModelReply::new(AssistantMessage::from(last)))
///     }
///
///     async fn tools(&mut self, _: Vec<(StepKey, Arc<ToolCall>)>, _: &SharedLoop) -> Result<(), StepError> {
///         Err(StepError::terminal("there are no tools"))
///     }
/// }
/// ```
#[doc = include_str!("docs/steps.md")]
#[expect(unused_variables, reason = "the defaults do nothing")]
pub trait Steps: Send {
    /// Returns one reply of the model. A reply is read to its end within the step; while it streams, its pieces may be
    /// [recorded](AgentLoop::record_reply_start).
    fn model(
        &mut self,
        key: StepKey,
        messages: MessageList,
        run: &SharedLoop,
    ) -> impl Future<Output = Result<ModelReply, StepError>> + Send;

    /// Runs calls, concurrently or one after the other, and [records](AgentLoop::record_call_end) the end of each.
    fn tools(
        &mut self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
        run: &SharedLoop,
    ) -> impl Future<Output = Result<(), StepError>> + Send;

    /// Takes messages from a queue. The default returns none.
    fn poll(
        &mut self,
        key: StepKey,
        queue: Queue,
        run: &SharedLoop,
    ) -> impl Future<Output = Result<Vec<Arc<Message>>, StepError>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Checks calls before they run, and [records](AgentLoop::record_prepared) the result of each, in call order. The position of the first
    /// call is the `ord` of the key. By default all calls may run, and each validates its arguments when it runs.
    fn prepare(
        &mut self,
        key: StepKey,
        calls: Vec<Arc<ToolCall>>,
        run: &SharedLoop,
    ) -> impl Future<Output = Result<(), StepError>> + Send {
        let ready = (key.ord..)
            .zip(calls)
            .try_for_each(|(ord, _)| run.lock().record_prepared(ord, Ok(Ready::default())));
        std::future::ready(ready.map_err(StepError::from))
    }

    /// Asks whether calls may run, and returns the decision on each, in the order of the requests. The default suspends the run. If a
    /// [steering message](AgentLoop::steered) ended the calls in the meantime, the result is ignored.
    fn approvals(
        &mut self,
        requests: Vec<(StepKey, ApprovalRequest)>,
        run: &SharedLoop,
    ) -> impl Future<Output = Result<Vec<CallDecision>, StepError>> + Send {
        std::future::ready(Ok(vec![CallDecision::Later; requests.len()]))
    }

    /// Waits for the results that the application delivers for deferred calls, each under the handle that its tool returned. Returns the
    /// end of each call, in the order of the handles. The default returns `None`, which suspends the run.
    fn await_deferred(
        &mut self,
        deferred: Vec<(StepKey, String)>,
    ) -> impl Future<Output = Result<Option<Vec<CallEnd>>, StepError>> + Send {
        std::future::ready(Ok(None))
    }

    /// Returns whether there is a steering message that this turn has not read. If so, [`drive`] skips the calls that it would prepare,
    /// decide on or run next. `drive` asks only if the [policy](crate::loop_core::SteeringPolicy) of the run lets a message skip calls.
    /// The default returns `false`.
    fn is_steered(&mut self, run: &SharedLoop) -> impl Future<Output = Result<bool, StepError>> + Send {
        std::future::ready(Ok(false))
    }

    /// Decides whether the run continues after a turn. The default returns `None`, which leaves the decision to the loop.
    fn turn_end(
        &mut self,
        key: StepKey,
        summary: TurnSummary,
        run: &SharedLoop,
    ) -> impl Future<Output = Result<Option<bool>, StepError>> + Send {
        std::future::ready(Ok(None))
    }

    /// Runs before each step and before the end of the run, after all events so far were received. An implementation may store the run
    /// here, or end the run with an error. A replay must end the run at the same step.
    fn before_step(&mut self, run: &SharedLoop) -> impl Future<Output = Result<(), StepError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Receives the next event. An event is not passed a second time, even if this function returned an error for it. Only a replay passes
    /// all events again. An error has the same effect as an error of [`before_step`](Self::before_step).
    fn event(
        &mut self,
        event: Event,
        run: &SharedLoop,
    ) -> impl Future<Output = Result<(), StepError>> + Send {
        std::future::ready(Ok(()))
    }
}

/// The reason why a step has no result: the run has to end, or the implementation of [`Steps`] failed.
///
/// ```
/// use agent::steps::StepError;
///
/// // These end the run.
/// let stop = StepError::cancelled("the user left");
/// assert_eq!(stop.to_string(), "the step was cancelled: the user left");
/// let failed = StepError::failed("the budget could not be read");
/// assert_eq!(failed.to_string(), "the run failed: the budget could not be read");
///
/// // These are returned by `drive`.
/// let error = StepError::engine("the journal cannot be reached");
/// assert_eq!(error.to_string(), "the engine failed: the journal cannot be reached");
/// assert!(!matches!(error, StepError::Terminal { .. }));                      // another attempt may succeed
/// let no_tools = StepError::terminal("there are no tools");
/// assert_eq!(no_tools.to_string(), "the step failed for good: there are no tools");
/// ```
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The run is cancelled: [`drive`] [aborts](AgentLoop::abort) it.
    #[error("the step was cancelled: {reason}")]
    #[non_exhaustive]
    Cancelled {
        /// The reason.
        reason: String,
    },
    /// The run has reached a limit that the [`Steps`] measure, such as time. [`drive`] [ends](AgentLoop::abort_by_limit) the run.
    #[error("{0}")]
    Limit(LimitReached),
    /// The run cannot continue, for example because a hook failed: [`drive`] ends it [with an error](AgentLoop::fail).
    #[error("the run failed: {message}")]
    #[non_exhaustive]
    Failed {
        /// The error message.
        message: String,
    },
    /// The step failed, and another attempt would not help. The run keeps the results that the step [recorded](Steps).
    #[error("the step failed for good: {message}")]
    #[non_exhaustive]
    Terminal {
        /// The error message.
        message: String,
    },
    /// The engine behind the steps, such as a job queue, failed, and another attempt may succeed. The run keeps the results that the step
    /// [recorded](Steps).
    #[error("the engine failed: {message}")]
    #[non_exhaustive]
    Engine {
        /// The error message.
        message: String,
    },
    /// The [state](AgentLoop::serialized_state) of the run cannot be used. The run keeps the results that the step [recorded](Steps).
    #[error(transparent)]
    State(#[from] StateError),
    /// A step recorded a wrong result, or too few results. The run has ended with this error.
    #[error("a step recorded a wrong result: {0}")]
    Record(#[from] RecordError),
}

crate::error_text::debug_is_the_sentence!(StepError);

impl StepError {
    /// Returns an error that cancels the run.
    pub fn cancelled(reason: impl Into<String>) -> Self {
        Self::Cancelled { reason: reason.into() }
    }

    /// Returns an error that ends the run with this message.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into() }
    }

    /// Returns an error for a step that failed permanently.
    pub fn terminal(message: impl Into<String>) -> Self {
        Self::Terminal { message: message.into() }
    }

    /// Returns an error for a failed engine.
    pub fn engine(message: impl Into<String>) -> Self {
        Self::Engine { message: message.into() }
    }

    /// Returns whether the error makes [`drive`] end the run and return `Ok`. `drive` returns every other error to its caller.
    fn is_stop(&self) -> bool {
        matches!(self, Self::Cancelled { .. } | Self::Limit(_) | Self::Failed { .. })
    }
}

/// Drives a run to its [end](AgentLoop::end), or until it is [suspended](AgentLoop::is_suspended).
///
/// A suspended run continues when it is driven again.
///
/// ```
/// use agent::steps::StepKey;
/// use agent::loop_core::{AgentLoop, LoopConfig, ModelReply};
/// use agent::message::{AssistantMessage, Conversation, Message, MessageList, ToolCall};
/// use agent::steps::{SharedLoop, StepError, Steps, drive};
/// use std::sync::Arc;
///
/// struct Hello;
///
/// impl Steps for Hello {
///     async fn model(&mut self, _: StepKey, _: MessageList, _: &SharedLoop) -> Result<ModelReply, StepError> {
///         Ok(ModelReply::new(AssistantMessage::from("Hello!")))
///     }
/// #     async fn tools(&mut self, _: Vec<(StepKey, Arc<ToolCall>)>, _: &SharedLoop) -> Result<(), StepError> {
/// #         Err(StepError::terminal("there are no tools"))
/// #     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), StepError> {
/// let run = AgentLoop::new("run-1", LoopConfig::default(), Conversation::new(), [Message::user("Hi")]);
/// let run = SharedLoop::new(run);
/// drive(&run, &mut Hello).await?;
/// assert_eq!(run.lock().conversation().last().unwrap().text(), "Hello!");
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns the [`Terminal`](StepError::Terminal), [`Engine`](StepError::Engine) and [`State`](StepError::State) errors of `steps`. Also
/// returns an error if a step recorded a wrong result, or not all of its results. The other errors of `steps` only end the run.
pub async fn drive<S: Steps>(run: &SharedLoop, steps: &mut S) -> Result<(), StepError> {
    run.lock().resume();
    let driven = loop {
        match advance(run, steps).await {
            Ok(StepOutcome::Taken) => {}
            Ok(StepOutcome::Done) => break Ok(()),
            Ok(StepOutcome::Suspended) => {
                run.lock().suspend();
                break Ok(());
            }
            // The run has already ended, so an error that would stop it has no effect.
            Err(error) if error.is_stop() && run.lock().end().is_some() => break Ok(()),
            Err(StepError::Cancelled { reason }) => run.lock().abort(&reason),
            Err(StepError::Limit(reached)) => run.lock().abort_by_limit(reached),
            Err(StepError::Failed { message }) => run.lock().fail(&message),
            Err(StepError::Record(error)) => {
                run.lock().fail(&error.to_string());
                break Err(error.into());
            }
            Err(error) => return Err(error),
        }
    };
    loop {
        match emit(run, steps).await {
            // The run is over or suspended, so an error cannot stop it now.
            Err(error) if error.is_stop() => {}
            emitted => return driven.and(emitted),
        }
    }
}

enum StepOutcome {
    Taken,
    Suspended,
    Done,
}

/// Performs the next step of the run, or skips its calls if a steering message takes precedence.
async fn advance<S: Steps>(run: &SharedLoop, steps: &mut S) -> Result<StepOutcome, StepError> {
    emit(run, steps).await?;
    steps.before_step(run).await?;
    let Some(step) = run.lock().next_if_settled() else { return Ok(StepOutcome::Taken) };
    if step.has_unstarted_calls() && run.lock().may_be_steered() && steps.is_steered(run).await? {
        run.lock().skip_calls();
        return Ok(StepOutcome::Taken);
    }
    match step {
        Step::Poll { key, queue } => {
            let messages = steps.poll(key, queue, run).await?;
            run.lock().record_messages(messages)?;
        }
        Step::CallModel { key, messages } => {
            let reply = steps.model(key, messages, run).await?;
            run.lock().record_reply(reply)?;
        }
        Step::Prepare { key, calls } => {
            steps.prepare(key, calls, run).await?;
            run.lock().check_recorded()?;
        }
        Step::Approve { requests } => {
            let decided = steps.approvals(requests, run).await?;
            let mut run = run.lock();
            if !run.is_asking() {
                return Ok(StepOutcome::Taken);
            }
            let is_later = decided.contains(&CallDecision::Later);
            run.record_decisions(decided)?;
            if is_later {
                return Ok(StepOutcome::Suspended);
            }
        }
        Step::CallTools { calls } => {
            steps.tools(calls, run).await?;
            run.lock().check_recorded()?;
        }
        Step::Await { deferred } => {
            let ords: Vec<u32> = deferred.iter().map(|(key, _)| key.ord).collect();
            // If all waiting calls wait for questions or sub-agents, the run is suspended. The missing inputs, decisions and results are
            // given when the run is resumed.
            if deferred.is_empty() {
                return Ok(StepOutcome::Suspended);
            }
            let Some(ends) = steps.await_deferred(deferred).await? else { return Ok(StepOutcome::Suspended) };
            if ords.len() != ends.len() {
                return Err(RecordError::WrongCount { wanted: ords.len(), got: ends.len() }.into());
            }
            let mut run = run.lock();
            for (ord, end) in ords.into_iter().zip(ends) {
                // With a deferred outcome, the run would wait for the same call endlessly.
                if matches!(end.outcome, ToolOutcome::Deferred { .. }) {
                    return Err(RecordError::DeferredAgain { ord }.into());
                }
                run.record_call_end(ord, end)?;
            }
        }
        Step::TurnEnd { key, summary } => {
            let decision = steps.turn_end(key, summary, run).await?;
            run.lock().record_turn_end(decision)?;
        }
        Step::Done(_) => return Ok(StepOutcome::Done),
    }
    Ok(StepOutcome::Taken)
}

pub(crate) async fn emit<S: Steps>(run: &SharedLoop, steps: &mut S) -> Result<(), StepError> {
    let next = || run.lock().take_event();
    loop {
        // The event is large, so it is moved into the future and not kept here.
        let receiving = match next() {
            Some(event) => steps.event(event, run),
            None => return Ok(()),
        };
        receiving.await?;
    }
}
