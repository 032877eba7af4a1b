//! Serve your tools to other programs.
//!
//! ```no_run
//! use agent::mcp::{Server, server::{Bearer, Caller}};
//! use agent::{tool, tools};
//!
//! /// Adds two numbers.
//! #[tool(read_only)]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // For a program that starts this one:
//! Server::new(tools![add]).serve_stdio().await?;
//!
//! // For programs on this machine, at http://127.0.0.1:8080/mcp:
//! Server::new(tools![add]).serve(([127, 0, 0, 1], 8080)).await?;
//!
//! // For the world, inside of your own application: `axum::Router::new().nest_service("/mcp", service)`.
//! let service = Server::new(tools![add])
//!     .name("calculator")
//!     .authenticator(Bearer::new([("s3cret", Caller::new("ann"))]))
//!     .allowed_hosts(["tools.example"])
//!     .into_service()?;
//! # Ok(()) }
//! ```
//!
//! # How a request is handled
//!
//! Over HTTP the checks run in this order: `Host` and `Origin` (403), the method (405), the [`Authenticator`] (401 or 403, with a
//! challenge), the [`ToolLoader`] (503), the body with its limits of size and time (413, 408), its form (400), the call. The body
//! of a request without a valid token is never read. A panic of an authenticator or a loader is answered with 500. The bodies of 400, 401,
//! 403, 500 and 503 are JSON-RPC errors, with the codes of [`ErrorCode`](crate::mcp::ErrorCode).
//!
//! | request or result | answer |
//! | --- | --- |
//! | an unknown tool, or one that this caller does not have | error -32602 |
//! | arguments that do not fit | a result with `isError` and the full report |
//! | an error of the tool, a timeout, or a busy server | a result with `isError` |
//! | a panic, a result that does not fit its schema, an error of a tool with `redact_errors` | the same, with a reference to the log entry instead of the reason |
//! | a capability that the client lacks ([`RequestInfo::require`]) | error -32021 |
//!
//! Tools receive the [`Caller`], the values added [with](Caller::with) it, and the [`RequestInfo`] as parameters by reference.
//! The [state](Server::state) of the server is available, too. Missing state is an error when the server is built.
//!
//! Approval rules of tools do not apply here: the client asks its user.
//!
//! A tool whose result is not an object, such as a list, is shown with an output schema and a structured result that have it as `result`,
//! because clients of the older versions take only objects: `{"result": [1, 2]}`. The schema is marked by `x-fastmcp-wrap-result`, as
//! FastMCP marks it, so that its clients and this library's return the list itself.
//!
//! Nothing is kept for a client that does not come back. In the older form of the protocol a client gets a session id at `initialize`, for
//! one purpose: it cancels a call by a notification in a request of its own, which has to name the session of the call. Requests without
//! a session are answered as well, and a session that another process named is as good, so that several processes can stand behind one
//! address; there a cancellation reaches the call only in the process that runs it. Where callers are authenticated, a session is also
//! bound to its caller. In 2026-07-28 a client cancels a call by ending its request.

mod bearer;
mod call;
mod caller;
mod catalogue;
mod gate;
mod handler;
mod http;
mod limits;
mod loader;
mod metadata;
mod progress;
mod request_info;
mod running;
mod stdio;

pub use self::http::{HttpLayer, HttpService, Mounted, RequestError, ResponseBody};
pub use bearer::{Bearer, Token};
pub use caller::{AuthRefusal, Authenticator, Caller, RequestHead};
pub use gate::ServerHandle;
pub use limits::ServerLimits;
pub use loader::{LoadError, ToolLoader};
pub use metadata::ResourceMetadata;
pub use request_info::{ClientCapability, MissingCapability, RequestInfo};

use self::http::HostPolicy;
use crate::args::{CoercionPolicy, CoercionRule, PlanOptions};
use crate::panics::catch_future;
use crate::tool::set::IntoTools;
use crate::tool::state::{DuplicateState, StateMap};
use crate::{Registry, RegistryError, RegistryProblem, StateKey, ToolContext, ToolSet};
use catalogue::{Catalogue, Catalogues};
use gate::Quota;
use handler::Visit;
use rmcp::model::{Implementation, MetaObject, ServerCapabilities, ServerConfig};
use running::RunningCalls;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// An MCP server, which serves tools to other programs. See [the module](self).
///
/// ```
/// use agent::mcp::Server;
/// use agent::{tool, tools};
///
/// struct Prices;
///
/// /// Looks up a price, in cents.
/// #[tool(read_only)]
/// fn price(article: String, _prices: &Prices) -> u32 {
///     article.len() as u32 * 100
/// }
///
/// // What is missing is found here, not when somebody calls.
/// assert!(Server::new(tools![price]).allow_anonymous().into_service().is_err());
/// let server = Server::new(tools![price]).name("shop").version("2.1.0").state(Prices);
/// server.allow_anonymous().into_service()?;
/// # Ok::<(), agent::mcp::server::ServerError>(())
/// ```
///
#[doc = include_str!("../../docs/mcp_server.md")]
#[must_use = "serve it, or turn it into a service"]
pub struct Server {
    tools: Tools,
    name: String,
    version: String,
    title: Option<String>,
    instructions: Option<String>,
    state: StateMap,
    duplicate: Option<DuplicateState>,
    authenticator: Option<Arc<dyn Authenticator>>,
    is_open: bool,
    origins: Vec<String>,
    hosts: Option<Vec<String>>,
    metadata: Option<ResourceMetadata>,
    list_ttl: Duration,
    options: PlanOptions,
    limits: ServerLimits,
    handle: ServerHandle,
}

