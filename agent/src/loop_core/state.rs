//! The state of a prompt that is stored with its run as JSON.

use std::any::type_name;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::panics::catch;

/// Maximum size of the state of a run, in bytes. The names and the JSON texts count.
pub(super) const MAX_BYTES: usize = 64 << 10;

/// The error for state that is stored with a run as JSON. The error never contains the value of the state, which may be secret.
///
/// ```
/// use agent::{Assistant, ScriptedModel, run::StateError};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Customer {
///     id: u64,
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let error = assistant.prompt("Hi").with_serialized_state(Customer { id: 7 }).await.unwrap_err();
/// assert!(matches!(error.as_state_error(), Some(StateError::Unregistered { state, .. }) if state.ends_with("Customer")));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// No type was registered for the state.
    #[error(
        "there is no registered type for the state `{state}`; register it with `AssistantBuilder::serialized_state`"
    )]
    #[non_exhaustive]
    Unregistered {
        /// The name of the state. If the state was passed to a prompt, the name of the state's Rust type.
        state: String,
    },
    /// A name was used for two values, or for two types.
    #[error("the serialized state `{name}` is given twice")]
    #[non_exhaustive]
    Duplicate {
        /// The name that was used twice.
        name: String,
    },
    /// A tool needs state that the request of a durable run does not contain.
    #[error(
        "the run lacks the state `{name}` of type `{state}`; add it to the request with `with_serialized_state`"
    )]
    #[non_exhaustive]
    Missing {
        /// The name of the state.
        name: String,
        /// The name of the state's type.
        state: &'static str,
    },
    /// The value cannot be written as JSON.
    #[error(
        "the state `{name}` cannot be written as JSON: a map in it has keys that are not text, or its `Serialize` fails"
    )]
    #[non_exhaustive]
    Unwritable {
        /// The name of the state.
        name: String,
    },
    /// The JSON text is not a value of the registered type.
    #[error("the state `{name}` is not a `{state}`: {reason}")]
    #[non_exhaustive]
    Invalid {
        /// The name of the state.
        name: String,
        /// The name of the registered type.
        state: &'static str,
        /// The reason why the text is not a value of the type. The reason does not contain the value.
        reason: String,
    },
    /// The state of the run is too large: all names and JSON texts together have more than `allowed` bytes.
    #[error(
        "the serialized state of the run has more than {allowed} bytes; pass a key under which tools find it"
    )]
    #[non_exhaustive]
    TooLarge {
        /// Maximum size in bytes.
        allowed: usize,
    },
}

crate::error_text::debug_is_the_sentence!(StateError);

/// The values of the state by name. The values are JSON texts, because a database may rewrite JSON values. A rewritten value would
/// invalidate the signature of the run.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct RunState {
    /// `None` if no value was added. Most runs have no state, and so need no allocation.
    texts: Option<Arc<BTreeMap<Arc<str>, String>>>,
}

impl RunState {
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.as_deref().is_none_or(BTreeMap::is_empty)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &str)> {
        self.texts.as_deref().into_iter().flatten().map(|(name, text)| (name, &**text))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.texts.as_deref()?.get(name).map(|text| &**text)
    }

    pub(crate) fn add(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), StateError> {
        if self.get(name).is_some() {
            return Err(StateError::Duplicate { name: name.to_owned() });
        }
        let text = serde_json::to_string(value);
        let mut state = self.clone();
        state.insert(name.into(), text.map_err(|_| StateError::Unwritable { name: name.to_owned() })?);
        state.check_size()?;
        *self = state;
        Ok(())
    }

    pub(crate) fn insert(&mut self, name: Arc<str>, text: String) {
        Arc::make_mut(self.texts.get_or_insert_default()).insert(name, text);
    }

    pub(crate) fn check_size(&self) -> Result<(), StateError> {
        let bytes: usize = self.iter().map(|(name, text)| name.len() + text.len()).sum();
        if bytes > MAX_BYTES { Err(StateError::TooLarge { allowed: MAX_BYTES }) } else { Ok(()) }
    }
}

/// Writes only the names, because the values may be secret.
impl fmt::Debug for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

/// Parses the JSON text of a value of the state. The error does not contain the value.
pub(crate) fn read_state<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, StateError> {
    let reason = match catch(|| serde_json::from_str(text)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => reason(&error.to_string(), text),
        Err(_) => "its `Deserialize` panicked".to_owned(),
    };
    Err(StateError::Invalid { name: name.to_owned(), state: type_name::<T>(), reason })
}

