//! Records of coercions while arguments are read: two allocations however many there are, and converted to a readable form when
//! they are accessed.

use super::{Coercion, CoercionRule, HIDDEN, recorded};
use crate::args::scalar::Int;
use crate::args::text::{MAX_RECORD, cut, push_index, push_segment};
use serde_json::Value;
use std::{fmt, ops::Deref, sync::OnceLock};

/// Every change of the sent arguments, in order; usually empty.
///
/// It is a list of [`Coercion`]s that is built when it is first accessed, so records that are never read cost nothing.
#[derive(Clone, Default)]
pub(crate) struct Coercions(Option<Box<Records>>);

#[derive(Clone, Default)]
struct Records {
    /// The changes by structural repairs, before anything was read.
    before: Vec<Coercion>,
    log: Log,
    told: OnceLock<Vec<Coercion>>,
}

impl Coercions {
    /// Adds a record whose path is written by `write_path`.
    #[inline]
    pub(crate) fn add(
        &mut self,
        write_path: impl FnOnce(&mut PathWriter<'_>),
        secret: bool,
        from: CoercedValue<'_>,
        to: CoercedValue<'_>,
        rule: CoercionRule,
    ) {
        let log = &mut self.0.get_or_insert_default().log;
        if log.count == 0 {
            log.bytes = Vec::with_capacity(256);
        }
        log.count += 1;
        write_path(&mut PathWriter(log));
        if secret {
            log.bytes.extend_from_slice(&[tag::HIDDEN, tag::HIDDEN, rule as u8]);
        } else {
            log.value(from);
            log.value(to);
            log.bytes.push(rule as u8);
        }
    }

    /// Returns the changes by structural repairs, without the records of what was read after them.
    pub(crate) fn only_before(self) -> Coercions {
        self.0.map_or_else(Coercions::default, |records| records.before.into())
    }
}

impl Deref for Coercions {
    type Target = [Coercion];

    fn deref(&self) -> &[Coercion] {
        let Some(records) = &self.0 else { return &[] };
        let Records { before, log, told } = &**records;
        if log.count == 0 {
            return before;
        }
        told.get_or_init(|| before.iter().cloned().chain(log.coercions()).collect())
    }
}

impl From<Vec<Coercion>> for Coercions {
    fn from(before: Vec<Coercion>) -> Coercions {
        if before.is_empty() {
            return Coercions(None);
        }
        Coercions(Some(Box::new(Records { before, ..Records::default() })))
    }
}

impl From<Coercions> for Vec<Coercion> {
    fn from(coercions: Coercions) -> Vec<Coercion> {
        let Some(records) = coercions.0 else { return Vec::new() };
        let Records { mut before, log, told } = *records;
        told.into_inner().unwrap_or_else(|| {
            before.extend(log.coercions());
            before
        })
    }
}

impl PartialEq for Coercions {
    fn eq(&self, other: &Coercions) -> bool {
        self[..] == other[..]
    }
}

impl fmt::Debug for Coercions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

/// The records of one parse as consecutive bytes, so that only what is accessed is built. A record consists of the segments of
/// its path (innermost first), the sent value, the accepted value, and the rule.
#[derive(Clone, Default)]
struct Log {
    bytes: Vec<u8>,
    count: usize,
}

/// The kinds of parts of a record.
mod tag {
    pub(super) const KEY: u8 = 1;
    pub(super) const INDEX: u8 = 2;
    pub(super) const NULL: u8 = 3;
    pub(super) const HIDDEN: u8 = 4;
    pub(super) const FALSE: u8 = 5;
    pub(super) const TRUE: u8 = 6;
    pub(super) const SIGNED: u8 = 7;
    pub(super) const UNSIGNED: u8 = 8;
    pub(super) const FLOAT: u8 = 9;
    pub(super) const TEXT: u8 = 10;
    pub(super) const JSON: u8 = 11;
}

/// Only the start of a longer key is kept: it would be repeated for each value below it.
const MAX_KEY: usize = 1 << 12;

/// A value to be recorded.
pub(crate) enum CoercedValue<'a> {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(&'a str),
    Value(Box<Value>),
}

impl From<Int> for CoercedValue<'_> {
    #[inline]
    fn from(int: Int) -> Self {
        match int {
            Int::Signed(v) => CoercedValue::Signed(v),
            Int::Unsigned(v) => CoercedValue::Unsigned(v),
            wide => CoercedValue::Value(Box::new(wide.to_value())),
        }
    }
}

