//! Rules that keep a conversation within the context window of its model: old results are cleared, and old messages are replaced by a
//! summary (compacted).

use std::collections::HashMap;

use crate::message::{ClearedResult, Conversation, ConversationView, Message, OutcomeKind, ViewError};
use crate::tool::policy::Effect;

#[cfg(test)]
#[path = "context_rules_tests.rs"]
mod tests;

use super::tokens::{SizeCounter, TokenEstimate, TokenEstimator};
use super::{Model, ModelRequest};

/// Clearing results must save at least this many tokens, and [`CLEARED_SHARE`] thousandths of the usable window, because clearing
/// invalidates the provider's cache. Both minimums apply only below [`ContextRules::compact_at`].
const MIN_CLEARED: u64 = 4_000;
const CLEARED_SHARE: u64 = 200;
/// Minimum length of a result that may be cleared, in tokens.
const MIN_RESULT: u64 = 256;
/// Minimum number of tokens that a compaction must save, in thousandths of the usable window. From [`ContextRules::compact_at`] on,
/// clearing results must save this number of tokens, too.
const MIN_EFFECT: u64 = 100;
/// Target length of the messages that a compaction keeps, in thousandths of the usable window.
const TAIL_SHARE: u64 = 250;
/// Length to which a result longer than the usable window is shortened, in thousandths of the usable window.
const SHORTENED_SHARE: u64 = 250;
/// Maximum number of tokens that are reserved for a reply if the request has no `max_tokens`.
const MAX_RESERVE: u64 = 32_000;

/// The name of the tool with which the model of an assistant reads cleared results.
const READ_RESULT: &str = "read_result";

/// Returns the number of tokens to reserve for the reply. Callers reserve at most half of the window.
pub(crate) fn reply_reserve(max_output: Option<u64>, max_tokens: Option<u64>) -> u64 {
    max_tokens.unwrap_or_else(|| max_output.unwrap_or(MAX_RESERVE).min(MAX_RESERVE))
}

/// Rules for shortening the [view](Conversation::view) of a conversation. [`manage_context`](crate::AssistantBuilder::manage_context)
/// applies the rules to an assistant, and [`fit`](Self::fit) applies them in other loops. Both fail unless 0 < [`target`](Self::target) <
/// [`clear_at`](Self::clear_at) ≤ [`compact_at`](Self::compact_at) < 1.
///
/// ```
/// use agent::{Assistant, ScriptedModel, model::ContextRules};
///
/// let rules = ContextRules::new()
///     .window(100_000)
///     .keep_results(5)
///     .keep_results_of(["read_plan"])
///     .clear_at(0.7)
///     .compact_at(0.9)
///     .target(0.3);
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).manage_context(rules).build()?;
/// assert_eq!(assistant.context().usable, Some(68_000));
/// # Ok::<(), agent::run::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ContextRules {
    clear_at: f64,
    compact_at: f64,
    target: f64,
    keep_results: usize,
    kept_tools: Vec<String>,
    window: Option<u64>,
    author: SummaryAuthor,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum SummaryAuthor {
    /// The model of the run.
    #[default]
    Own,
    /// The model with this name in `AssistantBuilder::named_model`.
    Named(String),
    /// The provider of the model, which writes summaries within its replies. If the provider cannot do this, the model of the run writes
    /// the summaries.
    Provider,
    Off,
}

/// The change that the [`ConversationView`] needs before a request, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ViewDecision {
    Fits,
    Clear {
        results: Vec<ClearedResult>,
    },
    /// A single result after the newest reply is larger than the window. It is [shortened](ConversationView::shorten).
    Shorten {
        index: usize,
        /// The number of bytes to keep.
        bytes: usize,
    },
    /// Old messages are [replaced](ConversationView::compact) by a summary.
    Compact {
        /// The index of the first message in the conversation that stays.
        at: usize,
    },
    Full {
        needed: u64,
        usable: u64,
    },
}

