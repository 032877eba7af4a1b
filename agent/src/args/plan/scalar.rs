//! Compiles numbers, strings, arrays, and the members of `enum` and `const`.

use super::compile::{Compiler, WIDE};
use super::error::CompileResult;
use super::keywords::{SchemaMap, push_check, type_of, whole};
use super::node::{ArraySpec, FormatRule, IntSpec, NodeId, NodeKind, NumSpec, NumberBound, StrSpec};
use super::prepare::{aliases_of, is_other};
use super::words::Words;
use crate::args::scalar::{Num, decimal, same_json};
use serde_json::Value;

impl Compiler<'_> {
    pub(super) fn typed(&mut self, name: &str, map: &SchemaMap) -> CompileResult<NodeId> {
        let kind = match name {
            "null" => NodeKind::Null,
            "boolean" => NodeKind::Bool,
            "integer" => NodeKind::Int(self.integer(map)?),
            "number" => {
                let bound = |keyword: &str| map.get(keyword).and_then(NumberBound::of);
                let single = !self.foreign && format(map) == Some("float");
                NodeKind::Num(NumSpec {
                    is_open: !single && !map.keys().any(|keyword| type_of(keyword) == Some("number")),
                    min: bound("minimum"),
                    max: bound("maximum"),
                    above: bound("exclusiveMinimum"),
                    below: bound("exclusiveMaximum"),
                    multiple: map.get("multipleOf").and_then(Value::as_f64),
                    single,
                    exact: match format(map).filter(|_| !self.foreign) {
                        Some("float") => 1 << 24,
                        Some("double") => 1 << 53,
                        _ => u64::MAX,
                    },
                })
            }
            "string" => {
                let lengths = (count(map, "minLength").filter(|n| *n > 0), count(map, "maxLength"));
                let pattern = match map.get("pattern").and_then(Value::as_str) {
                    Some(source) => Some(self.patterns.compile(source, "pattern", &self.pointer)?),
                    None => None,
                };
                let shown = format(map).or_else(|| self.encoding(map)).map(String::from);
                let rule = match (format(map), map.get("x-format")) {
                    (None, _) => FormatRule::Shown,
                    (Some(_), _) if self.foreign => FormatRule::Shown,
                    (Some(_), Some(Value::Bool(true))) => FormatRule::Demanded,
                    (Some(_), _) => FormatRule::OfType,
                };
                NodeKind::Str(StrSpec::new(lengths, pattern, shown, rule))
            }
            "array" => NodeKind::Array(self.array(map)?),
            "object" => NodeKind::Object(self.object(map)?),
            _ => return Err(self.error("type", format!("{name:?} is not a type of JSON Schema"))),
        };
        Ok(self.push(kind))
    }

    /// Returns the `contentEncoding` of a schema. Models see it as the format.
    fn encoding<'m>(&self, map: &'m SchemaMap) -> Option<&'m str> {
        if self.foreign { None } else { map.get("contentEncoding").and_then(Value::as_str) }
    }

    /// Compiles an integer. The bounds of the Rust type follow from `format`, because schemars writes bounds only for small types.
    fn integer(&self, map: &SchemaMap) -> CompileResult<IntSpec> {
        let format = if self.foreign { None } else { format(map) };
        let (low, high, wide) = match format {
            Some("int32") => (i32::MIN.into(), Some(i32::MAX.into()), false),
            Some("uint32") => (0, Some(u32::MAX.into()), false),
            Some("int64" | "int") => (i64::MIN.into(), Some(i64::MAX.into()), false),
            Some("uint64" | "uint") => (0, Some(u64::MAX.into()), false),
            Some("int128") => (i128::MIN, Some(i128::MAX), true),
            Some("uint128") => (0, None, true),
            // The default bounds are those of integers in a `Value`.
            _ => (i64::MIN.into(), Some(u64::MAX.into()), false),
        };
        if wide && self.buffered > 0 {
            return Err(self.error("format", WIDE));
        }
        let bound = |keyword: &str, up: bool| map.get(keyword).map(|v| whole_bound(v, up));
        let min = [bound("minimum", true), bound("exclusiveMinimum", false).map(|m| m.saturating_add(1))];
        let max = [bound("maximum", false), bound("exclusiveMaximum", true).map(|m| m.saturating_sub(1))];
        let min = min.into_iter().flatten().fold(low, i128::max);
        let max = max.into_iter().flatten().chain(high).min();
        let multiple = match map.get("multipleOf") {
            None => None,
            Some(v) => match (whole(v), v.as_f64()) {
                (Some(m), _) => Some(i128::from(m)).filter(|m| *m != 1),
                (None, Some(m)) if self.foreign => Some(whole_multiple(m)).filter(|m| *m != 1),
                _ => return Err(self.error("multipleOf", "of an integer must be a whole number")),
            },
        };
        Ok(IntSpec::new(Some(min), max, multiple, wide))
    }

    fn array(&mut self, map: &SchemaMap) -> CompileResult<ArraySpec> {
        let below = self.rules.not_item();
        // In draft-07, `prefixItems` is `items: [..]`, and `items` is `additionalItems`.
        let (prefix, prefix_keyword, items, items_keyword) = match (map.get("prefixItems"), map.get("items"))
        {
            (Some(Value::Array(prefix)), items) => (prefix.as_slice(), "prefixItems", items, "items"),
            (_, Some(Value::Array(prefix))) => {
                (prefix.as_slice(), "items", map.get("additionalItems"), "additionalItems")
            }
            (_, items) => (&[][..], "prefixItems", items, "items"),
        };
        let mut ids = Vec::with_capacity(prefix.len());
        for (i, item) in prefix.iter().enumerate() {
            ids.push(self.below(&[prefix_keyword, &i.to_string()], below, item)?);
        }
        let max = count(map, "maxItems").unwrap_or(u64::MAX);
        let closed = ids.len() as u64 >= max && !ids.is_empty();
        let items = match items {
            Some(Value::Bool(false)) => None,
            None if closed => None,
            None => Some(self.push(NodeKind::Any)),
            Some(items) => {
                let rules = if ids.is_empty() { below.as_item() } else { below };
                Some(self.below(&[items_keyword], rules, items)?)
            }
        };
        Ok(ArraySpec {
            min: count(map, "minItems").unwrap_or(0),
            max: if items.is_none() { max.min(ids.len() as u64) } else { max },
            prefix: ids,
            items,
            unique: map.get("uniqueItems") == Some(&Value::Bool(true)),
        })
    }

    pub(super) fn closed_set(&mut self, members: &[Value], map: &SchemaMap) -> CompileResult<NodeId> {
        let mut rest = map.clone();
        rest.remove("enum");
        rest.remove("const");
        let mut members: Vec<Value> = members.to_vec();
        if let (Some(Value::Array(set)), true) = (map.get("enum"), map.contains_key("const")) {
            members.retain(|m| set.iter().any(|s| same_json(s, m)));
        }
        members.retain(|m| fits_type(m, map.get("type")));
        rest.remove("type");
        if let Some(keyword) = rest.keys().find(|k| restricts_more(k)) {
            return self.restricted_set(keyword, &members, map);
        }
        let id = self.set(members);
        self.spell(id, map);
        Ok(id)
    }

    /// Adds the aliases of a variant to its enum. With serde's `other`, the enum accepts any string.
    fn spell(&mut self, id: NodeId, map: &SchemaMap) {
        let aliases: Vec<&str> = aliases_of(map).collect();
        if let NodeKind::Enum(words) = self.kind_mut(id) {
            let own = std::mem::take(words);
            let name = own.names().next().unwrap_or_default().to_owned();
            *words =
                own.with_aliases(aliases.iter().map(|alias| (name.as_str(), *alias))).opened(is_other(map));
        }
    }

    fn set(&mut self, mut members: Vec<Value>) -> NodeId {
        // Repeated members are removed, except from long sets, because the comparison is quadratic.
        if self.foreign && members.len() <= MAX_COMPARED {
            let mut told: Vec<Value> = Vec::with_capacity(members.len());
            for member in members {
                if !told.iter().any(|before| same_json(before, &member)) {
                    told.push(member);
                }
            }
            members = told;
        }
        let (nulls, members): (Vec<Value>, Vec<Value>) = members.into_iter().partition(Value::is_null);
        let kind = if members.is_empty() {
            if nulls.is_empty() { NodeKind::Never } else { NodeKind::Null }
        } else if let Some(words) = members.iter().map(|m| m.as_str().map(String::from)).collect() {
            NodeKind::Enum(Words::new(words))
        } else {
            NodeKind::Const(members)
        };
        let id = self.push(kind);
        if nulls.is_empty() || matches!(self.kind(id), NodeKind::Null) {
            id
        } else {
            self.push(NodeKind::Nullable(id))
        }
    }

    /// Compiles `enum` or `const` next to other restrictions. A restriction of strings or numbers, such as `maxLength`, removes the
    /// members that do not fit. Any other restriction is an error in the schema of a Rust type, and becomes a separate check in other
    /// schemas.
    fn restricted_set(&mut self, keyword: &str, members: &[Value], map: &SchemaMap) -> CompileResult<NodeId> {
        let other = |k: &&String| restricts_more(k) && !matches!(type_of(k), Some("string" | "number"));
        if let Some(keyword) = map.keys().find(other) {
            if !self.foreign {
                return Err(self.error(keyword, "beside `enum` or `const` is not modelled"));
            }
            let (others, mut own): (SchemaMap, SchemaMap) =
                map.iter().map(|(k, v)| (k.clone(), v.clone())).partition(|(k, _)| other(&k));
            push_check(&mut own, others);
            return self.with_checks(&own, |c, own| c.closed_set(members, own));
        }
        let NodeKind::Str(text) = self.detached("string", map)? else {
            return Err(self.error(keyword, "cannot stand here"));
        };
        let NodeKind::Num(number) = self.detached("number", map)? else {
            return Err(self.error(keyword, "cannot stand here"));
        };
        let kept = members.iter().filter(|m| match m {
            Value::String(s) => text.takes(s),
            Value::Number(n) => Num::of(n).is_some_and(|n| number.takes(n)),
            _ => true,
        });
        let kept = kept.cloned().collect();
        Ok(self.set(kept))
    }

    /// Compiles a schema that only tests the members of an `enum`. The graph keeps an unused node, `NodeKind::Never`, instead of the
    /// result.
    fn detached(&mut self, name: &str, map: &SchemaMap) -> CompileResult<NodeKind> {
        let id = self.typed(name, map)?;
        Ok(std::mem::replace(&mut self.nodes[id.0 as usize].kind, NodeKind::Never))
    }
}

