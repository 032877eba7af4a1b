//! What a dialect does not say as the plan does.

use serde::Serialize;
use std::fmt;

/// One difference between a rendered schema and the plan, as [`render`](super::render) lists them.
///
/// Its `Display` is one line: ``/properties/limit: `maximum` is said in the description``.
///
/// ```
/// use agent::args::{Plan, PlanOptions};
/// use agent::schema::{Dialect, render};
///
/// #[derive(agent::ToolArgs)]
/// struct Search { #[arg(range(0..=50))] limit: u32 }
///
/// let plan = Plan::for_type::<Search>("search", PlanOptions::default())?;
/// let rendered = render(&plan, Dialect::AnthropicStrict);
/// let change = &rendered.changes[0];
/// assert_eq!((change.path.as_str(), change.keyword.as_str()), ("/properties/limit", "minimum"));
/// assert!(!change.is_not_expressible());
/// # Ok::<(), agent::args::SchemaError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// JSON pointer to the place in the rendered schema; for [`Unsaid`](ChangeKind::Unsaid) in the schema that was given.
    /// Empty for the whole.
    pub path: String,
    /// The keyword of JSON Schema that is meant.
    pub keyword: String,
    /// What became of it.
    #[serde(flatten)]
    pub kind: ChangeKind,
}

/// What became of a keyword that a dialect does not have.
///
/// ```
/// use agent::args::{Plan, PlanOptions};
/// use agent::schema::{ChangeKind, Dialect, render};
///
/// #[derive(agent::ToolArgs)]
/// struct Search { query: String, limit: Option<u32> }
///
/// let plan = Plan::for_type::<Search>("search", PlanOptions::default())?;
/// let changes = render(&plan, Dialect::OpenAiStrict).changes;
/// assert!(changes.iter().any(|change| change.kind == ChangeKind::MadeNullable && change.path.contains("limit")));
/// # Ok::<(), agent::args::SchemaError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// Not said at all; replies are checked for it all the same.
    Dropped,
    /// Said in words, in the description.
    Described,
    /// Said by other keywords, which may allow more.
    Rewritten,
    /// An open object takes only the keys that it lists.
    Closed,
    /// An optional property is required and nullable; null means absent ([`restore_nulls`](super::restore_nulls)).
    MadeNullable,
    /// An optional property that takes null anyway is required.
    MadeRequired,
    /// A required property may be left out in this dialect; the description says that it is required.
    MadeOptional,
    /// A keyword of a given schema that the plan does not model (feature `full-schema`); replies are checked for it.
    Unsaid,
    /// The dialect cannot say this in any way.
    NotExpressible {
        /// Why, in words.
        reason: String,
    },
}

impl Change {
    /// Whether the dialect has no way to say it.
    pub fn is_not_expressible(&self) -> bool {
        matches!(self.kind, ChangeKind::NotExpressible { .. })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "(schema)" } else { &self.path };
        write!(f, "{path}: `{}` ", self.keyword)?;
        match &self.kind {
            ChangeKind::Dropped => f.write_str("is dropped"),
            ChangeKind::Described => f.write_str("is said in the description"),
            ChangeKind::Rewritten => f.write_str("is said by other keywords"),
            ChangeKind::Closed => f.write_str("is closed: only the listed keys can be given"),
            ChangeKind::MadeNullable => f.write_str("lists it although it is optional; null means absent"),
            ChangeKind::MadeRequired => f.write_str("lists it although it is optional; it takes null"),
            ChangeKind::MadeOptional => {
                f.write_str("does not list it; the description says that it is required")
            }
            ChangeKind::Unsaid => f.write_str("of the given schema is not said"),
            ChangeKind::NotExpressible { reason } => write!(f, "cannot be expressed: {reason}"),
        }
    }
}
