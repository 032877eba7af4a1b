//! What happens while a reply grows.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ArgumentUpdate;
use crate::message::{Part, ProviderData, StopReason, Usage};

/// What happens while a reply grows.
///
/// `content_index` counts the parts in order of first appearance. A part is start, deltas, end; parts may overlap.
/// An adapter may leave out what follows from the rest: see [`ModelStream::new`](super::ModelStream::new). The
/// serde form carries the word of the kind in `update`.
///
/// ```
/// use agent::model::{Model, ModelEvent, ModelRequest, ScriptedModel, StepCx};
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
/// Where the kind does not matter, methods say what an event is about:
///
/// ```
/// use agent::message::Usage;
/// use agent::model::ModelEvent;
///
/// let said = ModelEvent::TextDelta { content_index: 1, delta: "It is".into() };
/// assert_eq!((said.content_index(), said.delta(), said.text_delta()), (Some(1), Some("It is"), Some("It is")));
/// let thought = ModelEvent::ThinkingDelta { content_index: 0, delta: "Is it?".into() };
/// assert_eq!((thought.delta(), thought.text_delta()), (Some("Is it?"), None));
/// assert_eq!(ModelEvent::Usage { usage: Usage::new(12, 3) }.content_index(), None);
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "update", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelEvent {
    /// The provider began to answer. What it says about the reply as a whole; may come again.
    ReplyStart {
        /// The provider's id of the reply.
        response_id: Option<String>,
        /// The model that answers, where it is not the one that was asked for.
        model: Option<String>,
    },
    /// A text part begins.
    TextStart {
        /// Which part.
        content_index: usize,
    },
    /// More text.
    TextDelta {
        /// Which part.
        content_index: usize,
        /// What to append.
        delta: String,
    },
    /// The text is whole.
    TextEnd {
        /// Which part.
        content_index: usize,
    },
    /// A thinking part begins.
    ThinkingStart {
        /// Which part.
        content_index: usize,
    },
    /// More thinking.
    ThinkingDelta {
        /// Which part.
        content_index: usize,
        /// What to append.
        delta: String,
    },
    /// The thinking is whole.
    ThinkingEnd {
        /// Which part.
        content_index: usize,
    },
    /// A tool call begins.
    ToolCallStart {
        /// Which part.
        content_index: usize,
        /// The call's id. An adapter whose provider gives none leaves it empty.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of the arguments' text.
    ToolCallDelta {
        /// Which part.
        content_index: usize,
        /// What to append.
        delta: String,
    },
    /// What the latest text of the arguments told, if the request
    /// [asked for it](super::ModelRequest::argument_events). It repeats nothing that has to be kept: calls are made from
    /// the whole text.
    ToolCallArgument {
        /// Which part.
        content_index: usize,
        /// What was told.
        argument: ArgumentUpdate,
    },
    /// The call is whole.
    ToolCallEnd {
        /// Which part.
        content_index: usize,
    },
    /// A whole part. For a part that began before, it is the final word on it and ends it.
    Part {
        /// Which part.
        content_index: usize,
        /// The part.
        part: Part,
    },
    /// State of the provider for a part that began; replaces what was there.
    PartData {
        /// Which part.
        content_index: usize,
        /// The state.
        data: ProviderData,
    },
    /// State of the provider for the message as a whole; replaces what was there.
    MessageData {
        /// The state.
        data: ProviderData,
    },
    /// What the reply took so far; replaces what was known.
    Usage {
        /// The counts.
        usage: Usage,
    },
    /// The reply is complete. Nothing but usage and provider state may follow.
    Stop {
        /// Why it ended.
        reason: StopReason,
        /// More exactly, for people: a refusal's explanation, for example.
        detail: Option<String>,
        /// The provider's word for the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
}

/// Of arguments the length only: they may hold secrets, and this text goes into logs.
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
            Self::ToolCallArgument { argument, .. } => {
                out.field("argument", argument);
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
    /// The index of the part it is about; none where it is about the reply as a whole.
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

    /// The text that was added to a part, whether text, thinking or the arguments of a call.
    pub fn delta(&self) -> Option<&str> {
        match self {
            Self::TextDelta { delta, .. }
            | Self::ThinkingDelta { delta, .. }
            | Self::ToolCallDelta { delta, .. } => Some(delta),
            _ => None,
        }
    }

    /// Text that was added to what the model says: what a chat shows as it comes.
    pub fn text_delta(&self) -> Option<&str> {
        match self {
            Self::TextDelta { delta, .. } => Some(delta),
            _ => None,
        }
    }
}
