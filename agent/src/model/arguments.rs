//! The arguments of calls while a model writes them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ModelEvent;
use crate::ToolDefinition;
use crate::args::{ArgumentEvent, ArgumentKind, ArgumentStream};

/// What the latest text of a call's arguments told: an [`ArgumentEvent`] that can be kept.
///
/// ```
/// use agent::model::{Model, ModelEvent, ModelRequest, ScriptedModel, StepCx, reply};
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
    /// Where it happened, as a JSON pointer; empty for the whole.
    pub path: String,
    /// Whether a secret may stand there: it should not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// What happened.
    #[serde(flatten)]
    pub change: ArgumentChange,
}

/// What happened to a value of a call's arguments.
///
/// ```
/// use agent::model::{ArgumentChange, Model, ModelEvent, ModelRequest, ScriptedModel, StepCx, reply};
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
    /// It begins.
    Started {
        /// What it will be.
        kind: ArgumentKind,
    },
    /// A text goes on.
    Appended {
        /// What was added.
        fragment: String,
    },
    /// It is complete.
    Finished {
        /// The value, as it was sent; none of objects and arrays, whose values were told one by one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// The tool refuses it: the call will be answered with these words.
    Refused {
        /// What is wrong with it.
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
            // Containers repeat what is in them: that would be told once for each level.
            ArgumentEvent::Finished { value, .. } => ArgumentChange::Finished {
                value: (!value.text().starts_with(['{', '['])).then(|| value.to_value()),
            },
            ArgumentEvent::Refused { issues, .. } => {
                ArgumentChange::Refused { issues: issues.iter().map(ToString::to_string).collect() }
            }
        };
        Self { path: path.to_string(), secret: path.is_secret(), change }
    }
}

/// Without values: they may be secrets, and this text goes into logs.
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

/// Without values: they may be secrets, and this text goes into logs.
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

/// Reads the arguments of a reply's calls while they arrive: each call has an [`ArgumentStream`] with its tool's plan.
///
/// All work together is linear in the text. The events are for showing, and for stopping a model that is on a wrong
/// way; calls are made from whole arguments alone.
///
/// ```
/// use agent::model::{CallArguments, ModelEvent};
/// use agent::args::ArgumentEvent;
/// use agent::{Registry, tool, tools};
///
/// /// Writes a file.
/// #[tool]
/// fn write(path: String, text: String) {
///     # let _ = (path, text);
/// }
///
/// let registry = Registry::new(tools![write])?;
/// let mut arguments = CallArguments::new(registry.definitions());
/// let mut shown = String::new();
/// let mut events = vec![ModelEvent::ToolCallStart { content_index: 0, id: "c1".into(), name: "write".into() }];
/// for delta in [r#"{"path": "a.txt", "te"#, r#"xt": "Dear "#, r#"all"#] {
///     events.push(ModelEvent::ToolCallDelta { content_index: 0, delta: delta.into() });
/// }
/// for event in &events {
///     arguments.push(event, &mut |_index, event| {
///         if let ArgumentEvent::Appended { path, fragment } = event
///             && path.parameter() == Some("text")
///         {
///             shown.push_str(fragment);
///         }
///     });
/// }
/// assert_eq!(shown, "Dear all");
/// assert_eq!(arguments.get(0).unwrap().text(), r#"{"path": "a.txt", "text": "Dear all"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CallArguments {
    tools: Arc<[ToolDefinition]>,
    streams: BTreeMap<usize, ArgumentStream>,
}

impl CallArguments {
    /// For a reply to a request with these tools. Calls of others are read too, unchecked.
    pub fn new(tools: Arc<[ToolDefinition]>) -> Self {
        Self { tools, streams: BTreeMap::new() }
    }

    /// Takes an event of the reply in, and tells what it says of the arguments of a call: `on` gets the call's content
    /// index and the event. Text that is no JSON any more tells nothing: the engine answers the whole of it.
    pub fn push(&mut self, event: &ModelEvent, on: &mut dyn FnMut(usize, ArgumentEvent<'_>)) {
        match event {
            ModelEvent::ToolCallStart { content_index, name, .. } => {
                let tool = self.tools.iter().find(|tool| tool.name() == name);
                let stream =
                    tool.map_or_else(ArgumentStream::untyped, |tool| ArgumentStream::new(tool.plan()));
                self.streams.insert(*content_index, stream);
            }
            ModelEvent::ToolCallDelta { content_index, delta } => {
                if let Some(stream) = self.streams.get_mut(content_index) {
                    // An error stays in the stream, and in its text for the report.
                    let _ = stream.push(delta, &mut |event| on(*content_index, event));
                }
            }
            _ => {}
        }
    }

    /// Takes an event of the reply in, and gives what it tells as events of the reply.
    pub(super) fn updates(&mut self, event: &ModelEvent) -> Vec<ModelEvent> {
        let mut updates = Vec::new();
        self.push(event, &mut |content_index, event| {
            updates
                .push(ModelEvent::ToolCallArgument { content_index, argument: ArgumentUpdate::of(&event) });
        });
        updates
    }

    /// The arguments of the call at this content index, as far as they came; none where no call began there.
    pub fn get(&self, content_index: usize) -> Option<&ArgumentStream> {
        self.streams.get(&content_index)
    }
}

impl fmt::Debug for CallArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.streams).finish()
    }
}
