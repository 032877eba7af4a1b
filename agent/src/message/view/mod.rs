//! The view of a conversation: the messages that a model gets. The conversation itself is not changed.

mod change;
mod hashes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use change::ClearedResult;
use change::ViewChangeKind;
pub use change::{ViewChange, ViewError};
use hashes::PrefixHashes;

use super::by_role::Message;
use super::conversation::Conversation;
use super::list::MessageList;
use super::part::Part;
use super::roles::ToolResultMessage;
#[cfg(feature = "runtime")]
use super::usage::Usage;
use super::words::StopReason;

/// A conversation as a model gets it: with all messages, except that results can be cleared or shortened, and old messages can be replaced
/// by a summary.
///
/// Each change returns a [`ViewChange`], and [`fold`](Self::fold) builds the same view from the conversation and its changes. Every view
/// can be sent, because a change that would split a call from its result is refused. The conversation must be
/// [sound](Conversation::is_sound), except that the calls of its last reply may have no results yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConversationView {
    conversation: MessageList,
    changes: Vec<ViewChange>,
    replaced: BTreeMap<usize, Arc<Message>>,
    summary: Option<(usize, Arc<Message>)>,
    window: Option<u64>,
    pins: Vec<usize>,
    hashes: PrefixHashes,
    /// The number of changes that the conversation had recorded when the view was last updated.
    #[cfg_attr(not(feature = "runtime"), allow(dead_code, reason = "only runs continue a view"))]
    recorded: usize,
    sent: MessageList,
}

impl Conversation {
    /// Returns the messages that are sent to a model: all messages of the conversation, except that results may be cleared or shortened
    /// and old messages replaced by a summary. The conversation itself stays complete.
    ///
    /// ```
    /// use agent::message::{Conversation, Message, UserMessage};
    ///
    /// let contract = UserMessage::from("The contract is …").pinned();
    /// let mut conversation = Conversation::from_iter([
    ///     contract.into(),
    ///     Message::assistant("I read it."),
    ///     Message::user("What does clause 4 say?"),
    ///     Message::assistant("That it ends in May."),
    ///     Message::user("And clause 5?"),
    /// ]);
    /// conversation.compact(4, "The contract ends in May (clause 4).")?;
    ///
    /// let sent: Vec<String> = conversation.view().iter().map(|message| message.text()).collect();
    /// assert!(sent[0].contains("The contract ends in May (clause 4)."));
    /// assert_eq!(sent[1..], ["The contract is …", "And clause 5?"]);         // the pinned message and the rest
    /// assert_eq!(conversation.len(), 5);
    /// # Ok::<(), agent::message::ViewError>(())
    /// ```
    ///
    /// Each change is recorded as a [`ViewChange`] in the JSON of the conversation. A change that would split a call from its result is
    /// refused, so every view can be sent. The conversation must be [sound](Self::is_sound), but the calls of its last reply may lack
    /// results. A recorded change that does not fit the messages is left out, with a warning in the log. If this version does not know the
    /// kind of a recorded change, all changes are left out.
    pub fn view(&self) -> MessageList {
        ConversationView::of(self).sent
    }

    /// Replaces the messages before the index `at` by a summary, only in the [view](Self::view). Pinned messages stay, after the summary.
    /// If the cut is within a turn, the user message of this turn stays, too. `view` has an example.
    ///
    /// # Errors
    /// Fails unless [`cuts`](Self::cuts) contains `at`. For example, no cut may be between a call and its result. Also fails if the last
    /// recorded change has the highest number, 2³² - 1.
    pub fn compact(&mut self, at: usize, summary: impl Into<String>) -> Result<(), ViewError> {
        self.change_view(|view| view.compact(at, summary))
    }

    /// Returns the indices before which [`compact`](Self::compact) may cut, in order.
    ///
    /// ```
    /// use agent::message::{AssistantMessage, Conversation, Message, OutcomeKind, Part, ToolResultMessage};
    ///
    /// let call = AssistantMessage::new([Part::tool_call("1", "search", "{}")]);
    /// let result = ToolResultMessage::new("1", "search", OutcomeKind::Completed).with_content("found");
    /// let mut conversation = Conversation::from_iter([
    ///     Message::user("Hi"), call.into(), result.into(), Message::assistant("Found."), Message::user("Bye"),
    /// ]);
    /// assert_eq!(conversation.cuts(), [1, 3, 4]);                  // not before the result
    /// let error = conversation.compact(2, "…").unwrap_err();
    /// assert!(error.to_string().starts_with("the view cannot be cut before message 2: "));
    /// ```
    pub fn cuts(&self) -> Vec<usize> {
        ConversationView::of(self).cuts()
    }

