//! The arguments of calls while a model writes them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ModelEvent;
use crate::args::{ArgumentEvent, ArgumentKind, ArgumentStream, read_literally};
use crate::tool::definition::ToolDefinition;

/// A change in the arguments of a call that are still arriving: an owned [`ArgumentEvent`].
///
/// ```
/// use agent::model::{Model, ModelEvent, ModelRequest, StepCx, reply};
/// use agent::ScriptedModel;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
/// let model = ScriptedModel::new([reply().tool_call("write", r#"{"path": "a.txt"}"#)]);
/// let mut stream = model.stream(&StepCx::new(), &ModelRequest::default().with_argument_events());
/// let mut paths = Vec::new();
/// while let Some(event) = stream.next().await {
///     if let ModelEvent::ToolCallArgument { argument, .. } = event? { paths.push(argument.path) }
/// }
/// assert_eq!(paths.last().unwrap(), "");               // the whole ends last
/// assert!(paths.contains(&"/path".to_owned()));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ArgumentUpdate {
    /// The JSON pointer to the value; empty for the whole.
    pub path: String,
    /// Whether the value may contain a secret, and should not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// The change.
    #[serde(flatten)]
    pub change: ArgumentChange,
}

/// A change of a value in a call's arguments.
///
/// ```
/// use agent::model::{ArgumentChange, Model, ModelEvent, ModelRequest, StepCx, reply};
/// use agent::ScriptedModel;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
/// let model = ScriptedModel::new([reply().tool_call("write", r#"{"text": "Dear all"}"#)]);
/// let mut stream = model.stream(&StepCx::new(), &ModelRequest::default().with_argument_events());
/// let mut shown = String::new();
/// while let Some(event) = stream.next().await {
///     if let ModelEvent::ToolCallArgument { argument, .. } = event?
///         && let ArgumentChange::Appended { fragment } = argument.change
///     {
///         shown += &fragment;
///     }
/// }
/// assert_eq!(shown, "Dear all");
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ArgumentChange {
    /// The value starts.
    Started {
        /// The kind of the value.
        kind: ArgumentKind,
    },
    /// A text continues.
    Appended {
        /// The text that was added.
        fragment: String,
    },
    /// The value is complete.
    Finished {
        /// The value as it was sent; `None` for objects and arrays, whose values were emitted one by one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// The tool refuses the value: the result of the call will report these issues.
    Refused {
        /// The issues of the value.
        issues: Vec<String>,
    },
}

impl ArgumentUpdate {
    fn of(event: &ArgumentEvent<'_>) -> Self {
        let path = event.path();
        let change = match event {
            ArgumentEvent::Started { kind, .. } => ArgumentChange::Started { kind: *kind },
            ArgumentEvent::Appended { fragment, .. } => {
                ArgumentChange::Appended { fragment: (*fragment).to_owned() }
            }
            // The value of a container repeats its members, which would be emitted once for each level.
            ArgumentEvent::Finished { json, .. } => ArgumentChange::Finished {
                value: (!json.starts_with(['{', '['])).then(|| read_literally(json)),
            },
            ArgumentEvent::Refused { issues, .. } => {
                ArgumentChange::Refused { issues: issues.iter().map(ToString::to_string).collect() }
            }
        };
        Self { path: path.to_string(), secret: path.is_secret(), change }
    }
}

/// Leaves out values: they may be secrets, and this text is logged.
impl fmt::Debug for ArgumentUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, secret, change } = self;
        f.debug_struct("ArgumentUpdate")
            .field("path", path)
            .field("secret", secret)
            .field("change", change)
            .finish()
    }
}

/// Leaves out values: they may be secrets, and this text is logged.
impl fmt::Debug for ArgumentChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { kind } => f.debug_struct("Started").field("kind", kind).finish(),
            Self::Appended { .. } => f.write_str("Appended"),
            Self::Finished { .. } => f.write_str("Finished"),
            Self::Refused { issues } => write!(f, "Refused({} issues)", issues.len()),
        }
    }
}

/// Reads the arguments of a reply's calls while they arrive, with one [`ArgumentStream`] and its tool's plan for each call.
///
/// The total work is linear in the length of the text.
pub(super) struct CallArguments {
    tools: Arc<[ToolDefinition]>,
    streams: BTreeMap<usize, ArgumentStream>,
}

impl CallArguments {
    /// Creates a reader for the reply to a request with these tools. Calls of other tools are read without checks.
    pub(super) fn new(tools: Arc<[ToolDefinition]>) -> Self {
        Self { tools, streams: BTreeMap::new() }
    }

    /// Processes an event of the reply, and returns the argument events as events of the reply. Text that is no longer valid JSON causes no
    /// events: the argument engine reports it when it is complete.
    pub(super) fn updates(&mut self, event: &ModelEvent) -> Vec<ModelEvent> {
        let mut updates = Vec::new();
        match event {
            ModelEvent::ToolCallStart { content_index, name, .. } => {
                let tool = self.tools.iter().find(|tool| tool.name() == name);
                let stream =
                    tool.map_or_else(ArgumentStream::untyped, |tool| ArgumentStream::new(tool.plan()));
                self.streams.insert(*content_index, stream);
            }
            ModelEvent::ToolCallDelta { content_index, delta } => {
                if let Some(stream) = self.streams.get_mut(content_index) {
                    // An error stays in the argument stream and its text, and the report shows it.
                    let _ = stream.push(delta, &mut |event| {
                        let argument = ArgumentUpdate::of(&event);
                        updates
                            .push(ModelEvent::ToolCallArgument { content_index: *content_index, argument });
                    });
                }
            }
            _ => {}
        }
        updates
    }
}

impl fmt::Debug for CallArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.streams).finish()
    }
}