/// Accepts the segments of a path, innermost first.
pub(crate) struct PathWriter<'l>(&'l mut Log);

impl PathWriter<'_> {
    #[inline]
    pub(crate) fn key(&mut self, key: &str) {
        let key = key.as_bytes();
        self.0.sized(tag::KEY, if key.len() > MAX_KEY { &key[..MAX_KEY] } else { key });
    }

    #[inline]
    pub(crate) fn index(&mut self, index: usize) {
        self.0.number(tag::INDEX, index as u64);
    }
}

impl Log {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "what is recorded is known where it is called")]
    fn value(&mut self, value: CoercedValue<'_>) {
        match value {
            CoercedValue::Null => self.bytes.push(tag::NULL),
            CoercedValue::Bool(b) => self.bytes.push(if b { tag::TRUE } else { tag::FALSE }),
            CoercedValue::Signed(v) => self.number(tag::SIGNED, v.cast_unsigned()),
            CoercedValue::Unsigned(v) => self.number(tag::UNSIGNED, v),
            CoercedValue::Float(f) => self.number(tag::FLOAT, f.to_bits()),
            CoercedValue::Text(text) if text.len() <= MAX_RECORD => self.sized(tag::TEXT, text.as_bytes()),
            CoercedValue::Text(text) => self.sized(tag::TEXT, cut(text, MAX_RECORD).as_bytes()),
            CoercedValue::Value(value) => self.sized(tag::JSON, recorded(*value).to_string().as_bytes()),
        }
    }

    #[inline]
    fn number(&mut self, tag: u8, number: u64) {
        let mut part = [tag; 9];
        part[1..].copy_from_slice(&number.to_le_bytes());
        self.bytes.extend_from_slice(&part);
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "keys, texts and values are cut far below that")]
    fn sized(&mut self, tag: u8, bytes: &[u8]) {
        let mut head = [tag; 5];
        head[1..].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&head);
        self.bytes.extend_from_slice(bytes);
    }

    fn coercions(&self) -> Vec<Coercion> {
        let mut parts = Parts(&self.bytes);
        (0..self.count).map_while(|_| parts.coercion()).collect()
    }
}

/// The bytes that are left to be read.
struct Parts<'l>(&'l [u8]);

impl<'l> Parts<'l> {
    fn coercion(&mut self) -> Option<Coercion> {
        let mut segments = Vec::new();
        let from = loop {
            match self.next()? {
                segment @ (tag::KEY | tag::INDEX, _) => segments.push(segment),
                value => break value,
            }
        };
        let mut path = String::new();
        for (tag, segment) in segments.into_iter().rev() {
            match segment.try_into() {
                Ok(index) if tag == tag::INDEX => push_index(&mut path, u64::from_le_bytes(index)),
                _ => push_segment(&mut path, &String::from_utf8_lossy(segment)),
            }
        }
        let (from, to) = (value(from), value(self.next()?));
        let (rule, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(Coercion { path, from, to, rule: *CoercionRule::ALL.get(usize::from(*rule))? })
    }

    fn next(&mut self) -> Option<(u8, &'l [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (length, rest) = match *tag {
            tag::INDEX | tag::SIGNED | tag::UNSIGNED | tag::FLOAT => (8, rest),
            tag::KEY | tag::TEXT | tag::JSON => {
                let (length, rest) = rest.split_first_chunk()?;
                (usize::try_from(u32::from_le_bytes(*length)).ok()?, rest)
            }
            _ => (0, rest),
        };
        let (bytes, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, bytes))
    }
}

fn value((tag, bytes): (u8, &[u8])) -> Value {
    let number = || bytes.try_into().map_or(0, u64::from_le_bytes);
    match tag {
        tag::HIDDEN => HIDDEN.into(),
        tag::FALSE => false.into(),
        tag::TRUE => true.into(),
        tag::SIGNED => number().cast_signed().into(),
        tag::UNSIGNED => number().into(),
        tag::FLOAT => f64::from_bits(number()).into(),
        tag::TEXT => String::from_utf8_lossy(bytes).into(),
        tag::JSON => serde_json::from_slice(bytes).unwrap_or_default(),
        _ => Value::Null,
    }
}
