//! One run of an assistant, from begin to end. The run has the conversation, and returns it to the assistant at the end.

use std::sync::Arc;

use serde_json::Value;
use tracing::Instrument as _;

use super::assistant::Assistant;
use super::begin::{RunStart, StartedRun};
use super::budget::budget_store_error;
use super::config::Config;
use super::error::RunError;
use super::in_process::InProcessSteps;
use super::listener::EventSlot;
use super::output::{AnswerReader, ExpectedOutput, TOOL};
use super::parent::{ChildCall, RunningChildren};
use super::perform::Performer;
use super::progress::{CallReport, Updates};
use super::records::{InterruptedTurn, RecordingSteps, RunRecords};
use super::run_output::RunOutput;
use super::stop::StopSignal;
use super::suspended::SuspendedRun;
use super::telemetry;
use crate::loop_core::{End, RunState, RunStop, Spent, fingerprint};
use crate::steps::{SharedLoop, drive};
use crate::store::StoreError;
use crate::tool::set::ToolSet;
use crate::tool::{cancel::CancelToken, context::ToolContext, problem::RegistryError, source::Source};

pub(super) struct BegunRun {
    steps: Box<InProcessSteps>,
    /// The number of messages from before this run began or was resumed. Their calls are not recorded again.
    seen: usize,
    /// The turn that a crash of the process interrupted, if there is one.
    interrupted: Option<InterruptedTurn>,
    /// Reads the answer by the assistant's schema. `None` if the assistant has no schema, or if the prompt has its own type of answer.
    answer: Option<Arc<AnswerReader<Value>>>,
    /// The tool whose function made the prompt. `None` if no tool made the prompt, or if the code that made it keeps suspended runs. If
    /// there is a tool, a suspended run is an error, because nothing would resume the run.
    in_tool: Option<Arc<str>>,
}

impl BegunRun {
    /// Begins a run. The assistant is busy until the run has ended or is dropped.
    #[expect(clippy::too_many_arguments, reason = "the parts of a prompt")]
    pub(super) fn new(
        assistant: Assistant,
        start: RunStart,
        state: RunState,
        run_id: Arc<str>,
        cancel: CancelToken,
        mut context: ToolContext,
        reader: Option<EventSlot>,
        expected: Option<Arc<ExpectedOutput>>,
        tools: ToolSet,
        within: Option<Arc<ChildCall>>,
    ) -> Result<Self, RunError> {
        let mut config = assistant.config().clone();
        if !tools.is_empty() {
            config = Arc::new(config.with_tools(tools)?);
        }
        let answer = config.answer.clone().filter(|_| expected.is_none());
        let expected = expected.or_else(|| answer.as_ref().map(|reader| Arc::new(reader.expected_output())));
        if let Some(expected) = expected {
            config = Arc::new(config.expecting(expected)?);
        }
        let is_watched = reader.is_some() || within.is_some();
        let updates = (is_watched || assistant.is_watched()).then(Arc::<Updates>::default);
        if let Some(updates) = updates.clone() {
            context = context.on_progress(move |cx, progress| {
                updates.push(CallReport::Progress { call_id: cx.shared_call_id().clone(), progress });
            });
        }
        if let Some(twice) = context.duplicate_state() {
            return Err(RunError::DuplicateState(RegistryError::duplicate_state(twice)));
        }
        let context = context.with_capture(config.capture.clone());
        config.registry.check_state(&context).map_err(RunError::MissingState)?;
        if let Some(source) = context.source() {
            config = for_source(source, config)?;
        }
        let records = config
            .keeper
            .as_ref()
            .map(|keeper| RunRecords::new(keeper, &context, assistant.session(), false));
        let started =
            assistant.begin_run(run_id.clone(), start, state, cancel.clone(), is_watched, &config)?;
        let children = within.as_ref().map(|call| run_begins(call, &started));
        let StartedRun { run, taken, resumption, checks_again, seen, interrupted } = started;
        let performer = Performer::new(config, run_id, context);
        let mut steps =
            Box::new(InProcessSteps::new(performer, assistant, run, StopSignal::new(cancel, None)));
        (steps.updates, steps.reader, steps.records) = (updates, reader, records);
        (steps.delivering, steps.resumption, steps.checks_again) = (taken, resumption, checks_again);
        (steps.parent, steps.children) = (within.map(|call| call.parent.clone()), children);
        Ok(Self { steps, seen, interrupted, answer, in_tool: None })
    }

    pub(super) fn in_tool(mut self, tool: Option<Arc<str>>) -> Self {
        self.in_tool = tool;
        self
    }