    /// Replaces the content of the result at this index by a line that describes the removed content, only in the [view](Self::view). The
    /// call of the result stays unchanged.
    ///
    /// ```
    /// use agent::message::{AssistantMessage, Conversation, Message, OutcomeKind, Part, ToolResultMessage};
    ///
    /// let call = AssistantMessage::new([Part::tool_call("1", "search", "{}")]);
    /// let result = ToolResultMessage::new("1", "search", OutcomeKind::Completed).with_content("a long list");
    /// let mut conversation = Conversation::from_iter([Message::user("Hi"), call.into(), result.into()]);
    /// conversation.clear_result(2, "[11 bytes of `search` were here]")?;
    /// assert_eq!(conversation.view()[2].text(), "[11 bytes of `search` were here]");
    /// assert_eq!(conversation.get(2).unwrap().text(), "a long list");
    /// # Ok::<(), agent::message::ViewError>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the message is not a result in the view, or if the last recorded change has the highest number, 2³² - 1.
    pub fn clear_result(&mut self, index: usize, line: impl Into<String>) -> Result<(), ViewError> {
        self.change_view(|view| view.clear([ClearedResult::new(index, line)]))
    }

    /// Shortens the text of the result at this index to its beginning and its end, only in the [view](Self::view). Both together have at
    /// most `bytes` bytes. Other parts of the result, such as images, are removed.
    ///
    /// ```
    /// use agent::message::{AssistantMessage, Conversation, Message, OutcomeKind, Part, ToolResultMessage};
    ///
    /// let call = AssistantMessage::new([Part::tool_call("1", "search", "{}")]);
    /// let result = ToolResultMessage::new("1", "search", OutcomeKind::Completed).with_content("abcdefghij".repeat(10));
    /// let mut conversation = Conversation::from_iter([Message::from(call), result.into()]);
    /// conversation.shorten_result(1, 20)?;
    /// assert_eq!(conversation.view()[1].text(), "abcdefghij\n[80 of 100 bytes were removed here]\nabcdefghij");
    /// # Ok::<(), agent::message::ViewError>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the message is not a result in the view, or is cleared, or if the last recorded change has the highest number, 2³² - 1.
    pub fn shorten_result(&mut self, index: usize, bytes: usize) -> Result<(), ViewError> {
        self.change_view(|view| view.shorten(index, bytes))
    }

    fn change_view(
        &mut self,
        change: impl FnOnce(&mut ConversationView) -> Result<ViewChange, ViewError>,
    ) -> Result<(), ViewError> {
        let change = change(&mut ConversationView::of(self))?;
        self.record_view_change(change);
        Ok(())
    }
}

impl ConversationView {
    pub(crate) fn of(conversation: &Conversation) -> Self {
        let changes = conversation.view_changes();
        Self { recorded: changes.len(), ..Self::fold(conversation, changes.iter().cloned()) }
    }

    /// Creates the view of a conversation with these changes, oldest first. A change that does not fit the messages or the order is left
    /// out, with a warning in the log.
    pub(crate) fn fold(conversation: &Conversation, changes: impl IntoIterator<Item = ViewChange>) -> Self {
        let mut view = Self::default();
        view.extend(conversation.shared());
        for change in changes {
            let fits = change.at <= view.conversation.len()
                && view.hashes.covering(&view.conversation, change.at) == change.covers
                && change.generation > view.generation()
                && view.accepts_stored(change.at, &change.kind);
            if fits {
                view.apply(change);
            } else {
                tracing::warn!(
                    generation = change.generation,
                    "a change of the view does not fit its messages"
                );
            }
        }
        view.rebuild();
        view
    }

    fn extend(&mut self, messages: &[Arc<Message>]) {
        let from = self.conversation.len();
        let pins = messages.iter().enumerate().filter(|(_, message)| is_pinned(message));
        self.pins.extend(pins.map(|(at, _)| from + at));
        // The view has a separate list, because a list that is shared with the conversation would be copied whenever the conversation
        // grows.
        self.conversation.extend(messages.iter().cloned());
    }

    pub(crate) fn messages(&self) -> &MessageList {
        &self.sent
    }

    pub(crate) fn changes(&self) -> &[ViewChange] {
        &self.changes
    }

    pub(crate) fn generation(&self) -> u32 {
        self.changes.last().map_or(0, |change| change.generation)
    }

    /// Returns the window of changes that name no model. It holds for every model.
    pub(crate) fn window(&self) -> Option<u64> {
        self.window
    }

