//! Parses `#[arg(…)]`: the options of one argument, and of a type that derives `ToolArgs`.

use super::foreign::Serde;
use super::pattern::is_pattern;
use crate::diag::Errors;
use crate::doc::{self, Text};
use crate::grammar::{self, Entry, Keys, Value, bare, integer_of, string_of};
use crate::policy::Policy;
use crate::types::Ungroup;
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::visit_mut::VisitMut;
use syn::{Attribute, Expr, Lit, LitStr, Path, RangeLimits, Token, Type, UnOp};

/// The kind of item that has the `#[arg(…)]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgItem {
    Parameter,
    /// A field of a type that derives `ToolArgs`.
    Field,
    Variant,
    /// A field or variant of a type that derives `ToolOutput`.
    Output,
    /// A field or variant of a type with `own_serde`, for which the user implements serde's and schemars' traits.
    Foreign,
}

impl ArgItem {
    pub(super) fn keys(self) -> Keys {
        match self {
            ArgItem::Parameter => PARAMETER,
            ArgItem::Field => FIELD,
            ArgItem::Variant => VARIANT,
            ArgItem::Output => OUTPUT,
            ArgItem::Foreign => FOREIGN,
        }
    }
}

#[derive(Default)]
pub(crate) struct ArgOptions {
    pub(crate) description: Option<Text>,
    pub(crate) default: Option<DefaultValue>,
    pub(crate) range: Option<Range>,
    pub(crate) length: Option<Length>,
    pub(crate) pattern: Option<LitStr>,
    pub(crate) format: Option<(&'static str, Span)>,
    /// A literal number above zero.
    pub(crate) multiple_of: Option<Expr>,
    pub(crate) unique: Option<Span>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) secret: bool,
    pub(crate) coerce: Option<Policy>,
    pub(crate) nested: Option<Span>,
    pub(crate) flatten: Option<Span>,
    /// The path of each `validate = PATH`.
    pub(crate) checks: Vec<Path>,
    /// JSON values, as the tokens that `json!` takes.
    pub(crate) examples: Vec<TokenStream>,
    /// Keys and JSON values to add to the schema. The values are tokens that `json!` takes.
    pub(crate) extend: Vec<(LitStr, TokenStream)>,
    /// The span of `skip`: the model neither sees nor sends the field.
    pub(crate) skip: Option<Span>,
    pub(crate) with: Option<With>,
    /// The span of the first option other than `nested` and `flatten`. A parameter that receives all arguments as one object must not have
    /// such an option.
    pub(crate) own: Option<Span>,
}

/// `with(FUNCTION as TYPE)`: the function makes the value from the type that the model sends.
pub(crate) struct With {
    pub(crate) read: Path,
    pub(crate) sent: Type,
}

pub(crate) enum DefaultValue {
    /// `default`: the default value of the type.
    OfType(Span),
    Value(Box<Expr>),
}

/// `range(MIN..=MAX)`. Either end may be missing.
pub(crate) struct Range {
    pub(crate) min: Option<Expr>,
    pub(crate) max: Option<Expr>,
    pub(crate) span: Span,
}

/// `length(MIN..=MAX)`, or `length(N)`.
#[derive(Debug)]
pub(crate) struct Length {
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) span: Span,
}

const PARAMETER: Keys = Keys {
    known: &[
        "default",
        "range",
        "length",
        "pattern",
        "format",
        "multiple_of",
        "unique",
        "rename",
        "name",
        "description",
        "alias",
        "secret",
        "coerce",
        "validate",
        "example",
        "extend",
        "with",
        "nested",
        "flatten",
    ],
    repeatable: &["alias", "validate", "example"],
    elsewhere: &[
        OF_TYPES,
        (&["skip"], "a function needs all its parameters: take state as `&T`, or make the value in the body"),
    ],
};
const FIELD: Keys = Keys {
    known: &[
        "default",
        "range",
        "length",
        "pattern",
        "format",
        "multiple_of",
        "unique",
        "rename",
        "name",
        "description",
        "alias",
        "secret",
        "coerce",
        "validate",
        "example",
        "extend",
        "skip",
        "with",
        "flatten",
    ],
    repeatable: &["alias", "validate", "example"],
    elsewhere: &[
        OF_TYPES,
        (&["nested"], "a field is nested anyway; the option is for a parameter of a function"),
    ],
};
const VARIANT: Keys = Keys {
    known: &["rename", "name", "description", "alias"],
    repeatable: &["alias"],
    elsewhere: &[OF_TYPES, RENAME_ALL, (FIELD.known, "it describes one argument, write it on a field")],
};
// Options for arguments are accepted, because the type may derive `ToolArgs`, too. Most of them have no effect on outputs.
const OUTPUT: Keys = FIELD;
const FOREIGN: Keys = Keys {
    known: &[],
    repeatable: &[],
    elsewhere: &[(
        PARAMETER.known,
        "with `own_serde` the schema is that of your own derives, write `#[serde(…)]` and `#[schemars(…)]`",
    )],
};
const OF_TYPES: (&[&str], &str) = (&["crate", "own_serde", "require_docs"], "write it above the type");

