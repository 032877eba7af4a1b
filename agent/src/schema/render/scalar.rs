//! Renders numbers, strings and `enum` values.

use super::written::{SchemaDraft, between, plain, quote_list};
use super::{ChangeKind, Renderer};
use crate::args::{IntSpec, NumSpec, NumberBound, StrSpec};
use crate::schema::abilities::{EnumMembers, FormatSupport, PatternSupport};
use serde_json::{Value, json};

/// The largest integer that every JSON reader represents exactly.
const SAFE: u128 = 1 << 53;

impl Renderer<'_> {
    pub(super) fn integer(&mut self, spec: &IntSpec) -> SchemaDraft {
        let mut out = SchemaDraft::typed("integer");
        let safe = |bound: Option<i128>| {
            bound.filter(|b| b.unsigned_abs() <= SAFE).and_then(|b| i64::try_from(b).ok()).map(Value::from)
        };
        let ends = [("minimum", spec.min), ("maximum", spec.max)].map(|(keyword, bound)| {
            let is_safe = safe(bound).is_some();
            // The limits of the integer types do not guide a model, so they are not described in words.
            let is_dropped = match bound {
                Some(bound) if is_type_limit(bound) => is_safe && !self.can.has(keyword),
                Some(_) => !is_safe,
                None => false,
            };
            if is_dropped {
                self.record_change(keyword, ChangeKind::Dropped);
            }
            (keyword, safe(bound).filter(|_| !is_dropped))
        });
        self.ranged(&mut out, ends, "");
        if let Some(multiple) = safe(spec.multiple) {
            self.keyword(&mut out, "multipleOf", multiple.clone(), || format!("A multiple of {multiple}."));
        } else if spec.multiple.is_some() {
            self.record_change("multipleOf", ChangeKind::Dropped);
        }
        out
    }

    pub(super) fn number(&mut self, spec: &NumSpec) -> SchemaDraft {
        let mut out = SchemaDraft::typed("number");
        let exact = |bound: NumberBound| {
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

    /// Writes both ends of a range. Ends that the dialect cannot express as keywords become one sentence.
    pub(super) fn ranged(&mut self, out: &mut SchemaDraft, ends: [(&str, Option<Value>); 2], unit: &str) {
        let [mut low, mut high] = [None, None];
        for (place, (keyword, bound)) in [&mut low, &mut high].into_iter().zip(ends) {
            let Some(bound) = bound else { continue };
            let allowed = keyword != "minItems" || bound.as_u64().is_some_and(|n| n <= self.can.min_items);
            if self.can.has(keyword) && allowed {
                out.put(keyword, bound);
            } else {
                self.record_change(keyword, ChangeKind::Described);
                *place = Some(plain(&bound));
            }
        }
        if let Some(sentence) = between(low, high, unit) {
            out.add_sentence(sentence);
        }
    }

    pub(super) fn string(&mut self, spec: &StrSpec) -> SchemaDraft {
        // This statement lists all fields without `..`, so that a new field of `StrSpec` must be handled here.
        let StrSpec { min, max, pattern, format, format_rule: _, is_plain: _ } = spec;
        let mut out = SchemaDraft::typed("string");
        let ends = [("minLength", min.map(Value::from)), ("maxLength", max.map(Value::from))];
        self.ranged(&mut out, ends, "character");
        if let Some(pattern) = pattern {
            if self.can_express_pattern(&pattern.source) {
                out.put("pattern", json!(pattern.source));
            } else {
                self.record_change("pattern", ChangeKind::Described);
                out.add_sentence(format!("Matches the regular expression `{}`.", pattern.source));
            }
        }
        if let Some(format) = format {
            let known = match self.can.formats {
                FormatSupport::All => true,
                FormatSupport::Only(known) => known.contains(&format.as_str()),
            };
            if known {
                out.put("format", json!(format));
            } else {
                self.record_change("format", ChangeKind::Described);
                out.add_sentence(format!("Format: {format}."));
            }
        }
        out
    }

    fn can_express_pattern(&self, source: &str) -> bool {
        match self.can.patterns {
            PatternSupport::All => true,
            PatternSupport::NoLookaround => {
                !["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| source.contains(look))
            }
            PatternSupport::Grammar => is_plain_grammar(source),
            PatternSupport::None => false,
        }
    }

    /// Writes an `enum` with at least one value that is not a string.
    pub(super) fn members(&mut self, members: &[Value]) -> SchemaDraft {
        let allowed = |member: &Value| match self.can.members {
            EnumMembers::All => true,
            EnumMembers::Scalars => !member.is_object() && !member.is_array(),
            EnumMembers::StringsAndNumbers => member.is_string() || member.is_number(),
            EnumMembers::Strings => member.is_string(),
        };
        if self.can.members == EnumMembers::All {
            let mut out = SchemaDraft::default();
            out.put("enum", members.into());
            return out;
        }
        let whole = members.iter().all(allowed);
        if members.iter().any(|m| m.is_object() || m.is_array()) {
            self.record_inexpressible("enum", "objects or arrays as members of a closed set");
            return SchemaDraft::typed("string");
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
            let mut out = SchemaDraft::typed(name);
            if of_type.iter().all(allowed) {
                out.put("enum", of_type.into());
            }
            out
        };
        let mut out = if types.len() == 1 {
            types.into_iter().map(one).next().unwrap_or_default()
        } else {
            let mut out = SchemaDraft::default();
            out.put("anyOf", types.into_iter().map(|t| Value::Object(one(t).schema)).collect());
            out
        };
        if !whole {
            self.record_change("enum", ChangeKind::Described);
            out.add_sentence(format!("One of: {}.", quote_list(members)));
        }
        out
    }
}

fn is_type_limit(bound: i128) -> bool {
    let short = [i32::MIN.into(), i32::MAX.into(), u32::MAX.into()];
    let long = [i64::MIN.into(), i64::MAX.into(), u64::MAX.into(), i128::MIN, i128::MAX];
    short.contains(&bound) || long.contains(&bound)
}

/// Returns the JSON type of an `enum` value. A number is an `integer` only if all numbers of the `enum` are integers.
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

/// Returns whether llama.cpp converts the pattern correctly to a grammar. The pattern must be anchored at both ends, and must not have
/// assertions, class escapes such as `\d`, or a `|` outside of groups.
fn is_plain_grammar(source: &str) -> bool {
    let Some(inner) = source.strip_prefix('^').and_then(|s| s.strip_suffix('$')) else { return false };
    if inner.ends_with('\\') || inner.contains("(?") {
        return false;
    }
    let mut chars = inner.chars().peekable();
    let (mut in_class, mut first, mut depth) = (false, false, 0_usize);
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
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth = depth.saturating_sub(1),
            '|' if !in_class && depth == 0 => return false,
            _ => first = false,
        }
    }
    true
}
