//! An assistant on a durable engine, such as Restate. The engine remembers the results of steps, and may continue a run in another
//! process.

use std::sync::Arc;
use std::time::Duration;

use super::approval::{CheckedAgain, Decision};
use super::assistant::Assistant;
use super::child::ChildSpec;
use super::config::Config;
use super::output::AnswerReader;
use super::perform::Performer;
use super::prepare::PreparedCall;
use super::spill::{READ_RESULT, part_of_text, result_text};
use super::state_types::{StateType, StateTypes};
use crate::loop_core::{
    AgentLoop, ApprovalRequest, CallDecision, CallEnd, Event, Prepared, Queue, ReadyCall, RecordedTurn,
    RunState, StateError, SteeringPolicy, UsageLimits,
};
use crate::message::{Conversation, Message, ToolCall};
use crate::model::OutputSchema;
use crate::tool::{
    cancel::CancelToken, context::ToolContext, definition::ToolDefinition, outcome::ToolOutcome,
    policy::Effect, value::Tool,
};
use serde_json::Value;

/// An assistant on a durable engine, such as Restate. This value holds no state of a single run, because any process may take the next
/// step.
pub(crate) struct ServedAssistant {
    config: Arc<Config>,
    /// The configuration without the schema of the answer. A tool that is the assistant itself runs with this configuration.
    plain: Arc<Config>,
    /// The types of state that the request of a run must contain, because tools need them.
    needed_state: Vec<StateType>,
    conversation: Conversation,
    /// Whether calls of the assistant return JSON values instead of texts. True if the assistant is a tool with an output schema.
    pub(super) is_typed: bool,
    /// The assistant that has this one as a tool, if there is one.
    above: Option<Arc<Self>>,
}

/// An assistant that no durable engine can run. `path` is the chain of tools that leads to the assistant. `what` lists the unsupported
/// features.
pub(crate) struct UnservedAssistant {
    pub(crate) path: String,
    pub(crate) what: Vec<&'static str>,
}

const OUTPUT_SCHEMA: &str = "an output of a type whose schema cannot be used";

const OUTPUT_TOOL: &str = "an output schema beside a tool that is named `structured_output`, because the answer is the call of a tool with this name";

impl ServedAssistant {
    /// Serves this assistant, and all assistants that it has as tools. The error names the first assistant that no durable engine can run.
    pub(crate) fn new(assistant: &Assistant) -> Result<Arc<Self>, UnservedAssistant> {
        let at_root = |what| UnservedAssistant { path: String::new(), what };
        if assistant.session().is_some() {
            return Err(at_root(vec!["`session`, because the engine keeps the conversation"]));
        }
        let root = Self::serve(assistant.config(), assistant.messages(), None, None).map_err(at_root)?;
        let mut root = Arc::new(root);
        let mut needed = root.needed_state.clone();
        root.visit("", &mut |served, _| needed.extend(served.needed_state.iter().cloned()))?;
        if let Some(root) = Arc::get_mut(&mut root) {
            // The state of sub-agents is needed from the beginning, so that a request without it is refused before its first step.
            root.needed_state = needed;
        }
        Ok(root)
    }

    /// Calls a function with each assistant that this assistant has as a tool, at any depth. The function also receives the names of the
    /// tools that lead to the assistant. Fails at the first assistant that no durable engine can run.
    pub(crate) fn visit(
        self: &Arc<Self>,
        path: &str,
        visit: &mut dyn FnMut(&Arc<Self>, &str),
    ) -> Result<(), UnservedAssistant> {
        for tool in self.config.registry.names() {
            let Some(served) = self.child(tool).filter(|_| self.config.max_depth > 0) else { continue };
            let separator = if path.is_empty() { "" } else { " > " };
            let path = format!("{path}{separator}{tool}");
            let served = match served {
                Ok(served) => Arc::new(served),
                Err(what) => return Err(UnservedAssistant { path, what }),
            };
            // An assistant that has itself as a tool is the same at each depth, so it is not visited again.
            if !Arc::ptr_eq(&served.plain.rules, &self.plain.rules) {
                visit(&served, &path);
                served.visit(&path, visit)?;
            }
        }
        Ok(())
    }

