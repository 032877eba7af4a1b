//! Estimates of requests, corrected by the usage of earlier replies.

use std::sync::Arc;

use super::SizeCounter;
use crate::message::{AssistantMessage, Content, ConversationView, Message, ViewChange};
use crate::model::ModelInfo;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenEstimate {
    pub(crate) tokens: u64,
    /// The possible error of the estimate, in tokens. Without a [`TokenAnchor`], it is 35 % of the estimate. With one, it is 10 % of the
    /// estimate, or more if earlier estimates in this conversation had a larger error.
    pub(crate) error: u64,
    pub(crate) is_anchored: bool,
}

impl TokenEstimate {
    pub(crate) fn upper_bound(&self) -> u64 {
        self.tokens.saturating_add(self.error)
    }
}

/// The factor 1. Factors are integers in units of 1/1024.
pub(super) const ONE: u64 = 1024;
const MIN_FACTOR: u64 = ONE / 2;
const MAX_FACTOR: u64 = ONE * 5 / 2;
/// Minimum size of a [`TokenIncrement`] that contributes to the factor, in tokens. Smaller ones are too inexact.
const MIN_INCREMENT: u64 = 64;
const MAX_INCREMENTS: usize = 8;
/// The number of newest messages in which anchors are searched, so that the work does not grow with the conversation.
const MAX_SCANNED: usize = 256;
/// The minimum error of an estimate with an anchor, in percent.
const MIN_ERROR: u64 = 10;
const ERROR_WITHOUT_ANCHOR: u64 = 35;

/// A reply with a reported usage. Estimates start from the provider's count up to this reply.
#[derive(Clone, Copy)]
pub(super) struct TokenAnchor {
    pub(super) at: usize,
    input: u64,
    /// The tokens of the request and its reply. Reasoning that is not sent again does not count.
    pub(super) known: u64,
    /// The tokens of the request that are not in messages, such as tools and system prompt. `None` if they were not recorded.
    frame: Option<u64>,
}

impl TokenAnchor {
    /// Adds the growth of tools and system prompt since the reply.
    fn with_frame(&self, tokens: u64, frame: impl FnOnce() -> u64) -> u64 {
        match self.frame {
            Some(before) => tokens.saturating_add(frame()).saturating_sub(before),
            None => tokens,
        }
    }
}

/// The growth of a conversation between two `TokenAnchor`s. `actual` is the provider's count, and `raw` the uncorrected estimate.
struct TokenIncrement {
    actual: u64,
    raw: u64,
    input: u64,
}

/// Estimates the tokens of a request with these messages. `frame` counts the other tokens, such as those of the tools. If the newest
/// anchor did not record this count, the count is assumed to be unchanged. `changes` are the changes of the conversation's view, if there
/// is a view.
pub(super) fn estimate(
    messages: &[Arc<Message>],
    changes: &[ViewChange],
    info: &ModelInfo,
    size: SizeCounter<'_>,
    frame: impl FnOnce() -> u64,
) -> TokenEstimate {
    let anchors = anchors(messages, info);
    let Some(newest) = anchors.last() else {
        let tokens = frame().saturating_add(size.messages(messages));
        return TokenEstimate { tokens, error: share(tokens, ERROR_WITHOUT_ANCHOR), is_anchored: false };
    };
    let (factor, error) = correction(messages, changes, &anchors, size);
    let after = size.messages(messages.get(newest.at + 1..).unwrap_or_default());
    let tokens = newest.with_frame(newest.known.saturating_add(scale(after, factor)), frame);
    TokenEstimate { tokens, error: share(tokens, error), is_anchored: true }
}

/// Estimates the tokens of a request with the messages of this view, as [`estimate`] does. If the view has changed since the newest
/// anchor, the change in size corrects the anchor's count.
pub(super) fn estimate_view(
    view: &ConversationView,
    info: &ModelInfo,
    size: SizeCounter<'_>,
    frame: impl FnOnce() -> u64,
) -> TokenEstimate {
    let messages = view.conversation();
    let anchors = anchors(messages, info);
    let is_changed =
        |anchor: &&TokenAnchor| view.changes().last().is_some_and(|change| change.made_at > anchor.at);
    let Some(newest) = anchors.last().filter(is_changed) else {
        let sent = if anchors.is_empty() { view.messages() } else { messages };
        return estimate(sent, view.changes(), info, size, frame);
    };
    let (factor, error) = correction(messages, view.changes(), &anchors, size);
    let reply = messages.get(newest.at).map_or(0, |reply| size.message(reply));
    let before = size.messages(&view.before_reply(newest.at)).saturating_add(reply);
    let now = size.messages(view.messages());
    let tokens = match now.checked_sub(before) {
        Some(more) => newest.known.saturating_add(scale(more, factor)),
        None => newest.known.saturating_sub(scale(before - now, factor)).max(scale(now, factor)),
    };
    let tokens = newest.with_frame(tokens, frame);
    TokenEstimate { tokens, error: share(tokens, error), is_anchored: true }
}

