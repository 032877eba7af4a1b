//! What applications say to runs, through the engine.

mod http;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::http::Http;
use super::inbox::Pushed;
use super::restate::AGENT;
use super::{ClientError, Outcome, PendingAsk, RunRequest};
use crate::loop_core::{ApprovalRequest, Queue};
use crate::message::UserMessage;
use crate::{Decision, ToolOutcome};

/// Starts runs and talks to them, through the engine's ingress. Clones are one client.
///
/// ```no_run
/// use agent::Decision;
/// use agent::durable::{Client, PendingAsk};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Client::new("http://127.0.0.1:8080")?;
/// let run = engine.start("order-7", "Cancel order 7").await?;      // of this name there is one run, however often it is started
/// run.steer("Be polite about it").await?;
/// for ask in run.pending().await? {
///     if let PendingAsk::Approval { request, .. } = ask {
///         run.decide(&request, Decision::Allow).await?;
///     }
/// }
/// println!("{}", run.outcome().await?.text());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    http: Arc<Http>,
}

impl Client {
    /// A client of the engine whose ingress has this address, by default `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// It is no address.
    pub fn new(ingress: &str) -> Result<Self, ClientError> {
        Ok(Self { http: Arc::new(Http::new(ingress)?) })
    }

    /// Starts a run, or finds the one of this name. It goes on whatever becomes of this process.
    ///
    /// # Errors
    /// The engine cannot be reached, or refuses.
    pub async fn start(
        &self,
        run: impl Into<String>,
        prompt: impl Into<String>,
    ) -> Result<DurableRun, ClientError> {
        self.start_request(&RunRequest::new(run, prompt)).await
    }

