//! Changes the [`ConversationView`], the messages that the model sees, until the next request fits into the window.

use tracing::Instrument as _;

use super::error::ContextError;
use super::summary::{SummaryDraft, SummaryOutcome, SummaryTask, name};
use super::{ContextLimits, ContextState, MAX_COMPACTIONS};
use crate::loop_core::{EventKind, LimitReached};
use crate::message::{ClearedResult, ConversationView, Usage, ViewChange};
use crate::model::{ModelError, ModelErrorKind, ModelInfo, SizeCounter, TokenEstimate, ViewDecision};
use crate::runtime::perform::Performer;
use crate::runtime::turn::TurnSteps;
use crate::step_key::{StepKey, StepKind};
use crate::steps::{SharedLoop, StepError};
use crate::tool::definition::ToolDefinition;
use crate::tool::policy::Effect;

/// Maximum number of times that old results are cleared before one request. Each time invalidates the provider's cache.
const MAX_CLEARS: u32 = 2;
/// A summary must save at least the usable window divided by this number. After a failed summary, the request must grow by the same amount
/// before another summary is requested, unless the request is too long to be sent.
const MIN_EFFECT: u64 = 10;

/// The changes that were made before one request.
#[derive(Default)]
struct FitPass {
    clears: u32,
    compactions: u32,
    is_changed: bool,
    failure: Option<String>,
    /// The limit that forbade a request for a summary.
    limit: Option<LimitReached>,
}

impl Performer {
    /// Changes the view (the messages to send) until the next request probably fits into the context window, or until nothing more can be
    /// replaced. `overflow` is the error of the provider, if the provider has refused the request as too long. The changes depend only on
    /// the conversation, the configuration and the results of summaries, so a durable run makes the same changes on every replay.
    ///
    /// # Errors
    /// The inner error means that the conversation does not fit. The outer error means that the run reached a limit or was stopped, or that
    /// a step failed.
    pub(in crate::runtime) async fn fit_context<S: TurnSteps>(
        &self,
        state: &mut ContextState,
        run: &SharedLoop,
        key: &StepKey,
        overflow: Option<ModelError>,
        steps: &mut S,
    ) -> Result<Result<(), ContextError>, StepError> {
        let Some(limits) = &self.config.context else { return Ok(Ok(())) };
        let mut pass = FitPass::default();
        state.update(run.lock().conversation());
        if let Some(window) = overflow.as_ref().and_then(named_window)
            && let Some(change) = state.view.lower_window_of(&name(self.info()), window)
        {
            run.lock().record_view_change(change);
        }
        loop {
            let known_window = self.known_window(&state.view);
            let usable = usable_in(limits, known_window);
            let mut estimate = self.estimate(&state.view, state.frame.tokens);
            if let Some(error) = self.refused_pins(state, usable) {
                return Ok(Err(error));
            }
            if overflow.is_some() && !pass.is_changed {
                // The provider has refused the request as too long, so the estimate is raised to at least the usable window.
                estimate.tokens = estimate.tokens.max(usable);
                estimate.error = estimate.error.saturating_mul(2);
            }
            let used = estimate.upper_bound();
            let grown = state.failed_at.is_none_or(|at| used >= at.saturating_add(usable / MIN_EFFECT));
            let window = known_window.map_or(limits.window, |window| window.min(limits.window));
            let may_try = grown || overflow.is_some() || estimate.tokens > window;
            // A provider that writes summaries itself usually does so in time. The run then writes a summary only if the request is
            // already too long.
            let is_too_long = overflow.is_some() || used > usable;
            let may_compact = limits.writer.is_some()
                && (limits.by_provider.is_none() || is_too_long)
                && pass.failure.is_none()
                && pass.compactions < MAX_COMPACTIONS
                && may_try;
            let size = self.size_counter();
            let effect_of = |tool: &str| self.clearable_effect(tool);
            let decision =
                limits.rules.decide(&state.view, estimate, usable, size, (may_compact, true), effect_of);
            match decision {
                ViewDecision::Clear { results } if pass.clears < MAX_CLEARS => {
                    pass.clears += 1;
                    self.clear(state, run, results, estimate);
                    pass.is_changed = true;
                    steps.notify().await?;
                }
                ViewDecision::Shorten { index, bytes } => {
                    let Ok(change) = state.view.shorten(index, bytes) else { return Ok(Ok(())) };
                    self.record_clear(state, run, change, 1, estimate);
                    pass.is_changed = true;
                    steps.notify().await?;
                }
                ViewDecision::Compact { at } => {
                    let reason = if overflow.is_some() { "too_long" } else { "size" };
                    let before = if overflow.is_some() { MAX_COMPACTIONS } else { 0 };
                    let key = StepKey {
                        kind: StepKind::Compact,
                        ord: key.ord + before + pass.compactions,
                        ..key.clone()
                    };
                    pass.compactions += 1;
                    match Box::pin(self.compact(state, run, (key, at, reason), steps, &mut pass)).await? {
                        Ok(()) => pass.is_changed = true,
                        Err(failure) => {
                            state.failed_at = Some(used);
                            pass.failure = Some(failure);
                        }
                    }
                    steps.notify().await?;
                    // The summary may have used up the token limit of the run, so that the request must not be made.
                    let reached = run.lock().limit_of_tokens();
                    reached.map_or(Ok(()), |reached| Err(StepError::Limit(reached)))?;
                }
                ViewDecision::Full { .. } | ViewDecision::Clear { .. } | ViewDecision::Fits => {
                    let is_full = overflow.is_some() && !pass.is_changed;
                    // A request that may fit the window is sent, because the estimate may be too high. A refused request that cannot be
                    // made smaller fails.
                    if is_full || estimate.tokens > window {
                        if let Some(reached) = pass.limit {
                            return Err(StepError::Limit(reached));
                        }
                        return Ok(Err(full(&state.view, estimate, usable, pass.failure, overflow)));
                    }
                    let is_near = used > usable - usable / 10;
                    if is_near && !state.is_near {
                        run.lock().record_event(EventKind::ContextNear { used, usable });
                        steps.notify().await?;
                    }
                    state.is_near = is_near;
                    return Ok(Ok(()));
                }
            }
        }
    }

