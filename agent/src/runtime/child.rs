//! An assistant as a tool: each call starts a run, the child of the run that makes the call.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::assistant::Assistant;
use super::begin::RunStart;
use super::error::RunError;
use super::output::{AnswerReader, TOOL};
#[cfg(feature = "durable-restate")]
use super::parent::EngineChild;
use super::parent::{ChildCall, ChildHandle};
use super::prompt::Prompt;
use super::records::{EndedRun, StoredRun};
use crate::args::{InvalidArguments, Plan, PlanOptions};
use crate::loop_core::{AgentLoop, CHILD_HANDLE, SPENT, gone_child};
use crate::message::{AssistantMessage, Message, Usage, UserMessage, continued::answer_text};
use crate::model::OutputSchema;
use crate::tool::BoxFuture;
use crate::tool::arguments::{Argument, ToolArgs};
use crate::tool::body::{AcceptedArguments, ToolBody};
use crate::tool::context::ToolContext;
use crate::tool::definition::ToolDefinition;
use crate::tool::definition_error::DefinitionError;
use crate::tool::options::ToolOptions;
use crate::tool::outcome::{OutcomeCode, ToolOutcome};
use crate::tool::output::ToolOutput;
use crate::tool::set::{IntoTools, ToolSet};
use crate::tool::value::Tool;

/// The maximum length of a task, in characters.
const MAX_TASK: u32 = 64 << 10;

/// An [assistant as a tool](Assistant::as_tool). Give it to [`AssistantBuilder::tools`](super::AssistantBuilder::tools).
///
/// ```
/// use agent::{Assistant, ScriptedModel, ToolArgs, json, model::reply};
///
/// #[derive(ToolArgs)]
/// struct Trip { from: String, to: String }
///
/// #[derive(ToolArgs)]
/// struct Train { departs: String, changes: u8 }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let answer = reply().tool_call("structured_output", r#"{"departs": "8:15", "changes": 1}"#);
/// let expert = Assistant::builder(ScriptedModel::new([answer])).build()?;
/// let find_train = expert
///     .as_tool("find_train", "Finds the next train.")
///     .input(|trip: Trip| format!("The next train from {} to {}?", trip.from, trip.to))
///     .output::<Train>()
///     .options(|options| options.title("Trains"));
///
/// let model = ScriptedModel::new([
///     reply().tool_call("find_train", r#"{"from": "Bern", "to": "Rome"}"#),
///     reply().text("At a quarter past eight."),
/// ]);
/// let assistant = Assistant::builder(model).tools(find_train).build()?;
/// assert_eq!(assistant.prompt("To Rome, please.").await?.text(), "At a quarter past eight.");
/// assert_eq!(assistant.messages().get(2).unwrap().text(), r#"{"departs":"8:15","changes":1}"#);
/// # Ok(()) }
/// ```
#[must_use = "an assistant has it as a tool with `tools`"]
#[derive(Clone)]
pub struct ChildTool {
    /// The assistant that a call runs, or `None` for the assistant that makes the call.
    assistant: Option<Assistant>,
    options: ToolOptions,
    input: ChildInput,
    output: Option<Result<OutputSchema, DefinitionError>>,
}

/// The functions that define the arguments of a call, check them, and convert them to the first message of the child.
#[derive(Clone)]
struct ChildInput {
    plan: fn(&str, PlanOptions) -> Result<Plan, DefinitionError>,
    check: fn(&ToolDefinition, &str) -> Result<AcceptedArguments, InvalidArguments>,
    message: Arc<MakeMessage>,
}

type MakeMessage = dyn Fn(&AcceptedArguments) -> Result<UserMessage, InvalidArguments> + Send + Sync;

