//! The MCP client, which uses the tools of other programs.

mod call;
mod config;
mod connection;
mod era;
mod error;
mod failure;
mod forms;
mod last_words;
mod limits;
mod listing;
mod masked;
mod names;
mod notifications;
mod tool;
mod traffic;

pub use config::ClientConfig;
pub use error::{ConnectErrorKind, McpClientError};

use crate::tool::definition::ToolDefinition;
use crate::tool::set::IntoTools;
use crate::tool::set::ToolSet;
use config::Endpoint;
use connection::Connection;
use listing::{ToolListing, list};
use names::server_name;
use notifications::Notifications;
#[cfg(test)]
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;

/// The pause before the first attempt to reconnect. The pause doubles with each attempt, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Maximum number of attempts to reconnect without a stable connection. Then, calls fail at once for the time [`STABLE`].
const MAX_ATTEMPTS: u32 = 5;
/// A connection that lives this long is stable, and resets the count of attempts. After [`MAX_ATTEMPTS`], there is no attempt for this
/// time.
const STABLE: Duration = Duration::from_secs(60);
/// Minimum time between two refreshes of the list of tools after reports of unknown tools.
const MIN_RELIST_INTERVAL: Duration = Duration::from_secs(60);

/// A connection to an MCP server, whose tools become ordinary tools. Cloning is cheap. The connection ends when the last clone
/// and the last tool of the server are dropped.
///
/// ```no_run
/// use agent::mcp::{McpClient, ClientConfig};
/// use agent::{Assistant, ScriptedModel};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let files = McpClient::connect(ClientConfig::command("npx").args(["-y", "some-mcp-server"]).name("files")).await?;
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).tools(files.tools()).build()?;
/// for tool in assistant.definitions().iter() {
///     println!("{}", tool.name());                     // files__read_file, …
/// }
/// # Ok(()) }
/// ```
///
#[doc = include_str!("../../docs/mcp_client.md")]
#[derive(Clone)]
pub struct McpClient {
    inner: Arc<Inner>,
}

struct Inner {
    config: ClientConfig,
    /// The name of the server in tool names and errors: the configured name, or else a name derived from the name that the server reports,
    /// or else its URL or program.
    server: RwLock<String>,
    notifications: Arc<Notifications>,
    slot: Mutex<ConnectionSlot>,
    /// Locked by the call that connects again, for which other calls wait.
    reconnecting: tokio::sync::Mutex<()>,
    /// Notified by [`McpClient::close`], so that calls that wait for a connection fail.
    closing: tokio::sync::Notify,
    listing: RwLock<Arc<ToolListing>>,
    listed_at: Mutex<Option<Instant>>,
    is_reachable: AtomicBool,
}

#[derive(Default)]
struct ConnectionSlot {
    live: Option<Arc<Connection>>,
    attempts: u32,
    last_attempt: Option<Instant>,
}

impl ConnectionSlot {
    fn open(&self) -> Option<Arc<Connection>> {
        self.live.clone().filter(|live| !live.is_closed())
    }

    fn take_live(&mut self) -> Option<Arc<Connection>> {
        let live = self.live.take()?;
        if live.opened_at.elapsed() >= STABLE {
            self.attempts = 0;
        }
        Some(live)
    }
}

/// A report of the tools that a server offers: the tools that are used, and the reasons why the other tools are not used.
///
/// ```no_run
/// use agent::mcp::{McpClient, ClientConfig, ConnectReport};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let docs = McpClient::connect(ClientConfig::http("https://docs.example/mcp")).await?;
/// let report: ConnectReport = docs.report().await;
/// println!("{report}");                                // as text for people, or by its fields:
/// println!("{} tools over {:?}", report.tools.len(), report.protocol_version);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConnectReport {
    /// The name of the server in tool names and errors.
    pub name: String,
    /// The name and version that the server reports. `None` if it reports none, and while the client has no connection.
    pub server: Option<(String, String)>,
    /// The version of the protocol in use. `None` while the client has no connection.
    pub protocol_version: Option<String>,
    /// The tools that are used: the name of each tool on the server, and the name that models see.
    pub tools: Vec<(String, String)>,
    /// The tools that are not used: the name of each tool on the server, and the reason.
    pub left_out: Vec<(String, String)>,
}

