//! Signs stored runs, and their open calls.

use serde::Serialize;
use serde_json::{Value, json};

use super::AgentLoop;
use super::agent_loop::Phase;
use super::batch::{Slot, SlotState};
#[cfg(feature = "approvals-signed")]
use super::waiting::SignedCall;
use crate::message::Usage;

impl AgentLoop {
    /// Signs the run before it is stored. Each prepared call that may still run gets its own signature, also in child runs. The signature
    /// of the run covers its [`signed_state`](Self::signed_state), which contains the child runs.
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

    /// Removes the signatures of the run and its children, because signatures do not match the state after a change.
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

    pub(crate) fn mac(&self) -> Option<&str> {
        self.mac.as_deref()
    }

    /// Returns the state that the signature of a run covers: all that determines the next steps, except the texts of the conversation. A
    /// resumed run uses the configuration of its assistant, so the configuration is not covered.
    ///
    /// A run with a waiting child is covered completely, because the application does not see the child's conversation.
    pub(crate) fn signed_state(&self) -> Value {
        if self.children().next().is_some() {
            let mut whole = self.clone();
            whole.unsign();
            return rounded(to_value(&whole));
        }
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
        // A part that a run does not have is left out, so that earlier signatures of runs without this part stay valid.
        let parts = [
            ("state", (!self.state.is_empty()).then(|| to_value(&self.state))),
            ("continued", (self.continued > 0).then(|| self.continued.into())),
            ("paused", (self.paused > 0).then(|| self.paused.into())),
            ("children", self.children.as_ref().map(|spent| rounded(to_value(spent)))),
        ];
        if let Value::Object(signed) = &mut signed {
            signed.extend(parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), part?))));
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
        SlotState::Asked(questions) => ("asked", Some(rounded(to_value(questions)))),
        SlotState::Child(child) => ("child", Some(to_value(child))),
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
    let inputs: Vec<_> = stored.map(|recorded| rounded(to_value(recorded))).collect();
    if !inputs.is_empty()
        && let Some(signed) = signed.as_object_mut()
    {
        signed.insert("inputs".to_owned(), Value::Array(inputs));
    }
    signed
}

/// Rounds floating-point numbers to 12 significant digits, because stores and parsers may change the last digits. Whole numbers below 10^15
/// become integers, because a store may write them without a fraction.
fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let digits = number.as_f64().map(|float| format!("{float:.11e}")).unwrap_or_default();
            let float = digits.parse().unwrap_or(f64::NAN);
            if float.fract() == 0.0 && float.abs() < 1e15 {
                #[expect(clippy::cast_possible_truncation, reason = "a whole number below 10^15 fits")]
                return (float as i64).into();
            }
            float.into()
        }
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, rounded(value))).collect(),
        other => other,
    }
}

fn usage(usage: &Usage) -> Value {
    // Most costs are whole billionths. Without the offset, rounding errors could change the result of `floor`.
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
