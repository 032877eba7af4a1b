//! The policy of coercions, and the handling of unknown keys.

use super::coercion::CoercionRule;
use super::suggest::did_you_mean;
use super::text::cut;
use crate::parse_error::ParseError;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{fmt, str::FromStr};

/// The coercions that are allowed: one of three policies, with changes of single rules.
///
/// The rules accept only values with a single meaning. Nothing is cut, guessed or filled in. Every change, such as a rounded number, is
/// recorded as a [`Coercion`](super::Coercion). `strict` accepts everything that `exact` accepts, and `lenient` everything that `strict`
/// accepts.
///
/// | sent | expected | exact | strict | lenient | [rule](CoercionRule) |
/// |---|---|---|---|---|---|
/// | `1.0` | integer | yes | yes | yes | `float_to_integer` |
/// | `" 42 "`, `"+7"`, `"42.0"` | integer | no | yes | yes | `text_to_integer` |
/// | `"2.5e3"` | number | no | yes | yes | `text_to_number` |
/// | `9007199254740993`, `1e-400` | float | nearest | nearest | nearest | `number_rounded` |
/// | `"true"` | boolean | no | yes | yes | `text_to_boolean` |
/// | `"True"` | boolean | no | no | yes | `text_to_boolean` |
/// | `[42]` | array of strings | no | yes | yes | `number_to_text` |
/// | `7` | string | no | no | yes | `number_to_text` |
/// | `"3"` | one of 1, 2, 3 | no | yes | yes | `to_closed_number` |
/// | `null` | optional parameter | no | absent | absent | `null_as_absent` |
/// | `null` | the whole arguments | no | `{}` | `{}` | `null_as_empty` |
/// | `"{…}"` | the whole arguments | no | yes | yes | `json_text_decoded` |
/// | `"[1,2]"` | array of integers | no | no | yes | `json_text_decoded` |
/// | `5` | array of integers | no | no | yes | `one_value_wrapped` |
/// | `"In Progress"` | `"in_progress"` | no | no | yes | `fold_enum` |
///
/// [`allow`](Self::allow) and [`forbid`](Self::forbid) change single rules. The text form is parsed by `#[tool(coerce = "…")]`,
/// `#[arg(coerce = "…")]` and [`FromStr`], and written by [`Display`](fmt::Display):
///
/// ```
/// use agent::args::{CoercionPolicy, CoercionRule};
///
/// let policy: CoercionPolicy = "strict + fold_enum - number_to_text".parse()?;
/// assert_eq!(
///     policy,
///     CoercionPolicy::strict().allow(CoercionRule::FoldEnum).forbid(CoercionRule::NumberToText)
/// );
/// assert_eq!(policy.to_string(), "strict - number_to_text + fold_enum");
/// # Ok::<(), agent::args::ParseError>(())
/// ```
///
/// A comparison of the policies:
///
/// ```
/// use agent::args::{CoercionPolicy, Plan, PlanOptions};
///
/// #[derive(agent::ToolArgs)]
/// struct Pages { numbers: Vec<u32> }
///
/// let takes = |policy, text| {
///     let plan = Plan::for_type::<Pages>("pages", PlanOptions::default().coercion(policy)).unwrap();
///     plan.parse::<Pages>(text).is_ok()
/// };
/// let [plain, quoted, bare] = [r#"{"numbers": [1.0]}"#, r#"{"numbers": ["1"]}"#, r#"{"numbers": 1}"#];
/// assert_eq!([plain, quoted, bare].map(|text| takes(CoercionPolicy::exact(), text)), [true, false, false]);
/// assert_eq!([plain, quoted, bare].map(|text| takes(CoercionPolicy::strict(), text)), [true, true, false]);
/// assert_eq!([plain, quoted, bare].map(|text| takes(CoercionPolicy::lenient(), text)), [true, true, true]);
/// ```
///
/// A policy that is narrower than `exact` (without `float_to_integer`) refuses values that the schema allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a policy does nothing until a plan or a tool is given it"]
pub struct CoercionPolicy(Rules);

impl CoercionPolicy {
    /// Returns the policy that coerces only `1.0` to an integer, as JSON Schema itself does.
    pub const fn exact() -> Self {
        Self(Rules(EXACT))
    }

    /// Returns the policy that allows the coercions of [`exact`](Self::exact) and other lossless conversions, for example of a number that
    /// a model put in quotes. This is the default.
    pub const fn strict() -> Self {
        Self(Rules(STRICT))
    }

