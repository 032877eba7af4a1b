//! Coercions: the changes, such as `"42"` to 42, by which sent arguments are made to fit a schema.

use super::text::{MAX_RECORD, cut, shown};
use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! coercion_rules {
    ($($(#[$what:meta])* $rule:ident = $word:literal,)*) => {
        /// A rule by which a sent value is changed to fit, for example text to integer.
        ///
        /// ```
        /// use agent::args::{CoercionPolicy, CoercionRule};
        ///
        /// assert_eq!(CoercionRule::TextToInteger.as_str(), "text_to_integer");         // as in records, reports and policies
        /// let fewer = CoercionPolicy::strict().forbid(CoercionRule::TextToInteger);
        /// assert_eq!(fewer, "strict - text_to_integer".parse()?);
        /// # Ok::<(), agent::args::ParseError>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum CoercionRule {
            $($(#[$what])* $rule,)*
        }

        impl CoercionRule {
            /// All rules, in the order of their declaration.
            pub const ALL: [CoercionRule; [$($word),*].len()] = [$(Self::$rule),*];

            /// Returns the identifier of the rule: `text_to_integer`, …
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$rule => $word,)*
                }
            }
        }
    };
}

coercion_rules! {
    /// `1.0` becomes 1.
    FloatToInteger = "float_to_integer",
    /// `"42"` becomes 42.
    TextToInteger = "text_to_integer",
    /// `"4.5"` becomes 4.5.
    TextToNumber = "text_to_number",
    /// `"true"` becomes true.
    TextToBoolean = "text_to_boolean",
    /// 42 becomes `"42"`.
    NumberToText = "number_to_text",
    /// `"In Progress"` becomes `"in_progress"`.
    FoldEnum = "fold_enum",
    /// `"3"` or 3.0 becomes 3, one of the allowed numbers that the schema lists.
    ToClosedNumber = "to_closed_number",
    /// A string with JSON text becomes the array or object in it.
    JsonTextDecoded = "json_text_decoded",
    /// A single value becomes an array with this value.
    OneValueWrapped = "one_value_wrapped",
    /// `null` is treated as an absent parameter.
    NullAsAbsent = "null_as_absent",
    /// `null` is treated as empty arguments.
    NullAsEmpty = "null_as_empty",
    /// A key that matches no parameter is dropped.
    UnknownDropped = "unknown_dropped",
    /// 9007199254740993 becomes 9007199254740992.0, the nearest number that the type or a JSON value can hold. The change is always
    /// recorded; no policy allows or forbids it.
    NumberRounded = "number_rounded",
}

impl std::fmt::Display for CoercionRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One recorded change of the sent arguments.
///
/// Texts are cut at 200 characters. An array or object whose JSON text is longer than 200 bytes is replaced by a description. Values that
/// are or may contain a secret are `"(hidden)"`.
///
/// ```
/// # #[derive(agent::ToolArgs)] struct Move { steps: i32 }
/// use agent::args::{Plan, PlanOptions};
///
/// let plan = Plan::for_type::<Move>("move", PlanOptions::default())?;
/// let parsed = plan.parse::<Move>(r#"{"steps": "3"}"#)?;
/// let coercion = &parsed.coercions()[0];
/// assert_eq!((coercion.path.as_str(), coercion.rule.as_str()), ("/steps", "text_to_integer"));
/// assert_eq!((&coercion.from, &coercion.to), (&agent::json!("3"), &agent::json!(3)));
/// # assert_eq!(parsed.value.steps, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Coercion {
    /// JSON pointer into the sent arguments; empty for the arguments as a whole.
    pub path: String,
    /// The sent value.
    pub from: Value,
    /// The value that the tool received, or null if it received none.
    pub to: Value,
    /// The rule that allowed the change.
    pub rule: CoercionRule,
}

pub(crate) const HIDDEN: &str = "(hidden)";

pub(crate) enum CoercedValue<'a> {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(&'a str),
    Value(Box<Value>),
}

impl CoercedValue<'_> {
    pub(crate) fn recorded(self) -> Value {
        match self {
            CoercedValue::Null => Value::Null,
            CoercedValue::Bool(b) => b.into(),
            CoercedValue::Signed(v) => v.into(),
            CoercedValue::Unsigned(v) => v.into(),
            CoercedValue::Float(f) => f.into(),
            CoercedValue::Text(text) => cut(text, MAX_RECORD).into(),
            CoercedValue::Value(value) => recorded(*value),
        }
    }
}

pub(crate) fn recorded(value: Value) -> Value {
    match value {
        Value::String(s) if s.len() > MAX_RECORD => cut(&s, MAX_RECORD).into(),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.len() > MAX_RECORD { shown(&value).into() } else { value }
        }
        value => value,
    }
}
