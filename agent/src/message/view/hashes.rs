//! Hashes of the first messages of a conversation. A stored `ViewChange` has such a hash, because it applies only to the same messages.

use std::sync::Arc;

use super::super::by_role::Message;
use super::super::content::Content;

/// The hashes of the prefixes of a conversation: of its first message, of its first two messages, and so on.
///
/// The hashes are the same in every process, and after messages were stored and read again. They cover roles, texts, and the ids and names
/// of calls. They do not cover arguments or structured data, because a store may withhold arguments and change the spelling of numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct PrefixHashes(Vec<u64>);

impl PrefixHashes {
    pub(super) fn covering(&mut self, messages: &[Arc<Message>], count: usize) -> String {
        let mut hash = self.0.last().copied().unwrap_or(OFFSET);
        for message in messages.get(self.0.len()..count).unwrap_or_default() {
            hash = add_message(hash, message);
            self.0.push(hash);
        }
        let hash = count.checked_sub(1).map_or(Some(OFFSET), |last| self.0.get(last).copied());
        format!("{:016x}", hash.unwrap_or_default())
    }
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

fn add_message(mut hash: u64, message: &Message) -> u64 {
    hash = add(hash, message.role());
    if let Message::ToolResult(result) = message {
        hash = add(add(hash, &result.call_id), &result.tool);
    }
    for part in message.content() {
        hash = match &part.content {
            Content::Text(text) | Content::Refusal(text) | Content::Thinking { text, .. } => add(hash, text),
            Content::ToolCall(call) => add(add(hash, &call.id), &call.name),
            _ => add(hash, "part"),
        };
    }
    add(hash, "message")
}

fn add(hash: u64, text: &str) -> u64 {
    let mix = |hash: u64, word: u64| {
        let hash = (hash ^ word).wrapping_mul(FACTOR);
        hash ^ hash >> 32
    };
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let hash = words.iter().fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    mix(mix(hash, rest), text.len() as u64)
}
