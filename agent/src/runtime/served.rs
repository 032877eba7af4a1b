//! An assistant as an engine serves it: its configuration, and its steps as values that can be remembered.

use std::sync::Arc;
use std::time::Duration;

use super::approval::{CheckedAgain, Decision, checked_again};
use super::assistant::Assistant;
use super::config::Config;
use super::perform::{Performer, SoFar};
use super::spill::{READ_RESULT, part_of_text, result_text};
use super::state_types::StateType;
use crate::loop_core::{
    AgentLoop, ApprovalRequest, CallDecision, CallEnd, Event, Prepared, Queue, ReadyCall, RecordedTurn,
    RunState, StateError, SteeringPolicy,
};
use crate::message::{Conversation, Message, ToolCall};
use crate::tool::{
    cancel::CancelToken, context::ToolContext, definition::ToolDefinition, outcome::ToolOutcome,
    policy::Effect, value::Tool,
};
use serde_json::Value;

/// An assistant whose runs an engine drives. It remembers nothing from step to step.
pub(crate) struct ServedAssistant {
    config: Arc<Config>,
    /// The state that tools need from the request of a run.
    needed_state: Vec<StateType>,
    conversation: Conversation,
    /// The time limit for one reply.
    pub(crate) model_timeout: Duration,
}

const OUTPUT_TOOL: &str = "an output schema beside a tool that is named `structured_output`, because the answer is the call of a tool with this name";

impl ServedAssistant {
    /// Serves this assistant.
    ///
    /// # Errors
    /// Returns the options that no engine can provide, in the words of the builder, each with the reason.
    pub(crate) fn new(assistant: &Assistant) -> Result<Self, Vec<&'static str>> {
        let config = assistant.config();
        let (needed_state, is_complete) = config.state_types.of_requests(&config.registry);
        let unsupported = [
            (config.spill.is_some(), "`spill_results`, because its files are those of one machine"),
            (config.source.is_some(), "`source`, because its value is that of one process"),
            (assistant.session().is_some(), "`session`, because the engine keeps the conversation"),
            (
                !is_complete,
                "`state_per_prompt`, because a run may continue in another process (register the types with `serialized_state`)",
            ),
        ];
        let unsupported: Vec<_> =
            unsupported.into_iter().filter_map(|(is_used, option)| is_used.then_some(option)).collect();
        if config.cache {
            tracing::info!("durable runs keep no results: `cache_results` has no effect on them");
        }
        if !unsupported.is_empty() {
            return Err(unsupported);
        }
        let mut config = config.clone();
        if let Some(answer) = &config.answer {
            config = Arc::new(
                config.expecting(Arc::new(answer.expected_output())).map_err(|_| vec![OUTPUT_TOOL])?,
            );
        }
        let model_timeout = Duration::from_secs(600);
        Ok(Self { config, needed_state, conversation: assistant.messages(), model_timeout })
    }

    /// Returns a run at its beginning; without a history, it continues the assistant's conversation.
    pub(crate) fn begin(
        &self,
        run: &Arc<str>,
        state: RunState,
        history: Vec<Arc<Message>>,
        prompts: impl IntoIterator<Item = Message>,
    ) -> AgentLoop {
        let conversation =
            if history.is_empty() { self.conversation.clone() } else { history.into_iter().collect() };
        let mut core = AgentLoop::new(run.clone(), self.config.rules.clone(), conversation, prompts);
        core.set_secrets(self.config.secrets());
        core.set_state(state);
        core
    }

    /// Returns the performer of the steps of a run with this state.
    ///
    /// # Errors
    /// State that tools need is missing, or a value does not fit its registered type.
    pub(crate) fn performer(
        &self,
        run: &Arc<str>,
        cancel: &CancelToken,
        state: &RunState,
    ) -> Result<Performer, StateError> {
        let context = ToolContext::new().with_run_id(run.clone()).with_cancel(cancel.clone());
        let context = self.config.state_types.rebuild(state, context)?;
        if let Some(missing) = self.needed_state.iter().find(|needed| !context.has(&needed.key)) {
            return Err(StateError::Missing { name: missing.name.to_string(), state: missing.key.name() });
        }
        let context = context
            .with_cancel_grace(self.config.cancel_grace)
            .with_default_timeout(self.config.tool_timeout);
        let context = context.with_capture(self.config.capture.clone());
        Ok(Performer::new(self.config.clone(), run.clone(), context))
    }

    /// Whether the model is asked at once when these calls are recorded.
    pub(crate) fn needs_follow_up(&self, turn: &RecordedTurn) -> bool {
        self.config.needs_follow_up(turn)
    }

    /// Returns the answer of a run that ended, if the assistant has a schema for answers.
    ///
    /// # Errors
    /// The run completed with an answer that does not fit.
    pub(crate) fn answer(&self, run: &AgentLoop) -> Result<Option<Value>, String> {
        let Some(reader) = &self.config.answer else { return Ok(None) };
        reader.answer_if_any(run).map_err(|error| error.to_string())
    }

    /// Returns the longest time that a step may take.
    pub(crate) fn longest_step(&self) -> Duration {
        let timeout = |tool: &Tool| {
            tool.policy().timeout.filter(|limit| *limit < Duration::MAX).unwrap_or(self.config.tool_timeout)
        };
        let names = self.config.registry.names();
        let tools = names.filter_map(|name| self.config.registry.get(name)).map(timeout).max();
        tools.unwrap_or_default().max(self.model_timeout) + self.config.cancel_grace
    }

    /// Returns the tools without a time limit, which a step needs.
    pub(crate) fn unlimited_tools(&self) -> Vec<String> {
        let registry = &self.config.registry;
        let is_unlimited =
            |name: &&str| registry.get(name).is_some_and(|tool| tool.policy().timeout == Some(Duration::MAX));
        registry.names().filter(is_unlimited).map(str::to_owned).collect()
    }

    pub(crate) fn has_hooks(&self) -> bool {
        !self.config.hooks.is_empty()
    }

    pub(crate) fn has_approver(&self) -> bool {
        self.config.approver.is_some()
    }

    pub(crate) fn max_concurrency(&self) -> usize {
        self.config.max_concurrency
    }

    pub(crate) fn cancel_grace(&self) -> Duration {
        self.config.cancel_grace
    }

    pub(crate) fn wall_time(&self) -> Option<Duration> {
        self.config.rules.limits.wall_time
    }

    pub(crate) fn steering_policy(&self) -> SteeringPolicy {
        self.config.rules.steering
    }

    /// Whether a turn takes all waiting messages of this queue, and not the first alone.
    pub(crate) fn takes_all(&self, queue: Queue) -> bool {
        self.config.takes_all(queue)
    }

    /// Whether the call must not run again once it has begun. A call of an unknown tool never begins.
    pub(crate) fn is_once(&self, call: &ToolCall) -> bool {
        self.config.registry.get(&call.name).is_some_and(|tool| tool.policy().effect == Effect::Once)
    }

    /// Notifies the assistant's listeners.
    pub(crate) fn notify(&self, event: &Event) {
        self.config.listeners.notify(event);
    }

    /// Returns the end of a call that reads a result of the conversation; `None` for any other call.
    pub(crate) fn read_result(&self, call: &ToolCall, conversation: &Conversation) -> Option<CallEnd> {
        self.config.context.as_ref().filter(|_| call.name == READ_RESULT)?;
        let args = call.args.value()?;
        let text = result_text(conversation, args["handle"].as_str()?)?;
        Some(CallEnd::ran(ToolOutcome::Completed(part_of_text(&text, &args)), 0))
    }

    /// Returns the tools of these names, as far as they exist.
    pub(crate) fn definitions(&self, names: &[String]) -> Arc<[ToolDefinition]> {
        let tools = self.config.request.tools.iter();
        tools.filter(|tool| names.iter().any(|name| name == tool.name())).cloned().collect()
    }

    /// Returns the tools that the model has in every turn.
    pub(crate) fn all_definitions(&self) -> Arc<[ToolDefinition]> {
        self.config.request.tools.clone()
    }
}

