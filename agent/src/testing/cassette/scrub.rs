//! Removes secrets from requests and replies before they are written.

use crate::quoted::quoted_forms;
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

/// Pattern of the key of a JSON field within a text, up to its value. The second group is the backslashes before the closing quote: there
/// are some if the JSON is quoted in a JSON string.
static FIELD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""([^"\\]*)(\\*)"\s*:\s*"#).ok());

type TextChange = dyn Fn(&str) -> String + Send + Sync;

/// Removes secrets from JSON, and applies the changes of `Cassette::scrub`.
#[derive(Clone)]
pub(super) struct Scrubber {
    /// The secrets in all their forms, the longest first, because a secret may be part of another secret.
    secrets: Vec<String>,
    changes: Vec<Arc<TextChange>>,
}

impl Scrubber {
    pub(super) fn new() -> Self {
        let is_key =
            |name: &str| ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"].iter().any(|end| name.ends_with(end));
        let secrets = std::env::vars_os().filter_map(|(name, value)| {
            let value = value.into_string().ok()?;
            (is_key(name.to_str()?) && value.len() >= MIN_LENGTH).then(|| quoted_forms(&value))
        });
        let mut scrubber = Self { secrets: secrets.flatten().collect(), changes: Vec::new() };
        scrubber.sort();
        scrubber
    }

    pub(super) fn add_secret(&mut self, secret: &str) {
        if !secret.is_empty() {
            self.secrets.extend(quoted_forms(secret));
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

    /// Removes secrets from every text, without the changes of `Cassette::scrub`. These changes are not made in a reply, because the
    /// replay needs the tool names and call ids of the reply.
    pub(super) fn remove_secrets(&self, value: &mut Value) {
        self.walk(value, false);
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
                        Value::Number(_) if names_secret(key) => *value = SCRUBBED.into(),
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
        text = without_secret_fields(&text);
        if !changes {
            return text;
        }
        self.changes.iter().fold(text, |text, change| change(&text))
    }
}

/// Replaces the values of fields with secret names in the JSON within a text. The JSON may be incomplete, or quoted in JSON strings.
fn without_secret_fields(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(field) = FIELD.as_ref().and_then(|field| field.captures(rest)) {
        let (Some(all), Some(key), Some(slashes)) = (field.get(0), field.get(1), field.get(2)) else { break };
        let (head, value) = rest.split_at(all.end());
        out.push_str(head);
        rest = value;
        if names_secret(key.as_str())
            && let Some((scrubbed, after)) = scrub_value(value, slashes.as_str())
        {
            out.push_str(&scrubbed);
            rest = after;
        }
    }
    out + rest
}

/// Returns what replaces the string or number at the beginning of a text, and the text after it. `slashes` precede the quotes of a string.
fn scrub_value<'t>(text: &'t str, slashes: &str) -> Option<(String, &'t str)> {
    let Some(inner) = text.strip_prefix(slashes).and_then(|text| text.strip_prefix('"')) else {
        let is_number = text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        let after = text.trim_start_matches(|char: char| char.is_ascii_digit() || "-+.eE".contains(char));
        return is_number.then(|| (format!("{slashes}\"{SCRUBBED}{slashes}\""), after));
    };
    let (mut end, mut run) = (inner.len(), 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'\\' => run += 1,
            b'"' => {
                // Each quoting of the JSON doubles the backslashes of the content. `own` is the number of backslashes that belong to the
                // quote itself.
                let own = run % (2 * slashes.len() + 2);
                if own <= slashes.len() {
                    end = at - own;
                    break;
                }
                run = 0;
            }
            _ => run = 0,
        }
    }
    (end > 0).then(|| (format!("{slashes}\"{SCRUBBED}"), inner.split_at(end).1))
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
        scrubber.add_secret("hunter2");
        scrubber.add_secret("hunter2-and-more");
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

    #[test]
    fn secrets_are_found_in_json_within_a_text() {
        let mut scrubber = Scrubber { secrets: Vec::new(), changes: Vec::new() };
        scrubber.add_secret("a\"b\\ü");
        let quoted = |value: Value| json!(value.to_string()).to_string();
        let hidden = json!({"user": "ann", "password": SCRUBBED, "n": 1});
        let cases = [
            (json!({"user": "ann", "password": "x", "n": 1}).to_string(), hidden.to_string()),
            (quoted(json!({"user": "ann", "password": "\"x\\", "n": 1})), quoted(hidden.clone())),
            (quoted(json!({"user": "ann", "password": 4711, "n": 1})), quoted(hidden)),
            (
                r#"Log: "API-Key" : -4.5e3, done"#.to_owned(),
                r#"Log: "API-Key" : "[scrubbed]", done"#.to_owned(),
            ),
            (r#"{"secret": "cut \" off"#.to_owned(), r#"{"secret": "[scrubbed]"#.to_owned()),
            (r#"["{\"secret\": \"cut", "x"]"#.to_owned(), r#"["{\"secret\": \"[scrubbed]", "x"]"#.to_owned()),
            (quoted(json!(["a\"b\\ü"])), quoted(json!([SCRUBBED]))),
            (
                json!({"password": {"type": "string"}}).to_string(),
                json!({"password": {"type": "string"}}).to_string(),
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(scrubber.text(&text, true), wanted, "{text}");
            assert_eq!(scrubber.text(&wanted, true), wanted, "a second time changes nothing");
        }
        let mut value = json!({"password": 4711});
        scrubber.clean(&mut value);
        assert_eq!(value, json!({"password": SCRUBBED}));
    }
}