    /// Returns the error of a request that the provider refused again after old messages were replaced.
    pub(in crate::runtime) fn still_too_long(
        &self,
        state: &ContextState,
        provider: ModelError,
    ) -> ContextError {
        let view = &state.view;
        let usable =
            self.config.context.as_ref().map_or(0, |limits| usable_in(limits, self.known_window(view)));
        full(view, self.estimate(view, state.frame.tokens), usable, None, Some(provider))
    }

    /// Requests a summary of the messages before index `at`, and replaces these messages by the summary. If the messages do not fit into
    /// one request, fewer messages are summarized and replaced.
    ///
    /// # Errors
    /// The inner error is the reason why the messages were not replaced.
    async fn compact<S: TurnSteps>(
        &self,
        state: &mut ContextState,
        run: &SharedLoop,
        (key, at, reason): (StepKey, usize, &'static str),
        steps: &mut S,
        pass: &mut FitPass,
    ) -> Result<Result<(), String>, StepError> {
        let Some(limits) = self.config.context.clone() else { return Ok(Ok(())) };
        let Some((at, task)) = self.summary_task(&limits, &state.view, at, None) else { return Ok(Ok(())) };
        let frame = state.frame.tokens;
        let tokens_before = self.estimate(&state.view, frame).tokens;
        let messages = at.saturating_sub(state.view.summarized());
        run.lock().record_event(EventKind::CompactionStart { reason, messages, tokens: tokens_before });
        let open = OpenCompaction { run: run.clone(), end: Some((tokens_before, task.model())) };
        steps.notify().await?;
        let span = tracing::info_span!(
            "agent.compact",
            agent.compact.tokens_before = i64::try_from(tokens_before).unwrap_or(i64::MAX),
            agent.compact.tokens_after = tracing::field::Empty,
        );
        let first = (key.clone(), task.clone());
        let mut outcome = self.ask_for_summary(run, first, &span, steps, pass).await?;
        // An answer that is not a valid summary is sent back once, with the reason.
        if let Some(again) = task.corrected(&outcome) {
            let key = StepKey { ord: key.ord + 2 * MAX_COMPACTIONS, ..key };
            outcome = outcome.followed_by(self.ask_for_summary(run, (key, again), &span, steps, pass).await?);
        }
        self.record_notices(outcome.notices.clone(), run);
        let (usage, model) = (outcome.usage.clone(), outcome.model.clone());
        // The application may have compacted the conversation meanwhile.
        state.update(run.lock().conversation());
        let least = usable_in(&limits, self.known_window(&state.view)) / MIN_EFFECT;
        let (error, tokens_after) = match self.apply_summary(&mut state.view, frame, (at, least), outcome) {
            Ok(change) => {
                run.lock().record_view_change(change);
                state.failed_at = None;
                (None, self.estimate(&state.view, frame).tokens)
            }
            Err(failure) => (Some(failure), tokens_before),
        };
        span.record("agent.compact.tokens_after", i64::try_from(tokens_after).unwrap_or(i64::MAX));
        let error_text = error.clone();
        open.end(EventKind::CompactionEnd { tokens_before, tokens_after, usage, model, error: error_text });
        Ok(error.map_or(Ok(()), Err))
    }

    async fn ask_for_summary<S: TurnSteps>(
        &self,
        run: &SharedLoop,
        (key, task): (StepKey, SummaryTask),
        span: &tracing::Span,
        steps: &mut S,
        pass: &mut FitPass,
    ) -> Result<SummaryOutcome, StepError> {
        let is_made = task.problem().is_none();
        if is_made && let Err(reached) = take_summary_request(steps, run).await? {
            let refused = SummaryOutcome::failed(task.model(), reached.to_string());
            pass.limit = Some(reached);
            return Ok(refused);
        }
        let work = task.run(Some(key.clone()), self.cancel_token().child());
        let outcome = steps.perform(key, Box::pin(work.instrument(span.clone()))).await?;
        if is_made {
            run.lock().record_summary_request(&outcome.usage);
        }
        Ok(outcome)
    }

    /// Returns an index, and a task that summarizes the messages before the index. The index is `at`, or a lower one if the messages are
    /// too long for one request. If no index fits, the task fails when it runs. Returns `None` if no model writes summaries.
    pub(in crate::runtime) fn summary_task(
        &self,
        limits: &ContextLimits,
        view: &ConversationView,
        at: usize,
        focus: Option<&str>,
    ) -> Option<(usize, SummaryTask)> {
        let writer = limits.writer.clone()?;
        let (counter, secrets) = (self.config.counter.clone(), self.config.secrets());
        let usable = usable_in(limits, self.known_window(view));
        let draft = SummaryDraft { view, usable, writer, counter, secrets, focus };
        let session = self.context.session_id();
        let task = |at: usize| {
            let mut task = draft.task(at, session);
            task.budgets = self.bound_budgets();
            (task.meters, task.run_id) = (self.config.meters.clone(), self.run_id.clone());
            task
        };
        let whole = task(at);
        if whole.problem().is_none() {
            return Some((at, whole));
        }
        let cuts: Vec<_> = view.cuts().into_iter().filter(|cut| *cut < at).collect();
        let fits = cuts.partition_point(|cut| draft.fits(*cut));
        let earlier = fits.checked_sub(1).and_then(|last| cuts.get(last).copied());
        Some(earlier.map_or((at, whole), |at| (at, task(at))))
    }

    /// Replaces the messages before index `at` by a summary.
    ///
    /// # Errors
    /// Fails if there is no summary, or if the summary saves no tokens or fewer than `least` tokens. The view then stays unchanged.
    pub(in crate::runtime) fn apply_summary(
        &self,
        view: &mut ConversationView,
        frame: u64,
        (at, least): (usize, u64),
        outcome: SummaryOutcome,
    ) -> Result<ViewChange, String> {
        let before = self.estimate(view, frame).tokens;
        view.compact_if(at, outcome.text?, outcome.usage, |compacted| {
            let saved = before.saturating_sub(self.estimate(compacted, frame).tokens);
            if saved == 0 || saved < least {
                return Err(format!("the summary saves about {saved} tokens, which is too little"));
            }
            Ok(())
        })
    }

    fn clear(
        &self,
        state: &mut ContextState,
        run: &SharedLoop,
        results: Vec<ClearedResult>,
        before: TokenEstimate,
    ) {
        let count = results.len();
        if let Ok(change) = state.view.clear(results) {
            self.record_clear(state, run, change, count, before);
        }
    }

    fn record_clear(
        &self,
        state: &ContextState,
        run: &SharedLoop,
        change: ViewChange,
        results: usize,
        before: TokenEstimate,
    ) {
        let (tokens_after, generation) =
            (self.estimate(&state.view, state.frame.tokens).tokens, state.view.generation());
        let mut run = run.lock();
        run.record_view_change(change);
        let tokens_before = before.tokens;
        run.record_event(EventKind::ContextCleared { results, tokens_before, tokens_after, generation });
    }

    fn refused_pins(&self, state: &ContextState, usable: u64) -> Option<ContextError> {
        let view = &state.view;
        let size = self.size_counter();
        let pins = size.messages(view.pinned());
        (pins > usable / 2).then(|| ContextError {
            pins_are_too_large: true,
            ..full(view, self.estimate(view, state.frame.tokens), usable, None, None)
        })
    }

    /// Estimates the tokens of the next request. `frame` is the number of its tokens that are not in messages.
    pub(in crate::runtime) fn estimate(&self, view: &ConversationView, frame: u64) -> TokenEstimate {
        self.size_counter().estimate_view(view, self.info(), || frame)
    }

    /// Returns the number of tokens of a request that are not in messages, for example the tokens of the system prompt and of `tools`.
    pub(in crate::runtime) fn frame(&self, tools: &[ToolDefinition]) -> u64 {
        self.size_counter().frame(&self.config.request, tools)
    }

    fn size_counter(&self) -> SizeCounter<'_> {
        SizeCounter { counter: &*self.config.counter, api: &self.info().api }
    }

