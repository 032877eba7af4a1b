//! Calls that are known again after their run was stored.

use crate::loop_core::CheckedCall;
use crate::message::ToolArguments;
use crate::runtime::cache::canonical;

/// The shortest key, in bytes: as long as the hash, which RFC 2104 (section 3) asks for.
#[cfg(feature = "approvals-signed")]
const MIN_KEY: usize = 32;

/// Signs calls with the application's key, which is in no snapshot.
#[cfg(feature = "approvals-signed")]
pub(in crate::runtime) struct Signer {
    mac: hmac::Hmac<sha2::Sha256>,
}

#[cfg(feature = "approvals-signed")]
impl Signer {
    /// None for a key that is too short.
    pub(in crate::runtime) fn new(key: &[u8]) -> Option<Self> {
        use hmac::KeyInit as _;
        let mac = hmac::Hmac::new_from_slice(key).ok().filter(|_| key.len() >= MIN_KEY)?;
        Some(Self { mac })
    }

    /// The signature of a call, as hexadecimal text.
    pub(in crate::runtime) fn sign(&self, call: &CheckedCall) -> String {
        use hmac::Mac as _;
        use std::fmt::Write as _;
        let mut text = String::with_capacity(64);
        for byte in self.of(call).finalize().into_bytes() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Whether it is this call's. Takes the same time wherever it differs.
    pub(in crate::runtime) fn is_of(&self, mac: &str, call: &CheckedCall) -> bool {
        let bytes: Option<Vec<u8>> = mac
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        bytes.is_some_and(|bytes| hmac::Mac::verify_slice(self.of(call), &bytes).is_ok())
    }

    fn of(&self, call: &CheckedCall) -> hmac::Hmac<sha2::Sha256> {
        let mut mac = self.mac.clone();
        hmac::Mac::update(&mut mac, bound(call).as_bytes());
        mac
    }
}

/// Without the feature there is none.
#[cfg(not(feature = "approvals-signed"))]
pub(in crate::runtime) enum Signer {}

#[cfg(not(feature = "approvals-signed"))]
impl Signer {
    pub(in crate::runtime) fn sign(&self, _: &CheckedCall) -> String {
        match *self {}
    }

    pub(in crate::runtime) fn is_of(&self, _: &str, _: &CheckedCall) -> bool {
        match *self {}
    }
}

/// What a signature binds together: where the call stands, its tool and schema, what runs, and what whoever decides is
/// shown (null for a call that nobody has to allow).
#[cfg(feature = "approvals-signed")]
fn bound(call: &CheckedCall) -> String {
    let key = &call.key;
    canonical(&serde_json::json!({
        "version": 1,
        "run": &*key.run,
        "turn": key.turn,
        "ord": key.ord,
        "call_id": call.call.id,
        "tool": call.call.name,
        "schema": format!("{:016x}", call.fingerprint),
        "args": canonical_args(&call.call.args),
        "shown": call.asked.as_ref().map(canonical_args),
    }))
}

/// The same text however a store spells the JSON; text that is no JSON as it is.
pub(super) fn canonical_args(args: &ToolArguments) -> String {
    serde_json::to_value(args).map_or_else(|_| args.text().to_owned(), |value| canonical(&value))
}

#[cfg(all(test, feature = "approvals-signed"))]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::message::ToolCall;
    use crate::{StepKey, StepKind};

    fn call(args: Value) -> CheckedCall {
        CheckedCall {
            key: StepKey::new("run", 1, StepKind::Tool, 0),
            call: ToolCall::new("c", "pay", args.clone()),
            fingerprint: 7,
            asked: Some(args.into()),
            mac: None,
        }
    }

    #[test]
    fn a_signature_is_of_one_call_and_one_key() {
        let key = Signer::new(&[1; 32]).unwrap();
        let one = call(json!({"amount": 5, "to": "x"}));
        let mac = key.sign(&one);
        assert_eq!(mac.len(), 64);
        assert!(key.is_of(&mac, &call(json!({"to": "x", "amount": 5}))), "stores change the order of keys");
        assert!(!Signer::new(&[2; 32]).unwrap().is_of(&mac, &one));
        for other in ["", "0", "zz", &mac[1..], &mac[..62], &format!("{mac}00")] {
            assert!(!key.is_of(other, &one), "{other}");
        }
        let changes: [fn(&mut CheckedCall); 8] = [
            |call| call.key.run = "other".into(),
            |call| call.key.turn = 2,
            |call| call.key.ord = 1,
            |call| call.call.id = "d".into(),
            |call| call.call.name = "pays".into(),
            |call| call.call.args = "{}".into(),
            |call| call.fingerprint = 8,
            |call| call.asked = None,
        ];
        for change in changes {
            let mut other = one.clone();
            change(&mut other);
            assert!(!key.is_of(&mac, &other), "{other:?}");
        }
        assert!(Signer::new(&[1; 31]).is_none());
    }

    #[test]
    fn where_a_text_ends_counts() {
        let (mut one, mut other) = (call(json!({})), call(json!({})));
        (one.call.id, one.call.name) = ("ab".into(), "c".into());
        (other.call.id, other.call.name) = ("a".into(), "bc".into());
        assert_ne!(bound(&one), bound(&other));
    }
}
