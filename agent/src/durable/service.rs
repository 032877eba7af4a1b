//! The service that runs an assistant on a durable execution engine.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use super::ServiceError;
use super::deadline::Clock;
use super::journal::RetryPolicy;
use super::play::SharedService;
use super::restate::{self, Settings};
use super::running::ActiveRuns;
use crate::runtime::Assistant;
use crate::runtime::{ServedAssistant, UnservedAssistant};
use crate::tool::cancel::CancelToken;

/// A service through which an engine such as Restate performs the durable runs of an assistant.
///
/// The [tools](Assistant::as_tool) that are assistants themselves are served, too: each call of such a tool is a run of its own on the
/// engine.
///
/// The assistant defines the model, tools, state, hooks and limits of the runs, and the conversation with which each run begins. The
/// listeners of the assistant receive events, and receive the events again on a replay. The engine records each step of a run, and the
/// store of the assistant also records each call. [`new`](Self::new) refuses an assistant with features that cannot run step by step, or
/// with tools without a time limit.
///
/// The engine sees the services `Agent` (runs, and requests to them), `ToolRunner` and `Inbox`. Use one assistant per engine.
///
/// ```no_run
/// use agent::durable::Service;
/// use agent::{Assistant, ScriptedModel};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// Service::new(&assistant)?.serve("127.0.0.1:9080".parse()?).await?;
/// # Ok(()) }
/// ```
#[must_use = "a service does nothing until it is served"]
pub struct Service {
    served: SharedService,
    settings: Settings,
}

impl Service {
    /// Creates a service for this assistant.
    ///
    /// # Errors
    /// Returns an error if the assistant or an assistant among its tools uses features that cannot run step by step, or has tools without a
    /// time limit.
    pub fn new(assistant: &Assistant) -> Result<Self, ServiceError> {
        let unsupported = |UnservedAssistant { path, what }| ServiceError::Unsupported { path, what };
        let served = ServedAssistant::new(assistant).map_err(unsupported)?;
        let (mut tools, mut longest_call) = (served.unlimited_tools(), served.longest_call());
        served
            .visit("", &mut |served, path| {
                tools.extend(served.unlimited_tools().into_iter().map(|tool| format!("{path} > {tool}")));
                longest_call = longest_call.max(served.longest_call());
            })
            .map_err(unsupported)?;
        if !tools.is_empty() {
            return Err(ServiceError::NoTimeLimit { tools });
        }
        let day = Duration::from_secs(24 * 60 * 60);
        let model_retry = RetryPolicy { max_attempts: 4, pause: Duration::from_millis(500) };
        let served = SharedService {
            assistant: served,
            model_timeout: Duration::from_secs(600),
            longest_call,
            running: ActiveRuns::default(),
            model_retry,
            patience: day,
            clock: Clock::default(),
        };
        let settings = Settings { identity_key: None, is_open: false, retention: day };
        Ok(Self { served, settings })
    }

    /// Sets the time limit for one reply of the model; 600 s by default. The timeouts of the engine (Restate) follow from the limits for
    /// replies and calls: they are longer than any reply or call may take.
    ///
    /// Hooks and other functions of the application have no time limit, and the engine repeats a step that takes longer than its timeouts.
    /// So let a function of [`on_approval`](crate::AssistantBuilder::on_approval) that waits for a person return
    /// [`Decision::Later`](crate::Decision::Later), and send the decision with [`DurableClient::decide`](super::DurableClient::decide).
    /// For other long functions, set longer timeouts of the service `Agent` in the engine.
    ///
    /// ```
    /// use agent::durable::Service;
    /// use agent::{Assistant, ScriptedModel};
    /// use std::time::Duration;
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let service = Service::new(&assistant)?.model_timeout(Duration::from_secs(120)).model_attempts(3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn model_timeout(mut self, after: Duration) -> Self {
        self.served.model_timeout = after;
        self
    }

    /// Sets the maximum number of requests for one reply if the model fails temporarily; 4 by default, at least 1. The engine (Restate)
    /// pauses between attempts, 0.5 s at first. The model's own client does not retry.
    pub fn model_attempts(mut self, attempts: u32) -> Self {
        self.served.model_retry.max_attempts = attempts.max(1);
        self
    }

    /// Sets the maximum time that a run waits for a decision, an input or a result from outside; 24 hours by default. After this time, a
    /// call without a decision is denied, a question without an input is dismissed, and a call without a result fails.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.served.patience = patience;
        self
    }

