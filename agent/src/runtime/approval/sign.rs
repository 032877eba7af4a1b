//! Calls that are known again after their run was stored.

use serde_json::Value;

use crate::loop_core::{AgentLoop, CheckedCall};
use crate::message::ToolArguments;
use crate::runtime::cache::canonical;

/// The shortest key, in bytes: as long as the hash, which RFC 2104 (section 3) asks for.
#[cfg(feature = "approvals-signed")]
const MIN_KEY: usize = 32;

/// Signs stored runs with the application's key, which is in no snapshot. Former keys only verify.
#[cfg(feature = "approvals-signed")]
pub(in crate::runtime) struct Signer {
    key: Key,
    former: Vec<Key>,
}

/// A key for signatures.
#[cfg(feature = "approvals-signed")]
#[derive(Clone)]
pub(in crate::runtime) struct Key(hmac::Hmac<sha2::Sha256>);

#[cfg(feature = "approvals-signed")]
impl Key {
    /// Returns `None` if the key is too short.
    pub(in crate::runtime) fn new(key: &[u8]) -> Option<Self> {
        use hmac::KeyInit as _;
        hmac::Hmac::new_from_slice(key).ok().filter(|_| key.len() >= MIN_KEY).map(Self)
    }

    fn of(&self, text: &str) -> hmac::Hmac<sha2::Sha256> {
        let mut mac = self.0.clone();
        hmac::Mac::update(&mut mac, text.as_bytes());
        mac
    }
}

#[cfg(feature = "approvals-signed")]
impl Signer {
    pub(in crate::runtime) fn new(key: Key, former: Vec<Key>) -> Self {
        Self { key, former }
    }

    /// Signs a run as it stands.
    pub(in crate::runtime) fn sign(&self, run: &mut AgentLoop) {
        run.sign(|call| self.hex(&bound(call)), |state| self.hex(&bound_state(state)));
    }

    /// Whether this is the signature of the call.
    pub(super) fn is_of(&self, mac: &str, call: &CheckedCall) -> bool {
        self.is_of_text(mac, &bound(call))
    }

    /// Whether this is the signature of the state of a run.
    pub(super) fn is_of_state(&self, mac: &str, state: &Value) -> bool {
        self.is_of_text(mac, &bound_state(state))
    }

    /// The signature of a text, as hexadecimal text.
    fn hex(&self, text: &str) -> String {
        use hmac::Mac as _;
        use std::fmt::Write as _;
        let mut hex = String::with_capacity(64);
        for byte in self.key.of(text).finalize().into_bytes() {
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    /// Takes the same time wherever the signature differs.
    fn is_of_text(&self, mac: &str, text: &str) -> bool {
        let bytes: Option<Vec<u8>> = mac
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        let Some(bytes) = bytes else { return false };
        let mut keys = std::iter::once(&self.key).chain(&self.former);
        keys.any(|key| hmac::Mac::verify_slice(key.of(text), &bytes).is_ok())
    }
}

/// Without the feature there is none.
#[cfg(not(feature = "approvals-signed"))]
pub(in crate::runtime) enum Signer {}

#[cfg(not(feature = "approvals-signed"))]
impl Signer {
    pub(in crate::runtime) fn sign(&self, _: &mut AgentLoop) {
        match *self {}
    }

    pub(super) fn is_of(&self, _: &str, _: &CheckedCall) -> bool {
        match *self {}
    }

    pub(super) fn is_of_state(&self, _: &str, _: &Value) -> bool {
        match *self {}
    }
}

/// What the signature of a call binds together: where the call stands, its tool and schema, what runs, what was asked about, and what
/// whoever decides is shown (both null for a call that waits for no decision).
#[cfg(feature = "approvals-signed")]
fn bound(call: &CheckedCall) -> String {
    let key = &call.key;
    canonical(&serde_json::json!({
        "version": 2,
        "run": &*key.run,
        "turn": key.turn,
        "ord": key.ord,
        "call_id": call.call.id,
        "tool": call.call.name,
        "schema": format!("{:016x}", call.fingerprint),
        "args": canonical_args(&call.call.args),
        "asked": call.asked.as_ref().map(canonical_args),
        "shown": call.shown.as_ref().map(canonical_args),
    }))
}

/// What the signature of a run binds together. It cannot be that of a call.
#[cfg(feature = "approvals-signed")]
fn bound_state(state: &Value) -> String {
    canonical(&serde_json::json!({ "version": 2, "state": state }))
}

/// The same text however a store spells the JSON; text that is no JSON as it is.
pub(super) fn canonical_args(args: &ToolArguments) -> String {
    serde_json::to_value(args).map_or_else(|_| args.text().to_owned(), |value| canonical(&value))
}

#[cfg(all(test, feature = "approvals-signed"))]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::ToolCall;
    use crate::{StepKey, StepKind};

    fn call(args: Value) -> CheckedCall {
        CheckedCall {
            at: 0,
            request_id: "run/1/approval/0".to_owned(),
            key: StepKey::new("run", 1, StepKind::Tool, 0),
            call: ToolCall::new("c", "pay", args.clone()),
            fingerprint: 7,
            asked: Some(args.clone().into()),
            shown: Some(args.into()),
            mac: None,
        }
    }

    #[test]
    fn a_signature_is_of_one_call_and_one_key() {
        let made = |byte: u8| Key::new(&[byte; 32]).unwrap();
        let signer =
            |key: u8, former: &[u8]| Signer::new(made(key), former.iter().map(|key| made(*key)).collect());
        let key = signer(1, &[]);
        let one = call(json!({"amount": 5, "to": "x"}));
        let mac = key.hex(&bound(&one));
        assert_eq!(mac.len(), 64);
        assert!(key.is_of(&mac, &call(json!({"to": "x", "amount": 5}))), "stores change the order of keys");
        assert!(!signer(2, &[]).is_of(&mac, &one));
        assert!(signer(2, &[3, 1]).is_of(&mac, &one), "a former key verifies");
        assert_ne!(signer(2, &[1]).hex(&bound(&one)), mac, "and signs nothing");
        assert!(!key.is_of_state(&mac, &json!({})));
        for other in ["", "0", "zz", &mac[1..], &mac[..62], &format!("{mac}00")] {
            assert!(!key.is_of(other, &one), "{other}");
        }
        let changes: [fn(&mut CheckedCall); 9] = [
            |call| call.key.run = "other".into(),
            |call| call.key.turn = 2,
            |call| call.key.ord = 1,
            |call| call.call.id = "d".into(),
            |call| call.call.name = "pays".into(),
            |call| call.call.args = "{}".into(),
            |call| call.fingerprint = 8,
            |call| call.asked = None,
            |call| call.shown = Some("{}".into()),
        ];
        for change in changes {
            let mut other = one.clone();
            change(&mut other);
            assert!(!key.is_of(&mac, &other), "{other:?}");
        }
        assert!(Key::new(&[1; 31]).is_none());
    }

    #[test]
    fn where_a_text_ends_counts() {
        let (mut one, mut other) = (call(json!({})), call(json!({})));
        (one.call.id, one.call.name) = ("ab".into(), "c".into());
        (other.call.id, other.call.name) = ("a".into(), "bc".into());
        assert_ne!(bound(&one), bound(&other));
    }
}
