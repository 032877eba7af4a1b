//! Numbers, strings, closed sets.

use super::written::{Written, between, plain, said_list};
use super::{ChangeKind, Renderer};
use crate::args::{Bound, IntSpec, NumSpec, StrSpec};
use crate::schema::abilities::{Formats, Members, Patterns};
use serde_json::{Value, json};

/// The largest integer that every JSON reader represents exactly.
const SAFE: u128 = 1 << 53;

impl Renderer<'_> {
    pub(super) fn integer(&mut self, spec: &IntSpec) -> Written {
        let mut out = Written::typed("integer");
        let safe = |bound: Option<i128>| {
            bound.filter(|b| b.unsigned_abs() <= SAFE).and_then(|b| i64::try_from(b).ok()).map(Value::from)
        };
        let ends = [("minimum", spec.min), ("maximum", spec.max)].map(|(keyword, bound)| {
            // The limits of a wide type do not guide a model, so they are not described.
            if !self.can.has(keyword) && bound.is_some_and(is_limit_of_a_type) {
                if safe(bound).is_some() {
                    self.change(keyword, ChangeKind::Dropped);
                }
                return (keyword, None);
            }
            (keyword, safe(bound))
        });
        self.ranged(&mut out, ends, "");
        if let Some(multiple) = safe(spec.multiple) {
            self.keyword(&mut out, "multipleOf", multiple.clone(), || format!("A multiple of {multiple}."));
        }
        out
    }

    pub(super) fn number(&mut self, spec: &NumSpec) -> Written {
        let mut out = Written::typed("number");
        let exact = |bound: Bound| {
            let signed = bound.whole.and_then(|v| i64::try_from(v).ok()).map(|v| json!(v));
            let whole = signed.or_else(|| bound.whole.and_then(|v| u64::try_from(v).ok()).map(|v| json!(v)));
            whole.unwrap_or_else(|| json!(bound.float))
        };
        let ends = [("minimum", spec.min.map(exact)), ("maximum", spec.max.map(exact))];
        self.ranged(&mut out, ends, "");
        for (keyword, words, bound) in
            [("exclusiveMinimum", "More than", spec.above), ("exclusiveMaximum", "Less than", spec.below)]
        {
            if let Some(bound) = bound.map(exact) {
                self.keyword(&mut out, keyword, bound.clone(), || format!("{words} {}.", plain(&bound)));
            }
        }
        if let Some(multiple) = spec.multiple {
            self.keyword(&mut out, "multipleOf", json!(multiple), || format!("A multiple of {multiple}."));
        }
        out
    }

    /// Writes both ends of a range: as keywords, or in one sentence.
    pub(super) fn ranged(&mut self, out: &mut Written, ends: [(&str, Option<Value>); 2], unit: &str) {
        let [mut low, mut high] = [None, None];
        for (place, (keyword, bound)) in [&mut low, &mut high].into_iter().zip(ends) {
            let Some(bound) = bound else { continue };
            let allowed = keyword != "minItems" || bound.as_u64().is_some_and(|n| n <= self.can.min_items);
            if self.can.has(keyword) && allowed {
                out.put(keyword, bound);
            } else {
                self.change(keyword, ChangeKind::Described);
                *place = Some(plain(&bound));
            }
        }
        if let Some(sentence) = between(low, high, unit) {
            out.say(sentence);
        }
    }

    pub(super) fn string(&mut self, spec: &StrSpec) -> Written {
        let mut out = Written::typed("string");
        let ends = [("minLength", spec.min.map(Value::from)), ("maxLength", spec.max.map(Value::from))];
        self.ranged(&mut out, ends, "character");
        if let Some(pattern) = &spec.pattern {
            if self.takes_pattern(&pattern.source) {
                out.put("pattern", json!(pattern.source));
            } else {
                self.change("pattern", ChangeKind::Described);
                out.say(format!("Matches the regular expression `{}`.", pattern.source));
            }
        }
        if let Some(format) = &spec.format {
            let known = match self.can.formats {
                Formats::All => true,
                Formats::Only(known) => known.contains(&format.as_str()),
            };
            if known {
                out.put("format", json!(format));
            } else {
                self.change("format", ChangeKind::Described);
                out.say(format!("Format: {format}."));
            }
        }
        out
    }

    fn takes_pattern(&self, source: &str) -> bool {
        match self.can.patterns {
            Patterns::All => true,
            Patterns::NoLookaround => {
                !["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| source.contains(look))
            }
            Patterns::Grammar => is_plain_grammar(source),
            Patterns::None => false,
        }
    }

    /// Writes a closed set with values other than strings.
    pub(super) fn members(&mut self, members: &[Value]) -> Written {
        let allowed = |member: &Value| match self.can.members {
            Members::All => true,
            Members::Scalars => !member.is_object() && !member.is_array(),
            Members::StringsAndNumbers => member.is_string() || member.is_number(),
            Members::Strings => member.is_string(),
        };
        if self.can.members == Members::All {
            let mut out = Written::default();
            out.put("enum", members.into());
            return out;
        }
        let whole = members.iter().all(allowed);
        if members.iter().any(|m| m.is_object() || m.is_array()) {
            self.impossible("enum", "objects or arrays as members of a closed set");
            return Written::typed("string");
        }
        let mut types: Vec<(&str, Vec<Value>)> = Vec::new();
        for member in members {
            let name = type_of(member, members);
            match types.iter_mut().find(|(known, _)| *known == name) {
                Some((_, of_type)) => of_type.push(member.clone()),
                None => types.push((name, vec![member.clone()])),
            }
        }
        let one = |(name, of_type): (&str, Vec<Value>)| {
            let mut out = Written::typed(name);
            if of_type.iter().all(allowed) {
                out.put("enum", of_type.into());
            }
            out
        };
        let mut out = if types.len() == 1 {
            types.into_iter().map(one).next().unwrap_or_default()
        } else {
            let mut out = Written::default();
            out.put("anyOf", types.into_iter().map(|t| Value::Object(one(t).schema)).collect());
            out
        };
        if !whole {
            self.change("enum", ChangeKind::Described);
            out.say(format!("One of: {}.", said_list(members)));
        }
        out
    }
}

fn is_limit_of_a_type(bound: i128) -> bool {
    [i32::MIN.into(), i32::MAX.into(), u32::MAX.into(), i64::MIN.into(), i64::MAX.into(), u64::MAX.into()]
        .contains(&bound)
}

/// Returns `integer` only if all numbers of the set are integers.
fn type_of(member: &Value, members: &[Value]) -> &'static str {
    match member {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if members.iter().filter(|m| m.is_number()).all(|m| !m.is_f64()) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a pattern matches the whole text and uses only characters, classes, groups, alternatives and repetitions: no
/// assertions, no class escapes.
fn is_plain_grammar(source: &str) -> bool {
    let Some(inner) = source.strip_prefix('^').and_then(|s| s.strip_suffix('$')) else { return false };
    if inner.ends_with('\\') || inner.contains("(?") {
        return false;
    }
    let mut chars = inner.chars().peekable();
    let (mut in_class, mut first) = (false, false);
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) if escaped.is_ascii_punctuation() => {}
                _ => return false,
            },
            '[' => (in_class, first) = (true, true),
            ']' => in_class = false,
            '^' if in_class && first => first = false,
            '^' | '$' if !in_class => return false,
            _ => first = false,
        }
    }
    true
}