    /// Returns the policy that allows the coercions of [`strict`](Self::strict) and also repairs structure, for example JSON sent as text,
    /// a single value for a list, or another spelling of an `enum` value.
    pub const fn lenient() -> Self {
        Self(Rules(LENIENT))
    }

    /// Returns the policy that also allows all coercions of `rule`. Two rules have no effect in a policy: [`CoercionRule::UnknownDropped`]
    /// belongs to [`UnknownKeys::Strip`], and [`CoercionRule::NumberRounded`] is recorded under every policy.
    pub const fn allow(self, rule: CoercionRule) -> Self {
        Self(Rules(self.0.0 | Rules::of(rule).0))
    }

    /// Returns the policy without `rule`.
    pub const fn forbid(self, rule: CoercionRule) -> Self {
        Self(Rules(self.0.0 & !Rules::of(rule).0))
    }

    pub(crate) const fn rules(self) -> Rules {
        self.0
    }

    /// Returns the rules to add to `base` (`+`) and to remove (`-`) to get this policy, or `None` if this policy allows only a part of a
    /// rule.
    fn changes(self, base: CoercionPolicy) -> Option<Vec<(char, CoercionRule)>> {
        let mut changes = Vec::new();
        for rule in CoercionRule::ALL {
            let bits = Rules::of(rule).0;
            let (have, had) = (self.0.0 & bits, base.0.0 & bits);
            match have {
                _ if have == had => {}
                0 => changes.push(('-', rule)),
                _ if have == bits => changes.push(('+', rule)),
                _ => return None,
            }
        }
        Some(changes)
    }
}

impl Default for CoercionPolicy {
    fn default() -> Self {
        Self::strict()
    }
}

impl fmt::Display for CoercionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = POLICIES.iter().filter_map(|(name, policy)| Some((name, self.changes(*policy)?)));
        let Some((name, changes)) = named.min_by_key(|(_, changes)| changes.len()) else {
            return Err(fmt::Error);
        };
        f.write_str(name)?;
        changes.iter().try_for_each(|(sign, rule)| write!(f, " {sign} {rule}"))
    }
}

impl fmt::Debug for CoercionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const POLICIES: [(&str, CoercionPolicy); 3] = [
    ("exact", CoercionPolicy::exact()),
    ("strict", CoercionPolicy::strict()),
    ("lenient", CoercionPolicy::lenient()),
];

impl FromStr for CoercionPolicy {
    type Err = ParseError;

    /// Parses `exact`, `strict` or `lenient`, followed by any number of `+ rule` and `- rule`, which apply in this order.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let end = text.find(['+', '-']).unwrap_or(text.len());
        let (name, mut rest) = text.split_at(end);
        let known = POLICIES.map(|(name, _)| name);
        let found = POLICIES.iter().find(|(known, _)| *known == name.trim());
        let &(_, mut policy) = found.ok_or_else(|| unknown_word(name, &known))?;
        while let Some(sign) = rest.chars().next() {
            rest = &rest[sign.len_utf8()..];
            let (word, after) = rest.split_at(rest.find(['+', '-']).unwrap_or(rest.len()));
            rest = after;
            let mut rules = CoercionRule::ALL.into_iter().filter(|rule| Rules::of(*rule) != Rules(0));
            let rule = rules.clone().find(|rule| rule.as_str() == word.trim()).ok_or_else(|| {
                unknown_word(word, &rules.by_ref().map(CoercionRule::as_str).collect::<Vec<_>>())
            })?;
            policy = if sign == '+' { policy.allow(rule) } else { policy.forbid(rule) };
        }
        Ok(policy)
    }
}

impl Serialize for CoercionPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CoercionPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

fn unknown_word(word: &str, known: &[&str]) -> ParseError {
    let word = cut(word.trim(), 64);
    let near = did_you_mean(&word, known.iter().copied());
    let suggestion = near.first().map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
    ParseError::new(format!("no coercion policy has {word:?}{suggestion} (known: {})", known.join(", ")))
}

