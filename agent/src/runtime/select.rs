//! The choice of the model of a turn.

use std::fmt;
use std::sync::Arc;

use super::hooks::HookError;
use crate::message::{Message, MessageList, Usage};
use crate::tool::BoxFuture;

/// A function of the application that chooses the model of a turn.
pub(super) type Selector =
    Arc<dyn Fn(ModelTurn) -> BoxFuture<'static, Result<ModelChoice, HookError>> + Send + Sync>;

/// The model that answers in a turn: that of the assistant, or one with a [name](super::AssistantBuilder::named_model).
///
/// ```
/// use agent::hooks::ModelChoice;
///
/// assert_eq!(ModelChoice::from("cheap").name(), Some("cheap"));
/// assert_eq!(ModelChoice::default().name(), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelChoice(Option<Arc<str>>);

impl ModelChoice {
    /// Returns the name of the model; `None` for that of the assistant.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl<N: Into<Arc<str>>> From<N> for ModelChoice {
    fn from(name: N) -> Self {
        Self(Some(name.into()))
    }
}

/// A turn that begins, for the hook that [chooses its model](super::AssistantBuilder::select_model).
///
/// ```
/// use agent::hooks::{ModelChoice, ModelTurn};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .named_model("cheap", ScriptedModel::new(["Hi."]))
///     .select_model(|turn: ModelTurn| async move {
///         assert_eq!((turn.turn(), turn.messages().len(), turn.last_model()), (1, 1, None));
///         assert_eq!(turn.usage().total, 0);
///         Ok(ModelChoice::from("cheap"))
///     })
///     .build()?;
/// assert_eq!(assistant.prompt("Hello").await?.text(), "Hi.");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ModelTurn {
    pub(super) turn: u32,
    pub(super) messages: MessageList,
    pub(super) usage: Usage,
}

impl ModelTurn {
    /// Returns the turn of the run, counted from 1.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Returns the conversation so far.
    pub fn messages(&self) -> &MessageList {
        &self.messages
    }

    /// Returns the name that the provider gives the model of the last reply.
    pub fn last_model(&self) -> Option<&str> {
        let reply = self.messages.iter().rev().find_map(|message| message.as_assistant());
        reply.map(|reply| &*reply.model).filter(|model| !model.is_empty())
    }

    /// Returns the tokens and cost of the run so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }
}

/// Shows no messages, because they may contain secrets.
impl fmt::Debug for ModelTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelTurn")
            .field("turn", &self.turn)
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}

/// Returns the models of two replies, if they are known and differ: `PROVIDER/MODEL`.
pub(super) fn switched(messages: &[Arc<Message>], to: (&str, &str, &str)) -> Option<(String, String)> {
    let last = messages.iter().rev().find_map(|message| message.as_assistant())?;
    let from = (&*last.provider, &*last.api, &*last.model);
    let is_known = !from.2.is_empty() && !to.2.is_empty();
    (is_known && from != to).then(|| (format!("{}/{}", from.0, from.2), format!("{}/{}", to.0, to.2)))
}