impl McpClient {
    /// Connects to a server and lists its tools.
    ///
    /// # Errors
    /// Fails if the configuration is invalid or gives one name to two tools. Fails if the server cannot be started or reached in time,
    /// requires authorization, or does not speak the protocol. Fails if the list of tools is invalid, exceeds a limit, or takes too long.
    pub async fn connect(config: ClientConfig) -> Result<Self, McpClientError> {
        let server = config.name.clone().unwrap_or_else(|| endpoint_name(&config));
        let notifications = Arc::new(Notifications::default());
        let connection = Connection::open(&config, &server, &notifications).await?;
        let server = match (&config.name, connection.server()) {
            (None, Some((name, _))) => server_name(&name),
            _ => server,
        };
        let listing = list(&connection, &config, &server).await?;
        listing.check_renamed(&server, &config)?;
        let slot = ConnectionSlot { live: Some(Arc::new(connection)), ..ConnectionSlot::default() };
        let inner = Inner {
            config,
            server: RwLock::new(server),
            notifications,
            slot: Mutex::new(slot),
            reconnecting: tokio::sync::Mutex::default(),
            closing: tokio::sync::Notify::new(),
            listing: RwLock::new(Arc::new(listing)),
            listed_at: Mutex::default(),
            is_reachable: AtomicBool::new(true),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the name of the server in this program. The name of each of the server's tools begins with this name.
    pub fn name(&self) -> String {
        self.inner.server()
    }

    /// Returns the tools that the client uses according to the last listing, sorted by their names on the server. `tools![{ client }]`
    /// returns the same tools.
    pub fn tools(&self) -> ToolSet {
        self.tools_as(&self.inner.server())
    }

    /// Returns the same tools as [`tools`](Self::tools). Their names begin with `name` instead of the name of the server: `name__tool`.
    pub fn tools_as(&self, name: &str) -> ToolSet {
        tool::tools(&self.inner, name)
    }

    /// Returns a report of the tools that the server offers: the tools that are used, and the reasons why the other tools are not used.
    #[expect(clippy::unused_async, reason = "public")]
    pub async fn report(&self) -> ConnectReport {
        let live = self.inner.slot().live.clone();
        let live = live.as_ref();
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

    /// Returns `true` after a call could not connect, lost its connection or was not authorized, until a call receives a result. Calls are
    /// still sent.
    pub fn is_degraded(&self) -> bool {
        !self.inner.is_reachable.load(Ordering::Acquire)
    }

    /// Lists the tools again, and returns the tools that changed or are gone, each with its previous and its current definition. The
    /// current definition is `None` if the tool is no longer offered or used. New tools are not returned. A call lists the tools
    /// automatically if the server has reported a change, if the list has expired, or if the server reports an unknown tool.
    ///
    /// ```no_run
    /// use agent::mcp::{McpClient, ClientConfig};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let docs = McpClient::connect(ClientConfig::http("https://docs.example/mcp")).await?;
    /// for (before, now) in docs.refresh().await? {
    ///     println!("{} {}", before.name(), if now.is_some() { "changed" } else { "is gone" });
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails if the client cannot connect again or the tools cannot be listed. The previous list stays in use.
    pub async fn refresh(&self) -> Result<Vec<(ToolDefinition, Option<ToolDefinition>)>, McpClientError> {
        self.inner.refresh().await
    }

    /// Ends the connection. The input of a child process is closed. A process that does not end is terminated, and then killed. Calls
    /// that wait for a new connection fail. A later call connects again.
    pub async fn close(&self) {
        self.inner.closing.notify_waiters();
        let live = {
            let mut slot = self.inner.slot();
            let was_lost = slot.open().is_none();
            let live = slot.take_live();
            if !was_lost {
                slot.attempts = 0;
            }
            live
        };
        if let Some(connection) = live {
            connection.close().await;
        }
    }
}

/// Returns the URL or program of a server, which is its name until the server reports one.
fn endpoint_name(config: &ClientConfig) -> String {
    match &config.endpoint {
        Endpoint::Http(endpoint) => crate::address::shown_address(&endpoint.url),
        Endpoint::Command(endpoint) => endpoint.program.to_string_lossy().into_owned(),
    }
}

#[diagnostic::do_not_recommend]
impl IntoTools for McpClient {
    fn into_tools(self) -> ToolSet {
        self.tools()
    }
}

#[diagnostic::do_not_recommend]
impl IntoTools for &McpClient {
    fn into_tools(self) -> ToolSet {
        self.tools()
    }
}

impl Inner {
    fn server(&self) -> String {
        self.server.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn listing(&self) -> Arc<ToolListing> {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn slot(&self) -> MutexGuard<'_, ConnectionSlot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_reachable(&self, is_reachable: bool) {
        self.is_reachable.store(is_reachable, Ordering::Release);
    }

    fn has_token_source(&self) -> bool {
        matches!(&self.config.endpoint, Endpoint::Http(endpoint) if endpoint.token.is_some())
    }

    /// Returns the open connection, or opens a new one. Fails if the client is closed meanwhile.
    async fn connection(&self) -> Result<Arc<Connection>, McpClientError> {
        let open = self.slot().open();
        if let Some(open) = open {
            return Ok(open);
        }
        tokio::select! {
            biased;
            () = self.closing.notified() => {
                let (kind, reason) = (ConnectErrorKind::Unreachable, "the client was closed".to_owned());
                Err(McpClientError::Connect { server: self.server(), kind, reason })
            }
            connection = self.reconnect() => connection,
        }
    }

    /// Opens a new connection after a pause, and lists the tools again, unless another call has done so.
    async fn reconnect(&self) -> Result<Arc<Connection>, McpClientError> {
        let _turn = self.reconnecting.lock().await;
        let pause = {
            let mut slot = self.slot();
            if let Some(open) = slot.open() {
                return Ok(open);
            }
            slot.take_live();
            if slot.attempts >= MAX_ATTEMPTS {
                if slot.last_attempt.is_none_or(|at| at.elapsed() < STABLE) {
                    let reason = format!(
                        "{MAX_ATTEMPTS} attempts to reconnect failed, or led to a connection that was soon lost; the next \
                         attempt is possible in a minute"
                    );
                    return Err(McpClientError::Connect {
                        server: self.server(),
                        kind: ConnectErrorKind::GivenUp,
                        reason,
                    });
                }
                slot.attempts = 0;
            }
            FIRST_PAUSE.saturating_mul(1 << slot.attempts.min(10)).min(LONGEST_PAUSE)
        };
        // A call that is cancelled during the pause does not count as an attempt.
        tokio::time::sleep(pause).await;
        {
            let mut slot = self.slot();
            slot.attempts += 1;
            slot.last_attempt = Some(Instant::now());
        }
        let server = self.server();
        let connection = Arc::new(Connection::open(&self.config, &server, &self.notifications).await?);
        let listing = list(&connection, &self.config, &server).await?;
        self.replace(listing);
        self.slot().live = Some(connection.clone());
        Ok(connection)
    }

    /// Drops the connection if the client still uses it, so that the next call opens a new connection with a new token.
    fn drop_connection(&self, connection: &Arc<Connection>) {
        let mut slot = self.slot();
        if slot.live.as_ref().is_some_and(|live| Arc::ptr_eq(live, connection)) {
            slot.take_live();
        }
    }

    /// Lists the tools again if the server reported a change or the list has expired. If listing fails or is cancelled, the next call of
    /// this function tries again.
    async fn refresh_if_stale(&self) {
        let is_old = self.listing().fresh_until.is_some_and(|until| until <= Instant::now());
        if !self.notifications.take_change() && !is_old {
            return;
        }
        let mut unlisted = UnlistedChange(Some(&self.notifications));
        match self.refresh().await {
            Ok(_) => unlisted.0 = None,
            Err(error) => {
                tracing::warn!(server = %self.server(), %error, "the tools cannot be listed again");
            }
        }
    }

    /// Lists the tools again after the server reported an unknown tool, at most once in each [`MIN_RELIST_INTERVAL`].
    async fn refresh_for_unknown_tool(&self) {
        {
            let mut at = self.listed_at.lock().unwrap_or_else(PoisonError::into_inner);
            if at.is_some_and(|at| at.elapsed() < MIN_RELIST_INTERVAL) {
                return;
            }
            *at = Some(Instant::now());
        }
        if let Err(error) = self.refresh().await {
            tracing::warn!(server = %self.server(), %error, "the tools cannot be listed again");
        }
    }

    async fn refresh(&self) -> Result<Vec<(ToolDefinition, Option<ToolDefinition>)>, McpClientError> {
        let before = self.listing();
        let connection = self.connection().await?;
        // A new connection has already listed the tools.
        if Arc::ptr_eq(&before, &self.listing()) {
            let listing = list(&connection, &self.config, &self.server()).await?;
            self.replace(listing);
        }
        Ok(before.changes(&self.listing()))
    }

    fn replace(&self, listing: ToolListing) {
        let now = Arc::new(listing);
        let before = std::mem::replace(
            &mut *self.listing.write().unwrap_or_else(PoisonError::into_inner),
            now.clone(),
        );
        for (before, now) in before.changes(&now) {
            tracing::warn!(server = %self.server(), tool = %before.name(), is_gone = now.is_none(), "a server's tool changed");
        }
    }
}

/// A reported change of the list of tools. Unless the field is `None`, a drop reports the change again for the next call.
struct UnlistedChange<'a>(Option<&'a Notifications>);

impl Drop for UnlistedChange<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|notifications| notifications.list_changed());
    }
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient")
            .field("name", &self.inner.server())
            .field("tools", &self.inner.listing().tools.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ConnectReport {
    /// Formats the report for people: a line with the number of tools, and a line for each tool that is used or left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} tools", self.name, self.tools.len())?;
        for (tool, shown_as) in &self.tools {
            write!(f, "\n  {tool} as {shown_as}")?;
        }
        for (tool, reason) in &self.left_out {
            write!(f, "\n  {tool} is left out: {reason}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Inner {
    fn unconnected(config: ClientConfig) -> Self {
        let listing = ToolListing { tools: BTreeMap::new(), left_out: Vec::new(), fresh_until: None };
        Self {
            server: RwLock::new(endpoint_name(&config)),
            config,
            notifications: Arc::default(),
            slot: Mutex::default(),
            reconnecting: tokio::sync::Mutex::default(),
            closing: tokio::sync::Notify::new(),
            listing: RwLock::new(Arc::new(listing)),
            listed_at: Mutex::default(),
            is_reachable: AtomicBool::new(true),
        }
    }
}
