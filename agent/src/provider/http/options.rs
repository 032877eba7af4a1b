//! Timeouts, retries, limits and listeners.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::secret::Secret;
use crate::message::Usage;
use crate::model::{ModelError, ModelInfo};
use crate::panics::Observer;
use crate::provider::reply::ReplyLimits;
use crate::traffic::{OnTraffic, Traffic};

/// Timeouts, retries, limits and listeners of the HTTP transport.
///
/// One value serves any number of models: create it when the program starts, and pass it on. Models that use clones of the options share
/// connections.
///
/// ```
/// use agent::provider::http::HttpOptions;
/// use std::time::Duration;
///
/// let options = HttpOptions::default()
///     .with_first_byte_timeout(Duration::from_secs(60))
///     .with_max_retries(5)
///     .on_retry(|retry| eprintln!("{} in {:?}", retry.error, retry.delay));
/// assert_eq!((options.first_byte_timeout, options.max_retries), (Duration::from_secs(60), 5));
/// ```
///
/// For a server on this machine, which answers at once or not at all:
///
/// ```
/// use agent::provider::http::HttpOptions;
/// use std::time::Duration;
///
/// let options = HttpOptions::default()
///     .with_connect_timeout(Duration::from_secs(1))
///     .with_idle_timeout(Duration::from_secs(10))
///     .with_total_timeout(Duration::from_secs(60))
///     .with_max_body(1 << 20)
///     .without_proxy();
/// assert_eq!((options.connect_timeout, options.idle_timeout), (Duration::from_secs(1), Duration::from_secs(10)));
/// assert_eq!((options.total_timeout, options.max_body), (Duration::from_secs(60), 1 << 20));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Maximum time to establish a connection. Default: 60 s.
    pub connect_timeout: Duration,
    /// Maximum time from the request to the first byte of the response, in addition to `connect_timeout`. Default: 5 min, because reasoning
    /// models are silent for a long time.
    pub first_byte_timeout: Duration,
    /// Maximum time between two pieces of the response. Default: 5 min.
    pub idle_timeout: Duration,
    /// Maximum total time, including retries and pauses. Default: 1 h.
    pub total_timeout: Duration,
    /// Maximum number of retries. Default: 2.
    pub max_retries: u32,
    /// Pause before the first retry; it doubles with each retry, and up to a quarter is subtracted at random. Default: 0.5 s.
    pub first_delay: Duration,
    /// Maximum pause that this library chooses. Default: 8 s.
    pub max_delay: Duration,
    /// Maximum pause that a provider may ask for. If a provider asks for a longer pause, there is no retry. Default: 2 min.
    pub max_asked_delay: Duration,
    /// Maximum length of a response's body, streamed or not, in bytes. Default: 256 MiB.
    pub max_body: usize,
    /// Maximum length of one event of a stream, in bytes. Default: 16 MiB.
    pub max_event: usize,
    /// Maximum length of a response that is one JSON document instead of a stream, in bytes. Default: 32 MiB. A shorter document is also
    /// refused if its parsed values need more than 16 times `max_document` in memory. A shorter event is also refused if its parsed values
    /// need more than 16 times `max_event`.
    pub max_document: usize,
    /// The `User-Agent` header.
    pub user_agent: String,
    pub(super) proxy: ProxyChoice,
    pub(super) client: Option<reqwest::Client>,
    /// The connections of all models that have clones of these options.
    pub(super) connections: Arc<Mutex<Option<SharedConnections>>>,
    pub(super) on_retry: Option<OnRetry>,
    pub(super) on_usage: Option<OnUsage>,
    pub(super) on_traffic: Option<OnTraffic>,
}

