//! Providers.

#[cfg(feature = "anthropic")]
pub mod anthropic;
#[cfg(feature = "http")]
mod catalogue;
#[cfg(feature = "http")]
mod failure;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "openai")]
pub mod openai;
#[cfg(feature = "http")]
mod parts;
#[cfg(feature = "http")]
mod protocol;
#[cfg(feature = "http")]
mod reply;
#[cfg(feature = "http")]
mod schema;
pub mod sse;
#[cfg(feature = "http")]
mod tools;

#[cfg(feature = "http")]
pub use catalogue::{UnknownModel, protocol, protocols};
#[cfg(feature = "http")]
pub use protocol::{Answer, Decoder, HttpRequest, Protocol};
#[cfg(feature = "http")]
pub use reply::{ReplyLimits, ReplyReader};
