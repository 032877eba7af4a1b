//! Corrected calls as JSON text, in the form in which `serde_json` writes values.

use crate::args::document::{Doc, Shape};
use crate::args::plan::Prop;
use crate::args::rounding;
use crate::args::text::{is_plain, push_json};
use serde_json::Value;
use std::borrow::Cow;

pub(super) struct NewEntry<'k> {
    pub(super) key: &'k str,
    /// The key as JSON with its colon. `None` if the key may be an alias.
    written: Option<&'k str>,
    pub(super) value: Cow<'k, str>,
}

impl<'k> NewEntry<'k> {
    pub(super) fn new(key: &'k str, prop: Option<&'k Prop>, value: Cow<'k, str>) -> NewEntry<'k> {
        let written = prop.filter(|prop| prop.aliases.is_empty()).map(|prop| prop.token.text());
        NewEntry { key, written, value }
    }
}

pub(super) fn put<'k>(entries: &mut Vec<NewEntry<'k>>, key: &'k str, value: Cow<'k, str>) {
    match entries.iter_mut().find(|known| known.key == key) {
        Some(known) => known.value = value,
        None => entries.push(NewEntry::new(key, None, value)),
    }
}

pub(super) fn object_text(entries: &[NewEntry<'_>]) -> String {
    let mut out = String::with_capacity(128);
    out.push('{');
    for NewEntry { key, written, value } in entries {
        if out.len() > 1 {
            out.push(',');
        }
        if let Some(written) = written {
            out.push_str(written);
        } else {
            push_json(&mut out, key);
            out.push(':');
        }
        out.push_str(value);
    }
    out.push('}');
    out
}

/// Returns a value as `serde_json` writes it.
pub(super) fn canonical<'d>(doc: &'d Doc<'_>) -> Cow<'d, str> {
    match &doc.shape {
        Shape::Null | Shape::Bool(_) | Shape::Text(Cow::Borrowed(_)) => doc.raw.into(),
        // An integer with fewer digits than `i64::MAX` is written as it was sent.
        Shape::Number if doc.raw.len() < 19 && doc.is_integer_token() => doc.raw.into(),
        Shape::Number if is_shortest(doc.raw) => doc.raw.into(),
        Shape::Number => doc.to_value().to_string().into(),
        _ => {
            let mut out = String::with_capacity(doc.raw.len());
            push_canonical(&mut out, doc);
            out.into()
        }
    }
}

/// Returns `true` only if `serde_json` writes the number with the same text, as it does for `0.25`.
fn is_shortest(decimal: &str) -> bool {
    let digits = decimal.strip_prefix('-').unwrap_or(decimal);
    rounding::is_safe(decimal) && !digits.starts_with("0.0") && !digits.ends_with('0') && digits.contains('.')
}

pub(super) fn is_canonical(text: &str, doc: &Doc<'_>) -> bool {
    after_canonical(text, doc) == Some("")
}

/// Returns the text after the value, if the text begins with the value as `serde_json` writes it.
fn after_canonical<'t>(text: &'t str, doc: &Doc<'_>) -> Option<&'t str> {
    match &doc.shape {
        Shape::Array(items) => {
            let mut rest = text.strip_prefix('[')?;
            for (index, item) in items.iter().enumerate() {
                rest = if index > 0 { rest.strip_prefix(',')? } else { rest };
                rest = after_canonical(rest, item)?;
            }
            rest.strip_prefix(']')
        }
        Shape::Object(entries) => {
            let mut rest = text.strip_prefix('{')?;
            for (index, (key, item)) in entries.iter().enumerate() {
                rest = if index > 0 { rest.strip_prefix(',')? } else { rest };
                rest = after_text(rest, key)?.strip_prefix(':')?;
                rest = after_canonical(rest, item)?;
            }
            rest.strip_prefix('}')
        }
        _ => text.strip_prefix(canonical(doc).as_ref()),
    }
}

fn after_text<'t>(text: &'t str, own: &str) -> Option<&'t str> {
    if is_plain(own) {
        return text.strip_prefix('"')?.strip_prefix(own)?.strip_prefix('"');
    }
    text.strip_prefix(Value::from(own).to_string().as_str())
}

fn push_canonical(out: &mut String, doc: &Doc<'_>) {
    match &doc.shape {
        Shape::Text(Cow::Owned(text)) => push_json(out, text),
        Shape::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                push_canonical(out, item);
            }
            out.push(']');
        }
        Shape::Object(entries) => {
            out.push('{');
            for (index, (key, item)) in entries.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                push_json(out, key);
                out.push(':');
                push_canonical(out, item);
            }
            out.push('}');
        }
        _ => out.push_str(&canonical(doc)),
    }
}
