//! Lists of tools on their way to a registry.

use super::definition::DefinitionError;
use super::traits::Tool;
use std::fmt;
use std::sync::Arc;

/// A tool, or its name and why it cannot be one.
#[doc(hidden)]
pub type Entry = Result<Arc<dyn Tool>, (String, DefinitionError)>;

/// Tools in order, as [`tools!`](crate::tools) lists them. A [`Registry`](crate::Registry) is built from it.
///
/// Nothing is checked here: two tools of one name, or a schema that cannot be compiled, are found all at once
/// when the registry is built.
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
/// let mut set: ToolSet = tools![add];
/// set.add(tools![]);
/// assert_eq!(set.len(), 1);
/// ```
#[derive(Clone, Default)]
pub struct ToolSet {
    entries: Vec<Entry>,
}

impl ToolSet {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the tools of a value at the end.
    pub fn add(&mut self, tools: impl IntoTools) {
        self.entries.extend(tools.into_tools().entries);
    }

    /// The same, in a chain.
    pub fn with(mut self, tools: impl IntoTools) -> Self {
        self.add(tools);
        self
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Their names, in order.
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

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl FromIterator<Arc<dyn Tool>> for ToolSet {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Tool>>>(tools: I) -> Self {
        Self { entries: tools.into_iter().map(Ok).collect() }
    }
}

impl Extend<Arc<dyn Tool>> for ToolSet {
    fn extend<I: IntoIterator<Item = Arc<dyn Tool>>>(&mut self, tools: I) {
        self.entries.extend(tools.into_iter().map(Ok));
    }
}

/// A value that turns into tools: a tool, a list of tools, or a value whose impl block is marked
/// [`#[tool]`](macro@crate::tool).
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no tools",
    label = "neither a tool nor a value with tools",
    note = "put `#[tool]` above an impl block of the type and above its methods, implement `Tool`, or give a `ToolSet`"
)]
pub trait IntoTools {
    /// Its tools.
    fn into_tools(self) -> ToolSet;
}

impl IntoTools for ToolSet {
    fn into_tools(self) -> ToolSet {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: Tool> IntoTools for T {
    fn into_tools(self) -> ToolSet {
        ToolSet { entries: vec![Ok(Arc::new(self))] }
    }
}

impl IntoTools for Arc<dyn Tool> {
    fn into_tools(self) -> ToolSet {
        ToolSet { entries: vec![Ok(self)] }
    }
}

impl IntoTools for Vec<Arc<dyn Tool>> {
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

/// What `#[tool]` on an impl block implements: tools that share one value.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`Arc<{Self}>` holds no tools",
    note = "put `#[tool]` above an impl block of the type and above its methods"
)]
pub trait SharedTools: Sized {
    fn shared_tools(this: Arc<Self>) -> ToolSet;
}

#[diagnostic::do_not_recommend]
impl<T: SharedTools> IntoTools for Arc<T> {
    fn into_tools(self) -> ToolSet {
        T::shared_tools(self)
    }
}

/// A tool that is a type: what `#[tool]` puts beside a function.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "a path in `tools![…]` names a function or struct marked `#[tool]`",
    note = "put `#[tool]` on it; if it is a value that holds tools, write `{{ value }}`"
)]
pub trait StaticTool {
    const NAME: &'static str;
    fn entry() -> Entry;
}

/// Lists tools: paths of functions and structs marked [`#[tool]`](macro@crate::tool), and values that turn into
/// tools ([`IntoTools`]).
///
#[doc = include_str!("../docs/tools.md")]
#[cfg(feature = "macros")]
#[macro_export]
macro_rules! tools {
    ($($entries:tt)*) => { $crate::__private::tools_impl! { ($crate) $($entries)* } };
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

const HEAD: &str = "two tools in this list are named `";
const TAIL: &str = "`: rename one with `#[tool(name = \"…\")]`";

/// The length of [`duplicate_message`].
#[doc(hidden)]
pub const fn duplicate_message_len(name: &str) -> usize {
    HEAD.len() + name.len() + TAIL.len()
}

/// The bytes of the message: a panic in a constant prints one `&str` and formats nothing.
#[doc(hidden)]
#[expect(clippy::indexing_slicing, reason = "evaluated at compile time; `N` is the sum of the lengths")]
pub const fn duplicate_message<const N: usize>(name: &str) -> [u8; N] {
    let (parts, mut out, mut end, mut part) =
        ([HEAD.as_bytes(), name.as_bytes(), TAIL.as_bytes()], [0; N], 0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            out[end] = parts[part][at];
            end += 1;
            at += 1;
        }
        part += 1;
    }
    out
}

/// Does not compile when `name` is among those `before` it.
#[doc(hidden)]
#[track_caller]
pub const fn assert_distinct(name: &str, before: &[&str], message: &[u8]) {
    let mut at = 0;
    while at < before.len() {
        if same(before[at].as_bytes(), name.as_bytes()) {
            match std::str::from_utf8(message) {
                Ok(message) => panic!("{}", message),
                Err(_) => panic!("two tools in this list have one name"),
            }
        }
        at += 1;
    }
}