impl Performer {
    pub(crate) fn run_id(&self) -> &Arc<str> {
        &self.run_id
    }

    /// Returns the names of the tools that the model has in a turn.
    ///
    /// # Errors
    /// Returns the message of a hook that failed, or the reason why the run was stopped.
    pub(crate) async fn chosen_names(&self, so_far: SoFar) -> Result<Vec<String>, String> {
        match self.choose_tools(so_far).await {
            Some(Ok(tools)) => Ok(tools.iter().map(|tool| tool.name().to_owned()).collect()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err(self.stop_reason().to_string()),
        }
    }

    /// Prepares each call of a segment, in call order.
    pub(crate) async fn prepare_all(
        &self,
        calls: Vec<ToolCall>,
        reply: Option<Arc<Message>>,
        tools: Option<&[ToolDefinition]>,
    ) -> Vec<Prepared> {
        let mut prepared = Vec::with_capacity(calls.len());
        for call in calls {
            let one = self.prepared(&call, reply.as_ref(), tools).await;
            self.record_refusal(&call, &one);
            prepared.push(one);
        }
        prepared
    }

    /// Prepares a call. If the run is stopped first, the call ends.
    async fn prepared(
        &self,
        call: &ToolCall,
        reply: Option<&Arc<Message>>,
        tools: Option<&[ToolDefinition]>,
    ) -> Prepared {
        match self.prepare_call(call, reply, tools, None).await {
            Some((prepared, _)) => prepared,
            None => Prepared::Ended(self.stopped()),
        }
    }

    /// Checks calls again that waited for decisions: the rules of the application may have changed meanwhile.
    pub(crate) async fn check_all_again(
        &self,
        calls: Vec<(ReadyCall, ToolCall)>,
        reply: Option<Arc<Message>>,
        tools: Option<&[ToolDefinition]>,
    ) -> Vec<CheckedAgain> {
        let mut all = Vec::with_capacity(calls.len());
        for (ready, call) in calls {
            let asked = ready.call_for_hooks(&call);
            let prepared = self.prepared(asked, reply.as_ref(), tools).await;
            all.push(checked_again(&self.config, &self.context, &ready, &call, asked, prepared));
        }
        all
    }

    /// Returns the decisions of the application's function, or `Later` for each request if there is none.
    pub(crate) async fn decisions(&self, requests: Vec<ApprovalRequest>) -> Vec<Decision> {
        let Some(approver) = &self.config.approver else { return vec![Decision::Later; requests.len()] };
        let decisions = self.until_stopped(self.ask_approver(approver, requests.iter())).await;
        decisions.unwrap_or_else(|| vec![Decision::Deny("The run was cancelled.".to_owned()); requests.len()])
    }

    /// Asks the hooks about decisions that changed the arguments of their calls.
    pub(crate) async fn ask_about_edits(
        &self,
        made: Vec<(ApprovalRequest, CallDecision)>,
        reply: Option<Arc<Message>>,
    ) -> Vec<CallDecision> {
        let mut all = Vec::with_capacity(made.len());
        for (request, decided) in made {
            let decided = self.ask_about_edit(request, decided, reply.clone()).await;
            all.push(decided.unwrap_or_else(|| CallDecision::AllowEnded(self.stopped())));
        }
        all
    }
}
