//! Regular expressions: written in the syntax of ECMA-262 (JSON Schema 2020-12, core, 6.4), run by the `regex` crate in linear
//! time, and compiled at a bounded cost.

use super::error::{CompileResult, SchemaError};
use super::node::Pattern;
use regex::{Regex, RegexBuilder};
use std::{collections::HashMap, iter::Peekable, str::Chars};

/// Maximum number of different patterns in one schema, and their maximum total length in bytes.
const MAX_PATTERNS: usize = 500;
const MAX_SOURCE: usize = 1 << 16;
/// Size limits of compiled patterns in bytes, for most patterns and for large ones.
const SMALL: usize = 1 << 16;
const LARGE: usize = 10 << 20;
/// Maximum size of the cache that the automaton of a pattern uses during a search, in bytes.
const LAZY: usize = 1 << 20;
/// Maximum number of large patterns in one schema.
const MAX_LARGE: usize = 4;

/// The compiled patterns of a schema. `source` is their total length in bytes, and `large` the number of large ones.
#[derive(Default)]
pub(super) struct Patterns {
    compiled: HashMap<String, Regex>,
    source: usize,
    large: usize,
}

impl Patterns {
    pub(super) fn compile(&mut self, source: &str, keyword: &str, pointer: &str) -> CompileResult<Pattern> {
        let error = |reason: String| SchemaError::new(keyword, pointer, reason);
        let source = source.to_owned();
        if let Some(regex) = self.compiled.get(&source) {
            return Ok(Pattern { regex: regex.clone(), source });
        }
        self.source += source.len();
        if self.compiled.len() >= MAX_PATTERNS || self.source > MAX_SOURCE {
            return Err(error("is one of too many patterns, or too long ones".into()));
        }
        let translated = translated(&source).map_err(error)?;
        let build = |size| RegexBuilder::new(&translated).size_limit(size).dfa_size_limit(LAZY).build();
        let regex = match build(SMALL) {
            Err(regex::Error::CompiledTooBig(_)) if self.large < MAX_LARGE => {
                self.large += 1;
                build(LARGE)
            }
            result => result,
        };
        let regex = regex.map_err(|e| SchemaError::regex(pointer, keyword, e))?;
        self.compiled.insert(source.clone(), regex.clone());
        Ok(Pattern { source, regex })
    }
}

/// `\d`, `\w` and `\b` of ECMA-262 mean ASCII. Sections 12.2 and 12.3 define white space and line ends.
const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r"\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";
const NO_LINE_END: &str = r"[^\n\r\x{2028}\x{2029}]";

/// Translates a regular expression of ECMA-262 to the syntax of the `regex` crate, or returns the reason why the expression has no
/// equivalent.
fn translated(source: &str) -> Result<String, String> {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.peek() {
                Some('b') => out.push_str(r"(?-u:\b)"),
                Some('B') => out.push_str(r"(?-u:\B)"),
                _ => {
                    escape(&mut chars)?.write(&mut out);
                    continue;
                }
            },
            '[' => {
                class(&mut chars, &mut out)?;
                continue;
            }
            '.' => {
                out.push_str(NO_LINE_END);
                continue;
            }
            '(' => {
                check_group(chars.clone())?;
                out.push(c);
                continue;
            }
            '{' if chars.peek() == Some(&',') => return Err("has a repetition without a least number".into()),
            '{' if has_space_in_repetition(chars.clone()) => {
                return Err("has a repetition with white space".into());
            }
            c => {
                out.push(c);
                continue;
            }
        }
        chars.next();
    }
    Ok(out)
}

/// Returns whether a repetition, after its opening brace, has white space. The `regex` crate skips it, and in ECMA-262 it makes the braces
/// literal.
fn has_space_in_repetition(rest: Peekable<Chars<'_>>) -> bool {
    let is_part = |c: &char| c.is_ascii_digit() || *c == ',' || c.is_whitespace();
    rest.take_while(is_part).any(char::is_whitespace)
}

/// Refuses flags that would change the meaning of the translated expression; `i` is allowed.
fn check_group(mut rest: Peekable<Chars<'_>>) -> Result<(), String> {
    if rest.next_if_eq(&'?').is_none() {
        return Ok(());
    }
    let flags: String = rest.take_while(|c| c.is_ascii_alphabetic() || *c == '-').collect();
    if flags.is_empty() || flags == "P" || flags.chars().all(|c| matches!(c, 'i' | '-')) {
        Ok(())
    } else {
        Err(format!("has flags that are not modelled: {flags}"))
    }
}

/// One character of a regular expression, or a set of characters in the syntax of the `regex` crate.
enum Atom {
    Char(char),
    Set(String),
}

