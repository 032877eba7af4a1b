//! Model providers: their protocols, and the HTTP transport that they share.
//!
//! Most programs need only [`agent::model`](fn@crate::model), or [`http::HttpModel::builder`] to set keys, addresses and
//! timeouts. The rest of this module gives access to single layers: a [`Protocol`] is a pure encoder and a pure decoder, and a
//! [`ReplyReader`] reads a recorded response without a network.
//!
//! ```
//! # #[cfg(feature = "anthropic")] {
//! use agent::message::Message;
//! use agent::model::{ModelInfo, ModelRequest};
//! use agent::provider::{Protocol, anthropic::AnthropicMessages};
//!
//! // What would be sent, without sending it.
//! let request = ModelRequest::new([Message::user("Hi")]).with_max_tokens(500);
//! let model = ModelInfo::new("anthropic", "anthropic-messages", "claude-sonnet-5");
//! let http = AnthropicMessages::default().encode(&model, &request).unwrap();
//! assert_eq!(http.url("https://api.anthropic.com"), "https://api.anthropic.com/v1/messages");
//! assert_eq!(http.json()["max_tokens"], 500);
//! # }
//! ```
//!
//! Thinking is requested in levels ([`Thinking`](crate::model::Thinking)), which are translated for each model. A value applies to the
//! models in parentheses after it, and a value without parentheses to all other models.
//!
//! | level | Anthropic from 4.6 | Anthropic 3.7 to 4.5 | OpenAI | Gemini from 3 | Gemini 2.5 |
//! | --- | --- | --- | --- | --- | --- |
//! | `none` | `disabled`; `between_tools` (Sonnet from 5.5); effort `low` (Opus from 5.5, Fable, Mythos) | `disabled` | `none` (5.1 to 6); `minimal` (5); `low` (o-series, 5 Codex, 6 Astra, from 6.1) | `MINIMAL`; `LOW` (Pro, and from 3.7) | 0; 128 (Pro) |
//! | `minimal` | effort `low` | 1024 tokens | `low`; `minimal` (5, but not 5 Codex) | `MINIMAL`; `LOW` (Pro, and from 3.7) | 512 tokens |
//! | `low`, `medium`, `high` | effort of that name | 1024, 8000, 16000 tokens | effort of that name | level of that name; 3 Pro has no `MEDIUM` | 1024, 8192, 24576 tokens |
//! | `xhigh` | effort `xhigh`; effort `high` (4.6) | 24000 tokens | `high`; `xhigh` (5.1 Codex Max, from 5.2) | `HIGH` | the maximum |
//! | `max` | effort `max` | 32000 tokens | `max` from 5.6, else the highest available | `HIGH` | the maximum |
//! | a budget | the nearest effort | that many tokens, at least 1024 | the nearest effort | the nearest level | that many tokens, within its bounds |
//!
//! OpenAI's Pro models have fewer efforts: gpt-5-pro has only `high`, and later Pro models have nothing below `medium`.
//!
//! The setting is left out for models that are known not to think, and for the servers of OpenAI's protocol that have no field for it.
//!
//! A [custom message](crate::message::CustomMessage) of kind `system` (at OpenAI also `developer`) is an instruction in the middle of a
//! conversation and is sent with that role. Gemini has no such role. Custom messages for Gemini, and custom messages of other kinds, are
//! sent as messages of the user.
#![cfg_attr(feature = "http", doc = "\n", doc = include_str!("../docs/own_provider.md"))]

#[cfg(not(feature = "http"))]
pub(crate) mod absent;
#[cfg(feature = "anthropic")]
pub mod anthropic;
#[cfg(feature = "http")]
mod body;
mod build_error;
#[cfg(feature = "http")]
mod call_ids;
#[cfg(feature = "http")]
mod catalogue;
#[cfg(any(feature = "http", feature = "runtime"))]
mod facts;
#[cfg(feature = "http")]
mod failure;
#[cfg(feature = "http")]
mod frequent;
#[cfg(feature = "gemini")]
pub mod gemini;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "http")]
mod managed;
#[cfg(feature = "http")]
mod media_types;
#[cfg(feature = "http")]
mod metadata;
#[cfg(feature = "openai")]
pub mod openai;
#[cfg(feature = "http")]
mod parts;
#[cfg(any(feature = "http", feature = "runtime"))]
mod prices;
#[cfg(feature = "http")]
mod protocol;
#[cfg(feature = "http")]
mod quota;
#[cfg(feature = "http")]
mod reply;
#[cfg(feature = "http")]
mod schema;
#[cfg(feature = "sse")]
pub mod sse;
#[cfg(all(test, any(feature = "anthropic", feature = "gemini", feature = "openai")))]
mod tests;
#[cfg(feature = "http")]
mod tools;
#[cfg(feature = "http")]
mod turns;
#[cfg(feature = "http")]
mod weight;
#[cfg(feature = "http")]
mod wire;

pub use build_error::BuildModelError;
#[cfg(feature = "http")]
pub use catalogue::{Catalogue, ProviderEntry, protocol, protocols};
#[cfg(feature = "http")]
pub use facts::ModelFacts;
#[cfg(any(feature = "http", feature = "runtime"))]
pub use facts::Prices;
#[cfg(all(test, feature = "runtime"))]
pub(crate) use facts::all_prices;
#[cfg(feature = "http")]
pub use managed::managed_results;
#[cfg(feature = "runtime")]
pub(crate) use prices::KnownPrices;
#[cfg(feature = "http")]
pub use protocol::{Decoder, HttpRequest, Protocol};
#[cfg(feature = "http")]
pub use reply::ReplyReader;