/// The handling of a key that matches no parameter.
///
/// ```
/// use agent::args::{PlanOptions, UnknownKeys};
/// use agent::{Registry, ToolContext, message::ToolCall, tool, tools};
///
/// /// Doubles a number.
/// #[tool]
/// fn double(n: i64) -> i64 {
///     n * 2
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::tool::RegistryError> {
/// // `#[tool(unknown = "strip")]` says the same for one tool.
/// let tools = tools![double].with_options(PlanOptions::default().unknown(UnknownKeys::Strip));
/// let call = ToolCall::new("call_1", "double", r#"{"n": 2, "why": "for the sum"}"#);
/// let result = Registry::new(tools)?.call(&call, &ToolContext::new()).await;
/// assert_eq!(result.outcome.text(), "4");
/// assert_eq!(result.coercions[0].rule.as_str(), "unknown_dropped");
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UnknownKeys {
    /// The key is refused at every level. The issue suggests similar names. This is the default.
    #[default]
    Deny,
    /// At the top level, the key is dropped and recorded. At other levels, it is refused.
    Strip,
    /// The key is kept, unless the object's own schema has `additionalProperties: false`.
    Keep,
}

impl UnknownKeys {
    /// Returns the variant with this name (`deny`, `strip` or `keep`), or `None` for any other word.
    ///
    /// ```
    /// use agent::args::UnknownKeys;
    ///
    /// assert_eq!(UnknownKeys::from_name("strip"), Some(UnknownKeys::Strip));
    /// assert_eq!(UnknownKeys::from_name("drop"), None);
    /// assert_eq!(UnknownKeys::Keep.as_str(), "keep");
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "deny" => Some(Self::Deny),
            "strip" => Some(Self::Strip),
            "keep" => Some(Self::Keep),
            _ => None,
        }
    }

    /// Returns the name that [`from_name`](Self::from_name) parses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Strip => "strip",
            Self::Keep => "keep",
        }
    }
}

impl fmt::Display for UnknownKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The options of a [`Plan`](super::Plan): allowed coercions, and the handling of unknown keys.
///
/// ```
/// use agent::args::{CoercionPolicy, PlanOptions, UnknownKeys};
/// let options = PlanOptions::default().coercion(CoercionPolicy::lenient()).unknown(UnknownKeys::Strip);
/// assert_eq!((options.policy(), options.unknown_keys()), (CoercionPolicy::lenient(), UnknownKeys::Strip));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until a plan or a tool is given them"]
pub struct PlanOptions {
    coercion: Option<CoercionPolicy>,
    unknown: Option<UnknownKeys>,
}

impl PlanOptions {
    /// Sets the coercion policy.
    pub fn coercion(mut self, policy: CoercionPolicy) -> Self {
        self.coercion = Some(policy);
        self
    }

    /// Sets the handling of unknown keys.
    pub fn unknown(mut self, unknown: UnknownKeys) -> Self {
        self.unknown = Some(unknown);
        self
    }

    /// Returns the coercion policy; `strict` if none is set.
    pub fn policy(&self) -> CoercionPolicy {
        self.coercion.unwrap_or_default()
    }

    /// Returns the handling of unknown keys; [`UnknownKeys::Deny`] if none is set.
    pub fn unknown_keys(&self) -> UnknownKeys {
        self.unknown.unwrap_or_default()
    }

    /// Returns these options. An option that is not set has the value from `defaults`.
    ///
    /// ```
    /// use agent::args::{CoercionPolicy, PlanOptions, UnknownKeys};
    ///
    /// let house = PlanOptions::default().coercion(CoercionPolicy::lenient()).unknown(UnknownKeys::Strip);
    /// let options = PlanOptions::default().coercion(CoercionPolicy::exact()).or(house);
    /// assert_eq!((options.policy(), options.unknown_keys()), (CoercionPolicy::exact(), UnknownKeys::Strip));
    /// ```
    pub fn or(self, defaults: PlanOptions) -> PlanOptions {
        PlanOptions {
            coercion: self.coercion.or(defaults.coercion),
            unknown: self.unknown.or(defaults.unknown),
        }
    }
}

/// The coercions that are allowed at one schema node, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rules(u32);

const EXACT: u32 = Rules::FLOAT_INTEGER.0;
const STRICT: u32 = EXACT
    | Rules::TEXT_INTEGER.0
    | Rules::TEXT_NUMBER.0
    | Rules::TEXT_BOOLEAN.0
    | Rules::ITEM_TEXT.0
    | Rules::NULL_ABSENT.0
    | Rules::CLOSED_NUMBER.0
    | Rules::NULL_ROOT.0
    | Rules::TEXT_ROOT.0;
const LENIENT: u32 = STRICT
    | Rules::JSON_TEXT.0
    | Rules::WRAP_ONE.0
    | Rules::FOLD_ENUM.0
    | Rules::FOLD_BOOLEAN.0
    | Rules::INTEGER_TEXT.0;