    /// Returns the assistant that a tool runs, or `None` for any other tool. The inner error lists the assistant's settings that durable
    /// runs do not support.
    pub(crate) fn child(self: &Arc<Self>, tool: &str) -> Option<Result<Self, Vec<&'static str>>> {
        let spec = ChildSpec::of(self.config.registry.get(tool)?)?;
        let (config, messages) = match &spec.assistant {
            Some(assistant) => (assistant.config(), assistant.messages()),
            None => (&self.plain, Conversation::new()),
        };
        let config = Arc::new(config.within(&self.config));
        Some(Self::serve(&config, messages, spec.output.clone(), Some(self.clone())))
    }

    fn serve(
        config: &Arc<Config>,
        conversation: Conversation,
        output: Option<OutputSchema>,
        above: Option<Arc<Self>>,
    ) -> Result<Self, Vec<&'static str>> {
        let given = match &above {
            Some(above) => above.state_of_child(config, &RunState::default(), ToolContext::new()),
            None => Ok(ToolContext::new()),
        };
        let given = given.unwrap_or_default();
        let types = above.as_ref().map_or(&config.state_types, |above| above.state_types());
        let (needed_state, is_complete) = types.of_requests(&config.registry, &given);
        let unsupported = [
            (config.spill.is_some(), "`spill_results`, because its files are those of one machine"),
            (config.source.is_some(), "`source`, because its value is that of one process"),
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
        let (mut served, is_typed) = (config.clone(), output.is_some());
        let output = output.map(AnswerReader::of_schema).transpose().map_err(|_| vec![OUTPUT_SCHEMA])?;
        if let Some(answer) = output.map(Arc::new).or_else(|| config.answer.clone()) {
            let expecting = config.expecting(Arc::new(answer.expected_output()));
            let mut expecting = expecting.map_err(|_| vec![OUTPUT_TOOL])?;
            expecting.answer = Some(answer);
            served = Arc::new(expecting);
        }
        Ok(Self { config: served, plain: config.clone(), needed_state, conversation, is_typed, above })
    }

    pub(crate) fn root(self: &Arc<Self>) -> &Arc<Self> {
        self.above.as_ref().map_or(self, |above| above.root())
    }

    fn state_types(&self) -> &StateTypes {
        self.above.as_ref().map_or(&self.config.state_types, |above| above.state_types())
    }

    /// Adds the state of a run to its context: the state in the request and, for a sub-agent, the state of the assistants that called it.
    /// State of the sub-agent's own assistant takes precedence.
    fn with_state(&self, state: &RunState, context: ToolContext) -> Result<ToolContext, StateError> {
        match &self.above {
            None => self.config.state_types.rebuild(state, context),
            Some(above) => above.state_of_child(&self.config, state, context),
        }
    }

    fn state_of_child(
        &self,
        child: &Config,
        state: &RunState,
        context: ToolContext,
    ) -> Result<ToolContext, StateError> {
        let own = self.with_state(state, context.clone())?;
        let all = self.config.registry.context(&own).all_state();
        Ok(context.with_states(&all.without(child.registry.state())))
    }

    /// Creates the `AgentLoop` of a new run. If `history` is empty, the run continues the assistant's conversation.
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

    /// Returns the [`Performer`] of a run with this state. Fails if state that tools need is missing, or if a value does not fit its
    /// registered type.
    pub(crate) fn performer(
        &self,
        run: &Arc<str>,
        cancel: &CancelToken,
        state: &RunState,
    ) -> Result<Performer, StateError> {
        let context = ToolContext::new().with_run_id(run.clone()).with_cancel(cancel.clone());
        let context = self.with_state(state, context)?;
        if let Some(missing) = self.needed_state.iter().find(|needed| !context.has(&needed.key)) {
            return Err(StateError::Missing { name: missing.name.to_string(), state: missing.key.name() });
        }
        let context = context
            .with_cancel_grace(self.config.cancel_grace)
            .with_default_timeout(self.config.tool_timeout);
        let context = context.with_capture(self.config.capture.clone());
        Ok(Performer::new(self.config.clone(), run.clone(), context))
    }

    pub(crate) fn needs_follow_up(&self, turn: &RecordedTurn) -> bool {
        self.config.needs_follow_up(turn)
    }

    /// Returns the answer of a run that ended, if the assistant has a schema for answers. Fails if a completed run has no fitting answer.
    pub(crate) fn answer(&self, run: &AgentLoop) -> Result<Option<Value>, String> {
        let Some(reader) = &self.config.answer else { return Ok(None) };
        reader.answer_if_any(run).map_err(|error| error.to_string())
    }

    /// Returns the longest time that a call may take: the longest time limit of a tool plus the cancel grace. Sub-agents do not count.
    pub(crate) fn longest_call(&self) -> Duration {
        let names = self.config.registry.names();
        let tools = names.filter_map(|name| self.config.registry.get(name));
        let limits = tools.filter(|tool| !tool.is_of_assistant()).map(|tool| self.time_limit(tool));
        limits.max().unwrap_or_default().saturating_add(self.config.cancel_grace)
    }

    fn time_limit(&self, tool: &Tool) -> Duration {
        tool.policy().timeout.unwrap_or(self.config.tool_timeout)
    }

    /// Returns the tools without a time limit, except sub-agents. A durable engine runs a call of any other tool as a step, which needs a
    /// time limit.
    pub(crate) fn unlimited_tools(&self) -> Vec<String> {
        let registry = &self.config.registry;
        let is_unlimited = |tool: &Tool| self.time_limit(tool) == Duration::MAX && !tool.is_of_assistant();
        let is_unlimited = |name: &&str| registry.get(name).is_some_and(is_unlimited);
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

    /// Returns the limits of the root run for the whole tree of runs, without the time limit, and the maximum number of sub-agents' runs.
    /// The limits are `None` if none is set, or if no tool is an assistant.
    pub(crate) fn tree_limits(self: &Arc<Self>) -> (Option<UsageLimits>, u32) {
        let root = &self.root().config;
        let is_tree = || {
            let mut tools = root.registry.names().filter_map(|name| root.registry.get(name));
            tools.any(Tool::is_of_assistant)
        };
        let limits = UsageLimits { wall_time: None, ..root.rules.limits.clone() };
        let limits = Some(limits).filter(|limits| *limits != UsageLimits::default() && is_tree());
        (limits, root.max_children)
    }

    /// Returns whether runs of the assistant have a time limit, of their own or of a run above them.
    pub(crate) fn has_time_limit(&self) -> bool {
        self.wall_time().is_some() || self.above.as_ref().is_some_and(|above| above.has_time_limit())
    }

    pub(crate) fn steering_policy(&self) -> SteeringPolicy {
        self.config.rules.steering
    }

    /// Returns whether a turn takes all waiting messages of this queue, rather than only the first.
    pub(crate) fn takes_all(&self, queue: Queue) -> bool {
        self.config.takes_all(queue)
    }

    /// Returns whether the tool of the call has the effect `once`, so that a begun call must not run again. A call of an unknown tool never
    /// begins.
    pub(crate) fn is_once(&self, call: &ToolCall) -> bool {
        self.config.registry.get(&call.name).is_some_and(|tool| tool.policy().effect == Effect::Once)
    }

    pub(crate) fn notify(&self, event: &Event) {
        self.config.listeners.notify(event);
        let (mut above, mut is_measured) = (self.above.as_ref(), self.config.is_measured());
        while let Some(parent) = above {
            parent.config.listeners.notify_above(event, is_measured);
            is_measured |= parent.config.is_measured();
            above = parent.above.as_ref();
        }
    }

    /// Answers a call of `read_result` from the conversation, and returns the end of the call. Returns `None` for a call of another tool,
    /// if the context is not managed, or if the conversation does not have the requested result.
    pub(crate) fn read_result(&self, call: &ToolCall, conversation: &Conversation) -> Option<CallEnd> {
        self.config.context.as_ref().filter(|_| call.name == READ_RESULT)?;
        let args = call.args.value()?;
        let text = result_text(conversation, args["handle"].as_str()?)?;
        Some(CallEnd::ran(ToolOutcome::Completed(part_of_text(&text, &args)), 0))
    }
}

