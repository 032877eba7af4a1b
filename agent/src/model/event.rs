//! Events of a growing reply.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ArgumentChange, arguments};
use crate::message::{Part, ProviderData, StopReason, Usage};

/// An event of a growing reply.
///
/// `content_index` counts the parts in the order of their first event. A part is either a start, deltas and an end, or one
/// [`Part`](Self::Part) event. The events of several parts may be interleaved. An adapter may leave out events that follow from other
/// events: see [`ModelStream::new`](super::ModelStream::new). In the serde form, the field `update` names the variant.
///
/// ```
/// use agent::model::{Model, ModelEvent, ModelRequest, StepCx};
/// use agent::ScriptedModel;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
/// let model = ScriptedModel::new(["Good morning."]);
/// let mut stream = model.stream(&StepCx::new(), &ModelRequest::default());
/// let mut text = String::new();
/// while let Some(event) = stream.next().await {
///     match event? {
///         ModelEvent::TextDelta { delta, .. } => text += &delta,
///         ModelEvent::ToolCallStart { name, .. } => println!("{name} is called"),
///         _ => {}
///     }
/// }
/// assert_eq!(text, "Good morning.");
/// # Ok(()) }
/// ```
///
/// The index and the added text can be read without a match:
///
/// ```
/// use agent::message::Usage;
/// use agent::model::ModelEvent;
///
/// let said = ModelEvent::TextDelta { content_index: 1, delta: "It is".into() };
/// assert_eq!((said.content_index(), said.delta(), said.text_delta()), (Some(1), Some("It is"), Some("It is")));
/// let thought = ModelEvent::ThinkingDelta { content_index: 0, delta: "Is it?".into() };
/// assert_eq!((thought.delta(), thought.text_delta()), (Some("Is it?"), None));
/// assert_eq!(ModelEvent::Usage { usage: Usage::new(12, 3).into() }.content_index(), None);
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "update", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelEvent {
    /// The reply starts. The event has data about the whole reply, and may occur more than once.
    ReplyStart {
        /// The provider's id of the reply, if the provider reports it.
        response_id: Option<String>,
        /// The name of the model that gives the reply, if the provider reports it: the requested name, or another name, for example a
        /// version for an alias.
        model: Option<String>,
    },
    /// A text part starts.
    TextStart {
        /// The index of the part.
        content_index: usize,
    },
    /// Text was added.
    TextDelta {
        /// The index of the part.
        content_index: usize,
        /// The text to append.
        delta: String,
    },
    /// The text is complete.
    TextEnd {
        /// The index of the part.
        content_index: usize,
    },
    /// A thinking part starts.
    ThinkingStart {
        /// The index of the part.
        content_index: usize,
    },
    /// Thinking was added.
    ThinkingDelta {
        /// The index of the part.
        content_index: usize,
        /// The text to append.
        delta: String,
    },
    /// The thinking is complete.
    ThinkingEnd {
        /// The index of the part.
        content_index: usize,
    },
    /// A tool call starts.
    ToolCallStart {
        /// The index of the part.
        content_index: usize,
        /// The id of the call. An adapter leaves the id empty if its provider sends no ids.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// Text was added to the arguments.
    ToolCallDelta {
        /// The index of the part.
        content_index: usize,
        /// The text to append.
        delta: String,
    },
    /// A change of a value in the arguments, caused by the latest delta. Emitted if the request [asks for these
    /// events](super::ModelRequest::argument_events). Calls are made from the complete text, so the events need not be stored. In the
    /// serde form, `path`, `secret` and the change are the members of an object `argument`.
    #[serde(with = "arguments")]
    ToolCallArgument {
        /// The index of the part.
        content_index: usize,
        /// The JSON Pointer to the value, which is empty for the arguments as a whole.
        path: String,
        /// Whether the value may contain a secret, and should not be shown.
        secret: bool,
        /// The change.
        change: ArgumentChange,
    },
    /// The call is complete.
    ToolCallEnd {
        /// The index of the part.
        content_index: usize,
    },
    /// A complete part. If the part has started before, this event contains the final version and ends the part. No delta is emitted for
    /// text that only the final version contains: this text is only in the message.
    Part {
        /// The index of the part.
        content_index: usize,
        /// The part. It is boxed, because most events are small deltas, and events are moved often.
        part: Box<Part>,
    },
    /// Provider state of a part that has started. It replaces the earlier state of this part.
    PartData {
        /// The index of the part.
        content_index: usize,
        /// The state.
        data: ProviderData,
    },
    /// Provider state of the whole message. It replaces the earlier state of the message.
    MessageData {
        /// The state.
        data: ProviderData,
    },
    /// The token usage of the reply so far. It replaces earlier counts.
    Usage {
        /// The counts.
        usage: Box<Usage>,
    },
    /// The reply is complete. Only usage and provider state may follow.
    Stop {
        /// The reason why the reply ended.
        reason: StopReason,
        /// Details for people, if there are any, for example the explanation of a refusal.
        detail: Option<String>,
        /// The provider's word for the reason, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
}

/// Writes only the length of arguments, because they may contain secrets and this text may be logged.
impl fmt::Debug for ModelEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::ReplyStart { .. } => "ReplyStart",
            Self::TextStart { .. } => "TextStart",
            Self::TextDelta { .. } => "TextDelta",
            Self::TextEnd { .. } => "TextEnd",
            Self::ThinkingStart { .. } => "ThinkingStart",
            Self::ThinkingDelta { .. } => "ThinkingDelta",
            Self::ThinkingEnd { .. } => "ThinkingEnd",
            Self::ToolCallStart { .. } => "ToolCallStart",
            Self::ToolCallDelta { .. } => "ToolCallDelta",
            Self::ToolCallArgument { .. } => "ToolCallArgument",
            Self::ToolCallEnd { .. } => "ToolCallEnd",
            Self::Part { .. } => "Part",
            Self::PartData { .. } => "PartData",
            Self::MessageData { .. } => "MessageData",
            Self::Usage { .. } => "Usage",
            Self::Stop { .. } => "Stop",
        };
        let mut out = f.debug_struct(name);
        if let Some(index) = self.content_index() {
            out.field("content_index", &index);
        }
        match self {
            Self::ReplyStart { response_id, model } => {
                out.field("response_id", response_id).field("model", model);
            }
            Self::TextDelta { delta, .. } | Self::ThinkingDelta { delta, .. } => {
                out.field("delta", delta);
            }
            Self::ToolCallStart { id, name, .. } => {
                out.field("id", id).field("name", name);
            }
            Self::ToolCallDelta { delta, .. } => {
                out.field("delta", &format_args!("({} bytes)", delta.len()));
            }
            Self::ToolCallArgument { path, secret, change, .. } => {
                out.field("path", path).field("secret", secret).field("change", change);
            }
            Self::Part { part, .. } => {
                out.field("part", part);
            }
            Self::PartData { data, .. } | Self::MessageData { data } => {
                out.field("data", data);
            }
            Self::Usage { usage } => {
                out.field("usage", usage);
            }
            Self::Stop { reason, detail, raw } => {
                out.field("reason", reason).field("detail", detail).field("raw", raw);
            }
            _ => {}
        }
        out.finish()
    }
}

