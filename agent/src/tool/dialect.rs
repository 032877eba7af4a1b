//! All tools in the schema dialect of a provider: losses, tools that cannot be expressed, and the limits of strict tools.

use super::definition::ToolDefinition;
use super::registry::Registry;
#[cfg(feature = "http")]
use super::written::WrittenTool;
use crate::schema::{
    ANTHROPIC_OPTIONAL, ANTHROPIC_TOOLS, ANTHROPIC_UNIONS, Change, Dialect, Rendered, Size, render,
};
use std::fmt;
#[cfg(feature = "http")]
use std::sync::Arc;

/// The tools of a [`Registry`] in one dialect. Created by [`Registry::check_dialect`].
///
/// Its `Display` lists each tool with its changes.
///
/// ```
/// use agent::{Registry, schema::Dialect, tool, tools};
///
/// /// Doubles a number.
/// #[tool]
/// fn double(#[arg(range(1..=9))] n: i64) -> i64 {
///     n * 2
/// }
///
/// let report = Registry::new(tools![double])?.check_dialect(Dialect::AnthropicStrict);
/// assert!(report.is_expressible());
/// assert!(report.tools[0].is_strict() && report.tools[0].tool == "double");
/// println!("{report}");                               // each tool, and what its schema cannot say
/// report.into_result()?;                              // fails a test where a tool cannot be expressed
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use = "a test fails by `into_result`"]
pub struct DialectReport {
    /// The requested dialect.
    pub dialect: Dialect,
    /// The schema of each tool, in the order of registration.
    pub tools: Vec<Rendered>,
}

/// The error for tools that a dialect cannot express; its text lists each place.
///
/// ```
/// use agent::{Registry, schema::Dialect, tool, tools};
/// use std::collections::BTreeMap;
///
/// /// Adds labels.
/// #[tool]
/// fn label(labels: BTreeMap<String, String>) {}
///
/// let error = Registry::new(tools![label])?.check_dialect(Dialect::OpenAiStrict).into_result().unwrap_err();
/// let (name, changes) = error.tools().next().unwrap();
/// assert_eq!((name, changes[0].path.as_str()), ("label", "/properties/labels"));
/// # Ok::<(), agent::tool::RegistryError>(())
/// ```
#[derive(Clone, thiserror::Error)]
#[error("{} of {} cannot be expressed in `{dialect}`:{}", counted(tools.len()), count, listed(tools))]
pub struct NotExpressible {
    dialect: Dialect,
    count: usize,
    tools: Vec<(String, Vec<Change>)>,
}

crate::error_text::debug_is_the_sentence!(NotExpressible);

impl NotExpressible {
    /// Returns the tools by name, with what cannot be expressed of each.
    pub fn tools(&self) -> impl Iterator<Item = (&str, &[Change])> {
        self.tools.iter().map(|(name, changes)| (name.as_str(), &changes[..]))
    }
}

fn counted(tools: usize) -> String {
    if tools == 1 { "1 tool".into() } else { format!("{tools} tools") }
}

fn listed(tools: &[(String, Vec<Change>)]) -> String {
    let lines =
        tools.iter().flat_map(|(name, changes)| changes.iter().map(move |c| format!("\n- `{name}` {c}")));
    lines.collect()
}

impl Registry {
    /// Returns the tools in a dialect, for a test that fails when a provider could not accept one of them.
    ///
    /// At Anthropic the strict tools of one request share a budget: 20 tools, 24 optional parameters, 16 unions. It is assigned
    /// in the order of registration: a tool that fits into the rest is strict, and one that does not is sent without `strict`,
    /// which is not an error. Register first the tools that should be strict.
    ///
    /// ```
    /// use agent::{Registry, schema::Dialect, tool, tools};
    /// use std::collections::BTreeMap;
    ///
    /// /// Adds labels.
    /// #[tool]
    /// fn label(labels: BTreeMap<String, String>) -> String {
    ///     format!("{labels:?}")
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = Registry::new(tools![label])?;
    /// registry.check_dialect(Dialect::GeminiJsonSchema).into_result()?;
    /// let error = registry.check_dialect(Dialect::OpenAiStrict).into_result().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "1 tool of 1 cannot be expressed in `openai-strict`:\n- `label` /properties/labels: \
    ///      `additionalProperties` cannot be expressed: a map: keys that are not known beforehand"
    /// );
    /// # Ok(()) }
    /// ```
    pub fn check_dialect(&self, dialect: Dialect) -> DialectReport {
        DialectReport { dialect, tools: tools_in_dialect(&self.definitions(), dialect) }
    }
}

