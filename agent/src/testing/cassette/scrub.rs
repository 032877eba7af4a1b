//! Removes secrets from requests and replies before they are written.

use regex::Regex;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, LazyLock};

const SCRUBBED: &str = "[scrubbed]";

/// Minimum length, in bytes, of the secrets that are taken from environment variables. Shorter values may be ordinary words.
const MIN_LENGTH: usize = 12;

/// Patterns of well-known keys and tokens, such as `sk-…`, `AKIA…` and `Bearer …`.
static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        r"\bsk-[A-Za-z0-9_-]{16,}",
        r"\bAIza[A-Za-z0-9_-]{30,}",
        r"\bgh[pousr]_[A-Za-z0-9]{30,}",
        r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
        r"\bAKIA[A-Z0-9]{16}\b",
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        r"(?i:\bbearer\s+)[A-Za-z0-9._~+/-]{16,}=*",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----",
    ];
    Regex::new(&forms.join("|")).ok()
});

type TextChange = dyn Fn(&str) -> String + Send + Sync;

/// Removes secrets from JSON, and applies the changes of `Cassette::scrub`.
#[derive(Clone)]
pub(super) struct Scrubber {
    /// The secrets, the longest first, because a secret may be part of another secret.
    secrets: Vec<String>,
    changes: Vec<Arc<TextChange>>,
}

impl Scrubber {
    pub(super) fn new() -> Self {
        let is_key =
            |name: &str| ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"].iter().any(|end| name.ends_with(end));
        let secrets = std::env::vars_os().filter_map(|(name, value)| {
            let value = value.into_string().ok()?;
            (is_key(name.to_str()?) && value.len() >= MIN_LENGTH).then_some(value)
        });
        let mut scrubber = Self { secrets: secrets.collect(), changes: Vec::new() };
        scrubber.sort();
        scrubber
    }

    pub(super) fn add_secret(&mut self, secret: String) {
        if !secret.is_empty() {
            self.secrets.push(secret);
            self.sort();
        }
    }

    pub(super) fn add_change(&mut self, change: Arc<TextChange>) {
        self.changes.push(change);
    }

    fn sort(&mut self) {
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self.secrets.dedup();
    }

    /// Removes secrets from every text of a request, and then applies the changes of `Cassette::scrub`.
    pub(super) fn clean(&self, request: &mut Value) {
        self.walk(request, true);
    }

    /// Removes secrets from every text of a reply. The changes of `Cassette::scrub` are not applied, because the replay needs the tool
    /// names and call ids of the reply.
    pub(super) fn clean_reply(&self, reply: &mut Value) {
        self.walk(reply, false);
    }

    /// Cleans a value. The recursion is bounded, because the nesting of messages is limited.
    fn walk(&self, value: &mut Value, changes: bool) {
        match value {
            Value::String(text) => *text = self.text(text, changes),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, changes)),
            Value::Object(map) => {
                for (key, value) in map {
                    match value {
                        Value::String(text) if names_secret(key) && !text.is_empty() => {
                            SCRUBBED.clone_into(text);
                        }
                        value => self.walk(value, changes),
                    }
                }
            }
            _ => {}
        }
    }

    fn text(&self, text: &str, changes: bool) -> String {
        let mut text = self.secrets.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), SCRUBBED) } else { text }
        });
        if let Some(keys) = &*KEYS {
            text = keys.replace_all(&text, SCRUBBED).into_owned();
        }
        if !changes {
            return text;
        }
        self.changes.iter().fold(text, |text, change| change(&text))
    }
}

fn names_secret(key: &str) -> bool {
    let key: String =
        key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    [
        "apikey",
        "authorization",
        "password",
        "passwd",
        "secret",
        "clientsecret",
        "accesstoken",
        "refreshtoken",
        "privatekey",
    ]
    .contains(&key.as_str())
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrubber").field("secrets", &self.secrets.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_texts_that_look_like_keys_are_removed() {
        let mut scrubber = Scrubber { secrets: Vec::new(), changes: Vec::new() };
        scrubber.add_secret("hunter2".to_owned());
        scrubber.add_secret("hunter2-and-more".to_owned());
        let mut value = json!({
            "text": "use sk-abcdefghijklmnop1234, Bearer abcdefghijklmnop.qrst and hunter2-and-more",
            "api_key": "short",
            "token": {"type": "string", "description": "The token of a page."},
            "max_tokens": 5,
            "list": ["a bearer of news", "risk-averse-and-more-words", "hunter2"],
        });
        scrubber.clean(&mut value);
        assert_eq!(
            value,
            json!({
                "text": "use [scrubbed], [scrubbed] and [scrubbed]",
                "api_key": "[scrubbed]",
                "token": {"type": "string", "description": "The token of a page."},
                "max_tokens": 5,
                "list": ["a bearer of news", "risk-averse-and-more-words", "[scrubbed]"],
            })
        );
        let once = value.clone();
        scrubber.clean(&mut value);
        assert_eq!(value, once, "a second time changes nothing");
    }
}