impl Assistant {
    /// Makes the assistant a tool. Each call runs a [fork](Self::fork) with a conversation of its own, and the answer of that run is the
    /// result of the call. The model gives the `task` as text, unless [`input`](ChildTool::input) sets other arguments.
    ///
    /// The run of a call is a child, and the run that makes the call is its parent. Cancelling or dropping the parent does the same to the
    /// child. The child's tools get the parent's state and source. The parent's listeners get the child's events, with their
    /// [path](crate::Event::path). The child's tokens, requests and calls count against the parent's limits. A suspended child suspends
    /// the parent, too: [one suspended run](super::SuspendedRun) has the approval requests of all runs. Resuming the suspended run
    /// continues all these runs. If the parent has a [session](super::AssistantBuilder::session), each child has its own session, and
    /// continues after a crash.
    ///
    /// The child has the assistant's own system prompt, model, tools, hooks, limits and approval rules. If the assistant has no function
    /// that [decides on calls](super::AssistantBuilder::on_approval) or [answers questions](super::AssistantBuilder::on_question), the
    /// function of the parent is used. The store is always the parent's. Declare the state that the tools take from the parent with
    /// [`state_per_prompt`](super::AssistantBuilder::state_per_prompt).
    ///
    /// The call fails with one of these codes:
    /// - `child_failed`: the child failed.
    /// - `store`: the store failed.
    /// - `limit`: the child reached a limit, or the parent may start no more children.
    /// - `depth_limit`: the parent is at the maximum depth.
    /// - `invalid_arguments`: the arguments do not fit the type of the [`input`](ChildTool::input).
    /// - `child_gone`: an interrupted child cannot continue, for example because the tool is no longer an assistant.
    /// - `needs_decision`: the run would have to wait for a decision, but the call was made outside of a run, for example by an MCP
    ///   client.
    ///
    /// If the child is cancelled, the call is interrupted, with the code `aborted`.
    ///
    /// On a [durable engine](crate::guide::durable), each call is a workflow of its own. A time limit of the tool counts the time that the
    /// steps of the child take, but not the time in which the child waits.
    ///
    /// ```
    /// use agent::{Assistant, RunStop, ScriptedModel, model::reply, tool, tools};
    ///
    /// /// Books a train.
    /// #[tool(approval = "always")]
    /// fn book(to: String) -> String {
    ///     format!("booked to {to}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("book", r#"{"to": "Rome"}"#), reply().text("It is booked.")]);
    /// let expert = Assistant::builder(model).system("You book trains.").tools(tools![book]).build()?;
    ///
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("ask_expert", r#"{"task": "Book a train to Rome."}"#),
    ///     reply().text("You are on the train."),
    /// ]);
    /// let assistant =
    ///     Assistant::builder(model).tools(expert.as_tool("ask_expert", "Books trains.")).build()?;
    /// let output = assistant.prompt("To Rome, please.").await?;
    /// assert_eq!(output.stop, RunStop::Suspended);
    ///
    /// let suspended = output.snapshot.expect("the expert waits");
    /// let requests = suspended.requests();
    /// assert_eq!(format!("{} > {}", requests[0].path, requests[0].call.name), "ask_expert > book");
    /// let decisions = suspended.decide(|_| agent::Decision::Allow);
    /// assert_eq!(assistant.resume(&suspended, decisions).await?.text(), "You are on the train.");
    /// # Ok(()) }
    /// ```
    pub fn as_tool(&self, name: impl Into<Arc<str>>, description: impl Into<Arc<str>>) -> ChildTool {
        ChildTool::new(Some(self.clone()), name.into(), description.into())
    }
}

impl ChildTool {
    pub(super) fn new(assistant: Option<Assistant>, name: Arc<str>, description: Arc<str>) -> Self {
        let options = ToolOptions::new(name).description(description).without_timeout();
        Self { assistant, options, input: ChildInput::task(), output: None }
    }

    /// Sets the type of the arguments, and the function that converts them to the message with which the child begins.
    pub fn input<A: Argument + ToolArgs, M: Into<UserMessage>>(
        self,
        message: impl Fn(A) -> M + Send + Sync + 'static,
    ) -> Self {
        let input = ChildInput {
            plan: |name, options| Plan::for_type::<A>(name, options).map_err(DefinitionError::from),
            check: |definition, text| AcceptedArguments::parse::<A>(definition, text),
            message: Arc::new(move |accepted| accepted.take::<A>().map(|args| message(args).into())),
        };
        Self { input, ..self }
    }

