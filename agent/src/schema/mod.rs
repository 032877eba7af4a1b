//! The schema that a model sees, in the dialect of its provider.
//!
//! A [`Plan`] is the single definition of the arguments that a tool accepts: every schema is rendered from the plan, and every reply is
//! checked against the plan. A less expressive dialect therefore only gives the model less guidance, because [`args`](crate::args) checks
//! and coerces everything that a provider cannot enforce. [`render`] lists the losses.
//! [`Registry::check_dialect`](crate::Registry::check_dialect) checks all tools, so that a test fails if a dialect cannot express one of
//! them.
//! ```
//! use agent::args::{Plan, PlanOptions};
//! use agent::schema::{Dialect, render};
//!
//! #[derive(agent::ToolArgs)]
//! struct Search { query: String, limit: Option<u32> }
//!
//! let plan = Plan::for_type::<Search>("search", PlanOptions::default())?;
//! assert_eq!(render(&plan, Dialect::Canonical).schema["required"], agent::json!(["query"]));
//! // OpenAI's strict mode has no optional parameters: `limit` takes null instead.
//! assert_eq!(render(&plan, Dialect::OpenAiStrict).schema["required"], agent::json!(["query", "limit"]));
//! # Ok::<(), agent::args::SchemaError>(())
//! ```
//!
//! | | root | optional parameters | `additionalProperties: false` | described in words | not expressible |
//! | --- | --- | --- | --- | --- | --- |
//! | [`Canonical`](Dialect::Canonical) | unchanged | not in `required` | as the plan | nothing | nothing |
//! | [`Plain`](Dialect::Plain) | one object | not in `required` | as the plan | which parameters of a root enum belong together | nothing |
//! | [`OpenAiStrict`](Dialect::OpenAiStrict) [1] | one object | required and nullable | always | lengths, `uniqueItems`, positions in tuples, formats that the dialect lacks, defaults, examples | maps, values of any type, more than its size limits |
//! | [`AnthropicStrict`](Dialect::AnthropicStrict) [2] | one object | not in `required`, at most 24 | always | all bounds, `multipleOf`, lengths, patterns, `minItems` above 1, `maxItems`, `uniqueItems`, positions in tuples, formats that the dialect lacks, defaults, examples | maps, values of any type, recursion, more than 16 unions, names beyond `^[a-zA-Z0-9_.-]{1,64}$` [6] |
//! | [`GeminiJsonSchema`](Dialect::GeminiJsonSchema) [3] | one object | not in `required` | as the plan | lengths, patterns, exclusive bounds, `multipleOf`, `uniqueItems`, `enum` values other than strings and numbers, defaults, examples, key patterns | recursion with no property in between |
//! | [`GeminiLegacy`](Dialect::GeminiLegacy) [4] | one object | not in `required` | cannot be expressed | as `GeminiJsonSchema`, except lengths, patterns and key patterns; also `enum` values that are numbers, positions in tuples, all formats but `date-time` | maps, values of any type, recursion |
//! | [`LlamaCpp`](Dialect::LlamaCpp) [5] | one object | not in `required` | as the plan | patterns that a grammar cannot express, formats that the dialect lacks, `multipleOf`, exclusive bounds of numbers, `uniqueItems`, key patterns | the schema `false` |
//!
//! All dialects except the first two also describe in words how many keys an object has, which values are excluded, and what is
//! deprecated. None of these dialects can express `false`, and of these dialects, only `LlamaCpp` can express `enum` values that are
//! objects or arrays.
//!
//! If a strict dialect cannot express a schema, the schema is sent without `strict`: [`Rendered::dialect`] is then
//! [`Plain`](Dialect::Plain). In other dialects, a part that cannot be expressed is replaced by a simpler schema, such as a plain object.
//!
//! Even without `strict`, Anthropic refuses the whole request if any tool has a parameter whose name does not match
//! `^[a-zA-Z0-9_.-]{1,64}$`. [`Registry::check_dialect`](crate::Registry::check_dialect) and [`Registry::lint`](crate::Registry::lint)
//! find these parameters, which have to be renamed. No other provider is known to have a rule for names.
//!
//! In OpenAI's strict mode, null means "absent": pass replies through [`restore_nulls`] before they are parsed. Anthropic does not
//! guarantee the letter case of `enum` values; `CoercionPolicy::lenient()` ignores the case.
//!
//! [1]: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
//! [2]: https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
//! [3]: https://ai.google.dev/api/generate-content#FIELDS.response_json_schema
//! [4]: https://ai.google.dev/api/caching#Schema
//! [6]: https://github.com/anthropics/claude-code/issues/79418
//! [5]: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md

