//! Errors in a set of tools, and the error for an unknown tool.

use super::call_error::CallError;
use super::definition_error::DefinitionError;
use super::state::StateKey;
use crate::args::{InvalidArguments, Issue};
use crate::schema::{Change, Dialect};
use std::fmt::{self, Write};

/// Maximum number of tools that the text about an unknown tool lists.
const LISTED: usize = 40;

/// A name that no tool has. `Display` writes the sentence for the model.
pub(crate) struct UnknownTool {
    name: String,
    suggestions: Vec<String>,
    known: Vec<String>,
    more: usize,
}

impl UnknownTool {
    pub(super) fn new<'n>(
        name: &str,
        suggestions: &[&str],
        known: impl ExactSizeIterator<Item = &'n str>,
    ) -> Self {
        Self {
            name: cut(name),
            suggestions: suggestions.iter().map(|&name| name.to_owned()).collect(),
            more: known.len().saturating_sub(LISTED),
            known: known.take(LISTED).map(str::to_owned).collect(),
        }
    }
}

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "There is no tool {:?}", self.name)?;
        if self.suggestions.is_empty() {
            f.write_char('.')?;
        } else {
            let quoted: Vec<String> = self.suggestions.iter().map(|name| format!("{name:?}")).collect();
            write!(f, "; did you mean {}?", quoted.join(" or "))?;
        }
        match (self.known.is_empty(), self.more) {
            (true, _) => f.write_str(" There are no tools."),
            (false, 0) => write!(f, " Tools: {}.", self.known.join(", ")),
            (false, more) => write!(f, " Tools: {} and {more} more.", self.known.join(", ")),
        }
    }
}

impl From<UnknownTool> for CallError {
    fn from(unknown: UnknownTool) -> Self {
        let text = unknown.to_string();
        Self::UnknownTool { name: unknown.name, suggestions: unknown.suggestions, text }
    }
}

impl From<UnknownTool> for RegistryProblem {
    fn from(unknown: UnknownTool) -> Self {
        let text = unknown.to_string();
        Self::Unknown { name: unknown.name, suggestions: unknown.suggestions, text }
    }
}

/// The problems of tools, and of state that is missing or was added twice. The text has a line for each problem.
///
/// ```
/// use agent::{Registry, tool, tool::RegistryProblem, tools};
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// let error = Registry::new(tools![add, { tools![add] }]).unwrap_err();
/// assert!(matches!(&error.problems()[0], RegistryProblem::Duplicate { name } if name == "add"));
/// ```
#[derive(Clone)]
pub struct RegistryError {
    problems: Vec<RegistryProblem>,
}

crate::error_text::debug_is_the_sentence!(RegistryError);

impl RegistryError {
    pub(super) fn one(problem: impl Into<RegistryProblem>) -> Self {
        Self { problems: vec![problem.into()] }
    }

    pub(crate) fn duplicate_state(state: StateKey) -> Self {
        Self::one(RegistryProblem::DuplicateState { state })
    }

