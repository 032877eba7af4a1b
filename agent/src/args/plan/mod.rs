//! A compiled JSON Schema: the only definition of what a tool accepts.

mod check;
mod clash;
mod combine;
mod compile;
mod error;
mod finish;
mod frequent;
mod identify;
mod key_index;
mod keywords;
mod merge;
mod node;
mod object;
mod pattern;
mod prepare;
mod reference;
mod scalar;
mod secrets;
mod shape;
mod token;
mod union;
mod uri;
mod visit;
mod whole;
mod without;
mod words;

pub use error::SchemaError;
pub(crate) use node::{
    AdditionalProperties, ArraySpec, CheckedSpec, Child, ExternalSpec, FormatRule, IntSpec, NodeCheck,
    NodeId, NodeKind, Notes, NumSpec, NumberBound, ObjectSpec, Pattern, PlanNode, Prop, StrSpec, UnlistedKey,
};

pub(crate) use frequent::{FrequentValues, short_number};
pub(crate) use secrets::{all_texts, hidden, secret_names, secret_texts, withheld};
pub(crate) use token::{before_quote, before_special, first_byte, leading_digits, word_at};
pub(crate) use whole::{IssueLimit, Whole};
pub(crate) use without::NotTakenOut;
pub(crate) use words::{PickedWord, VariantNames, Words};

use super::policy::{PlanOptions, Rules, UnknownKeys};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;
use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc, sync::OnceLock};

/// The definition of what a tool accepts, compiled from a JSON Schema.
///
/// Everything about the arguments of a tool is derived from the plan: the schema that the model sees, the typed parser with its coercions,
/// and the report of all mistakes. Cloning a plan only increments a reference count.
///
/// ```
/// use agent::args::{Plan, PlanOptions};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search {
///     query: String,
///     limit: Option<u32>,
/// }
///
/// let plan = Plan::for_type::<Search>("search", PlanOptions::default())?;
/// let parsed = plan.parse::<Search>(r#"{"query": "rust", "limit": "10"}"#)?;
/// assert_eq!(parsed.value.limit, Some(10));
/// assert_eq!(parsed.coercions()[0].path, "/limit");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Plan {
    name: Arc<str>,
    graph: Arc<Graph>,
}

/// The content of a [`Plan`], shared by its clones: the nodes of the compiled schema, the options, the schemas, and texts made from the
/// nodes.
pub(crate) struct Graph {
    pub(crate) nodes: Vec<PlanNode>,
    pub(crate) notes: Vec<Notes>,
    /// The names of referenced definitions, needed to write recursive references.
    pub(crate) names: HashMap<NodeId, String>,
    pub(crate) root: NodeId,
    pub(crate) any: NodeId,
    pub(crate) any_object: ObjectSpec,
    pub(crate) any_array: ArraySpec,
    pub(crate) options: PlanOptions,
    pub(crate) foreign: bool,
    /// The validator for keywords that nodes cannot check, if the schema has such keywords.
    pub(crate) whole: Option<Whole>,
    schema: Value,
    /// The schema that schemars generated, if the plan was made from a type.
    source: Option<Value>,
    /// The accepted values of each node in one line of text, such as `integer 1..50`.
    pub(crate) signatures: Vec<OnceLock<String>>,
    pub(crate) parameters: OnceLock<Vec<String>>,
    pub(crate) parameter_lines: OnceLock<String>,
}

impl Graph {
    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> &PlanNode {
        &self.nodes[id.0 as usize]
    }

    #[inline]
    pub(crate) fn kind(&self, id: NodeId) -> &NodeKind {
        &self.node(id).kind
    }

    pub(crate) fn notes(&self, id: NodeId) -> &Notes {
        &self.notes[id.0 as usize]
    }

    /// Returns the handling of a key that is not in the schema of an object. `is_root` means that the object is the arguments as a whole.
    pub(crate) fn unlisted(&self, object: &ObjectSpec, is_root: bool) -> UnlistedKey {
        match self.options.unknown_keys() {
            UnknownKeys::Keep if object.rest == AdditionalProperties::Unspecified => UnlistedKey::Kept,
            UnknownKeys::Strip if is_root => UnlistedKey::Dropped,
            _ => UnlistedKey::Refused,
        }
    }

