//! Converts a conversation into [`WireTurn`]s, which the encoder of a protocol then writes. The conversion decides the role of each
//! message, the provider data that is sent, the results that share a message, and the position of media that a protocol does not accept in
//! a result or in a reply. [`WireRules`] has the differences between protocols.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use std::borrow::Cow;

use serde_json::Value;

use super::call_ids::CallIds;
use super::media_types::{UnsupportedPart, describe_unsupported};
use super::parts::own_data;
use crate::message::{AssistantMessage, Content, Message, MessageList, Part, ToolResultMessage};
use crate::model::{ModelError, ModelInfo};

#[derive(Debug)]
pub(super) struct WireRules {
    /// The name of the protocol in errors and in texts for the model.
    pub(super) protocol: &'static str,
    /// The kinds of custom messages that are roles of the protocol. Custom messages of other kinds are sent as messages of the user.
    pub(super) roles: &'static [&'static str],
    pub(super) joining: TurnJoining,
    pub(super) result_media: ResultMedia,
    pub(super) foreign_media: ForeignMedia,
}

/// The turns that are added to an earlier message of tool results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnJoining {
    Never,
    Results,
    ResultsAndUser,
}

/// The place for the media of a result. The function gets a part and the name of the provider, and returns whether the part moves to this
/// place.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResultMedia {
    Inside,
    /// In a separate field of the same result.
    Beside(fn(&Part, &str) -> bool),
    /// In a message of the user after all results of the same reply.
    After(fn(&Part, &str) -> bool),
    /// Like `After` for an error, and like `Inside` for any other result.
    AfterIfFailed(fn(&Part, &str) -> bool),
}

/// The place for media of other providers' replies. Most protocols accept no media in messages of the assistant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForeignMedia {
    Inside,
    /// In a message of the user after the reply.
    AfterReply,
    /// In a message of the user after the results of the reply's calls.
    AfterResults,
}

/// A unit of a conversation. A protocol writes it as a message, as items, or as blocks of the previous message.
#[derive(Debug)]
pub(super) struct WireTurn<'a> {
    pub(super) content: TurnContent<'a>,
    pub(super) data: Option<&'a Value>,
    /// Whether the turn is added to the previous message, if the protocol joins turns.
    pub(super) joins: bool,
    /// The position before the turn, where a later request can continue. `None` for a result or a joined turn.
    pub(super) start: Option<TurnBoundary>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TurnBoundary {
    /// The number of messages before the position.
    pub(super) messages: usize,
    pub(super) follows_result: bool,
}

#[derive(Debug)]
pub(super) enum TurnContent<'a> {
    /// A message of the user, or an instruction. Its role is `user` or one of [`WireRules::roles`].
    Input {
        role: &'a str,
        parts: &'a [Part],
    },
    Reply {
        message: &'a AssistantMessage,
        /// Whether no message of the user follows this reply.
        is_current: bool,
    },
    Result(WireResult<'a>),
    Media(Vec<Value>),
}

/// The result of a call. Parts that the protocol does not accept are replaced by descriptions.
#[derive(Debug)]
pub(super) struct WireResult<'a> {
    pub(super) message: &'a ToolResultMessage,
    pub(super) call_id: &'a str,
    /// The parts of the result, except media that are sent in another field or message.
    pub(super) parts: Cow<'a, [Part]>,
    /// The encoded media that are sent in a field of their own ([`ResultMedia::Beside`]).
    pub(super) media: Vec<Value>,
    /// Whether media of this result are sent in a message of the user after all results of the same reply.
    pub(super) has_media_after: bool,
}

/// A function that writes a part. It returns `None` for a part that is not sent.
pub(super) type WritePart<'w> = &'w dyn Fn(&Part) -> Result<Option<Value>, UnsupportedPart>;

pub(super) struct TurnShaper<'a> {
    pub(super) rules: &'static WireRules,
    pub(super) model: &'a ModelInfo,
    pub(super) ids: &'a CallIds,
    /// Writes the parts of results, and the media that are sent after results or replies.
    pub(super) write: WritePart<'a>,
}

