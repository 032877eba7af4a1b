//! Callers and their authentication.

use crate::tool::state::StateMap;
use crate::tool::{BoxFuture, problem::RegistryError, state::StateKey};
use std::fmt;
use std::sync::Arc;

/// The caller of a request. Tools receive it as a parameter `caller: &Caller`, and the values added by [`with`](Self::with) as
/// parameters of their types.
///
/// ```
/// use agent::{mcp::Caller, tool};
///
/// struct Tenant(u32);
///
/// /// Names the tenant of the caller.
/// #[tool]
/// fn my_tenant(tenant: &Tenant, caller: &Caller) -> String {
///     format!("{}: {}", caller.id(), tenant.0)
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let caller = Caller::new("ann").with_scope("tools:read").with(Tenant(7))?;
/// assert!(caller.has_scope("tools:read") && !caller.has_scope("admin"));
/// assert_eq!((caller.id(), caller.scopes()), ("ann", &["tools:read".to_owned()][..]));
/// assert!(caller.is_known());                          // an anonymous caller is not known
/// assert_eq!(caller.get::<Tenant>().map(|tenant| tenant.0), Some(7));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Caller {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    id: Arc<str>,
    scopes: Vec<String>,
    is_known: bool,
    state: StateMap,
}

impl Caller {
    /// Creates a caller with a stable id, which limits and logs use.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        let inner = Inner { id: id.into(), scopes: Vec::new(), is_known: true, state: StateMap::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the caller of requests that are not authenticated.
    pub(super) fn anonymous() -> Self {
        let mut caller = Self::new("anonymous");
        Arc::make_mut(&mut caller.inner).is_known = false;
        caller
    }

    /// Adds a scope.
    pub fn with_scope(mut self, scope: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.inner).scopes.push(scope.into());
        self
    }

    /// Adds a value that tools receive as `&T`.
    ///
    /// # Errors
    /// Fails if the caller already has a value of that type.
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Result<Self, RegistryError> {
        Arc::make_mut(&mut self.inner)
            .state
            .insert(Arc::new(value))
            .map_err(RegistryError::duplicate_state)?;
        Ok(self)
    }

    /// Returns the caller's id; `anonymous` if callers are not authenticated.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// Returns the name that limits and running calls count by; `None` for a caller that is not authenticated.
    pub(super) fn quota_key(&self) -> Option<&Arc<str>> {
        self.is_known().then_some(&self.inner.id)
    }

    /// Returns whether the caller was authenticated. On a server without an [`Authenticator`], callers are not.
    pub fn is_known(&self) -> bool {
        self.inner.is_known
    }

    /// Returns the caller's scopes.
    pub fn scopes(&self) -> &[String] {
        &self.inner.scopes
    }

    /// Returns whether the caller has this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.inner.scopes.iter().any(|own| own == scope)
    }

    /// Returns the value of this type that was added by [`with`](Self::with), if any.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.inner.state.get()
    }

    pub(super) fn state(&self) -> &StateMap {
        &self.inner.state
    }
}

/// Omits the values, which may be secret.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("id", &self.id())
            .field("scopes", &self.scopes())
            .finish_non_exhaustive()
    }
}

/// The head of a request, which is received before its body.
///
/// ```
/// use agent::mcp::{McpServer, Caller, RequestHead};
///
/// /// A value that a layer of the application added to the request.
/// #[derive(Clone)]
/// struct User(String);
///
/// fn caller(head: &RequestHead) -> Option<Caller> {
///     let user = head.extension::<User>()?;
///     let caller = Caller::new(user.0.as_str());
///     Some(if head.header("x-admin").is_some() { caller.with_scope("admin") } else { caller })
/// }
/// assert!(caller(&RequestHead::default()).is_none());
/// ```
///
/// The address and the token are available, too:
///
/// ```
/// use agent::mcp::{McpServer, AuthRefusal, Authenticator, Caller, RequestHead};
/// use agent::{BoxFuture, tools};
/// use tower_service::Service as _;
///
/// /// Tenants have a path each, and a token.
/// struct Tenants;
///
/// impl Authenticator for Tenants {
///     fn authenticate<'a>(&'a self, head: &'a RequestHead) -> BoxFuture<'a, Result<Caller, AuthRefusal>> {
///         Box::pin(async move {
///             match (head.path(), head.query(), head.bearer_token()) {
///                 ("/acme", Some("v=2"), Some("s3cret")) => Ok(Caller::new("acme")),
///                 (_, _, None) => Err(AuthRefusal::no_token()),
///                 _ => Err(AuthRefusal::invalid_token()),
///             }
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut service = McpServer::new(tools![]).authenticator(Tenants).into_service()?;
/// let ping = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
/// for (path, token, status) in [("/acme?v=2", "s3cret", 200), ("/acme?v=1", "s3cret", 401), ("/acme?v=2", "no", 401)] {
///     let request = http::Request::post(format!("http://localhost{path}"))
///         .header("host", "localhost")
///         .header("authorization", format!("Bearer {token}"))
///         .header("content-type", "application/json")
///         .header("accept", "application/json, text/event-stream")
///         .body(ping.to_owned())?;
///     assert_eq!(service.call(request).await?.status(), status);
/// }
/// assert!(RequestHead::default().is_stdio());          // no path, no headers
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct RequestHead {
    parts: Option<http::request::Parts>,
}

