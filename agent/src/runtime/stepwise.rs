//! An assistant taken apart: what it does in one step, by itself, for engines that remember steps.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_core::Stream as _;
use futures_util::future::{Either, select};
use tracing::Instrument as _;

use super::approval::{CheckedAgain, Edited, checked_again, decided};
use super::ask::is_update;
use super::assistant::{Assistant, Config};
use super::drive::failed;
use super::hooks::{BeforeCall, HookError, ToolCallInfo, call_hook};
use super::prepare::{check, hook_error};
use super::queue::QueueMode;
use super::records::RunRecords;
use super::segment::run;
use super::{Decision, telemetry};
use crate::loop_core::{
    AgentLoop, ApprovalRequest, CallEnd, Decided, Event, Prepared, Queue, Ready, ReadyCall, RecordedTurn,
    Reply, Signature, SteeringPolicy, TurnSummary,
};
use crate::message::{
    AssistantMessage, Conversation, HandOff, LOST, Message, MessageList, StopReason, ToolArguments, ToolCall,
};
use crate::model::{ModelError, ModelErrorKind, ModelRequest, StepCx};
use crate::panics::catch_future;
use crate::tool::combine::shown_after;
use crate::tool::invoke::panic_text;
use crate::{
    CancelToken, DenialCode, Effect, FailureCode, InterruptionCode, StepKey, Timeout, Tool, ToolContext,
    ToolOutcome,
};

/// The steps of an assistant's runs. It keeps nothing from step to step.
pub(crate) struct Stepwise {
    config: Arc<Config>,
    conversation: Conversation,
    /// How long a reply may take.
    pub(crate) model_timeout: Duration,
}

/// One call, as it is to run.
pub(crate) struct StepCall {
    pub(crate) key: StepKey,
    pub(crate) call: ToolCall,
    /// The reply that asks for it, where that is known.
    pub(crate) reply: Option<Arc<Message>>,
    /// What the model said beside it; with the first call of a reply.
    pub(crate) text: String,
    /// Whether it may have begun before, and must not begin again.
    pub(crate) is_lost: bool,
}

