//! Finds what makes a set of tools hard to use for a model.

mod checks;
mod groups;
mod hints;
mod parameters;
mod words;

use super::registry::Registry;
use std::collections::BTreeSet;
use std::fmt;

impl Registry {
    /// Reports what makes these tools hard to choose or to call correctly: parameters without a description, descriptions with
    /// other names, similar words, texts that are too long or repeated, names that a provider refuses, examples that would be
    /// refused. For a test:
    ///
    /// ```
    /// use agent::{Registry, lint::Lint, tool, tools};
    ///
    /// /// Moves money to `acount`.
    /// #[tool]
    /// fn transfer(account: String, /** In cents. */ amount: u64) {}
    ///
    /// let report = Registry::new(tools![transfer])?.lint();
    /// assert_eq!(
    ///     report.to_string(),
    ///     "2 findings:\n\
    ///      - `transfer` /account: has no description: say what it is, `/// …` above it (undocumented_parameter)\n\
    ///      - `transfer`: the description speaks of `acount`, and there is `account` (other_name)"
    /// );
    /// // What is meant to be so is left out by its name; the rest fails the test.
    /// assert!(report.without([Lint::UndocumentedParameter, Lint::OtherName]).into_result().is_ok());
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    ///
    /// Types whose `Debug` shows an argument marked `#[arg(secret)]` are found, too ([`Lint::SecretInDebug`]): two values are made that
    /// differ in the secret alone, and a finding is made if their texts differ. A `Debug` by hand that leaves the secret out is none.
    ///
    /// Tools of others, such as those of an MCP server or of a schema that is read at run time, have hints for who uses them, and
    /// one finding for all parameters with the same fault. Names that look alike are reported once, at the last of the group:
    ///
    /// ```
    /// use agent::{Tool, Registry, ToolSet, Value, json};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = json!({"type": "object", "properties": {"id": {"type": "string"}, "full": {"type": "boolean"}}});
    /// let foreign = Tool::new("get_ticket", "Returns one ticket.", schema, |_: Value, _| async { "open" })?;
    /// let report = Registry::new(ToolSet::new().with(foreign))?.lint();
    /// assert_eq!(
    ///     report.findings()[0].message,
    ///     "2 parameters have no description (/id and /full): explain with `ToolSet::describe`, by name in backticks, or ask \
    ///      the tool's author"
    /// );
    /// # Ok(()) }
    /// ```
    ///
    /// The same tools have the same findings in the same order. Findings are not errors: the tools work.
    pub fn lint(&self) -> LintReport {
        let mut findings = Vec::new();
        for tool in self.tools() {
            checks::check(tool, &mut findings);
        }
        groups::check(&self.definitions(), &mut findings);
        LintReport { findings }
    }
}

/// The kinds of findings of [`Registry::lint`].
///
/// ```
/// use agent::lint::Lint;
///
/// // What an editor or a configuration would list.
/// assert!(Lint::ALL.iter().any(|lint| lint.as_str() == "undocumented_parameter"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Lint {
    /// A tool has no description, by which models choose.
    UndocumentedTool,
    /// A parameter has no description.
    UndocumentedParameter,
    /// A description only repeats the name.
    EmptyWords,
    /// A description refers to a parameter by another name.
    OtherName,
    /// The members of a closed set look alike, or are codes without a description.
    AmbiguousWords,
    /// A description is longer than some providers accept, or than models follow.
    LongDescription,
    /// Two tools, or two parameters of one, have the same description.
    SameDescription,
    /// Tools have nearly the same name or description.
    LookAlike,
    /// A provider refuses a request with a parameter of this name.
    RefusedName,
    /// The `Debug` of a type with secret arguments shows them, mostly because it is derived.
    SecretInDebug,
    /// An example would be refused as a call. An example of a tool is therefore not sent to models.
    RefusedExample,
}

impl Lint {
    /// All kinds of findings.
    pub const ALL: [Self; 11] = [
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
        }
    }
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One finding of [`Registry::lint`].
///
/// ```
/// use agent::{Registry, lint::Lint, tool, tools};
///
/// /// Moves money.
/// #[tool]
/// fn transfer(account: String) {}
///
/// let report = Registry::new(tools![transfer])?.lint();
/// let finding = &report.findings()[0];
/// assert_eq!((finding.lint, finding.tool.as_str()), (Lint::UndocumentedParameter, "transfer"));
/// assert_eq!(finding.path, "/account");
/// # Ok::<(), agent::tool::RegistryError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LintFinding {
    /// The kind of finding.
    pub lint: Lint,
    /// The name of the tool.
    pub tool: String,
    /// The parameter, as a JSON pointer into arguments; empty for the tool itself. `*` stands for any item or key.
    pub path: String,
    /// The finding, and what to do about it.
    pub message: String,
}

impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lint, tool, path, message } = self;
        let path = if path.is_empty() { String::new() } else { format!(" {path}") };
        write!(f, "`{tool}`{path}: {message} ({})", lint.as_str())
    }
}

/// The findings of [`Registry::lint`]. `Display` writes a list.
///
/// ```
/// use agent::{Registry, lint::Lint, tool, tools};
///
/// /// Moves money from one account to another.
/// #[tool]
/// fn transfer(/** In cents. */ amount: u64) {}
///
/// // In a test: `?` fails it, with the list.
/// Registry::new(tools![transfer])?.lint().into_result()?;
///
/// /// Pays.
/// #[tool]
/// fn pay(amount: u64) {}
///
/// let report = Registry::new(tools![pay])?.lint();
/// assert!(!report.is_empty());
/// assert!(report.findings().iter().any(|finding| finding.lint == Lint::UndocumentedParameter));
/// // What is meant to be so is left out by its name.
/// let report = report.without([Lint::UndocumentedParameter]);
/// assert!(report.findings().iter().all(|finding| finding.lint != Lint::UndocumentedParameter));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[must_use = "a test fails by `into_result`"]
pub struct LintReport {
    findings: Vec<LintFinding>,
}

impl LintReport {
    /// Returns the findings: of each tool in the order of registration, then of several tools together.
    pub fn findings(&self) -> &[LintFinding] {
        &self.findings
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns the report without these kinds of findings.
    pub fn without(mut self, lints: impl IntoIterator<Item = Lint>) -> Self {
        let lints: BTreeSet<Lint> = lints.into_iter().collect();
        self.findings.retain(|finding| !lints.contains(&finding.lint));
        self
    }

    /// Fails with the report if there are findings: for `?` in a test.
    ///
    /// # Errors
    /// Returns the report itself if there are findings.
    pub fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

crate::error_text::debug_is_the_sentence!(LintReport);

impl fmt::Display for LintReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.findings.len() {
            0 => return f.write_str("no findings"),
            1 => f.write_str("1 finding:")?,
            count => write!(f, "{count} findings:")?,
        }
        self.findings.iter().try_for_each(|finding| write!(f, "\n- {finding}"))
    }
}

impl std::error::Error for LintReport {}
