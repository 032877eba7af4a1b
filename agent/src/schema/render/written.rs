//! A draft of a schema, and texts for the sentences of its description.

use crate::args::cut;
use serde_json::{Map, Value, json};

/// Maximum length of quoted JSON in a sentence, in characters.
const MAX_QUOTED: usize = 300;

/// A draft of a schema: the object, and the sentences that are appended to its description.
#[derive(Default, PartialEq)]
pub(super) struct SchemaDraft {
    pub(super) schema: Map<String, Value>,
    pub(super) words: Vec<String>,
}

impl SchemaDraft {
    pub(super) fn typed(name: &str) -> SchemaDraft {
        let mut out = SchemaDraft::default();
        out.put("type", json!(name));
        out
    }

    pub(super) fn put(&mut self, keyword: &str, value: Value) {
        self.schema.insert(keyword.into(), value);
    }

    pub(super) fn add_sentence(&mut self, sentence: String) {
        self.words.push(sentence);
    }

    /// Adds annotations. An existing keyword keeps its position and gets the new value.
    pub(super) fn add_annotations(&mut self, notes: &Map<String, Value>) {
        self.schema.extend(notes.iter().map(|(k, v)| (k.clone(), v.clone())));
    }

    pub(super) fn into_value(mut self) -> Value {
        if !self.words.is_empty() {
            let sentences = self.words.join(" ");
            let text = match self.schema.get("description").and_then(Value::as_str) {
                Some(own) if !own.is_empty() => format!("{own}\n{sentences}"),
                _ => sentences,
            };
            self.put("description", text.into());
        }
        Value::Object(self.schema)
    }
}

/// Returns the sentence for a range, such as `From 1 to 5.`, `At least 1 item.` or `At most 5 items.`; `None` for a range without ends.
pub(super) fn between(min: Option<String>, max: Option<String>, unit: &str) -> Option<String> {
    let of = |number: &str| match unit {
        "" => String::new(),
        unit if number == "1" => format!(" {unit}"),
        unit => format!(" {unit}s"),
    };
    Some(match (min, max) {
        (Some(min), Some(max)) if min == max => format!("Exactly {min}{}.", of(&max)),
        (Some(min), Some(max)) => format!("From {min} to {max}{}.", of(&max)),
        (Some(min), None) => format!("At least {min}{}.", of(&min)),
        (None, Some(max)) => format!("At most {max}{}.", of(&max)),
        (None, None) => return None,
    })
}

/// Returns the text of a number. The number `1.0` becomes `1`.
pub(super) fn plain(number: &Value) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

pub(super) fn quote_json(value: &Value) -> String {
    cut(&value.to_string(), MAX_QUOTED)
}

pub(super) fn quote_list<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    cut(&values.into_iter().map(Value::to_string).collect::<Vec<_>>().join(", "), MAX_QUOTED)
}
