//! Answers of a type, or with a schema.

mod schema;

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::assistant::Config;
use super::{Prompt, Run, RunError, RunOutput};
use crate::args::{ArgumentStream, InvalidArguments, Plan, PlanOptions, SchemaError, Subject};
use crate::loop_core::{Event, EventKind, RunStop};
use crate::model::{Capabilities, ModelEvent, ModelInfo, OutputSchema, ToolChoice};
use crate::panics::catch;
use crate::schema::render;
use crate::tool::BoxFuture;
use crate::tool::arguments::Argument;
use crate::tool::context::ToolContext;
use crate::tool::definition::ToolDefinition;
use crate::tool::outcome::ToolReply;
use crate::tool::output::{Control, ToolOutput};
use crate::tool::traits::Tool;

/// The name of the tool that takes the answer as its arguments, for models without structured output.
const TOOL: &str = "structured_output";

/// The expected answer of a run.
pub(super) struct ExpectedOutput {
    pub(super) plan: Plan,
    /// The schema for models with structured output.
    schema: OutputSchema,
    /// Validates an answer.
    check: fn(&Plan, &str) -> Result<(), InvalidArguments>,
    /// The arguments of the call of the tool, once it was called.
    submitted: Arc<Mutex<Option<String>>>,
    tool: Result<Arc<OutputTool>, String>,
}

/// The object that holds a value that is not an object, because tools take objects only.
#[derive(Deserialize, JsonSchema)]
struct ResultField<T> {
    result: T,
}

/// Parses answers of a type, or with a schema.
pub(super) struct AnswerReader<T> {
    plan: Plan,
    schema: OutputSchema,
    is_wrapped: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Argument> AnswerReader<T> {
    fn new() -> Result<Self, RunError> {
        let plan = || {
            let plain = Plan::for_type::<T>(TOOL, PlanOptions::default());
            if plain.as_ref().is_ok_and(|plan| plan.schema()["type"] == "object") {
                return plain.map(|plan| (plan, false));
            }
            Plan::for_type::<ResultField<T>>(TOOL, PlanOptions::default()).map(|plan| (plan, true))
        };
        let (plan, is_wrapped) = plan().map_err(|error| RunError::Output { message: error.to_string() })?;
        let schema = OutputSchema::new("output", plan.schema().clone());
        Ok(Self { plan, schema, is_wrapped, of: PhantomData })
    }

    fn parse(&self, text: &str) -> Result<T, InvalidArguments> {
        if self.is_wrapped {
            self.plan.parse::<ResultField<T>>(text).map(|parsed| parsed.value.result)
        } else {
            self.plan.parse::<T>(text).map(|parsed| parsed.value)
        }
    }

    pub(super) fn expected_output(&self) -> ExpectedOutput {
        let check = if self.is_wrapped {
            |plan: &Plan, text: &str| plan.parse::<ResultField<T>>(text).map(drop)
        } else {
            |plan: &Plan, text: &str| plan.parse::<T>(text).map(drop)
        };
        let submitted: Arc<Mutex<Option<String>>> = Arc::default();
        let mut description = "Gives the final answer. Call it once, at the end.".to_owned();
        if let Some(own) = &self.schema.description {
            description.extend(["\n", own]);
        }
        let definition = ToolDefinition::new(self.plan.clone(), description);
        let tool = definition
            .map(|definition| Arc::new(OutputTool { definition, check, submitted: submitted.clone() }));
        let tool = tool.map_err(|error| error.to_string());
        let (plan, schema) = (self.plan.clone(), self.schema.clone());
        ExpectedOutput { plan, schema, check, submitted, tool }
    }

    /// Returns the answer of a run that ended.
    fn answer(&self, expected: &ExpectedOutput, run: &RunOutput) -> Result<T, RunError> {
        let answer = expected.submitted_answer().unwrap_or_else(|| run.text());
        let parsed = catch(|| self.parse(without_fence(&answer)));
        let parsed =
            parsed.map_err(|panic| RunError::Output { message: format!("reading it panicked: {panic}") })?;
        parsed.map_err(|report| RunError::Output { message: list_of_issues(&report) })
    }
}

impl AnswerReader<Value> {
    /// Creates the reader of answers that fit this schema.
    pub(super) fn of_schema(mut schema: OutputSchema) -> Result<Self, SchemaError> {
        let wrapped = schema::wrapped(&schema.schema);
        let is_wrapped = wrapped.is_some();
        schema.schema = wrapped.map_or(schema.schema, Arc::new);
        let plan = Plan::compile(&schema.name, &schema.schema, PlanOptions::default())?.with_name(TOOL);
        Ok(Self { plan, schema, is_wrapped, of: PhantomData })
    }