    /// Asks the assistant for an answer of type `T`, like [`Prompt::output`]. The result of a call is the JSON of the answer.
    pub fn output<T: Argument>(self) -> Self {
        let plan = Plan::for_type::<T>("output", PlanOptions::default()).map_err(DefinitionError::from);
        Self { output: Some(plan.map(|plan| OutputSchema::new("output", plan.schema().clone()))), ..self }
    }

    /// Changes the options of the tool, for example its approval rule.
    pub fn options(self, change: impl FnOnce(ToolOptions) -> ToolOptions) -> Self {
        Self { options: change(self.options), ..self }
    }

    /// Makes the tool.
    ///
    /// # Errors
    /// Fails if the name or a schema is invalid. If the tool is added to a list of tools without `build`, the list reports this error.
    pub fn build(self) -> Result<Tool, DefinitionError> {
        let Self { assistant, options, input, output } = self;
        let output = output.transpose()?;
        let mut options = match &output {
            Some(schema) if schema.schema["type"] == "object" => {
                options.output_schema(Value::clone(&schema.schema))
            }
            _ => options,
        };
        let plan = (input.plan)(&options.name, options.arguments)?;
        let spec = Arc::new(ChildSpec { assistant, output });
        options.of_assistant = Some(spec.clone());
        Ok(Tool::from_body(ToolDefinition::with_options(plan, options)?, ChildBody { spec, input }))
    }
}

#[diagnostic::do_not_recommend]
impl IntoTools for ChildTool {
    fn into_tools(self) -> ToolSet {
        let mut set = ToolSet::new();
        let name = (*self.options.name).to_owned();
        set.push(self.build().map_err(|error| (name, error)));
        set
    }
}

impl fmt::Debug for ChildTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildTool").field("name", &self.options.name).finish_non_exhaustive()
    }
}

impl ChildInput {
    /// Creates the default input: one text argument, the task.
    fn task() -> Self {
        let message =
            |accepted: &AcceptedArguments| Ok(accepted.value()["task"].as_str().unwrap_or_default().into());
        Self {
            plan: |name, options| {
                let task = json!({
                    "type": "string",
                    "description": "The task, with everything that is needed to do it.",
                    "minLength": 1,
                    "maxLength": MAX_TASK,
                });
                let schema = json!({"type": "object", "properties": {"task": task}, "required": ["task"]});
                Plan::compile(name, &schema, options).map_err(DefinitionError::from)
            },
            check: |definition, text| AcceptedArguments::parse::<Value>(definition, text),
            message: Arc::new(message),
        }
    }
}

pub(super) struct ChildSpec {
    /// The assistant that a call runs, or `None` for the assistant that makes the call.
    pub(super) assistant: Option<Assistant>,
    pub(super) output: Option<OutputSchema>,
}

impl ChildSpec {
    /// Returns `None` if the tool is not an assistant.
    #[cfg(feature = "durable-restate")]
    pub(super) fn of(tool: &Tool) -> Option<&Self> {
        tool.assistant_spec()?.downcast_ref()
    }
}

struct ChildBody {
    spec: Arc<ChildSpec>,
    input: ChildInput,
}

impl ToolBody for ChildBody {
    fn check(&self, definition: &ToolDefinition, text: &str) -> Result<AcceptedArguments, InvalidArguments> {
        (self.input.check)(definition, text)
    }

    fn call<'a>(
        &'a self,
        arguments: &'a AcceptedArguments,
        cx: &'a ToolContext,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let message = match (self.input.message)(arguments) {
                Ok(message) => message,
                Err(report) => return ToolOutcome::failed(OutcomeCode::INVALID_ARGUMENTS, report.to_text()),
            };
            #[cfg(feature = "durable-restate")]
            if let Some(child) = cx.get::<EngineChild>() {
                return child.outcome(message);
            }
            match cx.get::<ChildHandle>() {
                Some(ChildHandle(call)) => self.run(call, message, cx).await,
                None => self.run_alone(message, cx).await,
            }
        })
    }
}

