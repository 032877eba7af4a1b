//! Writes a type in one line: `integer 1..50`, `"a" | "b"`, `[string]`, `{lat: number, lon?: number}`.

use super::plan::{
    AdditionalProperties, ArraySpec, Graph, IntSpec, NodeId, NodeKind, NumSpec, ObjectSpec, Pattern, StrSpec,
};
use super::text::{MAX_VALUE, cut, push_cut, push_quoted};
use serde_json::Value;
use std::fmt::{Display, Write};

const MAX_PARAMETERS: usize = 40;
pub(super) const MAX_MEMBERS: usize = 20;
/// Maximum length of a line, in characters.
pub(super) const MAX_LINE: usize = 300;
/// Number of nested levels that issues write out. Deeper objects are written as `object`, and deeper tagged enums as `object (3 kinds)`.
const DEPTH_IN_ISSUES: usize = 2;
const DEPTH_IN_LIST: usize = 3;
/// Length of a signature, in bytes, above which nothing is added to it, because the line is cut later.
const ENOUGH: usize = 4 * MAX_LINE;
const MAX_DESCRIPTION: usize = 80;

/// Returns the values that a schema node accepts, in one line. The line is computed once for each node.
pub(crate) fn signature(graph: &Graph, id: NodeId) -> &str {
    graph.signature_cell(id).get_or_init(|| {
        let mut writer = Writer { graph, beyond: None, open: Vec::new(), out: String::new() };
        writer.node(id, DEPTH_IN_ISSUES);
        cut(&writer.out, ENOUGH)
    })
}

/// Returns the range of a number, as in [`signature`]. The bound on the side `beyond` is never left out, because the sent value violates
/// it.
pub(crate) fn limits(graph: &Graph, id: NodeId, beyond: Side) -> String {
    let mut writer = Writer { graph, beyond: Some(beyond), open: Vec::new(), out: String::new() };
    writer.node(id, DEPTH_IN_ISSUES);
    cut(&writer.out, MAX_LINE)
}

/// Returns the lines of a report that describe the parameters. If the schema is not for an object, the only line is the signature of the
/// schema.
pub(crate) fn parameters(graph: &Graph) -> &[String] {
    graph.parameters.get_or_init(|| {
        let Some(object) = graph.root_object() else {
            let mut writer = Writer { graph, beyond: None, open: Vec::new(), out: String::new() };
            writer.node(graph.root, DEPTH_IN_LIST + 1);
            return vec![cut(&writer.out, MAX_LINE)];
        };
        let mut lines: Vec<String> =
            object.props.iter().take(MAX_PARAMETERS).map(|p| parameter(graph, p)).collect();
        if object.props.len() > MAX_PARAMETERS {
            lines.push(format!("… {} more", object.props.len() - MAX_PARAMETERS));
        }
        for (pattern, id) in object.patterns.iter().take(MAX_PARAMETERS) {
            lines.push(any_key(graph, &key_pattern(pattern), *id));
        }
        if object.patterns.len() > MAX_PARAMETERS {
            lines.push(format!("… {} more", object.patterns.len() - MAX_PARAMETERS));
        }
        if let AdditionalProperties::Schema(id) = object.rest {
            lines.push(any_key(graph, "[any other key]", id));
        }
        lines
    })
}

pub(crate) fn parameter_lines(graph: &Graph) -> &str {
    graph.parameter_lines.get_or_init(|| {
        let lines = parameters(graph).iter();
        lines.flat_map(|line| ["  ", line, "\n"]).collect()
    })
}

fn key_pattern(pattern: &Pattern) -> String {
    if pattern.is_integer_key() {
        "[whole number]".to_owned()
    } else {
        format!("[key matching {}]", cut(&pattern.source, MAX_VALUE))
    }
}

fn any_key(graph: &Graph, key: &str, id: NodeId) -> String {
    let mut writer = Writer { graph, beyond: None, open: Vec::new(), out: format!("{key}: ") };
    writer.node(id, DEPTH_IN_LIST);
    cut(&writer.out, MAX_LINE)
}

fn parameter(graph: &Graph, prop: &crate::args::plan::Prop) -> String {
    let mut writer = Writer { graph, beyond: None, open: Vec::new(), out: String::new() };
    writer.name(&prop.name);
    writer.out.push_str(if prop.required { ": " } else { "?: " });
    writer.node(prop.node, DEPTH_IN_LIST);
    let mut out = writer.out;
    if let Some(default) = prop.notes.get("default").filter(|d| !d.is_null()) {
        out.push_str(" = ");
        push_cut(&mut out, &default.to_string(), MAX_VALUE);
    }
    if let Some(line) = prop
        .notes
        .get("description")
        .and_then(Value::as_str)
        .and_then(|d| d.lines().next())
        .filter(|l| !l.is_empty())
    {
        out.push_str(" — ");
        push_cut(&mut out, line, MAX_DESCRIPTION);
    }
    cut(&out, MAX_LINE)
}