impl Atom {
    fn write(&self, out: &mut String) {
        match self {
            Atom::Set(set) => out.push_str(set),
            Atom::Char(c) => {
                if r"\.+*?()|[]{}^$#&-~".contains(*c) {
                    out.push('\\');
                }
                out.push(*c);
            }
        }
    }
}

/// Parses an escape, after its backslash.
fn escape(chars: &mut Peekable<Chars<'_>>) -> Result<Atom, String> {
    let Some(c) = chars.next() else { return Err("ends in a backslash".into()) };
    Ok(match c {
        'd' => Atom::Set(format!("[{DIGIT}]")),
        'D' => Atom::Set(format!("[^{DIGIT}]")),
        'w' => Atom::Set(format!("[{WORD}]")),
        'W' => Atom::Set(format!("[^{WORD}]")),
        's' => Atom::Set(format!("[{SPACE}]")),
        'S' => Atom::Set(format!("[^{SPACE}]")),
        'p' | 'P' => {
            let mut set = format!("\\{c}");
            for next in chars.by_ref() {
                set.push(next);
                if next == '}' || set.len() == 3 && next != '{' {
                    break;
                }
            }
            Atom::Set(set)
        }
        't' => Atom::Char('\t'),
        'n' => Atom::Char('\n'),
        'v' => Atom::Char('\x0B'),
        'f' => Atom::Char('\x0C'),
        'r' => Atom::Char('\r'),
        '0' if !chars.peek().is_some_and(char::is_ascii_digit) => Atom::Char('\0'),
        'c' => match chars.next() {
            Some(letter) if letter.is_ascii_alphabetic() => Atom::Char(char::from(letter as u8 & 31)),
            _ => return Err("has `\\c` without a letter".into()),
        },
        'x' => Atom::Char(code(hex(chars, 2))?),
        'u' => Atom::Char(unicode(chars)?),
        c if c.is_ascii_alphanumeric() => {
            return Err(format!("has `\\{c}`, which ECMA-262 does not know or which needs back references"));
        }
        c => Atom::Char(c),
    })
}

/// Parses `\uXXXX`, a pair of such escapes, or `\u{…}`, after the `u`.
fn unicode(chars: &mut Peekable<Chars<'_>>) -> Result<char, String> {
    if chars.next_if_eq(&'{').is_some() {
        let digits: String = std::iter::from_fn(|| chars.next_if(char::is_ascii_hexdigit)).collect();
        let number = u32::from_str_radix(&digits, 16).ok();
        return code(number.filter(|_| chars.next_if_eq(&'}').is_some()));
    }
    let first = hex(chars, 4);
    let mut ahead = chars.clone();
    if let Some(high @ 0xD800..=0xDBFF) = first
        && ahead.next() == Some('\\')
        && ahead.next() == Some('u')
        && let Some(low @ 0xDC00..=0xDFFF) = hex(&mut ahead, 4)
    {
        *chars = ahead;
        return code(Some(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)));
    }
    code(first)
}

fn hex(chars: &mut Peekable<Chars<'_>>, digits: usize) -> Option<u32> {
    (0..digits).try_fold(0, |n, _| Some(n * 16 + chars.next_if(char::is_ascii_hexdigit)?.to_digit(16)?))
}

fn code(number: Option<u32>) -> Result<char, String> {
    number.and_then(char::from_u32).ok_or_else(|| "names a character that there is not".to_owned())
}

/// Parses a character class, after its opening bracket. A bracket or `&&` in a class is literal, so it is escaped for the `regex` crate.
fn class(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), String> {
    let negated = chars.next_if_eq(&'^').is_some();
    if chars.next_if_eq(&']').is_some() {
        // `[]` matches nothing, and `[^]` matches any character.
        out.push_str(if negated { r"[\s\S]" } else { r"[^\s\S]" });
        return Ok(());
    }
    out.push_str(if negated { "[^" } else { "[" });
    loop {
        if chars.next_if_eq(&']').is_some() {
            out.push(']');
            return Ok(());
        }
        let low = member(chars)?;
        low.write(out);
        let mut ahead = chars.clone();
        if let Atom::Char(_) = low
            && ahead.next() == Some('-')
            && ahead.peek().is_some_and(|next| *next != ']')
            && let high @ Atom::Char(_) = member(&mut ahead)?
        {
            *chars = ahead;
            out.push('-');
            high.write(out);
        }
    }
}

fn member(chars: &mut Peekable<Chars<'_>>) -> Result<Atom, String> {
    match chars.next() {
        None => Err("has a bracket that is not closed".into()),
        Some('\\') if chars.next_if_eq(&'b').is_some() => Ok(Atom::Char('\x08')),
        Some('\\') => escape(chars),
        Some(c) => Ok(Atom::Char(c)),
    }
}

#[cfg(test)]
mod tests;
