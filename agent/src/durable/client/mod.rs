//! The client of durable runs.

mod http;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::http::IngressClient;
use super::inbox::PushOutcome;
use super::restate::AGENT;
use super::{DurableClientError, Outcome, PendingAsk, RunRequest};
use crate::loop_core::{ApprovalRequest, Queue};
use crate::message::UserMessage;
use crate::runtime::Decision;
use crate::tool::outcome::ToolOutcome;
use crate::tool::question::{Question, QuestionInput};

/// A client that starts and controls runs through the ingress of the engine. Clones share their connections.
///
/// ```no_run
/// use agent::Decision;
/// use agent::durable::{DurableClient, PendingAsk};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = DurableClient::new("http://127.0.0.1:8080")?;
/// let run = engine.start("order-7", "Cancel order 7").await?;      // finds the run if it exists
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
pub struct DurableClient {
    http: Arc<IngressClient>,
}

impl DurableClient {
    /// Creates a client for the engine whose ingress has this address, by default `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// Returns an error if the address is not an HTTP URL.
    pub fn new(ingress: &str) -> Result<Self, DurableClientError> {
        Ok(Self { http: Arc::new(IngressClient::new(ingress)?) })
    }

    /// Starts a run, or finds the existing run with this name. The run does not depend on this process.
    ///
    /// # Errors
    /// Returns an error if the engine cannot be reached, or refuses the request.
    pub async fn start(
        &self,
        run: impl Into<String>,
        prompt: impl Into<String>,
    ) -> Result<DurableRun, DurableClientError> {
        self.start_request(&RunRequest::new(run, prompt)).await
    }

    /// Like [`start`](Self::start), with all options of a request.
    ///
    /// ```no_run
    /// use agent::durable::{DurableClient, RunRequest};
    /// use agent::message::Message;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let request = RunRequest::new("order-7", "Cancel order 7").with_message(Message::user("It is urgent."));
    /// let run = DurableClient::new("http://127.0.0.1:8080")?.start_request(&request).await?;
    /// assert_eq!(run.name(), "order-7");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`start`](Self::start).
    pub async fn start_request(&self, request: &RunRequest) -> Result<DurableRun, DurableClientError> {
        let _: Value = self.http.post(&[AGENT, &request.run, "run", "send"], None, request).await?;
        Ok(self.run(&*request.run))
    }

    /// Returns the handle of a run that was started before, by its name. Does not check that the run exists.
    ///
    /// ```
    /// use agent::durable::DurableClient;
    ///
    /// let engine = DurableClient::new("http://127.0.0.1:8080")?;
    /// assert_eq!(engine.run("order-7").name(), "order-7");
    /// # Ok::<(), agent::durable::DurableClientError>(())
    /// ```
    pub fn run(&self, run: impl Into<Arc<str>>) -> DurableRun {
        DurableRun { client: self.clone(), run: run.into() }
    }
}

impl fmt::Debug for DurableClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableClient").finish_non_exhaustive()
    }
}

/// A handle of a run on the engine. Dropping it has no effect on the run.
///
/// ```no_run
/// use agent::durable::{DurableClient, DurableRun, PendingAsk};
/// use agent::{Decision, ToolOutput, json, tool::QuestionInput};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// // A run that was started elsewhere, by its name.
/// let run: DurableRun = DurableClient::new("http://127.0.0.1:8080")?.run("order-7");
/// run.steer("Be polite about it.").await?;
/// run.follow_up("And send the invoice.").await?;
/// for ask in run.pending().await? {
///     match ask {
///         PendingAsk::Approval { request, .. } => run.decide(&request, Decision::Allow).await?,
///         PendingAsk::Deferred { handle, .. } => run.deliver(&handle, ToolOutput::text("1,200 rows")).await?,
///         PendingAsk::Question { question, .. } => {
///             run.answer(&question, QuestionInput::Accept(json!(2))).await?;
///         }
///         other => println!("{} waits for {}", run.name(), other.id()),
///     }
/// }
/// if run.outcome().await?.is_completed() {
///     assert!(!run.cancel("not needed").await?);                   // the run is over
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct DurableRun {
    client: DurableClient,
    run: Arc<str>,
}

impl DurableRun {
    /// Returns the name of the run.
    pub fn name(&self) -> &str {
        &self.run
    }

    /// Sends a message for the next turn. An accepted message is delivered, unless the run fails, is cancelled or reaches a limit first.
    ///
    /// # Errors
    /// Returns an error if the run is over, if too many messages wait, or if the engine cannot be reached.
    pub async fn steer(&self, message: impl Into<UserMessage>) -> Result<(), DurableClientError> {
        self.push(Queue::Steering, message.into()).await
    }