pub(crate) fn push_set<'v>(out: &mut String, members: impl ExactSizeIterator<Item = &'v Value>) {
    let more = members.len().saturating_sub(MAX_MEMBERS);
    for (i, member) in members.take(MAX_MEMBERS).enumerate() {
        if i > 0 {
            out.push_str(" | ");
        }
        match member {
            Value::String(word) => push_quoted(out, word, MAX_LINE),
            member => push_cut(out, &member.to_string(), MAX_LINE),
        }
    }
    push_more(out, more);
}

fn push_more(out: &mut String, more: usize) {
    if more > 0 {
        let _ = write!(out, " | … {more} more");
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Below,
    Above,
}

struct Writer<'g> {
    graph: &'g Graph,
    /// The bound that the sent value violates, if any. This bound is shown even if it is very large.
    beyond: Option<Side>,
    open: Vec<NodeId>,
    out: String,
}

// Writing to a `String` cannot fail, so the results of `write!` are dropped.
impl Writer<'_> {
    fn node(&mut self, id: NodeId, depth: usize) {
        if self.out.len() > ENOUGH {
            return;
        }
        if self.open.contains(&id) {
            // The node contains itself. Only the outermost occurrence is written out.
            let word = if matches!(self.graph.kind(id), NodeKind::Array(_)) { "array" } else { "object" };
            return self.out.push_str(word);
        }
        self.open.push(id);
        self.kind(id, depth);
        self.open.pop();
    }

    fn kind(&mut self, id: NodeId, depth: usize) {
        let graph = self.graph;
        match graph.kind(id) {
            NodeKind::Any => self.out.push_str("any JSON value"),
            NodeKind::Never => self.out.push_str("nothing"),
            NodeKind::Null => self.out.push_str("null"),
            NodeKind::Bool => self.out.push_str("boolean"),
            NodeKind::Int(spec) => self.integer(spec),
            NodeKind::Num(spec) => self.number(spec),
            NodeKind::Str(spec) => self.string(spec),
            NodeKind::Enum(words) => self.words(words),
            NodeKind::Const(members) => push_set(&mut self.out, members.iter()),
            NodeKind::Array(array) => self.array(array, depth),
            NodeKind::Object(_) if depth == 0 => self.out.push_str("object"),
            NodeKind::Object(object) => self.object(object, depth),
            NodeKind::Nullable(inner) => {
                self.node(*inner, depth.saturating_sub(1));
                self.out.push_str(" | null");
            }
            NodeKind::Tagged { variants, .. } if depth == 0 => {
                let _ = write!(self.out, "object ({} kinds)", variants.len());
            }
            NodeKind::Tagged { variants, .. } => self.alternatives(variants.iter().map(|v| v.1), depth),
            NodeKind::External(external) => {
                self.words(&external.units);
                for (i, variant) in external.variants.iter().enumerate() {
                    if i > 0 || !external.units.is_empty() {
                        self.out.push_str(" | ");
                    }
                    self.out.push('{');
                    self.name(&variant.name);
                    self.out.push_str(": ");
                    self.node(variant.node, depth.saturating_sub(1));
                    self.out.push('}');
                }
            }
            NodeKind::Checked(checked) => self.node(checked.base, depth),
            NodeKind::Union { branches, .. } => {
                self.alternatives(branches.iter().copied(), depth.saturating_sub(1));
            }
        }
    }

    fn alternatives(&mut self, ids: impl Iterator<Item = NodeId>, depth: usize) {
        for (i, id) in ids.enumerate() {
            if i > 0 {
                self.out.push_str(" | ");
            }
            self.node(id, depth);
        }
    }

    fn words(&mut self, words: &[String]) {
        for (i, word) in words.iter().take(MAX_MEMBERS).enumerate() {
            if i > 0 {
                self.out.push_str(" | ");
            }
            push_quoted(&mut self.out, word, MAX_LINE);
        }
        push_more(&mut self.out, words.len().saturating_sub(MAX_MEMBERS));
    }

    fn range<B: Display + PartialEq>(&mut self, low: Option<B>, high: Option<B>) {
        let _ = match (low, high) {
            (Some(low), Some(high)) if low == high => write!(self.out, " {low}"),
            (Some(low), Some(high)) => write!(self.out, " {low}..{high}"),
            (Some(low), None) => write!(self.out, " >= {low}"),
            (None, Some(high)) => write!(self.out, " <= {high}"),
            (None, None) => Ok(()),
        };
    }

    fn integer(&mut self, spec: &IntSpec) {
        self.out.push_str("integer");
        // A bound as large as `i32::MAX` usually comes from the Rust type. Such a bound is shown only if the sent value exceeds it.
        let told = |bound: &i128, side: Side| {
            self.beyond == Some(side) || bound.unsigned_abs() < u128::from(i32::MAX.unsigned_abs())
        };
        let (low, high) =
            (spec.min.filter(|b| told(b, Side::Below)), spec.max.filter(|b| told(b, Side::Above)));
        self.range(low, high);
        if let Some(multiple) = spec.multiple {
            let _ = write!(self.out, ", a multiple of {multiple}");
        }
    }

    fn number(&mut self, spec: &NumSpec) {
        self.out.push_str("number");
        if self.beyond.is_some() && spec.single && spec.min.is_none() && spec.max.is_none() {
            self.out.push_str(" of at most 3.4e38");
        }
        self.range(spec.min, spec.max);
        if let Some(above) = spec.above {
            let _ = write!(self.out, " > {above}");
        }
        if let Some(below) = spec.below {
            let _ = write!(self.out, " < {below}");
        }
        if let Some(multiple) = spec.multiple {
            let _ = write!(self.out, ", a multiple of {multiple}");
        }
    }

    fn string(&mut self, spec: &StrSpec) {
        // Without `..`: a new field must be written here.
        let StrSpec { min, max, pattern, format, format_rule: _, is_plain: _ } = spec;
        self.out.push_str("string");
        let _ = match format.as_deref() {
            None => Ok(()),
            Some("date") => write!(self.out, " (date, like 2026-11-21)"),
            Some("date-time") => write!(self.out, " (date-time, like 2026-11-21T10:30:00Z)"),
            Some("duration") => write!(self.out, " (duration, like 1h 30m or PT1H30M)"),
            Some("partial-date-time") => {
                write!(self.out, " (date-time without zone, like 2026-11-21T10:30:00)")
            }
            Some("zoned-date-time") => {
                write!(self.out, " (date-time with zone, like 2026-11-21T10:30:00+01:00[Europe/Paris])")
            }
            Some("time") => write!(self.out, " (time with zone, like 10:30:00Z)"),
            Some("partial-time") => write!(self.out, " (time, like 10:30:00)"),
            Some("uuid") => write!(self.out, " (UUID, like 67e55044-10b1-426f-9247-bb680e5fe0c8)"),
            Some("uri") => write!(self.out, " (URL, like https://example.com)"),
            Some("email") => write!(self.out, " (email, like ann@example.com)"),
            Some("ip" | "ipv4") => write!(self.out, " (IP address, like 192.0.2.1)"),
            Some("ipv6") => write!(self.out, " (IP address, like 2001:db8::1)"),
            Some(format) => write!(self.out, " ({})", cut(format, MAX_VALUE)),
        };
        if min.is_some() || max.is_some() {
            self.out.push(',');
            self.range(*min, *max);
            self.out.push_str(" characters");
        }
        if pattern.as_ref().is_some_and(Pattern::is_decimal) {
            self.out.push_str(" (decimal, like 12.50)");
        } else if let Some(pattern) = pattern {
            self.out.push_str(" matching ");
            push_cut(&mut self.out, &pattern.source, MAX_VALUE);
        }
    }

    fn array(&mut self, array: &ArraySpec, depth: usize) {
        let below = depth.saturating_sub(1);
        self.out.push('[');
        for (i, id) in array.prefix.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.node(*id, below);
        }
        if let Some(id) = array.items {
            if !array.prefix.is_empty() {
                self.out.push_str(", …");
            }
            self.node(id, below);
        }
        self.out.push(']');
        let low = Some(array.min).filter(|n| *n > 0);
        let high = Some(array.max).filter(|n| *n < u64::MAX);
        if array.items.is_some() && (low.is_some() || high.is_some()) {
            self.out.push(',');
            self.range(low, high);
            self.out.push_str(" items");
        }
        if array.unique {
            self.out.push_str(", all different");
        }
    }

    fn object(&mut self, object: &ObjectSpec, depth: usize) {
        let below = depth - 1;
        self.out.push('{');
        let mut first = true;
        let mut comma = |out: &mut String| {
            if !std::mem::replace(&mut first, false) {
                out.push_str(", ");
            }
        };
        for prop in &object.props {
            if self.out.len() > ENOUGH {
                break;
            }
            comma(&mut self.out);
            self.name(&prop.name);
            self.out.push_str(if prop.required { ": " } else { "?: " });
            self.node(prop.node, below);
        }
        for (pattern, id) in &object.patterns {
            comma(&mut self.out);
            self.out.push_str(&key_pattern(pattern));
            self.out.push_str(": ");
            self.node(*id, below);
        }
        if let AdditionalProperties::Schema(id) = object.rest {
            comma(&mut self.out);
            self.out.push_str("[key]: ");
            self.node(id, below);
        }
        self.out.push('}');
    }

    fn name(&mut self, name: &str) {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if !name.is_empty() && name.len() <= MAX_LINE && name.chars().all(plain) {
            self.out.push_str(name);
        } else {
            push_quoted(&mut self.out, name, MAX_LINE);
        }
    }
}