    /// Returns the lowest recorded window of this model, given as `provider/model`.
    pub(crate) fn window_of(&self, model: &str) -> Option<u64> {
        let own = self.changes.iter().filter_map(|change| match &change.kind {
            ViewChangeKind::Window { tokens, model: Some(of) } if of == model => Some(*tokens),
            _ => None,
        });
        own.chain(self.window).min()
    }

    /// Updates the view from its conversation, by reading only the new messages. If earlier messages or recorded changes have been
    /// replaced, the view is created anew.
    #[cfg(feature = "runtime")]
    pub(crate) fn update(&mut self, conversation: &Conversation) {
        let messages = conversation.shared();
        let known = self.conversation.len();
        let is_same = match known.checked_sub(1) {
            None => true,
            Some(last) => {
                messages.get(last).is_some_and(|message| Arc::ptr_eq(message, &self.conversation[last]))
            }
        };
        let recorded = conversation.view_changes();
        if is_same && (recorded.len() == self.recorded || recorded.last() == self.changes.last()) {
            self.recorded = recorded.len();
            let new = messages.get(known..).unwrap_or_default();
            self.extend(new);
            self.sent.extend(new.iter().cloned());
        } else if recorded.is_empty() {
            *self = Self::fold(conversation, std::mem::take(&mut self.changes));
        } else {
            *self = Self::of(conversation);
        }
    }

    pub(crate) fn clear(
        &mut self,
        results: impl IntoIterator<Item = ClearedResult>,
    ) -> Result<ViewChange, ViewError> {
        let results: Vec<_> = results.into_iter().collect();
        let at = results.iter().map(|cleared| cleared.index.saturating_add(1)).max().unwrap_or(0);
        self.change(at, ViewChangeKind::Clear { results })
    }

    /// See [`Conversation::compact`].
    pub(crate) fn compact(&mut self, at: usize, summary: impl Into<String>) -> Result<ViewChange, ViewError> {
        self.change(at, ViewChangeKind::Summary { text: summary.into(), usage: Box::default() })
    }

    /// Compacts the view if `check` accepts the compacted view, and records the usage of the request for the summary. The error is the
    /// reason why the view was not changed.
    #[cfg(feature = "runtime")]
    pub(crate) fn compact_if(
        &mut self,
        at: usize,
        text: String,
        usage: Usage,
        check: impl FnOnce(&Self) -> Result<(), String>,
    ) -> Result<ViewChange, String> {
        // Only these two fields are copied to undo the change. A copy of the whole view would grow with the conversation.
        let (replaced, summary) = (self.replaced.clone(), self.summary.clone());
        let kind = ViewChangeKind::Summary { text, usage: Box::new(usage) };
        let change = self.change(at, kind).map_err(|error| error.to_string())?;
        check(self).map(|()| change).inspect_err(|_| {
            self.changes.pop();
            (self.replaced, self.summary) = (replaced, summary);
            self.rebuild();
        })
    }

    /// See [`Conversation::shorten_result`].
    pub(crate) fn shorten(&mut self, index: usize, bytes: usize) -> Result<ViewChange, ViewError> {
        self.change(index.saturating_add(1), ViewChangeKind::Shorten { index, bytes })
    }

    /// Records a window without a model, as older versions did.
    #[cfg(test)]
    pub(crate) fn lower_window(&mut self, tokens: u64) -> Option<ViewChange> {
        self.change(0, ViewChangeKind::Window { tokens, model: None }).ok()
    }

    /// Records that the context window of this model has at most `tokens` tokens. Returns `None` if the recorded window is not larger.
    #[cfg(feature = "runtime")]
    pub(crate) fn lower_window_of(&mut self, model: &str, tokens: u64) -> Option<ViewChange> {
        if self.window_of(model).is_some_and(|window| window <= tokens) {
            return None;
        }
        self.change(0, ViewChangeKind::Window { tokens, model: Some(model.to_owned()) }).ok()
    }

    /// Returns the indices of the messages before which [`compact`](Self::compact) may cut, in order.
    pub(crate) fn cuts(&self) -> Vec<usize> {
        self.cuts_unless(|at| self.continues_reply(at))
    }

    fn cuts_unless(&self, continues_reply: impl Fn(usize) -> bool) -> Vec<usize> {
        let first = self.summarized();
        let mut open = 0_usize;
        let mut cuts = Vec::new();
        // All calls before `first` have their results, so the count starts there.
        for (at, message) in self.conversation.iter().enumerate().skip(first) {
            let is_start = matches!(&**message, Message::User(_) | Message::Assistant(_));
            if is_start && open == 0 && at > first && !continues_reply(at) {
                cuts.push(at);
            }
            match &**message {
                Message::ToolResult(_) => open = open.saturating_sub(1),
                Message::Assistant(reply) if !reply.stop_reason.is_failure() => {
                    open = reply.tool_calls().count();
                }
                _ => {}
            }
        }
        cuts
    }