impl Performer {
    pub(crate) fn run_id(&self) -> &Arc<str> {
        &self.run_id
    }

    pub(crate) async fn prepare_all(
        &self,
        calls: Vec<Arc<ToolCall>>,
        reply: Option<Arc<Message>>,
        tools: Option<&[ToolDefinition]>,
    ) -> Vec<PreparedCall> {
        let mut prepared = Vec::with_capacity(calls.len());
        for call in calls {
            let one = self.prepared(&call, reply.as_ref(), tools).await;
            self.record_refusal(&call, &one.0);
            prepared.push(one);
        }
        prepared
    }

    /// Prepares a call. If the run is stopped first, returns an aborted end of the call.
    async fn prepared(
        &self,
        call: &ToolCall,
        reply: Option<&Arc<Message>>,
        tools: Option<&[ToolDefinition]>,
    ) -> PreparedCall {
        let prepared = self.prepare_call(call, reply, tools, None).await;
        prepared.unwrap_or_else(|| (Prepared::Ended(Box::new(self.stopped())), None))
    }

    /// Checks again the calls that waited for decisions, because the rules of the application may have changed meanwhile.
    pub(crate) async fn check_all_again(
        &self,
        calls: Vec<(ReadyCall, Arc<ToolCall>)>,
        reply: Option<Arc<Message>>,
        tools: Option<&[ToolDefinition]>,
    ) -> Vec<CheckedAgain> {
        let mut all = Vec::with_capacity(calls.len());
        for (ready, call) in calls {
            let asked = ready.call_for_hooks(&call);
            let prepared = self.prepared(asked, reply.as_ref(), tools).await;
            all.push(self.checked_again(&ready, &call, asked, prepared));
        }
        all
    }

    /// Returns the decisions of the application's function, or `Later` for each request if there is no function. If the run is stopped
    /// before the function has decided, all requests are denied.
    pub(crate) async fn decisions(&self, requests: Vec<ApprovalRequest>) -> Vec<Decision> {
        let Some(approver) = &self.config.approver else { return vec![Decision::Later; requests.len()] };
        let decisions = self.until_stopped(self.ask_approver(approver, requests.iter())).await;
        decisions.unwrap_or_else(|| vec![Decision::Deny("The run was cancelled.".to_owned()); requests.len()])
    }

    /// Asks the hooks about each decision that changed arguments. If the run is stopped first, the call ends as aborted.
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
