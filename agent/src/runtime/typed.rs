//! Prompts whose answer has a type or a schema.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::error::RunError;
use super::output::{AnswerReader, ExpectedOutput, TOOL};
use super::prompt::{Prompt, Run};
use super::run_output::RunOutput;
use crate::args::ArgumentStream;
use crate::loop_core::{Event, EventKind};
use crate::model::{ModelEvent, OutputSchema};
use crate::tool::BoxFuture;
use crate::tool::arguments::Argument;

/// A prompt whose answer is a `T`. Created by [`Prompt::output`], and for answers with a schema by [`Prompt::output_schema`].
///
/// A model with structured output receives the schema, and any other model a tool whose arguments are the answer. In both cases the
/// answer is parsed like the arguments of a tool. An answer that does not fit is sent back with a report, as often as refused arguments
/// of a tool are.
///
/// ```
/// use agent::{Assistant, ScriptedModel, ToolArgs, model::reply, run::TypedPrompt};
///
/// #[derive(ToolArgs)]
/// struct Verdict { stars: u8 }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().tool_call("structured_output", r#"{"stars": 4}"#)]);
/// let assistant = Assistant::builder(model).build()?;
/// let prompt: TypedPrompt<Verdict> = assistant.prompt("Your verdict?").output();
/// let output = prompt.await?;
/// assert_eq!((output.value.stars, output.run.turns), (4, 1));
/// # Ok(()) }
/// ```
///
/// Read as a stream, it shows the answer while it arrives:
///
/// ```
/// use agent::{Assistant, ScriptedModel, ToolArgs, model::reply};
///
/// #[derive(ToolArgs)]
/// struct Verdict { stars: u8, reason: String }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().tool_call("structured_output", r#"{"stars": 4, "reason": "It is short."}"#)]);
/// let assistant = Assistant::builder(model).build()?;
/// let mut run = assistant.prompt("Your verdict?").output::<Verdict>().stream()?;
/// let mut seen = Vec::new();
/// while run.next().await.is_some() {
///     seen.extend(run.partial().map(|answer| answer["reason"].as_str().unwrap_or_default().len()));
/// }
/// assert!(seen.is_sorted() && seen.contains(&0));
/// assert_eq!(run.output().await?.value.reason, "It is short.");
/// # Ok(()) }
/// ```
#[must_use = "a prompt does nothing until it is awaited"]
pub struct TypedPrompt<T> {
    prompt: Prompt,
    reader: Result<AnswerReader<T>, RunError>,
}

/// An answer of a type, and the run that produced it.
///
/// ```
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new([r#"{"result": 42}"#])).build()?;
/// let answer = assistant.prompt("Six times seven?").output::<u32>().await?;
/// assert_eq!((answer.value, answer.run.turns), (42, 1));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TypedOutput<T> {
    /// The answer.
    pub value: T,
    /// The run.
    pub run: RunOutput,
}

impl Prompt {
    /// Asks for an answer of type `T`.
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
    pub fn output<T: Argument>(self) -> TypedPrompt<T> {
        TypedPrompt::new(self)
    }

    /// Asks for an answer that fits a JSON Schema, where no Rust type describes it. It is requested, checked and sent back like
    /// [one of a type](Self::output). An answer that is not an object is requested as the field `result` of one.
    ///
    /// To ask for the same answer in every run of an assistant, set the schema [in its
    /// requests](super::AssistantBuilder::request); then it is in [`RunOutput::answer`].
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
    pub fn output_schema(self, schema: OutputSchema) -> TypedPrompt<Value> {
        TypedPrompt::of_schema(self, schema)
    }
}

impl<T: Argument> TypedPrompt<T> {
    pub(super) fn new(prompt: Prompt) -> Self {
        Self { prompt, reader: AnswerReader::new() }
    }

    /// Returns the run as a stream of events, with the [answer so far](TypedRun::partial).
    ///
    /// # Errors
    /// Fails if the schema of the answer cannot be compiled.
    pub fn stream(self) -> Result<TypedRun<T>, RunError> {
        let reader = self.reader?;
        let expected = Arc::new(reader.expected_output());
        let partial = ArgumentStream::new(&reader.plan);
        let run = self.prompt.wanting(expected.clone()).stream();
        Ok(TypedRun { run, reader, expected, partial, part: None })
    }

    async fn run(self) -> Result<TypedOutput<T>, RunError> {
        let reader = self.reader?;
        let expected = Arc::new(reader.expected_output());
        let run = self.prompt.wanting(expected.clone()).await?;
        finish(&reader, &expected, run)
    }
}

impl TypedPrompt<Value> {
    pub(super) fn of_schema(prompt: Prompt, schema: OutputSchema) -> Self {
        let reader = AnswerReader::of_schema(schema);
        Self { prompt, reader: reader.map_err(|error| RunError::Output { message: error.to_string() }) }
    }
}

fn finish<T: Argument>(
    reader: &AnswerReader<T>,
    expected: &ExpectedOutput,
    mut run: RunOutput,
) -> Result<TypedOutput<T>, RunError> {
    if let Some(suspended) = run.snapshot.take() {
        return Err(RunError::Suspended(suspended));
    }
    let value = reader.answer(expected, &run)?;
    Ok(TypedOutput { value, run })
}

impl<T: Argument> IntoFuture for TypedPrompt<T> {
    type Output = Result<TypedOutput<T>, RunError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<T> fmt::Debug for TypedPrompt<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedPrompt")
            .field("prompt", &self.prompt)
            .field("of", &type_name::<T>())
            .finish_non_exhaustive()
    }
}

