//! The error for a schema that cannot be compiled to a `Plan`.

use std::error::Error;
use std::sync::Arc;

pub(super) type CompileResult<T> = Result<T, SchemaError>;

/// The error for an invalid or unsupported schema. It occurs when a tool is defined, never when a tool is called.
///
/// The error names the keyword and its path in the schema. Examples are a keyword that is not supported, a pattern that is not a regular
/// expression, and a reference to a missing schema.
///
/// ```
/// use agent::args::{Plan, PlanOptions};
///
/// let schema = agent::json!({"type": "object", "properties": {"code": {"type": "string", "pattern": "("}}});
/// let error = Plan::compile("redeem", &schema, PlanOptions::default()).unwrap_err();
/// assert_eq!((error.tool(), error.keyword(), error.pointer()), ("redeem", "pattern", "/properties/code"));
/// assert_eq!(error.reason(), "is not a regular expression that can be checked in linear time");
/// ```
#[derive(Clone)]
pub struct SchemaError {
    // Boxed, because other errors contain this one and should stay small.
    inner: Box<Inner>,
}

crate::error_text::debug_is_the_sentence!(SchemaError);

#[derive(Clone, Debug, thiserror::Error)]
#[error("schema of `{tool}` refused at `#{pointer}`: `{keyword}` {reason}")]
struct Inner {
    tool: String,
    keyword: String,
    pointer: String,
    reason: String,
    #[source]
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl std::fmt::Display for SchemaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Error for SchemaError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.inner.source()
    }
}

impl SchemaError {
    pub(crate) fn new(keyword: &str, pointer: &str, reason: impl Into<String>) -> SchemaError {
        SchemaError {
            inner: Box::new(Inner {
                tool: String::new(),
                keyword: keyword.into(),
                pointer: pointer.into(),
                reason: reason.into(),
                source: None,
            }),
        }
    }

    pub(super) fn regex(pointer: &str, keyword: &str, error: regex::Error) -> SchemaError {
        let reason = match error {
            regex::Error::CompiledTooBig(_) => "is too large a regular expression",
            _ => "is not a regular expression that can be checked in linear time",
        };
        let mut out = SchemaError::new(keyword, pointer, reason);
        out.inner.source = Some(Arc::new(error));
        out
    }

    #[cfg(feature = "full-schema")]
    pub(super) fn because(mut self, source: Arc<dyn Error + Send + Sync>) -> SchemaError {
        self.inner.source = Some(source);
        self
    }

    pub(crate) fn too_large() -> SchemaError {
        SchemaError::new(
            "$ref",
            "",
            "makes the schema too large: shared definitions are written out where they are used",
        )
    }

    pub(crate) fn of(mut self, tool: &str) -> SchemaError {
        self.inner.tool = tool.into();
        self
    }

    /// Returns the name of the tool.
    pub fn tool(&self) -> &str {
        &self.inner.tool
    }

    /// Returns the keyword for which the schema was refused.
    pub fn keyword(&self) -> &str {
        &self.inner.keyword
    }

    /// Returns the JSON pointer to the schema with the keyword.
    pub fn pointer(&self) -> &str {
        &self.inner.pointer
    }

    /// Returns the reason: the end of a sentence that starts with the keyword.
    pub fn reason(&self) -> &str {
        &self.inner.reason
    }
}