/// Some hosts send every list and object as text, and no report can change that.
fn default_options() -> PlanOptions {
    PlanOptions::default().coercion(CoercionPolicy::strict().allow(CoercionRule::JsonTextDecoded))
}

enum Tools {
    Fixed(ToolSet),
    Loaded(Arc<dyn ToolLoader>),
}

/// A built server: what all its requests share.
struct Shared {
    config: ServerConfig,
    /// The server information that is sent with each result.
    meta: MetaObject,
    loader: Arc<dyn ToolLoader>,
    authenticator: Option<Arc<dyn Authenticator>>,
    /// The caller where callers are not authenticated.
    local: Caller,
    hosts: HostPolicy,
    metadata: Option<ResourceMetadata>,
    limits: ServerLimits,
    state: StateMap,
    /// Whether lists may differ between callers.
    is_private: bool,
    list_ttl_ms: u64,
    catalogues: Catalogues,
    calls: Arc<Quota>,
    /// Limits the calls whose arguments are refused.
    refusals: Arc<Quota>,
    listeners: Arc<Quota>,
    running: Arc<RunningCalls>,
    handle: ServerHandle,
}

impl Server {
    /// Creates a server that offers these tools to every caller.
    pub fn new(tools: impl IntoTools) -> Self {
        Self::of(Tools::Fixed(tools.into_tools()))
    }

    /// Creates a server whose tools depend on the caller.
    pub fn with_loader(loader: impl ToolLoader) -> Self {
        Self::of(Tools::Loaded(Arc::new(loader)))
    }

    fn of(tools: Tools) -> Self {
        Self {
            tools,
            name: "MCP Server".to_owned(),
            version: "1.0.0".to_owned(),
            title: None,
            instructions: None,
            state: StateMap::default(),
            duplicate: None,
            authenticator: None,
            is_open: false,
            origins: Vec::new(),
            hosts: None,
            metadata: None,
            list_ttl: Duration::ZERO,
            options: PlanOptions::default(),
            limits: ServerLimits::default(),
            handle: ServerHandle::new(),
        }
    }

