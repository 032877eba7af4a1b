//! The handlers that the engine calls.

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

use super::super::inbox::{Inbox, Pushed};
use super::super::journal::{Drained, Stepped, Take, ToolRequest};
use super::super::steps::{Served, call_tool, play};
use super::journal::{CallInvocation, RunInvocation};
use super::slots::{News, Slot, What, slot_name};
use super::{AGENT, INBOX};
use crate::durable::{Outcome, PendingAsk, RunRequest};
use crate::loop_core::{CallEnd, Queue};
use crate::message::Message;
use crate::steps::StepError;

/// The runs, and the requests to them.
pub(super) struct AgentHandlers {
    pub(super) served: Arc<Served>,
}

/// A message for a run.
#[derive(Debug, Serialize, Deserialize)]
struct Push {
    #[serde(default = "steering")]
    queue: Queue,
    message: Arc<Message>,
}

fn steering() -> Queue {
    Queue::Steering
}

#[derive(Debug, Serialize, Deserialize)]
struct Cancel {
    #[serde(default)]
    reason: Option<Arc<str>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    id: String,
    #[serde(rename = "answer")]
    value: Value,
}

/// The maximum length of the name of a run, in bytes.
const MAX_NAME: usize = 200;

/// Messages of the model and results of calls come from the run itself: from outside they would be forged.
fn of_user(message: Arc<Message>) -> Result<Arc<Message>, TerminalError> {
    if matches!(*message, Message::User(_)) {
        return Ok(message);
    }
    let text = format!("a run takes messages of the user, and this one has the role `{}`", message.role());
    Err(TerminalError::new_with_code(400, text))
}

/// An engine that failed tries again. All other errors end the invocation.
fn handler_error(error: StepError) -> HandlerError {
    match error {
        StepError::Engine { message } => HandlerError::from(message),
        error => TerminalError::new(error.to_string()).into(),
    }
}

/// Each key is a run. `run` runs once; the other handlers run at any time beside it.
#[workflow(name = "Agent")]
impl AgentHandlers {
    /// Runs to the end.
    #[handler]
    async fn run(
        &self,
        context: WorkflowContext<'_>,
        request: Json<RunRequest>,
    ) -> Result<Json<Outcome>, HandlerError> {
        let Json(mut request) = request;
        let run: Arc<str> = context.key().into();
        let refused = |text: String| Err(TerminalError::new_with_code(400, text).into());
        if run.is_empty() || run.len() > MAX_NAME {
            return refused(format!("a run has a name of 1 to {MAX_NAME} bytes"));
        }
        if !request.run.is_empty() && *request.run != *run {
            return refused(format!("the request names the run {:?}, and its address {run:?}", request.run));
        }
        let is_input = |message: &Message| matches!(message, Message::User(_) | Message::Custom(_));
        if let Some(wrong) = request.messages.iter().find(|message| !is_input(message)) {
            let role = wrong.role();
            return refused(format!(
                "a run begins with messages of the user or the application, not of the role `{role}`"
            ));
        }
        request.run = run.to_string();
        let part = self.served.running.enter(&run);
        let slot = Slot::default();
        let invocation = RunInvocation::new(&context, &slot, self.served.clone(), run);
        let outcome = play(&self.served, &invocation, request, part.token.clone()).await;
        Ok(Json(outcome.map_err(handler_error)?))
    }

    /// Takes a message for a run.
    #[handler]
    async fn push(
        &self,
        context: SharedWorkflowContext<'_>,
        push: Json<Push>,
    ) -> Result<Json<Pushed>, HandlerError> {
        let Json(Push { queue, message }) = push;
        let message = of_user(message)?;
        let asked = context.request(inbox(context.key(), "push"), Json((queue, message))).call();
        Ok(asked.await?)
    }

    /// Cancels a run. What runs in this process is cancelled at once, the run itself when it reaches the end of a step.
    #[handler]
    async fn cancel(
        &self,
        context: SharedWorkflowContext<'_>,
        cancel: Json<Cancel>,
    ) -> Result<Json<bool>, HandlerError> {
        let reason = cancel.0.reason.unwrap_or_else(|| "cancelled".into());
        // Before anything that waits: the run may be over by the time its inbox answers.
        let runs_here = self.served.running.cancel(context.key(), &reason);
        let asked = context.request::<_, Json<bool>>(inbox(context.key(), "cancel"), Json(reason)).call();
        let Json(is_told) = asked.await?;
        Ok(Json(runs_here || is_told))
    }

    /// Returns what a run waits for.
    #[handler]
    async fn pending(
        &self,
        context: SharedWorkflowContext<'_>,
        nothing: Json<()>,
    ) -> Result<Json<Vec<PendingAsk>>, HandlerError> {
        Ok(context.request(inbox(context.key(), "pending"), nothing).call().await?)
    }

    /// Answers what a run waits for.
    #[handler]
    async fn answer(
        &self,
        context: SharedWorkflowContext<'_>,
        answer: Json<Answer>,
    ) -> Result<Json<bool>, HandlerError> {
        let Json(Answer { id, value }) = answer;
        let asked = context.request(inbox(context.key(), "answer"), Json(id)).call();
        let Json(promise): Json<Option<String>> = asked.await?;
        let is_taken = promise.is_some();
        if let Some(promise) = promise {
            context.resolve_awakeable(&promise, Json(value));
        }
        Ok(Json(is_taken))
    }

