//! Converts a conversation, which may have replies of other models, into the messages that are sent to one model.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher};
use std::sync::Arc;

use serde_json::Value;

use crate::name_hash::NameHash;

use super::arguments::ToolArguments;
use super::by_role::Message;
use super::content::{Content, ProviderData};
use super::conversation::Conversation;
use super::kept::KeptSlot;
use super::list::MessageList;
use super::media::{Media, MediaSource};
use super::part::Part;
use super::roles::AssistantMessage;
use super::words::StopReason;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recipient {
    pub(crate) provider: Arc<str>,
    pub(crate) api: Arc<str>,
    pub(crate) model: Arc<str>,
    pub(crate) takes_images: bool,
    pub(crate) takes_documents: bool,
    pub(crate) takes_audio: bool,
}

impl Recipient {
    pub(crate) fn new(
        provider: impl Into<Arc<str>>,
        api: impl Into<Arc<str>>,
        model: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            provider: provider.into(),
            api: api.into(),
            model: model.into(),
            takes_images: true,
            takes_documents: true,
            takes_audio: true,
        }
    }

    /// Returns whether data is for the recipient's provider, but for another protocol. Encoders themselves ignore data of other providers.
    fn is_of_other_protocol(&self, provider: &str, api: Option<&str>) -> bool {
        provider == &*self.provider && api.is_some_and(|api| api != &*self.api)
    }

    fn is_foreign_data(&self, data: Option<&ProviderData>) -> bool {
        data.is_some_and(|data| self.is_of_other_protocol(&data.provider, data.api.as_deref()))
    }

    fn is_foreign_part(&self, part: &Part) -> bool {
        self.is_foreign_data(part.provider_data.as_deref()) || self.is_foreign_item(part)
    }

    fn is_foreign_item(&self, part: &Part) -> bool {
        let Content::Opaque(opaque) = &part.content else { return false };
        self.is_of_other_protocol(&opaque.provider, opaque.api.as_deref())
    }

    /// Returns whether a reply has a summary that the provider wrote for this model: a part of the type `compaction` with content. The
    /// content is missing if the provider failed to write the summary.
    fn has_summary(&self, reply: &AssistantMessage) -> bool {
        let is_own =
            || (&*reply.provider, &*reply.api, &*reply.model) == (&*self.provider, &*self.api, &*self.model);
        let has_text = |data: &Value, key: &str| {
            data.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
        };
        // The parts are checked before the origin of the reply, because few replies have a part of this type.
        !self.provider.is_empty()
            && !reply.stop_reason.is_failure()
            && reply.content.iter().any(|part| match &part.content {
                Content::Opaque(opaque) => {
                    *opaque.provider == *self.provider
                        && opaque.data.get("type").is_some_and(|kind| kind == "compaction")
                        && (has_text(&opaque.data, "content") || has_text(&opaque.data, "encrypted_content"))
                }
                _ => false,
            })
            && is_own()
    }

    /// Replaces unsupported media by descriptions, and removes the data of other protocols. Returns `None` if the parts can stay
    /// unchanged.
    pub(crate) fn fitting(&self, parts: &[Part]) -> Option<Vec<Part>> {
        if parts.iter().all(is_plain) { None } else { self.fit(parts) }
    }

    #[inline(never)]
    fn fit(&self, parts: &[Part]) -> Option<Vec<Part>> {
        let words = |part: &Part| match &part.content {
            Content::Image(media) if !self.takes_images => Some(describe("picture", media)),
            Content::Document(media) if !self.takes_documents => Some(describe("document", media)),
            Content::Audio(media) if !self.takes_audio => Some(describe("recording", media)),
            _ => None,
        };
        if !parts.iter().any(|part| words(part).is_some() || self.is_foreign_part(part)) {
            return None;
        }
        let mut fitting = Vec::with_capacity(parts.len());
        for part in parts.iter().filter(|part| !self.is_foreign_item(part)) {
            let mut part = words(part).map_or_else(|| part.clone(), Part::text);
            part.provider_data = part.provider_data.filter(|data| !self.is_foreign_data(Some(data)));
            fitting.push(part);
        }
        Some(fitting)
    }
}