    /// Sets the name of the server. Default: `MCP Server`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the version of the server. Default: `1.0.0`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets a human-readable name. Default: none.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets what a model should know before it uses the tools. Default: none.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Adds a value that tools receive as `&T`. A value of the same type that the caller [has](Caller::with) takes precedence.
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.shared_state(Arc::new(value))
    }

    /// Adds a shared value, or one behind a trait: tools receive `Arc<dyn Clock>` as `&dyn Clock`.
    pub fn shared_state<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        if let Err(twice) = self.state.insert(value) {
            self.duplicate.get_or_insert(twice);
        }
        self
    }

    /// Sets who authenticates callers. Without an authenticator every caller is `anonymous`, and only hosts of this machine are accepted.
    pub fn authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticator = Some(Arc::new(authenticator));
        self
    }

    /// Answers everybody on any network without authentication. Use it for public tools, or behind a proxy that authenticates.
    pub fn allow_anonymous(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// Sets the web pages that may send requests, each with its port or `*`: `https://app.example:443`, `http://localhost:*`. A
    /// page of the server's own host is always accepted, and programs other than browsers send no origin.
    pub fn allowed_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Sets the names under which the server is reached, with a specific port or for any: `tools.example`, `localhost:8080`. By
    /// default only the names of this machine are accepted, which prevents DNS rebinding: pages whose own name resolves to this
    /// machine.
    pub fn allowed_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts.get_or_insert_default().extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Sets the document that tells clients where to get tokens. It is served without authentication.
    pub fn resource_metadata(mut self, metadata: ResourceMetadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Sets how long clients may cache the list of tools. By default they may not cache it.
    pub fn list_ttl(mut self, ttl: Duration) -> Self {
        self.list_ttl = ttl;
        self
    }

    /// Sets how the arguments of tools are checked that do not say so themselves. Default: the policy
    /// `strict + json_text_decoded`, because some hosts send lists, maps and objects as JSON text. A place that also takes text
    /// keeps it. The same holds for the tools that a [loader](ToolLoader) returns.
    ///
    /// ```
    /// use agent::args::{CoercionPolicy, PlanOptions};
    /// use agent::mcp::Server;
    /// use agent::tools;
    ///
    /// let server = Server::new(tools![]).options(PlanOptions::default().coercion(CoercionPolicy::strict()));
    /// ```
    pub fn options(mut self, options: PlanOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the limits on what the server spends on its callers.
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns a handle that notifies the running server of changed tools, and ends it.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Builds a service to mount at a path of your own application: with `Router::nest_service("/mcp", service)` of axum, or with
    /// anything else that accepts a `tower_service::Service<http::Request<_>>`.
    ///
    /// The document of [`resource_metadata`](Self::resource_metadata) has another path on the same host. Mount a clone there as
    /// well, `Router::route_service("/.well-known/oauth-protected-resource/mcp", service.clone())`, or use
    /// [`into_layer`](Self::into_layer).
    ///
    /// # Errors
    /// Fails when the tools are invalid or lack state, when an allowed origin or host cannot be parsed, or when the server would
    /// answer everybody without [`allow_anonymous`](Self::allow_anonymous).
    pub fn into_service(self) -> Result<HttpService, ServerError> {
        Ok(HttpService::new(Arc::new(self.build()?)))
    }

    /// Builds a layer around an application. It answers requests to `path` and to the path of the
    /// [metadata](Self::resource_metadata); everything else goes to the application unchanged and without authentication.
    ///
    /// # Errors
    /// As [`into_service`](Self::into_service).
    pub fn into_layer(self, path: impl Into<String>) -> Result<HttpLayer, ServerError> {
        Ok(HttpLayer::new(self.into_service()?, path.into()))
    }

    /// Serves at `http://ADDRESS/mcp` until the [handle](Self::handle) ends the server.
    ///
    /// It prints nothing, but logs the address (`tracing`, level `INFO`) when it takes connections. A program that says so
    /// itself calls [`bind`](Self::bind), which also tells the port that port 0 has become.
    ///
    /// # Errors
    /// Fails as [`into_service`](Self::into_service) does, and when the address cannot be bound. An address that other machines
    /// can reach also needs an [authenticator](Self::authenticator) or [`allow_anonymous`](Self::allow_anonymous).
    pub async fn serve(self, address: impl Into<SocketAddr>) -> Result<(), ServerError> {
        let listener = self.bind(address).await?;
        listener.run().await
    }

    /// Binds the address without serving yet. When this completes, the address accepts connections, and port 0 has become a real one.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub async fn bind(self, address: impl Into<SocketAddr>) -> Result<BoundServer, ServerError> {
        let address = address.into();
        if !address.ip().is_loopback() && self.authenticator.is_none() && !self.is_open {
            return Err(ServerError::Anonymous { place: address.to_string() });
        }
        let layer = self.into_layer("/mcp")?;
        http::bind(layer, address).await.map_err(|source| ServerError::Bind { address, source })
    }

    /// Serves over standard input and output, until the input ends or the [handle](Self::handle) ends the server. Nothing else
    /// may write to standard output. The only caller is whoever started the program; the authenticator is not called.
    ///
    /// # Errors
    /// As [`into_service`](Self::into_service), and when the client does not speak the protocol.
    pub async fn serve_stdio(mut self) -> Result<(), ServerError> {
        // No other machine can reach it.
        self.is_open = true;
        stdio::serve(Arc::new(self.build()?), tokio::io::stdin(), tokio::io::stdout()).await
    }

    fn build(self) -> Result<Shared, ServerError> {
        if let Some(twice) = self.duplicate {
            return Err(ServerError::State(twice));
        }
        let hosts = HostPolicy::new(self.hosts.as_deref(), &self.origins)?;
        if self.authenticator.is_none() && !self.is_open && !hosts.is_local() {
            return Err(ServerError::Anonymous { place: "the allowed hosts".to_owned() });
        }
        let mut info = Implementation::new(self.name, self.version);
        info.title = self.title;
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let mut config = ServerConfig::new(capabilities).with_server_info(info);
        config.instructions = self.instructions;
        let mut meta = MetaObject::default();
        let who = config.server_info.clone();
        // It is made of texts only.
        meta.insert(
            "io.modelcontextprotocol/serverInfo".to_owned(),
            serde_json::to_value(who).unwrap_or_default(),
        );
        let options = self.options.or(default_options());
        let is_loaded = matches!(self.tools, Tools::Loaded(_));
        let catalogues = if is_loaded { Catalogues::with_options(options) } else { Catalogues::default() };
        let loader = match self.tools {
            Tools::Loaded(loader) => loader,
            Tools::Fixed(set) => {
                let tools = Registry::new(set.with_options(options))?;
                let brought = self.authenticator.as_ref().map(|asked| asked.provides()).unwrap_or_default();
                check_state(&tools, &self.state, &brought)?;
                catalogues.of(&tools).map_err(|(tool, reason)| ServerError::Tool { tool, reason })?;
                Arc::new(loader::Fixed(tools))
            }
        };
        let limits = self.limits;
        Ok(Shared {
            config,
            meta,
            loader,
            is_private: is_loaded || self.authenticator.is_some(),
            authenticator: self.authenticator,
            local: Caller::anonymous(),
            hosts,
            metadata: self.metadata,
            state: self.state,
            list_ttl_ms: u64::try_from(self.list_ttl.as_millis()).unwrap_or(u64::MAX),
            catalogues,
            calls: Quota::new(limits.calls, limits.calls_per_caller),
            refusals: Quota::new(limits.calls, limits.calls_per_caller),
            listeners: Quota::new(limits.listeners, limits.listeners_per_caller),
            running: Arc::default(),
            limits,
            handle: self.handle,
        })
    }
}

/// Checks that every tool finds its state, in the server or with each caller.
fn check_state(tools: &Registry, state: &StateMap, brought: &[StateKey]) -> Result<(), ServerError> {
    let info = Arc::new(RequestInfo::none());
    let own = call::own_state(&Caller::anonymous(), info).over(state);
    let cx = ToolContext::builder().states(&own).build().map_err(ServerError::State)?;
    let Err(missing) = tools.check_state(&cx) else { return Ok(()) };
    let is_brought = |problem: &RegistryProblem| match problem {
        RegistryProblem::MissingState { state, .. } => brought.contains(state),
        _ => false,
    };
    let left = missing.problems().iter().filter(|problem| !is_brought(problem)).cloned().collect();
    Ok(RegistryError::none_of(left)?)
}

/// Why a request is not served. The reason is for the log.
enum Unserved {
    /// The application says so, or takes too long.
    Unavailable(String),
    /// Code of the application panicked.
    Panicked(String),
}

impl Unserved {
    fn reason(&self) -> &str {
        match self {
            Self::Unavailable(reason) | Self::Panicked(reason) => reason,
        }
    }
}

impl Shared {
    /// Loads the tools of a caller, and their form for clients.
    async fn load(&self, caller: Caller, head: &RequestHead) -> Result<Visit, Unserved> {
        let loaded = catch_future(|| self.loader.load(&caller, head)).await;
        let loaded = loaded
            .map_err(|panic| Unserved::Panicked(format!("the loader of the tools panicked: {panic}")))?;
        let tools = loaded.map_err(|error| Unserved::Unavailable(error.to_string()))?;
        let (tools, catalogue): (Registry, Arc<Catalogue>) =
            self.catalogues.of(&tools).map_err(|(tool, reason)| {
                Unserved::Unavailable(format!("tool `{tool}` cannot be shown: {reason}"))
            })?;
        Ok(Visit { caller, tools, catalogue, arguments: None, session: None })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

pub use self::http::BoundServer;

/// An error of building or running a server.
///
/// ```
/// use agent::mcp::{Server, server::ServerError};
/// use agent::tools;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// // Where others can reach it, somebody has to be asked who they are.
/// let error = Server::new(tools![]).bind(([0, 0, 0, 0], 0)).await.unwrap_err();
/// assert!(matches!(error, ServerError::Anonymous { .. }));
/// # }
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The tools are invalid, or lack state.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// A tool cannot be shown to clients.
    #[error("tool `{tool}` cannot be served: {reason}")]
    #[non_exhaustive]
    Tool {
        /// The name of the tool.
        tool: String,
        /// Why it cannot be shown.
        reason: String,
    },
    /// State of one type was added twice.
    #[error(transparent)]
    State(DuplicateState),
    /// An allowed origin or host cannot be parsed.
    #[error("{entry:?} allows nothing: write {expected}")]
    #[non_exhaustive]
    Allowed {
        /// The entry as it was given.
        entry: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The server would answer everybody on a network.
    #[error("{place} can be reached from elsewhere: set an authenticator, or call `allow_anonymous`")]
    #[non_exhaustive]
    Anonymous {
        /// Where it would be reachable.
        place: String,
    },
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    #[non_exhaustive]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why it cannot be bound.
        source: std::io::Error,
    },
    /// The other side does not speak the protocol, or has disconnected.
    #[error("the connection cannot be served: {reason}")]
    #[non_exhaustive]
    Connection {
        /// What happened.
        reason: String,
    },
}

crate::error_text::debug_is_the_sentence!(ServerError);