    /// Returns the answer of a run, for an assistant with a schema for all answers. A suspended run has no answer yet, and a run that
    /// was ended by a tool or a hook may have none.
    pub(super) fn answer_if_any(
        &self,
        expected: &ExpectedOutput,
        run: &RunOutput,
    ) -> Result<Option<Value>, RunError> {
        if run.snapshot.is_some() {
            return Ok(None);
        }
        match self.answer(expected, run) {
            Err(_) if run.stop != RunStop::Completed => Ok(None),
            answer => answer.map(Some),
        }
    }
}

impl ExpectedOutput {
    /// Returns whether the request has the schema itself, rather than a tool for the answer.
    pub(super) fn is_native(&self, model: &ModelInfo) -> bool {
        let Capabilities { native_output, output_dialect, .. } = model.capabilities;
        native_output && output_dialect.is_none_or(|dialect| render(&self.plan, dialect).is_expressible())
    }

    /// Returns the configuration with the schema of the answer, or with the tool that takes the answer.
    pub(super) fn configure(&self, config: &Config) -> Result<Config, RunError> {
        let mut config = config.clone();
        if self.is_native(config.model.info()) {
            config.request.output = Some(self.schema.clone());
            return Ok(config);
        }
        config.request.output = None;
        let error = |message: String| RunError::Output { message };
        let tool = self.tool.clone().map_err(error)?;
        let name = tool.definition.name().to_owned();
        let is_alone = config.registry.is_empty();
        config.output_tool = name.as_str().into();
        config.registry.register(OutputToolHandle(tool)).map_err(|refusal| error(refusal.to_string()))?;
        config.request.tools = config.registry.definitions();
        // Other tools stay callable, because the model may need them before it can answer.
        config.request.tool_choice = if is_alone { ToolChoice::Tool(name) } else { ToolChoice::Required };
        Ok(config)
    }

    /// Validates the answer: the call of the tool, which was validated when it ran, or the text of the reply. `has_schema` says whether
    /// the request had the schema itself, rather than the tool.
    pub(super) fn check(&self, text: &str, has_schema: bool) -> Result<(), InvalidArguments> {
        if self.submitted_answer().is_some() {
            return Ok(());
        }
        let subject = if has_schema { Subject::Answer } else { Subject::AnswerWithoutTool };
        (self.check)(&self.plan, without_fence(text)).map_err(|report| report.about(subject))
    }

    fn submitted_answer(&self) -> Option<String> {
        self.submitted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Removes the code fence that models often put around JSON.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    fenced.map_or(text, |text| text.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).trim())
}

/// The tool whose arguments are the answer.
struct OutputTool {
    definition: ToolDefinition,
    check: fn(&Plan, &str) -> Result<(), InvalidArguments>,
    submitted: Arc<Mutex<Option<String>>>,
}

struct OutputToolHandle(Arc<OutputTool>);

impl Tool for OutputToolHandle {
    fn definition(&self) -> &ToolDefinition {
        &self.0.definition
    }

    fn validate(&self, arguments: &str) -> Result<crate::args::Coercions, InvalidArguments> {
        (self.0.check)(self.0.definition.plan(), arguments).map(|()| crate::args::Coercions::default())
    }

    fn formats_results(&self) -> bool {
        false
    }

    fn call<'a>(&'a self, arguments: &'a str, _: &'a ToolContext) -> BoxFuture<'a, ToolReply> {
        Box::pin(async move {
            if let Err(refusal) = self.validate(arguments) {
                return refusal.into();
            }
            *self.0.submitted.lock().unwrap_or_else(PoisonError::into_inner) = Some(arguments.to_owned());
            ToolReply::new(ToolOutput::text("Received.").with_control(Control::EndNow))
        })
    }
}

/// A prompt whose answer is a `T`. Created by [`Prompt::output`], and for answers with a schema by [`Prompt::output_schema`].
///
/// A model with structured output receives the schema, and any other model a tool whose arguments are the answer. In both cases the
/// answer is parsed like the arguments of a tool. An answer that does not fit is sent back with a report, as often as refused arguments
/// of a tool are.
///
/// ```
/// use agent::{Assistant, ScriptedModel, ToolArgs, TypedPrompt, model::reply};
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

/// Returns the issues of an answer, for the developer. The rest of the report is addressed to the model.
fn list_of_issues(report: &InvalidArguments) -> String {
    let text = report.clone().about(Subject::Answer).to_text();
    text.lines().skip(1).take_while(|line| !line.starts_with("Fields")).collect::<Vec<_>>().join("\n")
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
/// use agent::{Assistant, ScriptedModel, ToolArgs, TypedRun, model::reply};
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
