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

/// A client that starts runs through the ingress (the address for requests) of the durable execution engine, and controls them by their
/// names, wherever they were started. Clones share their connections.
///
/// ```no_run
/// use agent::durable::{DurableClient, PendingAsk};
/// use agent::{Decision, ToolOutput, json, tool::QuestionInput};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = DurableClient::new("http://127.0.0.1:8080")?;
/// engine.start("order-7", "Cancel order 7").await?;                // finds the run if it exists
/// engine.steer("order-7", "Be polite about it.").await?;
/// engine.follow_up("order-7", "And send the invoice.").await?;
/// for ask in engine.pending("order-7").await? {
///     match ask {
///         PendingAsk::Approval { request, .. } => engine.decide("order-7", &request, Decision::Allow).await?,
///         PendingAsk::Deferred { handle, .. } => {
///             engine.deliver("order-7", &handle, ToolOutput::text("1,200 rows")).await?;
///         }
///         PendingAsk::Question { question, .. } => {
///             engine.answer("order-7", &question, QuestionInput::Accept(json!(2))).await?;
///         }
///         other => println!("the run waits for {}", other.id()),
///     }
/// }
/// if engine.outcome("order-7").await?.is_completed() {
///     assert!(!engine.cancel("order-7", "not needed").await?);     // the run is over
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct DurableClient {
    http: Arc<IngressClient>,
}

impl DurableClient {
    /// Creates a client for the engine (Restate) whose ingress has this address. The default of Restate is `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// Returns an error if the address is not an HTTP URL, or if this process cannot make HTTP requests.
    pub fn new(ingress: &str) -> Result<Self, DurableClientError> {
        Ok(Self { http: Arc::new(IngressClient::new(ingress)?) })
    }

    /// Starts a run, or finds the existing run with this name. The run does not depend on this process.
    ///
    /// # Errors
    /// Returns an error if no run can have this name, or if the engine (Restate) cannot be reached or refuses the request.
    pub async fn start(
        &self,
        run: impl Into<String>,
        prompt: impl Into<String>,
    ) -> Result<(), DurableClientError> {
        self.start_request(&RunRequest::new(run, prompt)).await
    }

    /// Like [`start`](Self::start), with all fields of a request.
    ///
    /// ```no_run
    /// use agent::durable::{DurableClient, RunRequest};
    /// use agent::message::Message;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let request = RunRequest::new("order-7", "Cancel order 7").with_message(Message::user("It is urgent."));
    /// DurableClient::new("http://127.0.0.1:8080")?.start_request(&request).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`start`](Self::start).
    pub async fn start_request(&self, request: &RunRequest) -> Result<(), DurableClientError> {
        // The service checks the request only when the run begins, but this call returns earlier.
        request.check(&request.run).map_err(http::refused_name)?;
        let _: Value = self.http.post(&[AGENT, &request.run, "run", "send"], None, request).await?;
        Ok(())
    }

    /// Sends a message for the next turn. An accepted message is delivered, unless the run fails, is cancelled or reaches a limit first.
    ///
    /// # Errors
    /// Returns an error if the run is over, if too many messages wait for the run, or if the engine (Restate) cannot be reached or refuses
    /// the request.
    pub async fn steer(&self, run: &str, message: impl Into<UserMessage>) -> Result<(), DurableClientError> {
        self.push(run, Queue::Steering, message.into()).await
    }

    /// Sends a message that is delivered when the run would otherwise end.
    ///
    /// # Errors
    /// Returns the errors of [`steer`](Self::steer).
    pub async fn follow_up(
        &self,
        run: &str,
        message: impl Into<UserMessage>,
    ) -> Result<(), DurableClientError> {
        self.push(run, Queue::FollowUp, message.into()).await
    }

    async fn push(&self, run: &str, queue: Queue, message: UserMessage) -> Result<(), DurableClientError> {
        let message = crate::message::Message::from(message);
        match self.request(run, "push", json!({"queue": queue, "message": message})).await? {
            PushOutcome::Taken => Ok(()),
            PushOutcome::Over => Err(DurableClientError::NotTaken),
            PushOutcome::Full => Err(DurableClientError::Full),
        }
    }

    async fn request<T: DeserializeOwned>(
        &self,
        run: &str,
        handler: &str,
        body: Value,
    ) -> Result<T, DurableClientError> {
        // The idempotency key is unique. If a proxy sends the request twice, the engine handles it once.
        let key = crate::runtime::new_id("ask");
        self.http.post(&[AGENT, run, handler], Some(&key), &body).await
    }

    /// Cancels the run. Returns false if the run is over.
    ///
    /// In the process that receives the request, running tools are cancelled at once. A cancelled run also has an outcome, and each call in
    /// its conversation has a result. A run that has not begun ends after its first step.
    ///
    /// # Errors
    /// Returns an error if the engine (Restate) cannot be reached, or refuses the request.
    pub async fn cancel(&self, run: &str, reason: &str) -> Result<bool, DurableClientError> {
        self.request(run, "cancel", json!({"reason": reason})).await
    }

    /// Returns the decisions, inputs and results for which the run and the runs of its [sub-agents](crate::Assistant::as_tool) wait, at any
    /// depth.
    ///
    /// # Errors
    /// Returns an error if the engine (Restate) cannot be reached, or refuses the request.
    pub async fn pending(&self, run: &str) -> Result<Vec<PendingAsk>, DurableClientError> {
        self.http.post(&[AGENT, run, "pending"], None, &()).await
    }

