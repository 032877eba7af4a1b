//! Why a schema cannot become a plan.

use std::sync::Arc;

/// A schema that cannot be used as it is: found when a tool is defined, never when it is called.
///
/// It names the keyword and its place, for example a keyword that the plan cannot honour, a pattern that is no
/// regular expression, or a reference that leads nowhere.
#[derive(Clone, Debug, thiserror::Error)]
#[error("schema of `{tool}` refused at `#{pointer}`: `{keyword}` {reason}")]
pub struct SchemaError {
    tool: String,
    keyword: String,
    pointer: String,
    reason: String,
    #[source]
    source: Option<Arc<regex::Error>>,
}

impl SchemaError {
    pub(super) fn new(keyword: &str, pointer: &str, reason: impl Into<String>) -> SchemaError {
        SchemaError {
            tool: String::new(),
            keyword: keyword.into(),
            pointer: pointer.into(),
            reason: reason.into(),
            source: None,
        }
    }

    pub(super) fn regex(pointer: &str, keyword: &str, error: regex::Error) -> SchemaError {
        SchemaError {
            source: Some(Arc::new(error)),
            ..SchemaError::new(
                keyword,
                pointer,
                "is not a regular expression that can be checked in linear time",
            )
        }
    }

    pub(crate) fn too_large() -> SchemaError {
        SchemaError::new(
            "$ref",
            "",
            "makes the schema too large: shared definitions are written out where they are used",
        )
    }

    pub(super) fn of(mut self, tool: &str) -> SchemaError {
        self.tool = tool.into();
        self
    }

    /// The tool whose schema it is.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The keyword that cannot be honoured.
    pub fn keyword(&self) -> &str {
        &self.keyword
    }

    /// JSON pointer to the schema that has it.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Why, in words.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
