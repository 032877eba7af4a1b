//! Performs the single steps of a run: requests, checks of calls, hooks. The implementations of `Steps` use the results.

use std::sync::Arc;

use futures_util::future::{Either, select};

use super::budget::{AnnouncedBudgets, BoundBudgets};
use super::config::Config;
use super::hooks::{HookError, Hooks, call_hook};
use super::output::TOOL;
use super::turn_start::TurnStart;
#[cfg(feature = "durable-restate")]
use crate::loop_core::CallEnd;
use crate::loop_core::{AgentLoop, EventKind, ModelReply, TurnSummary};
use crate::message::{
    AssistantMessage, Conversation, HandOff, HandOffLosses, Message, MessageList, Recipient, StopReason,
    Usage, UserMessage,
};
use crate::model::{ModelError, ModelInfo, RequestNotice, RequestNotices};
use crate::panics::catch;
use crate::steps::SharedLoop;
use crate::tool::{BoxFuture, cancel::CancelToken, context::ToolContext, definition::ToolDefinition};

/// Performs the steps of one run. The state of the run is in its [`AgentLoop`], except for notices and announced budgets.
#[derive(Clone)]
pub(crate) struct Performer {
    pub(super) config: Arc<Config>,
    pub(super) run_id: Arc<str>,
    /// The context of the run: its ids, source, state and cancel token.
    pub(super) context: ToolContext,
    pub(super) notices: RequestNotices,
    /// The budgets that were announced as nearly spent. `None` if the assistant has no budgets.
    announced: Option<AnnouncedBudgets>,
}

/// The number of a turn, the conversation before it, and the usage of the run so far.
pub(crate) type SoFar = (u32, MessageList, Usage);

impl Performer {
    pub(super) fn new(config: Arc<Config>, run_id: Arc<str>, context: ToolContext) -> Self {
        let announced = config.budgets.is_some().then(AnnouncedBudgets::default);
        Self { config, run_id, context, notices: RequestNotices::default(), announced }
    }

    /// Returns the budgets of the run, or `None` if the assistant has no budgets. The inner error is the reason why the budgets cannot be
    /// used.
    pub(super) fn bound_budgets(&self) -> Option<Result<BoundBudgets, ModelError>> {
        let (budgets, announced) = self.config.budgets.as_ref().zip(self.announced.as_ref())?;
        Some(budgets.bind(&self.config.registry.context(&self.context), &self.run_id, announced))
    }

    pub(crate) fn record_notices(&self, notices: Vec<RequestNotice>, run: &SharedLoop) {
        for event in notices.into_iter().filter_map(|notice| self.notice_event(notice)) {
            run.lock().record_event(event);
        }
    }

    /// Returns the event for a notice. Returns `None` if the run has already announced that this budget is nearly spent.
    fn notice_event(&self, notice: RequestNotice) -> Option<EventKind> {
        match notice {
            RequestNotice::Delayed { waited_ms, limit } => {
                Some(EventKind::RequestDelayed { waited_ms, limit })
            }
            RequestNotice::BudgetNear { key, budget, share } => {
                let is_new = self.announced.as_ref().is_none_or(|announced| announced.add(key));
                is_new.then_some(EventKind::BudgetNear { budget, share })
            }
        }
    }

    pub(crate) fn cancel_token(&self) -> &CancelToken {
        self.context.cancel_token()
    }

    pub(crate) fn stop_reason(&self) -> Arc<str> {
        self.cancel_token().reason().unwrap_or_else(|| "cancelled".into())
    }

