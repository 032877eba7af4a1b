//! Bearer tokens.

use super::caller::{AuthRefusal, Authenticator, Caller, RequestHead};
use crate::tool::{BoxFuture, state::StateKey};
use sha2::{Digest, Sha256};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;
use subtle::ConstantTimeEq;

/// The meaning of a token: its caller, the servers for which it was issued, and its expiry.
///
/// ```
/// use agent::mcp::{McpServer, Bearer, Caller, Token};
/// use agent::tools;
/// use std::time::{Duration, SystemTime};
/// use tower_service::Service as _;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let hour = Duration::from_secs(3_600);
/// let token = Token::new(Caller::new("ann").with_scope("tools")).with_audience("https://tools.example/mcp");
/// let (good, old) = (token.clone().with_expiry(SystemTime::now() + hour), token.with_expiry(SystemTime::now() - hour));
///
/// let bearer = Bearer::new([("new", good), ("old", old)]).audience("https://tools.example/mcp");
/// let mut service = McpServer::new(tools![]).authenticator(bearer).into_service()?;
/// for (key, status) in [("new", 200), ("old", 401)] {
///     let request = http::Request::post("http://localhost/mcp")
///         .header("host", "localhost")
///         .header("authorization", format!("Bearer {key}"))
///         .header("content-type", "application/json")
///         .header("accept", "application/json, text/event-stream")
///         .body(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#.to_owned())?;
///     assert_eq!(service.call(request).await?.status(), status);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Token {
    caller: Caller,
    audience: Vec<String>,
    expires_at: Option<SystemTime>,
}

impl Token {
    /// Creates the token of this caller.
    pub fn new(caller: Caller) -> Self {
        Self { caller, audience: Vec::new(), expires_at: None }
    }

    /// Adds a server for which the token was issued, by its URL.
    pub fn with_audience(mut self, audience: impl Into<String>) -> Self {
        self.audience.push(audience.into());
        self
    }

    /// Sets the time at which the token expires.
    pub fn with_expiry(mut self, at: SystemTime) -> Self {
        self.expires_at = Some(at);
        self
    }
}

impl From<Caller> for Token {
    fn from(caller: Caller) -> Self {
        Self::new(caller)
    }
}

/// Authenticates callers by bearer tokens: fixed ones, or tokens that a function verifies. This type checks audience, expiry and
/// scopes.
///
/// ```
/// use agent::mcp::{McpServer, AuthRefusal, Bearer, Caller, Token};
/// use agent::tools;
///
/// // Fixed tokens, compared in constant time.
/// let few = Bearer::new([("s3cret", Caller::new("ann").with_scope("tools"))]).required_scope("tools");
///
/// // Tokens of an issuer: verify the signature with a library of your choice, and return the claims.
/// let issued = Bearer::verify(|token: String| async move {
///     let subject = token.strip_prefix("demo-").ok_or_else(AuthRefusal::invalid_token)?;
///     Ok(Token::new(Caller::new(subject)).with_audience("https://tools.example/mcp"))
/// })
/// .audience("https://tools.example/mcp");
/// for bearer in [few, issued] {
///     assert!(McpServer::new(tools![]).authenticator(bearer).into_service().is_ok());
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

type VerifyToken = dyn Fn(String) -> BoxFuture<'static, Result<Token, AuthRefusal>> + Send + Sync;

#[derive(Clone)]
enum TokenCheck {
    /// Stored as digests, which have the same length and keep the tokens out of memory.
    Fixed(Arc<[([u8; 32], Token)]>),
    Verified(Arc<VerifyToken>),
}

impl Bearer {
    /// Accepts fixed tokens, each with its caller. A token without an audience is valid for this server.
    pub fn new<K: AsRef<str>, T: Into<Token>>(tokens: impl IntoIterator<Item = (K, T)>) -> Self {
        let digested = tokens.into_iter().map(|(key, token)| (digest(key.as_ref()), token.into()));
        Self::of(TokenCheck::Fixed(digested.collect()))
    }

