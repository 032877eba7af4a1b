//! The nodes of a compiled schema. Each node defines which values are accepted at a path of the arguments.

use super::frequent::{FrequentValues, IntegerRange};
use super::key_index::KeyIndex;
use super::token::{NameToken, word_at};
use super::words::{VariantNames, Words};
use crate::args::policy::Rules;
use crate::args::suggest::{Spelling, Spellings};
use serde_json::{Map, Value};
use std::{borrow::Cow, fmt};

/// Index of a node in `Graph::nodes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(super) u32);

impl NodeId {
    pub(crate) fn index(self) -> u32 {
        self.0
    }

    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

/// The annotations of a schema: description, default, examples, deprecated, and extensions (`x-…`).
pub(crate) type Notes = Map<String, Value>;

#[derive(Debug)]
pub(crate) struct PlanNode {
    pub(crate) id: NodeId,
    pub(crate) kind: NodeKind,
    pub(crate) rules: Rules,
    pub(crate) holds_secret: bool,
    pub(crate) takes_null: bool,
}

/// The kind of a node. The discriminant is read for every value, so `repr(u8)` gives it a byte of its own. A niche would take several
/// instructions to read.
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum NodeKind {
    Any,
    Never,
    Null,
    Bool,
    Int(IntSpec),
    Num(NumSpec),
    Str(StrSpec),
    /// An `enum` of strings. With serde's `other`, it also accepts any other string.
    Enum(Words),
    /// An `enum` or `const` with at least one member that is not a string.
    Const(Vec<Value>),
    Array(ArraySpec),
    Object(ObjectSpec),
    Nullable(NodeId),
    /// An internally or adjacently tagged enum. Each variant requires the property `tag`, with a constant of its own.
    Tagged {
        tag: String,
        variants: Vec<(String, NodeId)>,
        names: Box<VariantNames>,
    },
    External(ExternalSpec),
    Union {
        branches: Vec<NodeId>,
        /// Whether a value that fits more than one branch is refused. The `oneOf` that schemars writes for an enum is not exclusive.
        exclusive: bool,
    },
    /// The value is coerced to fit the node `base`. The coerced value must then pass the checks.
    Checked(CheckedSpec),
}

#[derive(Debug)]
pub(crate) struct CheckedSpec {
    pub(crate) base: NodeId,
    pub(crate) checks: Vec<NodeCheck>,
}

/// A check of a value after its coercion, such as `not`. The nodes of a check accept unknown keys, and coerce only `1.0` to 1.
#[derive(Debug)]
pub(crate) enum NodeCheck {
    /// The value must also fit this node.
    Also(NodeId),
    /// The value must not fit `node`. If `node` only requires properties, `given` lists their names. Otherwise, `given` is empty.
    Not { node: NodeId, given: Vec<String> },
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
        /// The condition in words, if the condition is short: the name of each property, and words such as `kind is "a"`.
        when: Option<Vec<(String, String)>>,
    },
    /// At least `min` and at most `max` items must fit `node`.
    Contains { node: NodeId, min: u64, max: u64 },
    /// Every key must fit this node.
    Names(NodeId),
    /// If the first property is given, the other properties must be given, too.
    Requires(String, Vec<String>),
    /// If the property is given, the object as a whole must fit the node.
    Depends(String, NodeId),
}

impl NodeCheck {
    /// Returns whether the check only asks which properties are given.
    pub(crate) fn is_about_presence(&self) -> bool {
        match self {
            NodeCheck::Not { given, .. } => !given.is_empty(),
            NodeCheck::Requires(..) => true,
            _ => false,
        }
    }

    /// Returns whether the check may pass because a value does not fit, as with `not`.
    pub(crate) fn may_turn(&self) -> bool {
        matches!(self, NodeCheck::Not { .. } | NodeCheck::If { .. } | NodeCheck::Contains { .. })
    }

    pub(super) fn looks_at_the_same(&self) -> bool {
        !matches!(self, NodeCheck::Contains { .. } | NodeCheck::Names(_))
    }
}

#[derive(Debug)]
pub(crate) struct IntSpec {
    pub(crate) min: Option<i128>,
    pub(crate) max: Option<i128>,
    pub(crate) multiple: Option<i128>,
    /// Whether the type has 128 bits. Its values are parsed from their text, because `serde_json`'s numbers end at 64 bits.
    pub(crate) wide: bool,
    /// A range in which every `i64` is accepted. The range is empty if there is a `multipleOf`, or if the bounds exclude every `i64`.
    pub(super) range: IntegerRange,
}