    /// Returns the key in the form in which it is compared with the object's other keys. In a map with integer keys, which only Rust types
    /// have, `01` is the same key as `1`.
    pub(crate) fn identity<'k>(&self, object: &ObjectSpec, key: &'k str) -> Cow<'k, str> {
        if self.foreign { Cow::Borrowed(key) } else { object.one_spelling(key) }
    }

    pub(crate) fn signature_cell(&self, id: NodeId) -> &OnceLock<String> {
        &self.signatures[id.0 as usize]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(NodeId)
    }

    pub(crate) fn children(&self, id: NodeId) -> Vec<NodeId> {
        self.kind(id).children()
    }

    pub(crate) fn root_object(&self) -> Option<&ObjectSpec> {
        match self.kind(self.unchecked(self.root)) {
            NodeKind::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the node without its checks: the innermost `base` of nested `Checked` nodes, or the node itself.
    pub(crate) fn unchecked(&self, mut id: NodeId) -> NodeId {
        // The loop ends, because `mark_nulls` refuses cycles of such nodes.
        while let NodeKind::Checked(checked) = self.kind(id) {
            id = checked.base;
        }
        id
    }

    pub(crate) fn non_null(&self, mut id: NodeId) -> NodeId {
        while let NodeKind::Nullable(node) | NodeKind::Checked(CheckedSpec { base: node, .. }) = self.kind(id)
        {
            id = *node;
        }
        id
    }

    pub(crate) fn objects(&self, id: NodeId) -> Vec<&ObjectSpec> {
        match self.kind(id) {
            NodeKind::Object(object) => vec![object],
            kind => kind.alternatives().flat_map(|node| self.objects(node)).collect(),
        }
    }

    pub(crate) fn has_secrets(&self) -> bool {
        self.node(self.root).holds_secret
    }

    pub(crate) fn root_rules(&self) -> Rules {
        self.options.policy().rules()
    }
}

pub(crate) fn schema_of<T: JsonSchema + ?Sized>() -> Value {
    generator().into_root_schema_for::<T>().to_value()
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None).into_generator()
}

/// Returns whether `description` contains `text`. Different white space between words does not matter.
#[cfg(feature = "macros")]
fn has_words_of(text: &str, description: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    words(description).contains(&words(text))
}

impl Plan {
    /// Creates the plan of a type that serde can deserialize and schemars can describe.
    ///
    /// Some schema extensions are settings that the model does not see. On a property: `x-aliases` (a list of names), `x-coerce` (a
    /// [`CoercionPolicy`](super::CoercionPolicy) as text, such as `"exact"`) and `x-secret` (`true`). On a variant of an enum, `x-aliases`
    /// lists other names of the variant, and `x-other` (`true`) makes the variant accept all names that no other variant has. The derive
    /// of `ToolArgs` writes `x-aliases` and `x-other` for serde's `alias` and `other`, and more extensions for internal use.
    ///
    /// # Errors
    /// Returns [`SchemaError`] if the type is not an object, or if two of its fields or variants have the same name. Also returns it if
    /// the schema is too large, has an invalid keyword or an assertion that cannot be checked, or has a 128-bit integer that serde would
    /// buffer, as in an untagged enum.
    pub fn for_type<T: JsonSchema + ?Sized>(name: &str, options: PlanOptions) -> Result<Plan, SchemaError> {
        Plan::of_type(name, schema_of::<T>(), options)
    }

    /// Creates the plan of a tool. Removes the description of `schema` if `description` contains it, and always for a struct tool
    /// (`is_type`).
    #[cfg(feature = "macros")]
    pub(crate) fn for_tool(
        name: &str,
        description: &str,
        mut schema: Value,
        is_type: bool,
        options: PlanOptions,
    ) -> Result<Plan, SchemaError> {
        let of_type = schema.get("description").and_then(Value::as_str).map(str::to_owned);
        if let Some(of_type) = of_type
            && (is_type || has_words_of(&of_type, description))
        {
            let recursive = schema.get_mut("$defs").and_then(Value::as_object_mut);
            let mut places: Vec<&mut Value> =
                recursive.into_iter().flat_map(serde_json::Map::values_mut).collect();
            for place in places.iter_mut().filter_map(|place| place.as_object_mut()) {
                if place.get("description").and_then(Value::as_str) == Some(&of_type) {
                    place.remove("description");
                }
            }
            if let Some(root) = schema.as_object_mut() {
                root.remove("description");
            }
        }
        Plan::of_type(name, schema, options)
    }

    fn of_type(name: &str, source: Value, options: PlanOptions) -> Result<Plan, SchemaError> {
        let graph = compile::derived(&source, options).and_then(crate::schema::with_rendered);
        let graph = graph.map_err(|e| e.of(name))?;
        Ok(Plan { name: name.into(), graph: Arc::new(Graph { source: Some(source), ..graph }) })
    }