/// Returns the tools of one request in a dialect.
pub(crate) fn tools_in_dialect(definitions: &[ToolDefinition], dialect: Dialect) -> Vec<Rendered> {
    let mut left = RemainingBudget::new();
    let tools = definitions.iter().map(|definition| {
        let plan = definition.plan();
        let mut rendered = render(plan, dialect);
        if rendered.dialect == Dialect::AnthropicStrict
            && let Err(limit) = left.take(&Size::of(&rendered.schema))
        {
            rendered = Rendered { over_budget: Some(limit), ..render(plan, Dialect::Plain) };
        }
        Rendered { tool: definition.name().to_owned(), ..rendered }
    });
    tools.collect()
}

#[cfg(feature = "http")]
/// Returns the text of each tool of one request in a dialect. `form` is the name of what `write` writes, which must depend on the definition
/// and the schema alone.
#[cfg_attr(
    not(any(feature = "anthropic", feature = "gemini", feature = "openai")),
    allow(dead_code, reason = "only the protocols of providers write definitions")
)]
pub(crate) fn written_tools(
    definitions: &[ToolDefinition],
    dialect: Dialect,
    form: &'static str,
    write: impl Fn(&ToolDefinition, Rendered) -> String,
) -> Vec<Arc<str>> {
    let written = |definition: &ToolDefinition, dialect: Dialect| {
        let is_same = |tool: &&WrittenTool| tool.form == form && tool.asked == dialect;
        if let Some(known) = definition.written().lock().iter().find(is_same) {
            return known.clone();
        }
        let rendered = render(definition.plan(), dialect);
        let size =
            if dialect == Dialect::AnthropicStrict { Size::of(&rendered.schema) } else { Size::default() };
        let (asked, dialect) = (dialect, rendered.dialect);
        let tool = WrittenTool { form, asked, text: write(definition, rendered).into(), dialect, size };
        let mut known = definition.written().lock();
        if !known.iter().any(|other| is_same(&other)) {
            known.push(tool.clone());
        }
        tool
    };
    let mut left = RemainingBudget::new();
    let texts = definitions.iter().map(|definition| {
        let tool = written(definition, dialect);
        let is_over = tool.dialect == Dialect::AnthropicStrict && left.take(&tool.size).is_err();
        if is_over { written(definition, Dialect::Plain).text } else { tool.text }
    });
    texts.collect()
}

/// The rest of a request's budget.
struct RemainingBudget {
    tools: usize,
    optional: usize,
    unions: usize,
}

impl RemainingBudget {
    fn new() -> Self {
        Self { tools: ANTHROPIC_TOOLS, optional: ANTHROPIC_OPTIONAL, unions: ANTHROPIC_UNIONS }
    }

    /// Takes everything that a tool needs, or nothing.
    fn take(&mut self, size: &Size) -> Result<(), String> {
        let tools = self.tools.checked_sub(1).ok_or_else(|| format!("{ANTHROPIC_TOOLS} strict tools"))?;
        let optional = self
            .optional
            .checked_sub(size.optional)
            .ok_or_else(|| format!("{ANTHROPIC_OPTIONAL} optional parameters"))?;
        let unions =
            self.unions.checked_sub(size.unions).ok_or_else(|| format!("{ANTHROPIC_UNIONS} unions"))?;
        *self = RemainingBudget { tools, optional, unions };
        Ok(())
    }
}

impl DialectReport {
    /// Whether the dialect can express what each tool accepts, or a superset of it.
    pub fn is_expressible(&self) -> bool {
        self.tools.iter().all(Rendered::is_expressible)
    }

    /// Returns the report, or the tools that the dialect cannot express.
    ///
    /// # Errors
    /// [`NotExpressible`], which lists every place.
    pub fn into_result(self) -> Result<Self, NotExpressible> {
        let places = |tool: &Rendered| {
            let places: Vec<Change> = tool.not_expressible().cloned().collect();
            (!places.is_empty()).then(|| (tool.tool.clone(), places))
        };
        let tools: Vec<_> = self.tools.iter().filter_map(places).collect();
        if tools.is_empty() {
            Ok(self)
        } else {
            Err(NotExpressible { dialect: self.dialect, count: self.tools.len(), tools })
        }
    }
}

impl fmt::Display for DialectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in `{}`:", counted(self.tools.len()), self.dialect)?;
        for tool in &self.tools {
            write!(f, "\n`{}`", tool.tool)?;
            if tool.is_strict() {
                f.write_str(", strict")?;
            } else if self.dialect.is_strict() {
                f.write_str(", not strict")?;
            }
            if let Some(budget) = &tool.over_budget {
                write!(f, ": the request is full ({budget})")?;
            }
            for change in &tool.changes {
                write!(f, "\n- {change}")?;
            }
        }
        Ok(())
    }
}