    /// Waits for work of the application, or returns `None` if the run is stopped first.
    pub(super) async fn until_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match select(std::pin::pin!(work), self.cancel_token().cancelled()).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    /// Calls one hook, which may fail or panic. Returns `None` if the run is stopped first.
    pub(super) async fn hook<'h, T>(
        &self,
        ask: impl FnOnce() -> BoxFuture<'h, Result<T, HookError>>,
    ) -> Option<Result<T, HookError>> {
        self.until_stopped(call_hook(ask)).await
    }

    /// Passes a value through all hooks, one after the other, until a hook fails. Returns `None` if the run is stopped first.
    pub(super) async fn fold<T: Send>(
        &self,
        mut value: T,
        ask: impl for<'h> Fn(&'h dyn Hooks, T) -> BoxFuture<'h, Result<T, HookError>>,
    ) -> Option<Result<T, HookError>> {
        for hook in &self.config.hooks {
            value = match self.hook(|| ask(&**hook, value)).await? {
                Ok(value) => value,
                Err(error) => return Some(Err(error)),
            };
        }
        Some(Ok(value))
    }

    /// Asks one hook for a choice. Returns `None` if the run is stopped before the hook has chosen, and `Some(None)` if the hook does not
    /// choose.
    async fn choice<'h, T>(
        &self,
        ask: impl FnOnce() -> Option<BoxFuture<'h, Result<T, HookError>>>,
    ) -> Option<Option<Result<T, HookError>>> {
        match catch(ask) {
            Ok(None) => Some(None),
            Ok(Some(chosen)) => self.hook(move || chosen).await.map(Some),
            Err(panic) => Some(Some(Err(format!("a hook panicked: {panic}").into()))),
        }
    }

    pub(super) fn chooses_tools(&self, so_far: SoFar) -> bool {
        self.is_chosen(so_far, |hook, turn| hook.prepare_tools(turn).is_some())
    }

    pub(super) fn chooses_model(&self, so_far: SoFar) -> bool {
        self.config.selects_model() && self.is_chosen(so_far, |hook, turn| hook.select_model(turn).is_some())
    }

    fn is_chosen(&self, so_far: SoFar, chooses: impl Fn(&dyn Hooks, &TurnStart) -> bool) -> bool {
        if self.config.choosers.is_empty() {
            return false;
        }
        let turn = self.turn_start(so_far);
        // A hook that panics counts as choosing, so that it is called again and its panic becomes an error of the run.
        self.config.choosers.iter().any(|hook| catch(|| chooses(&**hook, &turn)).unwrap_or(true))
    }

    /// Returns the names of the tools that the model has in a turn. The error is the message of a failed hook, or the reason why the run
    /// was stopped.
    pub(super) async fn chosen_names(&self, so_far: SoFar) -> Result<Vec<String>, String> {
        match self.choose_tools(so_far).await {
            Some(Ok(tools)) => Ok(tools.iter().map(|tool| tool.name().to_owned()).collect()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err(self.stop_reason().to_string()),
        }
    }

    /// Returns the tools that the model has in a turn. Returns `None` if the run is stopped before the hooks have chosen.
    async fn choose_tools(&self, so_far: SoFar) -> Option<Result<Arc<[ToolDefinition]>, HookError>> {
        let mut turn = self.turn_start(so_far);
        for hook in &self.config.choosers {
            match self.choice(|| hook.prepare_tools(&turn)).await? {
                Some(Ok(chosen)) => turn = chosen,
                Some(Err(error)) => return Some(Err(error)),
                None => {}
            }
        }
        Some(Ok(turn.into_tools()))
    }

    /// Returns the name of the model that the application chooses for a turn. `Some(Ok(None))` is the assistant's own model, and `None`
    /// means that the run was stopped before the choice.
    pub(super) async fn select_model(&self, so_far: SoFar) -> Option<Result<Option<String>, HookError>> {
        let (turn, mut name) = (self.turn_start(so_far), None);
        for hook in &self.config.choosers {
            match self.choice(|| hook.select_model(&turn)).await? {
                Some(Ok(chosen)) => name = chosen.or(name),
                Some(Err(error)) => return Some(Err(error)),
                None => {}
            }
        }
        Some(Ok(name))
    }

    fn turn_start(&self, so_far: SoFar) -> TurnStart {
        let Config { request, registry, output_tool, .. } = &*self.config;
        TurnStart::new(request.tools.clone(), output_tool.clone(), so_far, registry.context(&self.context))
    }

    /// Returns a `Performer` whose requests go to the model with this name, or to the assistant's own model if `name` is `None`.
    pub(super) fn with_model(&self, name: Option<&str>) -> Result<Self, HookError> {
        if let Some(config) = self.config.with_model(name) {
            return Ok(Self { config, ..self.clone() });
        }
        let name = name.unwrap_or_default();
        Err(format!("there is no model named `{name}`; add it with `AssistantBuilder::named_model`").into())
    }

    /// Returns a `Performer` that repeats the request of this reply with a higher `max_tokens`, if [`Config::with_more_room`] allows that.
    pub(super) fn with_more_room(&self, reply: &ModelReply) -> Option<Self> {
        let config = Arc::new(self.config.with_more_room(reply)?);
        Some(Self { config, ..self.clone() })
    }

    /// Returns whether requests contain only as much of the conversation as fits into the model's context window.
    #[cfg(feature = "durable-restate")]
    pub(crate) fn manages_context(&self) -> bool {
        self.config.context.is_some()
    }

    /// Records an event if this reply and the last reply are from different models. `view` contains the messages that were sent to the
    /// model. `view` is ignored if the assistant has no context rules.
    pub(crate) fn record_switch(&self, view: &MessageList, reply: &AssistantMessage, run: &SharedLoop) {
        let mut run = run.lock();
        if let Some(event) = self.switch_event(run.conversation(), view, reply) {
            run.record_event(event);
        }
    }

    fn switch_event(
        &self,
        conversation: &Conversation,
        view: &MessageList,
        reply: &AssistantMessage,
    ) -> Option<EventKind> {
        // A reply that was cancelled before any content arrived does not count as a reply of its model.
        let is_answer = reply.stop_reason != StopReason::Aborted || !reply.content.is_empty();
        if !self.config.may_switch || !is_answer {
            return None;
        }
        let to = (&*reply.provider, &*reply.api, &*reply.model);
        let (from, to) = switched(conversation.shared(), to)?;
        let seen: Conversation = match &self.config.context {
            Some(_) => view.iter().cloned().collect(),
            None => conversation.clone(),
        };
        let losses = self.losses(&seen, reply);
        Some(EventKind::ModelSwitched { from, to, losses })
    }

    fn losses(&self, conversation: &Conversation, reply: &AssistantMessage) -> HandOffLosses {
        let is_it = |info: &ModelInfo| {
            (&info.provider, &info.api, &info.model) == (&reply.provider, &reply.api, &reply.model)
        };
        let known = self.config.model.candidates().into_iter().find(is_it).map(|info| info.recipient());
        let recipient = known.unwrap_or_else(|| Recipient::new(&*reply.provider, &*reply.api, &*reply.model));
        let sent = HandOff::of(conversation, recipient);
        HandOffLosses::between(conversation.shared(), sent.messages())
    }

    pub(super) fn recipient(&self) -> Recipient {
        self.config.model.info().recipient()
    }

    /// Returns the decision of the last hook that decides at the end of a turn. The outer value is `None` if the run is stopped first.
    pub(super) async fn turn_end(&self, summary: TurnSummary) -> Option<Result<Option<bool>, HookError>> {
        let mut go_on = None;
        for hook in &self.config.hooks {
            match self.hook(|| hook.on_turn_end(summary.clone())).await? {
                Ok(decision) => go_on = decision.or(go_on),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(go_on))
    }

    /// Returns a message that tells the model why its answer does not fit the expected output. Returns `None` if there is no answer, if
    /// the answer fits, or if no attempt is left. `refused` counts the refused answers of the run.
    pub(super) fn refused_answer(
        &self,
        summary: &TurnSummary,
        run: &AgentLoop,
        refused: &mut u32,
    ) -> Option<UserMessage> {
        let config = &self.config;
        let expected = config.expected.as_ref().filter(|_| summary.tool_results.is_empty())?;
        let max_retries = config.rules.max_retries;
        if summary.stop_reason == Some(StopReason::Pause) || *refused >= max_retries {
            return None;
        }
        if run.accepted_arguments(TOOL).is_some() {
            return None;
        }
        let text = run.conversation().last().map(Message::text).unwrap_or_default();
        let has_schema = config.request.output.is_some();
        // If the application's validation panics, the answer is not refused here. The caller gets the error when it reads the answer.
        let Ok(Err(report)) = catch(|| expected.check(&text, has_schema)) else { return None };
        *refused += 1;
        Some(report.on_attempt(*refused, max_retries.saturating_add(1)).to_text().into())
    }

    /// Returns the end of a call that was stopped before it ran.
    #[cfg(feature = "durable-restate")]
    pub(super) fn stopped(&self) -> CallEnd {
        CallEnd::new(crate::tool::outcome::ToolOutcome::aborted(&self.stop_reason()))
    }
}

/// Returns the model of the last reply and the model `to`, each as `PROVIDER/MODEL`, if both are named and differ.
fn switched(messages: &[Arc<Message>], to: (&str, &str, &str)) -> Option<(String, String)> {
    let last = messages.iter().rev().find_map(|message| message.as_assistant())?;
    let from = (&*last.provider, &*last.api, &*last.model);
    let is_known = !from.2.is_empty() && !to.2.is_empty();
    (is_known && from != to).then(|| (format!("{}/{}", from.0, from.2), format!("{}/{}", to.0, to.2)))
}