    /// Creates the plan of a schema that was written by hand or comes from another program. The schema is sent to the model
    /// unchanged; arguments are parsed to a [`Value`].
    ///
    /// JSON Schema 2020-12 and draft-07 are supported, and their forms may be mixed. With
    /// [`Exact`](super::CoercionPolicy::exact()) and [`Keep`](super::UnknownKeys::Keep) the plan accepts the values that JSON
    /// Schema accepts, apart from the exceptions below the table:
    ///
    /// | applies to | keywords |
    /// |---|---|
    /// | any value | `type` (also a list), `enum`, `const`, `allOf`, `anyOf`, `oneOf`, `not`, `if`/`then`/`else`, `true`, `false` |
    /// | numbers | `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf` (exact in decimals) |
    /// | strings | `minLength`, `maxLength` (code points), `pattern` (ECMA-262, in linear time) |
    /// | arrays | `items` (also a list), `prefixItems`, `additionalItems`, `minItems`, `maxItems`, `uniqueItems`, `contains`, `minContains`, `maxContains`, `unevaluatedItems`¹ |
    /// | objects | `properties`, `required`, `additionalProperties`, `patternProperties`, `propertyNames`, `minProperties`, `maxProperties`, `dependentRequired`, `dependentSchemas`, `dependencies`, `unevaluatedProperties`¹ |
    /// | references | `$ref` (other keywords next to it apply, except in drafts before 2019-09), `$id`, `$anchor`, `$defs`, `definitions`, `$dynamicRef`¹ with a single possible target |
    /// | shown but not checked | `format`, `contentEncoding`, `contentMediaType`, `default`, `title`, `nullable`, `x-…`, any unknown keyword; a name in `required` that is not a property is still required |
    ///
    /// ¹ The feature `full-schema` is needed if these keywords are next to alternatives or conditions that evaluate different
    /// properties or items, or if the target of a reference depends on the path to the reference. With the feature, the
    /// `jsonschema` crate checks the whole value after coercion, and its errors join the report. Without the feature, such a
    /// schema is refused.
    ///
    /// A few rules differ from those of JSON Schema. The arguments are one JSON object, whatever the schema says about its root. An
    /// integer fits in 64 bits. A float of 2⁵³ or more is not an integer, because it may have been rounded. A metaschema in `$schema` is
    /// not read. Nothing is ever fetched: a `$ref` refers to the document, or to the metaschema of draft-07 or 2020-12 (a tool may take a
    /// schema).
    ///
    /// In JSON Schema, an object without `additionalProperties` accepts any key. Here, such an object accepts only the keys that it lists
    /// and the keys that its conditions refer to. It accepts any key if it has neither `properties` nor `patternProperties`, if its
    /// conditions may refer to any key, or if the options are [`UnknownKeys::Keep`](super::UnknownKeys::Keep).
    ///
    /// ```
    /// use agent::args::{Plan, PlanOptions};
    /// let schema = serde_json::json!({
    ///     "type": "object",
    ///     "properties": {"kind": {"enum": ["mail", "call"]}, "to": {"type": "string"}, "minutes": {"type": "integer"}},
    ///     "required": ["kind"],
    ///     "if": {"properties": {"kind": {"const": "call"}}},
    ///     "then": {"required": ["minutes"]}
    /// });
    /// let plan = Plan::compile("contact", &schema, PlanOptions::default())?;
    /// let error = plan.parse::<serde_json::Value>(r#"{"kind": "call"}"#).unwrap_err();
    /// assert_eq!(error.issues()[0].path, "/minutes");
    /// assert_eq!(error.issues()[0].problem, "required, but missing (when `kind` is \"call\")");
    /// # Ok::<(), agent::args::SchemaError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`SchemaError`], with the keyword and its path, for:
    ///
    /// * an assertion that cannot be checked, as described above, and `disallow`, `extends` and `divisibleBy` of old drafts
    /// * an invalid value of a keyword, such as an unknown `type` (`"any"`), the `exclusiveMinimum: true` of draft-04, or the
    ///   `required: true` of draft-03
    /// * a pattern that cannot be checked in linear time
    /// * a reference to another document (nothing is ever fetched), and circular references
    /// * a root that no object fits
    /// * a schema that is too deep or too large, or whose combinations are too many
    pub fn compile(name: &str, schema: &Value, options: PlanOptions) -> Result<Plan, SchemaError> {
        let graph = compile::foreign(schema, options).map_err(|e| e.of(name))?;
        Ok(Plan { name: name.into(), graph: Arc::new(Graph { schema: schema.clone(), ..graph }) })
    }

