//! The messages for values that a Rust type refuses during deserialization.

use crate::args::document::{Doc, Shape};
use crate::args::plan::{Graph, NodeId, NodeKind};
use crate::args::text::cut;

/// Maximum length of a type's own message, in characters.
const MAX_WORDS: usize = 250;

/// Returns the message of an error without its position in the text, because the path is more
/// precise.
pub(super) fn plain(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let words = words.strip_suffix(&position).unwrap_or(&words);
    if words.starts_with("data did not match any variant of untagged enum") {
        return "fits no alternative".to_owned();
    }
    cut(words, MAX_WORDS)
}

/// Returns a description of the mistake in a text with a wrong `format`, if the mistake is a frequent one.
pub(super) fn of_format(graph: &Graph, node: NodeId, doc: &Doc<'_>) -> Option<&'static str> {
    let Shape::Text(text) = &doc.shape else { return None };
    match graph.kind(graph.non_null(node)) {
        NodeKind::Str(spec) => crate::args::formats::fault(spec.format.as_deref()?, text),
        _ => None,
    }
}
