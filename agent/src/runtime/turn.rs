//! One turn of a run, in this process or on a durable engine. [`next_reply`] gets the reply: it chooses the tools and the model, shortens
//! the conversation until the request fits, and repeats a request that was too long or left its reply too little room. [`end_turn`] asks
//! the hooks whether the run continues, and refuses an answer that does not fit the expected output.

use std::fmt;
use std::sync::Arc;

use super::context::{ContextState, ROOM_ORD};
use super::error::RunError;
use super::perform::{Performer, SoFar};
use super::turn_start::before_reply;
use crate::loop_core::{ModelReply, TurnSummary};
use crate::message::{StopReason, UserMessage};
use crate::model::{ModelError, ModelErrorKind};
use crate::step_key::{StepKey, StepKind};
use crate::steps::{SharedLoop, StepError};
use crate::tool::{BoxFuture, combine::shown_after, definition::ToolDefinition};

use serde::{Serialize, de::DeserializeOwned};

/// The operations that a turn needs, implemented by each kind of [`Steps`](crate::steps::Steps).
pub(crate) trait TurnSteps: Send {
    /// Whether the results of [`perform`](Self::perform) are stored for a replay.
    const REMEMBERS: bool;

    fn parts(&mut self) -> (&Performer, &mut TurnChoices);

    fn replace_context(&mut self, context: ContextState) -> ContextState;

    /// Performs work of the application, or returns its remembered result.
    fn perform<T: Serialize + DeserializeOwned + Send + 'static>(
        &mut self,
        name: impl fmt::Display + Send,
        work: BoxFuture<'static, T>,
    ) -> impl Future<Output = Result<T, StepError>> + Send;

    /// Makes one request with these tools. Returns its reply, and an error if the request was [too long](Performer::overflow). The name of
    /// the step is `key` followed by `attempt`.
    fn ask(
        &mut self,
        key: &StepKey,
        attempt: &'static str,
        tools: Arc<[ToolDefinition]>,
    ) -> impl Future<Output = Result<(ModelReply, Option<ModelError>), StepError>> + Send;

    /// Counts a request in the limits that the root run shares with its sub-agents. Does nothing if the `AgentLoop` counts the request.
    fn count_request(&mut self) -> impl Future<Output = Result<(), StepError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Returns an error if the run was stopped.
    fn check_run(&mut self) -> impl Future<Output = Result<(), StepError>> + Send;

    /// Notifies listeners after the run has emitted events.
    fn notify(&mut self) -> impl Future<Output = Result<(), StepError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Stores which messages the model sees. Called after their last change before a request.
    fn store_view(&mut self) -> impl Future<Output = Result<(), StepError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Puts a message before all other messages that wait for the next turn.
    fn push_first(&mut self, report: UserMessage);

    fn has_messages(&mut self) -> impl Future<Output = Result<bool, StepError>> + Send;

    /// Converts the error that ends the run. A run in this process also keeps the original error for its caller.
    fn failed(&mut self, error: RunError) -> StepError;
}

#[derive(Default)]
pub(crate) struct TurnChoices {
    turn: u32,
    /// The `Performer` of the turn, if it uses another model or a higher `max_tokens` than the run.
    performer: Option<Performer>,
    has_model: bool,
    /// The tools, if the application chooses them.
    tools: Option<Arc<[ToolDefinition]>>,
    refused_answers: u32,
}

impl TurnChoices {
    pub(crate) fn performer<'p>(&'p self, own: &'p Performer) -> &'p Performer {
        self.performer.as_ref().unwrap_or(own)
    }

    /// Returns the tools that were chosen for this turn, or `None` if no tools were chosen yet.
    pub(crate) fn tools(&self, turn: u32) -> Option<Arc<[ToolDefinition]>> {
        self.tools.clone().filter(|_| self.turn == turn)
    }

    /// Drops the choices of an earlier turn if `turn` is a new one. The number of refused answers is kept.
    fn begin(&mut self, turn: u32) {
        if self.turn != turn {
            *self = Self { turn, refused_answers: self.refused_answers, ..Self::default() };
        }
    }
}

/// Returns the reply of a turn. If the request was too long, it is made again with a shorter conversation. If the reply was cut by
/// `max_tokens` and cannot be continued as text, the request is made again with a higher `max_tokens`.
pub(crate) async fn next_reply<S: TurnSteps>(
    steps: &mut S,
    key: StepKey,
    run: &SharedLoop,
) -> Result<ModelReply, StepError> {
    steps.parts().1.begin(key.turn);
    if let Err(message) = turn_tools(steps, key.turn, false, run).await? {
        return Ok(refused_tools(steps, message));
    }
    select_model(steps, key.turn, run).await?;
    if let Err(message) = fit_context(steps, &key, None, run).await? {
        return Ok(refused_tools(steps, message));
    }
    let (mut reply, overflow) = ask(steps, &key, "", run).await?;
    if let Some(overflow) = overflow {
        record_overflow(steps, reply, run).await?;
        if let Err(message) = fit_context(steps, &key, Some(overflow), run).await? {
            return Ok(refused_tools(steps, message));
        }
        reply = ask_again(steps, &key, "/again", run).await?;
    }
    let (own, choices) = steps.parts();
    if let Some(roomy) = choices.performer(own).with_more_room(&reply) {
        choices.performer = Some(roomy);
        run.lock().record_replaced_reply(*reply.message)?;
        steps.notify().await?;
        let summaries = StepKey { ord: ROOM_ORD, ..key.clone() };
        if let Err(message) = fit_context(steps, &summaries, None, run).await? {
            return Ok(refused_tools(steps, message));
        }
        reply = ask_again(steps, &key, "/room", run).await?;
    }
    record_frame(steps, &mut reply);
    Ok(reply)
}