const FORMATS: &[&str] =
    &["date", "time", "date-time", "duration", "email", "hostname", "ip", "ipv4", "ipv6", "uri", "uuid"];

pub(crate) fn parse(attrs: &[Attribute], place: ArgItem, errors: &mut Errors) -> ArgOptions {
    let keys = place.keys();
    let mut options = ArgOptions::default();
    let mut given = None;
    for entry in grammar::helper_options("arg", attrs, keys, errors) {
        let key = entry.key.to_string();
        if !matches!(key.as_str(), "nested" | "flatten") {
            options.own.get_or_insert(entry.key.span());
        }
        match key.as_str() {
            "default" => options.default = default(&entry, errors),
            "range" => options.range = range(&entry, errors),
            "length" => options.length = length(&entry, errors),
            "pattern" => options.pattern = entry.some_text(errors).filter(|text| is_pattern(text, errors)),
            "format" => options.format = entry.word(FORMATS, errors).map(|word| (word, entry.key.span())),
            "multiple_of" => options.multiple_of = multiple_of(&entry, errors),
            "unique" => options.unique = (entry.flag(errors) == Some(true)).then(|| entry.key.span()),
            "rename" | "name" if options.rename.is_some() => {
                errors.at(&entry.key, "`name` and `rename` are one option: keep one");
            }
            "rename" | "name" => options.rename = entry.some_text(errors),
            "description" => given = entry.description(errors),
            "alias" => options.aliases.extend(entry.some_text(errors)),
            "secret" => options.secret = entry.flag(errors) == Some(true),
            "coerce" => options.coerce = Policy::of(&entry, errors),
            "validate" => options.checks.extend(entry.path("is_even", errors)),
            "example" => options.examples.extend(example(&entry, errors)),
            "extend" => options.extend = extend(&entry, errors),
            "skip" => options.skip = (entry.flag(errors) == Some(true)).then(|| entry.key.span()),
            "with" => options.with = with(&entry, errors),
            "nested" => options.nested = (entry.flag(errors) == Some(true)).then(|| entry.key.span()),
            "flatten" => options.flatten = (entry.flag(errors) == Some(true)).then(|| entry.key.span()),
            other => unreachable!("`{other}` is in the table of keys but not read"),
        }
    }
    check(&options, errors);
    if place != ArgItem::Foreign {
        options.description = given.or_else(|| doc::description(attrs, errors));
    }
    options
}

/// Reports options that contradict each other.
fn check(options: &ArgOptions, errors: &mut Errors) {
    if let (Some(_), Some(flatten)) = (options.nested, options.flatten) {
        errors
            .at_span(flatten, "`flatten` merges the fields, `nested` keeps them apart: keep one of the two");
    }
    if let (Some(own), Some(_)) = (options.own, options.flatten) {
        errors.at_span(
            own,
            "a flattened argument has no place of its own: write this on the fields of its type",
        );
    }
    if let (Some(skip), true) = (options.skip, options.is_constrained()) {
        errors.at_span(skip, "the model never sees a skipped field: remove the other options, or `skip`");
    }
    if let Some(DefaultValue::Value(value)) = &options.default {
        check_default(options, value, errors);
    }
}

/// Reports a default that violates a constraint, if both are literals. All other defaults are checked when the
/// tool is registered.
fn check_default(options: &ArgOptions, value: &Expr, errors: &mut Errors) {
    if let Some(range) = &options.range {
        let is_less = |a: &Expr, b: &Expr| match (integer_of(a), integer_of(b)) {
            (Some(a), Some(b)) => a < b,
            _ => number_of(a).zip(number_of(b)).is_some_and(|(a, b)| a < b),
        };
        let below = range.min.as_ref().is_some_and(|min| is_less(value, min));
        let above = range.max.as_ref().is_some_and(|max| is_less(max, value));
        if below || above {
            errors.at(value, "this default is outside of the `range`");
        }
    }
    if let (Some(length), Some(text)) = (&options.length, string_of(value)) {
        let count = text.value().chars().count() as u64;
        if length.min.is_some_and(|min| count < min) || length.max.is_some_and(|max| count > max) {
            errors.at(value, format!("this default is outside of the `length`: it has {count} characters"));
        }
    }
    if let (Some(unit), Some(whole)) = (options.multiple_of.as_ref().and_then(integer_of), integer_of(value))
        && unit > 0
        && whole % unit != 0
    {
        errors.at(value, format!("this default is not a multiple of {unit}"));
    }
}

