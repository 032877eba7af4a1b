//! OpenAI and what speaks like it.

mod chat;
mod content;
mod errors;
mod models;
mod responses;
mod servers;

pub use chat::{Compat, EchoThinking, MaxTokensField, OpenAiChat, SystemRole, ThinkingField};
pub use responses::{OpenAiResponses, ReasoningSummary};
pub(super) use servers::SERVERS;
