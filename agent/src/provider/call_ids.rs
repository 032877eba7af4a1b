//! Replaces the ids of tool calls that a provider does not accept, for example because of their characters or their length.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::message::{AssistantMessage, Message, MessageList};

/// The ids that a request uses for calls and their results. Different ids stay different.
///
/// New ids are assigned in the order of the conversation, so that they do not change while the conversation grows.
pub(super) struct CallIds {
    changed: HashMap<String, String>,
}

/// The search for a new id tries one candidate for each id in use, and this number of candidates more, because candidates may repeat. If
/// no candidate is free, the id is not changed.
const MAX_REPEATED: usize = 1000;

impl CallIds {
    pub(super) fn unchanged() -> Self {
        Self { changed: HashMap::new() }
    }

    pub(super) fn is_unchanged(&self) -> bool {
        self.changed.is_empty()
    }

    pub(super) fn are_fine(
        messages: &[Arc<Message>],
        is_fine: impl Fn(&str, Option<&AssistantMessage>) -> bool,
    ) -> bool {
        messages.iter().all(|message| match &**message {
            Message::Assistant(reply) => reply.tool_calls().all(|call| is_fine(&call.id, Some(reply))),
            Message::ToolResult(result) => is_fine(&result.call_id, None),
            _ => true,
        })
    }

    /// Assigns the ids of a conversation. `fit` gets an id, the reply with the call, and a number, and returns an id that the provider
    /// accepts. The number is 0 at first, and increases while the returned id is already in use.
    pub(super) fn new(
        messages: &MessageList,
        fit: impl Fn(&str, Option<&AssistantMessage>, u32) -> String,
    ) -> Self {
        let (mut changed, mut known, mut taken) = (HashMap::new(), HashSet::new(), HashSet::new());
        let mut add = |id: &str, maker: Option<&AssistantMessage>| {
            if !known.insert(id.to_owned()) {
                return;
            }
            // `taken.len() + 1` candidates would be enough if `fit` never repeated one.
            let count = u32::try_from(taken.len().saturating_add(MAX_REPEATED)).unwrap_or(u32::MAX);
            let mut candidates = (0..count).map(|number| fit(id, maker, number));
            let free = candidates.find(|fitting| taken.insert(fitting.clone()));
            if let Some(fitting) = free.filter(|fitting| fitting != id) {
                changed.insert(id.to_owned(), fitting);
            }
        };
        for message in messages {
            match &**message {
                Message::Assistant(reply) => {
                    reply.tool_calls().for_each(|call| add(&call.id, Some(reply)));
                }
                Message::ToolResult(result) => add(&result.call_id, None),
                _ => {}
            }
        }
        Self { changed }
    }

    pub(super) fn get<'i>(&'i self, id: &'i str) -> &'i str {
        self.changed.get(id).map_or(id, String::as_str)
    }
}

/// Maximum length of a digest, far above the lengths that servers ask for.
const MAX_DIGEST: usize = 1024;

/// Returns `length` lower-case letters and digits, at most [`MAX_DIGEST`], that are derived from an id and a number.
pub(super) fn digest(id: &str, number: u32, length: usize) -> String {
    // FNV-1a suffices, because the digest must be well distributed, but not secret.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let numbered = (number > 0).then(|| number.to_le_bytes());
    for byte in id.bytes().chain(numbered.into_iter().flatten()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let length = length.min(MAX_DIGEST);
    let mut digits = String::with_capacity(length);
    for _ in 0..length {
        digits.extend(char::from_digit(u32::try_from(hash % 36).unwrap_or_default(), 36));
        hash = (hash / 36).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (hash >> 7);
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{OutcomeKind, Part, ToolResultMessage};

    #[test]
    fn two_ids_never_become_one_and_results_follow_their_calls() {
        let ids = ["a:1", "a_1", "a.1", "b"];
        let mut messages: Vec<Message> =
            vec![Message::assistant(ids.map(|id| Part::tool_call(id, "f", "{}")))];
        messages.extend(ids.map(|id| ToolResultMessage::new(id, "f", OutcomeKind::Completed).into()));
        let plain = |id: &str, _: Option<&AssistantMessage>, number: u32| {
            let safe = id.replace([':', '.'], "_");
            if number == 0 { safe } else { format!("{safe}_{}", digest(id, number, 6)) }
        };
        let sent = CallIds::new(&messages.into_iter().collect(), plain);
        let found = ids.map(|id| sent.get(id).to_owned());
        assert_eq!((found[0].as_str(), found[3].as_str()), ("a_1", "b"));
        let unique: HashSet<_> = found.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{found:?}");
        assert_eq!(sent.get("unknown"), "unknown");

        // The search for unused ids ends, even if `fit` proposes fewer ids than there are calls.
        let many: Vec<_> = (0..40).map(|n| Part::tool_call(format!("id{n}"), "f", "{}")).collect();
        let few =
            CallIds::new(&[Message::assistant(many)].into_iter().collect(), |id, _, n| digest(id, n, 1));
        assert_eq!(few.changed.values().collect::<HashSet<_>>().len(), 36);
    }

    #[test]
    fn an_id_whose_first_proposals_are_in_use_gets_a_later_one() {
        let fit = |id: &str, _: Option<&AssistantMessage>, number: u32| match number {
            0 => id.replace(':', "_"),
            number => format!("{}_{number}", id.replace(':', "_")),
        };
        let taken = (1..=1_200).map(|number| format!("a__{number}"));
        let ids = ["a_".to_owned()].into_iter().chain(taken).chain(["a:".to_owned()]);
        let calls: Vec<_> = ids.map(|id| Part::tool_call(id, "f", "{}")).collect();
        let sent = CallIds::new(&[Message::assistant(calls)].into_iter().collect(), fit);
        assert_eq!((sent.get("a_"), sent.get("a__1200"), sent.get("a:")), ("a_", "a__1200", "a__1201"));
    }
}
