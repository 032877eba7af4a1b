//! The invariant of conversations: each call has exactly one result, directly after its message, in call order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::arguments::ToolCall;
use super::by_role::Message;
use super::content::Content;
use super::conversation::Conversation;
use super::part::Part;
use super::roles::{AssistantMessage, ToolResultMessage};
use super::words::OutcomeKind;

pub(crate) const LOST: &str = "No result of this call was recorded. It is not known whether it took effect.";

#[cfg(feature = "runtime")]
const UNDECIDED: &str = "The call was not run: it waited for a decision, and a new message came first.";

impl Conversation {
    /// Repairs the conversation so that every provider accepts it, and returns a sentence about each change, for a log. A sound
    /// conversation is not changed.
    ///
    /// Afterwards, each reply is directly followed by exactly one result for each of its calls, in call order. Replies that failed or were
    /// aborted are not sent, so their calls have no results. Call ids are unique in a reply. A call without a result gets a result with
    /// the outcome `interrupted` and the code `lost`.
    ///
    /// ```
    /// use agent::message::{AssistantMessage, Conversation, Message, Part};
    ///
    /// let mut conversation = Conversation::from_iter([
    ///     Message::user("Weather?"),
    ///     Message::Assistant(AssistantMessage::new([Part::tool_call("c1", "get_weather", "{}")])),
    ///     Message::user("Hello?"),
    /// ]);
    /// assert!(!conversation.is_sound());
    /// let repairs = conversation.repair();
    /// assert_eq!(repairs[0], "call `c1` of `get_weather` had no result: added one that says so");
    /// assert_eq!(conversation.get(2).unwrap().role(), "tool_result");
    /// assert!(conversation.is_sound());
    /// assert!(conversation.repair().is_empty());
    /// ```
    pub fn repair(&mut self) -> Vec<String> {
        self.repair_with("lost", LOST)
    }

    /// Repairs a conversation whose calls without a result never ran. These calls get results with the code `steered`.
    #[cfg(feature = "runtime")]
    pub(crate) fn repair_undecided(&mut self) -> Vec<String> {
        self.repair_with("steered", UNDECIDED)
    }

    fn repair_with(&mut self, code: &'static str, text: &str) -> Vec<String> {
        if self.is_sound() {
            return Vec::new();
        }
        let (messages, repairs) = Ledger::read(self.shared()).apply(self.shared(), code, text);
        self.set_messages(messages);
        repairs
    }

    /// Returns whether every provider accepts the conversation. See [`repair`](Self::repair).
    pub fn is_sound(&self) -> bool {
        // `owed` has the calls of the last reply that have no result yet.
        let none = AssistantMessage::default();
        let mut owed = none.tool_calls();
        for message in self.iter() {
            let next = owed.next();
            match message {
                Message::ToolResult(result) if next.is_none_or(|call| call.id != result.call_id) => {
                    return false;
                }
                Message::ToolResult(_) => {}
                _ if next.is_some() => return false,
                Message::Assistant(reply) if !reply.stop_reason.is_failure() => {
                    owed = reply.tool_calls();
                    if owed.clone().nth(1).is_some() {
                        let mut seen = HashSet::new();
                        if !owed.clone().all(|call| seen.insert(&call.id)) {
                            return false;
                        }
                    }
                }
                _ => {}
            }
        }
        owed.next().is_none()
    }
}

struct CallSlot {
    id: String,
    tool: String,
    result: Option<usize>,
}

struct Ledger {
    /// The calls of each message that needs results, by the message's index.
    calls: HashMap<usize, Vec<CallSlot>>,
    kept: HashSet<usize>,
    repairs: Vec<String>,
}

impl Ledger {
    fn read(messages: &[Arc<Message>]) -> Self {
        let mut calls: HashMap<usize, Vec<CallSlot>> = HashMap::new();
        for (at, message) in messages.iter().enumerate() {
            let Some(reply) = message.as_assistant().filter(|reply| !reply.stop_reason.is_failure()) else {
                continue;
            };
            let slot =
                |call: &ToolCall| CallSlot { id: call.id.clone(), tool: call.name.clone(), result: None };
            let slots: Vec<_> = reply.tool_calls().map(slot).collect();
            if !slots.is_empty() {
                calls.insert(at, slots);
            }
        }
        let mut ledger = Self { calls, kept: HashSet::new(), repairs: Vec::new() };
        // A result belongs to the nearest earlier call with the same id. If there is no earlier call, the result belongs to the nearest
        // later call.
        let orphans = ledger.assign(messages, 0..messages.len(), None);
        let orphans = ledger.assign(messages, (0..messages.len()).rev(), Some(&orphans));
        let ids = messages.iter().enumerate().filter(|(at, _)| orphans.contains(at));
        let ids = ids.filter_map(|(_, message)| Some(message.as_tool_result()?.call_id.clone()));
        ledger.repairs.extend(ids.map(|id| format!("a result for `{id}` had no call: dropped")));
        ledger
    }