    fn info(&self) -> &ModelInfo {
        self.config.model.info()
    }

    /// Returns the window that errors of the provider have shown, if any.
    fn known_window(&self, view: &ConversationView) -> Option<u64> {
        view.window_of(&name(self.info()))
    }

    /// Returns the effect of a tool, or `None` if the results of the tool must not be cleared.
    fn clearable_effect(&self, tool: &str) -> Option<Effect> {
        let Some(tool) = self.config.registry.get(tool) else { return Some(Effect::Once) };
        let policy = tool.policy();
        (!policy.keep_result).then_some(policy.effect)
    }
}

/// Counts a request for a summary against the limits of the run and of its tree. The inner error is the reached limit.
async fn take_summary_request<S: TurnSteps>(
    steps: &mut S,
    run: &SharedLoop,
) -> Result<Result<(), LimitReached>, StepError> {
    if let Err(reached) = run.lock().take_summary_request() {
        return Ok(Err(reached));
    }
    match steps.count_request().await {
        Err(StepError::Limit(reached)) => Ok(Err(reached)),
        reserved => reserved.map(Ok),
    }
}

/// A running compaction. If the run stops, this value is dropped, which records that the compaction ended without a summary.
struct OpenCompaction {
    run: SharedLoop,
    /// The tokens of the request before the compaction, and the name of the model that writes the summary. `None` once the end is recorded.
    end: Option<(u64, String)>,
}