mod abilities;
mod change;
mod cycles;
mod dialect;
mod form;
mod given;
mod limits;
mod names;
mod render;
mod reply;

pub use change::Change;
use change::ChangeKind;
pub use dialect::Dialect;
pub use reply::restore_nulls;

pub(crate) use form::form;
pub(crate) use limits::{ANTHROPIC_OPTIONAL, ANTHROPIC_TOOLS, ANTHROPIC_UNIONS, Size};
pub(crate) use names::is_accepted_everywhere;

use crate::args::{Graph, Plan, SchemaError};
use serde_json::{Value, json};
use std::fmt;

pub(crate) fn with_rendered(mut graph: Graph) -> Result<Graph, SchemaError> {
    let schema = render::canonical(&graph)?;
    graph.set_schema(schema);
    Ok(graph)
}

/// A schema in a dialect, and its differences from the [`Plan`].
///
/// ```
/// use agent::args::{Plan, PlanOptions};
/// use agent::schema::{Dialect, render};
///
/// #[derive(agent::ToolArgs)]
/// struct Labels { labels: std::collections::BTreeMap<String, String> }
///
/// // OpenAI's strict mode has no maps, so the schema is sent without `strict`.
/// let plan = Plan::for_type::<Labels>("label", PlanOptions::default())?;
/// let rendered = render(&plan, Dialect::OpenAiStrict);
/// assert!(!rendered.is_expressible());
/// assert!(rendered.dialect == Dialect::Plain && !rendered.is_strict());
/// assert_eq!(rendered.not_expressible().next().map(|change| change.path.as_str()), Some("/properties/labels"));
/// # Ok::<(), agent::args::SchemaError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rendered {
    /// The name of the tool.
    pub tool: String,
    /// The dialect of the schema: the requested dialect, or [`Plain`](Dialect::Plain) if the tool cannot be strict. A tool cannot be
    /// strict if the strict dialect cannot express its plan, if it is [over the budget](Self::over_budget), or if it is [never
    /// strict](crate::tool::ToolOptions::strict).
    pub dialect: Dialect,
    /// The schema to send.
    pub schema: Value,
    /// The differences between the schema and the plan. Parts of the plan that the requested dialect cannot express are included.
    pub changes: Vec<Change>,
    /// The limit of a request that the tool would exceed together with the other tools, such as `20 strict tools`. A tool over the limit is
    /// sent without `strict`, in [`Dialect::Plain`]. Only [`Registry::in_dialect`](crate::Registry::in_dialect) sets this field, because
    /// [`render`] does not have the other tools.
    pub over_budget: Option<String>,
}

impl Rendered {
    fn new(plan: &Plan, dialect: Dialect, schema: Value, changes: Vec<Change>) -> Self {
        Self { tool: plan.name().to_owned(), dialect, schema, changes, over_budget: None }
    }

    /// Returns whether the provider guarantees that calls fit the schema, so that `strict: true` may be sent.
    pub fn is_strict(&self) -> bool {
        self.dialect.is_strict()
    }

    /// Returns `false` if the requested dialect cannot express a part of the plan, such as a map in [`Dialect::OpenAiStrict`].
    pub fn is_expressible(&self) -> bool {
        self.not_expressible().next().is_none()
    }

    /// Returns the changes of the kind `not_expressible`: the parts of the plan that the requested dialect cannot express.
    pub fn not_expressible(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.is_not_expressible())
    }
}

