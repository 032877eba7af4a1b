//! Authentication by bearer tokens.

use super::caller::{AuthRefusal, Authenticator, Caller};
use crate::tool::{BoxFuture, state::StateKey};
use http::header::AUTHORIZATION;
use http::request::Parts;
use sha2::{Digest, Sha256};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// An authenticator by bearer tokens: fixed tokens, or tokens that a function verifies. `Bearer` checks the audience, the expiry and the
/// scopes of each token.
///
/// ```
/// use agent::mcp::{McpServer, AuthRefusal, Bearer, Caller};
/// use agent::tools;
///
/// // Fixed tokens, compared in constant time.
/// let few = Bearer::new([("s3cret", Caller::new("ann").with_scope("tools"))]).required_scope("tools");
///
/// // Tokens of an issuer: verify the signature with a library of your choice, and return the claims.
/// let issued = Bearer::verify(|token: String| async move {
///     let subject = token.strip_prefix("demo-").ok_or_else(AuthRefusal::invalid_token)?;
///     Ok(Caller::new(subject).with_audience("https://tools.example/mcp"))
/// })
/// .audience("https://tools.example/mcp");
/// for bearer in [few, issued] {
///     assert!(McpServer::new(tools![]).authenticator(bearer).into_service::<String>().is_ok());
/// }
/// ```
#[derive(Clone)]
#[must_use = "an authenticator does nothing until it is given to a server"]
pub struct Bearer {
    tokens: TokenCheck,
    audience: Option<String>,
    scopes: Vec<String>,
    provides: Vec<StateKey>,
}

type VerifyToken = dyn Fn(String) -> BoxFuture<'static, Result<Caller, AuthRefusal>> + Send + Sync;

#[derive(Clone)]
enum TokenCheck {
    /// The digests of fixed tokens, each with its caller. Digests have equal lengths, so that they can be compared in constant time, and
    /// they keep the tokens out of memory.
    Fixed(Arc<[([u8; 32], Caller)]>),
    Verified(Arc<VerifyToken>),
}

impl Bearer {
    /// Accepts fixed tokens, each with its caller. A fixed token without an audience is valid for this server.
    pub fn new<K: AsRef<str>>(tokens: impl IntoIterator<Item = (K, Caller)>) -> Self {
        let digested = tokens.into_iter().map(|(key, caller)| (digest(key.as_ref()), caller));
        Self::of(TokenCheck::Fixed(digested.collect()))
    }

    /// Accepts the tokens that `verify` accepts. The function checks the signature, or asks the issuer, and returns the caller with the
    /// scopes, the audience and the expiry in the token.
    pub fn verify<F, Fut>(verify: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Caller, AuthRefusal>> + Send + 'static,
    {
        Self::of(TokenCheck::Verified(Arc::new(move |token| Box::pin(verify(token)))))
    }

    fn of(tokens: TokenCheck) -> Self {
        Self { tokens, audience: None, scopes: Vec::new(), provides: Vec::new() }
    }

    /// Returns the token of `Authorization: Bearer …`, for authenticators of your own. Returns `None` if the header is missing or repeated,
    /// or contains no bearer token.
    ///
    /// ```
    /// use agent::mcp::Bearer;
    ///
    /// let (head, ()) = http::Request::get("/mcp").header("authorization", "Bearer s3cret").body(())?.into_parts();
    /// assert_eq!(Bearer::token(&head), Some("s3cret"));
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn token(head: &Parts) -> Option<&str> {
        let mut values = head.headers.get_all(AUTHORIZATION).iter();
        let value = values.next().filter(|_| values.next().is_none())?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    }

    /// Sets the URL of this server. Tokens for other servers and verified tokens without an audience are refused.
    pub fn audience(mut self, url: impl Into<String>) -> Self {
        self.audience = Some(url.into());
        self
    }

    /// Adds a scope that every caller must have.
    pub fn required_scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Declares that every caller [has](Caller::with) a value of type `T`. Then a server whose tools take `&T` can be built, even if
    /// the server itself has no such value.
    ///
    /// ```
    /// use agent::mcp::{McpServer, Bearer, Caller};
    /// use agent::{tool, tools};
    ///
    /// struct Tenant(u32);
    ///
    /// /// Names the tenant of the caller.
    /// #[tool]
    /// fn my_tenant(tenant: &Tenant) -> u32 {
    ///     tenant.0
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tokens = Bearer::new([("s3cret", Caller::new("ann").with(Tenant(7))?)]);
    /// assert!(McpServer::new(tools![my_tenant]).authenticator(tokens.clone()).into_service::<String>().is_err());
    /// assert!(McpServer::new(tools![my_tenant]).authenticator(tokens.providing::<Tenant>()).into_service::<String>().is_ok());
    /// # Ok(()) }
    /// ```
    pub fn providing<T: 'static>(mut self) -> Self {
        self.provides.push(StateKey::of::<T>());
        self
    }

