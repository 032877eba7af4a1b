//! OpenAI and what speaks like it.

mod chat;
mod errors;
mod models;
mod responses;

pub use chat::{Compat, MaxTokensField, OpenAiChat, SystemRole};
pub use responses::{OpenAiResponses, ReasoningSummary};
