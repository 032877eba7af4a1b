//! Models with settings of their own: one row each.

use std::fmt;

use crate::provider::facts::ModelFacts;
use crate::provider::http::HttpOptions;

/// The configuration of one model in a [`Catalogue`](super::Catalogue): its address, headers, limits and timeouts, where they differ
/// from those of its provider.
///
/// ```
/// # #[cfg(feature = "openai")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agent::model::{Model as _, ModelRequest, StepCx};
/// use agent::provider::http::HttpOptions;
/// use agent::traffic::TrafficKind;
/// use agent::provider::{Catalogue, ModelEntry, ModelFacts};
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// let sent = Arc::new(Mutex::new(Vec::new()));
/// let seen = sent.clone();
/// let options = HttpOptions::default()
///     .without_proxy()
///     .with_max_retries(0)
///     .with_first_byte_timeout(Duration::from_secs(1_800))         // a large model on a small machine
///     .on_traffic(move |traffic| {
///         if let TrafficKind::Request { url, headers, body, .. } = &traffic.kind {
///             seen.lock().unwrap().push(format!("{url} {headers:?} {body}"));
///         }
///     });
/// let large = ModelEntry::default()
///     .with_base_url("http://127.0.0.1:9/v1")                      // where nobody listens
///     .with_header("x-team", "search")
///     .with_header("x-gateway-token", "s3cret")                    // hidden: its name is that of a secret
///     .with_facts(ModelFacts::default().with_context_window(32_000).with_max_output(4_000))
///     .with_options(options);
/// assert!(!format!("{large:?}").contains("s3cret"));
///
/// let catalogue = Catalogue::default().with_model("ollama/large", large);
/// let model = catalogue.model("ollama/large")?;
/// assert_eq!(model.facts().unwrap().context_window, Some(32_000));
/// assert!(model.call(&StepCx::new(), &ModelRequest::default().with_max_tokens(9_000)).await.is_err());
/// let sent = sent.lock().unwrap().concat();
/// assert!(sent.contains("127.0.0.1:9") && sent.contains("search") && sent.contains("4000"), "{sent}");
/// assert!(!sent.contains("s3cret"));
/// # Ok(()) }
/// # #[cfg(not(feature = "openai"))] fn main() {}
/// ```
#[derive(Clone, Default)]
pub struct ModelEntry {
    pub(in crate::provider) base_url: Option<String>,
    pub(in crate::provider) headers: Vec<(String, String)>,
    pub(in crate::provider) facts: Option<ModelFacts>,
    pub(in crate::provider) options: Option<HttpOptions>,
}

impl ModelEntry {
    /// Sets the base URL of this model. It replaces that of the provider, also where an environment variable sets that one. The abilities of the
    /// server behind it are [not assumed](crate::provider::http::HttpModelBuilder::capabilities).
    pub fn with_base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Adds a header to all requests to this model. It replaces one of the same name of the provider, and one of the model's builder
    /// replaces it. A header whose name contains `key`, `token`, `auth`, `secret` or `cookie` is never shown.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the limits and prices. [`max_output`](ModelFacts::max_output) is sent with each request that sets no `max_tokens`, or a
    /// larger number.
    pub fn with_facts(mut self, facts: ModelFacts) -> Self {
        self.facts = Some(facts);
        self
    }

    /// Sets the timeouts, retries and listeners of this model, instead of those of the catalogue.
    pub fn with_options(mut self, options: HttpOptions) -> Self {
        self.options = Some(options);
        self
    }
}

/// Facts alone.
impl From<ModelFacts> for ModelEntry {
    fn from(facts: ModelFacts) -> Self {
        Self::default().with_facts(facts)
    }
}

/// Leaves out the address and the headers: they may contain keys.
impl fmt::Debug for ModelEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelEntry")
            .field("facts", &self.facts)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
