//! Derived sets of tools: fewer tools, other names, or arguments that the application fills in.

mod search;

#[cfg(feature = "runtime")]
pub(crate) use search::shown_after;

use super::approval::Approval;
use super::definition::ToolDefinition;
use super::definition_error::DefinitionError;
use super::hidden::HiddenArgument;
use super::options::ToolOptions;
use super::output::ToolOutput;
use super::registry::Registry;
use super::set::{Entry, IntoTools, ToolSet};
use super::value::Tool;
use crate::args::did_you_mean;
use serde_json::Value;
use std::sync::Arc;

/// # Derived sets
///
/// Each of these methods returns a new set. All except [`subset`](Self::subset) keep the order of the tools. The arguments of a call are
/// checked by the schema that the tool has in the new set. A model sees this schema.
///
/// A mistake in the use of these methods, such as a name that no tool has or an argument that cannot be hidden, becomes an error of the
/// [`Registry`] that is built from the set. The registry reports all mistakes together.
///
/// ```
/// use agent::{Approval, Registry, tool, tools};
///
/// /// Finds documents.
/// #[tool(read_only)]
/// fn find(tenant: String, words: Vec<String>) -> String {
///     format!("{tenant}: {}", words.join(" "))
/// }
///
/// /// Throws a document away.
/// #[tool(destructive)]
/// fn remove(tenant: String, id: u64) -> String {
///     format!("{tenant}: {id} is gone")
/// }
///
/// # use agent::{ToolContext, message::ToolCall};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let documents = tools![find, remove]
///     .fix_argument("tenant", "acme")                                      // neither shown nor accepted, but filled in
///     .change(["remove"], |set| set.require_approval(Approval::ALWAYS))
///     .prefix("documents_");
/// let registry = Registry::new(documents)?;
/// assert_eq!(registry.names().collect::<Vec<_>>(), ["documents_find", "documents_remove"]);
///
/// let call = ToolCall::new("1", "documents_find", r#"{"words": ["tax"]}"#);
/// assert_eq!(registry.call(&call, &ToolContext::new()).await.outcome.text(), "acme: tax");
/// let call = ToolCall::new("2", "documents_find", r#"{"words": [], "tenant": "other"}"#);
/// assert!(registry.call(&call, &ToolContext::new()).await.outcome.text().contains("/tenant: unknown parameter"));
/// # Ok(()) }
/// ```
impl ToolSet {
    /// Returns a set of the tools with these names, in the order of `names`.
    ///
    /// ```
    /// use agent::{Registry, ToolContext, message::ToolCall, tool, tools};
    ///
    /// /// Reads a page of a file.
    /// #[tool(read_only)]
    /// fn read(path: String, #[arg(default = 1)] page: u32) -> String {
    ///     format!("{path}, page {page}")
    /// }
    ///
    /// /// Writes a file.
    /// #[tool]
    /// fn write(path: String, text: String) {}
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let first_pages = tools![write, read].subset(["read"]).rename("read", "read_first_page").hide_argument("page");
    /// let registry = Registry::new(first_pages)?;
    /// assert_eq!(registry.names().collect::<Vec<_>>(), ["read_first_page"]);
    /// let call = |arguments: &str| ToolCall::new("1", "read_first_page", arguments);
    /// assert_eq!(registry.call(&call(r#"{"path": "a.txt"}"#), &ToolContext::new()).await.outcome.text(), "a.txt, page 1");
    /// assert!(registry.validate(&call(r#"{"path": "a.txt", "page": 2}"#)).is_err());
    /// # Ok(()) }
    /// ```
    pub fn subset<N: AsRef<str>>(self, names: impl IntoIterator<Item = N>) -> Self {
        let mut subset = Self::new();
        for name in names {
            subset.push(self.entry(name.as_ref()));
        }
        subset
    }

