//! Signatures of suspended runs. They prove that a stored run and its calls were not changed before the run is resumed.

use serde_json::Value;

use crate::canonical::canonical;
use crate::loop_core::{AgentLoop, SignedCall};
use crate::message::ToolArguments;

/// The minimum length of a key in bytes: the length of the hash, as RFC 2104 (section 3) recommends.
#[cfg(feature = "approvals-signed")]
const MIN_KEY: usize = 32;

/// The application's keys that sign stored runs and verify their signatures. No snapshot contains a key, and former keys only verify.
///
/// Without the feature `approvals-signed`, no value of this type exists.
pub(in crate::runtime) struct Signer {
    #[cfg(feature = "approvals-signed")]
    key: SigningKey,
    #[cfg(feature = "approvals-signed")]
    former: Vec<SigningKey>,
    #[cfg(not(feature = "approvals-signed"))]
    never: std::convert::Infallible,
}

#[cfg(feature = "approvals-signed")]
#[derive(Clone)]
pub(in crate::runtime) struct SigningKey(hmac::Hmac<sha2::Sha256>);

#[cfg(feature = "approvals-signed")]
impl SigningKey {
    pub(in crate::runtime) fn new(key: &[u8]) -> Option<Self> {
        use hmac::KeyInit as _;
        hmac::Hmac::new_from_slice(key).ok().filter(|_| key.len() >= MIN_KEY).map(Self)
    }

    fn mac(&self, text: &str) -> hmac::Hmac<sha2::Sha256> {
        let mut mac = self.0.clone();
        hmac::Mac::update(&mut mac, text.as_bytes());
        mac
    }
}

#[cfg(feature = "approvals-signed")]
impl Signer {
    pub(in crate::runtime) fn new(key: SigningKey, former: Vec<SigningKey>) -> Self {
        Self { key, former }
    }

    pub(in crate::runtime) fn sign(&self, run: &mut AgentLoop) {
        run.sign(&|call| self.signature(&bound_call(call)), &|state| self.signature(&bound_state(state)));
    }

    pub(super) fn verify_call(&self, mac: &str, call: &SignedCall) -> bool {
        self.verify_text(mac, &bound_call(call))
    }

    pub(super) fn verify_state(&self, mac: &str, state: &Value) -> bool {
        self.verify_text(mac, &bound_state(state))
    }

    fn signature(&self, text: &str) -> String {
        use hmac::Mac as _;
        use std::fmt::Write as _;
        let mut hex = String::with_capacity(64);
        for byte in self.key.mac(text).finalize().into_bytes() {
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    /// Accepts signatures of the current key and of former keys. The comparison takes constant time, so that its duration reveals nothing
    /// about a correct signature.
    fn verify_text(&self, mac: &str, text: &str) -> bool {
        let bytes: Option<Vec<u8>> = mac
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        let Some(bytes) = bytes else { return false };
        let mut keys = std::iter::once(&self.key).chain(&self.former);
        keys.any(|key| hmac::Mac::verify_slice(key.mac(text), &bytes).is_ok())
    }
}

#[cfg(not(feature = "approvals-signed"))]
impl Signer {
    pub(in crate::runtime) fn sign(&self, _: &mut AgentLoop) {
        match self.never {}
    }

    pub(super) fn verify_call(&self, _: &str, _: &SignedCall) -> bool {
        match self.never {}
    }

    pub(super) fn verify_state(&self, _: &str, _: &Value) -> bool {
        match self.never {}
    }
}

/// Returns the text that the signature of a call covers. `args` are the arguments of the call, `asked` those that the decision is about,
/// and `shown` those that a person sees. `asked` and `shown` are null for a call without a decision.
#[cfg(feature = "approvals-signed")]
fn bound_call(call: &SignedCall) -> String {
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

/// Returns the text that the signature of a run's state covers. The fields of this text differ from the fields of a call's text, so a
/// signature of a call is never valid for a state, nor the reverse.
#[cfg(feature = "approvals-signed")]
fn bound_state(state: &Value) -> String {
    canonical(&serde_json::json!({ "version": 2, "state": state }))
}

/// Returns the arguments in a form that does not depend on how a store spells the JSON. Text that is not JSON becomes a JSON string.
pub(super) fn canonical_args(args: &ToolArguments) -> String {
    serde_json::to_value(args).map_or_else(|_| args.text().to_owned(), |value| canonical(&value))
}

#[cfg(all(test, feature = "approvals-signed"))]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::ToolCall;
    use crate::step_key::{StepKey, StepKind};

    fn call(args: Value) -> SignedCall {
        SignedCall {
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
    fn a_signature_verifies_one_call_with_one_key() {
        let key_of = |byte: u8| SigningKey::new(&[byte; 32]).unwrap();
        let signer = |key: u8, former: &[u8]| {
            Signer::new(key_of(key), former.iter().map(|key| key_of(*key)).collect())
        };
        let key = signer(1, &[]);
        let one = call(json!({"amount": 5, "to": "x"}));
        let mac = key.signature(&bound_call(&one));
        assert_eq!(mac.len(), 64);
        assert!(
            key.verify_call(&mac, &call(json!({"to": "x", "amount": 5}))),
            "stores change the order of keys"
        );
        assert!(!signer(2, &[]).verify_call(&mac, &one));
        assert!(signer(2, &[3, 1]).verify_call(&mac, &one), "a former key verifies");
        assert_ne!(signer(2, &[1]).signature(&bound_call(&one)), mac, "and signs nothing");
        assert!(!key.verify_state(&mac, &json!({})));
        for other in ["", "0", "zz", &mac[1..], &mac[..62], &format!("{mac}00")] {
            assert!(!key.verify_call(other, &one), "{other}");
        }
        let changes: [fn(&mut SignedCall); 9] = [
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
            assert!(!key.verify_call(&mac, &other), "{other:?}");
        }
        assert!(SigningKey::new(&[1; 31]).is_none());
    }

    #[test]
    fn the_boundaries_between_texts_count() {
        let (mut one, mut other) = (call(json!({})), call(json!({})));
        (one.call.id, one.call.name) = ("ab".into(), "c".into());
        (other.call.id, other.call.name) = ("a".into(), "bc".into());
        assert_ne!(bound_call(&one), bound_call(&other));
    }
}
