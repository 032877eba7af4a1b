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
use crate::{Argument, BoxFuture, Control, Tool, ToolContext, ToolDefinition, ToolOutput, ToolReply};

/// The name of the tool whose arguments are the answer, where a model has no schema for replies.
const TOOL: &str = "structured_output";

/// The expected answer of a run.
pub(super) struct Wanted {
    pub(super) plan: Plan,
    /// What a model is sent that keeps to a schema for its reply.
    schema: OutputSchema,
    /// Reads the answer once more: whether it fits.
    check: fn(&Plan, &str) -> Result<(), InvalidArguments>,
    /// The answer, where the tool was called with it.
    called: Arc<Mutex<Option<String>>>,
    tool: Result<Arc<OutputTool>, String>,
}

/// Values that are not objects are a field of one.
#[derive(Deserialize, JsonSchema)]
struct Wrapped<T> {
    result: T,
}

/// Reads answers of a type, or with a schema.
pub(super) struct Reader<T> {
    plan: Plan,
    schema: OutputSchema,
    is_wrapped: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Argument> Reader<T> {
    fn new() -> Result<Self, RunError> {
        let plan = || {
            let plain = Plan::for_type::<T>(TOOL, PlanOptions::default());
            if plain.as_ref().is_ok_and(|plan| plan.schema()["type"] == "object") {
                return plain.map(|plan| (plan, false));
            }
            Plan::for_type::<Wrapped<T>>(TOOL, PlanOptions::default()).map(|plan| (plan, true))
        };
        let (plan, is_wrapped) = plan().map_err(|error| RunError::Output { message: error.to_string() })?;
        let schema = OutputSchema::new("output", plan.schema().clone());
        Ok(Self { plan, schema, is_wrapped, of: PhantomData })
    }

    fn read(&self, text: &str) -> Result<T, InvalidArguments> {
        if self.is_wrapped {
            self.plan.parse::<Wrapped<T>>(text).map(|parsed| parsed.value.result)
        } else {
            self.plan.parse::<T>(text).map(|parsed| parsed.value)
        }
    }

    pub(super) fn wanted(&self) -> Wanted {
        let check = if self.is_wrapped {
            |plan: &Plan, text: &str| plan.parse::<Wrapped<T>>(text).map(drop)
        } else {
            |plan: &Plan, text: &str| plan.parse::<T>(text).map(drop)
        };
        let called: Arc<Mutex<Option<String>>> = Arc::default();
        let mut description = "Gives the final answer. Call it once, at the end.".to_owned();
        if let Some(own) = &self.schema.description {
            description.extend(["\n", own]);
        }
        let definition = ToolDefinition::new(self.plan.clone(), description);
        let tool =
            definition.map(|definition| Arc::new(OutputTool { definition, check, called: called.clone() }));
        let tool = tool.map_err(|error| error.to_string());
        let (plan, schema) = (self.plan.clone(), self.schema.clone());
        Wanted { plan, schema, check, called, tool }
    }

    /// Returns the answer of a run that has ended.
    fn answer(&self, wanted: &Wanted, run: &RunOutput) -> Result<T, RunError> {
        let answer = wanted.answer().unwrap_or_else(|| run.text());
        let read = catch(|| self.read(bare(&answer)));
        let read =
            read.map_err(|panic| RunError::Output { message: format!("reading it panicked: {panic}") })?;
        read.map_err(|report| RunError::Output { message: faults(&report) })
    }
}

impl Reader<Value> {
    /// Reads answers that fit this schema.
    pub(super) fn of_schema(mut schema: OutputSchema) -> Result<Self, SchemaError> {
        let wrapped = schema::wrapped(&schema.schema);
        let is_wrapped = wrapped.is_some();
        schema.schema = wrapped.map_or(schema.schema, Arc::new);
        let plan = Plan::compile(&schema.name, &schema.schema, PlanOptions::default())?.with_name(TOOL);
        Ok(Self { plan, schema, is_wrapped, of: PhantomData })
    }

    /// Returns the answer of a run of an assistant that has a schema for all answers. A run that waits has none yet, and one that
    /// a tool or a hook ended may have none.
    pub(super) fn answer_if_any(&self, wanted: &Wanted, run: &RunOutput) -> Result<Option<Value>, RunError> {
        if run.snapshot.is_some() {
            return Ok(None);
        }
        match self.answer(wanted, run) {
            Err(_) if run.stop != RunStop::Completed => Ok(None),
            answer => answer.map(Some),
        }
    }
}

impl Wanted {
    /// Whether the model is asked with the schema itself, and not by a tool.
    pub(super) fn is_native(&self, model: &ModelInfo) -> bool {
        let Capabilities { native_output, output_dialect, .. } = model.capabilities;
        native_output && output_dialect.is_none_or(|dialect| render(&self.plan, dialect).is_expressible())
    }

