//! Reads objects that a model wrote in the syntax of another language or of a broken chat template, so that the report can offer the same
//! call as JSON. The result is only offered, and never used as the arguments. Text that is cut short, or in which the end of a string is
//! uncertain, is not read.

use crate::args::document::Document;
use serde_json::{Map, Value};

/// Maximum length of a text, in bytes. The corrected call of a longer text would usually be too long to be offered.
const MAX_TEXT: usize = 2_000;
const MAX_DEPTH: usize = 40;
/// The quote that some chat templates write around texts.
const QUOTE: &str = "<|\"|>";

pub(super) struct Respelled {
    pub(super) text: String,
    pub(super) hint: &'static str,
}

/// Reads a text that is not JSON. Returns `None` if the meaning is uncertain, or if the text is longer than [`MAX_TEXT`].
pub(super) fn respelled(text: &str) -> Option<Respelled> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let text = unfenced(text.trim());
    if is_nothing(text) {
        return Some(Respelled { text: "{}".into(), hint: "send `{}` if there are no arguments" });
    }
    read(text).or_else(|| read_within(text))
}

/// Reads the only object in a text that has words before or after it.
fn read_within(text: &str) -> Option<Respelled> {
    let (start, end) = (text.find('{')?, text.rfind('}')? + 1);
    let outside = [text.get(..start)?, text.get(end..)?];
    let is_plain = |text: &&str| !text.is_empty() && !text.contains(['{', '}', '[', ']', '"']);
    let around = outside.iter().filter(|text| !text.trim().is_empty());
    let inner = around.clone().all(is_plain).then(|| text.get(start..end)).flatten()?;
    // The mistake to report is the text around the object, not one in the object.
    (around.count() > 0).then(|| read(inner)).flatten().map(|read| Respelled { hint: "", ..read })
}

fn read(text: &str) -> Option<Respelled> {
    let mut reader = SpellingReader::new(text);
    let value = reader.call().or_else(|| {
        reader = SpellingReader::new(text);
        let value = reader.value(0)?;
        reader.closers();
        Some(value)
    })?;
    reader.blank();
    let is_whole = reader.at == text.len() && value.is_object();
    is_whole.then(|| Respelled { text: value.to_string(), hint: reader.hint.unwrap_or_default() })
}

fn is_nothing(text: &str) -> bool {
    ["None", "undefined", "nil", "NULL", "Null", "()"].contains(&text)
}

fn unfenced(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")) else { return text };
    let (language, rest) = inner.split_once('\n').unwrap_or(("", inner));
    let is_word = language.trim().chars().all(|c| c.is_ascii_alphanumeric());
    if is_word { rest.trim() } else { inner.trim() }
}

struct SpellingReader<'t> {
    text: &'t str,
    at: usize,
    /// The advice about the first syntax that is not JSON.
    hint: Option<&'static str>,
    part_of: Container,
}

#[derive(Clone, Copy, PartialEq)]
enum Container {
    Object,
    List,
    Call,
}

enum QuotedText {
    Text(String),
    /// The end or the meaning of the text is uncertain.
    Open,
    No,
}

