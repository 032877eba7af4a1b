//! JSON text as a lossless tree: it keeps duplicate keys, the digits of numbers, and the position of each value.

use crate::args::exact::value_fits;
use crate::args::plan::{Graph, NodeId, NodeKind, before_special, leading_digits, word_at};
use crate::args::rounding;
use crate::args::text::{MAX_VALUE, key_list, push_cut, push_quoted, push_segment};
use crate::name_hash::NameHash;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::{borrow::Cow, cell::Cell, collections::HashSet, fmt};

/// Maximum number of keys that are compared with each other; more keys are hashed.
const FEW_KEYS: usize = 16;

pub(crate) struct Document<'t> {
    pub(crate) root: Doc<'t>,
}

pub(crate) struct Doc<'t> {
    pub(crate) raw: &'t str,
    pub(crate) shape: Shape<'t>,
    /// A node of the compiled schema that is known to accept the value unchanged.
    fitting: Cell<Option<NodeId>>,
}

pub(crate) enum Shape<'t> {
    Null,
    Bool(bool),
    /// A number. Its digits are in [`Doc::raw`].
    Number,
    Text(Cow<'t, str>),
    Array(Vec<Doc<'t>>),
    Object(Vec<(Cow<'t, str>, Doc<'t>)>),
}

impl<'t> Document<'t> {
    /// Parses JSON text. [`DocumentReader`] reads ordinary JSON. For all other text, `serde_json` decides whether it is JSON, and provides
    /// the error.
    pub(crate) fn parse(text: &'t str) -> Result<Document<'t>, serde_json::Error> {
        if let Some(document) = DocumentReader::new(text, false).document() {
            return Ok(document);
        }
        let mut de = serde_json::Deserializer::from_str(text);
        CheckedJson::deserialize(&mut de)?;
        de.end()?;
        // `serde_json` has accepted the text, so this error does not occur.
        Document::read(text).ok_or_else(|| serde::de::Error::custom("cannot be read"))
    }

    /// Parses a text that the caller has found to be JSON, with at most 128 levels.
    pub(super) fn read(text: &'t str) -> Option<Document<'t>> {
        DocumentReader::new(text, true).document()
    }
}

impl Doc<'_> {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.shape {
            Shape::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.shape, Shape::Null)
    }

    /// Returns whether the value certainly fits a schema node without coercion. Remembers the last fitting node.
    pub(crate) fn fits_exactly(&self, graph: &Graph, node: NodeId) -> bool {
        if self.fitting.get() == Some(node) {
            return true;
        }
        let fits = value_fits(graph, node, self.raw);
        if fits {
            self.fitting.set(Some(node));
        }
        fits
    }

    /// Returns the alternative of the schema node `id` that describes this value, such as the enum variant that the value's tag names.
    /// Returns `None` for a null that the node accepts, and for a unit variant sent as a string.
    pub(crate) fn referred(&self, graph: &Graph, id: NodeId) -> Option<NodeId> {
        let node = graph.node(id);
        match (&node.kind, &self.shape) {
            (NodeKind::Nullable(_), Shape::Null) => None,
            (NodeKind::External(_), shape) if !matches!(shape, Shape::Object(_)) => None,
            _ => node.referred(|tag| self.entry(tag)?.text().map(Cow::Borrowed)),
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self.shape {
            Shape::Null => "null",
            Shape::Bool(_) => "boolean",
            Shape::Number => "number",
            Shape::Text(_) => "string",
            Shape::Array(_) => "array",
            Shape::Object(_) => "object",
        }
    }

    /// Returns whether the number token is an integer to `serde_json`, which reads `-0` as a float.
    pub(crate) fn is_integer_token(&self) -> bool {
        self.raw != "-0" && self.raw.bytes().all(|b| b == b'-' || b.is_ascii_digit())
    }

    pub(crate) fn is_negative(&self) -> bool {
        match &self.shape {
            Shape::Text(text) => text.trim_start().starts_with('-'),
            _ => self.raw.starts_with('-'),
        }
    }

    /// Returns whether the value is a string with a number too large for a float, such as `"1e999"`.
    pub(crate) fn is_endless(&self) -> bool {
        let Shape::Text(text) = &self.shape else { return false };
        text.bytes().any(|b| b.is_ascii_digit()) && text.trim().parse().is_ok_and(f64::is_infinite)
    }

    pub(crate) fn as_f64(&self) -> Option<f64> {
        self.raw.parse().ok()
    }

    /// Returns the number as a float, or `None` if the float has lost digits of the number. `0.1` counts as exact.
    pub(crate) fn exact_f64(&self) -> Option<f64> {
        let float = self.as_f64()?;
        (rounding::is_safe(self.raw) || !rounding::is_rounded(self.raw, float)).then_some(float)
    }

    /// Returns the value as `serde_json` reads it, with the last value of each duplicate key.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::from_str(self.raw).unwrap_or_default()
    }

    pub(crate) fn shown(&self) -> String {
        match &self.shape {
            Shape::Null => "null".into(),
            Shape::Bool(b) => format!("boolean {b}"),
            Shape::Number => {
                let mut out = "number ".to_owned();
                push_cut(&mut out, self.raw, MAX_VALUE + 2);
                out
            }
            Shape::Text(text) => {
                let mut out = String::with_capacity(text.len().min(MAX_VALUE) + 12);
                out.push_str("string ");
                push_quoted(&mut out, text, MAX_VALUE);
                out
            }
            Shape::Array(items) => format!("array of {}", items.len()),
            Shape::Object(entries) if entries.is_empty() => "object {}".into(),
            Shape::Object(entries) => {
                format!("object with {}", key_list(entries.iter().map(|(key, _)| key.as_ref())))
            }
        }
    }

    /// Returns whether this value contains a number whose digits a `serde_json::Value` cannot hold.
    pub(crate) fn loses_digits(&self) -> bool {
        match &self.shape {
            Shape::Array(items) => items.iter().any(Doc::loses_digits),
            Shape::Object(entries) => {
                let may_lose = |item: &Doc<'_>| !matches!(item.shape, Shape::Text(_) | Shape::Bool(_));
                entries.iter().any(|(_, item)| may_lose(item) && item.loses_digits())
            }
            Shape::Number if rounding::is_safe(self.raw) => false,
            Shape::Number => {
                let value = self.to_value();
                value.is_f64() && value.as_f64().is_some_and(|float| rounding::is_rounded(self.raw, float))
            }
            _ => false,
        }
    }

    /// Returns the path from this value to a key that occurs twice in an object, or `None` if no key does.
    pub(crate) fn repeated_key(&self) -> Option<String> {
        match &self.shape {
            Shape::Array(items) => items.iter().enumerate().find_map(|(i, item)| {
                let below = item.repeated_key()?;
                Some(format!("/{i}{below}"))
            }),
            Shape::Object(entries) => {
                let (mut marks, mut seen) = (0, HashSet::with_hasher(NameHash::default()));
                entries.iter().enumerate().find_map(|(at, (key, item))| {
                    let is_new = if entries.len() > FEW_KEYS {
                        seen.insert(key.as_ref())
                    } else {
                        let mark = mark_of(key);
                        let is_marked = marks & mark != 0;
                        marks |= mark;
                        !is_marked || entries.iter().take(at).all(|(before, _)| before != key)
                    };
                    if is_new && !matches!(item.shape, Shape::Array(_) | Shape::Object(_)) {
                        return None;
                    }
                    let below = if is_new { item.repeated_key()? } else { String::new() };
                    let mut out = String::new();
                    push_segment(&mut out, key);
                    Some(out + &below)
                })
            }
            _ => None,
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Doc<'_>> {
        match &self.shape {
            Shape::Object(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    pub(crate) fn has_null_entry(&self) -> bool {
        let is_null = |(_, value): &(_, Doc<'_>)| matches!(value.shape, Shape::Null);
        matches!(&self.shape, Shape::Object(entries) if entries.iter().any(is_null))
    }
}

/// Returns a hash of a key, as one of 64 bits. Different keys may share a bit.
fn mark_of(key: &str) -> u64 {
    let [first, last] =
        [key.as_bytes().first(), key.as_bytes().last()].map(|byte| usize::from(*byte.unwrap_or(&0)));
    1 << ((5 * first + 3 * last + key.len()) % 64)
}

/// Reads JSON without building a value. Checks number ranges, surrogates and depth as for a `Value`.
struct CheckedJson;

impl<'de> Deserialize<'de> for CheckedJson {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<CheckedJson, D::Error> {
        de.deserialize_any(CheckedJson)
    }
}

impl<'de> Visitor<'de> for CheckedJson {
    type Value = CheckedJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<CheckedJson, E> {
        Ok(CheckedJson)
    }

    fn visit_i64<E>(self, _: i64) -> Result<CheckedJson, E> {
        Ok(CheckedJson)
    }

    fn visit_u64<E>(self, _: u64) -> Result<CheckedJson, E> {
        Ok(CheckedJson)
    }

    fn visit_f64<E>(self, _: f64) -> Result<CheckedJson, E> {
        Ok(CheckedJson)
    }

    fn visit_str<E>(self, _: &str) -> Result<CheckedJson, E> {
        Ok(CheckedJson)
    }

    fn visit_unit<E>(self) -> Result<CheckedJson, E> {
        Ok(CheckedJson)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<CheckedJson, A::Error> {
        while access.next_element::<CheckedJson>()?.is_some() {}
        Ok(CheckedJson)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<CheckedJson, A::Error> {
        while access.next_entry::<CheckedJson, CheckedJson>()?.is_some() {}
        Ok(CheckedJson)
    }
}

/// Maximum depth that [`DocumentReader`] reads on its own. `serde_json` reads up to 127 levels.
const MAX_ORDINARY_DEPTH: u32 = 100;
/// Maximum length of a number that [`DocumentReader`] reads on its own. A longer number may be beyond the range of floats.
const MAX_ORDINARY_NUMBER: usize = 40;

/// A fast parser of ordinary JSON. It fails for unusual JSON, such as a number with an exponent, unless `is_json` is set.
struct DocumentReader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    depth: u32,
    /// Whether the caller has checked that the text is JSON, with at most 128 levels.
    is_json: bool,
}

impl<'t> DocumentReader<'t> {
    fn new(text: &'t str, is_json: bool) -> DocumentReader<'t> {
        let depth = if is_json { u32::MAX } else { MAX_ORDINARY_DEPTH };
        DocumentReader { text, bytes: text.as_bytes(), at: 0, depth, is_json }
    }

    fn document(mut self) -> Option<Document<'t>> {
        let root = self.value()?;
        self.skip_blank();
        (self.at == self.bytes.len()).then_some(Document { root })
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn skip_blank(&mut self) {
        if self.peek().is_some_and(|byte| byte > b' ') {
            return;
        }
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.skip_blank();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Option<Doc<'t>> {
        self.skip_blank();
        let start = self.at;
        let shape = match self.peek()? {
            b'"' => Shape::Text(self.string()?),
            b'{' => self.nested(DocumentReader::object)?,
            b'[' => self.nested(DocumentReader::array)?,
            b'n' => self.word("null", Shape::Null)?,
            b't' => self.word("true", Shape::Bool(true))?,
            b'f' => self.word("false", Shape::Bool(false))?,
            _ => self.number()?,
        };
        Some(Doc { raw: self.text.get(start..self.at)?, shape, fitting: Cell::new(None) })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Shape<'t>>) -> Option<Shape<'t>> {
        self.depth = self.depth.checked_sub(1)?;
        let shape = read(self);
        self.depth += 1;
        shape
    }

    fn word(&mut self, word: &str, shape: Shape<'t>) -> Option<Shape<'t>> {
        let is_here = self.bytes.get(self.at..)?.starts_with(word.as_bytes());
        self.at += word.len();
        is_here.then_some(shape)
    }

    fn digits(&self, mut at: usize) -> usize {
        loop {
            let length = leading_digits(word_at(self.bytes, at));
            at += length;
            if length < 8 {
                return at;
            }
        }
    }

    fn number(&mut self) -> Option<Shape<'t>> {
        let start = self.at;
        let first = start + usize::from(self.peek() == Some(b'-'));
        let whole = self.digits(first);
        let is_whole = whole == first + 1 || whole > first && self.bytes.get(first) != Some(&b'0');
        self.at = whole;
        let mut is_ordinary = is_whole;
        if self.peek() == Some(b'.') {
            self.at = self.digits(whole + 1);
            is_ordinary &= self.at > whole + 1;
        }
        if self.is_json {
            while matches!(self.peek(), Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) {
                self.at += 1;
            }
            return Some(Shape::Number);
        }
        // An exponent is not read here. The caller then finds an unexpected `e`, and returns `None`.
        (is_ordinary && self.at - start <= MAX_ORDINARY_NUMBER).then_some(Shape::Number)
    }

    fn string(&mut self) -> Option<Cow<'t, str>> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at;
        self.skip_plain(start + 1);
        if self.peek()? == b'"' {
            self.at += 1;
            return self.text.get(start + 1..self.at - 1).map(Cow::Borrowed);
        }
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.skip_plain(self.at + 2),
                _ => return None,
            }
        }
        self.at += 1;
        serde_json::from_str(self.text.get(start..self.at)?).ok().map(Cow::Owned)
    }

    /// Moves to the first quote, escape or control character from `from` on, or to the end of the text.
    fn skip_plain(&mut self, from: usize) {
        self.at = from;
        loop {
            let length = before_special(word_at(self.bytes, self.at));
            self.at += length;
            if length < 8 {
                return;
            }
        }
    }

    fn array(&mut self) -> Option<Shape<'t>> {
        self.at += 1;
        let mut items = Vec::new();
        if self.eat(b']') {
            return Some(Shape::Array(items));
        }
        loop {
            items.push(self.value()?);
            if !self.eat(b',') {
                return self.eat(b']').then_some(Shape::Array(items));
            }
        }
    }

    fn object(&mut self) -> Option<Shape<'t>> {
        self.at += 1;
        let mut entries = Vec::new();
        if self.eat(b'}') {
            return Some(Shape::Object(entries));
        }
        entries.reserve(8);
        loop {
            self.skip_blank();
            let key = self.string()?;
            if !self.eat(b':') {
                return None;
            }
            entries.push((key, self.value()?));
            if !self.eat(b',') {
                return self.eat(b'}').then_some(Shape::Object(entries));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_forgotten() {
        let text = r#" {"a" : [1.0, 12345678901234567890123, "x\u00e9\"", null], "a":{}, "":-0 } "#;
        let document = Document::parse(text).ok();
        let Some(Shape::Object(entries)) = document.as_ref().map(|d| &d.root.shape) else {
            panic!("an object")
        };
        assert_eq!(entries.iter().map(|(k, _)| k.as_ref()).collect::<Vec<_>>(), ["a", "a", ""]);
        let Shape::Array(items) = &entries[0].1.shape else { panic!("an array") };
        assert_eq!(
            items.iter().map(|i| i.raw).collect::<Vec<_>>(),
            ["1.0", "12345678901234567890123", r#""x\u00e9\"""#, "null"]
        );
        assert!(matches!(&items[2].shape, Shape::Text(t) if t == "xé\""));
        assert!(!entries[2].1.is_integer_token());
    }

    #[test]
    fn what_serde_json_refuses_is_refused() {
        for bad in ["", "{", "[1,]", "1e999", r#""\ud800""#, "{\"a\":1}}", "nul", "[01]"] {
            assert!(Document::parse(bad).is_err(), "{bad}");
        }
        assert!(Document::parse(&"[".repeat(100_000)).is_err());
    }
}
