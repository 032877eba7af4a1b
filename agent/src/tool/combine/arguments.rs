//! Arguments that the model neither sees nor sends.

use crate::args::{Coercions, InvalidArguments, Issue, IssueCode, Plan};
use crate::tool::definition::DefinitionError;
use crate::tool::traits::Tool;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;

/// An argument that is hidden from the model.
#[derive(Clone)]
pub(super) struct Taken {
    pub(super) name: String,
    /// The value that the tool gets; `None` for its default.
    value: Option<Value>,
}

/// Arguments as the tool takes them.
pub(super) struct Joined {
    pub(super) text: String,
    pub(super) coercions: Coercions,
}

impl Taken {
    pub(super) fn new(name: &str, value: Option<Value>) -> Self {
        Self { name: name.to_owned(), value }
    }

    /// Checks that `tool` works without the argument being sent.
    pub(super) fn suits(&self, tool: &dyn Tool) -> Result<(), DefinitionError> {
        let refuse = |reason: String| Err(DefinitionError::Parameter { name: self.name.clone(), reason });
        let Some(value) = &self.value else {
            return match tool.definition().plan().requires(&self.name) {
                Some(true) => {
                    refuse("a call has to have it, so it cannot be hidden: fix it to a value".to_owned())
                }
                _ => Ok(()),
            };
        };
        // A report lists everything, so what it says of this place is said of the value, whatever else is missing.
        let alone: Map<String, Value> = [(self.name.clone(), value.clone())].into_iter().collect();
        let place = self.pointer();
        match tool.validate(&Value::Object(alone).to_string()) {
            Ok(_) => Ok(()),
            Err(report) => {
                let own = report.issues().iter().filter(|issue| issue.path.starts_with(&place));
                match own.map(ToString::to_string).collect::<Vec<_>>() {
                    own if own.is_empty() => Ok(()),
                    own => refuse(format!("it cannot be fixed to this value: {}", own.join("; "))),
                }
            }
        }
    }

    /// The JSON pointer to the argument.
    pub(super) fn pointer(&self) -> String {
        format!("/{}", self.name.replace('~', "~0").replace('/', "~1"))
    }
}

/// Checks the model's arguments against the plan that it saw, and adds the application's. `whole` is the tool's own plan.
pub(super) fn join(
    shown: &Plan,
    whole: &Plan,
    taken: &[Taken],
    arguments: &str,
) -> Result<Joined, Box<InvalidArguments>> {
    let parsed = shown.parse::<Value>(arguments).map_err(Box::new)?;
    let Value::Object(sent) = parsed.value else {
        return Ok(Joined { text: arguments.to_owned(), coercions: parsed.coercions });
    };
    // Where other keys are kept, a hidden argument would come in again, by its name or an alias.
    let is_taken = |key: &&String| {
        whole.parameter_of(key).is_some_and(|name| taken.iter().any(|taken| taken.name == name))
    };
    let refused: Vec<Issue> = sent.keys().filter(is_taken).map(|key| unknown(key)).collect();
    if !refused.is_empty() {
        return Err(Box::new(InvalidArguments::new(shown, refused, 0, None)));
    }
    let raw = Raw::of(arguments);
    let mut text = String::from("{");
    let mut push = |key: &str, value: &str| {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(key).to_string());
        text.push(':');
        text.push_str(value);
    };
    for (key, value) in &sent {
        let place = Taken::new(key, None).pointer();
        let is_as_sent = !parsed.coercions.iter().any(|coercion| {
            coercion.path.strip_prefix(&place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        // Numbers stay as exact as they were written.
        match raw.get(key).filter(|_| is_as_sent) {
            Some(raw) => push(key, raw),
            None => push(key, &value.to_string()),
        }
    }
    for taken in taken {
        if let Some(value) = &taken.value {
            push(&taken.name, &value.to_string());
        }
    }
    text.push('}');
    Ok(Joined { text, coercions: parsed.coercions })
}

fn unknown(key: &str) -> Issue {
    Issue::new(Taken::new(key, None).pointer(), IssueCode::Unknown, "unknown parameter")
}

/// The values of an object as they were written; empty if the text is not an object.
struct Raw<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Raw<'t> {
    fn of(text: &'t str) -> Self {
        serde_json::from_str(text).unwrap_or(Self(Vec::new()))
    }

    fn get(&self, key: &str) -> Option<&'t str> {
        self.0.iter().find(|(own, _)| own == key).map(|(_, value)| value.get())
    }
}

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Raw<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Raw(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