impl<'t> SpellingReader<'t> {
    fn new(text: &'t str) -> SpellingReader<'t> {
        SpellingReader { text, at: 0, hint: None, part_of: Container::Object }
    }

    fn within<T>(&mut self, around: Container, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.part_of, around);
        let out = read(self);
        self.part_of = before;
        out
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn note(&mut self, hint: &'static str) {
        self.hint.get_or_insert(hint);
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn blank(&mut self) {
        loop {
            let rest = self.rest();
            let length = rest.len() - rest.trim_start().len();
            self.at += length;
            if self.eat("\\n") || self.eat("\\r") || self.eat("\\t") {
                self.note("leave out the `\\n` between the values");
            } else if self.eat("//") {
                self.note("JSON has no comments");
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if self.rest().starts_with("/*") {
                self.note("JSON has no comments");
                self.at += self.rest().find("*/").map_or(self.rest().len(), |end| end + 2);
            } else if length == 0 {
                return;
            }
        }
    }

    fn closers(&mut self) {
        self.blank();
        while matches!(self.peek(), Some('}' | ']')) {
            self.at += 1;
            self.note("there is a closing bracket too many");
            self.blank();
        }
    }

    /// Reads `tool(name="value")`, alone or in a list.
    fn call(&mut self) -> Option<Value> {
        let is_list = self.eat("[");
        let name = self.word();
        if name.is_empty() || !self.eat("(") {
            return None;
        }
        self.note("send the arguments alone, as one JSON object");
        let value = self.within(Container::Call, |reader| reader.entries(")", 1))?;
        self.blank();
        (!is_list || self.eat("]")).then_some(value)
    }

    fn word(&mut self) -> &'t str {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
        let rest = self.rest();
        let word = rest.split(|c| !is_part(c)).next().unwrap_or_default();
        self.at += word.len();
        word
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.blank();
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()? {
            '{' if self.eat("{{") => {
                self.note("write each brace once");
                self.within(Container::Object, |reader| reader.entries("}}", depth + 1))
            }
            '{' => {
                self.at += 1;
                self.within(Container::Object, |reader| reader.entries("}", depth + 1))
            }
            '[' => {
                self.at += 1;
                self.within(Container::List, |reader| reader.items(depth + 1))
            }
            _ => match self.quoted(false) {
                QuotedText::Text(text) => Some(text.into()),
                QuotedText::Open => None,
                QuotedText::No => self.bare(),
            },
        }
    }

    fn entries(&mut self, close: &str, depth: usize) -> Option<Value> {
        let mut map = Map::new();
        loop {
            self.blank();
            if self.eat(close) {
                return Some(map.into());
            }
            let key = match self.quoted(true) {
                QuotedText::Text(key) => key,
                QuotedText::Open => return None,
                QuotedText::No => {
                    self.note("put names in double quotes");
                    self.word().to_owned()
                }
            };
            self.blank();
            if key.is_empty() || !(self.eat(":") || self.eat("=")) {
                return None;
            }
            let value = self.value(depth)?;
            if map.insert(key, value).is_some() {
                return None;
            }
            self.blank();
            if !self.eat(",") && !self.rest().starts_with(close) {
                return None;
            }
        }
    }

    fn items(&mut self, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        loop {
            self.blank();
            if self.eat("]") {
                return Some(items.into());
            }
            items.push(self.value(depth)?);
            self.blank();
            if !self.eat(",") && !self.rest().starts_with(']') {
                return None;
            }
        }
    }

    /// Reads a value without quotes: a JSON number, `true`, `false` or `null`, a literal of another language such as `True`, or a text.
    fn bare(&mut self) -> Option<Value> {
        let rest = self.rest();
        let end = rest.find([',', '{', '}', '[', ']', '"', '\'', '\n', '(', ')']).unwrap_or(rest.len());
        let text = rest.get(..end)?;
        let comment = [text.find("/*"), text.find(" //")].into_iter().flatten().min();
        let text = text.get(..comment.unwrap_or(text.len()))?.trim_end();
        if text.is_empty() || text.contains(": ") || text.contains("<|") {
            return None;
        }
        self.at += text.len();
        if let Ok(document) = Document::parse(text) {
            return (!document.root.loses_digits()).then(|| document.root.to_value());
        }
        let word = match text {
            "True" | "TRUE" => Value::Bool(true),
            "False" | "FALSE" => Value::Bool(false),
            "None" | "undefined" | "nil" | "NULL" | "Null" => Value::Null,
            "NaN" | "Infinity" | "-Infinity" | "nan" | "inf" => return None,
            text => {
                self.note("put texts in double quotes");
                return Some(text.into());
            }
        };
        self.note("JSON writes `true`, `false` and `null`, in lower case");
        Some(word)
    }

    /// Reads a text in quotes: straight, curly, single, backticks, or those of a chat template.
    fn quoted(&mut self, is_key: bool) -> QuotedText {
        let rest = self.rest();
        for (open, close) in [("\"<|\"|>", "<|\"|>\""), (QUOTE, QUOTE)] {
            if let Some(inner) = rest.strip_prefix(open) {
                self.note("put names and texts in plain double quotes");
                let Some(end) = inner.find(close) else { return QuotedText::Open };
                self.at += open.len() + end + close.len();
                return inner.get(..end).map_or(QuotedText::Open, |text| QuotedText::Text(text.to_owned()));
            }
        }
        let Some(open) = rest.chars().next() else { return QuotedText::No };
        let close = match open {
            '"' => '"',
            '\'' => {
                self.note("use double quotes around names and texts");
                '\''
            }
            '`' => {
                self.note("use double quotes around names and texts");
                '`'
            }
            '\u{201c}' => {
                self.note("use straight double quotes");
                '\u{201d}'
            }
            _ => return QuotedText::No,
        };
        self.at += open.len_utf8();
        self.text_until(close, is_key).map_or(QuotedText::Open, QuotedText::Text)
    }

    fn text_until(&mut self, close: char, is_key: bool) -> Option<String> {
        let mut out = String::new();
        let (mut odd_escape, mut escape) = (false, false);
        loop {
            let c = self.peek()?;
            self.at += c.len_utf8();
            match c {
                '\\' => {
                    let next = self.peek()?;
                    self.at += next.len_utf8();
                    match next {
                        '"' | '\\' | '/' => out.push(next),
                        '\'' | '`' => {
                            self.note("write an apostrophe in a text without a backslash");
                            out.push(next);
                        }
                        // `\x41` is a letter in other languages, so the meaning is uncertain.
                        'x' if self.rest().bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2 => {
                            return None;
                        }
                        'n' | 't' | 'r' | 'b' | 'f' | 'u' => {
                            escape = true;
                            out.push(self.escaped(next)?);
                        }
                        next if next.is_ascii() && !next.is_control() => {
                            odd_escape = true;
                            self.note("write a backslash in a text as `\\\\`");
                            out.push('\\');
                            out.push(next);
                        }
                        _ => return None,
                    }
                }
                c if c == close && self.is_end(is_key) => break,
                c if c == close => {
                    self.note("write a quote inside a text as `\\\"`");
                    out.push(c);
                }
                c if c.is_control() => {
                    self.note(if c == '\t' {
                        "write a tab in a text as `\\t`"
                    } else {
                        "write a line break in a text as `\\n`"
                    });
                    out.push(c);
                }
                c => out.push(c),
            }
        }
        // If a text has a literal backslash, as in `C:\dir`, `\t` may not mean a tab.
        (!(odd_escape && escape)).then_some(out)
    }

    fn escaped(&mut self, letter: char) -> Option<char> {
        Some(match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            _ => {
                let digits = self.rest().get(..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
                self.at += 4;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
        })
    }

    /// Returns whether the last quote probably ends its text, judging by the characters after the quote.
    fn is_end(&self, is_key: bool) -> bool {
        let rest = self.rest().trim_start();
        if is_key {
            return rest.starts_with([':', '=']);
        }
        if rest.is_empty() {
            return false;
        }
        let close = match self.part_of {
            Container::Object => '}',
            Container::List => ']',
            Container::Call => ')',
        };
        let Some(next) = rest.strip_prefix(',') else { return rest.starts_with(close) };
        let next = next.trim_start();
        if next.starts_with(close) {
            return true;
        }
        // After the comma, an object continues with a name, and a list with a value.
        let Some(quote) = next.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
            let after = next.trim_start_matches(is_part).trim_start();
            return match self.part_of {
                Container::List => {
                    let token = next.split([',', ']']).next().unwrap_or_default().trim();
                    let is_word = !token.is_empty() && token.chars().all(char::is_alphanumeric);
                    is_word
                        || next.starts_with(['{', '[', '<'])
                        || serde_json::from_str::<Value>(token).is_ok()
                }
                Container::Object | Container::Call => {
                    after.starts_with([':', '=']) || next.starts_with(QUOTE)
                }
            };
        };
        let inner = next.get(1..).unwrap_or_default();
        let after = inner.find(quote).and_then(|end| inner.get(end + 1..)).unwrap_or_default().trim_start();
        match self.part_of {
            Container::List => after.starts_with([',', ']']),
            Container::Object | Container::Call => after.starts_with([':', '=']),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn other_spellings_are_read_as_what_they_mean() {
        for (text, meant) in [
            ("{a: x, b: [y z, 3]}", json!({"a": "x", "b": ["y z", 3]})),
            ("{'a': True, 'b': None,}", json!({"a": true, "b": null})),
            ("{{\"a\": {{\"b\": 1}}}}", json!({"a": {"b": 1}})),
            ("{a:<|\"|>say \"x\"<|\"|>}", json!({"a": "say \"x\""})),
            ("{\"a\": \"say \"x\" now\", \"b\": 1}", json!({"a": "say \"x\" now", "b": 1})),
            ("{\"a\": [\"f(\"x\", 1)\", \"b\"]}", json!({"a": ["f(\"x\", 1)", "b"]})),
            ("{\"a\": \"1\n2\"}", json!({"a": "1\n2"})),
            ("{\"a\": \"C:\\dir\"}", json!({"a": "C:\\dir"})),
            ("f(a='x', b=[1])", json!({"a": "x", "b": [1]})),
            ("{\"a\": 1}}]", json!({"a": 1})),
            ("```json\n{\"a\": 1}\n```", json!({"a": 1})),
            ("{\"a\": 1 /* one */, // and\n \"b\": 2}", json!({"a": 1, "b": 2})),
            ("None", json!({})),
            ("Sure: {\"a\": 1}. Done.", json!({"a": 1})),
            ("<tool_call>{\"a\": 1}</tool_call>", json!({"a": 1})),
            ("{a: `x`}", json!({"a": "x"})),
            ("{\"a\": \"it\\'s\"}", json!({"a": "it's"})),
        ] {
            let read = respelled(text).and_then(|read| serde_json::from_str::<Value>(&read.text).ok());
            assert_eq!(read, Some(meant), "{text}");
        }
    }

    #[test]
    fn what_has_no_certain_meaning_is_not_read() {
        for text in [
            "",
            "{",
            "{\"a\": \"x",
            "{a: }",
            "{a}",
            "hello",
            "{\"a\": \"C:\\dir\\new\"}",
            "{\"a\": NaN}",
            "{\"a\": 1} {\"a\": 2}",
            "{a: 1, a: 2}",
            "{\"a\": \"\\x41\"}",
            "first {\"a\": 1} then {\"a\": 2}",
            "f {\"a\": 1} [",
            "{\"a\": 12345678901234567890123,}",
            "{\"a\": \"\\\u{b85c}\"}",
            "[1, 2",
            "{\"a\": \"\\u12\"}",
        ] {
            assert!(respelled(text).is_none(), "{text}");
        }
        for text in [
            "{".repeat(1_000),
            "[".repeat(1_000),
            "{a:".repeat(600),
            "\"".repeat(1_999),
            "{\"a\":\"".repeat(200),
        ] {
            assert!(respelled(&text).is_none());
        }
    }
}