    /// Decides on a call of the run, or of a sub-agent's run below it. The first decision counts, and [`Decision::Later`] denies the call.
    ///
    /// # Errors
    /// Returns an error if no such run waits for the decision, or if the engine (Restate) cannot be reached or refuses the request.
    pub async fn decide(
        &self,
        run: &str,
        request: &ApprovalRequest,
        decision: Decision,
    ) -> Result<(), DurableClientError> {
        self.send_answer(run, &request.request_id, json!(decision)).await
    }

    /// Answers a question of a tool. The first input counts, and [`QuestionInput::Later`] dismisses the question.
    ///
    /// # Errors
    /// Returns an error if the input does not fit the question, or an error of [`decide`](Self::decide).
    pub async fn answer(
        &self,
        run: &str,
        question: &Question,
        input: QuestionInput,
    ) -> Result<(), DurableClientError> {
        if let QuestionInput::Accept(value) = &input {
            question.check(value).map_err(DurableClientError::InputRefused)?;
        }
        self.send_answer(run, &question.request_id, json!(input)).await
    }

    /// Delivers the result of a deferred call. `handle` is the id that its tool returned.
    ///
    /// # Errors
    /// Returns the errors of [`decide`](Self::decide).
    pub async fn deliver(
        &self,
        run: &str,
        handle: &str,
        outcome: impl Into<ToolOutcome>,
    ) -> Result<(), DurableClientError> {
        self.send_answer(run, handle, json!(outcome.into())).await
    }

    async fn send_answer(&self, run: &str, id: &str, answer: Value) -> Result<(), DurableClientError> {
        let is_accepted: bool = self.request(run, "answer", json!({"id": id, "answer": answer})).await?;
        if is_accepted { Ok(()) } else { Err(DurableClientError::NotTaken) }
    }

    /// Waits for the end of the run without a time limit, and returns its outcome.
    ///
    /// # Errors
    /// Returns an error if the run does not exist or was killed, if the outcome cannot be read, or if the engine (Restate) could not be
    /// reached for two minutes. An error of the connection does not end the run.
    pub async fn outcome(&self, run: &str) -> Result<Outcome, DurableClientError> {
        let attach = ["restate", "workflow", AGENT, run, "attach"];
        let output = ["restate", "workflow", AGENT, run, "output"];
        let mut pause = Duration::from_millis(200);
        let mut outage = tokio::time::Instant::now();
        loop {
            let begun = tokio::time::Instant::now();
            match self.http.get(&attach).await {
                Err(error @ DurableClientError::Unreachable { .. }) => {
                    // A connection that lasted for more than 30 s shows that the engine was reachable, so a new outage begins.
                    if begun.elapsed() > Duration::from_secs(30) {
                        (pause, outage) = (Duration::from_millis(200), tokio::time::Instant::now());
                    }
                    if outage.elapsed() >= Duration::from_secs(120) {
                        // A proxy may end each long request. The engine answers this one at once, whether or not the run is over.
                        match self.http.get_now(&output).await {
                            Ok(outcome) => return Ok(outcome),
                            Err(DurableClientError::Unreachable { .. }) => return Err(error),
                            // The run is not over.
                            Err(DurableClientError::Refused { status: 470, .. }) => {
                                outage = tokio::time::Instant::now();
                            }
                            Err(refused) => return Err(refused),
                        }
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
                result => return result,
            }
        }
    }
}

impl fmt::Debug for DurableClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableClient").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_ends_after_two_minutes_however_long_its_attempts_take() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = DurableClient::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::time::sleep(Duration::from_secs(10)).await;
                drop(connection);
            }
        });
        let begun = tokio::time::Instant::now();
        let error = client.outcome("r").await.unwrap_err();
        assert!(matches!(error, DurableClientError::Unreachable { .. }), "{error}");
        let took = begun.elapsed().as_secs();
        assert!((120..180).contains(&took), "{took} s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_that_ends_each_long_request_is_no_outage() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = DurableClient::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let begun = tokio::time::Instant::now();
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let length = connection.read(&mut request).await.unwrap();
                let status = if request[..length].starts_with(b"GET /restate/workflow/Agent/r/output") {
                    "470 Not Ready"
                } else if begun.elapsed() < Duration::from_secs(600) {
                    tokio::time::sleep(Duration::from_secs(29)).await;
                    "504 Gateway Timeout"
                } else {
                    "404 Not Found"
                };
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                connection.write_all(head.as_bytes()).await.unwrap();
            }
        });
        let error = client.outcome("r").await.unwrap_err();
        assert!(matches!(error, DurableClientError::Refused { status: 404, .. }), "{error}");
    }

    #[tokio::test]
    async fn a_run_that_cannot_begin_is_refused_before_it_is_sent() {
        let client = DurableClient::new("http://127.0.0.1:1").unwrap();
        for name in ["", "..", "a\nb", "r/1/tool/0", &"r".repeat(201)] {
            let error = client.start(name, "Hi").await.unwrap_err();
            assert!(matches!(error, DurableClientError::Refused { status: 400, .. }), "{name:?}: {error}");
        }
    }
}
