//! One fault of the arguments of a call, and its kind.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of fault of an [`Issue`]. Its serialized form and [`as_str`](Self::as_str) are the identifier in reports.
///
/// ```
/// # #[derive(agent::ToolArgs)] struct Move { steps: i32 }
/// use agent::args::{IssueCode, Plan, PlanOptions};
///
/// let plan = Plan::for_type::<Move>("move", PlanOptions::default())?;
/// let refused = plan.parse::<Move>(r#"{"step": 3}"#).err().unwrap();
/// let codes: Vec<IssueCode> = refused.issues().iter().map(|issue| issue.code).collect();
/// assert!(codes.contains(&IssueCode::Unknown));
/// assert_eq!(IssueCode::Unknown.as_str(), "unknown");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IssueCode {
    /// The text is not one complete JSON value.
    Json,
    /// The value has the wrong type.
    Type,
    /// A required parameter was not given.
    Missing,
    /// No parameter has this name.
    Unknown,
    /// A parameter or another key was given twice.
    Duplicate,
    /// The value is not one of the allowed values.
    Enum,
    /// The number is out of bounds, or not a multiple of the required factor.
    Range,
    /// The text, array or object is too short or too long.
    Length,
    /// The text does not match the pattern.
    Pattern,
    /// The text does not have the required format, for example a date.
    Format,
    /// An item of a list is repeated, although the items must be unique.
    Unique,
    /// The value is refused for a reason without a code of its own, for example by a function of `#[arg(validate = …)]` or by the
    /// `Deserialize` of its type.
    Value,
}

impl IssueCode {
    /// Returns the identifier of the code: `missing`, `range`, …
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Type => "type",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Duplicate => "duplicate",
            Self::Enum => "enum",
            Self::Range => "range",
            Self::Length => "length",
            Self::Pattern => "pattern",
            Self::Format => "format",
            Self::Unique => "unique",
            Self::Value => "value",
        }
    }
}

impl std::fmt::Display for IssueCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One fault of the arguments of a call.
///
/// An issue never contains the value of a secret field.
///
/// ```
/// # #[derive(agent::ToolArgs)] struct Move { #[arg(range(1..=9))] steps: i32 }
/// use agent::args::{Plan, PlanOptions};
///
/// let plan = Plan::for_type::<Move>("move", PlanOptions::default())?;
/// let refused = plan.parse::<Move>(r#"{"steps": 12}"#).err().unwrap();
/// let issue = &refused.issues()[0];
/// assert_eq!((issue.path.as_str(), issue.code.as_str()), ("/steps", "range"));
/// assert_eq!(issue.expected.as_deref(), Some("integer 1..9"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Issue {
    /// JSON pointer ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)) into the sent arguments; empty for the arguments as a whole. A
    /// pointer of more than 4,096 bytes gets no further segments, and a key of more than 4,096 characters is cut.
    pub path: String,
    /// The kind of fault.
    pub code: IssueCode,
    /// The fault in words, for example `required, but missing`.
    pub problem: String,
    /// The accepted values, in one line, for example `integer 1..50`.
    pub expected: Option<String>,
    /// A short description of the sent value, such as `number 12` or `array of 3`. Secrets are hidden.
    pub received: Option<String>,
    /// The allowed values of an enum. For an unknown key, the parameters of its object.
    pub allowed: Vec<Value>,
    /// Values that were probably meant; for an unknown key, the names of similar parameters.
    pub suggestions: Vec<String>,
    /// Whether the corrected call in the report can fix this issue, although `suggestions` does not show how.
    pub(crate) is_mendable: bool,
}

impl Issue {
    pub(crate) fn new(path: String, code: IssueCode, problem: impl Into<String>) -> Issue {
        Issue {
            path,
            code,
            problem: problem.into(),
            expected: None,
            received: None,
            allowed: Vec::new(),
            suggestions: Vec::new(),
            is_mendable: false,
        }
    }

    pub(crate) fn is_at_top(&self) -> bool {
        matches!(self.parent_and_key(), Some(("", _)))
    }

    /// Splits the path into the path of the parent and the last segment, which stays escaped. Returns `None` for the arguments as a whole.
    pub(crate) fn parent_and_key(&self) -> Option<(&str, &str)> {
        let slash = self.path.bytes().rposition(|byte| byte == b'/')?;
        Some((self.path.get(..slash)?, self.path.get(slash + 1..)?))
    }
}