impl<'a> TurnShaper<'a> {
    /// Returns the turns of a conversation from a position on, in order. A message with an unknown role has no turn.
    ///
    /// # Errors
    /// Fails if media that are sent outside of their result cannot be written.
    pub(super) fn turns(
        &self,
        messages: &'a MessageList,
        from: TurnBoundary,
    ) -> Result<Vec<WireTurn<'a>>, ModelError> {
        let mut turns: Vec<WireTurn<'a>> = Vec::with_capacity(messages.len() - from.messages);
        // Media that are sent after the results of the current reply.
        let mut media: Vec<Value> = Vec::new();
        let mut after_result = from.follows_result;
        let last_user = last_user(messages);
        for (at, message) in messages.iter().enumerate().skip(from.messages) {
            if !matches!(**message, Message::ToolResult(_)) {
                push_media(&mut turns, &mut media);
            }
            let (content, data) = match &**message {
                Message::User(user) => {
                    (TurnContent::Input { role: "user", parts: &user.content }, &user.provider_data)
                }
                Message::Custom(custom) => {
                    let role = self.rules.roles.iter().find(|role| **role == custom.kind);
                    let parts = custom.for_model.as_deref().unwrap_or_default();
                    let role = role.copied().unwrap_or("user");
                    (TurnContent::Input { role, parts }, &custom.provider_data)
                }
                Message::Assistant(reply) => {
                    let is_current = last_user.is_none_or(|last| at > last);
                    (TurnContent::Reply { message: reply, is_current }, &reply.provider_data)
                }
                Message::ToolResult(result) => {
                    (TurnContent::Result(self.result(result, &mut media)?), &result.provider_data)
                }
                Message::Unknown(_) => continue,
            };
            let data = own_data(&self.model.provider, data.as_deref());
            let after_reply =
                matches!(turns.last(), Some(WireTurn { content: TurnContent::Reply { .. }, .. }));
            let joins = !after_reply && self.joins(&content, data, after_result);
            let is_result = matches!(content, TurnContent::Result(_));
            let start =
                (!joins && !is_result).then_some(TurnBoundary { messages: at, follows_result: after_result });
            after_result = is_result;
            turns.push(WireTurn { content, data, joins, start });
            if let Message::Assistant(reply) = &**message
                && self.rules.foreign_media != ForeignMedia::Inside
            {
                self.foreign_media(reply, &mut media);
                if self.rules.foreign_media == ForeignMedia::AfterReply {
                    push_media(&mut turns, &mut media);
                }
            }
        }
        push_media(&mut turns, &mut media);
        Ok(turns)
    }

    /// Returns whether a turn is added to the previous message. A parsed turn records this in its data, as `joined` or `apart`.
    fn joins(&self, content: &TurnContent<'_>, data: Option<&Value>, after_result: bool) -> bool {
        let is_candidate = match (self.rules.joining, content) {
            (TurnJoining::Never, _) | (_, TurnContent::Reply { .. } | TurnContent::Media(_)) => return false,
            (_, TurnContent::Result(_)) => true,
            (joining, TurnContent::Input { role, .. }) => {
                joining == TurnJoining::ResultsAndUser && *role == "user"
            }
        };
        let is_apart = data.is_some_and(|data| data.get("apart").is_some());
        let joined = data.and_then(|data| data.get("joined")?.as_bool());
        joined.unwrap_or(is_candidate && after_result && !is_apart)
    }

    fn result(
        &self,
        message: &'a ToolResultMessage,
        after: &mut Vec<Value>,
    ) -> Result<WireResult<'a>, ModelError> {
        let parts = describe_unsupported(&message.content, self.rules.protocol, self.write);
        let call_id = self.ids.get(&message.call_id);
        let mut result = WireResult { message, call_id, parts, media: Vec::new(), has_media_after: false };
        let provider = self.model.provider.as_str();
        let (is_media, is_after) = match self.rules.result_media {
            ResultMedia::Inside => return Ok(result),
            ResultMedia::AfterIfFailed(_) if !message.is_error => return Ok(result),
            ResultMedia::Beside(is_media) => (is_media, false),
            ResultMedia::After(is_media) | ResultMedia::AfterIfFailed(is_media) => (is_media, true),
        };
        if !result.parts.iter().any(|part| is_media(part, provider)) {
            return Ok(result);
        }
        let parts = result.parts.iter().cloned();
        let (media, texts): (Vec<Part>, Vec<Part>) = parts.partition(|part| is_media(part, provider));
        let media = write_parts(&media, self.rules, self.write)?;
        if is_after {
            let note = format!("What `{}` (call {call_id}) shows:", message.tool);
            after.extend(write_parts(&[Part::text(note)], self.rules, self.write)?);
            after.extend(media);
            result.has_media_after = true;
        } else {
            result.media = media;
        }
        result.parts = texts.into();
        Ok(result)
    }

    /// Adds the media of another provider's reply to `shown`, each after a text that names the media. If the media cannot be sent, only
    /// the text is added.
    fn foreign_media(&self, reply: &AssistantMessage, shown: &mut Vec<Value>) {
        let takes = self.model.capabilities;
        let foreign =
            reply.content.iter().filter(|part| part.provider_data_of(&self.model.provider).is_none());
        for part in foreign {
            let (what, is_taken) = match &part.content {
                Content::Image(_) => ("a picture", takes.images),
                Content::Document(_) => ("a document", takes.documents),
                Content::Audio(_) => ("a recording", takes.audio),
                _ => continue,
            };
            let written = (self.write)(part).ok().flatten().filter(|_| is_taken);
            let words = if written.is_some() { ":" } else { ", which cannot be shown here." };
            let note = Part::text(format!("The assistant made {what}{words}"));
            shown.extend((self.write)(&note).ok().flatten());
            shown.extend(written);
        }
    }
}