impl OpenCompaction {
    fn end(mut self, event: EventKind) {
        self.end = None;
        self.run.lock().record_event(event);
    }
}

impl Drop for OpenCompaction {
    fn drop(&mut self) {
        let Some((tokens, model)) = self.end.take() else { return };
        self.run.lock().record_event(EventKind::CompactionEnd {
            tokens_before: tokens,
            tokens_after: tokens,
            usage: Usage::default(),
            model,
            error: Some("stopped".to_owned()),
        });
    }
}

/// Returns the number of tokens that a request may have. `known_window` is the window that an error of the provider has shown, and may be
/// smaller than the configured window. In the smaller window, too, room is kept for the reply.
pub(in crate::runtime) fn usable_in(limits: &ContextLimits, known_window: Option<u64>) -> u64 {
    let reserve = limits.window.saturating_sub(limits.usable);
    known_window.map_or(limits.usable, |window| (window - reserve.min(window / 2)).min(limits.usable))
}

fn full(
    view: &ConversationView,
    estimate: TokenEstimate,
    usable: u64,
    summary: Option<String>,
    provider: Option<ModelError>,
) -> ContextError {
    ContextError {
        pins_are_too_large: false,
        needed: estimate.tokens,
        usable,
        generation: view.generation(),
        summary,
        provider,
    }
}

pub(crate) fn window_full() -> ModelError {
    ModelError::new(
        ModelErrorKind::ContextTooLong,
        "the context window was full before the reply was complete",
    )
}

/// Returns the window that the text of a provider's error names: the number after `>`, or the first number between `maximum` and `token`.
/// Numbers below 1,000 are ignored.
fn named_window(error: &ModelError) -> Option<u64> {
    let text = error.message().replace(',', "");
    let number = |text: &str| {
        let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok().filter(|tokens| *tokens >= 1_000)
    };
    let after_greater = || text.split_once('>').and_then(|(_, limit)| number(limit));
    let after_maximum = || {
        let (_, rest) = text.split_once("maximum")?;
        let (before, _) = rest.split_once("token")?;
        before.split_whitespace().find_map(number)
    };
    after_greater().or_else(after_maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_an_error_lowered_has_room_for_the_reply() {
        let (rules, writer, by_provider) = (std::sync::Arc::default(), None, None);
        let limits = ContextLimits { rules, window: 200_000, usable: 168_000, writer, by_provider };
        for (window, usable) in [(190_000, 158_000), (128_000, 96_000), (40_000, 20_000)] {
            assert_eq!(usable_in(&limits, Some(window)), usable);
        }
    }

    #[test]
    fn the_window_is_read_from_errors_of_providers() {
        for (text, window) in [
            ("prompt is too long: 212,000 tokens > 200,000 maximum", Some(200_000)),
            (
                "This model's maximum context length is 128000 tokens. However, you requested 130000",
                Some(128_000),
            ),
            ("The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).", None),
            (
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
                Some(131_072),
            ),
            ("too long", None),
            ("5 > 4", None),
        ] {
            let error = ModelError::new(ModelErrorKind::ContextTooLong, text);
            assert_eq!(named_window(&error), window, "{text}");
        }
    }
}
