//! Completes the annotations of a schema: descriptions, defaults and examples.

use super::written::{SchemaDraft, quote_json, quote_list};
use super::{ChangeKind, EXTENSIONS, ReferenceSupport, Renderer};
use serde_json::{Map, Value};

impl Renderer<'_> {
    /// Completes a schema: annotations that the dialect lacks become sentences, and a reference that must not have other keywords next to
    /// it is wrapped in `anyOf`.
    pub(super) fn finish(&mut self, mut written: SchemaDraft) -> Value {
        for keyword in ["default", "examples", "deprecated"] {
            if self.can.has(keyword) {
                continue;
            }
            let Some(note) = written.schema.shift_remove(keyword) else { continue };
            let sentence = match (keyword, &note) {
                ("default", note) => format!("Default: {}.", quote_json(note)),
                ("examples", Value::Array(examples)) if !examples.is_empty() => {
                    format!("Examples: {}.", quote_list(examples))
                }
                ("deprecated", Value::Bool(true)) => "Deprecated.".into(),
                _ => continue,
            };
            self.record_change(keyword, ChangeKind::Described);
            written.add_sentence(sentence);
        }
        if !self.can.has(EXTENSIONS) {
            written.schema.retain(|keyword, _| !keyword.starts_with(EXTENSIONS));
        }
        if matches!(self.can.references, ReferenceSupport::Alone | ReferenceSupport::Optional)
            && (written.schema.len() > 1 || !written.words.is_empty())
            && let Some(reference) = written.schema.shift_remove("$ref")
        {
            self.record_change("$ref", ChangeKind::Rewritten);
            let mut lone = Map::new();
            lone.insert("$ref".into(), reference);
            let mut outer = Map::new();
            outer.insert("anyOf".into(), vec![Value::Object(lone)].into());
            outer.append(&mut written.schema);
            written.schema = outer;
        }
        written.into_value()
    }
}