    /// Sends a message that is delivered when the run would otherwise end.
    ///
    /// # Errors
    /// Returns the errors of [`steer`](Self::steer).
    pub async fn follow_up(&self, message: impl Into<UserMessage>) -> Result<(), DurableClientError> {
        self.push(Queue::FollowUp, message.into()).await
    }

    async fn push(&self, queue: Queue, message: UserMessage) -> Result<(), DurableClientError> {
        let message = crate::message::Message::from(message);
        match self.request("push", json!({"queue": queue, "message": message})).await? {
            PushOutcome::Taken => Ok(()),
            PushOutcome::Over => Err(DurableClientError::NotTaken),
            PushOutcome::Full => Err(DurableClientError::Full),
        }
    }

    async fn request<T: DeserializeOwned>(
        &self,
        handler: &str,
        body: Value,
    ) -> Result<T, DurableClientError> {
        // The engine recognizes a repeated request by this key.
        let key = crate::runtime::new_id("ask");
        self.client.http.post(&[AGENT, &self.run, handler], Some(&key), &body).await
    }

    /// Cancels the run. Returns false if it is over.
    ///
    /// The tools that run in the process which receives the request are cancelled at once. Each call in the conversation has a result, and
    /// the run has an outcome. A run that has not begun ends after its first step.
    ///
    /// # Errors
    /// Returns an error if the engine cannot be reached, or refuses the request.
    pub async fn cancel(&self, reason: &str) -> Result<bool, DurableClientError> {
        self.request("cancel", json!({"reason": reason})).await
    }

    /// Returns the decisions and results that the run waits for.
    ///
    /// # Errors
    /// Returns an error if the engine cannot be reached, or refuses the request.
    pub async fn pending(&self) -> Result<Vec<PendingAsk>, DurableClientError> {
        self.client.http.post(&[AGENT, &self.run, "pending"], None, &()).await
    }

    /// Decides on a call. The first decision counts, and [`Decision::Later`] denies the call.
    ///
    /// # Errors
    /// Returns an error if the run does not wait for the decision, or if the engine cannot be reached.
    pub async fn decide(
        &self,
        request: &ApprovalRequest,
        decision: Decision,
    ) -> Result<(), DurableClientError> {
        self.send_answer(&request.request_id, json!(decision)).await
    }

    /// Answers a question of a tool. The first answer counts, and [`QuestionInput::Later`] dismisses the question.
    ///
    /// # Errors
    /// Returns an error if the input does not fit, if the run does not wait for it, or if the engine cannot be reached.
    pub async fn answer(&self, question: &Question, input: QuestionInput) -> Result<(), DurableClientError> {
        if let QuestionInput::Accept(value) = &input {
            question.check(value).map_err(DurableClientError::InputRefused)?;
        }
        self.send_answer(&question.request_id, json!(input)).await
    }

    /// Delivers the result of a deferred call, by the handle that its tool returned.
    ///
    /// # Errors
    /// Returns the errors of [`decide`](Self::decide).
    pub async fn deliver(
        &self,
        handle: &str,
        outcome: impl Into<ToolOutcome>,
    ) -> Result<(), DurableClientError> {
        self.send_answer(handle, json!(outcome.into())).await
    }

    async fn send_answer(&self, id: &str, answer: Value) -> Result<(), DurableClientError> {
        let is_accepted: bool = self.request("answer", json!({"id": id, "answer": answer})).await?;
        if is_accepted { Ok(()) } else { Err(DurableClientError::NotTaken) }
    }

    /// Waits for the end of the run, without a time limit.
    ///
    /// # Errors
    /// Returns an error if the run does not exist or was killed, or if the engine could not be reached for two minutes. The run itself
    /// continues.
    pub async fn outcome(&self) -> Result<Outcome, DurableClientError> {
        let path = ["restate", "workflow", AGENT, &*self.run, "attach"];
        let mut pause = Duration::from_millis(200);
        let mut outage = Duration::ZERO;
        loop {
            let begun = tokio::time::Instant::now();
            match self.client.http.get(&path).await {
                Err(error @ DurableClientError::Unreachable { .. }) => {
                    // A connection that broke after a long time does not count: the engine was there.
                    if begun.elapsed() > Duration::from_secs(30) {
                        (pause, outage) = (Duration::from_millis(200), Duration::ZERO);
                    }
                    if outage >= Duration::from_secs(120) {
                        return Err(error);
                    }
                    tokio::time::sleep(pause).await;
                    outage += pause;
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
                result => return result,
            }
        }
    }
}
