//! Typed answers: the type or schema that a prompt asks for, and the answer while it streams.

use std::sync::Arc;

use serde_json::Value;

use super::error::RunError;
use super::output::{AnswerReader, ExpectedOutput, TOOL};
use super::prompt::Prompt;
use super::run_output::RunOutput;
use crate::args::{ArgumentStream, Plan};
use crate::loop_core::EventKind;
use crate::model::{ModelEvent, OutputSchema};
use crate::tool::arguments::Argument;

pub(super) struct TypedAnswer<T> {
    /// The output that the run expects; `None` if any answer is accepted.
    pub(super) expected: Option<Arc<ExpectedOutput>>,
    read: Box<dyn FnOnce(RunOutput) -> Result<RunOutput<T>, RunError> + Send>,
}

impl TypedAnswer<()> {
    pub(super) fn any() -> Self {
        Self { expected: None, read: Box::new(Ok) }
    }
}

impl<T> TypedAnswer<T> {
    pub(super) fn read(self, run: RunOutput) -> Result<RunOutput<T>, RunError> {
        (self.read)(run)
    }
}

impl<T: Argument> TypedAnswer<T> {
    fn new(reader: AnswerReader<T>) -> Self {
        let expected = Arc::new(reader.expected_output());
        let read = move |mut run: RunOutput| {
            if let Some(suspended) = run.snapshot.take() {
                return Err(RunError::Suspended(suspended));
            }
            let value = reader.answer(&run.answer_text())?;
            Ok(run.with_value(value))
        };
        Self { expected: Some(expected), read: Box::new(read) }
    }
}

impl Prompt {
    /// Asks for an answer of type `T`, which is the [`value`](RunOutput::value) of the output.
    ///
    /// If the assistant's model has structured output and can express the schema, the model receives the schema. Otherwise, it receives a
    /// tool whose arguments are the answer. In both cases the answer is parsed like the arguments of a tool. An answer that does not fit
    /// is sent back with a report, up to [`max_retries`](super::AssistantBuilder::max_retries) times. The prompt fails with
    /// [`RunError::Output`] if the last answer does not fit, or if the schema of `T` cannot be used. It fails with [`RunError::Suspended`]
    /// if the run is suspended.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, ScriptedModel, ToolArgs};
    ///
    /// #[derive(ToolArgs)]
    /// struct City { name: String, #[arg(range(0..=40_000_000))] people: u32 }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // The first answer does not fit: the model gets the report, and one more try.
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("structured_output", r#"{"name": "Paris"}"#),
    ///     reply().tool_call("structured_output", r#"{"name": "Paris", "people": "2100000"}"#),
    /// ]);
    /// let assistant = Assistant::builder(model).build()?;
    /// let city = assistant.prompt("The capital of France?").output::<City>().await?.value;
    /// assert_eq!((city.name.as_str(), city.people), ("Paris", 2_100_000));
    /// # Ok(()) }
    /// ```
    ///
    /// A [stream](Self::stream) shows the answer while it arrives, see [`Run::partial`](super::Run::partial).
    pub fn output<T: Argument>(self) -> Prompt<T> {
        self.asking(AnswerReader::new().map(TypedAnswer::new))
    }

    /// Asks for an answer that fits a JSON Schema. Use this method if no Rust type describes the answer. The answer is requested, checked
    /// and sent back as with [`output`](Self::output). If the schema does not describe an object, the model is asked for an object that has
    /// the answer as its field `result`.
    ///
    /// To use one schema in every run of an assistant, set the schema in the [requests](super::AssistantBuilder::request) of the
    /// assistant. The answer is then in [`RunOutput::answer`].
    ///
    /// ```
    /// use agent::model::{OutputSchema, reply};
    /// use agent::{Assistant, ScriptedModel, json};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stars = json!({"type": "object", "properties": {"stars": {"type": "integer", "maximum": 5}}, "required": ["stars"]});
    /// // The first answer does not fit: the model gets the report, and one more try.
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("structured_output", r#"{"stars": 11}"#),
    ///     reply().tool_call("structured_output", r#"{"stars": 5}"#),
    /// ]);
    /// let assistant = Assistant::builder(model).build()?;
    /// let verdict = assistant.prompt("Your verdict?").output_schema(OutputSchema::new("verdict", stars)).await?.value;
    /// assert_eq!(verdict, json!({"stars": 5}));
    /// # Ok(()) }
    /// ```
    pub fn output_schema(self, schema: OutputSchema) -> Prompt<Value> {
        let reader = AnswerReader::of_schema(schema);
        let reader = reader.map_err(|error| RunError::Output { message: error.to_string() });
        self.asking(reader.map(TypedAnswer::new))
    }
}

pub(super) struct PartialAnswer {
    plan: Plan,
    stream: ArgumentStream,
    part: Option<usize>,
}

impl PartialAnswer {
    pub(super) fn new(plan: &Plan) -> Self {
        Self { plan: plan.clone(), stream: ArgumentStream::new(plan), part: None }
    }

    pub(super) fn update(&mut self, event: &EventKind) {
        match event {
            EventKind::MessageStart { .. } => {
                self.stream = ArgumentStream::new(&self.plan);
                self.part = None;
            }
            EventKind::MessageUpdate { update, .. } => self.add(update),
            _ => {}
        }
    }

    fn add(&mut self, update: &ModelEvent) {
        let is_answer = match update {
            ModelEvent::ToolCallStart { name, .. } => name == TOOL,
            ModelEvent::TextStart { .. } => self.part.is_none(),
            _ => false,
        };
        if is_answer {
            self.part = update.content_index();
            self.stream = ArgumentStream::new(&self.plan);
        }
        if update.content_index() == self.part
            && let Some(delta) = update.delta()
        {
            // Text that is not JSON leaves the answer without a value. The complete answer is validated at the end of the run.
            let _ = self.stream.push(delta, &mut |_| {});
        }
    }

    pub(super) fn snapshot(&self) -> Option<Value> {
        self.stream.snapshot()
    }
}
