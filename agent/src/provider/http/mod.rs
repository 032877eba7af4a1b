//! The transport that all providers share: timeouts, retries, limits, cancelling, secrets.
//!
//! A request is sent again after connection failures, timeouts and the statuses 408, 409, 429 and 5xx, unless the
//! provider says otherwise (`x-should-retry`), and only while nothing of the reply was handed out. The provider's own
//! delay (`retry-after-ms`, `retry-after`) counts before ours. What had come of a reply whose connection breaks is handed out, and
//! then the error; a reply that had said how it ended is whole.
//!
//! Dropping a future or a stream ends the exchange at once, whatever it waits for; cancelling a
//! [`StepCx`](crate::model::StepCx)'s token drops the stream's.
//! ```
//! # #[cfg(feature = "openai")]
//! # fn example() -> Result<(), agent::provider::http::BuildModelError> {
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
mod exchange;
mod model;
mod options;
mod restore;
mod retry;
mod secret;
mod traffic;

pub use client::{HttpAnswer, HttpClient};
pub use model::{BuildModelError, HttpModel, HttpModelBuilder};
pub use options::{HttpOptions, Proxy, Retry, UsageReport};
pub use secret::{ApiKey, Secret};
pub use traffic::{Traffic, TrafficKind};