    /// Returns the configuration with what the answer needs: its schema, or the tool that takes it.
    pub(super) fn asked_for(&self, config: &Config) -> Result<Config, RunError> {
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
        config.registry.register(Handle(tool)).map_err(|refused| error(refused.to_string()))?;
        config.request.tools = config.registry.definitions();
        // Forced only when there is nothing else to call: the model may have to look things up first.
        config.request.tool_choice = if is_alone { ToolChoice::Tool(name) } else { ToolChoice::Required };
        Ok(config)
    }

    /// Whether the answer is there: in a call, or as the text of a reply. A model that has no schema for replies was given the
    /// tool for it.
    pub(super) fn check(&self, text: &str, has_schema: bool) -> Result<(), InvalidArguments> {
        if self.answer().is_some() {
            return Ok(());
        }
        let subject = if has_schema { Subject::Answer } else { Subject::AnswerWithoutTool };
        (self.check)(&self.plan, bare(text)).map_err(|report| report.about(subject))
    }

    fn answer(&self) -> Option<String> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The text without the fence that models like to put around JSON.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    fenced.map_or(text, |text| text.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).trim())
}

/// The tool whose arguments are the answer.
struct OutputTool {
    definition: ToolDefinition,
    check: fn(&Plan, &str) -> Result<(), InvalidArguments>,
    called: Arc<Mutex<Option<String>>>,
}

struct Handle(Arc<OutputTool>);

impl Tool for Handle {
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
            *self.0.called.lock().unwrap_or_else(PoisonError::into_inner) = Some(arguments.to_owned());
            ToolReply::new(ToolOutput::text("Received.").with_control(Control::EndNow))
        })
    }
}

/// A prompt whose answer is a `T`. Created by [`Prompt::output`], and for answers with a schema by [`Prompt::output_schema`].
///
/// A model that has a schema for replies is given it; any other gets a tool whose arguments are the answer. Either
/// way the answer is read by the same plan as arguments of tools, and one that does not fit is sent back with the
/// report, as often as a tool's bad arguments are.
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
/// Read as a stream, it shows the answer as far as it has come:
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
    reader: Result<Reader<T>, RunError>,
}

/// An answer of a type, and the run that came to it.
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
        Self { prompt, reader: Reader::new() }
    }

    /// The run as a stream of events, with the [answer so far](TypedRun::partial).
    ///
    /// # Errors
    /// The schema of the answer cannot be compiled.
    pub fn stream(self) -> Result<TypedRun<T>, RunError> {
        let reader = self.reader?;
        let wanted = Arc::new(reader.wanted());
        let partial = ArgumentStream::new(&reader.plan);
        let run = self.prompt.wanting(wanted.clone()).stream();
        Ok(TypedRun { run, reader, wanted, partial, part: None })
    }

    async fn run(self) -> Result<TypedOutput<T>, RunError> {
        let reader = self.reader?;
        let wanted = Arc::new(reader.wanted());
        let run = self.prompt.wanting(wanted.clone()).await?;
        finish(&reader, &wanted, run)
    }
}

impl TypedPrompt<Value> {
    pub(super) fn of_schema(prompt: Prompt, schema: OutputSchema) -> Self {
        let reader = Reader::of_schema(schema);
        Self { prompt, reader: reader.map_err(|error| RunError::Output { message: error.to_string() }) }
    }
}

fn finish<T: Argument>(
    reader: &Reader<T>,
    wanted: &Wanted,
    mut run: RunOutput,
) -> Result<TypedOutput<T>, RunError> {
    if let Some(suspended) = run.snapshot.take() {
        return Err(RunError::Suspended(suspended));
    }
    let value = reader.answer(wanted, &run)?;
    Ok(TypedOutput { value, run })
}

/// What is wrong with an answer, for a developer: the rest of the report speaks to the model.
fn faults(report: &InvalidArguments) -> String {
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
    reader: Reader<T>,
    wanted: Arc<Wanted>,
    partial: ArgumentStream,
    /// The part of the reply that is the answer.
    part: Option<usize>,
}

impl<T: Argument> TypedRun<T> {
    /// The next event; none when the run is over.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        let event = self.run.next().await?;
        match &event.kind {
            EventKind::MessageStart { .. } => {
                self.partial = ArgumentStream::new(&self.reader.plan);
                self.part = None;
            }
            EventKind::MessageUpdate { update, .. } => self.grow(update),
            _ => {}
        }
        Some(event)
    }

    fn grow(&mut self, update: &ModelEvent) {
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
            // Text that is no JSON stays without a value; the answer as a whole is judged at its end.
            let _ = self.partial.push(delta, &mut |_| {});
        }
    }

    /// The answer so far: all complete values, and of an open text what is there. Work in the size of the answer.
    ///
    /// ```
    /// use agent::model::{ScriptedModel, reply};
    /// use agent::{Assistant, ToolArgs, json};
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

    /// What the run came to.
    ///
    /// # Errors
    /// As those of an awaited prompt, and an answer that does not fit to the last.
    pub async fn output(self) -> Result<TypedOutput<T>, RunError> {
        let run = self.run.output().await?;
        finish(&self.reader, &self.wanted, run)
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
