//! Use the tools of other programs as your own.
//!
//! ```no_run
//! use agent::mcp::{Client, client::ClientConfig};
//! use agent::{Registry, tools};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let docs = Client::connect(ClientConfig::http("https://docs.example/mcp").name("docs")).await?;
//! let files = Client::connect(ClientConfig::command("mcp-server-files").arg("/srv").name("files")).await?;
//! println!("{}", docs.report().await);
//! // A model sees `docs__search`, `files__read_file`, ….
//! let registry = Registry::new(tools![{ docs }, { files }])?;
//! # Ok(()) }
//! ```
//!
//! The schema of a foreign tool goes to the model unchanged, and arguments are checked against it on this side, with the same
//! coercions and the same report as for your own tools. A server that hangs, lies or sends too much causes an error, and does not
//! end the run.
//!
//! * A call whose connection broke is not repeated automatically, because it may have taken effect. The exception: the server
//!   says that the tool may be repeated, and the configuration [trusts](ClientConfig::trust_hints) the server.
//! * A child that died is started again by the next call, after half a second, then after twice as long each time, at most five times.
//! * A tool that changed since the model saw it is not called, unless [`ChangePolicy`] says otherwise. A call of a tool that is
//!   gone says that it is gone.
//! * The name of a server is short, because models read it before every tool: see [`ClientConfig::name`].
//! * Names of tools are shown in the characters that every provider accepts. If two names become one, the tool that has the name
//!   already keeps it, and the other is shown with a hash; [`Client::report`] lists both.

mod call;
mod config;
mod connection;
mod era;
mod error;
mod failure;
mod last_words;
mod listing;
mod masked;
mod names;
mod news;
mod tool;
mod traffic;

pub use config::{ChangePolicy, ClientConfig, ClientLimits, Era, ToolChange};
pub use error::{Challenge, ClientError, ConnectErrorKind};
pub use traffic::{Traffic, TrafficKind};

use crate::ToolSet;
use crate::tool::set::IntoTools;
use config::Place;
use connection::Connection;
use listing::{Listing, list};
use names::server_name;
use news::News;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;

/// Pause before a child is started again. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Attempts to reconnect before calls fail at once.
const TRIES: u32 = 5;
/// A connection that lasted this long counts as good, and resets the attempts.
const GOOD: Duration = Duration::from_secs(60);
/// Minimum time between lists that are requested because a tool seems to be gone.
const AT_TIMES: Duration = Duration::from_secs(60);

/// A connection to an MCP server, whose tools become ordinary tools. Cloning is cheap; the connection ends when the last clone
/// and the last of its tools are dropped.
///
/// ```no_run
/// use agent::mcp::{Client, client::ClientConfig};
/// use agent::{Assistant, ScriptedModel};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let files = Client::connect(ClientConfig::command("npx").args(["-y", "some-mcp-server"]).name("files")).await?;
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).tools(files.tools()).build()?;
/// for tool in assistant.definitions().iter() {
///     println!("{}", tool.name());                     // files__read_file, …
/// }
/// # Ok(()) }
/// ```
///
#[doc = include_str!("../../docs/mcp_client.md")]
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    config: ClientConfig,
    /// The name in tool names and errors; the server may report it once it is connected.
    server: RwLock<String>,
    news: Arc<News>,
    slot: tokio::sync::Mutex<Slot>,
    listing: RwLock<Arc<Listing>>,
    listed_at: std::sync::Mutex<Option<Instant>>,
    works: AtomicBool,
}

#[derive(Default)]
struct Slot {
    live: Option<Arc<Connection>>,
    tries: u32,
    last_try: Option<Instant>,
}

/// What a server offered, and which of its tools are used.
///
/// ```no_run
/// use agent::mcp::{Client, client::{ClientConfig, ConnectReport}};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let docs = Client::connect(ClientConfig::http("https://docs.example/mcp")).await?;
/// let report: ConnectReport = docs.report().await;
/// println!("{report}");                                // for people; or by its fields:
/// println!("{} tools over {:?}", report.tools.len(), report.protocol_version);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConnectReport {
    /// The name of the server in this program.
    pub name: String,
    /// The name and version that the server reports.
    pub server: Option<(String, String)>,
    /// The version of the protocol in use.
    pub protocol_version: Option<String>,
    /// The tools that are used: the server's name of each, and the name that models see.
    pub tools: Vec<(String, String)>,
    /// The tools that are not used.
    pub left_out: Vec<LeftOut>,
}

