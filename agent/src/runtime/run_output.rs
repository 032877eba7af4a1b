//! The output of a run.

use std::sync::Arc;

use serde_json::Value;

use super::suspended::SuspendedRun;
use crate::args::Coercion;
use crate::loop_core::RunStop;
use crate::message::{Message, ToolArguments, Usage, continued::answer_text};

/// The result of a prompt. With [`output`](super::Prompt::output) or [`output_schema`](super::Prompt::output_schema), `value` is the
/// answer.
///
/// ```
/// use agent::{Assistant, RunStop, ScriptedModel, model::reply, tool, tools};
///
/// /// Doubles a number.
/// #[tool]
/// fn double(n: i64) -> i64 {
///     n * 2
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model =
///     ScriptedModel::new([reply().tool_call("double", r#"{"n": "21"}"#), reply().text("42")]);
/// let output =
///     Assistant::builder(model).tools(tools![double]).build()?.prompt("Double 21.").await?;
/// assert_eq!((output.text().as_str(), output.turns, output.stop), ("42", 2, RunStop::Completed));
/// assert_eq!(output.messages.len(), 4);
/// let (call_id, coercions) = &output.coercions[0];
/// assert_eq!((call_id.as_str(), coercions[0].path.as_str()), ("call_1", "/n"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunOutput<T = ()> {
    /// The answer, if the prompt asked for an answer of a type or with a schema, and otherwise `()`.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new([r#"{"result": 42}"#])).build()?;
    /// let output = assistant.prompt("Six times seven?").output::<u32>().await?;
    /// assert_eq!((output.value, output.turns), (42, 1));
    /// # Ok(()) }
    /// ```
    pub value: T,
    /// The id of the run, the same as in its events.
    pub run_id: Arc<str>,
    /// All messages that the run added, starting with the prompt, if there was one.
    pub messages: Vec<Arc<Message>>,
    /// The tokens and cost of the run and its sub-agents.
    pub usage: Usage,
    /// The number of turns that began.
    pub turns: u32,
    /// The reason why the run stopped.
    pub stop: RunStop,
    /// The coercions of each call whose arguments were coerced, with the id of the call, in the order in which the calls ended.
    pub coercions: Vec<(String, Vec<Coercion>)>,
    /// The checked answer. `None` if the assistant has no [schema](crate::model::ModelRequest::output) for answers, if the prompt set its
    /// own type or schema (the answer is then in `value`), or if the run was suspended. It may also be `None` if a tool or a hook ended
    /// the run.
    ///
    /// ```
    /// use agent::model::{OutputSchema, reply};
    /// use agent::{Assistant, ScriptedModel, json};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("structured_output", r#"{"result": ["Rome", "Bern"]}"#)]);
    /// let cities = OutputSchema::new("cities", json!({"type": "array", "items": {"type": "string"}}));
    /// let assistant = Assistant::builder(model).request(|request| request.with_output(cities)).build()?;
    /// assert_eq!(assistant.prompt("Two capitals?").await?.answer, Some(json!(["Rome", "Bern"])));
    /// # Ok(()) }
    /// ```
    pub answer: Option<Value>,
    /// The run, if it was suspended, for [`Assistant::resume`](super::Assistant::resume).
    pub snapshot: Option<SuspendedRun>,
    /// The arguments of the answer tool's call, if the model gave a typed answer by this tool.
    pub(super) submitted: Option<ToolArguments>,
}

impl<T> RunOutput<T> {
    /// Returns the text of the last reply. If this reply continues earlier replies
    /// ([`continue_length`](crate::AssistantBuilder::continue_length)), the texts of these replies come first.
    pub fn text(&self) -> String {
        answer_text(&self.messages)
    }
}

impl RunOutput {
    pub(super) fn answer_text(&self) -> String {
        self.submitted.as_ref().map_or_else(|| self.text(), |args| args.text().to_owned())
    }

    pub(super) fn with_value<T>(self, value: T) -> RunOutput<T> {
        let Self { value: (), run_id, messages, usage, turns, stop, coercions, answer, snapshot, submitted } =
            self;
        RunOutput { value, run_id, messages, usage, turns, stop, coercions, answer, snapshot, submitted }
    }
}

impl<T> RunOutput<T> {
    pub(super) fn split_value(self) -> (T, RunOutput) {
        let Self { value, run_id, messages, usage, turns, stop, coercions, answer, snapshot, submitted } =
            self;
        let output = RunOutput {
            value: (),
            run_id,
            messages,
            usage,
            turns,
            stop,
            coercions,
            answer,
            snapshot,
            submitted,
        };
        (value, output)
    }
}
