//! The error for an invalid tool definition.

use super::options::ToolOptions;
use crate::args::SchemaError;

/// Maximum length of a name that every provider accepts.
pub(crate) const MAX_NAME: usize = 64;

/// Returns whether every provider accepts this name: `[A-Za-z0-9_-]{1,64}`.
pub(crate) fn is_valid_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

impl ToolOptions {
    pub(super) fn check(&self) -> Result<(), DefinitionError> {
        if !is_valid_name(&self.name) {
            return Err(DefinitionError::Name { name: self.name.to_string() });
        }
        if !self.may_be_undescribed && self.description.trim().is_empty() {
            return Err(DefinitionError::NoDescription);
        }
        Ok(())
    }
}

/// The error for an invalid tool definition.
///
/// ```
/// use agent::{ToolBuilder, ToolContext, Value, tool::DefinitionError};
///
/// let error = ToolBuilder::new("get weather").description("The weather.").build(|_: Value, _: ToolContext| async {});
/// assert!(matches!(error, Err(DefinitionError::Name { name }) if name == "get weather"));
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The name is not `[A-Za-z0-9_-]{1,64}`, so some provider would refuse it.
    #[error("a tool cannot be named {name:?}: use 1 to 64 letters, digits, `_` or `-`")]
    Name {
        /// The name.
        name: String,
    },
    /// The description is missing. Models choose tools by their descriptions.
    #[error("the description is empty: say what the tool does")]
    NoDescription,
    /// A parameter that is declared at run time has a mistake, or a parameter cannot be hidden or set to a fixed value.
    #[error("parameter {name:?}: {reason}")]
    Parameter {
        /// The name of the parameter.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The function that gives the parameters or the examples for a source panicked.
    #[error("the function that gives the parameters or the examples panicked: {panic}")]
    Panicked {
        /// The message of the panic.
        panic: String,
    },
    /// The set does not have the requested tool.
    #[error("there is no such tool in the set{}", did_you_mean_text(suggestions))]
    NotInSet {
        /// Names of similar tools, best first.
        suggestions: Vec<String>,
    },
    /// The schema cannot be compiled; the error says where and why.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

crate::error_text::debug_is_the_sentence!(DefinitionError);

fn did_you_mean_text(suggestions: &[String]) -> String {
    match suggestions {
        [] => String::new(),
        all => format!("; did you mean `{}`?", all.join("` or `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::source::Source;
    use crate::tool::value::Tool;

    #[test]
    fn a_panic_names_the_functions_that_may_have_panicked() {
        let schema = serde_json::json!({"type": "object"});
        let tool = Tool::new("t", "Does it.", schema, |_args, _cx| async { "done" }).unwrap();
        let tool = tool.configure(|options| options.examples_for(|_| panic!("no example"))).unwrap();
        let error = tool.definition_for(&Source::new(1_u8)).unwrap_err();
        assert!(matches!(&error, DefinitionError::Panicked { panic } if panic == "no example"));
        assert!(error.to_string().contains("examples"), "{error}");
    }
}
