//! Lists of tools, from which a registry is built.

use super::definition_error::DefinitionError;
use super::value::Tool;
use crate::args::PlanOptions;
use std::fmt;
use std::sync::Arc;

/// A tool, or the name and the error of an invalid tool.
#[doc(hidden)]
#[cfg_attr(not(feature = "macros"), expect(unreachable_pub, reason = "the macros name it"))]
pub type Entry = Result<Tool, (String, DefinitionError)>;

/// A list of tools, for example from [`tools!`](crate::tools). A [`Registry`](crate::Registry) is built from a set.
///
/// A set does not check its tools. Two tools with the same name, or a schema that cannot be compiled, are reported when the registry is
/// built, together with all other errors.
///
/// ```
/// use agent::{ToolSet, tool, tools};
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// /// Subtracts a number from another.
/// #[tool]
/// fn subtract(from: i64, number: i64) -> i64 {
///     from - number
/// }
///
/// let mut set = ToolSet::new();
/// assert!(set.is_empty());
/// set.add(tools![add]);
/// let set = set.with(tools![subtract]);
/// assert_eq!(set.names().collect::<Vec<_>>(), ["add", "subtract"]);
/// assert_eq!(set.len(), 2);
/// ```
#[derive(Clone, Default)]
#[must_use = "a tool set does nothing until it is given to a registry or an assistant"]
pub struct ToolSet {
    entries: Vec<Entry>,
}

impl ToolSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the tools of a value to the end of the set.
    pub fn add(&mut self, tools: impl IntoTools) {
        self.entries.extend(tools.into_tools().entries);
    }

    /// Adds the tools of a value to the end of the set, and returns the set.
    pub fn with(mut self, tools: impl IntoTools) -> Self {
        self.add(tools);
        self
    }

    /// Sets the default options for checking arguments. Options of a tool or a parameter take precedence.
    ///
    /// ```
    /// use agent::args::{CoercionPolicy, PlanOptions};
    /// use agent::{Registry, message::ToolCall, tool, tools};
    ///
    /// /// Adds up numbers.
    /// #[tool]
    /// fn sum(numbers: Vec<i64>) -> i64 {
    ///     numbers.iter().sum()
    /// }
    ///
    /// let call = ToolCall::new("1", "sum", r#"{"numbers": "[1, 2]"}"#);
    /// let lenient = PlanOptions::default().coercion(CoercionPolicy::lenient());
    /// assert!(Registry::new(tools![sum])?.validate(&call).is_err());
    /// assert!(Registry::new(tools![sum].with_options(lenient))?.validate(&call).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_options(self, options: PlanOptions) -> Self {
        self.map(|tool| tool.with_plan_defaults(options))
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no tools.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|entry| match entry {
            Ok(tool) => tool.definition().name(),
            Err((name, _)) => name,
        })
    }

    #[doc(hidden)]
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl FromIterator<Tool> for ToolSet {
    fn from_iter<I: IntoIterator<Item = Tool>>(tools: I) -> Self {
        Self { entries: tools.into_iter().map(Ok).collect() }
    }
}

impl Extend<Tool> for ToolSet {
    fn extend<I: IntoIterator<Item = Tool>>(&mut self, tools: I) {
        self.entries.extend(tools.into_iter().map(Ok));
    }
}

/// A value that converts to tools: a tool, a list or set of tools, a registry, an MCP client, an `Option` of one of these, or a value whose
/// impl block is marked [`#[tool]`](macro@crate::tool).
///
/// ```
/// use agent::{Tool, ToolContext, Value, json, tool::IntoTools};
///
/// let ping = Tool::new("ping", "Answers.", json!({"type": "object"}), |_: Value, _: ToolContext| async { "pong" })?;
/// let list: Vec<Tool> = vec![ping];
/// assert_eq!(list.into_tools().names().collect::<Vec<_>>(), ["ping"]);
/// # Ok::<(), agent::tool::DefinitionError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no tools",
    label = "neither a tool nor a value with tools",
    note = "a function or struct marked `#[tool]` is listed by its name: write `tools![name]`",
    note = "for a value put `#[tool]` above an impl block of its type and above the methods, or make a `Tool` (`Tool::new`, `ToolBuilder`, or `Tool::from_body` for a body of your own)"
)]
pub trait IntoTools {
    /// Returns the tools.
    fn into_tools(self) -> ToolSet;
}

#[diagnostic::do_not_recommend]
impl IntoTools for ToolSet {
    fn into_tools(self) -> ToolSet {
        self
    }
}

#[diagnostic::do_not_recommend]
impl IntoTools for Tool {
    fn into_tools(self) -> ToolSet {
        ToolSet { entries: vec![Ok(self)] }
    }
}

#[diagnostic::do_not_recommend]
impl IntoTools for Vec<Tool> {
    fn into_tools(self) -> ToolSet {
        self.into_iter().collect()
    }
}

#[diagnostic::do_not_recommend]
impl<T: IntoTools> IntoTools for Option<T> {
    fn into_tools(self) -> ToolSet {
        self.map(IntoTools::into_tools).unwrap_or_default()
    }
}

/// The tools of an impl block without `set = …`. A second such block of a type does not compile. The error contains the name of this
/// trait, so the name says what to write.
#[doc(hidden)]
#[expect(non_camel_case_types, reason = "it is read as a sentence")]
#[diagnostic::on_unimplemented(
    message = "`Arc<{Self}>` holds no tools",
    note = "put `#[tool]` above an impl block of the type and above its methods"
)]
pub trait further_tool_blocks_say_set_and_a_name: Sized {
    fn shared_tools(this: Arc<Self>) -> ToolSet;
}

#[diagnostic::do_not_recommend]
impl<T: further_tool_blocks_say_set_and_a_name> IntoTools for Arc<T> {
    fn into_tools(self) -> ToolSet {
        T::shared_tools(self)
    }
}
