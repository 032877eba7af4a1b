//! How long is waited, how often is tried, how much is read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Secret;
use super::traffic::{OnTraffic, Traffic};
use crate::message::Usage;
use crate::model::{ModelError, ModelInfo};
use crate::provider::ReplyLimits;

/// How long is waited, how often is tried, how much is read, and who is told.
///
/// One value serves any number of models: make one when the program starts, and hand it on.
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
/// use agent::provider::ReplyLimits;
/// use agent::provider::http::{HttpOptions, Proxy};
/// use std::time::Duration;
///
/// let mut limits = ReplyLimits::default();
/// limits.body = 1 << 20;
/// let options = HttpOptions::default()
///     .with_connect_timeout(Duration::from_secs(1))
///     .with_idle_timeout(Duration::from_secs(10))
///     .with_total_timeout(Duration::from_secs(60))
///     .with_limits(limits)
///     .with_proxy(Proxy::None);
/// assert_eq!((options.connect_timeout, options.idle_timeout), (Duration::from_secs(1), Duration::from_secs(10)));
/// assert_eq!((options.total_timeout, options.limits.body), (Duration::from_secs(60), 1 << 20));
/// assert!(matches!(options.proxy, Proxy::None));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Until a connection stands: 60 s.
    pub connect_timeout: Duration,
    /// From the request to the first byte of the answer: 5 min. Models that reason are silent for long.
    pub first_byte_timeout: Duration,
    /// Between two pieces of the answer: 5 min.
    pub idle_timeout: Duration,
    /// For everything, retries and pauses included: 1 h.
    pub total_timeout: Duration,
    /// Attempts after the first: 2.
    pub max_retries: u32,
    /// The pause before the first retry; each is twice as long as the one before, less up to a quarter: 0.5 s.
    pub first_delay: Duration,
    /// The longest pause of our own: 8 s.
    pub max_delay: Duration,
    /// The longest pause that a provider may ask for; one that asks for more is not asked again: 2 min.
    pub max_asked_delay: Duration,
    /// How much of an answer is read.
    pub limits: ReplyLimits,
    /// What stands between.
    pub proxy: Proxy,
    /// Who asks.
    pub user_agent: String,
    pub(super) on_retry: Option<OnRetry>,
    pub(super) on_usage: Option<OnUsage>,
    pub(super) on_traffic: Option<OnTraffic>,
}

type OnRetry = Arc<dyn Fn(&Retry<'_>) + Send + Sync>;
type OnUsage = Arc<dyn Fn(&UsageReport<'_>) + Send + Sync>;

/// What stands between this program and the provider.
///
/// ```
/// use agent::provider::http::{HttpOptions, Proxy, Secret};
///
/// let options = HttpOptions::default().with_proxy(Proxy::Url(Secret::from("http://ann:s3cret@proxy.example:3128")));
/// assert!(!format!("{options:?}").contains("s3cret"));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Proxy {
    /// What the variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    #[default]
    Environment,
    /// Nothing.
    None,
    /// This proxy, for everything; its URL may hold a password.
    Url(Secret),
}

/// A request is about to be sent again.
///
/// ```
/// # #[cfg(feature = "openai")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agent::model::{Model as _, ModelRequest, StepCx};
/// use agent::provider::http::{HttpModel, HttpOptions, Proxy, Retry};
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// let log = Arc::new(Mutex::new(Vec::new()));
/// let lines = log.clone();
/// let mut options = HttpOptions::default().with_proxy(Proxy::None).with_max_retries(2).on_retry(move |retry: &Retry<'_>| {
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
    /// Whom it goes to.
    pub model: &'a ModelInfo,
    /// Which retry it is, counted from 1.
    pub number: u32,
    /// The pause before it.
    pub delay: Duration,
    /// What went wrong.
    pub error: &'a ModelError,
}