    /// Starts a run as [`start`](Self::start) does, with whatever a request may have.
    ///
    /// ```no_run
    /// use agent::durable::{Client, RunRequest};
    /// use agent::message::Message;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let request = RunRequest::new("order-7", "Cancel order 7").with_message(Message::user("It is urgent."));
    /// let run = Client::new("http://127.0.0.1:8080")?.start_request(&request).await?;
    /// assert_eq!(run.name(), "order-7");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_request(&self, request: &RunRequest) -> Result<DurableRun, ClientError> {
        let _: Value = self.http.post(&[AGENT, &request.run, "run", "send"], None, request).await?;
        Ok(self.run(&*request.run))
    }

    /// A run that was started before, here or elsewhere, by its name. The engine is not asked whether there is one.
    ///
    /// ```
    /// use agent::durable::Client;
    ///
    /// let engine = Client::new("http://127.0.0.1:8080")?;
    /// assert_eq!(engine.run("order-7").name(), "order-7");
    /// # Ok::<(), agent::durable::ClientError>(())
    /// ```
    pub fn run(&self, run: impl Into<Arc<str>>) -> DurableRun {
        DurableRun { client: self.clone(), run: run.into() }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// A run on the engine. Dropping it changes nothing.
///
/// ```no_run
/// use agent::durable::{Client, DurableRun, PendingAsk};
/// use agent::{Decision, ToolOutput};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// // A run that was started elsewhere, by its name.
/// let run: DurableRun = Client::new("http://127.0.0.1:8080")?.run("order-7");
/// run.steer("Be polite about it.").await?;
/// run.follow_up("And send the invoice.").await?;
/// for ask in run.pending().await? {
///     match ask {
///         PendingAsk::Approval { request, .. } => run.decide(&request, Decision::Allow).await?,
///         PendingAsk::Deferred { handle, .. } => run.deliver(&handle, ToolOutput::text("1,200 rows")).await?,
///         other => println!("{} waits for {}", run.name(), other.id()),
///     }
/// }
/// if run.outcome().await?.is_completed() {
///     assert!(!run.cancel("nobody needs it any more").await?);     // it is over
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct DurableRun {
    client: Client,
    run: Arc<str>,
}

impl DurableRun {
    /// Its name, as it was given when it was started.
    pub fn name(&self) -> &str {
        &self.run
    }

    /// A message for the next turn. What is taken is heard, unless the run fails, is cancelled or reaches a limit before.
    ///
    /// # Errors
    /// The run is over, or too many messages wait, or the engine cannot be reached.
    pub async fn steer(&self, message: impl Into<UserMessage>) -> Result<(), ClientError> {
        self.push(Queue::Steering, message.into()).await
    }

    /// A message for when the run would end.
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    pub async fn follow_up(&self, message: impl Into<UserMessage>) -> Result<(), ClientError> {
        self.push(Queue::FollowUp, message.into()).await
    }

    async fn push(&self, queue: Queue, message: UserMessage) -> Result<(), ClientError> {
        let message = crate::message::Message::from(message);
        match self.ask("push", json!({"queue": queue, "message": message})).await? {
            Pushed::Taken => Ok(()),
            Pushed::Over => Err(ClientError::NotTaken),
            Pushed::Full => Err(ClientError::Full),
        }
    }

    async fn ask<T: DeserializeOwned>(&self, handler: &str, question: Value) -> Result<T, ClientError> {
        // Sent again under the same key, it is the same.
        let key = crate::runtime::new_id("ask");
        self.client.http.post(&[AGENT, &self.run, handler], Some(&key), &question).await
    }

    /// Ends the run: tools that run in the process that is asked are told at once, the conversation stays sound, and there is an outcome.
    /// False when it is over. A run that has not begun ends behind its first step.
    ///
    /// # Errors
    /// The engine cannot be reached, or refuses.
    pub async fn cancel(&self, reason: &str) -> Result<bool, ClientError> {
        self.ask("cancel", json!({"reason": reason})).await
    }

    /// What the run waits for.
    ///
    /// # Errors
    /// The engine cannot be reached, or refuses.
    pub async fn pending(&self) -> Result<Vec<PendingAsk>, ClientError> {
        self.client.http.post(&[AGENT, &self.run, "pending"], None, &()).await
    }

    /// Decides on a call, once. [`Decision::Later`] is none.
    ///
    /// # Errors
    /// The run does not wait for it (any more), or the engine cannot be reached.
    pub async fn decide(&self, request: &ApprovalRequest, decision: Decision) -> Result<(), ClientError> {
        self.answer(&request.request_id, json!(decision)).await
    }

    /// Brings the result of a call whose tool said that it comes later, by the handle that it gave.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn deliver(&self, handle: &str, outcome: impl Into<ToolOutcome>) -> Result<(), ClientError> {
        self.answer(handle, json!(outcome.into())).await
    }

    async fn answer(&self, id: &str, answer: Value) -> Result<(), ClientError> {
        let is_taken: bool = self.ask("answer", json!({"id": id, "answer": answer})).await?;
        if is_taken { Ok(()) } else { Err(ClientError::NotTaken) }
    }

    /// Waits for the run's end, however long that takes. An engine that cannot be reached for two minutes is an error;
    /// the run goes on all the same.
    ///
    /// # Errors
    /// There is no such run, it was killed, or the engine cannot be reached.
    pub async fn outcome(&self) -> Result<Outcome, ClientError> {
        let path = ["restate", "workflow", AGENT, &*self.run, "attach"];
        let mut pause = Duration::from_millis(200);
        let mut waited = Duration::ZERO;
        loop {
            let begun = tokio::time::Instant::now();
            match self.client.http.get(&path).await {
                Err(error @ ClientError::Unreachable { .. }) => {
                    // A connection that was held for long and broke is no sign of an engine that is gone.
                    if begun.elapsed() > Duration::from_secs(30) {
                        (pause, waited) = (Duration::from_millis(200), Duration::ZERO);
                    }
                    if waited >= Duration::from_secs(120) {
                        return Err(error);
                    }
                    tokio::time::sleep(pause).await;
                    waited += pause;
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
                answered => return answered,
            }
        }
    }
}