/// A tool of a server that is not used.
///
/// ```
/// use agent::mcp::client::ConnectReport;
///
/// /// Fails where something of a server is not used.
/// fn whole(report: &ConnectReport) -> Result<(), String> {
///     match report.left_out.first() {
///         Some(left) => Err(format!("{}: {}", left.tool, left.reason)),
///         None => Ok(()),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The server's name of the tool.
    pub tool: String,
    /// Why it is not used.
    pub reason: String,
}

impl Client {
    /// Connects to a server and lists its tools.
    ///
    /// # Errors
    /// Fails when the server cannot be reached in time, requires authorization or does not speak the protocol, or when its list
    /// does not end.
    pub async fn connect(config: ClientConfig) -> Result<Self, ClientError> {
        let server = config.name.clone().unwrap_or_else(|| place_name(&config));
        let news = Arc::new(News::default());
        let connection = Connection::open(&config, &server, &news).await?;
        let server = match (&config.name, connection.server()) {
            (None, Some((name, _))) => server_name(&name),
            _ => server,
        };
        let listing = list(&connection.peer, &config, &server).await?;
        listing.check_renamed(&server, &config)?;
        let slot = Slot { live: Some(Arc::new(connection)), ..Slot::default() };
        let inner = Inner {
            config,
            server: RwLock::new(server),
            news,
            slot: tokio::sync::Mutex::new(slot),
            listing: RwLock::new(Arc::new(listing)),
            listed_at: std::sync::Mutex::default(),
            works: AtomicBool::new(true),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the name of the server in this program: the first half of its tools' names.
    pub fn name(&self) -> String {
        self.inner.server()
    }

    /// Returns the server's tools as they are now, sorted by name. `tools![{ client }]` does the same.
    pub fn tools(&self) -> ToolSet {
        self.tools_as(&self.inner.server())
    }

    /// Returns the tools with another server name: `NAME__TOOL`.
    pub fn tools_as(&self, name: &str) -> ToolSet {
        tool::tools(&self.inner, name)
    }

    /// Returns what the server offered, which tools are used, and why the others are not.
    pub async fn report(&self) -> ConnectReport {
        let slot = self.inner.slot.lock().await;
        let live = slot.live.as_ref();
        let (name, listing) = (self.inner.server(), self.inner.listing());
        let tools = listing.names(&name, &self.inner.config);
        let left_out = listing.left_out.iter().cloned().chain(listing.nameless(&tools)).collect();
        ConnectReport {
            server: live.and_then(|connection| connection.server()),
            protocol_version: live.and_then(|connection| connection.protocol_version()),
            tools: tools.into_iter().collect(),
            left_out,
            name,
        }
    }

    /// Whether the last call did not reach the server. Calls are still attempted.
    pub fn is_degraded(&self) -> bool {
        !self.inner.works.load(Ordering::Acquire)
    }

    /// Lists the tools again and returns those that changed. This also happens automatically before the next call, when the
    /// server said that its list changed.
    ///
    /// # Errors
    /// Fails when the tools cannot be listed; the list from before stays in use.
    pub async fn refresh(&self) -> Result<Vec<ToolChange>, ClientError> {
        self.inner.refresh().await
    }

    /// Ends the connection. The input of a child is closed, then the child is asked to end, then it is killed. A later call
    /// connects again.
    pub async fn close(&self) {
        let live = self.inner.slot.lock().await.live.take();
        if let Some(connection) = live {
            connection.close().await;
        }
    }
}

/// Describes where a server is, for errors before it reported its name.
fn place_name(config: &ClientConfig) -> String {
    match &config.place {
        Place::Http(place) => crate::address::shown_address(&place.url),
        Place::Command(place) => place.program.to_string_lossy().into_owned(),
    }
}

#[diagnostic::do_not_recommend]
impl IntoTools for Client {
    fn into_tools(self) -> ToolSet {
        self.tools()
    }
}

#[diagnostic::do_not_recommend]
impl IntoTools for &Client {
    fn into_tools(self) -> ToolSet {
        self.tools()
    }
}

impl Inner {
    fn server(&self) -> String {
        self.server.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn listing(&self) -> Arc<Listing> {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn works(&self, works: bool) {
        self.works.store(works, Ordering::Release);
    }

    fn has_token_source(&self) -> bool {
        matches!(&self.config.place, Place::Http(place) if place.token.is_some())
    }

    /// Returns the connection, and makes a new one if it is gone.
    async fn connection(&self) -> Result<Arc<Connection>, ClientError> {
        let mut slot = self.slot.lock().await;
        if let Some(live) = slot.live.as_ref().filter(|live| !live.is_closed()) {
            return Ok(live.clone());
        }
        if let Some(dead) = slot.live.take()
            && dead.since.elapsed() >= GOOD
        {
            slot.tries = 0;
        }
        if slot.tries >= TRIES {
            if slot.last_try.is_none_or(|at| at.elapsed() < GOOD) {
                let reason = format!("it was tried {TRIES} times; the next try is in a minute");
                return Err(ClientError::Connect {
                    server: self.server(),
                    kind: ConnectErrorKind::GivenUp,
                    reason,
                });
            }
            slot.tries = 0;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << slot.tries.min(10)).min(LONGEST_PAUSE);
        slot.tries += 1;
        slot.last_try = Some(Instant::now());
        tokio::time::sleep(pause).await;
        let server = self.server();
        let connection = Arc::new(Connection::open(&self.config, &server, &self.news).await?);
        let listing = list(&connection.peer, &self.config, &server).await?;
        self.replace(listing);
        slot.live = Some(connection.clone());
        Ok(connection)
    }

    /// Drops the connection, so that the next call makes a new one with a new token.
    async fn forget(&self, connection: &Arc<Connection>) {
        let mut slot = self.slot.lock().await;
        if slot.live.as_ref().is_some_and(|live| Arc::ptr_eq(live, connection)) {
            slot.live = None;
        }
    }

    /// Lists the tools again if the server said that something changed, or if the list is too old. After a failure the next call
    /// tries again.
    async fn refresh_if_stale(&self) {
        let is_old = self.listing().fresh_until.is_some_and(|until| until <= Instant::now());
        if (self.news.take_change() || is_old)
            && let Err(error) = self.refresh().await
        {
            tracing::warn!(server = %self.server(), %error, "the tools cannot be listed again");
            self.news.list_changed();
        }
    }

    /// Lists the tools again because one seems to be gone, at most once in [`AT_TIMES`].
    async fn refresh_at_times(&self) {
        {
            let mut at = self.listed_at.lock().unwrap_or_else(PoisonError::into_inner);
            if at.is_some_and(|at| at.elapsed() < AT_TIMES) {
                return;
            }
            *at = Some(Instant::now());
        }
        if let Err(error) = self.refresh().await {
            tracing::warn!(server = %self.server(), %error, "the tools cannot be listed again");
        }
    }

    async fn refresh(&self) -> Result<Vec<ToolChange>, ClientError> {
        let connection = self.connection().await?;
        let listing = list(&connection.peer, &self.config, &self.server()).await?;
        Ok(self.replace(listing))
    }

    fn replace(&self, listing: Listing) -> Vec<ToolChange> {
        let now = Arc::new(listing);
        let before = std::mem::replace(
            &mut *self.listing.write().unwrap_or_else(PoisonError::into_inner),
            now.clone(),
        );
        let changes = before.changes(&now);
        for change in &changes {
            tracing::warn!(server = %self.server(), tool = %change.tool, is_gone = change.now.is_none(), "a server's tool changed");
        }
        changes
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("name", &self.inner.server())
            .field("tools", &self.inner.listing().tools.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ConnectReport {
    /// Formats the report for people, one line for each fact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} tools", self.name, self.tools.len())?;
        for (tool, shown_as) in &self.tools {
            write!(f, "\n  {tool} as {shown_as}")?;
        }
        for LeftOut { tool, reason } in &self.left_out {
            write!(f, "\n  {tool} is left out: {reason}")?;
        }
        Ok(())
    }
}
