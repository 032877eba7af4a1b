//! Converts the schemas of tools to the dialect of a provider, within the provider's limits for strict tools.

use super::definition::ToolDefinition;
use super::problem::{RegistryError, RegistryProblem};
use super::registry::Registry;
#[cfg(feature = "http")]
use super::written::WrittenTool;
use crate::schema::{
    ANTHROPIC_OPTIONAL, ANTHROPIC_TOOLS, ANTHROPIC_UNIONS, Change, Dialect, Rendered, Size, render,
};
#[cfg(feature = "http")]
use std::sync::Arc;

impl Registry {
    /// Returns all tools in a dialect, in the order of registration. [`Rendered::is_expressible`] returns whether the dialect can express
    /// a tool. A tool with the option [`strict(false)`](crate::tool::ToolOptions::strict) gets [`Dialect::Plain`] in place of a strict
    /// dialect.
    ///
    /// Anthropic limits the strict tools of one request to 20 tools, 24 optional parameters and 16 unions together. In the order of
    /// registration, each tool that still fits is strict. Every other tool is sent without `strict`, which is not an error. Therefore,
    /// register the tools that should be strict first.
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
    /// let registry = Registry::new(tools![label])?;
    /// let rendered = registry.in_dialect(Dialect::GeminiJsonSchema);
    /// assert_eq!(rendered[0].to_string(), "`label` in `gemini-json-schema`");       // changes to the schema would follow
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn in_dialect(&self, dialect: Dialect) -> Vec<Rendered> {
        tools_in_dialect(&self.definitions(), dialect, true)
    }

    /// Checks that a dialect can express the schema of each tool, exactly or less strictly. Use this method in a test, which then fails if
    /// a provider would refuse one of the tools.
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
    /// let registry = Registry::new(tools![label])?;
    /// registry.check_dialect(Dialect::GeminiJsonSchema)?;
    /// let error = registry.check_dialect(Dialect::OpenAiStrict).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "tool `label` in `openai-strict`: /properties/labels: `additionalProperties` cannot be expressed: a map: keys that are not \
    ///      known beforehand"
    /// );
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    ///
    /// # Errors
    /// Lists each path in a schema that cannot be expressed.
    pub fn check_dialect(&self, dialect: Dialect) -> Result<(), RegistryError> {
        let problems = self.in_dialect(dialect).into_iter().flat_map(|Rendered { tool, changes, .. }| {
            changes
                .into_iter()
                .filter(Change::is_not_expressible)
                .map(move |change| RegistryProblem::NotExpressible { tool: tool.clone(), dialect, change })
        });
        RegistryError::none_of(problems.collect())
    }
}

/// Returns the dialect of a tool in a request. Only strict tools get a strict dialect; other tools get [`Dialect::Plain`] instead.
/// `is_asked` decides for a tool without the option `strict`.
fn dialect_of(definition: &ToolDefinition, dialect: Dialect, is_asked: bool) -> Dialect {
    if !dialect.is_strict() || definition.strict().unwrap_or(is_asked) { dialect } else { Dialect::Plain }
}

/// Returns the tools of one request in a dialect. `is_asked` is whether the request asks for strict tools. Strict tools that exceed
/// Anthropic's limits become [`Dialect::Plain`].
pub(crate) fn tools_in_dialect(
    definitions: &[ToolDefinition],
    dialect: Dialect,
    is_asked: bool,
) -> Vec<Rendered> {
    let mut left = RemainingBudget::new();
    let tools = definitions.iter().map(|definition| {
        let plan = definition.plan();
        let mut rendered = render(plan, dialect_of(definition, dialect, is_asked));
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
/// Returns the text of each tool in a dialect. If `is_asked`, tools are strict by default. The texts are cached by `form` and dialect, so
/// `write` must not depend on anything else.
#[cfg_attr(
    not(any(feature = "anthropic", feature = "gemini", feature = "openai")),
    allow(dead_code, reason = "only the protocols of providers write definitions")
)]
pub(crate) fn written_tools(
    definitions: &[ToolDefinition],
    dialect: Dialect,
    is_asked: bool,
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
        let tool = written(definition, dialect_of(definition, dialect, is_asked));
        let is_over = tool.dialect == Dialect::AnthropicStrict && left.take(&tool.size).is_err();
        if is_over { written(definition, Dialect::Plain).text } else { tool.text }
    });
    texts.collect()
}

struct RemainingBudget {
    tools: usize,
    optional: usize,
    unions: usize,
}

impl RemainingBudget {
    fn new() -> Self {
        Self { tools: ANTHROPIC_TOOLS, optional: ANTHROPIC_OPTIONAL, unions: ANTHROPIC_UNIONS }
    }

    /// Subtracts the size of a tool. If the tool exceeds a limit, returns the limit and subtracts nothing.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::set::ToolSet;
    use crate::tool::{context::ToolContext, output::ToolOutput, value::Tool};
    use serde_json::{Value, json};

    #[test]
    fn a_tool_that_is_never_strict_is_plain_in_a_strict_dialect() {
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let registry = |strict: Option<bool>| {
            let body = |_: Value, _: ToolContext| async { ToolOutput::text("") };
            let tool = Tool::new("f", "Does it.", map.clone(), body).unwrap();
            let tool = match strict {
                Some(strict) => tool.configure(|options| options.strict(strict)).unwrap(),
                None => tool,
            };
            Registry::new(ToolSet::new().with(tool)).unwrap()
        };
        for dialect in [Dialect::OpenAiStrict, Dialect::AnthropicStrict] {
            assert!(registry(None).check_dialect(dialect).is_err());
            assert!(registry(Some(true)).check_dialect(dialect).is_err());
            let never = registry(Some(false));
            assert!(never.check_dialect(dialect).is_ok());
            assert_eq!(never.in_dialect(dialect)[0].dialect, Dialect::Plain);
        }
        let rendered = registry(Some(false)).in_dialect(Dialect::GeminiLegacy);
        assert_eq!(rendered[0].dialect, Dialect::GeminiLegacy);
    }
}