/// Returns the message of a `serde_json` error without the value, which may be secret. Returns a general sentence if the message may still
/// contain a string or number of the value.
fn reason(message: &str, text: &str) -> String {
    // Serde writes the value between one of these texts and the expected type.
    const KINDS: [&str; 14] = [
        "invalid type: boolean",
        "invalid type: integer",
        "invalid type: floating point",
        "invalid type: string",
        "invalid type: unit value",
        "invalid type: null",
        "invalid type: sequence",
        "invalid type: map",
        "invalid type: enum",
        "invalid type",
        "invalid value",
        "invalid length",
        "unknown field",
        "unknown variant",
    ];
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    let kind = KINDS.iter().find(|kind| message.starts_with(**kind));
    let reason = match (kind, message.rsplit_once(", expected ")) {
        (Some(kind), Some((_, expected))) => Some(format!("{kind}, expected {expected}")),
        _ if message.starts_with("missing field `") || message.starts_with("duplicate field `") => {
            Some(message.to_owned())
        }
        _ => None,
    };
    // An application's `Deserialize` may return an error that looks like an error of serde and contains the value.
    let value = serde_json::from_str(text).unwrap_or_default();
    reason
        // The names after `unknown field` are those of the type, and the value may have fields of these names.
        .filter(|reason| !contains_value(reason, &value, !reason.starts_with("unknown field")))
        .unwrap_or_else(|| "its `Deserialize` refused it".to_owned())
}

/// Returns whether the reason contains a string or number of the value, or, if `counts_keys` is true, a key of one of its objects. Texts
/// of less than three bytes are skipped, because they match by chance.
fn contains_value(reason: &str, value: &Value, counts_keys: bool) -> bool {
    let contains = |text: &str| text.len() >= 3 && reason.contains(text);
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(number) => contains(&number.to_string()),
        Value::String(text) => contains(text),
        Value::Array(items) => items.iter().any(|item| contains_value(reason, item, counts_keys)),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, field)| (counts_keys && contains(key)) || contains_value(reason, field, counts_keys)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Account {
        id: u8,
        plan: AccountPlan,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum AccountPlan {
        Free,
        Paid,
    }

    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    #[serde(try_from = "String")]
    struct Strict;

    impl TryFrom<String> for Strict {
        type Error = String;

        fn try_from(text: String) -> Result<Self, String> {
            if text == "panic" { panic!("{text}") } else { Err(text) }
        }
    }

    #[test]
    fn a_value_that_is_too_large_is_not_added() {
        let mut state = RunState::default();
        state.add("plan", "Free").unwrap();
        let before = state.clone();
        let error = state.add("long", &"x".repeat(MAX_BYTES)).unwrap_err();
        assert_eq!(error, StateError::TooLarge { allowed: MAX_BYTES });
        assert_eq!(state.iter().collect::<Vec<_>>(), before.iter().collect::<Vec<_>>());
        state.add("long", "short").unwrap();
    }

    #[test]
    fn a_reason_never_contains_the_value() {
        let cases = [
            (r#"{"id": "hunter2", "plan": "Free"}"#, "invalid type: string, expected u8"),
            (r#"{"id": 777777, "plan": "Free"}"#, "invalid value, expected u8"),
            (r#"{"id": 7777.77, "plan": "Free"}"#, "invalid type: floating point, expected u8"),
            (r#"{"id": 7, "plan": "hunter2"}"#, "unknown variant, expected `Free` or `Paid`"),
            (r#"{"id": 7, "plan": "Free", "hunter2": 1}"#, "unknown field, expected `id` or `plan`"),
            (
                r#"{"id": 7, "plan": "hunter2, expected hunter2"}"#,
                "unknown variant, expected `Free` or `Paid`",
            ),
            (r#"{"id": 7}"#, "missing field `plan`"),
            (r#"{"id": 7, "id": 7}"#, "duplicate field `id`"),
            ("[7]", "invalid length, expected struct Account with 2 elements"),
            (r#""hunter2""#, "invalid type: string, expected struct Account"),
            ("{hunter2", "its `Deserialize` refused it"),
        ];
        for (text, reason) in cases {
            let error = read_state::<Account>("account", text).unwrap_err();
            let StateError::Invalid { reason: found, state, .. } = &error else { panic!("{error}") };
            assert_eq!((&**found, state.ends_with("Account")), (reason, true), "{text}");
        }
        for text in ["hunter2", "panic", "missing field `hunter2`", "invalid value, expected hunter2"] {
            let error = read_state::<Strict>("strict", &format!("{text:?}")).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && error.contains("its `Deserialize`"), "{error}");
            let map = format!("{{{text:?}: 1}}");
            let error = read_state::<BTreeMap<Strict, u8>>("strict", &map).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && error.contains("its `Deserialize`"), "{error}");
        }
    }
}
