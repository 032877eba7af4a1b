//! The differences between a `Plan` and its schema in a dialect.

use serde::Serialize;
use std::fmt;

/// One difference between a rendered schema and its [`Plan`](crate::args::Plan), as listed by [`render`](super::render).
///
/// Its `Display` is one line: ``/properties/limit: `maximum` is said in the description``. As JSON, a change also contains its kind:
/// `dropped`, `described`, `rewritten`, `closed`, `made_nullable`, `made_required`, `made_optional`, `unsaid` or `not_expressible`.
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
/// assert_eq!(serde_json::to_value(change).unwrap()["change"], "described");
/// # Ok::<(), agent::args::SchemaError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// JSON Pointer into the rendered schema, or into [`Plan::schema`](crate::args::Plan::schema) for the kind `unsaid`. Empty for the
    /// whole schema.
    pub path: String,
    /// The JSON Schema keyword.
    pub keyword: String,
    #[serde(flatten)]
    pub(crate) kind: ChangeKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(crate) enum ChangeKind {
    /// The keyword is left out. Replies are still checked against it.
    Dropped,
    Described,
    /// Other keywords replace the keyword, and may allow more values.
    Rewritten,
    /// An object that accepted other keys accepts only the listed keys.
    Closed,
    /// An optional property becomes required and nullable; null means absent ([`restore_nulls`](super::restore_nulls)).
    MadeNullable,
    /// An optional property that accepts null anyway becomes required.
    MadeRequired,
    /// A required property may be left out in this dialect; the description says that it is required.
    MadeOptional,
    /// A keyword of the application's schema is not rendered. The feature `full-schema` still checks replies against it.
    Unsaid,
    /// The dialect cannot express the keyword in any way, the schema exceeds a limit of the dialect, or the provider refuses the name of a
    /// property.
    NotExpressible {
        reason: String,
    },
}

impl Change {
    /// Returns whether the dialect cannot express the keyword, the size of the schema, or the name of a property.
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
