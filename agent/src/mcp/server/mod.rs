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
mod metadata;
mod options;
mod progress;
mod request_info;
mod running;
mod stdio;

pub use bearer::Bearer;
pub use caller::{AuthRefusal, Authenticator, Caller};
pub use error::McpServerError;
pub use handle::ServerHandle;
pub use request_info::RequestInfo;

use self::http::{HttpLayer, HttpService, RequestError};
use crate::args::{CoercionPolicy, CoercionRule, PlanOptions};
use crate::serve::{HostPolicy, Quota};
use crate::tool::set::IntoTools;
use crate::tool::state::StateMap;
use crate::tool::{
    BoxFuture,
    context::ToolContext,
    problem::{RegistryError, RegistryProblem},
    registry::Registry,
    set::ToolSet,
    state::StateKey,
};
use ::http::{Request, Response};
use built::{BuiltServer, ToolLoader, TraceObserver};
use bytes::Bytes;
use catalogue::CatalogueCache;
use http_body::Body;
use limits::ServerLimits;
use metadata::ResourceMetadata;
use rmcp::model::{Implementation, MetaObject, RequestStateCodec, ServerCapabilities, ServerConfig};
use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

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
/// assert!(McpServer::new(tools![price]).allow_anonymous().into_service::<String>().is_err());
/// let server = McpServer::new(tools![price]).name("shop").version("2.1.0").state(Prices);
/// server.allow_anonymous().into_service::<String>()?;             // a router infers the body type
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

/// Returns the default options for arguments. Some MCP clients send lists and objects as JSON text, so these options decode JSON text.
fn default_options() -> PlanOptions {
    PlanOptions::default().coercion(CoercionPolicy::strict().allow(CoercionRule::JsonTextDecoded))
}

enum ToolSource {
    Fixed(ToolSet),
    Loaded(Arc<ToolLoader>),
}

impl McpServer {
    /// Creates a server that offers these tools to every caller.
    pub fn new(tools: impl IntoTools) -> Self {
        Self::of(ToolSource::Fixed(tools.into_tools()))
    }

    /// Creates a server whose tools depend on the caller. `loader` is called for each request. If it fails, the client receives an error
    /// without details, and the text of the error is logged.
    ///
    /// The returned tools must depend only on the caller and on stored data, never on earlier requests, because the protocol has no
    /// sessions. For example, if the tools depend on the path of the request, an [authenticator](Self::authenticator) [adds](Caller::with)
    /// the path to the caller. If possible, return clones of one [`Registry`] for equal sets, so that the list for clients is made once.
    ///
    /// ```
    /// use agent::mcp::{Caller, McpServer};
    /// use agent::{Registry, tool, tools};
    /// use std::future::ready;
    ///
    /// /// Says what time it is.
    /// #[tool]
    /// fn clock() -> String {
    ///     "noon".to_owned()
    /// }
    ///
    /// /// Deletes everything.
    /// #[tool]
    /// fn wipe() {}
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (all, few) = (Registry::new(tools![clock, wipe])?, Registry::new(tools![clock])?);
    /// let server = McpServer::with_loader(move |caller: Caller| {
    ///     ready(Ok(if caller.has_scope("admin") { all.clone() } else { few.clone() }))
    /// });
    /// # let _ = server; Ok(()) }
    /// ```
    pub fn with_loader<F, Fut>(loader: F) -> Self
    where
        F: Fn(Caller) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Registry, Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        Self::of(ToolSource::Loaded(Arc::new(move |caller| Box::pin(loader(caller)))))
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

