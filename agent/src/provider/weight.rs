//! Estimates the memory that the value of a JSON text needs, before the text is parsed.

/// Estimated sizes in a `serde_json::Value` with ordered keys, in bytes: an object with its table, a list with its first items, and each
/// further item. Dense JSON can need 70 times the length of its text.
const OBJECT: usize = 512;
const LIST: usize = 320;
const ITEM: usize = 224;

/// Maximum memory for a parsed JSON value, as a multiple of the maximum length of its text.
const FACTOR: usize = 16;

/// Maximum length of a text that is not examined, because its JSON value needs at most 20 MiB.
const SHORT: usize = 64 << 10;

/// Estimates whether the JSON value of a text needs at most `FACTOR * max` bytes of memory. `max` is the maximum length of a text.
pub(super) fn fits(text: &[u8], max: usize) -> bool {
    text.len() <= SHORT || weight(text) <= max.saturating_mul(FACTOR)
}

fn weight(text: &[u8]) -> usize {
    let (mut weight, mut is_text, mut is_escaped) = (text.len(), false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'{' => weight = weight.saturating_add(OBJECT),
            b'[' => weight = weight.saturating_add(LIST),
            b',' => weight = weight.saturating_add(ITEM),
            _ => {}
        }
    }
    weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_weigh_only_their_length() {
        assert_eq!(weight(br#""{[,{[,\"{\\""#), 13);
        assert_eq!(weight(br#"{"a":[1,"\\"],"b":{}}"#), 21 + 2 * OBJECT + LIST + 2 * ITEM);
    }

    #[test]
    fn a_long_text_fits_and_many_small_values_do_not() {
        let max = 1 << 20;
        let long = format!("[\"{}\"]", "x".repeat(max - 4));
        assert!(fits(long.as_bytes(), max));
        let dense = format!("[{}{{}}]", "{\"\":[]},".repeat(max / 8 - 1));
        assert!(dense.len() <= max && !fits(dense.as_bytes(), max));
    }
}