/// The messages that are sent to one model for a conversation. [`update`](Self::update) adds new messages.
///
/// * Replies that failed or were aborted, messages without content for a model, and messages with unknown roles are left out.
/// * Thinking, and the provider data of parts that are not calls, go back only to the model that created them, over the same protocol.
/// * Opaque items, the provider data of calls and the provider data of whole messages go back to any model of their provider, over the
///   same protocol.
/// * A description replaces the call and the result of a tool that a provider ran, unless the recipient is the model that wrote the reply.
/// * Parts of unknown kinds are left out of replies. A reply without any remaining part is left out.
/// * Messages before the newest summary that the provider wrote for this model are left out, except pinned messages, which follow the
///   summary.
/// * Call ids are mapped to `[A-Za-z0-9_-]{1,64}` and are unique in the request. A result gets the new id of its call.
/// * Provider data that names a protocol is sent back only over this protocol.
/// * Images, documents and audio that the model does not accept are replaced by a description, except in replies, where the encoder
///   decides. Arguments that are not JSON become `{}`.
///
/// A message that needs no change is shared, not copied. The conversation must be [sound](Conversation::is_sound).
#[derive(Clone, Debug, Default)]
pub(crate) struct HandOff {
    recipient: Recipient,
    sent: MessageList,
    /// The number of messages that were read. `last` is the last message that was read.
    read: usize,
    last: Option<Arc<Message>>,
    /// Hashes of the call ids in the request. A collision only causes a needless rename.
    taken: HashSet<u64, BuildHasherDefault<IdHash>>,
    hash: NameHash,
    /// The old id and the new id of each renamed call of the last reply that has no result yet, in call order.
    renamed: VecDeque<(String, String)>,
    /// The pinned messages that the provider's summary replaced. They are sent again after the summary.
    pins: Vec<Arc<Message>>,
    /// The number of missing results for calls of the last reply.
    due: usize,
}

impl HandOff {
    pub(crate) fn new(recipient: Recipient) -> Self {
        Self { recipient, sent: MessageList::new().with_slot(KeptSlot::new()), ..Self::default() }
    }

    #[cfg(any(test, feature = "runtime"))]
    pub(crate) fn fork(&self) -> Self {
        let fork = self.clone();
        Self { sent: fork.sent.with_slot(self.sent.slot().fork()), ..fork }
    }

    pub(crate) fn of(conversation: &Conversation, recipient: Recipient) -> Self {
        let mut all = Self::new(recipient);
        all.update(conversation.shared());
        all
    }

    pub(crate) fn messages(&self) -> &MessageList {
        &self.sent
    }