    /// Sets the title, a human-readable name. Default: none.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets instructions that a model should read before it uses the tools. Default: none.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Adds a value that tools receive as `&T`. If the [caller](Caller::with) has a value of this type, tools receive the caller's value.
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.shared_state(Arc::new(value))
    }

    /// Adds a shared value or a trait object. Tools receive an `Arc<dyn Clock>` as `&dyn Clock`.
    pub fn shared_state<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        if let Err(twice) = self.state.insert(value) {
            self.duplicate.get_or_insert(twice);
        }
        self
    }

    /// Sets the authenticator of callers. Without one, every caller is `anonymous`, and only this machine may reach the server, unless
    /// [`allow_anonymous`](Self::allow_anonymous) is called.
    pub fn authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticator = Some(Arc::new(authenticator));
        self
    }

    /// Allows other machines to reach the server without an authenticator. Use this for public tools, or behind a proxy that authenticates.
    pub fn allow_anonymous(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// Adds origins of web pages that may send requests, each with a port or `*`: `https://app.example:443`, `http://localhost:*`. Pages of
    /// the server's own host are always accepted. Requests without an origin are accepted as well, because only browsers send origins.
    pub fn allowed_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Adds host names under which clients may reach the server, with or without a port: `tools.example`, `localhost:8080`. Without this
    /// call, only the names of this machine are accepted; with it, only the added names. This prevents DNS rebinding: requests of web pages
    /// whose host name resolves to this machine.
    pub fn allowed_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts.get_or_insert_default().extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Serves the protected-resource metadata of RFC 9728: the URLs of the issuers whose tokens the server accepts, and the scopes that
    /// tokens may have. `url` is the URL at which clients reach this server. The document is served without authentication, below
    /// `/.well-known/oauth-protected-resource`, and every challenge contains its URL. The name in the document is the [title](Self::title).
    ///
    /// ```
    /// use agent::mcp::{Bearer, Caller, McpServer};
    /// use agent::tools;
    ///
    /// let server = McpServer::new(tools![])
    ///     .authenticator(Bearer::new([("s3cret", Caller::new("ann").with_scope("tools"))]).required_scope("tools"))
    ///     .protected_resource("https://tools.example/mcp", ["https://login.example"], ["tools"]);
    /// # let _ = server;
    /// ```
    pub fn protected_resource<'a>(
        mut self,
        url: impl Into<String>,
        issuers: impl IntoIterator<Item = &'a str>,
        scopes: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let texts = |texts: &mut dyn Iterator<Item = &'a str>| texts.map(str::to_owned).collect();
        let (issuers, scopes) = (texts(&mut issuers.into_iter()), texts(&mut scopes.into_iter()));
        self.metadata = Some(ResourceMetadata::new(url.into(), issuers, scopes));
        self
    }

    /// Sets a function that links a call with the trace of its client. The function runs in the span `mcp.call` of each call with a valid
    /// `traceparent`. Its argument contains the valid values of `traceparent`, `tracestate` and `baggage` (W3C Trace Context and Baggage).
    /// With `tracing-opentelemetry`, a propagator extracts the context from the map, and the function sets the context as the parent of
    /// the current span. Without this function, calls have no span, and trace contexts of clients are ignored.
    ///
    /// ```
    /// use agent::mcp::McpServer;
    /// use agent::tools;
    ///
    /// let server = McpServer::new(tools![]).on_trace_context(|trace| println!("{:?}", trace.get("traceparent")));
    /// # let _ = server;
    /// ```
    pub fn on_trace_context(
        mut self,
        link: impl Fn(&HashMap<String, String>) + Send + Sync + 'static,
    ) -> Self {
        self.on_trace = Some(Arc::new(link));
        self
    }

    /// Sets the key, of at least 32 bytes, that signs the state of a call while a person answers a [question](crate::ToolContext::ask). By
    /// default, each process has a random key, so set a key if several processes serve the same clients.
    ///
    /// Only clients that declare `elicitation` with forms are asked. Since the version 2026-07-28, a call that asks ends with
    /// `input_required`. Within ten minutes, the client repeats the call with the answers, and the tool starts again. In older
    /// versions, questions are asked only over [standard input and output](Self::serve_stdio), and the tool waits for the answer.
    ///
    /// ```
    /// use agent::mcp::McpServer;
    /// use agent::tools;
    ///
    /// let server = McpServer::new(tools![]).state_key([7; 32]);          // a key from your secret store
    /// # let _ = server;
    /// ```
    pub fn state_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.state_key = Some(key.into());
        self
    }

    /// Sets the time for which clients may cache the list of tools. By default, they may not cache the list.
    pub fn list_ttl(mut self, ttl: Duration) -> Self {
        self.list_ttl = ttl;
        self
    }

    /// Sets the argument options of tools that set none themselves, including tools that a [loader](Self::with_loader) returns. Default:
    /// `strict + json_text_decoded`, because some hosts send lists, maps and objects as JSON text. Text parameters receive it undecoded.
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

    /// Returns a handle that notifies clients of changed tools, and shuts down the server.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Builds a service to mount at a path of your application: with `Router::nest_service("/mcp", service)` of axum, or with
    /// any framework that accepts a `tower_service::Service<http::Request<_>>`. The service never fails: every request has a response.
    /// Cloning the service is cheap. Take the [handle](Self::handle) before you build the service.
    ///
    /// The document of [`protected_resource`](Self::protected_resource) has another path on the same host. Mount a clone at that path as
    /// well, `Router::route_service("/.well-known/oauth-protected-resource/mcp", service.clone())`, or use
    /// [`into_layer`](Self::into_layer).
    ///
    /// # Errors
    /// Fails if the tools, their state, an allowed origin or host, or the [state key](Self::state_key) is invalid, or if the server would
    /// accept unauthenticated requests from other machines without [`allow_anonymous`](Self::allow_anonymous).
    pub fn into_service<B>(
        self,
    ) -> Result<
        impl Service<
            Request<B>,
            Response = Response<impl Body<Data = Bytes, Error = RequestError> + Send + use<B>>,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + use<B>,
        McpServerError,
    >
    where
        B: Body<Data: Send, Error: Send> + Send + 'static,
    {
        self.http_service()
    }

    fn http_service(self) -> Result<HttpService, McpServerError> {
        Ok(HttpService::new(Arc::new(self.build()?)))
    }

    /// Builds a layer around an application. The layer answers requests to `path` and to the path of the
    /// [metadata](Self::protected_resource), and passes all other requests to the application unchanged and without authentication.
    ///
    /// ```
    /// # use bytes::Bytes;
    /// # use http::{Request, Response};
    /// # use http_body_util::Full;
    /// # use std::{convert::Infallible, future::{Ready, ready}, task::{Context, Poll}};
    /// use agent::mcp::McpServer;
    /// use agent::tools;
    /// use tower_layer::Layer as _;
    /// use tower_service::Service;
    /// # #[derive(Clone)]
    /// # struct Router;
    /// # impl Service<Request<Full<Bytes>>> for Router {
    /// #     type Response = Response<Full<Bytes>>;
    /// #     type Error = Infallible;
    /// #     type Future = Ready<Result<Self::Response, Infallible>>;
    /// #     fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> { Poll::Ready(Ok(())) }
    /// #     fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future { ready(Ok(Response::new(request.into_body()))) }
    /// # }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (router, body) = (Router, Full::default());
    /// let layer = McpServer::new(tools![]).allow_anonymous().into_layer("/mcp")?;
    /// let mut application = layer.layer(router);            // `router.layer(layer)` of axum
    /// let response = application.call(Request::get("http://localhost/elsewhere").body(body)?).await?;
    /// assert_eq!(response.status(), 200);                   // of the application
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails in the same cases as [`into_service`](Self::into_service).
    pub fn into_layer<S, B, R>(
        self,
        path: &str,
    ) -> Result<
        impl Layer<
            S,
            Service = impl Service<
                Request<B>,
                Response = Response<impl Body<Data = Bytes, Error = RequestError> + Send + use<S, B, R>>,
                Error = S::Error,
                Future: Send + 'static,
            > + Clone
                      + Send
                      + Sync
                      + use<S, B, R>,
        > + Clone
        + Send
        + Sync
        + use<S, B, R>,
        McpServerError,
    >
    where
        S: Service<Request<B>, Response = Response<R>, Future: Send + 'static, Error: 'static>,
        S: Clone + Send + Sync + 'static,
        B: Body<Data: Send, Error: Send> + Send + 'static,
        R: Body<Data = Bytes, Error: Into<RequestError>> + Send + 'static,
    {
        Ok(HttpLayer::new(self.http_service()?, path))
    }

    /// Serves at `http://ADDRESS/mcp` until the [handle](Self::handle) shuts down the server.
    ///
    /// The address is logged (`tracing`, level `INFO`) when the server accepts connections. A program that needs the address calls
    /// [`bind`](Self::bind) instead, which returns the address with the assigned port.
    ///
    /// # Errors
    /// Fails in the same cases as [`into_service`](Self::into_service), and if the address cannot be bound. An address that other machines
    /// can reach requires an [authenticator](Self::authenticator) or [`allow_anonymous`](Self::allow_anonymous).
    pub async fn serve(self, address: impl Into<SocketAddr>) -> Result<(), McpServerError> {
        let (_, serving) = self.bind(address).await?;
        serving.await;
        Ok(())
    }

    /// Binds the address without serving yet. Returns the URL for clients, such as `http://127.0.0.1:8080/mcp`, and the future that serves
    /// until the [handle](Self::handle) shuts down the server. Clients can connect at once, but their requests wait until the future is
    /// polled. For port 0, a free port is assigned.
    ///
    /// ```
    /// use agent::mcp::McpServer;
    /// use agent::{tool, tools};
    /// use std::time::Duration;
    ///
    /// /// Doubles a number.
    /// #[tool(read_only)]
    /// fn double(n: i64) -> i64 {
    ///     n * 2
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = McpServer::new(tools![double]);
    /// let handle = server.handle();
    /// let (url, serving) = server.bind(([127, 0, 0, 1], 0)).await?;      // any free port
    /// assert!(url.ends_with("/mcp"));
    /// let serving = tokio::spawn(serving);
    /// handle.shutdown(Duration::from_secs(5)).await;
    /// serving.await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails in the same cases as [`serve`](Self::serve).
    pub async fn bind(
        self,
        address: impl Into<SocketAddr>,
    ) -> Result<(String, impl Future<Output = ()> + Send + 'static), McpServerError> {
        let address = address.into();
        if !address.ip().is_loopback() && self.authenticator.is_none() && !self.is_open {
            return Err(McpServerError::Anonymous { place: address.to_string() });
        }
        let layer = HttpLayer::new(self.http_service()?, "/mcp");
        http::bind(layer, address).await.map_err(|source| McpServerError::Bind { address, source })
    }

    /// Serves over standard input and output, until the input ends or the [handle](Self::handle) shuts down the server. Nothing else may
    /// write to standard output. The only caller is the program that started this one. The authenticator is not called, and adds no state.
    ///
    /// # Errors
    /// Fails if the tools, their state, an allowed origin or host, or the state key is invalid, or if the client does not speak MCP.
    pub async fn serve_stdio(mut self) -> Result<(), McpServerError> {
        // Only the program that started this process can write to its standard input, so no caller is authenticated.
        (self.is_open, self.authenticator) = (true, None);
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
        let metadata = self.metadata.map(|metadata| metadata.named(self.title.clone()));
        info.title = self.title;
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let mut config = ServerConfig::new(capabilities).with_server_info(info);
        config.instructions = self.instructions;
        let mut meta = MetaObject::default();
        let info = config.server_info.clone();
        // Serialization does not fail, because the information consists of texts.
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
                catalogues.of(&tools)?;
                Arc::new(move |_caller| -> BoxFuture<'static, _> {
                    Box::pin(std::future::ready(Ok(tools.clone())))
                })
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
            metadata,
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

/// Creates the codec that signs the state of a call while the call waits for answers. Without a key, the codec has a random key.
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

/// Checks that the server or each caller provides the state that tools need. `provided` are the types that the authenticator adds.
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
