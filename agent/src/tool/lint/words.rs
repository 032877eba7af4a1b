//! Splits names and texts into words, and compares the words.

use std::collections::BTreeSet;

/// Returns the words of a name or a text, in lower case and without their endings.
pub(super) fn stems(text: &str) -> BTreeSet<String> {
    split(text).iter().map(|word| stem(word)).collect()
}

/// Splits a name or a text into words in lower case: `readFile`, `read_file` and `Read file` give the same words.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for char in text.chars() {
        if !char.is_alphanumeric() || (was_lower && char.is_uppercase()) {
            words.push(String::new());
        }
        was_lower = char.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| char.is_alphanumeric()) {
            word.extend(char.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Removes the endings of verbs and plurals: `gets`, `getting` and `get` are one word, and so are `file` and `files`.
fn stem(word: &str) -> String {
    let without = |word: &str, ending: &str| {
        word.strip_suffix(ending).filter(|rest| rest.chars().count() >= 3).map(str::to_owned)
    };
    let inflected = ["ing", "es", "ed", "s"].iter().find_map(|ending| without(word, ending));
    let word = inflected.unwrap_or_else(|| word.to_owned());
    let mut word = without(&word, "e").unwrap_or(word);
    let mut last = word.chars().rev();
    if let (Some(one), Some(other)) = (last.next(), last.next())
        && one == other
        && word.chars().count() > 3
    {
        word.pop();
    }
    word
}

const FILLERS: [&str; 28] = [
    "a",
    "an",
    "the",
    "this",
    "that",
    "it",
    "of",
    "for",
    "to",
    "in",
    "on",
    "and",
    "or",
    "is",
    "be",
    "tool",
    "function",
    "param",
    "parameter",
    "argument",
    "arg",
    "value",
    "field",
    "input",
    "use",
    "will",
    "can",
    "name",
];

/// Returns the stems of the words of a text, without filler words.
pub(super) fn telling(text: &str) -> BTreeSet<String> {
    split(text).iter().filter(|word| !FILLERS.contains(&word.as_str())).map(|word| stem(word)).collect()
}

/// Returns the share of words that two sets have in common, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "numbers of words")]
pub(super) fn likeness(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let common = one.intersection(other).count();
    let all = one.union(other).count();
    if all == 0 { 0.0 } else { common as f64 / all as f64 }
}

/// Returns the names of at least 3 bytes that the text has in backticks.
pub(super) fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |name: &&str| {
        name.len() >= 3 && name.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-'))
    };
    text.split('`').skip(1).step_by(2).filter(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_however_they_are_written() {
        for name in ["readFile", "read_file", "Read file", "read-file", "  read.File "] {
            assert_eq!(split(name), ["read", "file"], "{name}");
        }
        assert_eq!(split("HTTPServer2"), ["httpserver2"]);
        assert!(split("…").is_empty());
    }

    #[test]
    fn forms_of_a_word_are_one() {
        assert_eq!(stems("gets files"), stems("get file"));
        assert_eq!(stems("listing"), stems("lists"));
        for forms in [["get", "gets", "getting"], ["pass", "passes", "passing"], ["move", "moves", "moving"]]
        {
            assert!(forms.iter().all(|form| stems(form) == stems(forms[0])), "{forms:?}");
        }
        assert_ne!(stems("is"), stems("i"));
    }

    #[test]
    fn names_in_backticks_are_found() {
        let text = "Takes `user_id` and `a b` or `x`, but not `openUrl";
        assert_eq!(quoted(text).collect::<Vec<_>>(), ["user_id", "openUrl"]);
    }
}