/// Returns the tools that the application chooses for a turn, or `None` if it does not choose. The `String` is the message of a failed
/// hook. `has_replied` is true if the conversation contains the reply of the turn.
pub(super) async fn turn_tools<S: TurnSteps>(
    steps: &mut S,
    turn: u32,
    has_replied: bool,
    run: &SharedLoop,
) -> Result<Result<Option<Arc<[ToolDefinition]>>, String>, StepError> {
    let (own, choices) = steps.parts();
    if own.config.choosers.is_empty() {
        return Ok(Ok(None));
    }
    if let Some(tools) = choices.tools(turn) {
        return Ok(Ok(Some(tools)));
    }
    let (_, messages, usage) = so_far(turn, run);
    let so_far = (turn, if has_replied { before_reply(&messages) } else { messages }, usage);
    if S::REMEMBERS && !own.chooses_tools(so_far.clone()) {
        return Ok(Ok(None));
    }
    let (performer, name) = (own.clone(), format!("{}/{turn}/tools", own.run_id));
    let names: Result<Vec<String>, String> =
        steps.perform(name, Box::pin(async move { performer.chosen_names(so_far).await })).await?;
    if names.is_err() {
        // A run that was stopped meanwhile ends for that reason, not with this error.
        steps.check_run().await?;
    }
    let (own, choices) = steps.parts();
    choices.begin(turn);
    choices.tools = names.as_ref().ok().map(|names| own.config.definitions_of(names));
    Ok(names.map(|_| choices.tools.clone()))
}

async fn select_model<S: TurnSteps>(steps: &mut S, turn: u32, run: &SharedLoop) -> Result<(), StepError> {
    let (own, choices) = steps.parts();
    if !own.config.selects_model() || choices.has_model {
        return Ok(());
    }
    let so_far = so_far(turn, run);
    if S::REMEMBERS && !own.chooses_model(so_far.clone()) {
        return Ok(());
    }
    let (performer, name) = (own.clone(), StepKey::new(own.run_id.clone(), turn, StepKind::Select, 0));
    let work = Box::pin(async move {
        match performer.select_model(so_far).await {
            Some(chosen) => chosen.map_err(|error| error.to_string()),
            None => Err(performer.stop_reason().to_string()),
        }
    });
    let chosen: Result<Option<String>, String> = steps.perform(name, work).await?;
    if chosen.is_err() {
        // A run that was stopped meanwhile ends for that reason, not with this error.
        steps.check_run().await?;
    }
    let (own, choices) = steps.parts();
    choices.has_model = true;
    // If no model was chosen, `performer` is `None`, and the run's own performer asks the assistant's model.
    let performer = chosen.and_then(|name| {
        let performer = name.map(|name| own.with_model(Some(&name))).transpose();
        performer.map_err(|error| error.to_string())
    });
    match performer {
        Ok(performer) => choices.performer = performer,
        Err(message) => return Err(steps.failed(RunError::Request { message })),
    }
    Ok(())
}

/// Shortens the messages that the model sees until the next request fits. `overflow` is the error of a provider that refused the request
/// as too long. The inner error is the message of a failed hook.
async fn fit_context<S: TurnSteps>(
    steps: &mut S,
    key: &StepKey,
    overflow: Option<ModelError>,
    run: &SharedLoop,
) -> Result<Result<(), String>, StepError> {
    if steps.parts().0.config.context.is_none() {
        return Ok(Ok(()));
    }
    let tools = match shown_tools(steps, key.turn, run).await? {
        Ok(tools) => tools,
        Err(message) => return Ok(Err(message)),
    };
    let (own, choices) = steps.parts();
    let performer = choices.performer(own).clone();
    let mut context = steps.replace_context(ContextState::default());
    context.frame.update(tools, |tools| performer.frame(tools));
    let fitted = performer.fit_context(&mut context, run, key, overflow, steps).await;
    steps.replace_context(context);
    match fitted? {
        Ok(()) => steps.store_view().await.map(Ok),
        Err(error) => Err(steps.failed(error.into())),
    }
}

