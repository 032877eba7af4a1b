//! Finds faults that make a set of tools hard to use for a model.

mod checks;
mod groups;
mod hints;
mod parameters;
mod words;

use super::registry::Registry;
use std::fmt;

impl Registry {
    /// Reports faults that make these tools hard to choose or to call correctly. Examples are missing, repeated or too long descriptions,
    /// descriptions that name a parameter that does not exist, similar names, names that a provider refuses, refused examples, and
    /// definitions that cost many tokens in each request. Use it in a test:
    ///
    /// ```
    /// use agent::{Registry, lint::Lint, tool, tools};
    ///
    /// /// Moves money to `acount`.
    /// #[tool]
    /// fn transfer(account: String, /** In cents. */ amount: u64) {}
    ///
    /// let mut findings = Registry::new(tools![transfer])?.lint();
    /// assert_eq!(
    ///     findings[0].to_string(),
    ///     "`transfer` /account: has no description: say what it is, `/// …` above it (undocumented_parameter)"
    /// );
    /// assert_eq!(
    ///     findings[1].to_string(),
    ///     "`transfer`: the description speaks of `acount`, and there is `account` (other_name)"
    /// );
    /// // Accepted kinds of findings are removed. Any other finding fails the test, which shows the list.
    /// findings.retain(|finding| ![Lint::UndocumentedParameter, Lint::OtherName].contains(&finding.lint));
    /// assert_eq!(findings, []);
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    ///
    /// Types whose `Debug` shows an argument marked `#[arg(secret)]` are found, too ([`Lint::SecretInDebug`]). The lint creates two values
    /// that differ only in the secret, and reports the type if their `Debug` texts differ. A hand-written `Debug` that leaves the secret
    /// out is not reported.
    ///
    /// A tool is foreign if `#[tool]` does not define it, for example a tool of an MCP server. The advice about a foreign tool is for the
    /// user of the tool, not for its author. Parameters of a foreign tool with the same fault share one finding:
    ///
    /// ```
    /// use agent::{Tool, Registry, ToolSet, Value, json};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = json!({"type": "object", "properties": {"id": {"type": "string"}, "full": {"type": "boolean"}}});
    /// let foreign = Tool::new("get_ticket", "Returns one ticket.", schema, |_: Value, _| async { "open" })?;
    /// let findings = Registry::new(ToolSet::new().with(foreign))?.lint();
    /// assert_eq!(
    ///     findings[0].message,
    ///     "2 parameters have no description (/id and /full): explain with `ToolSet::describe`, by name in backticks, or ask \
    ///      the tool's author"
    /// );
    /// # Ok(()) }
    /// ```
    ///
    /// The findings about single tools come first, in the order of registration, and then the findings about groups of tools. Tools that
    /// look alike are reported once, at the last tool of the group. Only the first 400 tools are searched for look-alikes. Findings are not
    /// errors: the tools work.
    #[must_use = "the tools work all the same: a test compares the findings with `[]`"]
    pub fn lint(&self) -> Vec<LintFinding> {
        let mut findings = Vec::new();
        for tool in self.tools() {
            checks::check(tool, &mut findings);
        }
        groups::check(&self.definitions(), &mut findings);
        findings
    }
}

/// A kind of finding of [`Registry::lint`].
///
/// ```
/// use agent::lint::Lint;
///
/// // An editor or a configuration can list the names of all lints.
/// assert!(Lint::ALL.iter().any(|lint| lint.as_str() == "undocumented_parameter"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Lint {
    /// A tool has no description. Models choose tools by their descriptions.
    UndocumentedTool,
    /// A parameter has no description.
    UndocumentedParameter,
    /// A description only repeats the name.
    EmptyWords,
    /// A description refers to a parameter by a name that no parameter has.
    OtherName,
    /// The values of an enumeration look alike, or are single letters or numbers that no description explains.
    AmbiguousWords,
    /// The description of a tool is longer than some provider accepts, or the description of a parameter is too long to help a model.
    LongDescription,
    /// Two tools, or two parameters of one tool, have the same description.
    SameDescription,
    /// Tools have nearly the same name or description.
    LookAlike,
    /// A provider refuses a request with a parameter of this name.
    RefusedName,
    /// The `Debug` of a type with secret arguments shows these arguments, usually because it is derived.
    SecretInDebug,
    /// An example of a call, or of a parameter, would be refused. Refused examples of a call are not sent to models.
    RefusedExample,
    /// A definition costs [more than 1,000 tokens](crate::ToolDefinition::estimated_tokens) in each request.
    CostlyDefinition,
}

impl Lint {
    /// All kinds of findings.
    pub const ALL: [Self; 12] = [
        Self::UndocumentedTool,
        Self::UndocumentedParameter,
        Self::EmptyWords,
        Self::OtherName,
        Self::AmbiguousWords,
        Self::LongDescription,
        Self::SameDescription,
        Self::LookAlike,
        Self::RefusedName,
        Self::SecretInDebug,
        Self::RefusedExample,
        Self::CostlyDefinition,
    ];

    /// Returns the name in snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UndocumentedTool => "undocumented_tool",
            Self::UndocumentedParameter => "undocumented_parameter",
            Self::EmptyWords => "empty_words",
            Self::OtherName => "other_name",
            Self::AmbiguousWords => "ambiguous_words",
            Self::LongDescription => "long_description",
            Self::SameDescription => "same_description",
            Self::LookAlike => "look_alike",
            Self::RefusedName => "refused_name",
            Self::SecretInDebug => "secret_in_debug",
            Self::RefusedExample => "refused_example",
            Self::CostlyDefinition => "costly_definition",
        }
    }
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One finding of [`Registry::lint`]. `Display` and `Debug` write it as one line.
///
/// ```
/// use agent::{Registry, lint::Lint, tool, tools};
///
/// /// Moves money.
/// #[tool]
/// fn transfer(account: String) {}
///
/// let finding = &Registry::new(tools![transfer])?.lint()[0];
/// assert_eq!((finding.lint, finding.tool.as_str()), (Lint::UndocumentedParameter, "transfer"));
/// assert_eq!(finding.path, "/account");
/// # Ok::<(), agent::tool::RegistryError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LintFinding {
    /// The kind of finding.
    pub lint: Lint,
    /// The name of the tool; for a group of tools, the name of the last one.
    pub tool: String,
    /// The path of the parameter as a JSON pointer, with `*` for any item or key. Empty for the tool itself and for several parameters.
    pub path: String,
    /// The finding, and what to do about it.
    pub message: String,
}

impl fmt::Debug for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lint, tool, path, message } = self;
        let path = if path.is_empty() { String::new() } else { format!(" {path}") };
        write!(f, "`{tool}`{path}: {message} ({})", lint.as_str())
    }
}
