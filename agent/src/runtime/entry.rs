//! The entry points of an assistant: the functions that begin a run.

use super::approval::Decisions;
use super::assistant::Assistant;
use super::begin::RunStart;
use super::error::RunError;
use super::prompt::Prompt;
use super::suspended::SuspendedRun;
use crate::loop_core::RecordedTurn;
use crate::message::{Message, UserMessage};
use crate::tool::arguments::Argument;

impl Assistant {
    /// Creates a prompt from text, parts or a message.
    ///
    /// Nothing happens until the [`Prompt`] is awaited, [read as a stream](Prompt::stream) or [started](Prompt::start). Dropping its future
    /// or stream cancels the run and leaves the conversation sound: every call in it has a result.
    pub fn prompt(&self, input: impl Into<UserMessage>) -> Prompt {
        Prompt::new(self.clone(), RunStart::Prompts(vec![Message::User(input.into())]))
    }

    /// Continues the conversation without a new message from the user. If the last message is a reply of the model, the run begins with
    /// messages of the steering queue. If the steering queue is empty, the run begins with messages of the follow-up queue.
    ///
    /// If the conversation is empty, the returned [`Prompt`] fails before any event with [`RunError::NothingToContinue`]. If the last
    /// message is a reply and both queues are empty, the prompt fails with [`RunError::LastMessageIsAssistant`].
    ///
    /// If the session has an interrupted run, that run is continued instead: see [the store](crate::store#after-a-crash). If another
    /// prompt has continued or abandoned that run in the meantime, the returned prompt fails with [`RunError::Request`].
    pub fn continue_run(&self) -> Prompt {
        Prompt::new(self.clone(), RunStart::continuing(self))
    }

    /// Resumes a suspended run: applies the decisions on its calls, answers the questions of its tools and delivers results from outside.
    ///
    /// The snapshot may come from another process. Its approvals then count only if they are signed; see
    /// [`approval_key`](super::AssistantBuilder::approval_key). The assistant must have the conversation of the snapshot, or an empty
    /// conversation. If the decisions do not fit, the prompt fails with [`RunError::Resume`] and the run still waits. If the parameters of
    /// a tool have changed, its call fails with the code `approval_stale`. The hooks and approval rules of this assistant are asked again
    /// before a call runs; see [`Hooks::before_tool_call`](super::Hooks::before_tool_call). The run keeps its id and its usage so far. The
    /// limits of this assistant apply, and the wall-clock limit starts again.
    ///
    /// A snapshot from the middle of a run ([`RunHandle::snapshot`](super::RunHandle::snapshot)) continues from there. A request whose
    /// reply was not complete is sent again. Calls that had begun run again with the same idempotency key. Calls of tools with the effect
    /// `once` end as interrupted instead. Resume each snapshot only once; the code that stores snapshots must enforce this.
    ///
    /// ```
    /// use agent::{Assistant, Decision, SuspendedRun};
    ///
    /// # async fn example(assistant: Assistant, stored: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let suspended: SuspendedRun = serde_json::from_str(stored)?;
    /// let decisions = suspended.decide(|_request| Decision::Deny("not today".into()));
    /// println!("{}", assistant.resume(&suspended, decisions).await?.text());
    /// # Ok(()) }
    /// ```
    pub fn resume(&self, suspended: &SuspendedRun, decisions: Decisions) -> Prompt {
        let run = Box::new((suspended.clone(), decisions));
        Prompt::new(self.clone(), RunStart::Resume { run, messages: Vec::new() })
    }

    /// Records calls that were made outside of a run, for example by a background job or by a button that a user pressed. The calls become
    /// a turn of the conversation like any other, with the same events, and are stored with the session.
    ///
    /// The model is asked at once if messages are queued, or if the [policy](crate::tool::ToolPolicy::follow_up) or the function
    /// [`triggers_follow_up`](crate::tool::ToolOptions::triggers_follow_up) of a tool requires it. If not, the model reads the results
    /// with the next prompt. Messages that are [added](Prompt::with_message) come before the calls.
    ///
    /// ```
    /// use agent::message::ToolCall;
    /// use agent::{Assistant, ScriptedModel, run::RecordedTurn, tool, tools};
    ///
    /// /// Exports a table in the background.
    /// #[tool(follow_up)]
    /// fn export(table: String) -> String {
    ///     format!("the export of {table} has begun")
    /// }
    ///
    /// /// Notes what the user looks at.
    /// #[tool]
    /// fn looked_at(page: String) {}
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["Your export is ready."]);
    /// let assistant = Assistant::builder(model.clone()).tools(tools![export, looked_at]).build()?;
    ///
    /// let looked = ToolCall::new("ui_1", "looked_at", r#"{"page": "orders"}"#);
    /// assistant.record(RecordedTurn::new().with_call(looked, "noted")).await?;
    /// assert!(model.requests().is_empty());
    ///
    /// let done = ToolCall::new("job_7", "export", r#"{"table": "orders"}"#);
    /// let output = assistant.record(RecordedTurn::new().with_call(done, "1,200 rows")).await?;
    /// assert_eq!(output.text(), "Your export is ready.");
    /// assert_eq!(assistant.messages().len(), 5);
    /// # Ok(()) }
    /// ```
    pub fn record(&self, turn: RecordedTurn) -> Prompt {
        Prompt::new(self.clone(), RunStart::Recorded { turn, messages: Vec::new() })
    }

    #[deprecated(note = "write `prompt(…).stream()`")]
    #[doc(hidden)]
    pub fn run(&self, input: impl Into<UserMessage>) -> super::Run {
        self.prompt(input).stream()
    }

    #[deprecated(note = "write `prompt(…).start()`")]
    #[doc(hidden)]
    pub fn start(&self, input: impl Into<UserMessage>) -> Result<super::RunHandle, RunError> {
        self.prompt(input).start()
    }

    #[deprecated(note = "write `prompt(…).output::<T>().await?.value`")]
    #[doc(hidden)]
    pub async fn extract<T: Argument>(&self, input: impl Into<UserMessage>) -> Result<T, RunError> {
        Ok(self.prompt(input).output::<T>().await?.value)
    }
}
