//! What may be coerced, and what happens to keys that no parameter has.

use serde::{Deserialize, Serialize};

/// How far arguments may be bent to fit their types.
///
/// The rules only ever accept what has one meaning: nothing is rounded, cut, guessed or filled in silently, and
/// every change is recorded as a [`Coercion`](super::Coercion). What `Exact` accepts, `Strict` accepts, and what
/// `Strict` accepts, `Lenient` accepts.
///
/// | sent | wanted | exact | strict | lenient |
/// |---|---|---|---|---|
/// | `1.0` | integer | yes | yes | yes |
/// | `" 42 "`, `"+7"`, `"42.0"` | integer | no | yes | yes |
/// | `"2.5e3"` | number | no | yes | yes |
/// | `"true"` | boolean | no | yes | yes |
/// | `[42]` | array of strings | no | yes | yes |
/// | `null` | optional parameter | no | absent | absent |
/// | `"True"` | boolean | no | no | yes |
/// | `"In Progress"` | `"in_progress"` | no | no | yes |
/// | `7` | string | no | no | yes |
/// | `"[1,2]"`, `5` | array of integers | no | no | yes |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CoercionPolicy {
    /// JSON Schema's own reading: no coercion but `1.0` for an integer.
    Exact,
    /// Lossless readings of scalars that models often quote. The default.
    #[default]
    Strict,
    /// Also structural repairs: JSON sent as text, one value for a list, other spellings of a closed set.
    Lenient,
}

impl CoercionPolicy {
    /// The policy of that name: `exact`, `strict` or `lenient`.
    ///
    /// ```
    /// use agent::args::CoercionPolicy;
    /// assert_eq!(CoercionPolicy::from_name("lenient"), Some(CoercionPolicy::Lenient));
    /// assert_eq!(CoercionPolicy::from_name("loose"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "exact" => Some(Self::Exact),
            "strict" => Some(Self::Strict),
            "lenient" => Some(Self::Lenient),
            _ => None,
        }
    }

    /// Its name, as [`from_name`](Self::from_name) takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Strict => "strict",
            Self::Lenient => "lenient",
        }
    }

    pub(crate) const fn rules(self) -> Rules {
        match self {
            Self::Exact => Rules(0),
            Self::Strict => Rules(STRICT),
            Self::Lenient => Rules(LENIENT),
        }
    }
}

/// What happens to a key that no parameter has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UnknownKeys {
    /// Refused at every level, with a near name where there is one. The default.
    #[default]
    Deny,
    /// Dropped and recorded at the top level; refused below it.
    Strip,
    /// Let through at every level that does not itself say `additionalProperties: false`.
    Keep,
}

impl UnknownKeys {
    /// The policy of that name: `deny`, `strip` or `keep`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "deny" => Some(Self::Deny),
            "strip" => Some(Self::Strip),
            "keep" => Some(Self::Keep),
            _ => None,
        }
    }

    /// Its name, as [`from_name`](Self::from_name) takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Strip => "strip",
            Self::Keep => "keep",
        }
    }
}

/// How a [`Plan`](super::Plan) treats what a model sends.
///
/// ```
/// use agent::args::{CoercionPolicy, PlanOptions, UnknownKeys};
/// let options = PlanOptions::default().coercion(CoercionPolicy::Lenient).unknown(UnknownKeys::Strip);
/// assert_eq!(options.coercion, CoercionPolicy::Lenient);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanOptions {
    /// Which coercions are allowed.
    pub coercion: CoercionPolicy,
    /// What happens to unknown keys.
    pub unknown: UnknownKeys,
}

impl PlanOptions {
    /// The same with this coercion policy.
    pub fn coercion(mut self, policy: CoercionPolicy) -> Self {
        self.coercion = policy;
        self
    }

    /// The same with this treatment of unknown keys.
    pub fn unknown(mut self, unknown: UnknownKeys) -> Self {
        self.unknown = unknown;
        self
    }
}

/// The coercions allowed at one node of a plan, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rules(u16);

const STRICT: u16 = Rules::TEXT_INTEGER.0
    | Rules::TEXT_NUMBER.0
    | Rules::TEXT_BOOLEAN.0
    | Rules::ITEM_TEXT.0
    | Rules::NULL_ABSENT.0
    | Rules::ROOT.0;
const LENIENT: u16 = STRICT
    | Rules::JSON_TEXT.0
    | Rules::WRAP_ONE.0
    | Rules::FOLD_ENUM.0
    | Rules::FOLD_BOOLEAN.0
    | Rules::INTEGER_TEXT.0;

impl Rules {
    /// `"42"` for 42.
    pub(crate) const TEXT_INTEGER: Rules = Rules(1);
    /// `"4.5"` for 4.5.
    pub(crate) const TEXT_NUMBER: Rules = Rules(1 << 1);
    /// `" true "` for true.
    pub(crate) const TEXT_BOOLEAN: Rules = Rules(1 << 2);
    /// `[42]` for `["42"]`, where the node is an item of an array.
    pub(crate) const ITEM_TEXT: Rules = Rules(1 << 3);
    /// `null` for an optional parameter.
    pub(crate) const NULL_ABSENT: Rules = Rules(1 << 4);
    /// `null`, or an object sent as a JSON string, for the arguments as a whole.
    pub(crate) const ROOT: Rules = Rules(1 << 5);
    /// `"[1]"` for `[1]`.
    pub(crate) const JSON_TEXT: Rules = Rules(1 << 6);
    /// `1` for `[1]`.
    pub(crate) const WRAP_ONE: Rules = Rules(1 << 7);
    /// `"In Progress"` for `"in_progress"`.
    pub(crate) const FOLD_ENUM: Rules = Rules(1 << 8);
    /// `"TRUE"` for true.
    pub(crate) const FOLD_BOOLEAN: Rules = Rules(1 << 9);
    /// `42` for `"42"`.
    pub(crate) const INTEGER_TEXT: Rules = Rules(1 << 10);
    /// Not a rule: what has arrived already is only checked. Nothing is coerced, other keys are let through.
    const CHECK: Rules = Rules(1 << 14);
    /// Not a rule: marks the node of an array's items.
    const ITEM: Rules = Rules(1 << 15);

    #[inline]
    pub(crate) const fn has(self, rule: Rules) -> bool {
        self.0 & rule.0 != 0
    }

    /// Those of a check.
    pub(crate) const fn check() -> Rules {
        Rules::CHECK
    }

    pub(crate) const fn is_check(self) -> bool {
        self.has(Rules::CHECK)
    }

    /// Nothing is coerced.
    pub(crate) const fn without_coercion(self) -> Rules {
        Rules(self.0 & Rules::CHECK.0)
    }

    pub(crate) const fn as_item(self) -> Rules {
        Rules(self.0 | Rules::ITEM.0)
    }

    pub(crate) const fn not_item(self) -> Rules {
        Rules(self.0 & !Rules::ITEM.0)
    }

    /// May a number become text here? Any finite one as an array item, a whole one elsewhere if lenient.
    pub(crate) const fn number_to_text(self, whole: bool) -> bool {
        self.has(Rules::ITEM) && self.has(Rules::ITEM_TEXT) || self.has(Rules::INTEGER_TEXT) && whole
    }
}
