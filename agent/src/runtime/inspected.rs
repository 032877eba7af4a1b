//! Functions of an assistant for the studio, the web page for the author of tools. The studio runs forks: copies of the assistant with
//! their own conversation.

use std::sync::Arc;

use super::assistant::Assistant;
use super::config::ModelWrap;
use super::error::BuildError;
use crate::store::{SessionEntry, SessionSummary, StoreError};
use crate::tool::cancel::CancelToken;
use crate::tool::context::ToolContext;
use crate::tool::secrets::SecretArguments;

impl Assistant {
    /// Returns a fork of the assistant whose models are wrapped by `wrap`. The models of the sub-agents are wrapped, too.
    pub(crate) fn fork_with_models(&self, wrap: ModelWrap) -> Self {
        let mut config = (**self.config()).clone();
        config.wrap_models(wrap);
        Self::new(Arc::new(config), self.fork().messages())
    }

    pub(crate) async fn fork_session(&self, id: Arc<str>) -> Result<Self, BuildError> {
        self.fork().into_session(id).await
    }

    /// Returns at most `limit` sessions of the assistant's store whose names contain the text `containing`, the latest session first. The
    /// list begins after the session `after`. Returns `None` if the assistant has no store.
    pub(crate) async fn stored_sessions(
        &self,
        containing: &str,
        after: Option<&SessionSummary>,
        limit: usize,
    ) -> Option<Result<Vec<SessionSummary>, StoreError>> {
        Some(self.config().keeper.as_ref()?.list_sessions(containing, after, limit).await)
    }

    /// Returns at most `limit` entries from the beginning of a stored session, or none if the assistant has no store or the session cannot
    /// be read.
    pub(crate) async fn first_entries(&self, session: &str, limit: usize) -> Vec<(u64, SessionEntry)> {
        let Some(keeper) = &self.config().keeper else { return Vec::new() };
        keeper.load_first(session, limit).await.unwrap_or_default()
    }

    #[cfg(all(test, feature = "openai"))]
    pub(crate) fn model_handle(&self) -> &dyn crate::model::Model {
        &*self.config().model
    }

    pub(crate) fn has_store(&self) -> bool {
        self.config().keeper.is_some()
    }

    pub(crate) fn secret_arguments(&self) -> Arc<SecretArguments> {
        self.config().secrets()
    }

    pub(crate) fn call_context(&self, cancel: CancelToken) -> ToolContext {
        let config = self.config();
        let context = ToolContext::new().with_cancel(cancel).with_cancel_grace(config.cancel_grace);
        match config.source.clone() {
            Some(source) => context.with_source(source),
            None => context,
        }
        .with_default_timeout(config.tool_timeout)
    }
}
