//! Events for the arguments of calls while a model writes them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::ModelEvent;
use crate::args::{ArgumentEvent, ArgumentKind, ArgumentStream, read_literally};
use crate::message::json;
use crate::tool::definition::ToolDefinition;

/// A change of a value in the arguments of a call while these arguments arrive: an owned [`ArgumentEvent`].
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
///     if let ModelEvent::ToolCallArgument { change: ArgumentChange::Appended { fragment }, .. } = event? {
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
        /// The value as it was sent, or `None` for an object or array, whose members were emitted one by one.
        #[serde(default, with = "json::option", skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// The tool refuses a parameter, because of its value, or because its key is unknown or repeated. The result of the call will report
    /// the same issues.
    Refused {
        /// The issues of the parameter.
        issues: Vec<String>,
    },
}

impl ArgumentChange {
    fn of(event: &ArgumentEvent<'_>) -> Self {
        match event {
            ArgumentEvent::Started { kind, .. } => Self::Started { kind: *kind },
            ArgumentEvent::Appended { fragment, .. } => Self::Appended { fragment: (*fragment).to_owned() },
            // The event of an object or array has no value: a nested value would be emitted again for each level around it.
            ArgumentEvent::Finished { json, .. } => {
                Self::Finished { value: (!json.starts_with(['{', '['])).then(|| read_literally(json)) }
            }
            ArgumentEvent::Refused { issues, .. } => {
                Self::Refused { issues: issues.iter().map(ToString::to_string).collect() }
            }
        }
    }
}

/// The serde form of [`ModelEvent::ToolCallArgument`].
#[derive(Serialize, Deserialize)]
struct EventForm<P, C> {
    content_index: usize,
    argument: ArgumentForm<P, C>,
}

#[derive(Serialize, Deserialize)]
struct ArgumentForm<P, C> {
    path: P,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    secret: bool,
    #[serde(flatten)]
    change: C,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
pub(super) fn serialize<S: Serializer>(
    content_index: &usize,
    path: &str,
    secret: &bool,
    change: &ArgumentChange,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let argument = ArgumentForm { path, secret: *secret, change };
    EventForm { content_index: *content_index, argument }.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<(usize, String, bool, ArgumentChange), D::Error> {
    let EventForm { content_index, argument } = EventForm::deserialize(deserializer)?;
    Ok((content_index, argument.path, argument.secret, argument.change))
}

/// Leaves out values, because they may be secrets and this text may be logged.
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

/// Reads arguments while they arrive. The work is linear in the length of the text.
pub(super) struct CallArguments {
    tools: Arc<[ToolDefinition]>,
    streams: BTreeMap<usize, ArgumentStream>,
}

impl CallArguments {
    /// Creates a reader for calls of these tools. Calls of other tools are read without checks.
    pub(super) fn new(tools: Arc<[ToolDefinition]>) -> Self {
        Self { tools, streams: BTreeMap::new() }
    }

    /// Returns the `ToolCallArgument` events that follow from an event of the reply. A call has none after an error in its JSON text.
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
                    // The error is ignored, because the validation of the complete arguments reports it.
                    let _ = stream.push(delta, &mut |event| {
                        let path = event.path();
                        updates.push(ModelEvent::ToolCallArgument {
                            content_index: *content_index,
                            path: path.to_string(),
                            secret: path.is_secret(),
                            change: ArgumentChange::of(&event),
                        });
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
