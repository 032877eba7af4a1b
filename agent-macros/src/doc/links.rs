//! Replaces links by their texts if only rustdoc can resolve them, because a model cannot follow such links.
//! Links to the web stay.

use super::{CodeBlock, Line};
use std::collections::HashMap;

/// The targets of link references by name.
pub(super) type References = HashMap<String, String>;

/// Returns the definitions in the whole docs, because a link and its definition may be in different parts.
pub(super) fn references(lines: &[Line]) -> References {
    let mut block = CodeBlock::default();
    let known = lines.iter().filter_map(|line| match line {
        Line::Known(line) => Some(line.as_str()),
        Line::Constant(_) => None,
    });
    known.filter(|line| !block.holds(line)).filter_map(definition).collect()
}

/// Replaces links to items by their texts, writes the targets of web links inline, and removes the definitions of link references.
pub(super) fn flattened(lines: &[String], references: &References) -> Vec<String> {
    // The text of a link may extend over several lines, so links are searched in whole paragraphs.
    let mut out: Vec<String> = Vec::new();
    let mut paragraph: Vec<String> = Vec::new();
    let close = |paragraph: &mut Vec<String>, out: &mut Vec<String>| {
        let text = inline(&paragraph.join("\n"), references);
        if !paragraph.is_empty() {
            out.extend(text.split('\n').map(str::to_owned));
        }
        paragraph.clear();
    };
    let mut block = CodeBlock::default();
    for line in lines {
        if block.holds(line) || line.trim().is_empty() {
            close(&mut paragraph, &mut out);
            out.push(line.clone());
        } else if definition(line).is_none() {
            paragraph.push(line.clone());
        }
    }
    close(&mut paragraph, &mut out);
    out
}

/// Parses the definition of a link reference: `[name]: target`, with or without a title in quotes. Returns `None` for `[^name]: text`,
/// which is a footnote, and for a line with other text behind the target.
fn definition(line: &str) -> Option<(String, String)> {
    let rest = line.trim_start().strip_prefix('[').filter(|rest| !rest.starts_with('^'))?;
    let (name, target) = rest.split_once("]:")?;
    let target = target.trim();
    let (target, title) = target.split_once(char::is_whitespace).unwrap_or((target, ""));
    let is_title = title.is_empty() || title.trim_start().starts_with(['"', '\'', '(']);
    (is_title && !target.is_empty() && !name.is_empty() && !name.contains(['[', ']']))
        .then(|| (name.to_lowercase(), target.to_owned()))
}

fn inline(text: &str, references: &References) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '`', '[']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match rest.as_bytes().first() {
            Some(b'\\') => rest.chars().take(2).map(char::len_utf8).sum(),
            Some(b'`') => code_span(rest),
            _ => match link(rest, references) {
                Some((text, taken)) => {
                    out.push_str(&text);
                    rest = &rest[taken..];
                    continue;
                }
                None => 1,
            },
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

/// Returns the length of the code span at the start of `text`, or of the backticks if they open no code span.
fn code_span(text: &str) -> usize {
    let open = text.len() - text.trim_start_matches('`').len();
    let mark = &text[..open];
    let mut from = open;
    while let Some(at) = text[from..].find(mark) {
        let start = from + at;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        if run == open {
            return start + run;
        }
        from = start + run;
    }
    open
}

/// Parses a link at the start of `text`. Returns the replacement of the link, and its length in `text`.
fn link(text: &str, references: &References) -> Option<(String, usize)> {
    let label_end = closing(text, '[', ']')?;
    let label = &text[1..label_end];
    let after = &text[label_end + 1..];
    let shown = || inline(label, references);
    if after.starts_with('(') {
        let end = closing(after, '(', ')')?;
        let taken = label_end + 1 + end + 1;
        let text = if is_web(&after[1..end]) { text[..taken].to_owned() } else { shown() };
        return Some((text, taken));
    }
    let (name, taken) = match after.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, _)) => (if name.is_empty() { label } else { name }, label_end + 1 + name.len() + 2),
        None => (label, label_end + 1),
    };
    match references.get(&name.to_lowercase()) {
        Some(target) if is_web(target) => Some((format!("[{label}]({target})"), taken)),
        Some(_) => Some((shown(), taken)),
        None if taken > label_end + 1 => Some((shown(), taken)),
        None => is_item(label).then(|| (without_kind(label), taken)),
    }
}

/// Returns the position of the bracket that closes the bracket at the start. Code spans and escaped characters are skipped.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(c) = text[at..].chars().next() {
        at += match c {
            '`' => code_span(&text[at..]),
            '\\' => text[at..].chars().take(2).map(char::len_utf8).sum(),
            c => {
                if c == open {
                    depth += 1;
                } else if c == close {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                c.len_utf8()
            }
        };
    }
    None
}

fn is_web(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// Returns whether rustdoc would resolve the label to an item: `` [`Item`] ``, `[a::b]`, `[f()]`,
/// `[struct@Item]`, `[CamelCase]`.
fn is_item(label: &str) -> bool {
    let is_code = label.len() > 2 && label.starts_with('`') && code_span(label) == label.len();
    let path = without_kind(label);
    let path = path.trim_end_matches("()").trim_end_matches('!');
    let is_path = !path.is_empty() && path.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':'));
    let is_camel = path.starts_with(char::is_uppercase) && path.contains(char::is_lowercase);
    is_code || (is_path && (path.len() < label.len() || path.contains("::") || is_camel))
}

fn without_kind(label: &str) -> String {
    let (tick, inner) = match label.strip_prefix('`') {
        Some(inner) => ("`", inner),
        None => ("", label),
    };
    match inner.split_once('@') {
        Some((kind, item)) if !kind.is_empty() && kind.chars().all(|c| c.is_ascii_lowercase()) => {
            format!("{tick}{item}")
        }
        _ => label.to_owned(),
    }
}