impl RequestHead {
    pub(super) fn new(parts: http::request::Parts) -> Self {
        Self { parts: Some(parts) }
    }

    pub(super) fn into_parts(self) -> Option<http::request::Parts> {
        self.parts
    }

    /// Returns whether the request arrived over standard input, without a path and headers.
    pub fn is_stdio(&self) -> bool {
        self.parts.is_none()
    }

    /// Returns the path; empty over standard input.
    pub fn path(&self) -> &str {
        self.parts.as_ref().map_or("", |parts| parts.uri.path())
    }

    /// Returns the query: the part of the address after the `?`.
    pub fn query(&self) -> Option<&str> {
        self.parts.as_ref()?.uri.query()
    }

    /// Returns a header by its case-insensitive name. `None` if it is missing, repeated or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.parts.as_ref()?.headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())?.to_str().ok()
    }

    /// Returns the token of `Authorization: Bearer …`.
    pub fn bearer_token(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    }

    /// Returns a value that a layer of the application added to the request.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.parts.as_ref()?.extensions.get()
    }
}

/// Authenticates the caller of a request from its head alone, before the body is read. [`Bearer`](super::Bearer) implements it.
///
/// It is called for every HTTP request, after `Origin` and `Host` were checked. Over standard input it is not called, because the
/// only caller is the program that started the server.
///
/// ```
/// use agent::mcp::{AuthRefusal, Authenticator, Caller, RequestHead};
/// use agent::{BoxFuture, tool::StateKey};
///
/// struct Tenant(String);
///
/// /// A proxy in front of this server names the user.
/// struct Proxy;
///
/// impl Authenticator for Proxy {
///     fn authenticate<'a>(&'a self, head: &'a RequestHead) -> BoxFuture<'a, Result<Caller, AuthRefusal>> {
///         Box::pin(async move {
///             let user = head.header("x-user").ok_or_else(AuthRefusal::no_token)?;
///             let tenant = Tenant(head.header("x-tenant").unwrap_or("none").to_owned());
///             Caller::new(user).with(tenant).map_err(|twice| AuthRefusal::unavailable(twice.to_string()))
///         })
///     }
///
///     fn provides(&self) -> Vec<StateKey> {
///         vec![StateKey::of::<Tenant>()]               // so a tool may take `&Tenant`
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// assert_eq!(Proxy.provides(), [StateKey::of::<Tenant>()]);
/// let without_headers = RequestHead::default();
/// assert_eq!(Proxy.authenticate(&without_headers).await.unwrap_err(), AuthRefusal::no_token());
/// # }
/// ```
pub trait Authenticator: Send + Sync + 'static {
    /// Returns the caller. Never log the token.
    ///
    /// # Errors
    /// Returns the reason why the request is rejected.
    fn authenticate<'a>(&'a self, head: &'a RequestHead) -> BoxFuture<'a, Result<Caller, AuthRefusal>>;

    /// Returns the types of the values that every caller [has](Caller::with), so that building the server does not report them as
    /// missing state.
    fn provides(&self) -> Vec<StateKey> {
        Vec::new()
    }
}

/// The reason why a request is rejected.
///
/// ```
/// use agent::mcp::AuthRefusal;
///
/// assert_eq!(AuthRefusal::no_token().to_string(), "not authorized");
/// assert_eq!(AuthRefusal::needs_scope("admin").to_string(), r#"the scope "admin" is needed"#);
/// let bad = AuthRefusal::invalid_token();
/// assert!(matches!(bad, AuthRefusal::Unauthorized { error: Some(word), .. } if word == "invalid_token"));
/// let log = AuthRefusal::unavailable("the issuer does not answer").to_string();
/// assert_eq!(log, "the caller cannot be authenticated: the issuer does not answer");
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthRefusal {
    /// 401, with a challenge: the token is missing or invalid.
    #[error("not authorized")]
    #[non_exhaustive]
    Unauthorized {
        /// The scope that a token needs, as the challenge names it.
        scope: Option<String>,
        /// The error code of RFC 6750: `invalid_token`. `None` if no token was sent.
        error: Option<String>,
    },
    /// 403, with a challenge: the token is valid, but does not allow this.
    #[error("the scope {scope:?} is needed")]
    #[non_exhaustive]
    Forbidden {
        /// The scope that is needed.
        scope: String,
    },
    /// 503: the caller cannot be authenticated at the moment. The reason is for the log.
    #[error("the caller cannot be authenticated: {reason}")]
    #[non_exhaustive]
    Unavailable {
        /// The reason, for the log.
        reason: String,
    },
}

crate::error_text::debug_is_the_sentence!(AuthRefusal);

impl AuthRefusal {
    /// Creates a refusal of a request without a token.
    pub fn no_token() -> Self {
        Self::Unauthorized { scope: None, error: None }
    }

    /// Creates a refusal of an invalid token.
    pub fn invalid_token() -> Self {
        Self::Unauthorized { scope: None, error: Some("invalid_token".to_owned()) }
    }

    /// Creates a refusal of a token that lacks the scope.
    pub fn needs_scope(scope: impl Into<String>) -> Self {
        Self::Forbidden { scope: scope.into() }
    }

    /// Creates a refusal for a caller that cannot be authenticated at the moment. The client receives a 503, and the reason is logged.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into() }
    }
}
