//! Serves tools to other programs.

mod ask;
mod bearer;
mod built;
mod call;
mod caller;
mod catalogue;
mod error;
mod handle;
mod handler;
mod http;
mod limits;
mod loader;
mod metadata;
mod progress;
mod request_info;
mod running;
mod stdio;

pub use self::http::{BoundServer, HttpService, Mounted, RequestError, ResponseBody};
pub use bearer::{Bearer, Token};
pub use caller::{AuthRefusal, Authenticator, Caller, RequestHead};
pub use error::McpServerError;
pub use handle::ServerHandle;
pub use limits::ServerLimits;
pub use loader::ToolLoader;
pub use metadata::ResourceMetadata;
pub use request_info::{ClientCapability, RequestInfo};

use crate::args::{CoercionPolicy, CoercionRule, PlanOptions};
use crate::mcp::trace_context::TraceContext;
use crate::serve::{HostPolicy, Quota};
use crate::tool::set::IntoTools;
use crate::tool::state::StateMap;
use crate::tool::{
    context::ToolContext,
    problem::{RegistryError, RegistryProblem},
    registry::Registry,
    set::ToolSet,
    state::StateKey,
};
use built::BuiltServer;
use catalogue::CatalogueCache;
use rmcp::model::{Implementation, MetaObject, RequestStateCodec, ServerCapabilities, ServerConfig};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tower_layer::Layer;

/// An MCP server, which serves tools to other programs. See [the module](crate::mcp).
///
/// ```
/// use agent::mcp::McpServer;
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
/// // Missing state is an error here, not in a call.
/// assert!(McpServer::new(tools![price]).allow_anonymous().into_service().is_err());
/// let server = McpServer::new(tools![price]).name("shop").version("2.1.0").state(Prices);
/// server.allow_anonymous().into_service()?;
/// # Ok::<(), agent::mcp::McpServerError>(())
/// ```
///
#[doc = include_str!("../../docs/mcp_server.md")]
#[must_use = "a server does nothing until it is served or built into a service"]
pub struct McpServer {
    tools: ToolSource,
    name: String,
    version: String,
    title: Option<String>,
    instructions: Option<String>,
    state: StateMap,
    duplicate: Option<StateKey>,
    authenticator: Option<Arc<dyn Authenticator>>,
    is_open: bool,
    origins: Vec<String>,
    hosts: Option<Vec<String>>,
    metadata: Option<ResourceMetadata>,
    list_ttl: Duration,
    options: PlanOptions,
    limits: ServerLimits,
    handle: ServerHandle,
    on_trace: Option<Arc<TraceObserver>>,
    state_key: Option<Vec<u8>>,
}

/// Links the current span with the trace of a client.
pub(super) type TraceObserver = dyn Fn(&TraceContext) + Send + Sync;

/// Returns the options for tools without options. Some hosts always send lists and objects as text, so JSON in texts is decoded.
fn default_options() -> PlanOptions {
    PlanOptions::default().coercion(CoercionPolicy::strict().allow(CoercionRule::JsonTextDecoded))
}

enum ToolSource {
    Fixed(ToolSet),
    Loaded(Arc<dyn ToolLoader>),
}

impl McpServer {
    /// Creates a server that offers these tools to every caller.
    pub fn new(tools: impl IntoTools) -> Self {
        Self::of(ToolSource::Fixed(tools.into_tools()))
    }

    /// Creates a server whose tools depend on the caller.
    pub fn with_loader(loader: impl ToolLoader) -> Self {
        Self::of(ToolSource::Loaded(Arc::new(loader)))
    }