/// Stores in a reply how many tokens of its request were outside of messages, such as in the system prompt. The next estimate uses this
/// number.
fn record_frame<S: TurnSteps>(steps: &mut S, reply: &mut ModelReply) {
    if steps.parts().0.config.context.is_some() && reply.message.usage.input > 0 {
        let context = steps.replace_context(ContextState::default());
        reply.message.set_request_frame(context.frame.tokens);
        steps.replace_context(context);
    }
}

/// Returns a failed reply, because a hook that chooses tools failed before the request was made.
fn refused_tools<S: TurnSteps>(steps: &mut S, message: String) -> ModelReply {
    let (own, choices) = steps.parts();
    let refused = ModelError::new(ModelErrorKind::InvalidRequest, &*message);
    let reply = choices.performer(own).no_reply(&refused);
    steps.failed(RunError::Request { message });
    reply
}

async fn ask<S: TurnSteps>(
    steps: &mut S,
    key: &StepKey,
    attempt: &'static str,
    run: &SharedLoop,
) -> Result<(ModelReply, Option<ModelError>), StepError> {
    match shown_tools(steps, key.turn, run).await? {
        Ok(tools) => steps.ask(key, attempt, tools).await,
        Err(message) => Ok((refused_tools(steps, message), None)),
    }
}

/// Returns the tools of a request: the tools of the turn, without deferred tools that the model has not found yet in the conversation. The
/// inner error is the message of a failed hook.
async fn shown_tools<S: TurnSteps>(
    steps: &mut S,
    turn: u32,
    run: &SharedLoop,
) -> Result<Result<Arc<[ToolDefinition]>, String>, StepError> {
    let chosen = turn_tools(steps, turn, false, run).await?;
    let all = || steps.parts().0.config.request.tools.clone();
    Ok(chosen.map(|chosen| shown_after(&chosen.unwrap_or_else(all), run.lock().conversation().iter())))
}

/// Returns the decision of the hooks at the end of a turn. A refused answer adds a turn: the function queues a report for the model, and
/// returns `Some(true)`.
pub(crate) async fn end_turn<S: TurnSteps>(
    steps: &mut S,
    key: StepKey,
    summary: TurnSummary,
    run: &SharedLoop,
) -> Result<Option<bool>, StepError> {
    let (own, _) = steps.parts();
    let mut continues = None;
    if !own.config.hooks.is_empty() {
        let (performer, summary) = (own.clone(), summary.clone());
        let work = Box::pin(async move {
            match performer.turn_end(summary).await {
                Some(decision) => decision.map_err(|error| error.to_string()),
                None => Ok(Some(false)),
            }
        });
        let decision: Result<Option<bool>, String> = steps.perform(key, work).await?;
        // If the run was stopped meanwhile, it ends for that reason, not by the decision of a hook.
        steps.check_run().await?;
        continues = match decision {
            Ok(continues) => continues,
            Err(message) => {
                steps.failed(RunError::Request { message: message.clone() });
                return Err(StepError::failed(message));
            }
        };
    }
    let (own, choices) = steps.parts();
    let refused = own.refused_answer(&summary, &run.lock(), &mut choices.refused_answers);
    if let Some(report) = refused {
        steps.push_first(report);
        run.lock().expect_messages();
        return Ok(Some(true));
    }
    // Queued messages matter only if the run would end without reading them.
    let would_end = continues == Some(false) || run.lock().is_at_limit();
    if would_end && steps.has_messages().await? {
        run.lock().expect_messages();
    }
    Ok(continues)
}

/// Makes the request of a turn once more, and counts it against the limits. If the request is too long again, the run ends with the error
/// that the conversation does not fit into the window.
async fn ask_again<S: TurnSteps>(
    steps: &mut S,
    key: &StepKey,
    attempt: &'static str,
    run: &SharedLoop,
) -> Result<ModelReply, StepError> {
    run.lock().take_request().map_err(StepError::Limit)?;
    steps.count_request().await?;
    let (reply, overflow) = ask(steps, key, attempt, run).await?;
    let Some(overflow) = overflow else { return Ok(reply) };
    record_overflow(steps, reply, run).await?;
    let context = steps.replace_context(ContextState::default());
    let (own, choices) = steps.parts();
    let error = choices.performer(own).still_too_long(&context, overflow);
    steps.replace_context(context);
    Err(steps.failed(error.into()))
}

/// Records that a request was too long. If the provider refused the request, the request is only counted. If the window became full during
/// the reply, the reply stays in the conversation as a failed reply.
async fn record_overflow<S: TurnSteps>(
    steps: &mut S,
    reply: ModelReply,
    run: &SharedLoop,
) -> Result<(), StepError> {
    if reply.message.stop_reason == StopReason::Error {
        run.lock().record_refused_request();
    } else {
        run.lock().record_replaced_reply(*reply.message)?;
    }
    steps.notify().await
}

fn so_far(turn: u32, run: &SharedLoop) -> SoFar {
    let run = run.lock();
    (turn, run.conversation().list(), run.usage().clone())
}