    /// Sets the time for which the engine (Restate) keeps a finished run and its outcome; 24 hours by default.
    ///
    /// ```
    /// use agent::durable::Service;
    /// use agent::{Assistant, ScriptedModel};
    /// use std::time::Duration;
    ///
    /// const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let service = Service::new(&assistant)?
    ///     .patience(7 * DAY)                                       // the time for decisions
    ///     .retention(30 * DAY);                                    // the time to read the outcome
    /// assert!(format!("{service:?}").contains("2592000s"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retention(mut self, retention: Duration) -> Self {
        self.settings.retention = retention;
        self
    }

    /// Restricts the service to requests that are signed with this key of the server (`publickeyv1_…`, see the documentation of Restate).
    ///
    /// Without a key, every program that reaches the address can run every tool with any arguments, because approval rules and hooks do not
    /// apply to a direct request. Therefore a service without a key listens on loopback only, unless it is [allowed](Self::allow_anonymous)
    /// to listen elsewhere.
    ///
    /// ```
    /// use agent::durable::{Service, ServiceError};
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let error = Service::new(&assistant)?.identity_key("the key").unwrap_err();
    /// assert!(matches!(error, ServiceError::IdentityKey { .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the text is not a key of this form.
    pub fn identity_key(mut self, key: &str) -> Result<Self, ServiceError> {
        restate::check_key(key)?;
        self.settings.identity_key = Some(key.to_owned());
        Ok(self)
    }

    /// Allows the service to listen beyond loopback without an [identity key](Self::identity_key). Use this where only the engine
    /// (Restate) can reach the address, for example in the network of a container.
    ///
    /// ```
    /// use agent::durable::{Service, ServiceError};
    /// use agent::{Assistant, CancelToken, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let error = Service::new(&assistant)?.serve("0.0.0.0:9080".parse()?).await.unwrap_err();
    /// assert!(matches!(error, ServiceError::Anonymous { .. }));
    ///
    /// let service = Service::new(&assistant)?.allow_anonymous();
    /// # let _ = service;
    /// # Ok(()) }
    /// ```
    pub fn allow_anonymous(mut self) -> Self {
        self.settings.is_open = true;
        self
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// Returns an error if the address cannot be used. A service without an [identity key](Self::identity_key) also refuses an address
    /// beyond loopback, unless it is [allowed](Self::allow_anonymous) to listen there.
    pub async fn serve(self, address: SocketAddr) -> Result<(), ServiceError> {
        self.check_address(address)?;
        self.serve_until(TcpListener::bind(address)?, CancelToken::new()).await
    }

    /// Serves until the token is cancelled. Active runs then have ten seconds to reach the end of their step. The next process continues
    /// all active runs, whether or not their step ended in time.
    ///
    /// ```
    /// use agent::durable::Service;
    /// use agent::{Assistant, CancelToken, ScriptedModel};
    /// use std::net::TcpListener;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let (address, stop) = (listener.local_addr()?, CancelToken::new());
    /// let served = tokio::spawn(Service::new(&assistant)?.serve_until(listener, stop.clone()));
    /// println!("register http://{address} with the engine");
    ///
    /// stop.cancel("the process stops");
    /// served.await??;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the listener cannot be used, or if the service may not listen at its address. The rules for the address are the
    /// rules of [`serve`](Self::serve).
    pub async fn serve_until(self, listener: TcpListener, stop: CancelToken) -> Result<(), ServiceError> {
        self.check_address(listener.local_addr()?)?;
        restate::serve(Arc::new(self.served), &self.settings, listener, stop).await
    }

    fn check_address(&self, address: SocketAddr) -> Result<(), ServiceError> {
        let is_local = address.ip().to_canonical().is_loopback();
        if is_local || self.settings.is_open || self.settings.identity_key.is_some() {
            return Ok(());
        }
        Err(ServiceError::Anonymous { address })
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn into_served(self) -> Arc<SharedService> {
        Arc::new(self.served)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("settings", &self.settings).finish_non_exhaustive()
    }
}
