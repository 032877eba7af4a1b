//! The nodes of a plan: each defines the values that one place of the arguments accepts.

use super::frequent::{FrequentValues, IntegerRange};
use super::key_index::KeyIndex;
use super::token::{NameToken, word_at};
use super::words::{VariantNames, Words};
use crate::args::policy::Rules;
use crate::args::suggest::{Spelling, Spellings};
use serde_json::{Map, Value};
use std::{borrow::Cow, fmt};

/// Index of a node in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(super) u32);

impl NodeId {
    pub(crate) fn index(self) -> u32 {
        self.0
    }

    /// The index in a list of nodes.
    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

/// The annotations of a schema: description, default, examples, deprecated.
pub(crate) type Notes = Map<String, Value>;

#[derive(Debug)]
pub(crate) struct PlanNode {
    /// Its own index.
    pub(crate) id: NodeId,
    pub(crate) kind: NodeKind,
    pub(crate) rules: Rules,
    /// Whether a secret parameter can be found at or below this node.
    pub(crate) holds_secret: bool,
    pub(crate) takes_null: bool,
}

/// The tag has a byte of its own, because it is checked for every value; without `repr` it would be in a niche that takes several
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
    /// A closed set of strings.
    Enum(Words),
    /// A closed set of other values.
    Const(Vec<Value>),
    Array(ArraySpec),
    Object(ObjectSpec),
    Nullable(NodeId),
    /// `tag` is a required property with a distinct constant in each variant: internally or adjacently tagged.
    Tagged {
        tag: String,
        variants: Vec<(String, NodeId)>,
        names: Box<VariantNames>,
    },
    External(ExternalSpec),
    Union {
        branches: Vec<NodeId>,
        /// `oneOf` of a foreign schema: more than one fitting branch is a mistake.
        exclusive: bool,
    },
    /// The value is read along `base`; as it will arrive it must also pass the checks.
    Checked(CheckedSpec),
}

/// Assertions of a foreign schema about a value as a whole.
#[derive(Debug)]
pub(crate) struct CheckedSpec {
    pub(crate) base: NodeId,
    pub(crate) checks: Vec<NodeCheck>,
}

/// One assertion about a value that has arrived. Its nodes coerce nothing and accept other keys.
#[derive(Debug)]
pub(crate) enum NodeCheck {
    /// The value must fit this, too.
    Also(NodeId),
    /// The value must not fit this; `given`: the properties that it is about, if it only asks whether they exist.
    Not { node: NodeId, given: Vec<String> },
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
        /// The condition in words, if it is short.
        when: Option<String>,
    },
    /// This many items must fit this.
    Contains { node: NodeId, min: u64, max: u64 },
    /// Every key must fit this.
    Names(NodeId),
    /// If the first property is given, the others must be.
    Requires(String, Vec<String>),
    /// If the property is given, the whole object must fit this.
    Depends(String, NodeId),
}

impl NodeCheck {
    /// Whether it only asks which properties are given.
    pub(crate) fn is_about_presence(&self) -> bool {
        match self {
            NodeCheck::Not { given, .. } => !given.is_empty(),
            NodeCheck::Requires(..) => true,
            _ => false,
        }
    }

    /// Whether a value may pass because a part of it does not fit.
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
    /// 128 bits: literals are parsed from their text, because `serde_json`'s own numbers end at 64 bits.
    pub(crate) wide: bool,
    /// Every `i64` in this range is accepted. The range is empty if there is a `multipleOf`.
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
    /// An `f32`: a value beyond its range is refused instead of becoming infinite.
    pub(crate) single: bool,
    /// Whether every finite number is accepted.
    pub(crate) is_open: bool,
    /// Up to this size the type holds every whole number. JSON values hold all of 64 bits.
    pub(crate) exact: u64,
}

/// A bound of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NumberBound {
    pub(crate) float: f64,
    /// Its digits, where a float would round them.
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
    is_plain: bool,
}

/// How strictly a format applies to the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormatRule {
    /// Nothing: there is none, it is not known, or in a foreign schema it only describes.
    Shown,
    /// Some spelling that a type of this format reads.
    OfType,
    /// As JSON Schema defines it, because the author demands it.
    Demanded,
}

impl StrSpec {
    /// Any text.
    pub(super) fn any() -> StrSpec {
        StrSpec::new((None, None), None, None, FormatRule::Shown)
    }

    pub(super) fn new(
        (min, max): (Option<u64>, Option<u64>),
        pattern: Option<Pattern>,
        format: Option<String>,
        format_rule: FormatRule,
    ) -> StrSpec {
        let is_plain =
            min.is_none() && max.is_none() && pattern.is_none() && format_rule == FormatRule::Shown;
        StrSpec { min, max, pattern, format, format_rule, is_plain }
    }

    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }
}

/// A compiled `pattern`, with its text in the schema.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) source: String,
    pub(super) regex: regex::Regex,
}

impl Pattern {
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the expression in the syntax of the `regex` crate.
    pub(crate) fn translated(&self) -> &str {
        self.regex.as_str()
    }

    /// schemars describes integer map keys by a pattern of digits.
    pub(crate) fn is_integer_key(&self) -> bool {
        matches!(self.source.as_str(), r"^\d+$" | r"^-?\d+$")
    }

