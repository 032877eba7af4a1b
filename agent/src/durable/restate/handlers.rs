//! What the engine calls.

use std::sync::Arc;
use std::time::Duration;

use restate_sdk::context::{
    Context, ContextAwakeables as _, ContextClient as _, ContextReadState as _, ContextWriteState as _,
    ObjectContext, RequestTarget, SharedObjectContext,
};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use restate_sdk::{object, service};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::inbox::{Inbox, News, Pushed};
use super::super::journal::{Drained, Stepped, Take, ToolRequest};
use super::super::steps::{Served, call_tool, play};
use super::journal::{Invocation, ask_inbox};
use super::{CANCEL, REFUSED, mail};
use crate::durable::{Outcome, PendingAsk, RunRequest};
use crate::loop_core::{CallEnd, Queue};
use crate::message::Message;

/// The runs, and what can be said to them.
pub(super) struct AgentHandlers {
    pub(super) served: Arc<Served>,
}

/// A message for a run.
#[derive(Debug, Serialize, Deserialize)]
struct Push {
    run: String,
    #[serde(default = "steering")]
    queue: Queue,
    message: Arc<Message>,
}

fn steering() -> Queue {
    Queue::Steering
}

#[derive(Debug, Serialize, Deserialize)]
struct Cancel {
    run: String,
    #[serde(default)]
    reason: Option<Arc<str>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    run: String,
    id: String,
    #[serde(rename = "answer")]
    value: Value,
}

/// The longest name of a run.
const MAX_NAME: usize = 200;

#[service(name = "Agent")]
impl AgentHandlers {
    /// Runs to the end.
    #[handler]
    async fn run(
        &self,
        context: Context<'_>,
        request: Json<RunRequest>,
    ) -> Result<Json<Outcome>, HandlerError> {
        let Json(request) = request;
        if request.run.is_empty() || request.run.len() > MAX_NAME {
            let text = format!("a run has a name of 1 to {MAX_NAME} bytes");
            return Err(TerminalError::new_with_code(400, text).into());
        }
        let (run, owner) = (request.run.clone(), context.invocation_id().to_owned());
        let part = self.served.running.enter(&run);
        let invocation = Invocation::new(context, self.served.clone(), &run);
        if !invocation.open(owner).await? {
            let text = format!("there is another run of the name {run:?}");
            return Err(TerminalError::new_with_code(409, text).into());
        }
        let outcome = play(&self.served, &invocation, request, part.token.clone()).await;
        Ok(Json(outcome.map_err(|error| TerminalError::new(error.to_string()))?))
    }

    /// A message for a run.
    #[handler]
    async fn push(&self, context: Context<'_>, push: Json<Push>) -> Result<Json<Pushed>, HandlerError> {
        let Json(Push { run, queue, message }) = push;
        let pushed = ask_inbox(&context, &run, "push", (queue, message)).await?;
        Ok(Json(pushed))
    }

    /// Ends a run: what runs here hears it at once, the run itself when it comes to the end of a step.
    #[handler]
    async fn cancel(&self, context: Context<'_>, cancel: Json<Cancel>) -> Result<Json<bool>, HandlerError> {
        let Json(Cancel { run, reason }) = cancel;
        let reason = reason.unwrap_or_else(|| "cancelled".into());
        // Before anything that waits: the run may be over by the time its inbox is asked.
        let runs_here = self.served.running.cancel(&run, &reason);
        let is_told: bool = ask_inbox(&context, &run, "cancel", reason).await?;
        Ok(Json(runs_here || is_told))
    }

    /// What a run waits for.
    #[handler]
    async fn pending(
        &self,
        context: Context<'_>,
        run: Json<String>,
    ) -> Result<Json<Vec<PendingAsk>>, HandlerError> {
        Ok(Json(ask_inbox(&context, &run.0, "pending", ()).await?))
    }