    /// Assigns results to calls: all results, or only those at the indices `selected`. A result belongs to the call with the same id that
    /// `walk` visited last before the result. Returns the indices of the results without a call.
    fn assign(
        &mut self,
        messages: &[Arc<Message>],
        walk: impl Iterator<Item = usize>,
        selected: Option<&HashSet<usize>>,
    ) -> HashSet<usize> {
        // `last` has the last visited message for each call id. `free` has, for each message and call id, the calls that have no result
        // yet. The calls are in reverse order, so that `pop` returns the first call.
        let mut last: HashMap<&str, usize> = HashMap::new();
        let mut free: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
        let (mut claims, mut orphans) = (Vec::new(), HashSet::new());
        for at in walk {
            let Some(message) = messages.get(at) else { continue };
            if let Some(slots) = self.calls.get(&at) {
                let calls = message.as_assistant().into_iter().flat_map(AssistantMessage::tool_calls);
                let calls: Vec<_> = calls.map(|call| call.id.as_str()).enumerate().collect();
                for (slot, id) in calls.into_iter().rev() {
                    last.insert(id, at);
                    let free = free.entry((at, id)).or_default();
                    free.extend(slots.get(slot).is_some_and(|slot| slot.result.is_none()).then_some(slot));
                }
            }
            let Some(result) = message.as_tool_result() else { continue };
            if selected.is_some_and(|selected| !selected.contains(&at)) {
                continue;
            }
            match last.get(&*result.call_id) {
                Some(place) => claims.push((at, *place, &*result.call_id)),
                None => {
                    orphans.insert(at);
                }
            }
        }
        // If several results belong to one call, the first one in the conversation counts, even if `walk` runs backwards.
        claims.sort_unstable();
        for (at, place, id) in claims {
            let slot = free.get_mut(&(place, id)).and_then(Vec::pop);
            let slots = self.calls.get_mut(&place);
            if let Some(slot) = slot.and_then(|slot| slots?.get_mut(slot)) {
                slot.result = Some(at);
                self.kept.insert(at);
            } else {
                self.repairs.push(format!("a second result for `{id}`: dropped"));
            }
        }
        orphans
    }

    fn apply(
        mut self,
        messages: &[Arc<Message>],
        code: &'static str,
        text: &str,
    ) -> (Vec<Arc<Message>>, Vec<String>) {
        let mut ordered = Vec::with_capacity(messages.len());
        for (at, message) in messages.iter().enumerate() {
            if message.as_tool_result().is_some() {
                continue;
            }
            let Some(slots) = self.calls.remove(&at) else {
                ordered.push(message.clone());
                continue;
            };
            let names = self.unique_ids(&slots);
            ordered.push(rename_calls(message, &slots, &names));
            let mut last = at;
            for (slot, name) in slots.into_iter().zip(names) {
                let result = slot.result.and_then(|at| Some((at, messages.get(at)?)));
                let Some((place, result)) = result else {
                    self.repairs.push(format!(
                        "call `{name}` of `{}` had no result: added one that says so",
                        slot.tool
                    ));
                    let unknown = ToolResultMessage::new(name, slot.tool, OutcomeKind::Interrupted)
                        .with_code(Some(code.to_owned()))
                        .with_content(text);
                    ordered.push(Arc::new(unknown.into()));
                    continue;
                };
                // A result is in place if only dropped results are between it and the previous message.
                let between = last.saturating_add(1)..place;
                let in_place = place > last
                    && messages.get(between.clone()).is_some_and(|between| {
                        between.iter().all(|message| message.as_tool_result().is_some())
                    })
                    && !between.into_iter().any(|at| self.kept.contains(&at));
                if !in_place {
                    self.repairs.push(format!("the result for `{name}` was out of place: moved"));
                }
                last = last.max(place);
                ordered.push(match result.as_tool_result() {
                    Some(result) if result.call_id != name => {
                        let mut result = result.clone();
                        result.call_id = name;
                        Arc::new(result.into())
                    }
                    _ => result.clone(),
                });
            }
        }
        (ordered, self.repairs)
    }

    /// Returns the ids of a message's calls, made unique. The first call with an id keeps the id.
    fn unique_ids(&mut self, slots: &[CallSlot]) -> Vec<String> {
        let mut taken: HashSet<String> = slots.iter().map(|slot| slot.id.clone()).collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let mut names = Vec::with_capacity(slots.len());
        for slot in slots {
            let number = counts.entry(&slot.id).and_modify(|number| *number += 1).or_insert(1);
            if *number == 1 {
                names.push(slot.id.clone());
                continue;
            }
            let mut name = format!("{}_{number}", slot.id);
            while !taken.insert(name.clone()) {
                *number += 1;
                name = format!("{}_{number}", slot.id);
            }
            self.repairs.push(format!("a second call `{}` in one message: renamed to `{name}`", slot.id));
            names.push(name);
        }
        names
    }
}

fn rename_calls(message: &Arc<Message>, slots: &[CallSlot], names: &[String]) -> Arc<Message> {
    let same = slots.iter().zip(names).all(|(slot, name)| slot.id == *name);
    let Some(reply) = message.as_assistant().filter(|_| !same) else { return message.clone() };
    let mut reply = reply.clone();
    let calls = reply.content.iter_mut().filter_map(|part: &mut Part| match &mut part.content {
        Content::ToolCall(call) => Some(call),
        _ => None,
    });
    for (call, name) in calls.zip(names) {
        call.id.clone_from(name);
    }
    Arc::new(Message::Assistant(reply))
}