    /// schemars describes decimal numbers in text by this pattern.
    pub(crate) fn is_decimal(&self) -> bool {
        self.source == r"^-?\d+(\.\d+)?([eE]\d+)?$"
    }
}

#[derive(Debug)]
pub(crate) struct ArraySpec {
    /// The items of a tuple.
    pub(crate) prefix: Vec<NodeId>,
    /// The items after those; `None` = there are none.
    pub(crate) items: Option<NodeId>,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) unique: bool,
}

impl ArraySpec {
    /// A list of any items that `any` accepts.
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

    /// Whether lists of this length are accepted.
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
    /// The names of the properties, as they are compared with unknown keys.
    pub(super) spellings: Spellings,
    /// Every name and alias, where a scan would be slow.
    pub(super) index: Option<KeyIndex>,
    pub(crate) patterns: Vec<(Pattern, NodeId)>,
    pub(crate) rest: AdditionalProperties,
    /// The required ones among the first 64 properties, one bit each.
    pub(super) required: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// Whether an object is complete that has the required ones among the first 64 properties.
    pub(super) is_complete_with_required: bool,
}

/// The other keys that an object accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdditionalProperties {
    /// `additionalProperties: false`.
    Denied,
    /// The schema does not say: closed, unless the tool keeps unknown keys.
    Unspecified,
    Schema(NodeId),
}

#[derive(Debug)]
pub(crate) struct Prop {
    pub(crate) name: String,
    /// The name as most models write it.
    pub(crate) token: NameToken,
    pub(crate) node: NodeId,
    /// Values of the node that need no look at it.
    pub(crate) frequent: FrequentValues,
    pub(crate) required: bool,
    pub(crate) aliases: Vec<String>,
    pub(crate) notes: Notes,
    pub(crate) secret: bool,
    /// Optional, and null is not one of its values: null means absent, and serde never sees the key.
    pub(crate) null_absent: bool,
    /// The field's name in Rust, which a check may use.
    pub(crate) field: Option<String>,
}

impl Prop {
    /// Returns the name and the other names that are accepted.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str))
    }
}

/// The target of a key.
#[derive(Clone, Copy)]
pub(crate) enum Child {
    Prop(usize, NodeId),
    /// A map entry.
    Entry(NodeId),
}

impl Child {
    pub(crate) fn node(self) -> NodeId {
        match self {
            Child::Prop(_, node) | Child::Entry(node) => node,
        }
    }

    /// Returns the property, if it is one.
    pub(crate) fn prop(self, object: &ObjectSpec) -> Option<&Prop> {
        match self {
            Child::Prop(index, _) => object.props.get(index),
            Child::Entry(_) => None,
        }
    }
}

/// The handling of a key that an object neither lists nor has a schema for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnlistedKey {
    /// It is accepted with any value.
    Kept,
    /// It is dropped, and recorded.
    Dropped,
    Refused,
}

impl ObjectSpec {
    /// An object with any values that `any` accepts.
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

    /// Whether objects with this number of entries are accepted.
    #[inline]
    pub(crate) fn takes_length(&self, count: u64) -> bool {
        self.min <= count && count <= self.max
    }

    /// Whether an object is complete that has at least these of the first 64 properties, one bit each. `false` says nothing.
    #[inline]
    pub(crate) fn is_complete_with(&self, first: u64) -> bool {
        first & self.required == self.required && self.is_complete_with_required
    }

    /// Whether an object is complete that has these of the first 64 properties, one bit each, and no other keys.
    pub(crate) fn is_complete_of(&self, first: u64) -> bool {
        first & self.required == self.required
            && self.takes_length(first.count_ones().into())
            && !self.props.iter().skip(64).any(|prop| prop.required)
    }

    /// With more properties than this they are looked up by hash.
    pub(super) const SCAN: usize = 8;

    /// Returns the names of properties with these indices, for suggestions.
    pub(crate) fn names<'o, F: Fn(usize) -> bool + Clone + 'o>(
        &'o self,
        is_wanted: F,
    ) -> impl Iterator<Item = (&'o str, &'o Spelling)> + Clone {
        let names = self.props.iter().map(|prop| prop.name.as_str());
        let spellings = self.spellings.of(names.clone());
        names.zip(spellings).enumerate().filter(move |(index, _)| is_wanted(*index)).map(|(_, name)| name)
    }

    /// `hint` is the index after the previous hit: models usually follow the order of the schema, and may leave one out.
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

    /// Returns the property whose key is at a position of a text, as it is usually written, and the position after it. `None` says
    /// nothing.
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

    /// Returns the canonical spelling of a map's key, if it has several: `01` and `1` are the same integer. Two keys to JSON
    /// Schema are one to the type.
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

    /// Returns what a key leads to that no property has.
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

/// Externally tagged: unit variants as strings, the others as an object with exactly one entry.
#[derive(Debug)]
pub(crate) struct ExternalSpec {
    pub(crate) units: Words,
    pub(crate) unit_notes: Notes,
    pub(crate) variants: Vec<Variant>,
    /// The variants with a payload, as an object with exactly one entry.
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