/// A run whose answer is a `T`: its events, and the answer so far.
///
/// ```
/// use agent::{Assistant, ScriptedModel, ToolArgs, model::reply, run::TypedRun};
///
/// #[derive(ToolArgs)]
/// struct Verdict { stars: u8 }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().tool_call("structured_output", r#"{"stars": 4}"#)]);
/// let assistant = Assistant::builder(model).build()?;
/// let mut run: TypedRun<Verdict> = assistant.prompt("Your verdict?").output().stream()?;
/// while let Some(_event) = run.next().await {
///     println!("{:?}", run.partial());                 // what is there already
/// }
/// assert_eq!(run.output().await?.value.stars, 4);
/// # Ok(()) }
/// ```
#[must_use = "a run does nothing until it is read"]
pub struct TypedRun<T> {
    run: Run,
    reader: AnswerReader<T>,
    expected: Arc<ExpectedOutput>,
    partial: ArgumentStream,
    /// The index of the reply's part that contains the answer.
    part: Option<usize>,
}

impl<T: Argument> TypedRun<T> {
    /// Returns the next event, or `None` after the end of the run.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        let event = self.run.next().await?;
        match &event.kind {
            EventKind::MessageStart { .. } => {
                self.partial = ArgumentStream::new(&self.reader.plan);
                self.part = None;
            }
            EventKind::MessageUpdate { update, .. } => self.update_partial(update),
            _ => {}
        }
        Some(event)
    }

    fn update_partial(&mut self, update: &ModelEvent) {
        let is_answer = match update {
            ModelEvent::ToolCallStart { name, .. } => name == TOOL,
            ModelEvent::TextStart { .. } => self.part.is_none(),
            _ => false,
        };
        if is_answer {
            self.part = update.content_index();
            self.partial = ArgumentStream::new(&self.reader.plan);
        }
        if update.content_index() == self.part
            && let Some(delta) = update.delta()
        {
            // Text that is not JSON leaves the answer without a value. The complete answer is validated at the end of the run.
            let _ = self.partial.push(delta, &mut |_| {});
        }
    }

    /// Returns the answer so far: all complete values, and the beginning of an incomplete string. Takes time linear in the length of the
    /// answer.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, ScriptedModel, ToolArgs, json};
    ///
    /// #[derive(ToolArgs)]
    /// struct Recipe { title: String, steps: Vec<String> }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let answer = r#"{"title": "Tea", "steps": ["boil water", "wait"]}"#;
    /// let assistant = Assistant::builder(ScriptedModel::new([reply().text(answer)])).build()?;
    /// let mut run = assistant.prompt("Tea?").output::<Recipe>().stream()?;
    /// let mut seen = Vec::new();
    /// while run.next().await.is_some() {
    ///     seen.extend(run.partial());
    /// }
    /// assert!(seen.contains(&json!({"title": "Tea", "steps": ["boil wat"]})));
    /// assert_eq!(run.output().await?.value.steps.len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn partial(&self) -> Option<Value> {
        self.partial.snapshot()
    }

    /// Waits for the end of the run and returns its answer.
    ///
    /// # Errors
    /// Fails like an awaited prompt, and if the last answer does not fit either.
    pub async fn output(self) -> Result<TypedOutput<T>, RunError> {
        let run = self.run.output().await?;
        finish(&self.reader, &self.expected, run)
    }
}

impl<T> fmt::Debug for TypedRun<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedRun")
            .field("run", &self.run)
            .field("of", &type_name::<T>())
            .finish_non_exhaustive()
    }
}