impl ChildBody {
    /// Runs the assistant as a child of the run that makes the call, or continues a suspended or interrupted child. If the child has
    /// already ended in the store, returns its outcome.
    async fn run(&self, call: &Arc<ChildCall>, message: UserMessage, cx: &ToolContext) -> ToolOutcome {
        let mut assistant = call.parent.assistant_of_child(self.spec.assistant.as_ref());
        let mut stored = StoredRun::New;
        if call.parent.has_session {
            match assistant.into_session(call.run_id.clone()).await {
                Ok(opened) => assistant = opened,
                Err(error) => {
                    return failed("store", format!("The sub-agent's session cannot be opened: {error}."));
                }
            }
            stored = assistant.stored_run();
        }
        let start = match (call.take_continued(), stored) {
            (Some((run, resumption)), _) => RunStart::Child { run, resumption: Box::new(resumption) },
            (None, StoredRun::Unfinished) => RunStart::continuing(&assistant),
            (None, StoredRun::Ended(ended)) => return self.stored_outcome(&assistant, &ended, call),
            (None, StoredRun::Lost) => return gone_child(),
            (None, StoredRun::New) => {
                if let Some(refused) = may_begin(call) {
                    return refused;
                }
                RunStart::Prompts(vec![message.into()])
            }
        };
        let prompt = Prompt::new(assistant, start).of_call(cx).within(call.clone());
        let outcome = self.outcome(prompt, Some(call)).await;
        with_spent(outcome, call)
    }

    /// Runs the assistant for a call outside of a run, for example by an MCP client. The call fails if the assistant has to wait for a
    /// decision.
    async fn run_alone(&self, message: UserMessage, cx: &ToolContext) -> ToolOutcome {
        let Some(assistant) = &self.spec.assistant else {
            return failed(
                "child_failed",
                "The tool is an assistant that calls itself, and there is no assistant here.",
            );
        };
        let prompt = Prompt::new(assistant.fork(), RunStart::Prompts(vec![message.into()])).of_call(cx);
        self.outcome(prompt, None).await
    }

    async fn outcome(&self, prompt: Prompt, call: Option<&ChildCall>) -> ToolOutcome {
        let output = match &self.spec.output {
            None => prompt.await.map(|output| (None, output)),
            Some(schema) => prompt.output_schema(schema.clone()).await.map(|output| {
                let (value, output) = output.split_value();
                (Some(value), output)
            }),
        };
        match output {
            Ok((value, mut output)) => match output.snapshot.take() {
                Some(suspended) => waits(call, suspended.into_loop()),
                None => answer(value.as_ref(), &output.run_id, output.turns, &output.usage, &output.messages),
            },
            Err(RunError::Suspended(suspended)) => waits(call, suspended.into_loop()),
            Err(error) => failure(error),
        }
    }

    /// Returns the outcome of a sub-agent's run that ended in an earlier process. Also counts the amounts that the run spent.
    fn stored_outcome(&self, assistant: &Assistant, ended: &EndedRun, call: &ChildCall) -> ToolOutcome {
        let conversation = assistant.messages();
        let added = conversation.shared().get(ended.from..).unwrap_or_default();
        call.ended(AgentLoop::spent_for(assistant.config().rules.clone(), added));
        let detail = || ended.detail.as_deref().unwrap_or(&ended.stop);
        let outcome = match &*ended.stop {
            "limit" => did_not_finish(detail()),
            "aborted" => ToolOutcome::aborted(detail()),
            "error" => did_fail(detail()),
            _ => self.stored_answer(added, call),
        };
        with_spent(outcome, call)
    }

    fn stored_answer(&self, added: &[Arc<Message>], call: &ChildCall) -> ToolOutcome {
        let replies = || added.iter().rev().filter_map(|message| message.as_assistant());
        let value = match &self.spec.output {
            None => None,
            Some(schema) => {
                let submitted =
                    replies().flat_map(AssistantMessage::tool_calls).find(|call| call.name == TOOL);
                let text = submitted.map(|call| call.args.text().to_owned());
                let text = text.unwrap_or_else(|| answer_text(added));
                let reader = AnswerReader::of_schema(schema.clone()).ok();
                let Some(value) = reader.and_then(|reader| reader.answer(&text).ok()) else {
                    return did_fail(NO_ANSWER);
                };
                Some(value)
            }
        };
        let (turns, usage) =
            (u32::try_from(replies().count()).unwrap_or(u32::MAX), call.spent().unwrap_or_default().usage);
        answer(value.as_ref(), &call.run_id, turns, &usage, added)
    }
}

