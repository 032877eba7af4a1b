//! The conversation, in a form that is independent of any provider.
//!
//! A [`Conversation`] is a list of [`Message`]s, and a message consists of [`Part`]s. Data that only one provider understands (signatures,
//! encrypted reasoning, item ids) is kept as [`ProviderData`] of a part or message, and is sent back to this provider unchanged.
//!
//! All types are plain data with serde implementations. Part types, fields and values that this version does not know are preserved when a
//! message is read and written again.
//!
//! ```
//! use agent::message::{Conversation, Message, Part};
//!
//! let mut conversation = Conversation::new();
//! conversation.push(Message::user("What is on this picture?"));
//! conversation.push(Message::user([Part::image(vec![0x89, b'P'], "image/png")]));
//!
//! let json = serde_json::to_string(&conversation)?;
//! assert_eq!(serde_json::from_str::<Conversation>(&json)?, conversation);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod arguments;
mod by_role;
mod content;
pub(crate) mod continued;
mod conversation;
mod hand_off;
pub(crate) mod json;
pub(crate) mod kept;
mod list;
mod losses;
mod marks;
mod media;
mod part;
mod repair;
mod roles;
mod usage;
mod view;
pub(crate) mod whole;
mod words;

pub use arguments::{ToolArguments, ToolCall};
pub use by_role::Message;
pub use content::{CacheMark, Content, ProviderData, ProviderTool};
pub use conversation::Conversation;
pub(crate) use hand_off::{HandOff, Recipient};
pub use list::MessageList;
pub use losses::HandOffLosses;
pub(crate) use media::MediaSource;
pub use media::{Media, Resource, ResourceLink};
pub use part::Part;
#[cfg(feature = "runtime")]
pub(crate) use repair::LOST;
pub use roles::{AssistantMessage, CustomMessage, ToolResultMessage, UserMessage};
pub use usage::{Cost, Usage};
pub(crate) use view::{ClearedResult, ConversationView};
pub use view::{ViewChange, ViewError};
pub use words::{OutcomeKind, StopReason};

#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;