    /// Makes the next update read all messages. The [`KeptSlot`] stays, so encoders still find the text of unchanged messages.
    pub(crate) fn restart(&mut self) {
        let kept = self.sent.slot().clone();
        *self = Self::new(std::mem::take(&mut self.recipient));
        self.sent = MessageList::new().with_slot(kept);
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn set_recipient(&mut self, recipient: Recipient) {
        if self.recipient != recipient {
            self.recipient = recipient;
            self.restart();
        }
    }

    /// Reads the messages that were added since the last update, or all messages if this is another conversation.
    pub(crate) fn update(&mut self, conversation: &[Arc<Message>]) {
        let same = match (&self.last, self.read.checked_sub(1).and_then(|at| conversation.get(at))) {
            (Some(last), Some(now)) => Arc::ptr_eq(last, now),
            (None, _) => self.read == 0,
            (Some(_), None) => false,
        };
        if !same {
            self.restart();
        }
        let new = conversation.get(self.read..).unwrap_or_default();
        if !new.is_empty() {
            let mut sent = std::mem::take(&mut self.sent);
            self.send(conversation, &mut sent);
            self.sent = sent;
        }
        self.read = conversation.len();
        self.last = conversation.last().cloned();
    }

    fn send(&mut self, conversation: &[Arc<Message>], list: &mut MessageList) {
        let new = conversation.len() - self.read;
        let mut sent = list.list_mut();
        sent.reserve(new);
        // Assumes one call in four messages: a prompt, a call, its result and a reply.
        self.taken.reserve(new / 4);
        for (at, message) in conversation.iter().enumerate().skip(self.read) {
            if self.passes(message) {
                sent.push(message.clone());
                if !self.pins.is_empty() {
                    self.send_pins(message, sent);
                }
                continue;
            }
            if let Message::Assistant(reply) = &**message
                && self.recipient.has_summary(reply)
            {
                // The provider ignores everything before its own summary, so the earlier messages are removed from the list. Pinned
                // messages are sent again after the summary.
                list.clear();
                sent = list.list_mut();
                // The ids of the removed messages are free again, so that new ids do not depend on the removed messages.
                self.taken.clear();
                self.pins =
                    conversation.iter().take(at).filter(|message| is_pinned(message)).cloned().collect();
            }
            sent.extend(self.convert(message));
            if !self.pins.is_empty() {
                self.send_pins(message, sent);
            }
        }
    }

    /// Adds the pinned messages, unless the next message must be a result or the continuation of a paused reply.
    fn send_pins(&mut self, last: &Message, sent: &mut Vec<Arc<Message>>) {
        if self.due == 0 && !is_paused(last) {
            for pin in std::mem::take(&mut self.pins) {
                sent.extend(self.convert(&pin));
            }
        }
    }

    /// Returns whether every recipient gets the message unchanged, because it has only texts. If so, also updates `due`, as
    /// [`convert`](Self::convert) does for other messages.
    fn passes(&mut self, message: &Message) -> bool {
        let (content, data) = match message {
            Message::User(user) => (&user.content, &user.provider_data),
            Message::ToolResult(result) if self.renamed.is_empty() => {
                (&result.content, &result.provider_data)
            }
            Message::Assistant(reply) if self.renamed.is_empty() && !reply.stop_reason.is_failure() => {
                (&reply.content, &reply.provider_data)
            }
            _ => return false,
        };
        let is_text = |part: &Part| part.provider_data.is_none() && matches!(part.content, Content::Text(_));
        if data.is_some() || !content.iter().all(is_text) {
            return false;
        }
        match message {
            Message::ToolResult(_) => self.due = self.due.saturating_sub(1),
            Message::Assistant(_) => self.due = 0,
            _ => {}
        }
        true
    }

    /// Returns the message to send, or `None` if the message is left out.
    #[inline(never)]
    fn convert(&mut self, message: &Arc<Message>) -> Option<Arc<Message>> {
        let mut new_id = None;
        let (content, data) = match &**message {
            Message::Assistant(reply) => return self.convert_reply(message, reply),
            Message::ToolResult(result) => {
                self.due = self.due.saturating_sub(1);
                new_id = self.take_new_id(&result.call_id);
                (&result.content, &result.provider_data)
            }
            Message::User(user) => (&user.content, &user.provider_data),
            Message::Custom(custom) => (custom.for_model.as_ref()?, &custom.provider_data),
            Message::Unknown(_) => return None,
        };
        let content = self.recipient.fitting(content);
        let is_foreign = self.recipient.is_foreign_data(data.as_deref());
        if new_id.is_none() && content.is_none() && !is_foreign {
            return Some(message.clone());
        }
        Some(Arc::new(changed(message, new_id, content, is_foreign)))
    }

    fn convert_reply(&mut self, message: &Arc<Message>, reply: &AssistantMessage) -> Option<Arc<Message>> {
        if !self.renamed.is_empty() {
            self.renamed.clear();
        }
        if reply.stop_reason.is_failure() {
            return None;
        }
        // The position and the new id of each renamed call.
        let mut renamed: Vec<(usize, String)> = Vec::new();
        let mut is_json = true;
        self.due = 0;
        for (at, call) in reply.tool_calls().enumerate() {
            self.due += 1;
            renamed.extend(self.unique_id(&call.id).map(|name| (at, name)));
            is_json &= call.args.is_json();
        }
        // In this frequent case, `change_reply` would change nothing.
        if renamed.is_empty()
            && is_json
            && reply.provider_data.is_none()
            && reply.content.iter().all(is_plain)
        {
            return Some(message.clone());
        }
        self.change_reply(message, reply, renamed, is_json)
    }

    /// Returns the reply for the recipient, or `None` if no part is left.
    #[inline(never)]
    fn change_reply(
        &mut self,
        message: &Arc<Message>,
        reply: &AssistantMessage,
        renamed: Vec<(usize, String)>,
        is_json: bool,
    ) -> Option<Arc<Message>> {
        // Each protocol of a provider has its own form of provider data and of opaque parts. So the data and the parts are sent only over
        // the protocol that the reply came from, which is `api`. A reply with an empty `api` fits every protocol.
        let same_api = reply.api.is_empty() || *reply.api == *self.recipient.api;
        let is_same_service = *reply.provider == *self.recipient.provider && same_api;
        let is_own =
            is_same_service && *reply.api == *self.recipient.api && *reply.model == *self.recipient.model;
        let provider = &self.recipient.provider;
        let keeps_data = |part: &Part| {
            part.provider_data.as_ref().is_none_or(|data| {
                *data.provider == **provider
                    && data.api.as_ref().is_none_or(|api| **api == *self.recipient.api)
                    && (is_own || (same_api && part.as_tool_call().is_some()))
            })
        };
        let is_foreign = |part: &Part| match &part.content {
            Content::Thinking { .. } => !is_own,
            Content::Opaque(opaque) => {
                *opaque.provider != **provider || !same_api || self.recipient.is_foreign_item(part)
            }
            Content::Unknown(_) => true,
            _ => false,
        };
        let in_words = |part: &Part| !is_own && matches!(part.content, Content::ProviderTool(_));
        let foreign_data = reply.provider_data.as_ref().is_some_and(|data| {
            *data.provider != **provider || !same_api || self.recipient.is_foreign_data(Some(data))
        });
        let is_changed = |part: &Part| is_foreign(part) || in_words(part) || !keeps_data(part);
        if renamed.is_empty() && is_json && !foreign_data && !reply.content.iter().any(is_changed) {
            return Some(message.clone());
        }
        let mut changed = reply.clone();
        if foreign_data {
            changed.provider_data = None;
        }
        changed.content.retain(|part| !is_foreign(part));
        let (mut renamed, mut position) = (renamed.into_iter().peekable(), 0..);
        for part in &mut changed.content {
            if !keeps_data(part) {
                part.provider_data = None;
            }
            if let Content::ProviderTool(tool) = &part.content
                && !is_own
            {
                *part = Part::text(tool.description());
            }
            let Content::ToolCall(call) = &mut part.content else { continue };
            let at = position.next();
            if let Some((_, name)) = renamed.next_if(|(renamed, _)| Some(*renamed) == at) {
                self.renamed.push_back((std::mem::replace(&mut call.id, name.clone()), name));
            }
            if !call.args.is_json() {
                call.args = ToolArguments::default();
            }
        }
        (!changed.content.is_empty()).then(|| Arc::new(changed.into()))
    }

    /// Removes and returns the first new id in `renamed`, if it is for the call `id`. Results come in call order.
    fn take_new_id(&mut self, id: &str) -> Option<String> {
        let is_next = self.renamed.front().is_some_and(|(from, _)| from == id);
        is_next.then(|| self.renamed.pop_front())?.map(|(_, to)| to)
    }

    /// Returns a new id for a call, or `None` if its id need not change.
    fn unique_id(&mut self, id: &str) -> Option<String> {
        if (1..=MAX_ID).contains(&id.len()) && is_legal(id) && self.taken.insert(self.hash.hash_one(id)) {
            return None;
        }
        let mut base: String = id
            .chars()
            .take(MAX_ID)
            .map(|c| if c.is_ascii() && IS_ID_BYTE[usize::from(c as u8)] { c } else { '_' })
            .collect();
        if base.is_empty() {
            base.push_str("call");
        }
        // The number starts at the count of ids, so that many calls with the same id do not all try the same names.
        let mut number = self.taken.len();
        let mut name = base.clone();
        while !self.taken.insert(self.hash.hash_one(name.as_str())) {
            number += 1;
            let end = format!("_{number}");
            name.clear();
            name.push_str(&base[..base.len().min(MAX_ID - end.len())]);
            name.push_str(&end);
        }
        Some(name)
    }
}

fn changed(
    message: &Message,
    new_id: Option<String>,
    new_content: Option<Vec<Part>>,
    is_foreign: bool,
) -> Message {
    let mut message = message.clone();
    let (content, data) = match &mut message {
        Message::ToolResult(result) => {
            result.call_id = new_id.unwrap_or_else(|| std::mem::take(&mut result.call_id));
            (&mut result.content, &mut result.provider_data)
        }
        Message::User(user) => (&mut user.content, &mut user.provider_data),
        Message::Custom(custom) => (custom.for_model.get_or_insert_default(), &mut custom.provider_data),
        Message::Assistant(_) | Message::Unknown(_) => return message,
    };
    if let Some(new) = new_content {
        *content = new;
    }
    if is_foreign {
        *data = None;
    }
    message
}

fn is_pinned(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.is_pinned())
}

