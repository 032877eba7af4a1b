//! The words for a refusal by a type.

use crate::args::document::{Doc, Shape};
use crate::args::plan::{Graph, NodeId, NodeKind};
use crate::args::text::cut;

/// Maximum length of a type's own words.
const MAX_WORDS: usize = 250;

/// Returns the words of an error without its position, which says less than the path.
pub(super) fn plain(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let words = words.strip_suffix(&position).unwrap_or(&words);
    if words.starts_with("data did not match any variant of untagged enum") {
        return "fits no alternative".to_owned();
    }
    cut(words, MAX_WORDS)
}

/// Returns what is wrong with a text of a known format, in words that say how to write it.
pub(super) fn of_format(graph: &Graph, node: NodeId, doc: &Doc<'_>) -> Option<&'static str> {
    let Shape::Text(text) = &doc.shape else { return None };
    match graph.kind(graph.non_null(node)) {
        NodeKind::Str(spec) => crate::args::formats::fault(spec.format.as_deref()?, text),
        _ => None,
    }
}
