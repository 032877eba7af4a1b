//! Compaction that the application requests, outside of the steps of a run.

use std::sync::Arc;

use super::assistant::Assistant;
use super::context::ContextError;
use super::error::RunError;
use super::perform::Performer;
use crate::message::{Conversation, ConversationView, Usage};
use crate::model::{ContextRules, SizeCounter};
use crate::tool::context::ToolContext;

/// The newest messages, up to 1/`TAIL` of the tokens of the next request, are not summarized.
const TAIL: u64 = 4;

/// The result of a [compaction](Assistant::compact).
///
/// ```
/// use agent::{Assistant, ScriptedModel, model::ContextRules, run::Compaction};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rules = ContextRules::new().window(100_000);
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).manage_context(rules).build()?;
/// assistant.prompt("Hi").await?;
/// let nothing: Option<Compaction> = assistant.compact(None).await?;            // there is nothing before the prompt
/// assert!(nothing.is_none());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Compaction {
    /// The number of messages that the summary replaces, without the messages that an earlier summary replaced.
    pub messages: usize,
    /// The estimated tokens of the next request before the compaction.
    pub tokens_before: u64,
    /// The estimated tokens of the next request after the compaction.
    pub tokens_after: u64,
    /// The usage of the requests for the summary.
    pub usage: Usage,
    /// The model that wrote the summary, as `provider/model`.
    pub model: String,
}

impl Assistant {
    /// Writes a summary now. The summary replaces old messages in the next requests to the model. `focus` names the content that the
    /// summary should keep above all. The conversation stays complete. Returns `None` if there is nothing that a summary could replace.
    ///
    /// The newest turn and pinned messages stay as they are. A run that is active meanwhile uses the summary from its next request on.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::ContextRules};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let record = r#"{"goal": "Learn about tea", "facts": [{"text": "Green tea is not fermented."}]}"#;
    /// let model = ScriptedModel::new([&*"Tea is a plant. ".repeat(500), "It is not fermented.", record, "Yes."]);
    /// let assistant =
    ///     Assistant::builder(model.clone()).manage_context(ContextRules::new().window(100_000)).build()?;
    /// assistant.prompt("What is tea?").await?;
    /// assistant.prompt("And green tea?").await?;
    ///
    /// let done = assistant.compact(Some("what green tea is")).await?.expect("there are old messages");
    /// assert!(done.tokens_after < done.tokens_before / 4);
    /// assistant.prompt("Is it healthy?").await?;
    /// let requests = model.requests();
    /// let sent = &requests.last().unwrap().messages;
    /// assert!(sent[0].text().contains("Green tea is not fermented."));
    /// assert_eq!((sent.len(), assistant.messages().len()), (4, 6));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails with [`RunError::Context`] if the summary fails, or if the conversation is [reset](Self::reset) or its view changed meanwhile.
    /// Fails with [`RunError::Request`] if the context is not [managed](super::AssistantBuilder::manage_context), or if the rules turn
    /// summaries off.
    pub async fn compact(&self, focus: Option<&str>) -> Result<Option<Compaction>, RunError> {
        let config = self.config().clone();
        let off = || RunError::Request {
            message: "there are no summaries; turn them on with `AssistantBuilder::manage_context`"
                .to_owned(),
        };
        let limits = config.context.clone().filter(|limits| limits.writer.is_some()).ok_or_else(off)?;
        let session = self.session();
        let context = session.map_or_else(ToolContext::new, |id| ToolContext::new().with_session_id(id));
        // Each compaction has a run id of its own, so that a budget of one run does not count earlier compactions.
        let performer = Performer::new(config.clone(), super::new_id("compact").into(), context);
        let conversation = self.messages();
        let mut view = ConversationView::of(&conversation);
        let frame = performer.frame(&config.request.tools);
        let tokens_before = performer.estimate(&view, frame).tokens;
        let size = SizeCounter { counter: &*config.counter, api: &config.model.info().api };
        let Some(at) = ContextRules::cut(&view, tokens_before / TAIL, 1, size) else { return Ok(None) };
        let Some((at, task)) = performer.summary_task(&limits, &view, at, focus) else { return Ok(None) };
        let messages = at - view.summarized();
        let cancel = performer.cancel_token().clone();
        let mut outcome = task.clone().run(None, cancel.clone()).await;
        if let Some(again) = task.corrected(&outcome) {
            outcome = outcome.followed_by(again.run(None, cancel).await);
        }
        let (usage, model) = (outcome.usage.clone(), outcome.model.clone());
        let (usable, generation) = (limits.usable, view.generation());
        let failed = |failure: String| {
            RunError::from(ContextError {
                pins_are_too_large: false,
                needed: tokens_before,
                usable,
                generation,
                summary: Some(failure),
                provider: None,
            })
        };
        let change = performer.apply_summary(&mut view, frame, (at, 1), outcome).map_err(failed)?;
        let tokens_after = performer.estimate(&view, frame).tokens;
        let is_same = |now: &Conversation| {
            let last = |of: &Conversation| of.shared().get(at.saturating_sub(1)).map(Arc::as_ptr);
            now.view_changes() == conversation.view_changes() && last(now) == last(&conversation)
        };
        let (is_recorded, is_idle) = {
            let mut state = self.state();
            let recorded = match &state.active {
                Some(active) => {
                    let mut run = active.run.lock();
                    is_same(run.conversation()).then(|| run.record_made_change(change))
                }
                None => is_same(&state.conversation).then(|| state.conversation.record_view_change(change)),
            };
            (recorded.is_some(), state.active.is_none())
        };
        if !is_recorded {
            // After a reset or another change of the view, the conversation would ignore this one.
            return Err(failed("the conversation was changed while the summary was written".to_owned()));
        }
        if is_idle {
            self.record_view().await;
        }
        Ok(Some(Compaction { messages, tokens_before, tokens_after, usage, model }))
    }
}