    /// Returns a set of the tools for which `keep` returns `true`, and of the invalid tools, which the registry then reports.
    ///
    /// ```
    /// # use agent::{tool, tools};
    /// # /// Reads.
    /// # #[tool(read_only)] fn read() {}
    /// # /// Writes.
    /// # #[tool] fn write() {}
    /// let harmless = tools![read, write].filter(|tool| tool.read_only() == Some(true));
    /// assert_eq!(harmless.names().collect::<Vec<_>>(), ["read"]);
    /// ```
    pub fn filter(self, mut keep: impl FnMut(&ToolDefinition) -> bool) -> Self {
        let keep = |entry: &Entry| entry.as_ref().map_or(true, |tool| keep(tool.definition()));
        self.into_entries().into_iter().filter(keep).collect()
    }

    /// Changes each tool that has one of these names. `change` gets a set that contains only this tool, and returns the tools that replace
    /// the tool. If one of the names is not the name of a tool, building a registry from the set fails.
    pub fn change<N: AsRef<str>>(
        self,
        names: impl IntoIterator<Item = N>,
        change: impl Fn(Self) -> Self,
    ) -> Self {
        let names: Vec<N> = names.into_iter().collect();
        let missing: Vec<Entry> = names
            .iter()
            .filter(|name| !self.has(name.as_ref()))
            .map(|name| self.entry(name.as_ref()))
            .collect();
        let is_meant = |entry: &Entry| names.iter().any(|name| entry_name(entry) == name.as_ref());
        let mut changed = Self::new();
        for entry in self.into_entries() {
            if is_meant(&entry) {
                changed.add(change([entry].into_iter().collect()));
            } else {
                changed.push(entry);
            }
        }
        for entry in missing {
            changed.push(entry);
        }
        changed
    }

    /// Puts `prefix` in front of each name, so that sets with the same names can be combined.
    pub fn prefix(self, prefix: &str) -> Self {
        self.map(|tool| {
            let name = format!("{prefix}{}", tool.definition().name());
            tool.configure(|options| options.name(name))
        })
    }

    /// Renames the tool `name` to `other`.
    pub fn rename(self, name: &str, other: &str) -> Self {
        self.change([name], |set| set.map(|tool| tool.configure(|options| options.name(other))))
    }

    /// Replaces the description of the tool `name`, for example of a tool that another author wrote.
    ///
    /// ```
    /// use agent::{Registry, Tool, ToolSet, Value, json};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    /// let foreign = Tool::new("search", "search", schema, |_: Value, _| async { "3 results" })?;
    /// let tools = ToolSet::new().with(foreign).describe("search", "Searches the tickets. `q` is a list of words.");
    /// assert_eq!(Registry::new(tools)?.definitions()[0].description(), "Searches the tickets. `q` is a list of words.");
    /// # Ok(()) }
    /// ```
    pub fn describe(self, name: &str, description: &str) -> Self {
        self.change([name], |set| {
            set.map(|tool| {
                let described = |options: ToolOptions| options.description(description);
                tool.configure(|options| ToolOptions { may_be_undescribed: false, ..described(options) })
            })
        })
    }

    /// Hides an argument of every tool that has it. The argument is neither shown nor accepted, so its default is used. A required argument
    /// cannot be hidden: [fix](Self::fix_argument) it instead.
    pub fn hide_argument(self, argument: &str) -> Self {
        self.hide(&HiddenArgument::new(argument, None))
    }

    /// Fixes an argument to this value in every tool that has the argument. The argument is neither shown nor accepted. If the value does
    /// not fit the argument, the registry cannot be built.
    pub fn fix_argument(self, argument: &str, value: impl Into<Value>) -> Self {
        self.hide(&HiddenArgument::new(argument, Some(value.into())))
    }