pub(super) fn last_user(messages: &MessageList) -> Option<usize> {
    messages.iter().rposition(|message| matches!(**message, Message::User(_)))
}

pub(super) fn write_parts(
    parts: &[Part],
    rules: &WireRules,
    write: impl Fn(&Part) -> Result<Option<Value>, UnsupportedPart>,
) -> Result<Vec<Value>, ModelError> {
    let written = parts.iter().filter_map(|part| write(part).transpose());
    written.map(|part| part.map_err(|unsupported| unsupported.to_error(rules.protocol))).collect()
}

/// Returns the texts of a message that has only texts, no cache marks and no data of this provider. Such frequent messages are written
/// without JSON values. Returns `None` for any other message.
pub(super) fn plain_texts<'p>(parts: &'p [Part], provider: &str) -> Option<Vec<&'p str>> {
    let plain = |part: &'p Part| {
        part.as_text().filter(|_| part.provider_data_of(provider).is_none() && part.cache.is_none())
    };
    if parts.is_empty() || writes_values_only() { None } else { parts.iter().map(plain).collect() }
}

/// Returns whether a reply has only texts, calls and thinking, and no cache marks or data of this provider. This frequent case is written
/// without JSON values.
pub(super) fn is_plain_reply(message: &AssistantMessage, data: Option<&Value>, provider: &str) -> bool {
    let is_plain = |part: &Part| {
        matches!(part.content, Content::Text(_) | Content::ToolCall(_) | Content::Thinking { .. })
            && part.provider_data_of(provider).is_none()
            && part.cache.is_none()
    };
    data.is_none() && !writes_values_only() && message.content.iter().all(is_plain)
}

#[cfg(test)]
thread_local! {
    /// Whether all turns are written as JSON values. Tests set it to compare the frequent case with the general case.
    pub(super) static VALUES_ONLY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn writes_values_only() -> bool {
    #[cfg(test)]
    return VALUES_ONLY.get();
    #[cfg(not(test))]
    false
}

/// Returns the text if the only part is a text without data of this provider.
pub(super) fn plain_text<'p>(parts: &'p [Part], provider: &str) -> Option<&'p str> {
    let [part] = parts else { return None };
    part.as_text().filter(|_| part.provider_data_of(provider).is_none())
}

fn push_media(turns: &mut Vec<WireTurn<'_>>, media: &mut Vec<Value>) {
    if !media.is_empty() {
        let content = TurnContent::Media(std::mem::take(media));
        turns.push(WireTurn { content, data: None, joins: true, start: None });
    }
}
