//! Keeps the requests of a long conversation within the context window of the model.
//!
//! Before each request, [`fit`] changes the [`ConversationView`], the messages that the model sees, as the [`ContextRules`] require.
//! [`summary`] asks a model to summarize a [`transcript`], and checks the answer.

mod error;
mod fit;
mod summary;
mod transcript;

use std::sync::Arc;

pub(crate) use error::ContextError;
pub(super) use error::sentence;
pub(super) use fit::{usable_in, window_full};
pub(super) use summary::name;

use super::error::BuildError;
use crate::message::{Conversation, ConversationView};
use crate::model::{ContextRules, Model, ModelRequest, SummaryAuthor};
use crate::tool::definition::ToolDefinition;

pub(super) type NamedModel = (Arc<str>, Arc<dyn Model>);

/// Maximum number of summaries before one request. More than one is needed only if the messages do not fit into a single request for a
/// summary.
const MAX_COMPACTIONS: u32 = 4;
/// The first `ord` of the summaries before a request that is repeated with more room for its reply. The summaries before the original
/// request have lower numbers.
pub(super) const ROOM_ORD: u32 = 4 * MAX_COMPACTIONS;

#[derive(Clone)]
pub(super) struct ContextLimits {
    pub(super) rules: Arc<ContextRules>,
    pub(super) window: u64,
    /// The number of tokens of the window that a request may use.
    pub(super) usable: u64,
    /// The model that writes summaries, or `None` if summaries are turned off.
    pub(super) writer: Option<SummaryWriter>,
    /// The number of tokens above which the provider writes a summary itself, or `None` if the provider writes no summaries.
    pub(super) by_provider: Option<u64>,
}

/// The protocols whose providers write summaries within their replies.
const COMPACTING: [&str; 2] = ["anthropic-messages", "openai-responses"];

#[derive(Clone)]
pub(super) struct SummaryWriter {
    pub(super) model: Arc<dyn Model>,
    pub(super) usable: u64,
}

impl ContextLimits {
    /// Computes the limits for requests to `model`. If the rules name a model for summaries, `named` must contain that model.
    ///
    /// # Errors
    /// Fails if a window is unknown or too small, or if the rules name a model that does not exist.
    pub(super) fn new(
        rules: &Arc<ContextRules>,
        model: &Arc<dyn Model>,
        named: &[NamedModel],
        request: &ModelRequest,
    ) -> Result<Self, BuildError> {
        let known = model.context_window();
        let usable =
            rules.usable(known, model.max_output(), request.max_tokens).map_err(BuildError::Context)?;
        let window = rules.own_window().or(known).unwrap_or(usable);
        let writer = match rules.author() {
            SummaryAuthor::Off => None,
            SummaryAuthor::Own | SummaryAuthor::Provider => Some((model, window)),
            SummaryAuthor::Named(name) => {
                let (_, model) = named
                    .iter()
                    .find(|(known, _)| **known == **name)
                    .ok_or_else(|| BuildError::UnknownModel { name: name.clone() })?;
                Some((model, model.context_window().unwrap_or(window)))
            }
        };
        let writer = writer.map(|(model, window)| {
            let reserved = summary::MAX_TOKENS.min(window / 2);
            SummaryWriter { model: model.clone(), usable: window - reserved }
        });
        let can_compact = || model.candidates().iter().all(|info| COMPACTING.contains(&&*info.api));
        let by_provider = (*rules.author() == SummaryAuthor::Provider && can_compact())
            .then(|| rules.compaction_trigger(usable));
        Ok(Self { rules: rules.clone(), window, usable, writer, by_provider })
    }
}

#[derive(Default)]
pub(crate) struct ContextState {
    pub(crate) view: ConversationView,
    /// The estimated tokens of the request when a compaction failed. Compaction is tried again when the estimate has grown, or when the
    /// request is too long to be sent.
    pub(super) failed_at: Option<u64>,
    /// Whether the last request used more than 90 % of the usable tokens.
    is_near: bool,
    pub(super) frame: RequestFrame,
    /// The generation of `view` that was last converted for the model.
    pub(super) handed: u32,
}

/// The tools of a request, and the number of tokens outside of its messages.
#[derive(Default)]
pub(super) struct RequestFrame {
    tools: Option<Arc<[ToolDefinition]>>,
    pub(super) tokens: u64,
}

impl RequestFrame {
    pub(super) fn update(
        &mut self,
        tools: Arc<[ToolDefinition]>,
        count: impl FnOnce(&[ToolDefinition]) -> u64,
    ) {
        if !self.tools.as_ref().is_some_and(|known| Arc::ptr_eq(known, &tools)) {
            self.tokens = count(&tools);
            self.tools = Some(tools);
        }
    }
}

impl ContextState {
    pub(super) fn update(&mut self, conversation: &Conversation) {
        self.view.update(conversation);
    }
}