    /// Returns the plan with `defaults` for the options that the plan itself does not set.
    ///
    /// ```
    /// use agent::args::{CoercionPolicy, Plan, PlanOptions};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Tag { names: Vec<String> }
    ///
    /// let plan = Plan::for_type::<Tag>("tag", PlanOptions::default())?;
    /// let lenient = plan.with_defaults(PlanOptions::default().coercion(CoercionPolicy::lenient()))?;
    /// assert!(plan.parse::<Tag>(r#"{"names": "one"}"#).is_err());
    /// assert!(lenient.parse::<Tag>(r#"{"names": "one"}"#).is_ok());
    /// # Ok::<(), agent::args::SchemaError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`for_type`](Self::for_type) or [`compile`](Self::compile), whichever created the plan.
    pub fn with_defaults(&self, defaults: PlanOptions) -> Result<Plan, SchemaError> {
        self.with_options(self.options().or(defaults))
    }

    /// Compiles the schema again if the options differ from the present options.
    pub(crate) fn with_options(&self, options: PlanOptions) -> Result<Plan, SchemaError> {
        match &self.graph.source {
            _ if options == *self.options() => Ok(self.clone()),
            Some(source) => Plan::of_type(&self.name, source.clone(), options),
            None => Plan::compile(&self.name, &self.graph.schema, options),
        }
    }

    /// Returns the tool's name, which appears in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the plan under another name. Both plans share everything else.
    ///
    /// ```
    /// use agent::args::{CoercionPolicy, Plan, PlanOptions};
    ///
    /// #[derive(agent::ToolArgs)]
    /// struct Search { query: String, limit: Option<u32> }
    ///
    /// let plan = Plan::for_type::<Search>("search", PlanOptions::default())?;
    /// assert_eq!(plan.parameter_names().collect::<Vec<_>>(), ["query", "limit"]);
    /// assert_eq!(plan.schema()["required"], agent::json!(["query"]));
    /// assert_eq!(plan.options().policy(), CoercionPolicy::strict());
    ///
    /// let renamed = plan.with_name("find");
    /// assert_eq!((plan.name(), renamed.name()), ("search", "find"));
    /// assert_eq!(renamed.parse::<Search>("{}").err().unwrap().tool(), "find");
    /// # Ok::<(), agent::args::SchemaError>(())
    /// ```
    pub fn with_name(&self, name: &str) -> Plan {
        Plan { name: name.into(), graph: Arc::clone(&self.graph) }
    }

    /// Returns the schema that the model sees.
    pub fn schema(&self) -> &Value {
        &self.graph.schema
    }

    /// Returns the schema that schemars generated, with the extensions of the macros; `None` if the plan was not made from a type.
    #[cfg(any(feature = "macros", feature = "testing"))]
    pub(crate) fn source(&self) -> Option<&Value> {
        self.graph.source.as_ref()
    }

    /// Returns the names of the top-level parameters, as declared. For an enum at the root, these are the parameters of all its variants.
    /// For an externally tagged enum at the root, these are the names of its variants.
    pub fn parameter_names(&self) -> impl Iterator<Item = &str> {
        let objects = self.graph.objects(self.graph.root).into_iter();
        let names = objects.flat_map(|object| object.props.iter().map(|prop| prop.name.as_str()));
        let mut told = std::collections::HashSet::new();
        names.filter(move |name| told.insert(*name))
    }

    /// Returns the options that the plan was compiled with.
    pub fn options(&self) -> &PlanOptions {
        &self.graph.options
    }

    /// Returns whether an enum of the plan accepts every string, although the schema lists only some.
    #[cfg(feature = "testing")]
    pub(crate) fn takes_other_words(&self) -> bool {
        self.graph.nodes.iter().any(|node| match &node.kind {
            NodeKind::Enum(words) => words.is_open(),
            NodeKind::External(external) => external.units.is_open(),
            NodeKind::Tagged { names, .. } => names.is_open(),
            _ => false,
        })
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl Graph {
    pub(crate) fn set_schema(&mut self, schema: Value) {
        self.schema = schema;
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters: Vec<&str> = self.parameter_names().collect();
        f.debug_struct("Plan")
            .field("name", &self.name)
            .field("parameters", &parameters)
            .finish_non_exhaustive()
    }
}