    /// Drives the run to its end, or until it is suspended, and gives its conversation back to the assistant.
    pub(super) async fn run(self) -> Result<RunOutput, RunError> {
        let Self { mut steps, seen, interrupted, answer, in_tool } = self;
        let (run, config) = (steps.run.clone(), steps.performer.config.clone());
        let stop = StopSignal::new(steps.stop.cancel.clone(), config.rules.limits.wall_time);
        steps.stop = stop.clone();
        let session = steps.performer.context.session_id();
        let span = telemetry::run_span(&config, &steps.performer.run_id, session);
        let (driven, mut steps, store_error) = match steps.records.clone() {
            None => {
                let driven = Box::pin(drive(&run, &mut *steps).instrument(span.clone()));
                let driven = stop.watch(driven).await;
                (driven, steps, None)
            }
            Some(records) => {
                let mut steps = RecordingSteps::new(steps, records, seen, interrupted, stop.deadline());
                let driven = Box::pin(drive(&run, &mut steps).instrument(span.clone()));
                let driven = stop.watch(driven).await;
                let (steps, store_error) = steps.into_inner();
                (driven, steps, store_error)
            }
        };
        if let Err(error) = driven {
            tracing::error!(run_id = %steps.performer.run_id, %error, "a step of the assistant failed");
            run.lock().fail(&error.to_string());
        }
        steps.close();
        let (usage, stop) = {
            let run = run.lock();
            (run.usage().clone(), run.end().map_or(RunStop::Suspended, End::stop))
        };
        telemetry::end_run(&span, &usage, stop.as_str(), stop == RunStop::Error);
        let output = output(&mut steps, &run, store_error, answer.as_deref())?;
        match in_tool {
            Some(tool) if output.snapshot.is_some() => {
                Err(RunError::SuspendedInTool { tool: tool.to_string() })
            }
            _ => Ok(output),
        }
    }
}

/// Registers a started sub-agent with the calling run. If the sub-agent continues after a crash, its earlier spending is added to the
/// shared budget.
fn run_begins(call: &ChildCall, started: &StartedRun) -> RunningChildren {
    let mut run = started.run.lock();
    if started.interrupted.is_some() {
        let spent = run.spent();
        call.parent.budget.add(&Spent { runs: spent.runs.saturating_add(1), ..spent });
    }
    run.set_tree(call.path.clone(), call.parent.budget.clone());
    call.begun(&started.run)
}

fn output(
    steps: &mut InProcessSteps,
    run: &SharedLoop,
    store_error: Option<StoreError>,
    answer: Option<&AnswerReader<Value>>,
) -> Result<RunOutput, RunError> {
    let end = run.lock().end().cloned();
    let error = match &end {
        Some(End::Error { message }) => Some(message.clone()),
        Some(End::Limit(reached)) => Some(reached.to_string()),
        _ => None,
    };
    steps.assistant.end_run(error);
    let mut output = {
        let (run, config) = (run.lock(), &steps.performer.config);
        RunOutput {
            value: (),
            run_id: steps.performer.run_id.clone(),
            messages: run.added().to_vec(),
            usage: run.tree_usage(),
            turns: run.turn(),
            stop: end.as_ref().map_or(RunStop::Suspended, End::stop),
            coercions: run.coercions().map(|(call, found)| (call.to_owned(), found.to_vec())).collect(),
            answer: None,
            submitted: config.expected.as_ref().and_then(|_| run.accepted_arguments(TOOL)),
            snapshot: end.is_none().then(|| {
                let mut snapshot = run.snapshot();
                config.sign(&mut snapshot);
                SuspendedRun::new(snapshot)
            }),
        }
    };
    if let Some(error) = store_error {
        return Err(RunError::Store { error, output: Box::new(output) });
    }
    match end {
        Some(End::Limit(reached)) => return Err(RunError::Limit(reached)),
        Some(End::Aborted { reason }) => return Err(RunError::Aborted { reason }),
        Some(End::Error { message }) => {
            let error = steps.error.take().unwrap_or(RunError::Request { message });
            return Err(match &error {
                RunError::Model(failed) => match budget_store_error(failed) {
                    Some(error) => RunError::Store { error, output: Box::new(output) },
                    None => error,
                },
                _ => error,
            });
        }
        _ => {}
    }
    if let Some(reader) = answer {
        output.answer = reader.answer_if_any(&run.lock())?;
    }
    Ok(output)
}

fn for_source(source: &Source, config: Arc<Config>) -> Result<Arc<Config>, RunError> {
    let tools = config.registry.definitions_for(Some(source)).map_err(RunError::Tools)?;
    if Arc::ptr_eq(&tools, &config.registry.definitions()) {
        return Ok(config);
    }
    let (mut config, mut rules) = ((*config).clone(), (*config.rules).clone());
    for definition in tools.iter() {
        if let Some(entry) = rules.tools.get_mut(definition.name()) {
            entry.fingerprint = fingerprint(definition);
        }
    }
    config.rules = Arc::new(rules);
    config.show_tools(tools);
    Ok(Arc::new(config))
}