    /// Accepts tokens that `verify` accepts. The function checks the signature, or asks the issuer, and returns the meaning of the token.
    pub fn verify<F, Fut>(verify: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Token, AuthRefusal>> + Send + 'static,
    {
        Self::of(TokenCheck::Verified(Arc::new(move |token| Box::pin(verify(token)))))
    }

    fn of(tokens: TokenCheck) -> Self {
        Self { tokens, audience: None, scopes: Vec::new(), provides: Vec::new() }
    }

    /// Sets the URL of this server. A token that was issued for another server is refused, and so is a verified token without an audience.
    pub fn audience(mut self, url: impl Into<String>) -> Self {
        self.audience = Some(url.into());
        self
    }

    /// Adds a scope that every caller must have.
    pub fn required_scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Declares that every caller [has](Caller::with) a value of type `T`, so that building the server does not report the state
    /// of tools that take `&T` as missing.
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
    /// assert!(McpServer::new(tools![my_tenant]).authenticator(tokens.clone()).into_service().is_err());
    /// assert!(McpServer::new(tools![my_tenant]).authenticator(tokens.providing::<Tenant>()).into_service().is_ok());
    /// # Ok(()) }
    /// ```
    pub fn providing<T: 'static>(mut self) -> Self {
        self.provides.push(StateKey::of::<T>());
        self
    }

    async fn token(&self, key: &str) -> Result<Token, AuthRefusal> {
        match &self.tokens {
            TokenCheck::Fixed(tokens) => {
                let given = digest(key);
                let mut found = None;
                // Compares all tokens, so that the time does not depend on the position of a match.
                for (own, token) in tokens.iter() {
                    if bool::from(own.ct_eq(&given)) {
                        found = Some(token);
                    }
                }
                found.cloned().ok_or_else(AuthRefusal::invalid_token)
            }
            TokenCheck::Verified(verify) => verify(key.to_owned()).await,
        }
    }

    fn has_audience(&self, token: &Token) -> bool {
        match (&self.audience, token.audience.is_empty()) {
            (None, _) => true,
            (Some(_), true) => matches!(self.tokens, TokenCheck::Fixed(_)),
            (Some(own), false) => token.audience.contains(own),
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
    fn authenticate<'a>(&'a self, head: &'a RequestHead) -> BoxFuture<'a, Result<Caller, AuthRefusal>> {
        Box::pin(async move {
            let refused = |error: Option<&str>| AuthRefusal::Unauthorized {
                scope: self.challenge(),
                error: error.map(str::to_owned),
            };
            let Some(key) = head.bearer_token() else { return Err(refused(None)) };
            let token = match self.token(key).await {
                Err(AuthRefusal::Unauthorized { scope: None, error }) => {
                    return Err(refused(error.as_deref()));
                }
                other => other?,
            };
            let is_expired = token.expires_at.is_some_and(|end| end <= SystemTime::now());
            if is_expired || !self.has_audience(&token) {
                return Err(refused(Some("invalid_token")));
            }
            if self.scopes.iter().any(|scope| !token.caller.has_scope(scope)) {
                return Err(AuthRefusal::needs_scope(self.scopes.join(" ")));
            }
            Ok(token.caller)
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
    use std::time::Duration;

    async fn ask(bearer: &Bearer, header: Option<&str>) -> Result<String, AuthRefusal> {
        let mut request = http::Request::builder();
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        let head = RequestHead::new(request.body(()).unwrap().into_parts().0);
        bearer.authenticate(&head).await.map(|caller| caller.id().to_owned())
    }

    #[tokio::test(flavor = "current_thread")]
    async fn only_valid_tokens_of_the_scope_and_audience_are_accepted() {
        let ann = || Caller::new("ann").with_scope("tools");
        let past = SystemTime::now() - Duration::from_secs(1);
        let bearer = Bearer::new([
            ("good", Token::new(ann())),
            ("here", Token::new(ann()).with_audience("https://us")),
            ("elsewhere", Token::new(ann()).with_audience("https://them")),
            ("late", Token::new(ann()).with_expiry(past)),
            ("little", Token::new(Caller::new("bob"))),
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
                "silent" => Ok(Token::new(Caller::new("ann"))),
                "ours" => Ok(Token::new(Caller::new("ann")).with_audience("https://us")),
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