    fn of(tools: ToolSource) -> Self {
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
            on_trace: None,
            state_key: None,
        }
    }

    /// Sets the name of the server. Default: `MCP McpServer`.
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

    /// Sets instructions that a model should read before it uses the tools. Default: none.
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

    /// Sets the authenticator of callers. Without one, every caller is `anonymous`, and only hosts of this machine are accepted.
    pub fn authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticator = Some(Arc::new(authenticator));
        self
    }

    /// Allows requests from any network without authentication. Use it for public tools, or behind a proxy that authenticates.
    pub fn allow_anonymous(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// Sets the web pages that may send requests, each with its port or `*`: `https://app.example:443`, `http://localhost:*`. A
    /// page of the server's host is always accepted, and programs other than browsers send no origin.
    pub fn allowed_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Sets the accepted host names of the server, with or without a port: `tools.example`, `localhost:8080`. By default only the
    /// names of this machine are accepted, which prevents DNS rebinding: requests of web pages whose host name resolves to this
    /// machine.
    pub fn allowed_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts.get_or_insert_default().extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Sets the document that names the issuers of tokens. It is served without authentication.
    pub fn resource_metadata(mut self, metadata: ResourceMetadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Calls a function with the place in a trace that the client sends with a call, in the span `mcp.call`, which surrounds the call. With
    /// `tracing-opentelemetry`, it extracts a context from these values, and sets it as the parent of the current span. Without it, calls have
    /// no such span, and what clients send is ignored.
    ///
    /// ```
    /// use agent::mcp::{McpServer, TraceContext};
    /// use agent::tools;
    ///
    /// let server = McpServer::new(tools![]).on_trace_context(|trace: &TraceContext| println!("{}", trace.traceparent()));
    /// # let _ = server;
    /// ```
    pub fn on_trace_context(mut self, link: impl Fn(&TraceContext) + Send + Sync + 'static) -> Self {
        self.on_trace = Some(Arc::new(link));
        self
    }

    /// Sets the key, of at least 32 bytes, that seals what a client keeps while its user answers a [question](crate::ToolContext::ask). By
    /// default it is random for each process: set it if several processes serve the same clients.
    ///
    /// Clients that declare `elicitation` with forms are asked. In the version 2026-07-28, a call that asks ends with `input_required`; the
    /// client repeats it with the answers, within ten minutes, and the body starts again. In the older versions, only a client on
    /// standard input is asked, while the body waits.
    ///
    /// ```
    /// use agent::mcp::McpServer;
    /// use agent::tools;
    ///
    /// let server = McpServer::new(tools![]).state_key([7; 32]);          // of your secret store
    /// # let _ = server;
    /// ```
    pub fn state_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.state_key = Some(key.into());
        self
    }

    /// Sets the time for which clients may cache the list of tools. By default they may not cache it.
    pub fn list_ttl(mut self, ttl: Duration) -> Self {
        self.list_ttl = ttl;
        self
    }

    /// Sets the options for the arguments of tools without options, including tools that a [loader](ToolLoader) returns. Default: the
    /// policy `strict + json_text_decoded`, because some hosts send lists, maps and objects as JSON text. A parameter that also
    /// accepts text keeps the text.
    ///
    /// ```
    /// use agent::args::{CoercionPolicy, PlanOptions};
    /// use agent::mcp::McpServer;
    /// use agent::tools;
    ///
    /// let server = McpServer::new(tools![]).options(PlanOptions::default().coercion(CoercionPolicy::strict()));
    /// ```
    pub fn options(mut self, options: PlanOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the limits on the resources that callers may use.
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns a handle that notifies the running server of changed tools, and ends it.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Builds a service to mount at a path of your application: with `Router::nest_service("/mcp", service)` of axum, or with
    /// any framework that accepts a `tower_service::Service<http::Request<_>>`.
    ///
    /// The document of [`resource_metadata`](Self::resource_metadata) has another path on the same host. Mount a clone there as
    /// well, `Router::route_service("/.well-known/oauth-protected-resource/mcp", service.clone())`, or use
    /// [`into_layer`](Self::into_layer).
    ///
    /// # Errors
    /// Fails if the tools are invalid or lack state, if an allowed origin or host cannot be parsed, or if the server would accept
    /// unauthenticated requests from other machines without [`allow_anonymous`](Self::allow_anonymous).
    pub fn into_service(self) -> Result<HttpService, McpServerError> {
        Ok(HttpService::new(Arc::new(self.build()?)))
    }

    /// Builds a layer around an application. It answers requests to `path` and to the path of the
    /// [metadata](Self::resource_metadata), and passes all others to the application unchanged and without authentication.
    ///
    /// ```
    /// use agent::mcp::McpServer;
    /// use agent::tools;
    /// use tower_layer::Layer as _;
    ///
    /// # let router = "an application";
    /// let layer = McpServer::new(tools![]).allow_anonymous().into_layer("/mcp")?;
    /// let application = layer.layer(router);                // `router.layer(layer)` of axum
    /// # let _ = application;
    /// # Ok::<(), agent::mcp::McpServerError>(())
    /// ```
    ///
    /// # Errors
    /// Fails as [`into_service`](Self::into_service) does.
    pub fn into_layer<S>(
        self,
        path: impl Into<String>,
    ) -> Result<impl Layer<S, Service = Mounted<S>> + Clone + Send + Sync + 'static, McpServerError> {
        Ok(http::HttpLayer::new(self.into_service()?, path.into()))
    }

    /// Serves at `http://ADDRESS/mcp` until the [handle](Self::handle) ends the server.
    ///
    /// The address is logged (`tracing`, level `INFO`) when the server accepts connections. A program that prints it calls
    /// [`bind`](Self::bind) instead, which returns the address with the assigned port.
    ///
    /// # Errors
    /// Fails as [`into_service`](Self::into_service) does, and if the address cannot be bound. An address that other machines
    /// can reach also needs an [authenticator](Self::authenticator) or [`allow_anonymous`](Self::allow_anonymous).
    pub async fn serve(self, address: impl Into<SocketAddr>) -> Result<(), McpServerError> {
        let listener = self.bind(address).await?;
        listener.run().await
    }

    /// Binds the address without serving yet. The address then accepts connections, and a port is assigned in place of port 0.
    ///
    /// # Errors
    /// Fails as [`serve`](Self::serve) does.
    pub async fn bind(self, address: impl Into<SocketAddr>) -> Result<BoundServer, McpServerError> {
        let address = address.into();
        if !address.ip().is_loopback() && self.authenticator.is_none() && !self.is_open {
            return Err(McpServerError::Anonymous { place: address.to_string() });
        }
        let layer = http::HttpLayer::new(self.into_service()?, "/mcp".to_owned());
        http::bind(layer, address).await.map_err(|source| McpServerError::Bind { address, source })
    }

    /// Serves over standard input and output, until the input ends or the [handle](Self::handle) ends the server. Nothing else
    /// may write to standard output. The only caller is the program that started this one. The authenticator is not called.
    ///
    /// # Errors
    /// Fails as [`into_service`](Self::into_service) does, and if the client does not speak the protocol.
    pub async fn serve_stdio(mut self) -> Result<(), McpServerError> {
        // Other machines cannot reach standard input.
        self.is_open = true;
        stdio::serve(Arc::new(self.build()?), tokio::io::stdin(), tokio::io::stdout()).await
    }

    fn build(self) -> Result<BuiltServer, McpServerError> {
        if let Some(twice) = self.duplicate {
            return Err(RegistryError::duplicate_state(twice).into());
        }
        let hosts = HostPolicy::new(self.hosts.as_deref(), &self.origins).map_err(|invalid| {
            McpServerError::Allowed { entry: invalid.entry, expected: invalid.expected }
        })?;
        if self.authenticator.is_none() && !self.is_open && !hosts.is_local() {
            return Err(McpServerError::Anonymous { place: "the allowed hosts".to_owned() });
        }
        let mut info = Implementation::new(self.name, self.version);
        info.title = self.title;
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let mut config = ServerConfig::new(capabilities).with_server_info(info);
        config.instructions = self.instructions;
        let mut meta = MetaObject::default();
        let info = config.server_info.clone();
        // Serialization does not fail: the information consists of texts.
        meta.insert(
            "io.modelcontextprotocol/serverInfo".to_owned(),
            serde_json::to_value(info).unwrap_or_default(),
        );
        let options = self.options.or(default_options());
        let is_loaded = matches!(self.tools, ToolSource::Loaded(_));
        let catalogues =
            if is_loaded { CatalogueCache::with_options(options) } else { CatalogueCache::default() };
        let loader = match self.tools {
            ToolSource::Loaded(loader) => loader,
            ToolSource::Fixed(set) => {
                let tools = Registry::new(set.with_options(options))?;
                let provided = self
                    .authenticator
                    .as_ref()
                    .map(|authenticator| authenticator.provides())
                    .unwrap_or_default();
                check_state(&tools, &self.state, &provided)?;
                catalogues.of(&tools).map_err(|(tool, reason)| McpServerError::Tool { tool, reason })?;
                Arc::new(loader::FixedLoader(tools))
            }
        };
        let limits = self.limits;
        let state_codec = state_codec(self.state_key)?;
        Ok(BuiltServer {
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
            state_codec,
            on_trace: self.on_trace,
        })
    }
}