    /// Tells the run about news in its inbox, and returns whether the run receives it. A slot belongs to whoever fills it first: the inbox,
    /// or the run when it closes.
    #[handler]
    async fn tell(
        &self,
        context: SharedWorkflowContext<'_>,
        news: Json<(u32, News)>,
    ) -> Result<Json<bool>, HandlerError> {
        let Json((number, news)) = news;
        let slot = slot_name(number);
        context.resolve_promise(&slot, Json(news.clone()));
        let Json(said) = context.promise::<Json<News>>(&slot).await?;
        Ok(Json(said == news))
    }
}

/// Calls with invocations of their own.
pub(super) struct ToolHandlers {
    pub(super) served: Arc<Served>,
}

#[service(name = "ToolRunner")]
impl ToolHandlers {
    /// Runs one call.
    #[handler]
    async fn call(
        &self,
        context: Context<'_>,
        request: Json<ToolRequest>,
    ) -> Result<Json<Stepped<CallEnd>>, HandlerError> {
        let Json(request) = request;
        let run = request.key.run.to_string();
        let part = self.served.running.enter(&run);
        let invocation = CallInvocation { context };
        let ended = call_tool(&self.served, &invocation, request, None, part.token.clone()).await;
        Ok(Json(ended.map_err(handler_error)?))
    }
}

/// The inbox of each run that was sent something or asks something. The run clears it at its end.
pub(super) struct InboxHandlers;

/// A handler of a run's inbox.
pub(super) fn inbox(run: &str, handler: &str) -> RequestTarget {
    RequestTarget::object(INBOX, run, handler)
}

/// The key of the inbox in the engine's state.
const STATE: &str = "inbox";

/// Changes the inbox.
async fn change<T>(
    context: &ObjectContext<'_>,
    change: impl FnOnce(&mut Inbox) -> T,
) -> Result<T, TerminalError> {
    let kept = context.get::<Json<Inbox>>(STATE).await?;
    let mut inbox = kept.map(|Json(inbox)| inbox).unwrap_or_default();
    let answer = change(&mut inbox);
    context.set(STATE, Json(inbox));
    Ok(answer)
}

/// Tells the run, if there is news. Returns false if the run is over; then the inbox is cleared too.
async fn tell(context: &ObjectContext<'_>, number: Option<u32>, what: What) -> Result<bool, TerminalError> {
    let Some(number) = number else { return Ok(true) };
    let news = News { what, by: context.invocation_id().to_owned() };
    let target = RequestTarget::workflow(AGENT, context.key(), "tell");
    let Json(is_heard) = context.request::<_, Json<bool>>(target, Json((number, news))).call().await?;
    if !is_heard {
        context.clear_all();
    }
    Ok(is_heard)
}

#[object(name = "Inbox")]
impl InboxHandlers {
    #[handler]
    async fn push(
        &self,
        context: ObjectContext<'_>,
        push: Json<(Queue, Arc<Message>)>,
    ) -> Result<Json<Pushed>, HandlerError> {
        let Json((queue, message)) = push;
        let pushed = |inbox: &mut Inbox| (inbox.push(queue, message), inbox.news());
        let (pushed, number) = change(&context, pushed).await?;
        let is_heard = tell(&context, number, What::Mail).await?;
        Ok(Json(if is_heard { pushed } else { Pushed::Over }))
    }

    #[handler]
    async fn drain(
        &self,
        context: ObjectContext<'_>,
        take: Json<Take>,
    ) -> Result<Json<Drained>, HandlerError> {
        Ok(Json(change(&context, |inbox| inbox.drain(take.0)).await?))
    }

    #[handler]
    async fn cancel(
        &self,
        context: ObjectContext<'_>,
        reason: Json<Arc<str>>,
    ) -> Result<Json<bool>, HandlerError> {
        let number = change(&context, Inbox::cancel).await?;
        Ok(Json(tell(&context, number, What::Stop(reason.0)).await?))
    }

    #[handler]
    async fn ask(
        &self,
        context: ObjectContext<'_>,
        asks: Json<Vec<(PendingAsk, String)>>,
    ) -> Result<Json<()>, HandlerError> {
        Ok(Json(change(&context, |inbox| inbox.ask(asks.0)).await?))
    }

    #[handler]
    async fn pending(
        &self,
        context: SharedObjectContext<'_>,
        nothing: Json<()>,
    ) -> Result<Json<Vec<PendingAsk>>, HandlerError> {
        let Json(()) = nothing;
        let kept = context.get::<Json<Inbox>>(STATE).await?;
        Ok(Json(kept.map(|Json(inbox)| inbox.asks()).unwrap_or_default()))
    }

    #[handler]
    async fn answer(
        &self,
        context: ObjectContext<'_>,
        id: Json<String>,
    ) -> Result<Json<Option<String>>, HandlerError> {
        Ok(Json(change(&context, |inbox| inbox.answer(&id.0)).await?))
    }

    /// The run is over: clears its inbox.
    #[handler]
    #[expect(clippy::unused_async, reason = "the engine's macro wants it")]
    async fn forget(&self, context: ObjectContext<'_>) -> Result<(), HandlerError> {
        context.clear_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_messages_of_the_user_alone() {
        let push = |role: &str| {
            let message = serde_json::json!({"role": role, "content": [], "call_id": "c", "tool": "t", "outcome": "completed", "kind": "k"});
            let push: Push = serde_json::from_value(serde_json::json!({ "message": message })).unwrap();
            of_user(push.message)
        };
        assert!(push("user").is_ok());
        for role in ["assistant", "tool_result", "custom", "system"] {
            let error = push(role).unwrap_err();
            assert!(error.code() == 400 && error.message().contains(&format!("`{role}`")), "{error:?}");
        }
    }
}