impl IntSpec {
    pub(crate) fn new(min: Option<i128>, max: Option<i128>, multiple: Option<i128>, wide: bool) -> IntSpec {
        let clamp = |v: i128| i64::try_from(v).unwrap_or(if v < 0 { i64::MIN } else { i64::MAX });
        let in_range = min.is_none_or(|m| m <= i64::MAX.into()) && max.is_none_or(|m| m >= i64::MIN.into());
        let range = if multiple.is_some() || !in_range {
            IntegerRange::new(1, 0)
        } else {
            IntegerRange::new(min.map_or(i64::MIN, clamp), max.map_or(i64::MAX, clamp))
        };
        IntSpec { min, max, multiple, wide, range }
    }

    #[inline]
    pub(crate) fn surely_takes(&self, v: i64) -> bool {
        self.range.contains(v)
    }
}

#[derive(Debug)]
pub(crate) struct NumSpec {
    pub(crate) min: Option<NumberBound>,
    pub(crate) max: Option<NumberBound>,
    pub(crate) above: Option<NumberBound>,
    pub(crate) below: Option<NumberBound>,
    pub(crate) multiple: Option<f64>,
    /// Whether the type is `f32`. A value beyond the range of `f32` is refused, because it would become infinite.
    pub(crate) single: bool,
    /// Whether every finite number is accepted.
    pub(crate) is_open: bool,
    /// The type represents every whole number up to this absolute value exactly: 2^24 for `f32`, 2^53 for `f64`, and `u64::MAX` for JSON
    /// values.
    pub(crate) exact: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NumberBound {
    pub(crate) float: f64,
    /// The exact bound, if it is an integer whose absolute value is at least 2^53. `float` may be rounded then.
    pub(crate) whole: Option<i128>,
}

impl NumberBound {
    pub(super) fn of(number: &Value) -> Option<NumberBound> {
        let float = number.as_f64()?;
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        Some(NumberBound { float, whole: whole.filter(|v| v.unsigned_abs() >= 1 << 53) })
    }
}

impl fmt::Display for NumberBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole {
            Some(whole) => whole.fmt(f),
            None => self.float.fmt(f),
        }
    }
}

#[derive(Debug)]
pub(crate) struct StrSpec {
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) format: Option<String>,
    pub(crate) format_rule: FormatRule,
    /// Whether every text is accepted.
    pub(crate) is_plain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormatRule {
    /// There is no format, or it is only an annotation, because the schema does not come from a Rust type.
    Shown,
    /// The format comes from a Rust type. Several types share a format, so only a text that none of them can parse is refused.
    OfType,
    /// The format is checked as JSON Schema defines it, because an attribute demands this.
    Demanded,
}

impl StrSpec {
    pub(super) fn any() -> StrSpec {
        StrSpec::new((None, None), None, None, FormatRule::Shown)
    }

    pub(super) fn new(
        (min, max): (Option<u64>, Option<u64>),
        pattern: Option<Pattern>,
        format: Option<String>,
        format_rule: FormatRule,
    ) -> StrSpec {
        let spec = StrSpec { min, max, pattern, format, format_rule, is_plain: false };
        // Without `..`: a new field must be considered here.
        let StrSpec { min, max, pattern, format: _, format_rule, is_plain: _ } = &spec;
        let is_plain =
            min.is_none() && max.is_none() && pattern.is_none() && *format_rule == FormatRule::Shown;
        StrSpec { is_plain, ..spec }
    }
}

#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) source: String,
    pub(super) regex: regex::Regex,
}

impl Pattern {
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    pub(crate) fn translated(&self) -> &str {
        self.regex.as_str()
    }

    /// Returns whether schemars writes this pattern for maps with integer keys.
    pub(crate) fn is_integer_key(&self) -> bool {
        matches!(self.source.as_str(), r"^\d+$" | r"^-?\d+$")
    }

    /// Returns whether this is the pattern by which schemars describes decimal numbers in text.
    pub(crate) fn is_decimal(&self) -> bool {
        self.source == r"^-?\d+(\.\d+)?([eE]\d+)?$"
    }
}

#[derive(Debug)]
pub(crate) struct ArraySpec {
    pub(crate) prefix: Vec<NodeId>,
    /// The node of the items after `prefix`; `None` if no further items are accepted.
    pub(crate) items: Option<NodeId>,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) unique: bool,
}

