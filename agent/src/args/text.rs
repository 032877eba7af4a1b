//! Functions that cut, fold and quote text for people and models.

use serde_json::Value;
use std::fmt::Write;

pub(crate) const MAX_VALUE: usize = 60;
pub(crate) const MAX_RECORD: usize = 200;
/// A JSON Pointer longer than this number of bytes gets no more keys. Each key is cut to this number of characters.
const MAX_POINTER: usize = 4_096;

pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        let kept = text.bytes().filter(u8::is_ascii_alphanumeric);
        let mut folded = String::with_capacity(text.len());
        folded.extend(kept.map(|byte| char::from(byte.to_ascii_lowercase())));
        return folded;
    }
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the first `max` characters of a text. If the text is longer, the last of these characters is `…`.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mut out = String::new();
    push_cut(&mut out, text, max);
    out
}

pub(crate) fn push_cut(out: &mut String, text: &str, max: usize) {
    if text.len() <= max {
        return out.push_str(text);
    }
    if text.char_indices().nth(max).is_none() {
        return out.push_str(text);
    }
    let end = text.char_indices().nth(max.saturating_sub(1)).map_or(0, |(at, _)| at);
    out.push_str(text.get(..end).unwrap_or_default());
    out.push('…');
}

/// Appends `text` as an escaped JSON string. Cuts the text to `max` characters before escaping.
pub(crate) fn push_quoted(out: &mut String, text: &str, max: usize) {
    let short;
    let text = if text.len() > max {
        short = cut(text, max);
        &short
    } else {
        text
    };
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        return out.extend(["\"", text, "\""]);
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

pub(crate) fn push_json(out: &mut String, text: &str) {
    if is_plain(text) {
        out.extend(["\"", text, "\""]);
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

pub(crate) fn json_of(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_json(&mut out, text);
    out
}

pub(crate) fn is_plain(text: &str) -> bool {
    !text.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))
}

pub(crate) fn quoted(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max) + 2);
    push_quoted(&mut out, text, max);
    out
}

pub(crate) fn key_list<'k>(keys: impl Iterator<Item = &'k str>) -> String {
    let mut list = String::new();
    for key in keys {
        if !list.is_empty() {
            list.push_str(", ");
        }
        push_quoted(&mut list, key, MAX_VALUE);
        if list.len() > 4 * MAX_VALUE {
            break;
        }
    }
    cut(&list, MAX_VALUE)
}

pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => format!("boolean {b}"),
        Value::Number(n) => format!("number {n}"),
        Value::String(s) => format!("string {}", quoted(s, MAX_VALUE)),
        Value::Array(items) => format!("array of {}", items.len()),
        Value::Object(map) if map.is_empty() => "object {}".into(),
        Value::Object(map) => format!("object with {}", key_list(map.keys().map(String::as_str))),
    }
}

/// Returns the offset of `part` in `text`, or `None` if `part` is not a slice of `text`.
#[inline]
pub(crate) fn offset_in(text: &str, part: &str) -> Option<usize> {
    let start = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (start + part.len() <= text.len()).then_some(start)
}

/// Appends a segment to a JSON pointer (RFC 6901: `~` is `~0`, `/` is `~1`). Long pointers and keys are cut, because a pointer is
/// copied for each value below it.
pub(crate) fn push_segment(pointer: &mut String, key: &str) {
    if pointer.len() > MAX_POINTER {
        return;
    }
    let short;
    let key = if key.len() > MAX_POINTER {
        short = cut(key, MAX_POINTER);
        &short
    } else {
        key
    };
    pointer.push('/');
    if key.bytes().any(|b| b == b'~' || b == b'/') {
        for c in key.chars() {
            match c {
                '~' => pointer.push_str("~0"),
                '/' => pointer.push_str("~1"),
                c => pointer.push(c),
            }
        }
    } else {
        pointer.push_str(key);
    }
}

pub(crate) fn push_index(pointer: &mut String, index: impl std::fmt::Display) {
    // Writing to a `String` cannot fail.
    let _ = write!(pointer, "/{index}");
}

/// Returns whether the keys of an object are 0, 1, 2 and so on, and there is at least one key. A language without lists writes a
/// list as such an object.
pub(crate) fn has_numbered_keys<'k>(keys: impl Iterator<Item = &'k str>) -> bool {
    let mut count = 0_usize;
    for key in keys {
        if key != count.to_string() {
            return false;
        }
        count += 1;
    }
    count > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_counts_characters_not_bytes() {
        assert_eq!(cut("ééééé", 5), "ééééé");
        assert_eq!(cut("éééééé", 5), "éééé…");
        assert_eq!(cut("", 5), "");
    }

    #[test]
    fn quoting_is_json() {
        let nasty = "a\"\\\n\t\u{1}é\u{7f}";
        assert_eq!(serde_json::from_str::<String>(&quoted(nasty, 60)).ok().as_deref(), Some(nasty));
    }

    #[test]
    fn pointers_are_escaped() {
        let mut p = String::new();
        push_segment(&mut p, "a/b~c");
        push_index(&mut p, 10);
        assert_eq!(p, "/a~1b~0c/10");
    }
}
