//! Requests of front ends.

#[cfg(feature = "ui-ag-ui")]
mod ag_ui;
#[cfg(feature = "ui-ai-sdk")]
mod ai_sdk;
mod content;
#[cfg(feature = "runtime")]
mod decisions;
mod error;
mod tools;

pub use error::UiRequestError;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use super::UiProtocol;
use crate::message::UserMessage;
use crate::tool::question::QuestionInput;

/// Maximum size of a request's body, in bytes.
pub(super) const MAX_BODY: usize = 4 << 20;
/// Maximum length of an id that a front end chooses, in bytes.
const MAX_ID: usize = 512;
/// Maximum number of items of each list in a request, such as the parts of a user's message and the answers.
const MAX_PARTS: usize = 256;

/// A request of a front end.
///
/// Of the conversation in the request, only the last message or the last results are read, because the server stores the conversation
/// itself.
///
/// ```
/// use agent::ui::{UiProtocol, UiRequest};
///
/// let body = br#"{
///     "threadId": "t-1", "runId": "r-1", "tools": [], "context": [], "state": {"page": 3},
///     "messages": [{"id": "m1", "role": "user", "content": "Hi"}]
/// }"#;
/// let request = UiRequest::decode(UiProtocol::AgUi, body)?;
/// assert_eq!(request.thread, "t-1");
/// assert_eq!(request.prompt.unwrap().text(), "Hi");
/// assert_eq!(request.extra["state"]["page"], 3);
///
/// // The front end may deliver the results of these tools only.
/// let request = UiRequest::new("t-1").with_browser_tools(["pick_color"]);
/// assert!(request.prompt.is_none() && !request.has_answers());
/// # Ok::<(), agent::ui::UiRequestError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UiRequest {
    /// The id of the conversation, chosen by the front end.
    pub thread: String,
    /// The message of the user, if the request begins a run.
    pub prompt: Option<UserMessage>,
    /// Information from the front end for the model. The information precedes the prompt.
    pub context: Option<UserMessage>,
    pub(super) answers: Vec<UiAnswer>,
    pub(super) tools: Vec<BrowserTool>,
    /// Whether the front end requests another reply that replaces the last reply.
    pub regenerates: bool,
    /// All other fields of the request, which only the application uses.
    pub extra: Map<String, Value>,
    /// The run id that a client of AG-UI sent. The client sends a new run id with each request, even to resume a run.
    pub(super) run: Option<String>,
    pub(super) parent_run: Option<String>,
    /// Whether the client of AG-UI declared version 1.0.
    pub(super) is_current: bool,
    /// Tools whose results the front end may deliver.
    pub(super) browser: BTreeSet<String>,
    /// Possible inputs to questions, by id. Only the suspended run shows whether an id belongs to a question.
    inputs: BTreeMap<String, QuestionInput>,
}

/// A decision on a call, an input to a question, or the result of a call, as a front end sends it.
///
/// The `Debug` text omits arguments, inputs and results.
#[derive(Clone, PartialEq)]
#[cfg_attr(not(feature = "runtime"), allow(dead_code, reason = "only runs read what is in them"))]
pub(super) enum UiAnswer {
    Allow {
        id: String,
        /// The id of the call, if the protocol sends it.
        call_id: Option<String>,
    },
    AllowWith {
        id: String,
        call_id: Option<String>,
        args: Value,
    },
    Deny {
        id: String,
        call_id: Option<String>,
        reason: String,
    },
    /// An input to a question of a tool. Only [`decisions`](UiRequest::decisions) finds out whether the question exists.
    Input {
        id: String,
        call_id: Option<String>,
        input: Value,
    },
    Output {
        /// The id of the call, in the form in which the front end received it.
        call_id: String,
        output: Value,
    },
    Failed {
        call_id: String,
        message: String,
    },
    /// A message about a call that waits for a result of the application: the user gave up, or asks for the state of the call.
    Waiting {
        call_id: String,
        is_abandoned: bool,
    },
}