/// Returns what seals the state of calls that ask: with this key, or a random one.
fn state_codec(key: Option<Vec<u8>>) -> Result<RequestStateCodec, McpServerError> {
    let unusable = |reason: String| McpServerError::StateKey { reason };
    let mut random = vec![0; 32];
    let key = if let Some(key) = key {
        key
    } else {
        getrandom::fill(&mut random).map_err(|error| unusable(error.to_string()))?;
        random
    };
    RequestStateCodec::try_new(key).map_err(|error| unusable(error.to_string()))
}

/// Checks that the state of every tool is in the server, or is provided with each caller.
fn check_state(tools: &Registry, state: &StateMap, provided: &[StateKey]) -> Result<(), McpServerError> {
    let info = Arc::new(RequestInfo::none());
    let own = call::own_state(&Caller::anonymous(), info).over(state);
    let cx = ToolContext::new().with_states(&own);
    let Err(missing) = tools.check_state(&cx) else { return Ok(()) };
    let is_provided = |problem: &RegistryProblem| match problem {
        RegistryProblem::MissingState { state, .. } => provided.contains(state),
        _ => false,
    };
    let unprovided = missing.problems().iter().filter(|problem| !is_provided(problem)).cloned().collect();
    Ok(RegistryError::none_of(unprovided)?)
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
