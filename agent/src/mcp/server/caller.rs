//! Who asks, and how that is found out.

use crate::tool::state::StateMap;
use crate::{BoxFuture, DuplicateState, StateKey};
use std::fmt;
use std::sync::Arc;

/// Who makes a request. Tools receive it as a parameter `caller: &Caller`, and what was added
/// [with](Self::with) it as parameters of those types.
///
/// ```
/// use agent::{mcp::server::Caller, tool};
///
/// struct Tenant(u32);
///
/// /// Says whose tenant it is.
/// #[tool]
/// fn my_tenant(tenant: &Tenant, caller: &Caller) -> String {
///     format!("{}: {}", caller.id(), tenant.0)
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let caller = Caller::new("ann").with_scope("tools:read").with(Tenant(7))?;
/// assert!(caller.has_scope("tools:read"));
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
    /// A caller by an id that stays the same: limits and logs go by it.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        let inner = Inner { id: id.into(), scopes: Vec::new(), is_known: true, state: StateMap::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Somebody, where nobody is asked who they are.
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
    /// When there is one of that type.
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Result<Self, DuplicateState> {
        Arc::make_mut(&mut self.inner).state.insert(Arc::new(value))?;
        Ok(self)
    }

    /// Its id; `anonymous` where nobody is asked.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    pub(super) fn shared_id(&self) -> &Arc<str> {
        &self.inner.id
    }

    /// Whether somebody found out who it is.
    pub fn is_known(&self) -> bool {
        self.inner.is_known
    }

    /// Its scopes.
    pub fn scopes(&self) -> &[String] {
        &self.inner.scopes
    }

    /// Whether it has this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.inner.scopes.iter().any(|own| own == scope)
    }

    /// A value that was added.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.inner.state.get()
    }

    pub(super) fn state(&self) -> &StateMap {
        &self.inner.state
    }
}

/// Without the values: they may be secret.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("id", &self.id())
            .field("scopes", &self.scopes())
            .finish_non_exhaustive()
    }
}

/// What is known of a request before its body is read.
///
/// ```
/// use agent::mcp::{Server, server::{Caller, RequestHead}};
///
/// /// What a layer of the application may have found out before.
/// #[derive(Clone)]
/// struct User(String);
///
/// fn caller(head: &RequestHead) -> Option<Caller> {
///     let user = head.extension::<User>()?;
///     let caller = Caller::new(user.0.as_str());
///     Some(if head.header("x-admin").is_some() { caller.with_scope("admin") } else { caller })
/// }
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

    /// Whether it came over standard input, and so has no path and no headers.
    pub fn is_stdio(&self) -> bool {
        self.parts.is_none()
    }

    /// The path; empty over standard input.
    pub fn path(&self) -> &str {
        self.parts.as_ref().map_or("", |parts| parts.uri.path())
    }

    /// What follows the `?` of its address.
    pub fn query(&self) -> Option<&str> {
        self.parts.as_ref()?.uri.query()
    }

    /// A header by its name, in any case, where it is there once and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.parts.as_ref()?.headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())?.to_str().ok()
    }

    /// The token of `Authorization: Bearer …`.
    pub fn bearer_token(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    }

    /// What a layer of the application added to the request before.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.parts.as_ref()?.extensions.get()
    }
}

/// Finds out who makes a request, from its head alone: nothing of the body was read. [`Bearer`](super::Bearer) is one.
///
/// It is asked for every request over HTTP, after `Origin` and `Host` were checked. Over standard input nobody is asked:
/// such a server belongs to whoever started it.
///
/// ```
/// use agent::BoxFuture;
/// use agent::mcp::server::{AuthRefusal, Authenticator, Caller, RequestHead};
///
/// /// A proxy in front of this server says who asks.
/// struct Proxy;
///
/// impl Authenticator for Proxy {
///     fn authenticate<'a>(&'a self, head: &'a RequestHead) -> BoxFuture<'a, Result<Caller, AuthRefusal>> {
///         Box::pin(async move { head.header("x-user").map(Caller::new).ok_or_else(AuthRefusal::no_token) })
///     }
/// }
/// # let _ = agent::mcp::Server::new(agent::tools![]).authenticator(Proxy);
/// ```
pub trait Authenticator: Send + Sync + 'static {
    /// Who it is. Never log the token.
    ///
    /// # Errors
    /// Why the request is refused.
    fn authenticate<'a>(&'a self, head: &'a RequestHead) -> BoxFuture<'a, Result<Caller, AuthRefusal>>;

    /// What every caller [brings](Caller::with): a tool that wants it is then not missing anything when the server is
    /// built.
    fn provides(&self) -> Vec<StateKey> {
        Vec::new()
    }
}

/// Why a request is refused.
///
/// ```
/// use agent::mcp::server::AuthRefusal;
///
/// assert_eq!(AuthRefusal::no_token().to_string(), "not authorized");
/// assert_eq!(AuthRefusal::needs_scope("admin").to_string(), r#"the scope "admin" is needed"#);
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthRefusal {
    /// 401, with a challenge: there is no token, or it is no good.
    #[error("not authorized")]
    #[non_exhaustive]
    Unauthorized {
        /// What a token needs, in the words of the challenge.
        scope: Option<String>,
        /// Why, as RFC 6750 names it: `invalid_token`. None when no token came at all.
        error: Option<String>,
    },
    /// 403, with a challenge: the token is good, and not for this.
    #[error("the scope {scope:?} is needed")]
    #[non_exhaustive]
    Forbidden {
        /// The scope that is needed.
        scope: String,
    },
    /// 503: it cannot be found out now. The reason is for the log.
    #[error("it cannot be found out who asks: {reason}")]
    #[non_exhaustive]
    Unavailable {
        /// Why.
        reason: String,
    },
}

crate::error_text::debug_is_the_sentence!(AuthRefusal);

impl AuthRefusal {
    /// No token came.
    pub fn no_token() -> Self {
        Self::Unauthorized { scope: None, error: None }
    }

    /// A token came and is no good.
    pub fn invalid_token() -> Self {
        Self::Unauthorized { scope: None, error: Some("invalid_token".to_owned()) }
    }

    /// The caller may not do this without `scope`.
    pub fn needs_scope(scope: impl Into<String>) -> Self {
        Self::Forbidden { scope: scope.into() }
    }

    /// It cannot be found out now.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into() }
    }
}
