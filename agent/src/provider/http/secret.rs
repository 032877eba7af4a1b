//! Keys: their sources, and how they are kept out of output.

use std::fmt;
use std::sync::Arc;

use crate::BoxFuture;
use crate::model::{ModelError, ModelErrorKind};
use crate::panics::catch_future;

/// A text that appears in no `Debug` output, log or error.
///
/// ```
/// use agent::provider::http::Secret;
///
/// let key = Secret::from("sk-123");
/// assert_eq!(format!("{key:?}"), "Secret");
/// assert_eq!(key.expose(), "sk-123");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Returns the text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// A shorter text stands in ordinary words: taken out of texts, it would only spoil them.
const MIN_SEARCHED: usize = 8;

/// The secrets that are searched for in texts, to take them out.
pub(super) fn searched(secrets: &[Secret]) -> Vec<&str> {
    secrets.iter().map(Secret::expose).filter(|secret| secret.chars().count() >= MIN_SEARCHED).collect()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

type Callback =
    dyn Fn() -> BoxFuture<'static, Result<Secret, Box<dyn std::error::Error + Send + Sync>>> + Send + Sync;

/// The source of a request's key.
///
/// A key is in no log, `Debug` text or URL. Where a server repeats it in an answer, it is taken out of errors and of what
/// [`HttpOptions::on_traffic`](super::HttpOptions::on_traffic) is told. Keys of fewer than eight characters, as local servers
/// have them (`x`, `none`), are not searched for in texts; the headers that hold them are hidden all the same.
///
/// ```
/// use agent::provider::http::ApiKey;
///
/// let fixed = ApiKey::from("sk-123");
/// let short_lived = ApiKey::callback(|| async { Ok("token of this minute".into()) });
/// let of_local_server = ApiKey::none();
/// let shown = format!("{fixed:?}, {short_lived:?}, {of_local_server:?}");
/// assert_eq!(shown, "ApiKey(given), ApiKey(callback), ApiKey(none)");
/// ```
#[derive(Clone)]
pub struct ApiKey(Source);

#[derive(Clone)]
enum Source {
    None,
    Fixed(Secret),
    Callback(Arc<Callback>),
}

impl ApiKey {
    /// Sends no key, for local servers.
    pub fn none() -> Self {
        Self(Source::None)
    }

    /// Calls the function before each request; it must not block. Its error becomes the error of the request, of kind
    /// [`Auth`](ModelErrorKind::Auth).
    pub fn callback<F, Fut>(callback: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Secret, Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        Self(Source::Callback(Arc::new(move || Box::pin(callback()))))
    }

    /// Returns the key that this environment variable holds now; no key if it is unset or blank.
    ///
    /// ```
    /// use agent::provider::http::ApiKey;
    ///
    /// assert!(ApiKey::from_env("NO_SUCH_VARIABLE_HERE").is_none());
    /// ```
    pub fn from_env(variable: &str) -> Option<Self> {
        let value = std::env::var(variable).ok()?;
        let value = value.trim();
        (!value.is_empty()).then(|| Self(Source::Fixed(value.into())))
    }

    pub(super) async fn get(&self) -> Result<Option<Secret>, ModelError> {
        match &self.0 {
            Source::None => Ok(None),
            Source::Fixed(secret) => Ok(Some(secret.clone())),
            Source::Callback(callback) => match catch_future(|| callback()).await {
                Ok(Ok(secret)) => Ok(Some(secret)),
                Ok(Err(error)) => {
                    let failed =
                        ModelError::new(ModelErrorKind::Auth, "the callback that gives the key failed");
                    Err(failed.with_source(error))
                }
                Err(panic) => {
                    tracing::error!(%panic, "the callback that gives the key panicked");
                    Err(ModelError::new(ModelErrorKind::Auth, "the callback that gives the key panicked"))
                }
            },
        }
    }
}

impl From<Secret> for ApiKey {
    fn from(secret: Secret) -> Self {
        Self(Source::Fixed(secret))
    }
}

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        Secret::from(key).into()
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Secret::from(key).into()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::None => "ApiKey(none)",
            Source::Fixed(_) => "ApiKey(given)",
            Source::Callback(_) => "ApiKey(callback)",
        })
    }
}