    /// Returns the messages before this index that a compaction keeps: the pinned messages and, if the cut is within a turn, the user
    /// message of this turn.
    pub(crate) fn kept_before(&self, at: usize) -> impl Iterator<Item = &Arc<Message>> {
        let mut kept: Vec<usize> = self.pins.iter().copied().take_while(|pin| *pin < at).collect();
        let is_within = self.conversation.get(at).is_some_and(|message| message.as_assistant().is_some());
        if is_within {
            let replaced = self.conversation.get(..at).unwrap_or_default();
            let question = replaced.iter().rposition(|message| matches!(&**message, Message::User(_)));
            if let Some(question) = question
                && let Err(place) = kept.binary_search(&question)
            {
                kept.insert(place, question);
            }
        }
        kept.into_iter().filter_map(|index| self.conversation.get(index))
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn pinned(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.pins.iter().filter_map(|index| self.conversation.get(*index))
    }

    pub(crate) fn conversation(&self) -> &MessageList {
        &self.conversation
    }

    /// Returns the messages of the request whose reply is at this index of the conversation.
    pub(crate) fn before_reply(&self, index: usize) -> MessageList {
        let known = self.changes.partition_point(|change| change.made_at <= index);
        let changes = self.changes.get(..known).unwrap_or_default();
        let summary = changes.iter().rev().find_map(ViewChange::summary);
        let from = summary.as_ref().map_or(0, |(until, _)| *until);
        let mut replaced = BTreeMap::new();
        let later = changes.iter().filter(|change| change.at > from);
        for (at, content) in later.flat_map(|change| self.replacements(change, from)) {
            replaced.extend(self.replacement(at, content).map(|message| (at, message)));
        }
        self.assemble(summary.as_ref(), &replaced, index)
    }

    pub(crate) fn summarized(&self) -> usize {
        self.summary.as_ref().map_or(0, |(until, _)| *until)
    }

    /// Returns the message at this index of the conversation as the model gets it, or `None` if the summary replaces it.
    pub(crate) fn sent_form(&self, index: usize) -> Option<&Arc<Message>> {
        let sent = self.replaced.get(&index).or_else(|| self.conversation.get(index));
        sent.filter(|_| index >= self.summarized())
    }

    pub(crate) fn is_replaced(&self, index: usize) -> bool {
        self.replaced.contains_key(&index)
    }

    fn continues_reply(&self, at: usize) -> bool {
        let before =
            self.conversation.get(..at).unwrap_or_default().iter().rev().map(|before| before.as_assistant());
        // A request whose reply failed is repeated, so the reply that follows continues the one before the failure.
        let mut before = before.skip_while(|reply| reply.is_some_and(|reply| reply.stop_reason.is_failure()));
        before.next().flatten().is_some_and(|reply| reply.stop_reason == StopReason::Pause)
    }

    fn change(&mut self, at: usize, kind: ViewChangeKind) -> Result<ViewChange, ViewError> {
        self.check(at, &kind)?;
        // A stored change may already have the highest number, so the addition is checked.
        let generation = self.generation().checked_add(1);
        let change = ViewChange {
            generation: generation
                .ok_or(ViewError::OutOfRange { at, reason: "the last change has the highest number" })?,
            at,
            covers: self.hashes.covering(&self.conversation, at),
            made_at: self.conversation.len(),
            kind,
        };
        self.apply(change.clone());
        self.rebuild();
        Ok(change)
    }

    fn check(&self, at: usize, kind: &ViewChangeKind) -> Result<(), ViewError> {
        match kind {
            ViewChangeKind::Clear { results } => {
                results.iter().try_for_each(|cleared| self.result(cleared.index).map(drop))
            }
            ViewChangeKind::Shorten { index, .. } if self.is_cleared(*index) => {
                Err(ViewError::NotAResult { index: *index })
            }
            ViewChangeKind::Shorten { index, .. } => self.result(*index).map(drop),
            ViewChangeKind::Summary { .. } if self.cuts().binary_search(&at).is_ok() => Ok(()),
            ViewChangeKind::Summary { .. } if at <= self.summarized() => {
                Err(ViewError::OutOfRange { at, reason: "the messages before it are summarized already" })
            }
            ViewChangeKind::Summary { .. } if at >= self.conversation.len() => {
                Err(ViewError::OutOfRange { at, reason: "no message would be left" })
            }
            ViewChangeKind::Summary { .. } => Err(ViewError::Split { at }),
            ViewChangeKind::Window { .. } => Ok(()),
        }
    }

    /// Checks a stored change. Earlier versions also shortened cleared results, and cut between a failed reply and its repetition.
    fn accepts_stored(&self, at: usize, kind: &ViewChangeKind) -> bool {
        match kind {
            ViewChangeKind::Shorten { index, .. } => self.result(*index).is_ok(),
            ViewChangeKind::Summary { .. } => {
                let before = |at: usize| self.conversation.get(at.checked_sub(1)?)?.as_assistant();
                let continues = |at| before(at).is_some_and(|reply| reply.stop_reason == StopReason::Pause);
                self.cuts_unless(continues).binary_search(&at).is_ok()
            }
            kind => self.check(at, kind).is_ok(),
        }
    }

    fn is_cleared(&self, index: usize) -> bool {
        self.changes.iter().any(|change| match &change.kind {
            ViewChangeKind::Clear { results } => results.iter().any(|cleared| cleared.index == index),
            _ => false,
        })
    }

    fn result(&self, index: usize) -> Result<&ToolResultMessage, ViewError> {
        let result = self.conversation.get(index).and_then(|message| message.as_tool_result());
        result.filter(|_| index >= self.summarized()).ok_or(ViewError::NotAResult { index })
    }

    fn apply(&mut self, change: ViewChange) {
        for (index, content) in self.replacements(&change, self.summarized()) {
            if let Some(message) = self.replacement(index, content) {
                self.replaced.insert(index, message);
            }
        }
        if let Some((at, summary)) = change.summary() {
            self.replaced = self.replaced.split_off(&at);
            self.summary = Some((at, summary));
        }
        if let ViewChangeKind::Window { tokens, model: None } = &change.kind {
            self.window = Some(self.window.map_or(*tokens, |window| window.min(*tokens)));
        }
        self.changes.push(change);
    }

    /// Returns the index and the new content of each result that a change replaces, from index `from` on.
    fn replacements(&self, change: &ViewChange, from: usize) -> Vec<(usize, Part)> {
        match &change.kind {
            ViewChangeKind::Clear { results } => {
                let later = results.iter().filter(|cleared| cleared.index >= from);
                later.map(|cleared| (cleared.index, Part::text(&cleared.line))).collect()
            }
            ViewChangeKind::Shorten { index, bytes } if *index >= from => {
                let result = self.conversation.get(*index).and_then(|message| message.as_tool_result());
                let text = result.map(|result| shortened(&result.text(), *bytes));
                text.map(|text| (*index, Part::text(text))).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn replacement(&self, index: usize, content: Part) -> Option<Arc<Message>> {
        let result = self.conversation.get(index)?.as_tool_result()?;
        // The copy is built field by field, so that the replaced content is not cloned.
        let replacement = ToolResultMessage {
            call_id: result.call_id.clone(),
            tool: result.tool.clone(),
            content: vec![content],
            structured: None,
            outcome: result.outcome.clone(),
            code: result.code.clone(),
            is_error: result.is_error,
            edited_args: result.edited_args.clone(),
            metadata: result.metadata.clone(),
            provider_data: result.provider_data.clone(),
            extra: result.extra.clone(),
        };
        Some(Arc::new(replacement.into()))
    }

    fn rebuild(&mut self) {
        self.sent = self.assemble(self.summary.as_ref(), &self.replaced, self.conversation.len());
    }

    /// Returns the messages to send for the first `until` messages of the conversation.
    fn assemble(
        &self,
        summary: Option<&(usize, Arc<Message>)>,
        replaced: &BTreeMap<usize, Arc<Message>>,
        until: usize,
    ) -> MessageList {
        let from = summary.map_or(0, |(from, _)| *from);
        let kept = summary.into_iter().flat_map(|_| self.kept_before(from)).cloned();
        let summary = summary.map(|(_, summary)| summary.clone());
        let mut sent: Vec<_> = summary.into_iter().chain(kept).collect();
        let before = sent.len();
        sent.extend_from_slice(self.conversation.get(from..until).unwrap_or_default());
        for (at, message) in replaced.range(from..until.max(from)) {
            if let Some(place) = sent.get_mut(before + at - from) {
                *place = message.clone();
            }
        }
        sent.into()
    }
}

fn is_pinned(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.is_pinned())
}

/// Returns the beginning and the end of a text, together at most `bytes` long, with a line between them.
fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let head = (0..=bytes / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let from = text.len() - (bytes - bytes / 2);
    let tail = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let (all, removed) = (text.len(), tail - head);
    format!("{}\n[{removed} of {all} bytes were removed here]\n{}", &text[..head], &text[tail..])
}