type OnRetry = Observer<dyn Fn(&Retry<'_>) + Send + Sync>;
type OnUsage = Observer<dyn Fn(&ModelInfo, &Usage) + Send + Sync>;

#[derive(Clone, PartialEq)]
pub(super) enum ProxyChoice {
    Environment,
    None,
    /// A proxy with this URL, which may contain a password.
    Url(Secret),
}

pub(super) struct SharedConnections {
    pub(super) connect_timeout: Duration,
    pub(super) user_agent: String,
    pub(super) proxy: ProxyChoice,
    pub(super) client: reqwest::Client,
}

/// A retry that is about to begin.
///
/// ```
/// # #[cfg(feature = "openai")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agent::model::{Model as _, ModelRequest, StepCx};
/// use agent::provider::http::{HttpModel, HttpOptions, Retry};
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// let log = Arc::new(Mutex::new(Vec::new()));
/// let lines = log.clone();
/// let mut options = HttpOptions::default().without_proxy().with_max_retries(2).on_retry(move |retry: &Retry<'_>| {
///     assert!(retry.error.is_connection() && retry.delay < Duration::from_secs(1));
///     lines.lock().unwrap().push(format!("{}: retry {}", retry.model.model, retry.number));
/// });
/// options.first_delay = Duration::from_millis(1);
/// let model = HttpModel::builder("ollama/qwen3").base_url("http://127.0.0.1:9/v1").options(options).build()?;
/// assert!(model.call(&StepCx::new(), &ModelRequest::default()).await.is_err());           // nobody listens there
/// assert_eq!(*log.lock().unwrap(), ["qwen3: retry 1", "qwen3: retry 2"]);
/// # Ok(()) }
/// # #[cfg(not(feature = "openai"))] fn main() {}
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Retry<'a> {
    /// The model of the request.
    pub model: &'a ModelInfo,
    /// The number of the retry, counted from 1.
    pub number: u32,
    /// The pause before the retry.
    pub delay: Duration,
    /// The error of the previous attempt.
    pub error: &'a ModelError,
}

impl Default for HttpOptions {
    fn default() -> Self {
        let (seconds, limits) = (Duration::from_secs, ReplyLimits::default());
        Self {
            connect_timeout: seconds(60),
            first_byte_timeout: seconds(300),
            idle_timeout: seconds(300),
            total_timeout: seconds(3600),
            max_retries: 2,
            first_delay: Duration::from_millis(500),
            max_delay: seconds(8),
            max_asked_delay: seconds(120),
            max_body: limits.body,
            max_event: limits.event,
            max_document: limits.document,
            proxy: ProxyChoice::Environment,
            client: None,
            connections: Arc::default(),
            user_agent: concat!(env!("CARGO_PKG_NAME"), "-rs/", env!("CARGO_PKG_VERSION")).to_owned(),
            on_retry: None,
            on_usage: None,
            on_traffic: None,
        }
    }
}

impl HttpOptions {
    /// Sets the maximum time to establish a connection. Default: 60 s.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the maximum time until the first byte of the response, in addition to the time to establish a connection. Default: 5 min.
    pub fn with_first_byte_timeout(mut self, timeout: Duration) -> Self {
        self.first_byte_timeout = timeout;
        self
    }

    /// Sets the maximum time between two pieces of a response. Default: 5 min.
    pub fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets the maximum total time, including retries and pauses. Default: 1 h.
    pub fn with_total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// Sets the maximum number of retries. Default: 2.
    pub fn with_max_retries(mut self, retries: u32) -> Self {
        self.max_retries = retries;
        self
    }

