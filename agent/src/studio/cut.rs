//! Cuts long texts in JSON for the studio's web page.

use serde_json::Value;

/// Maximum length of a text in a list or an event, in bytes. The browser fetches whole results on demand.
pub(super) const MAX_TEXT: usize = 256 << 10;

/// Returns the longest beginning of a text with at most `max` bytes.
pub(super) fn beginning(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Cuts every text in a value to at most `max` bytes, and appends the original length to each cut text. Returns whether
/// any text was cut.
pub(super) fn cut_texts(value: &mut Value, max: usize) -> bool {
    match value {
        Value::String(text) if text.len() > max => {
            let kept = beginning(text, max).len();
            *text = format!("{}… [cut: {} bytes]", &text[..kept], text.len());
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |cut, item| cut_texts(item, max) | cut),
        Value::Object(fields) => fields.values_mut().fold(false, |cut, field| cut_texts(field, max) | cut),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut value = json!({"a": ["é".repeat(4), "short"]});
        assert!(cut_texts(&mut value, 5));
        assert_eq!(value, json!({"a": ["éé… [cut: 8 bytes]", "short"]}));
        assert!(!cut_texts(&mut json!({"a": 1, "b": "x"}), 5));
    }
}