/// What a reply took.
///
/// ```
/// # #[cfg(feature = "openai")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agent::message::Message;
/// use agent::model::{Model as _, ModelRequest, StepCx};
/// use agent::provider::http::{HttpModel, HttpOptions, Proxy, UsageReport};
/// use std::sync::{Arc, Mutex};
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
/// let log = Arc::new(Mutex::new(Vec::new()));
/// let lines = log.clone();
/// let options = HttpOptions::default().with_proxy(Proxy::None).on_usage(move |report: &UsageReport<'_>| {
///     lines.lock().unwrap().push(format!("{}: {} tokens", report.model.model, report.usage.total));
/// });
/// let model = HttpModel::builder("ollama/qwen3").base_url(server).options(options).build()?;
/// model.call(&StepCx::new(), &ModelRequest::new([Message::user("Hello!")])).await?;
/// assert_eq!(*log.lock().unwrap(), ["qwen3: 15 tokens"]);
/// # Ok(()) }
/// # #[cfg(not(feature = "openai"))] fn main() {}
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UsageReport<'a> {
    /// Who was asked.
    pub model: &'a ModelInfo,
    /// The counts, with the provider's own report in `raw`.
    pub usage: &'a Usage,
}

impl Default for HttpOptions {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect_timeout: seconds(60),
            first_byte_timeout: seconds(300),
            idle_timeout: seconds(300),
            total_timeout: seconds(3600),
            max_retries: 2,
            first_delay: Duration::from_millis(500),
            max_delay: seconds(8),
            max_asked_delay: seconds(120),
            limits: ReplyLimits::default(),
            proxy: Proxy::default(),
            user_agent: concat!(env!("CARGO_PKG_NAME"), "-rs/", env!("CARGO_PKG_VERSION")).to_owned(),
            on_retry: None,
            on_usage: None,
            on_traffic: None,
        }
    }
}

impl HttpOptions {
    /// Sets how long a connection may take; 60 s by default.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long the first byte may take; 5 min by default.
    pub fn with_first_byte_timeout(mut self, timeout: Duration) -> Self {
        self.first_byte_timeout = timeout;
        self
    }

    /// Sets how long an answer may be silent between two of its pieces; 5 min by default.
    pub fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets how long everything may take, retries and pauses included; 1 h by default.
    pub fn with_total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// Sets how often a request is sent again at most; twice by default.
    pub fn with_max_retries(mut self, retries: u32) -> Self {
        self.max_retries = retries;
        self
    }

    /// Sets how much of an answer is read; 256 MiB by default.
    pub fn with_limits(mut self, limits: ReplyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets what stands between; what the environment says by default.
    pub fn with_proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// Calls this before each pause that a retry begins with. It must not block.
    pub fn on_retry(mut self, listener: impl Fn(&Retry<'_>) + Send + Sync + 'static) -> Self {
        self.on_retry = Some(Arc::new(listener));
        self
    }

    /// Calls this after each reply whose provider said what it took; of one that broke off, as far as that was said. It must
    /// not block.
    ///
    /// ```
    /// # #[cfg(feature = "openai")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::message::Message;
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::provider::http::{HttpModel, HttpOptions, Proxy};
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
    /// let options = HttpOptions::default().with_proxy(Proxy::None).on_usage(move |report| {
    ///     sum.fetch_add(report.usage.total, Ordering::Relaxed);
    /// });
    /// let model = HttpModel::builder("ollama/qwen3").base_url(server).options(options).build()?;
    /// model.call(&StepCx::new(), &ModelRequest::new([Message::user("Hello!")])).await?;
    /// assert_eq!(tokens.load(Ordering::Relaxed), 15);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "openai"))] fn main() {}
    /// ```
    pub fn on_usage(mut self, listener: impl Fn(&UsageReport<'_>) + Send + Sync + 'static) -> Self {
        self.on_usage = Some(Arc::new(listener));
        self
    }

    /// Calls this with everything that goes over the wire: requests with their bodies, answers piece by piece, retries
    /// included. Keys are taken out; what is said is not, so such a log is as private as the conversation. It must not block.
    ///
    /// ```
    /// use agent::provider::http::{HttpOptions, TrafficKind};
    ///
    /// let options = HttpOptions::default().on_traffic(|traffic| match &traffic.kind {
    ///     TrafficKind::Request { method, url, body, .. } => eprintln!("{} > {method} {url} {body}", traffic.exchange),
    ///     TrafficKind::Answer { status, .. } => eprintln!("{} < {status}", traffic.exchange),
    ///     TrafficKind::Body { text, .. } => eprintln!("{} < {text}", traffic.exchange),
    ///     TrafficKind::End { error: Some(error), .. } => eprintln!("{} < {error}", traffic.exchange),
    ///     _ => {}
    /// });
    /// # let _ = options;
    /// ```
    pub fn on_traffic(mut self, listener: impl Fn(&Traffic<'_>) + Send + Sync + 'static) -> Self {
        self.on_traffic = Some(Arc::new(listener));
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
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}