    /// Sets the maximum length of a response's body, streamed or not, in bytes. Default: 256 MiB.
    pub fn with_max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sets the proxy of all requests by its URL, which may contain a password. By default, the environment variables `HTTPS_PROXY`,
    /// `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` decide.
    ///
    /// ```
    /// use agent::provider::http::HttpOptions;
    ///
    /// let options = HttpOptions::default().with_proxy("http://ann:s3cret@proxy.example:3128");
    /// assert!(!format!("{options:?}").contains("s3cret"));
    /// ```
    pub fn with_proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = ProxyChoice::Url(url.into().into());
        self
    }

    /// Uses no proxy, whatever the environment sets.
    pub fn without_proxy(mut self) -> Self {
        self.proxy = ProxyChoice::None;
        self
    }

    /// Uses the connections of this client. The client's proxies, TLS, `User-Agent` and connection timeout replace those of the options.
    /// The client should not follow redirects to hosts that must not see your key.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::provider::http::HttpOptions;
    ///
    /// let own = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
    /// let options = HttpOptions::default().with_client(own).with_max_retries(5);
    /// # let _ = options; Ok(()) }
    /// ```
    pub fn with_client(mut self, client: reqwest::Client) -> Self {
        self.client = Some(client);
        self
    }

    pub(super) fn reply_limits(&self) -> ReplyLimits {
        ReplyLimits { body: self.max_body, event: self.max_event, document: self.max_document }
    }

    /// Calls `listener` before the pause of each retry. Retries of token counts are only logged. `listener` must not block. If it panics,
    /// it is not called again.
    pub fn on_retry(mut self, listener: impl Fn(&Retry<'_>) + Send + Sync + 'static) -> Self {
        self.on_retry = Some(Observer::new("on_retry", Arc::new(listener)));
        self
    }

    /// Calls `listener` after each reply for which the provider reported usage. For a reply that broke off, `listener` gets the usage that
    /// was reported so far. It is not called if the stream of the reply is dropped before its end. `listener` must not block. If it
    /// panics, it is not called again.
    ///
    /// ```
    /// # #[cfg(feature = "openai")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::message::Message;
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::provider::http::{HttpModel, HttpOptions};
    /// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
    ///
    /// # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// # let server = format!("http://{}", listener.local_addr()?);
    /// # std::thread::spawn(move || -> std::io::Result<()> {
    /// #     use std::io::{Read as _, Write as _};
    /// #     let (mut stream, _) = listener.accept()?;
    /// #     let (mut seen, mut piece) = (Vec::new(), [0; 1024]);
    /// #     while !seen.ends_with(b"}") {
    /// #         let length = stream.read(&mut piece)?;
    /// #         seen.extend_from_slice(&piece[..length]);
    /// #     }
    /// #     stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\
    /// #         {\"choices\": [{\"message\": {\"content\": \"Hi\"}, \"finish_reason\": \"stop\"}], \"usage\": {\"prompt_tokens\": 12, \"completion_tokens\": 3}}")
    /// # });
    /// let tokens = Arc::new(AtomicU64::new(0));
    /// let sum = tokens.clone();
    /// let options = HttpOptions::default().without_proxy().on_usage(move |_model, usage| {
    ///     sum.fetch_add(usage.total, Ordering::Relaxed);
    /// });
    /// let model = HttpModel::builder("ollama/qwen3").base_url(server).options(options).build()?;
    /// model.call(&StepCx::new(), &ModelRequest::new([Message::user("Hello!")])).await?;
    /// assert_eq!(tokens.load(Ordering::Relaxed), 15);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "openai"))] fn main() {}
    /// ```
    pub fn on_usage(mut self, listener: impl Fn(&ModelInfo, &Usage) + Send + Sync + 'static) -> Self {
        self.on_usage = Some(Observer::new("on_usage", Arc::new(listener)));
        self
    }

    /// Calls `listener` with everything that is sent and received, including retries: requests with their bodies, and responses piece by
    /// piece. Keys are masked. The conversation is not masked, so a log of the traffic is as private as the conversation. `listener` must
    /// not block. If it panics, it is not called again.
    ///
    /// ```
    /// use agent::provider::http::HttpOptions;
    /// use agent::traffic::TrafficKind;
    ///
    /// let options = HttpOptions::default().on_traffic(|traffic| match &traffic.kind {
    ///     TrafficKind::Request { method, url, body, .. } => eprintln!("{} > {method} {url} {body}", traffic.exchange),
    ///     TrafficKind::Response { status, .. } => eprintln!("{} < {status}", traffic.exchange),
    ///     TrafficKind::Body { text, .. } => eprintln!("{} < {text}", traffic.exchange),
    ///     TrafficKind::End { error: Some(error), .. } => eprintln!("{} < {error}", traffic.exchange),
    ///     _ => {}
    /// });
    /// # let _ = options;
    /// ```
    pub fn on_traffic(mut self, listener: impl Fn(&Traffic<'_>) + Send + Sync + 'static) -> Self {
        self.on_traffic = Some(Observer::new("on_traffic", Arc::new(listener)));
        self
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("connect_timeout", &self.connect_timeout)
            .field("first_byte_timeout", &self.first_byte_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("total_timeout", &self.total_timeout)
            .field("max_retries", &self.max_retries)
            .finish_non_exhaustive()
    }
}