impl ModelEvent {
    /// Returns the index of the part that the event is about, or `None` if the event is about the whole reply.
    pub fn content_index(&self) -> Option<usize> {
        match self {
            Self::TextStart { content_index }
            | Self::TextDelta { content_index, .. }
            | Self::TextEnd { content_index }
            | Self::ThinkingStart { content_index }
            | Self::ThinkingDelta { content_index, .. }
            | Self::ThinkingEnd { content_index }
            | Self::ToolCallStart { content_index, .. }
            | Self::ToolCallDelta { content_index, .. }
            | Self::ToolCallArgument { content_index, .. }
            | Self::ToolCallEnd { content_index }
            | Self::Part { content_index, .. }
            | Self::PartData { content_index, .. } => Some(*content_index),
            _ => None,
        }
    }

    /// Returns the text that was added to a text, to thinking or to the arguments of a call. Returns `None` for other events.
    pub fn delta(&self) -> Option<&str> {
        match self {
            Self::TextDelta { delta, .. }
            | Self::ThinkingDelta { delta, .. }
            | Self::ToolCallDelta { delta, .. } => Some(delta),
            _ => None,
        }
    }

    /// Returns the text that was added to a text part, which a chat shows. Returns `None` for other events.
    pub fn text_delta(&self) -> Option<&str> {
        match self {
            Self::TextDelta { delta, .. } => Some(delta),
            _ => None,
        }
    }
}
