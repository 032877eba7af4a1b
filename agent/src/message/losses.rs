//! Counts of the message parts that a model does not get.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::by_role::Message;
use super::content::Content;
use super::part::Part;

/// Counts of message parts that a model does not get, or gets only as a description in words.
///
/// A [hand-off](crate::model::ModelInfo::hand_off) leaves out or rewrites parts that the model does not understand or accept. Failed
/// replies and parts that this version [cannot read](Content::Unknown) are not counted, because no model gets them. Data of other
/// providers in messages of the user and in results is not counted either: a hand-off leaves the data in these messages, but the request
/// does not contain the data.
///
/// ```
/// use agent::message::{AssistantMessage, Conversation, HandOffLosses, Message, Part};
/// use agent::model::ModelInfo;
///
/// let mut reply = AssistantMessage::new([Part::thinking("hm"), Part::text("Hi!")]);
/// reply.provider = "anthropic".into();
/// let conversation = Conversation::from_iter([Message::user("Hello"), reply.into()]);
///
/// let sent = ModelInfo::new("openai", "responses", "gpt-5").hand_off(&conversation);
/// let losses = HandOffLosses::between(&conversation.list(), &sent);
/// assert_eq!((losses.thinking, losses.media), (1, 0));
/// assert_eq!(losses.to_string(), "1 thinking part");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HandOffLosses {
    /// Parts with thinking.
    pub thinking: u32,
    /// State of providers that does not belong to thinking, for example the signatures of calls.
    pub provider_data: u32,
    /// Tools that a provider ran, which are described in words.
    pub provider_tools: u32,
    /// Images, documents and audio, which are described in words.
    pub media: u32,
}

impl HandOffLosses {
    /// Counts the parts of a conversation that the messages of a request do not have.
    pub fn between(conversation: &[Arc<Message>], sent: &[Arc<Message>]) -> Self {
        let (all, sent) = (Self::parts(conversation), Self::parts(sent));
        Self {
            thinking: all.thinking.saturating_sub(sent.thinking),
            provider_data: all.provider_data.saturating_sub(sent.provider_data),
            provider_tools: all.provider_tools.saturating_sub(sent.provider_tools),
            media: all.media.saturating_sub(sent.media),
        }
    }

    /// Returns whether nothing was lost.
    ///
    /// ```
    /// use agent::message::HandOffLosses;
    ///
    /// assert!(HandOffLosses::between(&[], &[]).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn parts(messages: &[Arc<Message>]) -> Self {
        let mut counts = Self::default();
        for message in messages {
            let has_data = match &**message {
                Message::Assistant(reply) if reply.stop_reason.is_failure() => continue,
                Message::Assistant(reply) => reply.provider_data.is_some(),
                Message::User(user) => user.provider_data.is_some(),
                Message::ToolResult(result) => result.provider_data.is_some(),
                Message::Custom(custom) => custom.provider_data.is_some(),
                Message::Unknown(_) => false,
            };
            counts.provider_data += u32::from(has_data);
            message.content().iter().for_each(|part| counts.add(part));
        }
        counts
    }

    fn add(&mut self, part: &Part) {
        match &part.content {
            Content::Thinking { .. } => {
                self.thinking += 1;
                return;
            }
            Content::ProviderTool(_) => self.provider_tools += 1,
            Content::Image(_) | Content::Document(_) | Content::Audio(_) => self.media += 1,
            Content::Opaque(_) => self.provider_data += 1,
            _ => {}
        }
        self.provider_data += u32::from(part.provider_data.is_some());
    }
}

/// Writes the counts that are not zero, for example `2 thinking parts, 1 image or file`, or else `nothing`.
impl std::fmt::Display for HandOffLosses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = [
            (self.thinking, "thinking part"),
            (self.provider_data, "piece of provider state"),
            (self.provider_tools, "provider tool"),
            (self.media, "image or file"),
        ];
        let mut separator = "";
        for (count, noun) in counts.into_iter().filter(|(count, _)| *count > 0) {
            let noun = match (count, noun) {
                (1, noun) => noun.to_owned(),
                (_, "piece of provider state") => "pieces of provider state".to_owned(),
                (_, "image or file") => "images or files".to_owned(),
                (_, noun) => format!("{noun}s"),
            };
            write!(f, "{separator}{count} {noun}")?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("nothing") } else { Ok(()) }
    }
}