fn is_paused(message: &Message) -> bool {
    matches!(message, Message::Assistant(reply) if reply.stop_reason == StopReason::Pause)
}

/// Returns whether a part is a text or a call without provider data. Every recipient gets such a part unchanged, apart from the id and the
/// arguments of a call.
fn is_plain(part: &Part) -> bool {
    part.provider_data.is_none() && matches!(part.content, Content::Text(_) | Content::ToolCall(_))
}

const MAX_ID: usize = 64;

/// For each byte, whether every provider accepts it in an id.
const IS_ID_BYTE: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0_u8);
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        byte += 1;
    }
    table
};

fn is_legal(id: &str) -> bool {
    id.bytes().all(|byte| IS_ID_BYTE[usize::from(byte)])
}

#[derive(Default)]
struct IdHash(u64);

impl Hasher for IdHash {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn describe(what: &str, media: &Media) -> String {
    let kind = media.mime_type.as_deref().unwrap_or("of unknown type");
    match &media.source {
        MediaSource::Data(bytes) => {
            format!("[a {what} was here ({kind}, {} bytes); this model takes none]", bytes.len())
        }
        MediaSource::Url(url) => format!("[a {what} was here ({url}); this model takes none]"),
        MediaSource::FileId(_) => format!("[a {what} was here ({kind}); this model takes none]"),
    }
}
