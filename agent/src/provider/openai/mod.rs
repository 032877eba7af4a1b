//! OpenAI and what speaks like it.

mod chat;
mod content;
mod errors;
mod managed;
mod models;
mod responses;
mod servers;

pub use chat::{Compat, EchoThinking, MaxTokensField, OpenAiChat, SystemRole, ThinkingField, WebSearchField};
pub use responses::{OpenAiResponses, ReasoningSummary};
pub(super) use servers::SERVERS;
