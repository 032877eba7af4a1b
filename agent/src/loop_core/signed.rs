//! The state of a stored run that its signatures bind.

use serde::Serialize;
use serde_json::{Value, json};

use super::AgentLoop;
use super::agent_loop::Phase;
use super::batch::{Slot, SlotState};
use super::budget::Spent;
#[cfg(feature = "approvals-signed")]
use super::waiting::SignedCall;
use crate::message::Usage;

impl AgentLoop {
    /// Signs the run before it is stored: each call that may still run, of its children too, and the state of all of them.
    #[cfg(feature = "approvals-signed")]
    pub(crate) fn sign(&mut self, call: &dyn Fn(&SignedCall) -> String, state: &dyn Fn(&Value) -> String) {
        self.unsign();
        self.sign_calls(call);
        self.mac = Some(state(&self.signed_state()));
    }

    #[cfg(feature = "approvals-signed")]
    fn sign_calls(&mut self, call: &dyn Fn(&SignedCall) -> String) {
        let signed: Vec<_> = self.checked_calls().map(|checked| (checked.at, call(&checked))).collect();
        for (at, mac) in signed {
            if let Some(slot) = self.batch.slots.get_mut(at) {
                slot.mac = Some(mac);
            }
        }
        self.children_mut().for_each(|child| child.sign_calls(call));
    }

    /// Removes the signatures. Called before the state changes, because they would no longer match.
    pub(crate) fn unsign(&mut self) {
        self.mac = None;
        for slot in &mut self.batch.slots {
            slot.mac = None;
        }
        self.children_mut().for_each(Self::unsign);
    }

    fn children_mut(&mut self) -> impl Iterator<Item = &mut Self> {
        self.batch.slots.iter_mut().filter_map(|slot| match &mut slot.state {
            SlotState::Child(child) => Some(&mut **child),
            _ => None,
        })
    }

    /// Returns the signature of the state.
    pub(crate) fn mac(&self) -> Option<&str> {
        self.mac.as_deref()
    }

    /// Returns everything that determines the next steps of the run, except for the texts of the conversation, and for the configuration,
    /// which is that of the assistant. Floating-point numbers are left out, because stores and parsers may change their last digit.
    ///
    /// The conversations are in it where a child waits: the application sees that of the root alone.
    pub(crate) fn signed_state(&self) -> Value {
        self.signed_state_in(self.children().next().is_some())
    }

    fn signed_state_in(&self, is_in_tree: bool) -> Value {
        let mut signed = json!({
            "run": &*self.run,
            "messages": [self.added_from, self.conversation.len()],
            "turn": self.turn,
            "seq": self.seq,
            "phase": phase(&self.phase),
            "is_suspended": self.is_suspended,
            "is_streaming": self.streaming.is_some(),
            "stop_reason": &self.stop_reason,
            "segment": [self.batch.segment.start, self.batch.segment.end],
            "batch": [self.batch.is_cut, self.batch.is_settled, self.batch.is_steered],
            "slots": self.batch.slots.iter().map(slot).collect::<Vec<_>>(),
            "requests": self.requests,
            "tool_calls": self.tool_calls,
            "usage": usage(&self.usage),
            "turn_usage": usage(&self.turn_usage),
            "reached": self.reached.as_ref().map(|reached| reached.limit.as_str()),
            "repeats": &self.repeats,
            "retries": &self.retries,
            "tries": &self.tries,
        });
        if !self.state.is_empty()
            && let Some(signed) = signed.as_object_mut()
        {
            signed.insert("state".to_owned(), to_value(&self.state));
        }
        if self.continued > 0
            && let Some(signed) = signed.as_object_mut()
        {
            signed.insert("continued".to_owned(), self.continued.into());
        }
        if is_in_tree && let Some(signed) = signed.as_object_mut() {
            let children = self.children.as_deref();
            let children =
                children.map(|Spent { requests, tool_calls, runs, .. }| json!([requests, tool_calls, runs]));
            signed.insert("children".to_owned(), json!([self.version, children]));
            let coercions = self.coercions.iter().map(to_value).collect();
            signed.insert("coercions".to_owned(), without_floats(Value::Array(coercions)));
            signed.insert("conversation".to_owned(), without_floats(to_value(&self.conversation)));
            let results = self.batch.slots.iter().map(|slot| to_value(&slot.result)).collect();
            signed.insert("results".to_owned(), without_floats(Value::Array(results)));
        }
        signed
    }
}

fn to_value(part: &impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}

fn phase(phase: &Phase) -> Value {
    match phase {
        Phase::Ending(end) => json!(["ending", end.stop().as_str(), end.detail()]),
        Phase::Done(end) => json!(["done", end.stop().as_str(), end.detail()]),
        other => to_value(other),
    }
}

fn slot(slot: &Slot) -> Value {
    let (state, detail) = match &slot.state {
        SlotState::Planned => ("planned", None),
        SlotState::Started => ("started", None),
        SlotState::Undecided(asked) => ("undecided", Some(to_value(asked))),
        SlotState::Ready => ("ready", None),
        SlotState::Deferred(handle) => ("deferred", Some(to_value(handle))),
        SlotState::Asked(questions) => ("asked", Some(without_floats(to_value(questions)))),
        SlotState::Child(child) => ("child", Some(child.signed_state_in(true))),
        SlotState::Ended => ("ended", None),
    };
    let mut signed = json!({
        "call": [&slot.call.id, &slot.call.name, &slot.call.args],
        "state": [state, detail],
        "args": slot.args,
        "shown": slot.shown,
        "is_edited": slot.is_edited,
        "is_approved": slot.is_approved,
        "asked_again": slot.asked_again,
        "signature": slot.signature,
        "control": slot.control,
        "has_result": slot.result.is_some(),
    });
    let stored = slot.inputs.iter().filter(|recorded| !recorded.question.is_secret);
    let inputs: Vec<_> = stored.map(|recorded| without_floats(to_value(recorded))).collect();
    if !inputs.is_empty()
        && let Some(signed) = signed.as_object_mut()
    {
        signed.insert("inputs".to_owned(), Value::Array(inputs));
    }
    signed
}

/// Replaces floating-point numbers, because stores and parsers may change their last digit.
fn without_floats(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => Value::Null,
        Value::Array(items) => items.into_iter().map(without_floats).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, without_floats(value))).collect()
        }
        other => other,
    }
}

fn usage(usage: &Usage) -> Value {
    // Prices are mostly whole nanos, where `floor` depends on the last digit of the float. The offset moves them away from there.
    let nanos = usage.cost.map(|cost| format!("{}", (cost.total * 1e9 + 0.381_966).floor()));
    json!([
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
        usage.reasoning,
        usage.total,
        nanos
    ])
}