    /// Adds a rule to every tool: a call needs approval if `approval` or the tool's own rule requires it.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a rule is made for its set; users would have to write `&`"
    )]
    pub fn require_approval(self, approval: Approval) -> Self {
        self.map(|tool| {
            tool.configure(|options| {
                let own = options.policy.approval.clone();
                options.approval(own.or(approval.clone()))
            })
        })
    }

    /// Changes the output of every call that completes. `change` also gets the name of the tool.
    ///
    /// ```
    /// # use agent::{Registry, ToolContext, ToolOutput, message::ToolCall, tool, tools};
    /// # /// Reads.
    /// # #[tool] fn read() -> String { "a secret".into() }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tools = tools![read].map_output(|_, output| ToolOutput::text(output.text_content().replace("secret", "…")));
    /// let result = Registry::new(tools)?.call(&ToolCall::new("1", "read", ""), &ToolContext::new()).await;
    /// assert_eq!(result.outcome.text(), "a …");
    /// # Ok(()) }
    /// ```
    pub fn map_output(self, change: impl Fn(&str, ToolOutput) -> ToolOutput + Send + Sync + 'static) -> Self {
        let change = Arc::new(change);
        self.map(|tool| {
            let (change, name) = (change.clone(), tool.definition().name().to_owned());
            Ok(tool.map_output(move |output| change(&name, output)))
        })
    }

    fn hide(self, argument: &HiddenArgument) -> Self {
        let mut is_there = false;
        let mut set = self.map(|tool| {
            if tool.definition().plan().requires(&argument.name).is_none() {
                return Ok(tool);
            }
            is_there = true;
            tool.hide(argument.clone())
        });
        if !is_there {
            let reason = "no tool of the set has such an argument".to_owned();
            let error = DefinitionError::Parameter { name: argument.name.clone(), reason };
            let names: Vec<&str> = set.names().collect();
            let name = names.join(", ");
            set.push(Err((name, error)));
        }
        set
    }

    /// Applies `change` to every tool. An error of `change` is an error of the registry that is built from the set.
    ///
    /// ```
    /// use agent::{Registry, tool, tools};
    ///
    /// /// Searches.
    /// #[tool]
    /// fn search(words: String) {}
    ///
    /// let tools = tools![search].map(|tool| tool.configure(|options| options.description("Searches the tickets.")));
    /// assert_eq!(Registry::new(tools)?.definitions()[0].description(), "Searches the tickets.");
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn map(self, mut change: impl FnMut(Tool) -> Result<Tool, DefinitionError>) -> Self {
        let changed = self.into_entries().into_iter().map(|entry| {
            let tool = entry?;
            let name = tool.definition().shared_name().clone();
            change(tool).map_err(|error| (name.to_string(), error))
        });
        changed.collect()
    }

    fn has(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    fn entry(&self, name: &str) -> Entry {
        let found = self.entries().iter().find(|entry| entry_name(entry) == name);
        found.cloned().unwrap_or_else(|| {
            let suggestions = did_you_mean(name, self.names()).into_iter().map(str::to_owned).collect();
            Err((name.to_owned(), DefinitionError::NotInSet { suggestions }))
        })
    }
}

fn entry_name(entry: &Entry) -> &str {
    match entry {
        Ok(tool) => tool.definition().name(),
        Err((name, _)) => name,
    }
}

impl FromIterator<Entry> for ToolSet {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let mut set = Self::new();
        entries.into_iter().for_each(|entry| set.push(entry));
        set
    }
}

/// Returns the registry's tools, in order. Its state is not included: add the state to the registry that gets these tools.
#[diagnostic::do_not_recommend]
impl IntoTools for Registry {
    fn into_tools(self) -> ToolSet {
        self.tools().cloned().collect()
    }
}

impl Registry {
    /// Returns a registry of the tools for which `keep` returns `true`, with the same state. Filtering is cheap, so it can be done for each
    /// user or turn. The order of the tools is kept, so the same selection always produces the same list, which providers can cache.
    ///
    /// ```
    /// # use agent::{Registry, tool, tools};
    /// # /// Reads.
    /// # #[tool(read_only)] fn read() {}
    /// # /// Writes.
    /// # #[tool] fn write() {}
    /// let registry = Registry::new(tools![read, write])?;
    /// let for_guests = registry.filter(|tool| tool.read_only() == Some(true));
    /// assert_eq!(for_guests.names().collect::<Vec<_>>(), ["read"]);
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn filter(&self, mut keep: impl FnMut(&ToolDefinition) -> bool) -> Self {
        self.keep(|tool| keep(tool.definition()))
    }
}
