//! Callers and their authentication.

use crate::tool::state::StateMap;
use crate::tool::{BoxFuture, problem::RegistryError, state::StateKey};
use http::request::Parts;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// The caller of a request. A parameter `&Caller` of a tool receives the caller. A parameter `&T` receives the value of type `T` that
/// [`with`](Self::with) added.
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
    /// The servers for which the caller's token was issued.
    audience: Vec<String>,
    expires_at: Option<SystemTime>,
    is_known: bool,
    state: StateMap,
}

impl Caller {
    /// Creates a caller with this id. The id must be the same in each request, because limits and logs identify the caller by it.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        let inner = Inner {
            id: id.into(),
            scopes: Vec::new(),
            audience: Vec::new(),
            expires_at: None,
            is_known: true,
            state: StateMap::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub(super) fn anonymous() -> Self {
        let mut caller = Self::new("anonymous");
        Arc::make_mut(&mut caller.inner).is_known = false;
        caller
    }

    /// Adds an OAuth scope.
    pub fn with_scope(mut self, scope: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.inner).scopes.push(scope.into());
        self
    }

    /// Adds the URL of a server for which the caller's token is valid. See [`Bearer::audience`](super::Bearer::audience).
    pub fn with_audience(mut self, url: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.inner).audience.push(url.into());
        self
    }

    /// Sets the time at which the caller's token expires. Requests of an expired caller are rejected.
    ///
    /// ```
    /// use agent::mcp::{McpServer, Bearer, Caller};
    /// use agent::tools;
    /// use std::time::{Duration, SystemTime};
    /// use tower_service::Service as _;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (hour, now) = (Duration::from_secs(3_600), SystemTime::now());
    /// let ann = Caller::new("ann").with_scope("tools").with_audience("https://tools.example/mcp");
    /// let tokens = [("new", ann.clone().with_expiry(now + hour)), ("old", ann.with_expiry(now - hour))];
    ///
    /// let bearer = Bearer::new(tokens).audience("https://tools.example/mcp");
    /// let mut service = McpServer::new(tools![]).authenticator(bearer).into_service()?;
    /// for (token, status) in [("new", 200), ("old", 401)] {
    ///     let request = http::Request::post("http://localhost/mcp")
    ///         .header("host", "localhost")
    ///         .header("authorization", format!("Bearer {token}"))
    ///         .header("content-type", "application/json")
    ///         .header("accept", "application/json, text/event-stream")
    ///         .body(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#.to_owned())?;
    ///     assert_eq!(service.call(request).await?.status(), status);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn with_expiry(mut self, at: SystemTime) -> Self {
        Arc::make_mut(&mut self.inner).expires_at = Some(at);
        self
    }

    /// Adds a value that tools receive as `&T`. If the value is itself a `Caller`, tools do not receive it: `&Caller` is
    /// always the authenticated caller.
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

    /// Returns the caller's id, which is `anonymous` if callers are not authenticated.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// Returns the id by which quotas and running calls distinguish callers. Returns `None` for a caller that is not authenticated.
    pub(super) fn quota_key(&self) -> Option<&Arc<str>> {
        self.is_known().then_some(&self.inner.id)
    }

    /// Returns whether the caller was authenticated. On a server without an [`Authenticator`], no caller is authenticated.
    pub fn is_known(&self) -> bool {
        self.inner.is_known
    }

    /// Returns the caller's OAuth scopes.
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

    pub(super) fn audience(&self) -> &[String] {
        &self.inner.audience
    }

    pub(super) fn is_expired(&self) -> bool {
        self.inner.expires_at.is_some_and(|end| end <= SystemTime::now())
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

/// An authenticator of HTTP requests. It determines the caller from the head of a request alone, before the body is read.
/// [`Bearer`](super::Bearer) is an implementation.
///
/// The authenticator is called for every POST request, after `Origin` and `Host` were checked. Over standard input no authenticator is
/// called, because the only caller is the program that started the server.
///
/// ```
/// use agent::mcp::{AuthRefusal, Authenticator, Bearer, Caller, McpServer};
/// use agent::{BoxFuture, tool::StateKey, tools};
/// use http::request::Parts;
/// use tower_service::Service as _;
///
/// struct Region(String);
///
/// /// Tenants have a path each, and a token.
/// struct Tenants;
///
/// impl Authenticator for Tenants {
///     fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Caller, AuthRefusal>> {
///         Box::pin(async move {
///             let caller = match (head.uri.path(), Bearer::token(head)) {
///                 ("/acme", Some("s3cret")) => Caller::new("acme"),
///                 (_, None) => return Err(AuthRefusal::no_token()),
///                 _ => return Err(AuthRefusal::invalid_token()),
///             };
///             let region = head.headers.get("x-region").and_then(|region| region.to_str().ok());
///             let region = Region(region.unwrap_or("any").to_owned());
///             caller.with(region).map_err(|twice| AuthRefusal::unavailable(twice.to_string()))
///         })
///     }
///
///     fn provides(&self) -> Vec<StateKey> {
///         vec![StateKey::of::<Region>()]               // so a tool may take `&Region`
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut service = McpServer::new(tools![]).authenticator(Tenants).into_service()?;
/// let ping = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
/// for (path, token, status) in [("/acme", "s3cret", 200), ("/other", "s3cret", 401), ("/acme", "no", 401)] {
///     let request = http::Request::post(format!("http://localhost{path}"))
///         .header("host", "localhost")
///         .header("authorization", format!("Bearer {token}"))
///         .header("content-type", "application/json")
///         .header("accept", "application/json, text/event-stream")
///         .body(ping.to_owned())?;
///     assert_eq!(service.call(request).await?.status(), status);
/// }
/// # Ok(()) }
/// ```
///
/// An authenticator around another one:
///
/// ```
/// use agent::mcp::{AuthRefusal, Authenticator, Bearer, Caller};
/// use agent::{BoxFuture, tool::StateKey};
/// use http::request::Parts;
///
/// /// Refuses one caller, whatever its token is.
/// struct Except(&'static str, Bearer);
///
/// impl Authenticator for Except {
///     fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Caller, AuthRefusal>> {
///         Box::pin(async move {
///             let caller = self.1.authenticate(head).await?;
///             if caller.id() == self.0 { Err(AuthRefusal::needs_scope("tools")) } else { Ok(caller) }
///         })
///     }
///
///     fn provides(&self) -> Vec<StateKey> {
///         self.1.provides()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tokens = Bearer::new([("s3cret", Caller::new("ann")), ("secr3t", Caller::new("bob"))]);
/// let authenticator = Except("bob", tokens);
/// for (token, is_accepted) in [("s3cret", true), ("secr3t", false)] {
///     let request = http::Request::get("/mcp").header("authorization", format!("Bearer {token}"));
///     let (head, ()) = request.body(())?.into_parts();
///     assert_eq!(authenticator.authenticate(&head).await.is_ok(), is_accepted);
/// }
/// # Ok(()) }
/// ```
pub trait Authenticator: Send + Sync + 'static {
    /// Returns the caller. `head.extensions` contains the values that layers of the application added to the request. Implementations must
    /// never log the token that the head contains.
    ///
    /// # Errors
    /// Returns the reason why the request is rejected.
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Caller, AuthRefusal>>;

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
        /// The scope that the challenge requires, if any.
        scope: Option<String>,
        /// The error code of RFC 6750, such as `invalid_token`. `None` if no token was sent.
        error: Option<String>,
    },
    /// 403, with a challenge: the token is valid, but does not allow the request.
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