impl ContextRules {
    /// Creates the default rules. At 60 % of the usable window, old results are cleared. At 80 %, results are cleared until the request
    /// fills about 40 %. If this is not enough, messages are compacted. The results of the newest 3 replies with calls stay.
    pub fn new() -> Self {
        Self {
            clear_at: 0.6,
            compact_at: 0.8,
            target: 0.4,
            keep_results: 3,
            kept_tools: Vec::new(),
            window: None,
            author: SummaryAuthor::Own,
        }
    }

    /// Sets the share of the usable window from which old results are cleared, between 0 and 1. Default: 0.6.
    pub fn clear_at(mut self, share: f64) -> Self {
        self.clear_at = share;
        self
    }

    /// Sets the share of the usable window at which old messages are summarized, between 0 and 1. Default: 0.8.
    pub fn compact_at(mut self, share: f64) -> Self {
        self.compact_at = share;
        self
    }

    /// Sets the share of the usable window at which clearing stops when a request reaches [`compact_at`](Self::compact_at). If clearing is
    /// not enough, messages are compacted. A share below half of [`clear_at`](Self::clear_at) has the effect of half of `clear_at`.
    /// Default: 0.4.
    pub fn target(mut self, share: f64) -> Self {
        self.target = share;
        self
    }

    /// Sets the number of newest replies with calls whose results are never cleared. Default: 3.
    pub fn keep_results(mut self, replies: usize) -> Self {
        self.keep_results = replies;
        self
    }