/// Counts a new child against the limits of its parent, or returns the outcome of the call if a limit forbids the child.
fn may_begin(call: &ChildCall) -> Option<ToolOutcome> {
    let parent = &call.parent;
    if parent.is_too_deep() {
        return Some(too_deep(call.path.calls().len() - 1));
    }
    if !parent.budget.take_run(parent.max_children) {
        return Some(too_many(parent.max_children));
    }
    None
}

pub(super) fn too_deep(depth: usize) -> ToolOutcome {
    let text = format!("No sub-agent was started: this run is at depth {depth}, the limit (`max_depth`).");
    failed("depth_limit", text)
}

pub(super) fn too_many(max: u32) -> ToolOutcome {
    let text = format!("No sub-agent was started: the run has started {max}, the limit (`max_children`).");
    failed("limit", text)
}

/// Returns the outcome of a call whose sub-agent was suspended. Outside of a run (`call` is `None`), the call fails, because nothing would
/// resume the sub-agent.
fn waits(call: Option<&ChildCall>, run: AgentLoop) -> ToolOutcome {
    match call {
        Some(call) => {
            call.suspended(run);
            ToolOutcome::Deferred { handle: CHILD_HANDLE.to_owned() }
        }
        None => failed(
            "needs_decision",
            "The sub-agent needs a person's decision, and nobody can be asked here. Go on without it.",
        ),
    }
}

pub(super) fn answer(
    value: Option<&Value>,
    run_id: &str,
    turns: u32,
    usage: &Usage,
    messages: &[Arc<Message>],
) -> ToolOutcome {
    let answered = match value.map(ToolOutput::json) {
        Some(Ok(json)) => json,
        Some(Err(error)) => return failed("child_failed", error.to_string()),
        None => ToolOutput::text(text_or_count(messages)),
    };
    let answered = answered
        .with_metadata("run_id", run_id)
        .with_metadata("turns", turns)
        .with_metadata("total_tokens", usage.total);
    answered.into()
}

fn text_or_count(messages: &[Arc<Message>]) -> String {
    let text = answer_text(messages);
    if !text.is_empty() {
        return text;
    }
    let calls = messages.iter().filter(|message| message.as_tool_result().is_some()).count();
    let noun = if calls == 1 { "call" } else { "calls" };
    format!("The sub-agent gave no answer. It made {calls} {noun}.")
}

fn with_spent(mut outcome: ToolOutcome, call: &ChildCall) -> ToolOutcome {
    let metadata = match &mut outcome {
        ToolOutcome::Completed(output) => &mut output.metadata,
        ToolOutcome::Failed { metadata, .. } => metadata,
        _ => return outcome,
    };
    if let Some(spent) = call.spent().and_then(|spent| serde_json::to_value(spent).ok()) {
        metadata.insert(SPENT.to_owned(), spent);
    }
    outcome
}

pub(super) const NO_ANSWER: &str = "it ended without the answer that it was asked for";

fn did_not_finish(reached: impl fmt::Display) -> ToolOutcome {
    failed("limit", format!("The sub-agent did not finish: {reached}."))
}

pub(super) fn did_fail(error: impl fmt::Display) -> ToolOutcome {
    failed("child_failed", format!("The sub-agent failed: {error}."))
}

pub(super) fn failure(error: RunError) -> ToolOutcome {
    match error {
        RunError::Limit(reached) => did_not_finish(reached),
        // Only the message is used, because after a crash and on a durable engine, such as Restate, only the message is left.
        RunError::Model(error) => did_fail(error.message()),
        RunError::Request { message } => did_fail(message),
        RunError::Aborted { reason } => ToolOutcome::aborted(&reason),
        RunError::Store { error, .. } => {
            failed("store", format!("The sub-agent could not be recorded: {error}."))
        }
        error => did_fail(error),
    }
}

pub(super) fn failed(code: &'static str, message: impl Into<String>) -> ToolOutcome {
    ToolOutcome::failed(OutcomeCode::new(code), message)
}
