//! OpenAI and what speaks like it.

mod chat;

pub use chat::{Compat, MaxTokensField, OpenAiChat, SystemRole};