fn number_of(value: &Expr) -> Option<f64> {
    let number: f64 = match bare(value) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok()?,
            Lit::Float(number) => number.base10_parse().ok()?,
            _ => return None,
        },
        Expr::Unary(negated) if matches!(negated.op, UnOp::Neg(_)) => -number_of(&negated.expr)?,
        _ => return None,
    };
    Some(number).filter(|number| number.is_finite())
}

impl ArgOptions {
    /// Returns whether a field with these options and serde's attributes is not read.
    pub(super) fn is_skipped(&self, serde: &Serde) -> bool {
        self.skip.is_some() || serde.has("skip") || serde.has("skip_deserializing")
    }

    /// Returns whether there is an option that has no effect on a skipped field.
    fn is_constrained(&self) -> bool {
        let ends =
            [self.range.is_some(), self.length.is_some(), self.pattern.is_some(), self.format.is_some()];
        ends.contains(&true)
            || self.multiple_of.is_some()
            || self.unique.is_some()
            || self.rename.is_some()
            || self.flatten.is_some()
            || self.with.is_some()
            || self.secret
            || self.coerce.is_some()
            || !self.aliases.is_empty()
            || !self.examples.is_empty()
            || !self.extend.is_empty()
    }
}

fn example(entry: &Entry, errors: &mut Errors) -> Option<TokenStream> {
    match &entry.value {
        Value::Equals(value) => Some(value.to_token_stream()),
        Value::List(tokens, _) if !tokens.is_empty() => Some(tokens.clone()),
        _ => {
            entry.wrong(
                errors,
                "write a value: `example = \"Paris\"`, or JSON in parentheses: `example({\"x\": 1})`",
            );
            None
        }
    }
}

/// Parses `extend("x-…" = JSON)`. Other keys are refused: constraints have options of their own, and the keys in `SETTINGS`
/// belong to the derive.
fn extend(entry: &Entry, errors: &mut Errors) -> Vec<(LitStr, TokenStream)> {
    let mut pairs = entry.pairs(errors);
    pairs.retain(|(key, _)| {
        let is_own = key.value().starts_with("x-") && !SETTINGS.contains(&key.value().as_str());
        if !is_own {
            errors.at(
                key,
                "a key of your own begins with `x-`; constraints have options, for example `range(1..=50)`",
            );
        }
        is_own
    });
    pairs
}

/// Extension keywords that only the derive may write. The library reads its settings from them.
const SETTINGS: &[&str] = &[
    "x-aliases",
    "x-buffered",
    "x-checked",
    "x-coerce",
    "x-field",
    "x-format",
    "x-other",
    "x-secret",
    "x-variants",
    "x-word",
];

fn with(entry: &Entry, errors: &mut Errors) -> Option<With> {
    let parser = |input: ParseStream| {
        let read = input.parse()?;
        input.parse::<Token![as]>()?;
        let mut sent = input.parse()?;
        Ungroup.visit_type_mut(&mut sent);
        Ok(With { read, sent })
    };
    let found = match &entry.value {
        Value::List(tokens, _) => parser.parse2(tokens.clone()).ok(),
        _ => None,
    };
    if found.is_none() {
        entry.wrong(
            errors,
            "write the function that makes the value, and the type that the model sends: `with(Url::parse_text as String)`",
        );
    }
    found
}

fn default(entry: &Entry, errors: &mut Errors) -> Option<DefaultValue> {
    match &entry.value {
        Value::Flag => Some(DefaultValue::OfType(entry.key.span())),
        Value::Equals(expr) => Some(DefaultValue::Value(Box::new(expr.clone()))),
        Value::List(_, span) => {
            errors.at_span(*span, "write `default`, or `default = VALUE`");
            None
        }
    }
}

