//! What can be wrong with a set of tools, and with the name of one.

use super::definition::DefinitionError;
use super::state::{DuplicateState, StateKey};
use crate::args::{InvalidArguments, Issue};
use std::fmt::{self, Write};

/// How many tools the text about an unknown one lists.
const LISTED: usize = 40;

/// There is no tool of that name.
///
/// ```
/// use agent::{Registry, tool, tools};
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// let registry = Registry::new(tools![add])?;
/// let unknown = registry.fetch("ad").err().expect("there is no such tool");
/// assert_eq!((unknown.name(), unknown.suggestions()), ("ad", &["add".to_owned()][..]));
/// # Ok::<(), agent::RegistryError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownTool {
    name: String,
    suggestions: Vec<String>,
    known: Vec<String>,
    more: usize,
}

crate::error_text::debug_is_the_sentence!(UnknownTool);

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

    /// The name that was asked for, cut when it is long.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of tools that may have been meant, best first.
    pub fn suggestions(&self) -> &[String] {
        &self.suggestions
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

impl std::error::Error for UnknownTool {}

/// Tools that cannot be put together; says everything that is wrong, a line each.
///
/// ```
/// use agent::{Registry, RegistryProblem, tool, tools};
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
    pub(super) fn one(problem: RegistryProblem) -> Self {
        Self { problems: vec![problem] }
    }

    pub(crate) fn none_of(problems: Vec<RegistryProblem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// The same for somebody who prompts an assistant, which has everything but what a prompt brings.
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

    /// Everything that is wrong.
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

/// One thing that is wrong with a set of tools.
///
/// ```
/// use agent::{Registry, RegistryProblem, ToolContext, tool, tools};
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
/// # Ok::<(), agent::RegistryError>(())
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryProblem {
    /// Two tools of one name.
    #[error("two tools are named `{name}`")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A tool cannot be defined like this.
    #[error("tool `{tool}` cannot be defined: {source}")]
    Definition {
        /// The tool.
        tool: String,
        /// What is wrong with it.
        source: DefinitionError,
    },
    /// A tool wants state that nobody gives.
    #[error("tool `{tool}` needs state `{state}`: {}", how_to_give(state, *given_as_arc, false))]
    MissingState {
        /// The tool.
        tool: String,
        /// The type of the state.
        state: StateKey,
        /// Whether there is an `Arc` of it, given as a value of its own.
        given_as_arc: bool,
    },
    /// An example that would be refused as a call.
    #[error("example {number} of tool `{tool}`: {report}")]
    Example {
        /// The tool.
        tool: String,
        /// Which one, from 1.
        number: usize,
        /// What is wrong with it.
        report: InvalidArguments,
    },
    /// An example of a parameter that would be refused.
    #[error("example {number} of `{parameter}` of tool `{tool}`: {}", issues.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    ParameterExample {
        /// The tool.
        tool: String,
        /// Where the parameter stands, as a JSON pointer into arguments.
        parameter: String,
        /// Which one, from 1.
        number: usize,
        /// What is wrong with it.
        issues: Vec<Issue>,
    },
    /// Two values of one type.
    #[error(transparent)]
    State(#[from] DuplicateState),
    /// A time limit, but no clock.
    #[error("tool `{tool}` has a timeout, which needs the feature `runtime`")]
    NoClock {
        /// The tool.
        tool: String,
    },
    /// There is no such tool.
    #[error(transparent)]
    Unknown(#[from] UnknownTool),
}

crate::error_text::debug_is_the_sentence!(RegistryProblem);

/// A name out of a model, short enough to be said again.
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
