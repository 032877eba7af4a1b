//! Shortens results that are too long for a conversation.

use crate::message::{Part, ToolResultMessage};

/// Joins and cuts the texts of a result if they are longer than `max` bytes together. A line at the cut names the handle with which the
/// model can read the whole text, or tells the model to ask for less. The structured data is dropped, because it has the same content.
pub(crate) fn cut(result: &mut ToolResultMessage, max: usize, handle: Option<&str>) {
    let texts = result.content.iter().filter_map(Part::as_text);
    let length: usize = texts.clone().map(str::len).sum();
    if length <= max {
        return;
    }
    let (head, tail) = (head(texts.clone(), max / 2), tail(texts.rev(), max / 2));
    let left_out = length.saturating_sub(head.len()).saturating_sub(tail.len());
    let where_it_is = match handle {
        Some(handle) => hint(handle),
        None => "ask for less if you need it".to_owned(),
    };
    let text = format!("{head}\n[… {left_out} of {length} bytes are left out here; {where_it_is} …]\n{tail}");
    result.content.retain(|part| part.as_text().is_none());
    result.content.insert(0, Part::text(text));
    result.structured = None;
}

/// Returns the beginning of a text that [`cut`] keeps if it shortens the text to `max` bytes.
pub(super) fn beginning(text: &str, max: usize) -> &str {
    let room = (max / 2).min(text.len());
    let at = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    text.get(..at).unwrap_or_default()
}

pub(crate) fn hint(handle: &str) -> String {
    format!("read it with `read_result`, handle `{handle}`")
}

fn head<'t>(texts: impl Iterator<Item = &'t str>, max: usize) -> String {
    let mut out = String::new();
    for text in texts {
        let room = max.saturating_sub(out.len()).min(text.len());
        let at = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        out.push_str(text.get(..at).unwrap_or_default());
        if at < text.len() {
            break;
        }
    }
    out
}

/// Returns at most the last `max` bytes of the texts, which are given in reverse order.
fn tail<'t>(texts: impl Iterator<Item = &'t str>, max: usize) -> String {
    let (mut parts, mut room) = (Vec::new(), max);
    for text in texts {
        let from = text.len().saturating_sub(room);
        let at = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        parts.push(text.get(at..).unwrap_or_default());
        room = room.saturating_sub(text.len());
        if at > 0 {
            break;
        }
    }
    parts.into_iter().rev().collect()
}

#[cfg(feature = "runtime")]
pub(crate) fn text_bytes(parts: &[Part]) -> usize {
    parts.iter().filter_map(Part::as_text).map(str::len).sum()
}