impl ArraySpec {
    pub(super) fn any(any: NodeId) -> ArraySpec {
        ArraySpec { prefix: Vec::new(), items: Some(any), min: 0, max: u64::MAX, unique: false }
    }

    #[inline]
    pub(crate) fn item(&self, index: usize) -> Option<NodeId> {
        match self.prefix.get(index) {
            Some(id) => Some(*id),
            None => self.items,
        }
    }

    #[inline]
    pub(crate) fn takes_length(&self, count: u64) -> bool {
        self.min <= count && count <= self.max
    }

    pub(crate) fn is_list(&self) -> bool {
        self.prefix.is_empty() && self.items.is_some()
    }
}

#[derive(Debug)]
pub(crate) struct ObjectSpec {
    pub(crate) props: Vec<Prop>,
    pub(super) spellings: Spellings,
    /// An index of all names and aliases. `None` for an object with at most `SCAN` properties, and for the `object` of an
    /// `ExternalSpec`.
    pub(super) index: Option<KeyIndex>,
    pub(crate) patterns: Vec<(Pattern, NodeId)>,
    pub(crate) rest: AdditionalProperties,
    /// The required properties among the first 64 properties, one bit each.
    pub(super) required: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// Whether only `required` decides that an object is complete: there are at most 64 properties, and no limits on the number of
    /// entries.
    pub(super) is_complete_with_required: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdditionalProperties {
    /// `additionalProperties: false`.
    Denied,
    /// The schema does not decide about other keys; the option `UnknownKeys` does.
    Unspecified,
    Schema(NodeId),
}

#[derive(Debug)]
pub(crate) struct Prop {
    pub(crate) name: String,
    /// The name as it usually appears in JSON text, `"name":`.
    pub(crate) token: NameToken,
    pub(crate) node: NodeId,
    /// Values that are accepted without looking at `node`.
    pub(crate) frequent: FrequentValues,
    pub(crate) required: bool,
    pub(crate) aliases: Vec<String>,
    pub(crate) notes: Notes,
    pub(crate) secret: bool,
    /// Whether null is read as an absent key, because the property is optional and does not accept null.
    pub(crate) null_absent: bool,
    /// The name of the Rust field. A function of `#[arg(validate = …)]` may report the property by this name.
    pub(crate) field: Option<String>,
}

impl Prop {
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str))
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Child {
    Prop(usize, NodeId),
    Entry(NodeId),
}

impl Child {
    pub(crate) fn node(self) -> NodeId {
        match self {
            Child::Prop(_, node) | Child::Entry(node) => node,
        }
    }