/// Returns the anchors among the newest messages, oldest first: replies of this model that report their usage and did not fail.
pub(super) fn anchors(messages: &[Arc<Message>], info: &ModelInfo) -> Vec<TokenAnchor> {
    let own = messages.iter().enumerate().rev().take(MAX_SCANNED).filter_map(|(at, message)| {
        let reply = message.as_assistant()?;
        let is_own = (&reply.provider, &reply.api, &reply.model) == (&info.provider, &info.api, &info.model);
        let (input, output) = reply.usage.last_request();
        (is_own && input > 0 && !reply.stop_reason.is_failure()).then(|| TokenAnchor {
            at,
            input,
            known: input.saturating_add(output).saturating_sub(dropped(reply)),
            frame: reply.request_frame(),
        })
    });
    let mut anchors: Vec<_> = own.take(MAX_INCREMENTS + 1).collect();
    anchors.reverse();
    anchors
}

/// Returns the number of reasoning tokens if the reply lacks the reasoning itself. Such reasoning is not sent again.
fn dropped(reply: &AssistantMessage) -> u64 {
    let has_thinking = reply.content.iter().any(|part| {
        matches!(part.content, Content::Thinking { .. } | Content::Opaque(_)) || part.provider_data.is_some()
    });
    if has_thinking { 0 } else { reply.usage.reasoning }
}

/// Returns the factor that corrects estimates in this conversation, and the error of corrected estimates in percent. `changes` are the
/// changes of the conversation's view.
pub(super) fn correction(
    messages: &[Arc<Message>],
    changes: &[ViewChange],
    anchors: &[TokenAnchor],
    size: SizeCounter<'_>,
) -> (u64, u64) {
    let increments = anchors.windows(2).filter_map(|pair| {
        let [before, after] = pair else { return None };
        // Skips a pair of replies if the view changed between them, because the request then changed by more than the new messages.
        let is_between = |change: &ViewChange| before.at < change.made_at && change.made_at <= after.at;
        if changes.iter().any(is_between) {
            return None;
        }
        let raw = size.messages(messages.get(before.at + 1..after.at)?);
        let (less, more) = before.frame.zip(after.frame).unwrap_or_default();
        // Skips a pair of replies if the tokens decreased between them.
        let actual = after.input.saturating_add(less).checked_sub(before.known.saturating_add(more))?;
        (raw >= MIN_INCREMENT).then_some(TokenIncrement { actual, raw, input: after.input })
    });
    let increments: Vec<_> = increments.collect();
    let sum = |of: fn(&TokenIncrement) -> u64| increments.iter().map(of).fold(0, u64::saturating_add);
    let (actual, raw) = (sum(|increment| increment.actual), sum(|increment| increment.raw));
    let factor = match raw {
        0 => ONE,
        raw => ratio(actual, ONE, raw).clamp(MIN_FACTOR, MAX_FACTOR),
    };
    let mut errors: Vec<u64> = increments
        .iter()
        .map(|increment| {
            let error = increment.actual.abs_diff(scale(increment.raw, factor));
            ratio(error, 100, increment.input)
        })
        .collect();
    errors.sort_unstable();
    let ninth = errors.len().saturating_mul(9).div_ceil(10).checked_sub(1);
    let error = ninth.and_then(|at| errors.get(at)).copied().unwrap_or_default();
    (factor, error.max(MIN_ERROR))
}

/// Returns `value * by / of`, rounded up, or 0 if `of` is 0.
pub(super) fn ratio(value: u64, by: u64, of: u64) -> u64 {
    if of == 0 {
        return 0;
    }
    let product = u128::from(value) * u128::from(by);
    u64::try_from(product.div_ceil(of.into())).unwrap_or(u64::MAX)
}

pub(super) fn scale(raw: u64, factor: u64) -> u64 {
    ratio(raw, factor, ONE)
}

fn share(tokens: u64, percent: u64) -> u64 {
    ratio(tokens, percent, 100)
}
