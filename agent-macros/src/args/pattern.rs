//! Checks `pattern = "…"` at compile time, and reports only patterns that the library certainly refuses. A pattern has the syntax of
//! ECMA-262. The library translates the pattern when the tool is registered.

use crate::diag::Errors;
use regex_syntax::ast::{ErrorKind, parse::Parser};
use syn::LitStr;

/// Returns whether the text can be a pattern, and reports an error if not.
pub(super) fn is_pattern(text: &LitStr, errors: &mut Errors) -> bool {
    let Err(error) = Parser::new().parse(&without_characters(&text.value())) else { return true };
    let unsupported = match error.kind() {
        ErrorKind::UnsupportedLookAround => Some("look-around (`(?=…)`, `(?!…)`, `(?<=…)`, `(?<!…)`)"),
        ErrorKind::UnsupportedBackreference => Some("references to groups (`\\1`)"),
        _ => None,
    };
    match unsupported {
        Some(what) => errors.at(
            text,
            format!(
                "this regular expression uses {what}, which cannot be matched in linear time and is not supported: write \
                 it without, or check the value with `validate = function`"
            ),
        ),
        None => errors.at(text, format!("this is not a regular expression: {}", error.kind())),
    }
    false
}

/// Replaces classes and escapes by a letter, because ECMA-262 and `regex_syntax` read them differently. Both read the rest alike.
fn without_characters(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '[' => loop {
                match chars.next() {
                    Some('\\') => {
                        chars.next();
                    }
                    Some(']') => break out.push('a'),
                    Some(_) => {}
                    None => break out.push('['),
                }
            },
            '\\' => match chars.next() {
                Some(digit @ '1'..='9') => out.extend(['\\', digit]),
                Some('p' | 'P' | 'u') if chars.peek() == Some(&'{') => {
                    chars.find(|c| *c == '}');
                    out.push('a');
                }
                Some(_) => out.push('a'),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}