    pub(crate) fn none_of(problems: Vec<RegistryProblem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// Returns the text of the error for a failed prompt. For missing state, the text tells how to add the state to the prompt.
    #[cfg(feature = "runtime")]
    pub(crate) fn of_a_prompt(&self) -> String {
        let problem = |problem: &RegistryProblem| match problem {
            RegistryProblem::MissingState { tool, state, given_as_arc } => {
                let cure = how_to_give(state, *given_as_arc, true);
                format!("tool `{tool}` needs state `{state}`: {cure}")
            }
            other => other.to_string(),
        };
        self.problems.iter().map(problem).collect::<Vec<_>>().join("\n")
    }

    /// Returns all problems.
    pub fn problems(&self) -> &[RegistryProblem] {
        &self.problems
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            if n > 0 {
                f.write_char('\n')?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for RegistryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problems.first().and_then(std::error::Error::source)
    }
}

/// One problem in a set of tools.
///
/// ```
/// use agent::{Registry, ToolContext, tool, tool::RegistryProblem, tools};
///
/// struct Clock;
///
/// /// What time it is.
/// #[tool]
/// fn time(_clock: &Clock) -> &'static str {
///     "noon"
/// }
///
/// let error = Registry::new(tools![time])?.check_state(&ToolContext::new()).unwrap_err();
/// let RegistryProblem::MissingState { tool, state, .. } = &error.problems()[0] else { unreachable!() };
/// assert_eq!(tool, "time");
/// assert!(state.name().ends_with("Clock"));
/// # Ok::<(), agent::tool::RegistryError>(())
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryProblem {
    /// Two tools have the same name.
    #[error("two tools are named `{name}`")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The definition of a tool is invalid, or a set of tools was changed in an invalid way.
    #[error("tool `{tool}` cannot be defined: {source}")]
    Definition {
        /// The name of the tool. If a set hides or fixes an argument that none of its tools has, the names of all tools of the set.
        tool: String,
        /// The reason.
        source: DefinitionError,
    },
    /// A tool needs state that nothing provides.
    #[error("tool `{tool}` needs state `{state}`: {}", how_to_give(state, *given_as_arc, false))]
    MissingState {
        /// The name of the tool.
        tool: String,
        /// The type of the state.
        state: StateKey,
        /// Whether an `Arc` of the type was added as a value, instead of as shared state.
        given_as_arc: bool,
    },
    /// An example of a call would be refused.
    #[error("example {number} of tool `{tool}`: {report}")]
    Example {
        /// The name of the tool.
        tool: String,
        /// The number of the example, counted from 1.
        number: usize,
        /// The reason.
        report: InvalidArguments,
    },
    /// An example of a parameter would be refused.
    #[error("example {number} of `{parameter}` of tool `{tool}`: {}", issues.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    ParameterExample {
        /// The name of the tool.
        tool: String,
        /// The JSON pointer to the parameter in the arguments.
        parameter: String,
        /// The number of the example, counted from 1.
        number: usize,
        /// The reason.
        issues: Vec<Issue>,
    },
    /// State of one type was added twice, which would be ambiguous.
    #[error("state of type `{state}` is given twice")]
    DuplicateState {
        /// The type of the state.
        state: StateKey,
    },
    /// A tool has a time limit, but there is no clock.
    #[error("tool `{tool}` has a timeout, which needs the feature `runtime`")]
    NoClock {
        /// The name of the tool.
        tool: String,
    },
    /// A dialect cannot express the arguments that a tool accepts.
    #[error("tool `{tool}` in `{dialect}`: {change}")]
    NotExpressible {
        /// The name of the tool.
        tool: String,
        /// The dialect.
        dialect: Dialect,
        /// The path in the schema, and the reason.
        change: Change,
    },
    /// No tool has the requested name.
    #[error("{text}")]
    Unknown {
        /// The requested name, shortened to 64 characters if it is longer.
        name: String,
        /// The names of similar tools, best first.
        suggestions: Vec<String>,
        /// The sentence for the error, which suggests names and lists up to 40 tools.
        text: String,
    },
}

crate::error_text::debug_is_the_sentence!(RegistryProblem);

fn cut(name: &str) -> String {
    const MOST: usize = 64;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn how_to_give(state: &StateKey, given_as_arc: bool, by_prompt: bool) -> &'static str {
    match (given_as_arc, state.name().starts_with("dyn "), by_prompt) {
        (true, _, false) => "an `Arc` of it was given as a value; write `.shared_state(arc)`",
        (true, _, true) => "an `Arc` of it was given as a value; write `.with_shared_state(arc)`",
        (false, true, false) => "add it with `.shared_state(arc)`",
        (false, true, true) => "add it to the prompt with `.with_shared_state(arc)`",
        (false, false, false) => "add it with `.state(…)`",
        (false, false, true) => "add it to the prompt with `.with_state(…)`",
    }
}