impl Rules {
    pub(crate) const TEXT_INTEGER: Rules = Rules(1);
    pub(crate) const TEXT_NUMBER: Rules = Rules(1 << 1);
    pub(crate) const TEXT_BOOLEAN: Rules = Rules(1 << 2);
    /// The coercion of `[42]` to `["42"]`, at schema nodes of array items.
    pub(crate) const ITEM_TEXT: Rules = Rules(1 << 3);
    pub(crate) const NULL_ABSENT: Rules = Rules(1 << 4);
    /// The coercion of `null` to `{}`, for the arguments as a whole.
    pub(crate) const NULL_ROOT: Rules = Rules(1 << 5);
    /// The coercion of `"[1]"` to `[1]`.
    pub(crate) const JSON_TEXT: Rules = Rules(1 << 6);
    /// The coercion of `1` to `[1]`.
    pub(crate) const WRAP_ONE: Rules = Rules(1 << 7);
    /// The coercion of `"In Progress"` to `"in_progress"`.
    pub(crate) const FOLD_ENUM: Rules = Rules(1 << 8);
    /// The coercion of `"TRUE"` to true.
    pub(crate) const FOLD_BOOLEAN: Rules = Rules(1 << 9);
    /// The coercion of `42` to `"42"`.
    pub(crate) const INTEGER_TEXT: Rules = Rules(1 << 10);
    /// The coercion of `"{…}"` to `{…}`, for the arguments as a whole.
    pub(crate) const TEXT_ROOT: Rules = Rules(1 << 11);
    /// The coercion of `"3"` to 3 where only certain numbers are allowed, for example 1, 2 and 3.
    pub(crate) const CLOSED_NUMBER: Rules = Rules(1 << 12);
    pub(crate) const FLOAT_INTEGER: Rules = Rules(1 << 13);
    /// A flag, not a coercion: the schema is part of a condition such as `not`. It coerces only like `exact`, and accepts unknown keys.
    const CHECK: Rules = Rules(1 << 31);
    /// A flag, not a coercion: the schema node describes array items, so [`ITEM_TEXT`](Self::ITEM_TEXT) applies.
    const ITEM: Rules = Rules(1 << 30);

    const fn of(rule: CoercionRule) -> Rules {
        match rule {
            CoercionRule::FloatToInteger => Rules::FLOAT_INTEGER,
            CoercionRule::TextToInteger => Rules::TEXT_INTEGER,
            CoercionRule::TextToNumber => Rules::TEXT_NUMBER,
            CoercionRule::TextToBoolean => Rules(Rules::TEXT_BOOLEAN.0 | Rules::FOLD_BOOLEAN.0),
            CoercionRule::NumberToText => Rules(Rules::ITEM_TEXT.0 | Rules::INTEGER_TEXT.0),
            CoercionRule::FoldEnum => Rules::FOLD_ENUM,
            CoercionRule::ToClosedNumber => Rules::CLOSED_NUMBER,
            CoercionRule::JsonTextDecoded => Rules(Rules::JSON_TEXT.0 | Rules::TEXT_ROOT.0),
            CoercionRule::OneValueWrapped => Rules::WRAP_ONE,
            CoercionRule::NullAsAbsent => Rules::NULL_ABSENT,
            CoercionRule::NullAsEmpty => Rules::NULL_ROOT,
            CoercionRule::UnknownDropped | CoercionRule::NumberRounded => Rules(0),
        }
    }

    #[inline]
    pub(crate) const fn has(self, rule: Rules) -> bool {
        self.0 & rule.0 != 0
    }

    pub(crate) const fn with(self, rule: Rules) -> Rules {
        Rules(self.0 | rule.0)
    }

    /// Returns the coercions of this set that `strict` also allows, without the flags `CHECK` and `ITEM`.
    pub(crate) const fn within_strict(self) -> Rules {
        Rules(self.0 & STRICT)
    }

    pub(crate) const fn check() -> Rules {
        Rules(EXACT | Rules::CHECK.0)
    }

    pub(crate) const fn is_check(self) -> bool {
        self.has(Rules::CHECK)
    }

    /// Keeps only the coercions that `exact` allows, such as `1.0` to 1.
    pub(crate) const fn without_coercion(self) -> Rules {
        Rules(self.0 & (EXACT | Rules::CHECK.0))
    }

    pub(crate) const fn as_item(self) -> Rules {
        Rules(self.0 | Rules::ITEM.0)
    }

    pub(crate) const fn not_item(self) -> Rules {
        Rules(self.0 & !Rules::ITEM.0)
    }

    /// Returns whether a number may become text. `ITEM_TEXT` allows every number in an array, `INTEGER_TEXT` every whole number.
    pub(crate) const fn number_to_text(self, whole: bool) -> bool {
        self.has(Rules::ITEM) && self.has(Rules::ITEM_TEXT) || self.has(Rules::INTEGER_TEXT) && whole
    }
}