impl UiAnswer {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Allow { id, .. }
            | Self::AllowWith { id, .. }
            | Self::Deny { id, .. }
            | Self::Input { id, .. } => id,
            Self::Output { call_id, .. } | Self::Failed { call_id, .. } | Self::Waiting { call_id, .. } => {
                call_id
            }
        }
    }

    pub(super) fn call_id(&self) -> Option<&str> {
        match self {
            Self::Allow { call_id, .. }
            | Self::AllowWith { call_id, .. }
            | Self::Deny { call_id, .. }
            | Self::Input { call_id, .. } => call_id.as_deref(),
            Self::Output { call_id, .. } | Self::Failed { call_id, .. } | Self::Waiting { call_id, .. } => {
                Some(call_id)
            }
        }
    }
}

impl fmt::Debug for UiAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Allow { .. } => "Allow",
            Self::AllowWith { .. } => "AllowWith",
            Self::Deny { .. } => "Deny",
            Self::Input { .. } => "Input",
            Self::Output { .. } => "Output",
            Self::Failed { .. } => "Failed",
            Self::Waiting { .. } => "Waiting",
        };
        f.debug_struct(name).field("id", &self.id()).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct BrowserTool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: Value,
}

impl UiRequest {
    /// Creates a request without content, for an encoder of a run that no front end requested.
    pub fn new(thread: impl Into<String>) -> Self {
        Self { thread: thread.into(), is_current: true, ..Self::default() }
    }

    /// Reads the body of a request of at most 4 MiB.
    ///
    /// # Errors
    /// Returns an error if the body does not have the form of the protocol, or contains something that front ends may not send.
    pub fn decode(protocol: UiProtocol, body: &[u8]) -> Result<Self, UiRequestError> {
        if body.len() > MAX_BODY {
            return Err(UiRequestError::TooLarge { max: MAX_BODY });
        }
        let body: Value = serde_json::from_slice(body).map_err(|_| UiRequestError::NotJson)?;
        let Value::Object(body) = body else { return Err(UiRequestError::invalid("", "an object")) };
        match protocol {
            #[cfg(feature = "ui-ai-sdk")]
            UiProtocol::AiSdk => ai_sdk::decode(body),
            #[cfg(feature = "ui-ag-ui")]
            UiProtocol::AgUi => ag_ui::decode(body),
        }
    }

    /// Returns whether the request has decisions, inputs or results for a suspended run.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Sets the tools whose results the front end may deliver; by default, there are none. Results of other calls are ignored.
    pub fn with_browser_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.browser = tools.into_iter().map(Into::into).collect();
        self
    }
}

fn id(value: Option<&Value>, field: &str) -> Result<String, UiRequestError> {
    let id = value.and_then(Value::as_str).unwrap_or_default();
    check_id(id, field)?;
    Ok(id.to_owned())
}

pub(super) fn check_id(id: &str, field: &str) -> Result<(), UiRequestError> {
    if id.is_empty() || id.len() > MAX_ID || id.chars().any(char::is_control) {
        return Err(UiRequestError::invalid(field, "an id of 1 to 512 bytes"));
    }
    Ok(())
}

/// Reads a field that may be missing or `null`.
fn optional<'v, T>(
    value: Option<&'v Value>,
    field: &str,
    expected: &'static str,
    read: impl FnOnce(&'v Value) -> Option<T>,
) -> Result<Option<T>, UiRequestError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value).map(Some).ok_or_else(|| UiRequestError::invalid(field, expected)),
    }
}

fn list<'v>(value: Option<&'v Value>, field: &str) -> Result<&'v [Value], UiRequestError> {
    let list = optional(value, field, "a list", Value::as_array)?.map_or(&[][..], Vec::as_slice);
    if list.len() > MAX_PARTS {
        return Err(UiRequestError::invalid(field, "a list of at most 256 items"));
    }
    Ok(list)
}

#[cfg(feature = "ui-ai-sdk")]
fn edited_args(value: &Value, field: &str) -> Result<Value, UiRequestError> {
    if value.is_object() { Ok(value.clone()) } else { Err(UiRequestError::invalid(field, "an object")) }
}