    pub(crate) fn prop(self, object: &ObjectSpec) -> Option<&Prop> {
        match self {
            Child::Prop(index, _) => object.props.get(index),
            Child::Entry(_) => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnlistedKey {
    Kept,
    /// The key is dropped, which is recorded as a coercion.
    Dropped,
    Refused,
}

impl ObjectSpec {
    pub(super) fn any(any: NodeId) -> ObjectSpec {
        ObjectSpec {
            props: Vec::new(),
            spellings: Spellings::default(),
            index: None,
            patterns: Vec::new(),
            rest: AdditionalProperties::Schema(any),
            required: 0,
            min: 0,
            max: u64::MAX,
            is_complete_with_required: true,
        }
    }

    #[inline]
    pub(crate) fn takes_length(&self, count: u64) -> bool {
        self.min <= count && count <= self.max
    }

    /// Returns `true` only for an object with all required properties and an accepted number of entries, and `false` if this is uncertain.
    /// Bit `i` of `first` is set if the object has property `i`.
    #[inline]
    pub(crate) fn is_complete_with(&self, first: u64) -> bool {
        first & self.required == self.required && self.is_complete_with_required
    }

    /// Returns whether an object with exactly the properties in the bit set `first` has all required properties, and an accepted number of
    /// entries.
    pub(crate) fn is_complete_of(&self, first: u64) -> bool {
        first & self.required == self.required
            && self.takes_length(first.count_ones().into())
            && !self.props.iter().skip(64).any(|prop| prop.required)
    }

    /// Maximum number of properties that are compared with a key one by one. An object with more properties has a `KeyIndex` (see
    /// `index`).
    pub(super) const SCAN: usize = 8;

    /// Returns the names of the properties with a wanted index, each with its spelling for suggestions.
    pub(crate) fn names<'o, F: Fn(usize) -> bool + Clone + 'o>(
        &'o self,
        is_wanted: F,
    ) -> impl Iterator<Item = (&'o str, &'o Spelling)> + Clone {
        let names = self.props.iter().map(|prop| prop.name.as_str());
        let spellings = self.spellings.of(names.clone());
        names.zip(spellings).enumerate().filter(move |(index, _)| is_wanted(*index)).map(|(_, name)| name)
    }

    /// Returns the index of the property with this name or alias. `hint` is the index after the previous property: models usually follow
    /// the order of the schema, and may leave one property out.
    #[inline]
    pub(crate) fn find(&self, key: &str, hint: usize) -> Option<usize> {
        if self.props.get(hint).is_some_and(|p| p.name == key) {
            return Some(hint);
        }
        if self.props.get(hint + 1).is_some_and(|p| p.name == key) {
            return Some(hint + 1);
        }
        self.scan(key)
    }

    /// Finds the property whose key is at a position of a JSON text. Returns its index, and the position after the colon. Does not find
    /// aliases and keys with white space before the colon. May not find keys with escapes or of more than 16 bytes.
    #[inline]
    pub(crate) fn written_at(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        if let Some(index) = &self.index {
            return index.written_at(text, at);
        }
        let word = word_at(text, at);
        let mut props = self.props.iter().enumerate();
        props.find_map(|(index, prop)| Some((index, prop.token.end_after(word, text, at)?)))
    }

    fn scan(&self, key: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.find(key, &self.props),
            None => self
                .props
                .iter()
                .position(|prop| prop.name == key || prop.aliases.iter().any(|alias| alias == key)),
        }
    }

    #[inline]
    pub(crate) fn child(&self, key: &str, hint: usize) -> Option<Child> {
        match self.find(key, hint) {
            Some(i) => Some(Child::Prop(i, self.props[i].node)),
            None => self.entry(key).map(Child::Entry),
        }
    }

    /// Returns the canonical spelling of a key of a map. `01` and `1` are two keys to JSON Schema, but one key to a type with
    /// integer keys.
    pub(crate) fn one_spelling<'k>(&self, key: &'k str) -> Cow<'k, str> {
        let digits = key.strip_prefix('-').unwrap_or(key);
        if digits.starts_with('0') || key == "-0" {
            let integer =
                |(pattern, _): &(Pattern, NodeId)| pattern.is_integer_key() && pattern.is_match(key);
            if self.patterns.iter().any(integer) {
                return match digits.trim_start_matches('0') {
                    "" => Cow::Borrowed("0"),
                    short if digits.len() < key.len() => Cow::Owned(format!("-{short}")),
                    short => Cow::Borrowed(short),
                };
            }
        }
        Cow::Borrowed(key)
    }

    /// Returns the node of all values of a map: an object without properties that accepts any key. Returns `None` for any other object.
    #[inline]
    pub(crate) fn map_values(&self) -> Option<NodeId> {
        match self.rest {
            AdditionalProperties::Schema(node) if self.props.is_empty() && self.patterns.is_empty() => {
                Some(node)
            }
            _ => None,
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<NodeId> {
        if let Some((_, id)) = self.patterns.iter().find(|(p, _)| p.is_match(key)) {
            return Some(*id);
        }
        match self.rest {
            AdditionalProperties::Schema(id) => Some(id),
            AdditionalProperties::Denied | AdditionalProperties::Unspecified => None,
        }
    }
}

/// An externally tagged enum: unit variants are strings, and all other variants are objects with exactly one entry.
#[derive(Debug)]
pub(crate) struct ExternalSpec {
    pub(crate) units: Words,
    pub(crate) unit_notes: Notes,
    pub(crate) variants: Vec<Variant>,
    /// The node of an object whose properties are the variants with a payload. The object must have exactly one entry.
    pub(crate) object: NodeId,
}

#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) name: String,
    /// Other spellings of the name, which models do not see.
    pub(crate) aliases: Vec<String>,
    pub(crate) node: NodeId,
    pub(crate) notes: Notes,
}

impl ExternalSpec {
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.units.names().chain(self.variants.iter().map(|v| v.name.as_str()))
    }

    pub(crate) fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|v| v.name == name || v.aliases.iter().any(|alias| alias == name))
    }
}
