//! The HTTP transport that all providers share: timeouts, retries, limits, cancellation, secrets.
//!
//! A request is retried after connection failures, timeouts and the statuses 408, 409, 429 and 5xx. The header `x-should-retry` takes
//! precedence over the status. After an event of the reply was returned, the request is not retried. A delay that the provider asks for
//! (`retry-after-ms`, `retry-after`) takes precedence over the configured delay. When the connection breaks and the request is not retried,
//! the events received so far are returned, and then the error. If the reply had already reported how it ended, the reply is complete, and
//! there is no error.
//!
//! Dropping a future or a stream ends its HTTP request at once, and so does cancelling the token of its [`StepCx`](crate::model::StepCx).
//! ```
//! # #[cfg(feature = "openai")]
//! # fn example() -> Result<(), agent::provider::BuildModelError> {
//! use agent::provider::http::{ApiKey, HttpModel, HttpOptions};
//! use std::time::Duration;
//!
//! let model = HttpModel::builder("openai/gpt-5")
//!     .key(ApiKey::callback(|| async { Ok("a key from your vault".into()) }))
//!     .options(HttpOptions::default().with_max_retries(5).with_idle_timeout(Duration::from_secs(60)))
//!     .build()?;
//! # let _ = model; Ok(()) }
//! # #[cfg(feature = "openai")] example().unwrap();
//! ```

mod client;
mod count;
mod exchange;
mod model;
mod options;
mod restore;
mod retry;
mod secret;
mod traffic;

pub use model::{HttpModel, HttpModelBuilder};
pub use options::{HttpOptions, Retry};
pub use secret::ApiKey;
