//! Typed answers: parses and validates answers by a Rust type or a JSON Schema.

mod schema;

use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::error::RunError;
use crate::args::{InvalidArguments, Plan, PlanOptions, SchemaError, Subject};
use crate::loop_core::{AgentLoop, End};
use crate::message::AssistantMessage;
use crate::model::{Capabilities, ModelInfo, OutputSchema};
use crate::panics::catch;
use crate::schema::render;
use crate::tool::BoxFuture;
use crate::tool::arguments::Argument;
use crate::tool::body::{AcceptedArguments, ToolBody};
use crate::tool::context::ToolContext;
use crate::tool::definition::ToolDefinition;
use crate::tool::options::ToolOptions;
use crate::tool::outcome::ToolOutcome;
use crate::tool::output::{Control, ToolOutput};
use crate::tool::policy::Effect;
use crate::tool::value::Tool;

/// The name of the tool whose arguments are the answer, for models without structured output.
pub(super) const TOOL: &str = "structured_output";

pub(super) struct ExpectedOutput {
    pub(super) plan: Plan,
    pub(super) schema: OutputSchema,
    check: fn(&Plan, &str) -> Result<(), InvalidArguments>,
    tool: Result<Tool, String>,
}

/// The object that wraps an answer that is not an object, because the arguments of a tool are always an object.
#[derive(Deserialize, JsonSchema)]
struct ResultField<T> {
    result: T,
}

pub(super) struct AnswerReader<T> {
    pub(super) plan: Plan,
    schema: OutputSchema,
    is_wrapped: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Argument> AnswerReader<T> {
    pub(super) fn new() -> Result<Self, RunError> {
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
        let mut description = "Gives the final answer. Call it once, at the end.".to_owned();
        if let Some(own) = &self.schema.description {
            description.extend(["\n", own]);
        }
        // Calling the tool has no effect, so a durable engine may repeat the call.
        let options = ToolOptions::new(TOOL).description(description).effect(Effect::Pure).cache(false);
        let definition = ToolDefinition::with_options(self.plan.clone(), options);
        let body = OutputBody { check };
        let tool = definition.map(|definition| Tool::from_body(definition, body));
        let tool = tool.map_err(|error| error.to_string());
        let (plan, schema) = (self.plan.clone(), self.schema.clone());
        ExpectedOutput { plan, schema, check, tool }
    }

    /// Parses the answer of an ended run. `answer` is the arguments of the answer tool's call, or the text of the last reply.
    pub(super) fn answer(&self, answer: &str) -> Result<T, RunError> {
        let parsed = catch(|| self.parse(without_fence(answer)));
        let parsed =
            parsed.map_err(|panic| RunError::Output { message: format!("reading it panicked: {panic}") })?;
        parsed.map_err(|report| RunError::Output { message: list_of_issues(&report) })
    }
}

impl AnswerReader<Value> {
    pub(super) fn of_schema(mut schema: OutputSchema) -> Result<Self, SchemaError> {
        let wrapped = schema::wrapped(&schema.schema);
        let is_wrapped = wrapped.is_some();
        schema.schema = wrapped.map_or(schema.schema, Arc::new);
        let plan = Plan::compile(&schema.name, &schema.schema, PlanOptions::default())?.with_name(TOOL);
        Ok(Self { plan, schema, is_wrapped, of: PhantomData })
    }

    /// Returns the answer of a run that completed, or that a tool or a hook ended. An answer that does not fit the schema is an error only
    /// if the run completed.
    pub(super) fn answer_if_any(&self, run: &AgentLoop) -> Result<Option<Value>, RunError> {
        let is_completed = match run.end() {
            Some(End::Completed) => true,
            Some(End::Terminated) => false,
            _ => return Ok(None),
        };
        match self.answer(&answer_text(run)) {
            Err(_) if !is_completed => Ok(None),
            answer => answer.map(Some),
        }
    }
}

impl ExpectedOutput {
    /// Returns whether requests to this model contain the schema itself, instead of a tool for the answer.
    pub(super) fn is_native(&self, model: &ModelInfo) -> bool {
        let Capabilities { native_output, output_dialect, .. } = model.capabilities;
        native_output && output_dialect.is_none_or(|dialect| render(&self.plan, dialect).is_expressible())
    }

    pub(super) fn tool(&self) -> Result<(String, Tool), RunError> {
        let tool = self.tool.clone().map_err(|message| RunError::Output { message })?;
        Ok((tool.definition().name().to_owned(), tool))
    }

    /// Validates the text of a reply as the answer. `has_schema` is true if the request contained the schema instead of the answer tool.
    pub(super) fn check(&self, text: &str, has_schema: bool) -> Result<(), InvalidArguments> {
        let subject = if has_schema { Subject::Answer } else { Subject::AnswerWithoutTool };
        (self.check)(&self.plan, without_fence(text)).map_err(|report| report.about(subject))
    }
}

/// Returns the arguments of the answer tool's call, or the text of the last reply. The arguments were validated when the call ran.
fn answer_text(run: &AgentLoop) -> String {
    if let Some(args) = run.accepted_arguments(TOOL) {
        return args.text().to_owned();
    }
    let reply = run.added().iter().rev().find_map(|message| message.as_assistant());
    reply.map(AssistantMessage::text).unwrap_or_default()
}

/// Removes the code fence that models often put around JSON, and surrounding whitespace.
pub(super) fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    fenced.map_or(text, |text| text.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).trim())
}

struct OutputBody {
    check: fn(&Plan, &str) -> Result<(), InvalidArguments>,
}

impl ToolBody for OutputBody {
    fn check(&self, definition: &ToolDefinition, text: &str) -> Result<AcceptedArguments, InvalidArguments> {
        (self.check)(definition.plan(), text)?;
        Ok(AcceptedArguments::new(definition, text, Vec::new()))
    }

    fn call<'a>(&'a self, _: &'a AcceptedArguments, _: &'a ToolContext) -> BoxFuture<'a, ToolOutcome> {
        let received = ToolOutput::text("Received.").with_control(Control::EndNow);
        Box::pin(std::future::ready(received.into()))
    }
}

/// Returns the issues of an answer, for the developer. The other lines of the report are addressed to the model.
fn list_of_issues(report: &InvalidArguments) -> String {
    let text = report.clone().about(Subject::Answer).to_text();
    text.lines().skip(1).take_while(|line| !line.starts_with("Fields")).collect::<Vec<_>>().join("\n")
}