fn bounds(entry: &Entry, example: &str, errors: &mut Errors) -> Option<(Option<Expr>, Option<Expr>)> {
    let tokens = entry.list(example, errors)?;
    let written = syn::parse2::<Expr>(tokens.clone());
    let Ok(Expr::Range(range)) = written.as_ref().map(bare).cloned() else {
        errors.at(tokens, format!("write a range: `{}({example})`", entry.key));
        return None;
    };
    if let (Some(end), RangeLimits::HalfOpen(_)) = (&range.end, &range.limits) {
        let start = range.start.as_ref().map(|start| start.to_token_stream().to_string()).unwrap_or_default();
        let end = end.to_token_stream();
        errors.at(tokens, format!("both ends are included here: write `{}({start}..={end})`", entry.key));
        return None;
    }
    if range.start.is_none() && range.end.is_none() {
        errors
            .at(tokens, format!("a range without ends allows everything: write `{}({example})`", entry.key));
        return None;
    }
    let (min, max) = (range.start.map(|min| *min), range.end.map(|max| *max));
    if let (Some(low), Some(high)) = (min.as_ref().and_then(integer_of), max.as_ref().and_then(integer_of))
        && low > high
    {
        errors.at(tokens, "nothing is in this range: its start is above its end");
        return None;
    }
    Some((min, max))
}

fn multiple_of(entry: &Entry, errors: &mut Errors) -> Option<Expr> {
    if let Value::Equals(expr) = &entry.value
        && number_of(expr).is_some_and(|number| number > 0.0)
    {
        return Some(expr.clone());
    }
    errors.at(&entry.key, "write a number above zero: `multiple_of = 5`");
    None
}

fn range(entry: &Entry, errors: &mut Errors) -> Option<Range> {
    let (min, max) = bounds(entry, "1..=50", errors)?;
    Some(Range { min, max, span: entry.key.span() })
}

fn length(entry: &Entry, errors: &mut Errors) -> Option<Length> {
    let span = entry.key.span();
    if let Value::List(tokens, _) = &entry.value
        && let Some(exact) = integer_of(tokens).and_then(|exact| u64::try_from(exact).ok())
    {
        return Some(Length { min: Some(exact), max: Some(exact), span });
    }
    let (min, max) = bounds(entry, "1..=3", errors)?;
    let mut whole = |end: Option<Expr>| match end {
        None => Some(None),
        Some(end) => {
            let count = integer_of(&end).and_then(|count| u64::try_from(count).ok());
            if count.is_none() {
                errors.at(&end, "a length is a literal whole number: write for example `length(1..=3)`");
            }
            count.map(Some)
        }
    };
    let (min, max) = (whole(min), whole(max));
    Some(Length { min: min?, max: max?, span })
}

/// The options of `#[arg(…)]` above a type.
#[derive(Default)]
pub(crate) struct TypeOptions {
    pub(crate) krate: Option<Path>,
    /// Whether the user implements `Deserialize` and `JsonSchema` for the type.
    pub(crate) own_serde: bool,
    /// The path of each `validate = PATH`.
    pub(crate) checks: Vec<Path>,
    pub(crate) require_docs: bool,
}

const ON_FIELDS: (&[&str], &str) = (PARAMETER.known, "write it on a field");
const RENAME_ALL: (&[&str], &str) =
    (&["rename_all"], "it is an attribute of serde, write `#[serde(rename_all = \"camelCase\")]`");
const OF_SERDE: (&[&str], &str) = (
    &[
        "tag",
        "content",
        "untagged",
        "transparent",
        "deny_unknown_fields",
        "rename_all_fields",
        "try_from",
        "from",
        "bound",
    ],
    "it is an attribute of serde, write it in `#[serde(…)]`",
);
const TYPE: Keys = Keys {
    known: &["crate", "own_serde", "validate", "require_docs"],
    repeatable: &["validate"],
    elsewhere: &[RENAME_ALL, OF_SERDE, ON_FIELDS],
};

pub(crate) fn parse_type(attrs: &[Attribute], errors: &mut Errors) -> TypeOptions {
    let mut options = TypeOptions::default();
    for entry in grammar::helper_options("arg", attrs, TYPE, errors) {
        match entry.key.to_string().as_str() {
            "crate" => options.krate = entry.path("::agent", errors),
            "own_serde" => options.own_serde = entry.flag(errors) == Some(true),
            "validate" => options.checks.extend(entry.path("check_order", errors)),
            "require_docs" => options.require_docs = entry.flag(errors) == Some(true),
            other => unreachable!("`{other}` is in the table of keys but not read"),
        }
    }
    if let (true, Some(check)) = (options.own_serde, options.checks.first()) {
        errors.at(
            check,
            "with `own_serde` this library does not read the type: call the check in your own `Deserialize`",
        );
    }
    options
}
