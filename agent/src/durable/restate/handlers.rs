//! The handlers that Restate calls.

use std::sync::Arc;

use restate_sdk::context::{
    Context, ContextAwakeables as _, ContextClient as _, ContextPromises as _, ContextReadState as _,
    ContextWriteState as _, ObjectContext, RequestTarget, SharedObjectContext, SharedWorkflowContext,
    WorkflowContext,
};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use restate_sdk::{object, service, workflow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::inbox::{Inbox, PushOutcome, run_of};
use super::super::journal::{InboxBatch, InboxRequest, RunJournal as _, StepResult, ToolRequest};
use super::super::play::{SharedService, call_tool, play};
use super::context::{CallInvocation, RunInvocation};
use super::slots::{Notice, NoticeKind, NoticeSlot, slot_name};
use super::{AGENT, INBOX};
use crate::durable::{Outcome, PendingAsk, RunRequest};
use crate::loop_core::{CallEnd, Queue, ReservedPart, TreeReservation};
use crate::message::Message;
use crate::steps::StepError;

/// The handlers of a run's workflow: `run` performs the run, and the others pass messages, cancellations and answers to it.
pub(super) struct AgentHandlers {
    pub(super) served: Arc<SharedService>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PushRequest {
    #[serde(default = "steering")]
    queue: Queue,
    message: Arc<Message>,
}

fn steering() -> Queue {
    Queue::Steering
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CancelRequest {
    #[serde(default)]
    pub(super) reason: Option<Arc<str>>,
}

/// A decision, an input or a result, with the [id](PendingAsk::id) under which the run waits for it.
#[derive(Debug, Serialize, Deserialize)]
struct AnswerRequest {
    id: String,
    #[serde(rename = "answer")]
    value: Value,
}

/// Refuses a message that is not from the user, because a reply or a result from outside would be forged.
fn require_user_message(message: Arc<Message>) -> Result<Arc<Message>, TerminalError> {
    if matches!(*message, Message::User(_)) {
        return Ok(message);
    }
    let text = format!("the message has the role `{}`; send a message with the role `user`", message.role());
    Err(TerminalError::new_with_code(400, text))
}

/// Converts the error of a step. The engine retries the invocation after a `StepError::Engine`; any other error ends it.
fn handler_error(error: StepError) -> HandlerError {
    match error {
        StepError::Engine { message } => HandlerError::from(message),
        StepError::State(error) => TerminalError::new_with_code(400, error.to_string()).into(),
        error => TerminalError::new(error.to_string()).into(),
    }
}

/// The key of the workflow is the name of a run. `run` executes once; the other handlers may execute at the same time as `run`.
#[workflow(name = "Agent")]
impl AgentHandlers {
    /// Performs the run, and returns its outcome. After a crash, the engine calls this handler again, and recorded steps are not repeated.
    #[handler]
    async fn run(
        &self,
        context: WorkflowContext<'_>,
        request: Json<RunRequest>,
    ) -> Result<Json<Outcome>, HandlerError> {
        let run: Arc<str> = context.key().into();
        let slot = NoticeSlot::default();
        let request = match request.into_inner().named(&run) {
            Ok(request) => request,
            Err(refused) => {
                // The run is over, so messages are refused. `close` returns false if a notice to the run arrived first.
                let invocation = RunInvocation::new(&context, &slot, self.served.clone(), run, None);
                while !invocation.close().await.map_err(handler_error)? {}
                return Err(TerminalError::new_with_code(400, refused).into());
            }
        };
        let served = self.served.at(&request.path()).map_err(handler_error)?;
        let active = served.enter(&run);
        let waits = request.child.as_ref().and_then(|child| child.waits.clone());
        let invocation = RunInvocation::new(&context, &slot, served.clone(), run, waits);
        let outcome = play(&served, &invocation, request, active.token.clone()).await;
        Ok(Json(outcome.map_err(handler_error)?))
    }

    #[handler]
    async fn push(
        &self,
        context: SharedWorkflowContext<'_>,
        request: Json<PushRequest>,
    ) -> Result<Json<PushOutcome>, HandlerError> {
        let Json(PushRequest { queue, message }) = request;
        let message = require_user_message(message)?;
        let pushed =
            context.request::<_, Json<PushOutcome>>(inbox(context.key(), "push"), Json((queue, message)));
        let Json(outcome) = pushed.call().await?;
        if outcome == PushOutcome::Taken {
            self.served.pushed(context.key(), queue);
        }
        Ok(Json(outcome))
    }

    /// Cancels a run and, at once, its tools in this process. A waiting run ends at once, and a busy run ends after its step. Returns
    /// false if the run is over.
    #[handler]
    async fn cancel(
        &self,
        context: SharedWorkflowContext<'_>,
        request: Json<CancelRequest>,
    ) -> Result<Json<bool>, HandlerError> {
        let reason = request.0.reason.unwrap_or_else(|| "cancelled".into());
        // The tools are cancelled before the first await, because the run may be over when its inbox responds.
        let is_active = self.served.running.cancel(context.key(), &reason);
        let notified = context.request::<_, Json<bool>>(inbox(context.key(), "cancel"), Json(reason)).call();
        let Json(is_notified) = notified.await?;
        Ok(Json(is_active || is_notified))
    }

    /// Returns the decisions, inputs and results for which the run and its children wait, at any depth.
    #[handler]
    async fn pending(
        &self,
        context: SharedWorkflowContext<'_>,
        nothing: Json<()>,
    ) -> Result<Json<Vec<PendingAsk>>, HandlerError> {
        let own = context.request(inbox(context.key(), "pending"), nothing).call();
        let Json((mut asks, children)): Json<(Vec<PendingAsk>, Vec<String>)> = own.await?;
        // The requests to all children are sent before the first response is awaited.
        let children = children.into_iter().map(|child| {
            let target = RequestTarget::workflow(AGENT, child, "pending");
            context.request::<_, Json<Vec<PendingAsk>>>(target, Json(())).call()
        });
        for child in children.collect::<Vec<_>>() {
            let Json(of_child) = child.await?;
            asks.extend(of_child);
        }
        Ok(Json(asks))
    }

    /// Passes a decision, an input or a result to this run or to a run below it. Returns false if none of these runs waits for this id.
    #[handler]
    async fn answer(
        &self,
        context: SharedWorkflowContext<'_>,
        request: Json<AnswerRequest>,
    ) -> Result<Json<bool>, HandlerError> {
        let Json(AnswerRequest { id, value }) = request;
        let own = context.key();
        let is_below = |run: &str| run.strip_prefix(own).is_some_and(|rest| rest.starts_with('/'));
        let below = run_of(&id).filter(|run| is_below(run));
        let run = below.as_deref().unwrap_or(own);
        let found = context.request(inbox(run, "answer"), Json(id.clone())).call();
        let Json(promise): Json<Option<String>> = found.await?;
        if let Some(promise) = promise {
            context.resolve_awakeable(&promise, Json(value));
            return Ok(Json(true));
        }
        if below.is_some() {
            return Ok(Json(false));
        }
        // A handle that a tool returned does not name a run, so the runs of sub-agents are tried one after the other.
        let children = context.request(inbox(own, "pending"), Json(())).call();
        let Json((_, children)): Json<(Vec<PendingAsk>, Vec<String>)> = children.await?;
        for child in children {
            let target = RequestTarget::workflow(AGENT, child, "answer");
            let request = Json(AnswerRequest { id: id.clone(), value: value.clone() });
            let Json(is_accepted) = context.request::<_, Json<bool>>(target, request).call().await?;
            if is_accepted {
                return Ok(Json(true));
            }
        }
        Ok(Json(false))
    }

    /// Resolves the numbered promise of the run with a [`Notice`]. Returns false if the run is over, and has resolved the promise itself.
    #[handler(name = "tell")]
    async fn notify(
        &self,
        context: SharedWorkflowContext<'_>,
        notice: Json<(u32, Notice)>,
    ) -> Result<Json<bool>, HandlerError> {
        let Json((number, notice)) = notice;
        let slot = slot_name(number);
        context.resolve_promise(&slot, Json(notice.clone()));
        let Json(stored) = context.promise::<Json<Notice>>(&slot).await?;
        Ok(Json(stored == notice))
    }
}

/// The service that runs calls, each with its own invocation.
pub(super) struct ToolHandlers {
    pub(super) served: Arc<SharedService>,
}

#[service(name = "ToolRunner")]
impl ToolHandlers {
    /// Runs one of several concurrent calls. If a reply has a single call, the call is a step of the run instead.
    #[handler]
    async fn call(
        &self,
        context: Context<'_>,
        request: Json<ToolRequest>,
    ) -> Result<Json<StepResult<CallEnd>>, HandlerError> {
        let Json(request) = request;
        let run = request.key.run.to_string();
        let served = self.served.at(&request.path).map_err(handler_error)?;
        let active = served.enter(&run);
        let invocation = CallInvocation { context };
        let ended = call_tool(&served, &invocation, request, (None, None), active.token.clone()).await;
        Ok(Json(ended.map_err(handler_error)?))
    }
}

/// The handlers of the Restate virtual object that stores the inbox of a run. The inbox is created by its first change, and is cleared at
/// the end of the run.
pub(super) struct InboxHandlers;

pub(super) fn inbox(run: &str, handler: &str) -> RequestTarget {
    RequestTarget::object(INBOX, run, handler)
}

const STATE: &str = "inbox";

async fn update<T>(
    context: &ObjectContext<'_>,
    change: impl FnOnce(&mut Inbox) -> T,
) -> Result<T, TerminalError> {
    let stored = context.get::<Json<Inbox>>(STATE).await?;
    let before = stored.map(|Json(inbox)| inbox).unwrap_or_default();
    let mut inbox = before.clone();
    let result = change(&mut inbox);
    // An inbox that is created after the end of the run may never be cleared, so a request that changes nothing must not create an inbox.
    if inbox != before {
        context.set(STATE, Json(inbox));
    }
    Ok(result)
}

/// Sends a notice to the run, unless `number` is `None`. If the run is over, clears the inbox and returns false.
async fn notify(
    context: &ObjectContext<'_>,
    number: Option<u32>,
    kind: NoticeKind,
) -> Result<bool, TerminalError> {
    let Some(number) = number else { return Ok(true) };
    let notice = Notice { kind, sender: context.invocation_id().to_owned() };
    let target = RequestTarget::workflow(AGENT, context.key(), "tell");
    let Json(is_received) = context.request::<_, Json<bool>>(target, Json((number, notice))).call().await?;
    if !is_received {
        context.clear_all();
    }
    Ok(is_received)
}

#[object(name = "Inbox")]
impl InboxHandlers {
    #[handler]
    async fn push(
        &self,
        context: ObjectContext<'_>,
        request: Json<(Queue, Arc<Message>)>,
    ) -> Result<Json<PushOutcome>, HandlerError> {
        let Json((queue, message)) = request;
        let push = |inbox: &mut Inbox| (inbox.push(queue, message), inbox.message_notice());
        let (outcome, number) = update(&context, push).await?;
        let is_received = notify(&context, number, NoticeKind::Mail).await?;
        Ok(Json(if is_received { outcome } else { PushOutcome::Over }))
    }

    #[handler]
    async fn drain(
        &self,
        context: ObjectContext<'_>,
        request: Json<InboxRequest>,
    ) -> Result<Json<InboxBatch>, HandlerError> {
        Ok(Json(update(&context, |inbox| inbox.drain(request.0)).await?))
    }

    #[handler]
    async fn cancel(
        &self,
        context: ObjectContext<'_>,
        reason: Json<Arc<str>>,
    ) -> Result<Json<bool>, HandlerError> {
        let number = update(&context, Inbox::cancel).await?;
        Ok(Json(notify(&context, number, NoticeKind::Stop(reason.0)).await?))
    }

    #[handler]
    async fn ask(
        &self,
        context: ObjectContext<'_>,
        asks: Json<Vec<(PendingAsk, String)>>,
    ) -> Result<Json<()>, HandlerError> {
        Ok(Json(update(&context, |inbox| inbox.ask(asks.0)).await?))
    }

    #[handler]
    async fn reserve(
        &self,
        context: ObjectContext<'_>,
        wanted: Json<TreeReservation>,
    ) -> Result<Json<ReservedPart>, HandlerError> {
        Ok(Json(update(&context, |inbox| inbox.reserve(wanted.0)).await?))
    }

    #[handler]
    async fn children(
        &self,
        context: ObjectContext<'_>,
        children: Json<Vec<String>>,
    ) -> Result<Json<()>, HandlerError> {
        Ok(Json(update(&context, |inbox| inbox.set_children(children.0)).await?))
    }

    #[handler]
    async fn pending(
        &self,
        context: SharedObjectContext<'_>,
        nothing: Json<()>,
    ) -> Result<Json<(Vec<PendingAsk>, Vec<String>)>, HandlerError> {
        let Json(()) = nothing;
        let stored = context.get::<Json<Inbox>>(STATE).await?;
        let waits = |Json(inbox): Json<Inbox>| (inbox.pending(), inbox.children().to_vec());
        Ok(Json(stored.map(waits).unwrap_or_default()))
    }

    #[handler]
    async fn answer(
        &self,
        context: ObjectContext<'_>,
        id: Json<String>,
    ) -> Result<Json<Option<String>>, HandlerError> {
        Ok(Json(update(&context, |inbox| inbox.answer(&id.0)).await?))
    }

    #[handler]
    #[expect(clippy::unused_async, reason = "the macro of the SDK requires it")]
    async fn forget(&self, context: ObjectContext<'_>) -> Result<(), HandlerError> {
        context.clear_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_receives_only_messages_of_the_user() {
        let push = |role: &str| {
            let message = serde_json::json!({"role": role, "content": [], "call_id": "c", "tool": "t", "outcome": "completed", "kind": "k"});
            let push: PushRequest =
                serde_json::from_value(serde_json::json!({ "message": message })).unwrap();
            require_user_message(push.message)
        };
        assert!(push("user").is_ok());
        for role in ["assistant", "tool_result", "custom", "system"] {
            let error = push(role).unwrap_err();
            assert!(error.code() == 400 && error.message().contains(&format!("`{role}`")), "{error:?}");
        }
    }
}