    /// Never clears the results of these tools. For a function, use [`#[tool(keep_result)]`](macro@crate::tool).
    pub fn keep_results_of<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.kept_tools.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Sets the size of the context window, in tokens. By default, the window of the model applies.
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }

    /// Sets the model that writes summaries, by the name that it has in `AssistantBuilder::named_model`. By default, the model of the run
    /// writes them.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::ContextRules};
    ///
    /// let rules = ContextRules::new().window(100_000).compact_with("cheap");
    /// let builder = || Assistant::builder(ScriptedModel::new(["Hello!"])).manage_context(rules.clone());
    /// assert!(builder().named_model("cheap", ScriptedModel::new([""; 0])).build().is_ok());
    /// let error = builder().build().unwrap_err();
    /// assert_eq!(error.to_string(), "there is no model named `cheap`; add it with `AssistantBuilder::named_model`");
    /// ```
    pub fn compact_with(mut self, model: impl Into<String>) -> Self {
        self.author = SummaryAuthor::Named(model.into());
        self
    }

    /// Lets the provider write a summary within its reply when a request reaches the share of [`compact_at`](Self::compact_at).
    /// Anthropic's API and the Responses API support this. Anthropic writes no summary below 50,000 tokens, and `OpenAI` encrypts the
    /// summary. Later requests to the same model begin with the summary. Another model gets the whole conversation.
    ///
    /// Results are still cleared by these rules, and pinned messages are sent again after the summary. With other protocols, and if a
    /// request is still too long, the model of the run writes the summary.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::{ContextRules, ModelInfo}};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let claude = ModelInfo::new("anthropic", "anthropic-messages", "claude-opus-5");
    /// let model = ScriptedModel::new(["Hello!"]).with_info(claude);
    /// let rules = ContextRules::new().window(200_000).compact_by_provider();
    /// let assistant = Assistant::builder(model.clone())
    ///     .request(|request| request.with_max_tokens(10_000))
    ///     .manage_context(rules)
    ///     .build()?;
    /// assistant.prompt("Hi").await?;
    /// assert_eq!(model.requests()[0].compact_at, Some(152_000));         // 80 % of what a request may use
    /// # Ok(()) }
    /// ```
    pub fn compact_by_provider(mut self) -> Self {
        self.author = SummaryAuthor::Provider;
        self
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn compaction_trigger(&self, usable: u64) -> u64 {
        part_of(usable, thousandths(self.compact_at))
    }

    /// Never replaces messages by a summary: only results are cleared.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::ContextRules};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rules = ContextRules::new().window(100_000).without_compaction();
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).manage_context(rules).build()?;
    /// assert!(assistant.compact(None).await.unwrap_err().to_string().contains("there are no summaries"));
    /// # Ok(()) }
    /// ```
    pub fn without_compaction(mut self) -> Self {
        self.author = SummaryAuthor::Off;
        self
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn author(&self) -> &SummaryAuthor {
        &self.author
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn own_window(&self) -> Option<u64> {
        self.window
    }

    /// Shortens the [view](Conversation::view) of the conversation until a request with the messages of the view fits into the window.
    /// Clears old results. Shortens a result after the newest reply if this result alone exceeds the usable window. Returns `None` if the
    /// request then fits, and otherwise the index before which messages have to be [compacted](Conversation::compact).
    ///
    /// ```
    /// use agent::ScriptedModel;
    /// use agent::message::{AssistantMessage, Conversation, Message, OutcomeKind, Part, ToolResultMessage};
    /// use agent::model::{ContextRules, ModelRequest};
    ///
    /// let mut conversation = Conversation::new();
    /// for turn in 0..10 {
    ///     conversation.push(Message::user("And the next page?"));
    ///     conversation.push(Message::from(AssistantMessage::new([Part::tool_call(format!("call_{turn}"), "read", "{}")])));
    ///     let page = ToolResultMessage::new(format!("call_{turn}"), "read", OutcomeKind::Completed).with_content("word ".repeat(8_000));
    ///     conversation.push(Message::from(page));
    /// }
    /// let (rules, model) = (ContextRules::new().window(200_000), ScriptedModel::new(["It ends well."]));
    /// let mut request = ModelRequest::default().with_max_tokens(8_000);
    /// while let Some(at) = rules.fit(&mut conversation, &request, &model)? {
    ///     conversation.compact(at, "The user reads a book, page by page.")?;          // by a model
    /// }
    /// request.messages = conversation.view();
    /// assert!(request.messages[2].text().starts_with("[the result of `read` was removed here"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A line that replaces a result names the tool `read_result` only if the request has this tool. Assistants add this tool.
    ///
    /// `request` is the next request to `model`. Its messages are ignored, because the view replaces them. The effect and
    /// [`keep_result`](crate::tool::ToolPolicy::keep_result) of its tools decide which results are cleared. The settings for summaries,
    /// such as [`compact_with`](Self::compact_with), and the token counter of an assistant are not used.
    ///
    /// # Errors
    /// Fails if the window is unknown or too small, or if the shares contradict each other. Also fails if the request is probably too long
    /// and nothing can be replaced.
    pub fn fit(
        &self,
        conversation: &mut Conversation,
        request: &ModelRequest,
        model: &dyn Model,
    ) -> Result<Option<usize>, ViewError> {
        let (info, counter) = (model.info(), &TokenEstimator);
        let can_read = request.tools.iter().any(|tool| tool.name() == READ_RESULT);
        let usable = self.usable(model.context_window(), model.max_output(), request.max_tokens)?;
        let mut view = ConversationView::of(conversation);
        let known = view.window_of(&format!("{}/{}", info.provider, info.model));
        let usable = known.map_or(usable, |window| usable.min(window));
        loop {
            let estimate = request.estimate_view(&view, info, counter);
            let effect_of = |name: &str| match request.tools.iter().find(|tool| tool.name() == name) {
                Some(tool) => (!tool.policy().keep_result).then_some(tool.policy().effect),
                None => Some(Effect::Once),
            };
            let size = SizeCounter { counter, api: &info.api };
            let change = match self.decide(&view, estimate, usable, size, (true, can_read), effect_of) {
                ViewDecision::Fits => return Ok(None),
                ViewDecision::Compact { at } => return Ok(Some(at)),
                ViewDecision::Full { needed, usable } => {
                    return Err(ViewError::Full { needed, usable });
                }
                ViewDecision::Clear { results } => view.clear(results),
                ViewDecision::Shorten { index, bytes } => view.shorten(index, bytes),
            };
            conversation.record_view_change(change?);
        }
    }

    /// Returns the number of tokens that a request may use: the window minus the tokens that are [reserved](reply_reserve) for the reply.
    pub(crate) fn usable(
        &self,
        known_window: Option<u64>,
        max_output: Option<u64>,
        max_tokens: Option<u64>,
    ) -> Result<u64, ViewError> {
        let Self { clear_at, compact_at, target, .. } = *self;
        let window = self.window.or(known_window).ok_or(ViewError::UnknownWindow)?;
        if !(0.0 < target && target < clear_at && clear_at <= compact_at && compact_at < 1.0) {
            return Err(ViewError::Shares { target, clear_at, compact_at });
        }
        let reserve = reply_reserve(max_output, max_tokens);
        match window - reserve.min(window / 2) {
            0 => Err(ViewError::NoRoom { window }),
            usable => Ok(usable),
        }
    }

    /// Decides whether the view has to change before a request with this estimate. The decision depends only on the arguments. If
    /// `may_compact` is false, no summary is proposed. `can_read` says whether the model has the tool [`READ_RESULT`]. Results of a tool
    /// for which `effect_of` returns `None` are kept.
    pub(crate) fn decide(
        &self,
        view: &ConversationView,
        estimate: TokenEstimate,
        usable: u64,
        size: SizeCounter<'_>,
        (may_compact, can_read): (bool, bool),
        effect_of: impl Fn(&str) -> Option<Effect>,
    ) -> ViewDecision {
        let usable = view.window().map_or(usable, |window| usable.min(window));
        let used = estimate.upper_bound();
        let share = |share: f64| part_of(usable, thousandths(share));
        if used < share(self.clear_at) {
            return ViewDecision::Fits;
        }
        if let Some(decision) = Self::shorten_newest(view, usable, size) {
            return decision;
        }
        let must_compact = used >= share(self.compact_at);
        let (minimum, limit) = if must_compact {
            (part_of(usable, MIN_EFFECT), share(self.target).max(share(self.clear_at) / 2))
        } else {
            (part_of(usable, CLEARED_SHARE).max(MIN_CLEARED), share(self.clear_at).saturating_sub(1))
        };
        let mut results = Vec::new();
        let mut reclaimed = 0_u64;
        for (cleared, saved) in self.clearable(view, size, can_read, effect_of) {
            if reclaimed >= minimum && used.saturating_sub(reclaimed) <= limit {
                break;
            }
            reclaimed = reclaimed.saturating_add(saved);
            results.push(cleared);
        }
        // Clearing must save at least `minimum` tokens, because it invalidates the provider's cache.
        if reclaimed >= minimum && used.saturating_sub(reclaimed) < share(self.clear_at) {
            return ViewDecision::Clear { results };
        }
        if must_compact
            && may_compact
            && let Some(at) = Self::cut(view, part_of(usable, TAIL_SHARE), part_of(usable, MIN_EFFECT), size)
        {
            return ViewDecision::Compact { at };
        }
        if used <= usable {
            return ViewDecision::Fits;
        }
        if results.is_empty() {
            return ViewDecision::Full { needed: used, usable };
        }
        ViewDecision::Clear { results }
    }

    /// Returns the index before which messages are summarized: the earliest cut that keeps at most `tail` tokens, or else the cut that
    /// keeps the fewest tokens. Returns `None` if there is no cut, or if the cut saves fewer than `saved` tokens.
    pub(crate) fn cut(
        view: &ConversationView,
        tail: u64,
        saved: u64,
        size: SizeCounter<'_>,
    ) -> Option<usize> {
        let first = view.summarized();
        // `behind[index - first]` is the number of tokens of the messages from `index` to the end.
        let mut sum = 0_u64;
        let mut behind = vec![0; view.conversation().len() + 1 - first];
        for index in (first..view.conversation().len()).rev() {
            sum = sum.saturating_add(view.sent_form(index).map_or(0, |message| size.message(message)));
            behind[index - first] = sum;
        }
        let kept = |at: usize| {
            let after = behind.get(at - first).copied().unwrap_or_default();
            after.saturating_add(size.messages(view.kept_before(at)))
        };
        let cuts = view.cuts().into_iter().map(|at| (at, kept(at)));
        let mut best: Option<(usize, u64)> = None;
        for (at, kept) in cuts {
            if best.is_none_or(|(_, least)| kept <= least) {
                best = Some((at, kept));
            }
            if kept <= tail {
                break;
            }
        }
        best.filter(|(_, kept)| sum.saturating_sub(*kept) >= saved).map(|(at, _)| at)
    }

    /// Returns the decision to shorten one of the newest results, if that result alone exceeds the usable window.
    fn shorten_newest(view: &ConversationView, usable: u64, size: SizeCounter<'_>) -> Option<ViewDecision> {
        let messages = view.conversation();
        let newest = messages.iter().rposition(|message| message.as_assistant().is_some()).unwrap_or(0);
        let is_too_long = |index: &usize| {
            let message = view.sent_form(*index).filter(|_| !view.is_replaced(*index));
            message
                .is_some_and(|message| message.as_tool_result().is_some() && size.message(message) > usable)
        };
        let index = (newest..messages.len()).find(is_too_long)?;
        // A token has about four bytes.
        let bytes = part_of(usable, SHORTENED_SHARE).saturating_mul(4);
        Some(ViewDecision::Shorten { index, bytes: usize::try_from(bytes).unwrap_or(usize::MAX) })
    }

    /// Returns the results that may be cleared, oldest first, each with the number of tokens that clearing it saves.
    fn clearable(
        &self,
        view: &ConversationView,
        size: SizeCounter<'_>,
        can_read: bool,
        effect_of: impl Fn(&str) -> Option<Effect>,
    ) -> impl Iterator<Item = (ClearedResult, u64)> {
        let messages = view.conversation();
        let with_calls = messages.iter().enumerate().rev().filter(|(_, message)| {
            message.as_assistant().is_some_and(|reply| reply.tool_calls().next().is_some())
        });
        let newest_kept = match self.keep_results.checked_sub(1) {
            Some(last) => with_calls.map(|(index, _)| index).nth(last).unwrap_or(0),
            None => messages.len(),
        };
        let turn = messages.iter().rposition(|message| matches!(&**message, Message::User(_))).unwrap_or(0);
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        (0..newest_kept).filter_map(move |index| {
            let whole = messages.get(index)?;
            let result = whole.as_tool_result()?;
            let number = *numbers.entry(&*result.call_id).and_modify(|number| *number += 1).or_insert(1);
            let message = view.sent_form(index)?;
            let tokens = size.message(message);
            let is_refused = result.code.as_deref() == Some("invalid_arguments") && index > turn;
            // The result of an interrupted call is not cleared, because the real result may still replace it.
            let is_open = result.outcome == OutcomeKind::Interrupted;
            if tokens < MIN_RESULT || self.kept_tools.contains(&result.tool) || is_refused || is_open {
                return None;
            }
            let effect = effect_of(&result.tool)?;
            let handle = can_read.then(|| handle_of(&result.call_id, number));
            let line = replacement(&result.tool, handle.as_deref(), size.message(whole), effect);
            let saved = tokens.saturating_sub(size.counter.count_text(&line));
            // A shortened result may still be cleared. A result that already has this line is not cleared again, even if the line is long.
            let is_cleared = view.is_replaced(index) && message.text() == line;
            (!is_cleared).then(|| (ClearedResult::new(index, line), saved))
        })
    }
}

impl Default for ContextRules {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the handle of a result. Call ids are unique only within one reply, so `number` is the position of the result, from 1, among the
/// results with the same call id. `runtime/spill` finds the result of a handle.
fn handle_of(call_id: &str, number: usize) -> String {
    if number == 1 { call_id.to_owned() } else { format!("{call_id}#{number}") }
}

fn replacement(tool: &str, handle: Option<&str>, tokens: u64, effect: Effect) -> String {
    let again = match effect {
        Effect::Pure | Effect::Idempotent => "the call may be repeated",
        Effect::Once => "the call ran and must not be repeated",
    };
    let read = handle.map(|handle| format!("`{READ_RESULT}` with the handle `{handle}` returns it; "));
    format!(
        "[the result of `{tool}` was removed here to save room, about {tokens} tokens; {}{again}]",
        read.unwrap_or_default()
    )
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shares are between 0 and 1")]
fn thousandths(share: f64) -> u64 {
    (share * 1_000.0).round() as u64
}

fn part_of(tokens: u64, thousandths: u64) -> u64 {
    u64::try_from(u128::from(tokens) * u128::from(thousandths) / 1_000).unwrap_or(u64::MAX)
}