/// Writes the tool and its dialect, the limit that the tool would exceed, if there is one, and one line for each change.
impl fmt::Display for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` in `{}`", self.tool, self.dialect)?;
        if let Some(budget) = &self.over_budget {
            write!(f, ": the request is full ({budget})")?;
        }
        self.changes.iter().try_for_each(|change| write!(f, "\n- {change}"))
    }
}

/// Renders the schema of a plan in a dialect.
///
/// The schema accepts everything that the plan accepts under [`CoercionPolicy::exact()`](crate::args::CoercionPolicy::exact()), with three
/// exceptions that [`changes`](Rendered::changes) lists: objects that can no longer have unknown keys, optional properties that become
/// required, and parts that cannot be expressed. Properties keep their order and their names. The same plan always gives the same text.
///
/// For [`Canonical`](Dialect::Canonical), the result is [`Plan::schema`], unchanged. For [`Plain`](Dialect::Plain), only the root is
/// changed, so that every provider accepts it. If the root has alternatives or a reference, `Plain` is rendered from the plan, like all
/// other dialects.
///
/// ```
/// use agent::args::{Plan, PlanOptions};
/// use agent::schema::{Dialect, render};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search {
///     query: String,
///     /// How many.
///     #[schemars(range(max = 50))]
///     limit: Option<u32>,
/// }
///
/// let plan = Plan::for_type::<Search>("search", PlanOptions::default())?;
/// let rendered = render(&plan, Dialect::AnthropicStrict);
/// assert_eq!(
///     rendered.schema["properties"]["limit"],
///     json!({"type": "integer", "description": "How many.\nFrom 0 to 50."})
/// );
/// assert_eq!(rendered.changes[0].to_string(), "/properties/limit: `minimum` is said in the description");
/// # Ok::<(), agent::args::SchemaError>(())
/// ```
pub fn render(plan: &Plan, dialect: Dialect) -> Rendered {
    match dialect {
        Dialect::Canonical => Rendered::new(plan, dialect, plan.schema().clone(), Vec::new()),
        Dialect::Plain => render_plain(plan),
        _ => render_lowered(plan, dialect),
    }
}

fn render_plain(plan: &Plan) -> Rendered {
    let dialect = Dialect::Plain;
    if let Some((schema, changes)) = given::as_plain_object(plan.schema()) {
        return Rendered::new(plan, dialect, schema, changes);
    }
    let (schema, mut changes) = render_or_fallback(plan, dialect);
    changes.extend(unrendered_restrictions(plan));
    Rendered::new(plan, dialect, schema, changes)
}

fn render_lowered(plan: &Plan, dialect: Dialect) -> Rendered {
    let (schema, mut changes) = render_or_fallback(plan, dialect);
    changes.extend(limits::exceeded(dialect, &schema));
    changes.extend(names::refused_names(dialect, &schema));
    if dialect.is_strict() && changes.iter().any(Change::is_not_expressible) {
        changes.retain(Change::is_not_expressible);
        let fallback = render_plain(plan);
        changes.extend(fallback.changes);
        return Rendered { changes, ..fallback };
    }
    changes.extend(unrendered_restrictions(plan));
    Rendered::new(plan, dialect, schema, changes)
}

/// Renders the plan, or returns a schema that accepts any object if the plan is too large to render.
fn render_or_fallback(plan: &Plan, dialect: Dialect) -> (Value, Vec<Change>) {
    render::render_lowered(plan.graph(), dialect).unwrap_or_else(|error| {
        let kind = ChangeKind::NotExpressible { reason: error.reason().to_owned() };
        (json!({"type": "object"}), vec![Change { path: String::new(), keyword: "$ref".into(), kind }])
    })
}

fn unrendered_restrictions(plan: &Plan) -> Vec<Change> {
    plan.graph()
        .whole
        .as_ref()
        .map_or_else(Vec::new, |whole| given::unrendered_restrictions(plan.schema(), whole.keywords()))
}