impl Stepwise {
    /// The steps of this assistant.
    ///
    /// # Errors
    /// What of it cannot be done step by step, in the words of its builder.
    pub(crate) fn new(assistant: &Assistant) -> Result<Self, Vec<&'static str>> {
        let config = assistant.config();
        let wanted = [
            (config.spill.is_some(), "spill_results: its files are those of one machine"),
            (!config.preparers.is_empty(), "prepare_tools"),
            (config.answer.is_some(), "request: an output schema, which is not checked step by step"),
            (
                config.rules.steering != SteeringPolicy::AfterBatch,
                "a steering policy other than `AfterBatch`",
            ),
            (config.rules.limits.wall_time.is_some(), "limits: wall_time"),
            (assistant.session().is_some(), "session: the engine keeps the conversation"),
            (
                config.registry.check_state(&ToolContext::new()).is_err(),
                "state_per_prompt: a run may go on in another process",
            ),
        ];
        let wanted: Vec<_> =
            wanted.into_iter().filter_map(|(is_wanted, what)| is_wanted.then_some(what)).collect();
        if config.cache {
            tracing::info!("durable runs keep no results: `cache_results` has no effect on them");
        }
        if wanted.is_empty() {
            let model_timeout = Duration::from_secs(600);
            Ok(Self { config: config.clone(), conversation: assistant.messages(), model_timeout })
        } else {
            Err(wanted)
        }
    }

    /// A run at its beginning; without a history it goes on from the assistant's conversation.
    pub(crate) fn begin(
        &self,
        run: &Arc<str>,
        history: Vec<Arc<Message>>,
        prompts: impl IntoIterator<Item = Message>,
    ) -> AgentLoop {
        let conversation =
            if history.is_empty() { self.conversation.clone() } else { history.into_iter().collect() };
        let mut core = AgentLoop::new(run.clone(), self.config.rules.clone(), conversation, prompts);
        core.set_secrets(self.config.secrets());
        core
    }

    /// Whether the model is asked at once when these calls are recorded.
    pub(crate) fn follows_up(&self, turn: &RecordedTurn) -> bool {
        self.config.needs_follow_up(turn)
    }

    /// How long a step may take at most.
    pub(crate) fn longest_step(&self) -> Duration {
        let timeout = |tool: &Arc<dyn Tool>| match tool.policy().timeout {
            Timeout::After(after) => after,
            Timeout::Inherit | Timeout::Never => self.config.tool_timeout,
        };
        let names = self.config.registry.names();
        let tools = names.filter_map(|name| self.config.registry.get(name)).map(timeout).max();
        tools.unwrap_or_default().max(self.model_timeout) + self.config.cancel_grace
    }

    /// Tools that say that they need no limit: a step needs one.
    pub(crate) fn unlimited_tools(&self) -> Vec<String> {
        let registry = &self.config.registry;
        let is_unlimited =
            |name: &&str| registry.get(name).is_some_and(|tool| tool.policy().timeout == Timeout::Never);
        registry.names().filter(is_unlimited).map(str::to_owned).collect()
    }

    pub(crate) fn has_hooks(&self) -> bool {
        !self.config.hooks.is_empty()
    }

    pub(crate) fn has_approver(&self) -> bool {
        self.config.approver.is_some()
    }

    pub(crate) fn max_turns(&self) -> u32 {
        self.config.rules.max_turns
    }

    pub(crate) fn max_concurrency(&self) -> usize {
        self.config.max_concurrency
    }

    pub(crate) fn cancel_grace(&self) -> Duration {
        self.config.cancel_grace
    }

    /// Whether a turn takes all messages of this queue that wait, and not the first alone.
    pub(crate) fn takes_all(&self, queue: Queue) -> bool {
        let mode = match queue {
            Queue::Steering => self.config.steering_mode,
            Queue::FollowUp => self.config.follow_up_mode,
        };
        mode == QueueMode::All
    }

    /// Whether the call must not run again once it has begun. A call of a tool that is not there never begins.
    pub(crate) fn is_once(&self, call: &ToolCall) -> bool {
        self.config.registry.get(&call.name).is_some_and(|tool| tool.policy().effect == Effect::Once)
    }

    /// Tells the assistant's listeners.
    pub(crate) fn tell(&self, event: Event) {
        let event = Arc::new(event);
        for listener in self.config.listeners.iter() {
            // A builder's listeners do not wait.
            listener.notify(&event);
        }
    }

    fn context(&self, run: &Arc<str>, cancel: &CancelToken) -> ToolContext {
        let context = ToolContext::builder().run_id(run.clone()).cancel(cancel.clone());
        let context =
            context.cancel_grace(self.config.cancel_grace).default_timeout(self.config.tool_timeout);
        // No state is given, so none is given twice.
        context.capture(self.config.capture.clone()).build().unwrap_or_default()
    }

    /// One reply, in one attempt.
    ///
    /// # Errors
    /// Another attempt may go better. Any other failure is a reply that says so.
    pub(crate) async fn ask(
        &self,
        key: StepKey,
        messages: MessageList,
        cancel: CancelToken,
    ) -> Result<Reply, ModelError> {
        let info = self.config.model.info();
        let nothing = || AssistantMessage {
            provider: info.provider.clone(),
            api: info.api.clone(),
            model: info.model.clone(),
            ..AssistantMessage::default()
        };
        let aborted = |partial| {
            let reason = cancel.reason().unwrap_or_else(|| "cancelled".into());
            Ok(Reply::new(failed(partial, &ModelError::aborted(&*reason))))
        };
        let request = match until(&cancel, self.request(&key.run, messages, &cancel)).await {
            None => return aborted(nothing()),
            Some(Ok(request)) => request,
            Some(Err(error)) => {
                let error = ModelError::new(ModelErrorKind::InvalidRequest, error.to_string());
                return Ok(Reply::new(failed(nothing(), &error)));
            }
        };
        let token = cancel.child();
        let step = StepCx::new().with_key(key).with_cancel(token.clone()).retried_by_caller();
        let span = telemetry::request_span(info, &request, None);
        telemetry::record_input(&span, &self.config, &request);
        let (begun, first_piece) = (Instant::now(), OnceLock::new());
        let end = |message: &AssistantMessage, error: Option<&str>| {
            telemetry::end_request(&span, message, error, first_piece.get().copied());
        };
        let read = async {
            let ask = async {
                let mut stream = self.config.model.stream(&step, &request);
                let mut error = None;
                while let Some(next) = poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await {
                    if next.as_ref().is_ok_and(is_update) {
                        first_piece.get_or_init(|| begun.elapsed());
                    }
                    error = next.err();
                    if error.is_some() {
                        break;
                    }
                }
                match error {
                    None => Ok(stream.into_message()),
                    Some(error) => Err(Box::new((stream.into_partial(), error))),
                }
            };
            catch_future(|| Box::pin(ask)).await.unwrap_or_else(|panic| {
                let text = format!("the model's client panicked: {panic}");
                Err(Box::new((nothing(), ModelError::new(ModelErrorKind::Other, text))))
            })
        };
        let read = tokio::time::timeout(self.model_timeout, read.instrument(span.clone()));
        let answered = match until(&cancel, read).await {
            None => {
                end(&nothing(), Some(ModelErrorKind::Aborted.as_str()));
                return aborted(nothing());
            }
            Some(Ok(answered)) => answered,
            Some(Err(_)) => {
                token.cancel("out of time");
                let text = format!("no whole reply within {} s", self.model_timeout.as_secs());
                Err(Box::new((nothing(), ModelError::new(ModelErrorKind::Timeout, text))))
            }
        };
        let message = match answered.map_err(|both| *both) {
            Ok(message) => {
                end(&message, message.stop_reason.is_failure().then_some("error"));
                message
            }
            Err((partial, error)) => {
                end(&partial, Some(error.kind().as_str()));
                if error.is_aborted() && cancel.is_cancelled() {
                    return aborted(partial);
                }
                if error.is_retryable() {
                    return Err(error);
                }
                failed(partial, &error)
            }
        };
        telemetry::record_output(&span, &self.config, &message);
        let mut reply = Reply::new(message);
        if reply.message.stop_reason == StopReason::Error && reply.message.error.is_none() {
            reply.message.error = Some("the model gave no reason".to_owned());
        }
        reply.is_cut = request.max_tokens.is_some_and(|limit| limit == reply.message.usage.output);
        Ok(reply)
    }

    /// The reply of a model that failed in every attempt.
    pub(crate) fn no_reply(&self, error: &str) -> Reply {
        let info = self.config.model.info();
        let mut message = AssistantMessage::default();
        (message.provider, message.api, message.model) =
            (info.provider.clone(), info.api.clone(), info.model.clone());
        Reply::new(failed(message, &ModelError::new(ModelErrorKind::Other, error)))
    }

    /// The request, changed by every hook.
    async fn request(
        &self,
        run: &Arc<str>,
        messages: MessageList,
        cancel: &CancelToken,
    ) -> Result<ModelRequest, HookError> {
        let context = self.config.registry.context(&self.context(run, cancel));
        let recipient = self.config.model.info().recipient();
        let mut messages = messages;
        for tool_hook in &self.config.hooks {
            messages = call_hook(|| tool_hook.transform_context(messages, cancel.clone())).await?;
        }
        let mut conversation: Conversation = messages.iter().map(|message| self.convert(message)).collect();
        for repair in conversation.repair() {
            tracing::warn!(%repair, "what a hook made of the conversation was repaired");
        }
        let tools = shown_after(&self.config.request.tools, messages.iter().map(|message| &**message));
        let messages = HandOff::of(&conversation, recipient).messages().clone();
        let mut request =
            ModelRequest { messages: self.shown(messages), tools, ..self.config.request.clone() };
        for hook in &self.config.hooks {
            request = call_hook(|| hook.before_request_in(request, context.clone())).await?;
        }
        Ok(request)
    }

    /// Looks at each call of a segment, in call order.
    pub(crate) async fn prepare(
        &self,
        key: &StepKey,
        calls: Vec<ToolCall>,
        reply: Option<Arc<Message>>,
        cancel: CancelToken,
    ) -> Vec<Prepared> {
        let context = self.context(&key.run, &cancel);
        let mut prepared = Vec::with_capacity(calls.len());
        for call in calls {
            prepared.push(self.prepared(&context, call, reply.clone(), &cancel).await);
        }
        prepared
    }

    async fn prepared(
        &self,
        context: &ToolContext,
        call: ToolCall,
        reply: Option<Arc<Message>>,
        cancel: &CancelToken,
    ) -> Prepared {
        match until(cancel, self.prepare_call(context, call, reply)).await {
            Some(Ok(ready)) => Prepared::Ready(ready),
            Some(Err(end)) => Prepared::Ended(*end),
            None => {
                let reason = cancel.reason().unwrap_or_else(|| "cancelled".into());
                Prepared::Ended(CallEnd::new(ToolOutcome::aborted(&reason)))
            }
        }
    }

    async fn prepare_call(
        &self,
        context: &ToolContext,
        mut call: ToolCall,
        reply: Option<Arc<Message>>,
    ) -> Result<Ready, Box<CallEnd>> {
        let ended = |outcome| Box::new(CallEnd::new(outcome));
        let checked = |tool: &dyn Tool, args: &ToolArguments| {
            check(tool, args, context.source()).map_err(|reply| Box::new(CallEnd::new(reply)))
        };
        let tool = self.config.registry.fetch(&call.name).cloned();
        let tool =
            tool.map_err(|error| ended(ToolOutcome::failed(FailureCode::UNKNOWN_TOOL, error.to_string())))?;
        let mut valid = checked(&*tool, &call.args)?;
        let policy = tool.policy();
        let guards = self.config.rules.loop_guard.is_some() && !policy.allow_repeat;
        let (mut is_replaced, mut must_ask) = (false, false);
        for hook in &self.config.hooks {
            let info =
                ToolCallInfo::new(reply.clone(), call.clone(), Some((&*tool, &valid)), context.clone());
            let said = call_hook(|| hook.before_tool_call(info)).await;
            match said.map_err(|error| ended(hook_error(&error.to_string())))? {
                BeforeCall::Continue => {}
                BeforeCall::RequireApproval => must_ask = true,
                BeforeCall::Replace(args) => {
                    call.args = ToolArguments::from(args);
                    is_replaced = true;
                    valid = checked(&*tool, &call.args)?;
                }
                BeforeCall::Block { reason, control } => {
                    let mut end = ended(ToolOutcome::denied(DenialCode::BLOCKED, reason));
                    end.control = control;
                    end.signature =
                        guards.then(|| Signature::of(&call.name, &valid.value(&*tool, &call.args)));
                    return Err(end);
                }
            }
        }
        let (plan, text) = (valid.plan(&*tool), valid.text(&call.args));
        let needed = catch_unwind(AssertUnwindSafe(|| policy.approval.is_needed(plan, text)));
        must_ask |= needed.map_err(|payload| {
            let text = format!("the approval rule panicked: {}", panic_text(payload));
            ended(hook_error(&text))
        })?;
        let mut ready = Ready::default();
        if guards || must_ask {
            let args = valid.value(&*tool, &call.args);
            ready.signature = guards.then(|| Signature::of(&call.name, &args));
            ready.approval = must_ask.then(|| ToolArguments::from(args));
        }
        ready.args = is_replaced.then_some(call.args);
        Ok(ready)
    }

    /// Runs a call, and records it where there is a store.
    pub(crate) async fn call(&self, step: StepCall, cancel: &CancelToken) -> CallEnd {
        let StepCall { key, call, reply, text, is_lost } = step;
        let context = self.context(&key.run, cancel);
        let records = self.config.keeper.as_ref().map(|keeper| RunRecords::new(keeper, &context, None));
        if is_lost {
            return match records {
                Some(records) => records.end_lost(&self.config, &key, &call, &context, &text).await,
                None => CallEnd::new(lost()),
            };
        }
        let policy = self.config.registry.get(&call.name).map(|tool| tool.policy());
        let tries = policy.filter(|policy| policy.effect != Effect::Once);
        let tries = tries.and_then(|policy| policy.max_attempts).unwrap_or(1).max(1);
        let context = context.to_builder().idempotency_key(key.to_string()).attempt(1, tries).build();
        let context = context.unwrap_or_default();
        let reply = reply.filter(|_| self.has_hooks());
        let records = records.map(|records| (records, text));
        run(self.config.clone(), key, call, context, tries, reply, None, records).await
    }

    /// What the application's function decides; nobody knows where there is none.
    pub(crate) async fn approve(&self, request: ApprovalRequest, cancel: &CancelToken) -> Decision {
        let Some(approver) = self.config.approver.clone() else { return Decision::Later };
        match until(cancel, catch_future(|| approver(request))).await {
            Some(Ok(decision)) => decision,
            Some(Err(panic)) => Decision::Deny(format!("the decision could not be made: {panic}")),
            None => Decision::Deny("The run was cancelled.".to_owned()),
        }
    }

    /// Returns the request for a decision on a call that waited, and would run with these arguments now.
    pub(crate) fn approval_request(
        &self,
        id: String,
        call: &ToolCall,
        checked: ToolArguments,
    ) -> ApprovalRequest {
        let secrets = self.config.secrets();
        let shown = secrets.arguments(&call.name, &checked).unwrap_or_else(|| checked.clone());
        let plan = secrets.plan(&call.name).cloned();
        let (call, fingerprint) =
            (ToolCall { args: shown, ..call.clone() }, self.config.fingerprint(&call.name));
        ApprovalRequest::new(id, call, fingerprint, None).with_args(checked).with_plan(plan)
    }

    /// What a decision comes to now.
    pub(crate) fn decided(&self, request: &ApprovalRequest, decision: Decision) -> Decided {
        decided(&self.config, &ToolContext::new(), request, decision)
    }

    /// Asks the hooks about calls whose arguments a person changed.
    pub(crate) async fn guarded(
        &self,
        run: &Arc<str>,
        decided: Vec<(ApprovalRequest, Decided)>,
        reply: Option<Arc<Message>>,
        cancel: CancelToken,
    ) -> Vec<Decided> {
        let context = self.context(run, &cancel);
        let mut all = Vec::with_capacity(decided.len());
        for (request, mut one) in decided {
            if let Decided::Allow(Some(args)) = &one {
                let edited = Edited::new(&self.config, &context, request, args, reply.clone());
                for hook in &self.config.hooks {
                    let info = edited.info.clone();
                    let said = until(&cancel, call_hook(|| hook.before_tool_call(info))).await;
                    let end = said.map_or_else(
                        || {
                            let reason = cancel.reason().unwrap_or_else(|| "cancelled".into());
                            Some(CallEnd::new(ToolOutcome::aborted(&reason)))
                        },
                        |said| edited.end(said),
                    );
                    if let Some(end) = end {
                        one = Decided::AllowEnded(end);
                        break;
                    }
                }
            }
            all.push(one);
        }
        all
    }

    /// Checks calls again that waited for decisions: rules of the application may be others by now.
    pub(crate) async fn check_again(
        &self,
        run: &Arc<str>,
        calls: Vec<(ReadyCall, ToolCall)>,
        reply: Option<Arc<Message>>,
        cancel: CancelToken,
    ) -> Vec<CheckedAgain> {
        let context = self.context(run, &cancel);
        let mut all = Vec::with_capacity(calls.len());
        for (ready, call) in calls {
            let asked = ready.asked(&call);
            let prepared = self.prepared(&context, asked.clone(), reply.clone(), &cancel).await;
            all.push(checked_again(&self.config, &context, &ready, &call, asked, prepared));
        }
        all
    }

    /// What the hooks say at the end of a turn.
    ///
    /// # Errors
    /// One of them failed.
    pub(crate) async fn turn_end(
        &self,
        summary: TurnSummary,
        cancel: &CancelToken,
    ) -> Result<Option<bool>, String> {
        let mut go_on = None;
        for hook in &self.config.hooks {
            let opinion = until(cancel, call_hook(|| hook.on_turn_end(summary.clone()))).await;
            match opinion {
                Some(Ok(opinion)) => go_on = opinion.or(go_on),
                Some(Err(error)) => return Err(error.to_string()),
                None => return Ok(Some(false)),
            }
        }
        Ok(go_on)
    }

    fn shown(&self, messages: MessageList) -> MessageList {
        if self.config.formats_results { self.config.shown(messages) } else { messages }
    }

    fn convert(&self, message: &Arc<Message>) -> Arc<Message> {
        self.config.convert(message)
    }
}

/// A call that had begun in a process that is gone.
fn lost() -> ToolOutcome {
    ToolOutcome::Interrupted { code: InterruptionCode::LOST, reason: LOST.to_owned() }
}

/// What this comes to, unless the run is cancelled before.
async fn until<T>(cancel: &CancelToken, work: impl Future<Output = T>) -> Option<T> {
    match select(std::pin::pin!(work), cancel.cancelled()).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
