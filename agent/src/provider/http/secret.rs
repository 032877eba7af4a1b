//! Keys: their sources, and how they are kept out of output.

use std::fmt;
use std::sync::Arc;

use crate::model::{ModelError, ModelErrorKind};
use crate::panics::catch_future;
use crate::tool::BoxFuture;

/// A text that appears in no `Debug` output, log or error.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(Arc<str>);

impl Secret {
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

/// Minimum length of a secret that is masked in texts, in characters. A shorter secret also occurs in ordinary words, and masking it would
/// garble texts.
const MIN_SEARCHABLE: usize = 8;

pub(super) fn searchable(secrets: &[Secret]) -> Vec<&str> {
    secrets.iter().map(Secret::expose).filter(|secret| secret.chars().count() >= MIN_SEARCHABLE).collect()
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

type KeyCallback =
    dyn Fn() -> BoxFuture<'static, Result<String, Box<dyn std::error::Error + Send + Sync>>> + Send + Sync;

/// The source of a request's key.
///
/// A key is in no log, `Debug` text or URL. If a server repeats a key in a response, the key is masked in errors and in the reports to
/// [`HttpOptions::on_traffic`](super::HttpOptions::on_traffic). Keys of fewer than eight characters, which local servers use (`x`,
/// `none`), are masked in headers, but not in texts.
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
pub struct ApiKey(KeySource);

#[derive(Clone)]
enum KeySource {
    None,
    Fixed(Secret),
    Callback(Arc<KeyCallback>),
}

impl ApiKey {
    /// Creates the source for local servers that need no key: requests are sent without one.
    pub fn none() -> Self {
        Self(KeySource::None)
    }

    /// Creates a source that calls the function before each request and before each retry. The retries of a token count are an exception:
    /// they reuse the key. The function must not block. Its error, or its panic, becomes the error of the request, of kind
    /// [`Auth`](ModelErrorKind::Auth).
    pub fn callback<F, Fut>(callback: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        Self(KeySource::Callback(Arc::new(move || Box::pin(callback()))))
    }

    /// Returns the key that this environment variable contains now, or `None` if the variable is unset or blank.
    ///
    /// ```
    /// use agent::provider::http::ApiKey;
    ///
    /// assert!(ApiKey::from_env("NO_SUCH_VARIABLE_HERE").is_none());
    /// ```
    pub fn from_env(variable: &str) -> Option<Self> {
        let value = std::env::var(variable).ok()?;
        let value = value.trim();
        (!value.is_empty()).then(|| Self(KeySource::Fixed(value.into())))
    }

    pub(super) async fn get(&self) -> Result<Option<Secret>, ModelError> {
        match &self.0 {
            KeySource::None => Ok(None),
            KeySource::Fixed(secret) => Ok(Some(secret.clone())),
            KeySource::Callback(callback) => match catch_future(|| callback()).await {
                Ok(Ok(key)) => Ok(Some(key.into())),
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

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        Self(KeySource::Fixed(key.into()))
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(KeySource::Fixed(key.into()))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            KeySource::None => "ApiKey(none)",
            KeySource::Fixed(_) => "ApiKey(given)",
            KeySource::Callback(_) => "ApiKey(callback)",
        })
    }
}