    /// What a run waited for.
    #[handler]
    async fn answer(&self, context: Context<'_>, answer: Json<Answer>) -> Result<Json<bool>, HandlerError> {
        let Json(Answer { run, id, value }) = answer;
        let promise: Option<String> = ask_inbox(&context, &run, "answer", id).await?;
        let is_taken = promise.is_some();
        if let Some(promise) = promise {
            context.resolve_awakeable(&promise, Json(value));
        }
        Ok(Json(is_taken))
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
        let invocation = Invocation::new(context, self.served.clone(), &run);
        let ended = call_tool(&self.served, &invocation, request, None, part.token.clone()).await;
        Ok(Json(ended.map_err(|error| TerminalError::new(error.to_string()))?))
    }
}

/// The inbox of each run.
pub(super) struct InboxHandlers {
    pub(super) retention: Duration,
}

impl InboxHandlers {
    /// The run is over: that it is, is known as long as its outcome.
    fn forgets(&self, context: &ObjectContext<'_>) {
        let target = RequestTarget::object(super::INBOX, context.key(), "forget");
        drop(context.request::<_, ()>(target, ()).send_after(self.retention));
    }
}

/// Tells the run that messages wait.
fn tell(context: &ObjectContext<'_>, news: Option<News>) {
    if let Some(News { owner, number }) = news {
        context.invocation_handle(owner).signal(mail(number)).resolve(Json(()));
    }
}

/// Where it is kept.
const STATE: &str = "inbox";

/// Changes the inbox.
async fn change<T>(
    context: &ObjectContext<'_>,
    change: impl FnOnce(&mut Inbox) -> T,
) -> Result<T, HandlerError> {
    let kept = context.get::<Json<Inbox>>(STATE).await?;
    let mut inbox = kept.map(|Json(inbox)| inbox).unwrap_or_default();
    let answer = change(&mut inbox);
    context.set(STATE, Json(inbox));
    Ok(answer)
}

#[object(name = "Inbox")]
impl InboxHandlers {
    /// A run begins. Whatever there is to be said to it is said by signals, as it is later: that this is answered is a place in
    /// the run's journal that all of them are in front of.
    #[handler]
    async fn open(&self, context: ObjectContext<'_>, owner: Json<String>) -> Result<Json<()>, HandlerError> {
        let Json(owner) = owner;
        let opened =
            change(&context, |inbox| inbox.open(&owner).then(|| (inbox.news(), inbox.stop()))).await?;
        match opened {
            None => context.invocation_handle(owner).signal(REFUSED).resolve(Json(())),
            Some((news, stop)) => {
                tell(&context, news);
                if let Some(reason) = stop {
                    context.invocation_handle(owner).signal(CANCEL).resolve(Json(reason));
                }
            }
        }
        Ok(Json(()))
    }

    #[handler]
    async fn push(
        &self,
        context: ObjectContext<'_>,
        push: Json<(Queue, Arc<Message>)>,
    ) -> Result<Json<Pushed>, HandlerError> {
        let Json((queue, message)) = push;
        let pushed = |inbox: &mut Inbox| (inbox.push(queue, message), inbox.news());
        let (pushed, news) = change(&context, pushed).await?;
        tell(&context, news);
        Ok(Json(pushed))
    }

    #[handler]
    async fn drain(
        &self,
        context: ObjectContext<'_>,
        take: Json<Take>,
    ) -> Result<Json<Drained>, HandlerError> {
        let drained = change(&context, |inbox| inbox.drain(take.0)).await?;
        if drained.is_closed {
            self.forgets(&context);
        }
        Ok(Json(drained))
    }

    #[handler]
    async fn cancel(
        &self,
        context: ObjectContext<'_>,
        reason: Json<Arc<str>>,
    ) -> Result<Json<bool>, HandlerError> {
        let Json(reason) = reason;
        let owner = change(&context, |inbox| inbox.cancel(reason.clone())).await?;
        let is_there = owner.is_some();
        if let Some(owner) = owner {
            context.invocation_handle(owner).signal(CANCEL).resolve(Json(reason));
        }
        Ok(Json(is_there))
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

    #[handler]
    async fn close(&self, context: ObjectContext<'_>) -> Result<(), HandlerError> {
        change(&context, Inbox::close).await?;
        self.forgets(&context);
        Ok(())
    }

    #[handler]
    #[expect(clippy::unused_async, reason = "the engine's macro wants it")]
    async fn forget(&self, context: ObjectContext<'_>) -> Result<(), HandlerError> {
        context.clear_all();
        Ok(())
    }
}
