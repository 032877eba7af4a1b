//! The issue of arguments that cannot be read as JSON.

use crate::args::coercion::HIDDEN;
use crate::args::issue::{Issue, IssueCode};
use crate::args::text::{MAX_VALUE, cut, push_index, push_segment};

/// The number of characters that are shown before and after a fault.
const AROUND: usize = 12;

const WANTED: &str = "one complete JSON object";

/// Returns the issue of a text that `serde_json` cannot read. If `secret`, the issue shows no value of the text. `meant` is advice if the
/// text has the syntax of another language, or else empty.
pub(super) fn fault(text: &str, error: &serde_json::Error, secret: bool, meant: &'static str) -> Issue {
    let words = error.to_string();
    let issue = |path: String, code, problem: String| {
        let mut issue = Issue::new(path, code, cut(&problem, 200));
        issue.expected = Some(WANTED.into());
        issue
    };
    let whole = |problem: String| issue(String::new(), IssueCode::Json, problem);
    if words.starts_with("number out of range") {
        let (path, start) = place_before(text, offset(text, error));
        let mut issue = issue(path, IssueCode::Range, "too large a number".into());
        let number = text.get(start..).unwrap_or_default();
        let end = number.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        let digits = number.get(..end.unwrap_or(number.len())).unwrap_or_default();
        let shown = if secret { HIDDEN.to_owned() } else { cut(digits, MAX_VALUE) };
        issue.received = Some(format!("number {shown}"));
        issue.expected = None;
        return issue;
    }
    if words.starts_with("recursion limit exceeded") {
        return whole("nested too deeply: at most 127 levels of objects and lists".into());
    }
    let start = text.trim_start();
    if start.starts_with("```") {
        return whole("a code fence around the JSON; leave the fence out".into());
    }
    if is_prose(start) {
        let shown =
            if secret { String::new() } else { format!(", beginning with {}", quoted(start, AROUND * 2)) };
        let hint = if meant.is_empty() { String::new() } else { format!("; {meant}") };
        return whole(format!("plain text, not JSON{shown}{hint}"));
    }
    let at = offset(text, error);
    let hint = second_call(&words, text, at)
        .or_else(|| spelling(text, at))
        .or(Some(meant).filter(|hint| !hint.is_empty()))
        .or_else(|| escape(&words));
    let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
    if secret || error.is_eof() {
        return whole(format!("not valid JSON: {words}{hint}"));
    }
    let before: String = text.get(..at).unwrap_or_default().chars().rev().take(AROUND).collect();
    let before: String = before.chars().rev().collect();
    let after: String = text.get(at..).unwrap_or_default().chars().take(AROUND).collect();
    whole(format!("not valid JSON: {words}, near {}", quoted(&(before + &after), AROUND * 2)) + &hint)
}

fn second_call(words: &str, text: &str, at: usize) -> Option<&'static str> {
    let after = text.get(at..)?;
    let before = text.get(..at)?;
    let begins = after.trim_start().starts_with('{') || before.ends_with('{');
    (words.starts_with("trailing characters") && begins).then_some("send one object in each call")
}

fn spelling(text: &str, at: usize) -> Option<&'static str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before = text.get(..at)?;
    // The parser stops at the first wrong character, or one character later.
    let start = before.trim_end_matches(is_word).len();
    let word: &str = text.get(start..)?.split(|c: char| !is_word(c)).next()?;
    let sign = text.get(at..)?.chars().next().into_iter().chain(before.chars().next_back());
    match word {
        "True" | "False" | "None" => return Some("JSON writes `true`, `false` and `null`, in lower case"),
        "undefined" | "nil" | "NULL" | "Null" => {
            return Some("JSON writes `null`; leave out what has no value");
        }
        "NaN" | "Infinity" | "nan" | "inf" => return Some("JSON has no such number: leave it out"),
        _ => {}
    }
    sign.into_iter().find_map(|sign| match sign {
        '\'' => Some("use double quotes around names and texts"),
        '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}' => Some("use straight double quotes"),
        '/' | '#' => Some("JSON has no comments"),
        c if is_word(c) && before.trim_end_matches(is_word).trim_end().ends_with(['{', ',']) => {
            Some("put names in double quotes")
        }
        _ => None,
    })
}

fn escape(words: &str) -> Option<&'static str> {
    if words.starts_with("control character") {
        Some("write a line break in a text as `\\n`, a tab as `\\t`")
    } else if words.starts_with("invalid escape") {
        Some("write a backslash in a text as `\\\\`")
    } else {
        None
    }
}

fn is_prose(text: &str) -> bool {
    let is_word = |word: &str| {
        text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    text.starts_with(char::is_alphabetic) && !["true", "false", "null"].into_iter().any(is_word)
}

fn quoted(text: &str, max: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("`{}`", cut(&plain, max).replace('`', "'"))
}

/// Returns the offset at which the parser stopped. `serde_json` counts lines from 1, and bytes in the line.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let line: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let mut at = (line + error.column()).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A container that is not closed, with its latest key or index.
enum OpenContainer {
    Object(Option<String>),
    Array(usize),
}

/// Returns the path of the scalar that ends at `end`, and the offset at which the scalar begins. The text must be JSON up to `end`.
fn place_before(text: &str, end: usize) -> (String, usize) {
    let bytes = text.as_bytes();
    let mut open: Vec<OpenContainer> = Vec::new();
    let (mut at, mut start) = (0, 0);
    while let Some(byte) = bytes.get(at).filter(|_| at < end) {
        start = at;
        at += 1;
        match byte {
            b'{' => open.push(OpenContainer::Object(None)),
            b'[' => open.push(OpenContainer::Array(0)),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(OpenContainer::Object(key)) => *key = None,
                Some(OpenContainer::Array(index)) => *index += 1,
                None => {}
            },
            b'"' => {
                while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                at += 1;
                if let Some(OpenContainer::Object(key @ None)) = open.last_mut() {
                    let read = text.get(start..at).and_then(|text| serde_json::from_str::<String>(text).ok());
                    *key = Some(read.unwrap_or_default());
                }
            }
            b'-' | b'0'..=b'9' => {
                let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                at += bytes.get(at..).unwrap_or_default().iter().take_while(|byte| digit(byte)).count();
            }
            _ => {}
        }
    }
    let mut path = String::new();
    for open in &open {
        match open {
            OpenContainer::Object(key) => push_segment(&mut path, key.as_deref().unwrap_or_default()),
            OpenContainer::Array(index) => push_index(&mut path, index),
        }
    }
    (path, start)
}
