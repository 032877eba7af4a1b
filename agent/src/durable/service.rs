//! What is served: the runs of an assistant.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use super::journal::Tries;
use super::restate::{self, Settings};
use super::running::Running;
use super::steps::Served;
use super::{ServeError, ServiceError};
use crate::runtime::Stepwise;
use crate::{Assistant, CancelToken};

/// The durable runs of an assistant: what the engine calls.
///
/// Everything is taken from the assistant: model, tools, state, hooks, limits, its conversation as the beginning of every run. Its
/// listeners are told of events, again on a replay; its store has a record of each call, beside the engine's journal. What
/// cannot be done step by step is refused here.
///
/// The engine sees the services `Agent` (runs, and what is said to them), `ToolRunner` and `Inbox`: one assistant for each engine.
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
#[must_use = "serve it"]
pub struct Service {
    served: Served,
    settings: Settings,
}

impl Service {
    /// The runs of this assistant.
    ///
    /// # Errors
    /// It has what cannot be done step by step, or tools without a time limit.
    pub fn new(assistant: &Assistant) -> Result<Self, ServiceError> {
        let steps = Stepwise::new(assistant).map_err(|what| ServiceError::Unsupported { what })?;
        let tools = steps.unlimited_tools();
        if !tools.is_empty() {
            return Err(ServiceError::NoTimeLimit { tools });
        }
        let day = Duration::from_secs(24 * 60 * 60);
        let model_tries = Tries { most: 4, pause: Duration::from_millis(500) };
        let served = Served { steps, running: Running::default(), model_tries, patience: day };
        Ok(Self { served, settings: Settings { identity_key: None, retention: day } })
    }

    /// How long one reply of the model may take; 600 s by default. The engine is told to wait as long as the longest step
    /// may take, this or a tool.
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
        self.served.steps.model_timeout = after;
        self
    }

    /// How often the model is asked for one reply, when it fails in a way that another attempt may mend; 4 by default, at least 1. The
    /// engine pauses in between, from 0.5 s on. The model's own client does not try again.
    pub fn model_attempts(mut self, attempts: u32) -> Self {
        self.served.model_tries.most = attempts.max(1);
        self
    }

    /// How long a run waits for a decision, or for a result from outside; 24 hours by default. Then a call that nobody decided on is
    /// denied, and one without a result has failed.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.served.patience = patience;
        self
    }

    /// How long the engine keeps a run that is over, and its outcome; 24 hours by default.
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
    ///     .patience(7 * DAY)                                       // for whoever decides
    ///     .retention(30 * DAY);                                    // for whoever asks what came of it
    /// assert!(format!("{service:?}").contains("2592000s"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retention(mut self, retention: Duration) -> Self {
        self.settings.retention = retention;
        self
    }

    /// Answers only to the server whose requests are signed with this key, as its documentation says
    /// (`publickeyv1_…`). Without it whoever reaches the address can run the tools: then listen on loopback.
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
    /// It is no such key.
    pub fn identity_key(mut self, key: &str) -> Result<Self, ServiceError> {
        restate::check_key(key)?;
        self.settings.identity_key = Some(key.to_owned());
        Ok(self)
    }

    /// Listens until the process is told to stop.
    ///
    /// # Errors
    /// The address cannot be used.
    pub async fn serve(self, address: SocketAddr) -> Result<(), ServeError> {
        self.serve_until(TcpListener::bind(address)?, CancelToken::new()).await
    }

    /// Listens until the token is cancelled. Runs that are under way get ten seconds to come to the end of a step; whatever they
    /// come to, they go on in the next process.
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
    /// println!("tell the engine of http://{address}");
    ///
    /// stop.cancel("the process is told to stop");
    /// served.await??;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The listener cannot be used.
    pub async fn serve_until(self, listener: TcpListener, stop: CancelToken) -> Result<(), ServeError> {
        restate::serve(Arc::new(self.served), &self.settings, listener, stop).await
    }

    /// What is served, for an engine in memory.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn into_served(self) -> Arc<Served> {
        Arc::new(self.served)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("settings", &self.settings).finish_non_exhaustive()
    }
}