/// Maximum number of members of an `enum` from which repeated members are removed.
const MAX_COMPARED: usize = 100;

fn restricts_more(keyword: &str) -> bool {
    type_of(keyword).is_some() || matches!(keyword, "allOf" | "anyOf" | "oneOf")
}

fn format(map: &SchemaMap) -> Option<&str> {
    map.get("format").and_then(Value::as_str)
}

fn count(map: &SchemaMap, keyword: &str) -> Option<u64> {
    map.get(keyword).and_then(whole)
}

fn fits_type(member: &Value, types: Option<&Value>) -> bool {
    let fits = |name: &str| match name {
        "null" => member.is_null(),
        "boolean" => member.is_boolean(),
        "number" => member.is_number(),
        "integer" => member.is_i64() || member.is_u64() || member.as_f64().is_some_and(|f| f.fract() == 0.0),
        "string" => member.is_string(),
        "array" => member.is_array(),
        "object" => member.is_object(),
        _ => false,
    };
    match types {
        None => true,
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(fits),
        Some(name) => name.as_str().is_some_and(fits),
    }
}

/// Returns the smallest integer that is a multiple of `unit`, for example 3 for 1.5. All integers among the multiples of `unit` are
/// multiples of this integer.
fn whole_multiple(unit: f64) -> i128 {
    let Some((digits, power)) = decimal(unit) else { return i128::MAX };
    // `unit` is `digits` times ten to the `power`. The result is the numerator of this number as a reduced fraction.
    let scale = |by: i32| u32::try_from(by).ok().and_then(|by| 10i128.checked_pow(by));
    if power >= 0 {
        // A result beyond 128 bits becomes `i128::MAX`. Integers here have 64 bits, and 0 is the only 64-bit multiple of either number.
        return scale(power).and_then(|ten| digits.checked_mul(ten)).unwrap_or(i128::MAX);
    }
    let (mut a, mut twos, mut fives) = (digits, -power, -power);
    while a % 2 == 0 && twos > 0 {
        (a, twos) = (a / 2, twos - 1);
    }
    while a % 5 == 0 && fives > 0 {
        (a, fives) = (a / 5, fives - 1);
    }
    a
}

/// Returns a bound of an integer, rounded up or down to a whole number: `minimum: 1.5` means 2.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast from a float saturates, which is what a bound needs"
)]
fn whole_bound(value: &Value, up: bool) -> i128 {
    if let Some(v) = value.as_i64() {
        return v.into();
    }
    if let Some(v) = value.as_u64() {
        return v.into();
    }
    let f = value.as_f64().unwrap_or_default();
    (if up { f.ceil() } else { f.floor() }) as i128
}