    async fn caller(&self, key: &str) -> Result<Caller, AuthRefusal> {
        match &self.tokens {
            TokenCheck::Fixed(tokens) => {
                let given = digest(key);
                let mut found = None;
                // All tokens are compared, so that the time does not depend on the position of a match.
                for (own, caller) in tokens.iter() {
                    if bool::from(own.ct_eq(&given)) {
                        found = Some(caller);
                    }
                }
                found.cloned().ok_or_else(AuthRefusal::invalid_token)
            }
            TokenCheck::Verified(verify) => verify(key.to_owned()).await,
        }
    }

    fn has_audience(&self, caller: &Caller) -> bool {
        match (&self.audience, caller.audience().is_empty()) {
            (None, _) => true,
            (Some(_), true) => matches!(self.tokens, TokenCheck::Fixed(_)),
            (Some(own), false) => caller.audience().contains(own),
        }
    }

    fn challenge(&self) -> Option<String> {
        (!self.scopes.is_empty()).then(|| self.scopes.join(" "))
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl Authenticator for Bearer {
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Caller, AuthRefusal>> {
        Box::pin(async move {
            let refused = |error: Option<&str>| AuthRefusal::Unauthorized {
                scope: self.challenge(),
                error: error.map(str::to_owned),
            };
            let Some(key) = Self::token(head) else { return Err(refused(None)) };
            let caller = match self.caller(key).await {
                Err(AuthRefusal::Unauthorized { scope: None, error }) => {
                    return Err(refused(error.as_deref()));
                }
                other => other?,
            };
            if caller.is_expired() || !self.has_audience(&caller) {
                return Err(refused(Some("invalid_token")));
            }
            if self.scopes.iter().any(|scope| !caller.has_scope(scope)) {
                return Err(AuthRefusal::needs_scope(self.scopes.join(" ")));
            }
            Ok(caller)
        })
    }

    fn provides(&self) -> Vec<StateKey> {
        self.provides.clone()
    }
}

/// Omits the tokens.
impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer")
            .field("audience", &self.audience)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    async fn ask(bearer: &Bearer, header: Option<&str>) -> Result<String, AuthRefusal> {
        let mut request = http::Request::builder();
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        let head = request.body(()).unwrap().into_parts().0;
        bearer.authenticate(&head).await.map(|caller| caller.id().to_owned())
    }

    #[tokio::test(flavor = "current_thread")]
    async fn only_valid_tokens_of_the_scope_and_audience_are_accepted() {
        let ann = || Caller::new("ann").with_scope("tools");
        let past = SystemTime::now() - Duration::from_secs(1);
        let bearer = Bearer::new([
            ("good", ann()),
            ("here", ann().with_audience("https://us")),
            ("elsewhere", ann().with_audience("https://them")),
            ("late", ann().with_expiry(past)),
            ("little", Caller::new("bob")),
        ])
        .audience("https://us")
        .required_scope("tools");
        for good in ["Bearer good", "bearer  here"] {
            assert_eq!(ask(&bearer, Some(good)).await.as_deref(), Ok("ann"), "{good}");
        }
        let none = AuthRefusal::Unauthorized { scope: Some("tools".to_owned()), error: None };
        for without in [None, Some("Basic good"), Some("Bearer "), Some("good")] {
            assert_eq!(ask(&bearer, without).await, Err(none.clone()), "{without:?}");
        }
        for wrong in ["Bearer bad", "Bearer late", "Bearer elsewhere", "Bearer goo", "Bearer good2"] {
            let Err(AuthRefusal::Unauthorized { error, .. }) = ask(&bearer, Some(wrong)).await else {
                panic!("{wrong}");
            };
            assert_eq!(error.as_deref(), Some("invalid_token"), "{wrong}");
        }
        assert_eq!(ask(&bearer, Some("Bearer little")).await, Err(AuthRefusal::needs_scope("tools")));
        assert!(!format!("{bearer:?}").contains("good"));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_verified_token_needs_an_audience() {
        let bearer = Bearer::verify(|token: String| async move {
            match &*token {
                "silent" => Ok(Caller::new("ann")),
                "ours" => Ok(Caller::new("ann").with_audience("https://us")),
                _ => Err(AuthRefusal::invalid_token()),
            }
        });
        assert!(ask(&bearer, Some("Bearer silent")).await.is_ok());
        let strict = bearer.audience("https://us");
        assert!(ask(&strict, Some("Bearer silent")).await.is_err());
        assert!(ask(&strict, Some("Bearer ours")).await.is_ok());
        assert!(ask(&strict, Some("Bearer other")).await.is_err());
    }
}
