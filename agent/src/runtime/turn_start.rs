//! A turn that begins: the choice of its model and of its tools.

use std::fmt;
use std::sync::Arc;

use crate::message::{Message, MessageList, Usage};
use crate::tool::context::ToolContext;
use crate::tool::definition::ToolDefinition;

/// A turn that begins: the conversation, the usage of the run, and the tools. The functions that choose its
/// [model](super::AssistantBuilder::select_model) and its [tools](super::AssistantBuilder::prepare_tools) receive this value. The function
/// that chooses tools returns this value with the chosen tools.
///
/// ```
/// use agent::{Assistant, ScriptedModel, hooks::TurnStart, tool, tools};
///
/// /// Reads the plan.
/// #[tool(read_only)]
/// fn read_plan() {}
///
/// /// Carries it out.
/// #[tool]
/// fn carry_out() {}
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new(["Read."]);
/// let assistant = Assistant::builder(model.clone())
///     .tools(tools![read_plan, carry_out])
///     .prepare_tools(|turn: TurnStart| async move {
///         let first = turn.turn() == 1 && turn.last_model().is_none() && turn.usage().total == 0;
///         Ok(turn.filter(|tool| !first || tool.read_only() == Some(true)))
///     })
///     .build()?;
/// assistant.prompt("Go on.").await?;
/// assert_eq!(model.requests()[0].tools.len(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct TurnStart {
    tools: Arc<[ToolDefinition]>,
    /// The name of the answer tool, which is never removed. Empty if the run has no answer tool.
    added: Arc<str>,
    messages: MessageList,
    turn: u32,
    usage: Usage,
    context: ToolContext,
}

impl TurnStart {
    pub(super) fn new(
        tools: Arc<[ToolDefinition]>,
        added: Arc<str>,
        (turn, messages, usage): (u32, MessageList, Usage),
        context: ToolContext,
    ) -> Self {
        Self { tools, added, messages, turn, usage, context }
    }

    pub(super) fn into_tools(self) -> Arc<[ToolDefinition]> {
        self.tools
    }

    /// Keeps the tools for which `keep` returns true, in their order. The tool for a typed answer always stays.
    pub fn filter(mut self, mut keep: impl FnMut(&ToolDefinition) -> bool) -> Self {
        let mut keep = |tool: &ToolDefinition| *tool.name() == *self.added || keep(tool);
        let kept: Vec<bool> = self.tools.iter().map(&mut keep).collect();
        // An unchanged list stays shared instead of being copied.
        if kept.contains(&false) {
            let kept = self.tools.iter().zip(kept).filter(|(_, keep)| *keep);
            self.tools = kept.map(|(tool, _)| tool.clone()).collect();
        }
        self
    }

    /// Returns the tools that [`filter`](Self::filter) has kept so far, in the order in which the model sees them. The model sees
    /// [deferred](ToolDefinition::is_deferred) tools once it has found them.
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// Returns the conversation, before hooks change it for the request.
    pub fn messages(&self) -> &MessageList {
        &self.messages
    }

    /// Returns the model of the last reply, by the name that the provider has for it. Returns `None` if there is no reply, or if the reply
    /// names no model.
    pub fn last_model(&self) -> Option<&str> {
        let reply = self.messages.iter().rev().find_map(|message| message.as_assistant());
        reply.map(|reply| &*reply.model).filter(|model| !model.is_empty())
    }

    /// Returns the turn, counted from 1 in each run.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Returns the tokens and cost of the run so far, including its sub-agents that ended.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns the context of the run: the state of the prompt and of the assistant, the source on whose behalf the run acts, and the ids
    /// of the run and its session.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, hooks::TurnStart, tool, tools};
    ///
    /// struct Admin;
    ///
    /// /// Lists the users.
    /// #[tool(read_only)]
    /// fn list_users() {}
    ///
    /// /// Deletes a user.
    /// #[tool]
    /// fn delete_user(name: String) {}
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["Hello!", "Hello!"]);
    /// let assistant = Assistant::builder(model.clone())
    ///     .tools(tools![list_users, delete_user])
    ///     .prepare_tools(|turn: TurnStart| async move {
    ///         let (is_admin, asked) = (turn.context().get::<Admin>().is_some(), turn.messages().len());
    ///         let chosen = turn.filter(|tool| tool.name() != "delete_user" || (is_admin && asked > 1));
    ///         assert!(!chosen.definitions().is_empty());
    ///         Ok(chosen)
    ///     })
    ///     .build()?;
    /// assistant.prompt("Hi").with_state(Admin).await?;             // nothing is deleted by the first prompt
    /// assistant.prompt("Hi again").with_state(Admin).await?;
    /// let shown: Vec<_> = model.requests().iter().map(|request| request.tools.len()).collect();
    /// assert_eq!(shown, [1, 2]);
    /// # Ok(()) }
    /// ```
    pub fn context(&self) -> &ToolContext {
        &self.context
    }
}

/// Shows no messages, because they may contain secrets.
impl fmt::Debug for TurnStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(ToolDefinition::name).collect();
        f.debug_struct("TurnStart").field("turn", &self.turn).field("tools", &names).finish_non_exhaustive()
    }
}

pub(super) fn before_reply(messages: &MessageList) -> MessageList {
    let reply = messages.iter().rposition(|message| matches!(**message, Message::Assistant(_)));
    messages.iter().take(reply.unwrap_or(messages.len())).cloned().collect()
}
