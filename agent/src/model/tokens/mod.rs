//! Estimates the size of a request in tokens before the request is sent.

mod anchor;
mod count;
mod media;
mod report;
mod sizes;
#[cfg(test)]
mod tests;

use std::sync::Arc;
#[cfg(any(test, feature = "runtime"))]
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use anchor::TokenEstimate;
pub(crate) use count::TokenEstimator;
pub use report::{ContextPart, ContextReport, ContextSource};

use super::{ModelInfo, ModelRequest};
use crate::message::{Content, ConversationView, Message, Part};
use crate::tool::definition::ToolDefinition;

/// A counter of the tokens of texts. It counts by a rule, as [`TokenEstimator`] does, or with the vocabulary of a model.
///
/// A counter must return the same number for the same text.
pub(crate) trait TokenCounter: Send + Sync {
    fn count_text(&self, text: &str) -> u64;

    fn count_json(&self, json: &str) -> u64 {
        self.count_text(json)
    }

    /// Returns the id of this counter in the cache of message sizes, or `None` if its sizes are not cached.
    fn id(&self) -> Option<u64> {
        None
    }
}

pub(crate) struct CountWith<F> {
    count: F,
    id: Option<u64>,
}

impl<F> CountWith<F> {
    #[cfg(any(test, feature = "runtime"))]
    pub(crate) fn kept(count: F) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Self { count, id: Some(NEXT_ID.fetch_add(1, Ordering::Relaxed)) }
    }

    /// Creates a counter whose message sizes are not cached, because it is used only once.
    pub(crate) fn once(count: F) -> Self {
        Self { count, id: None }
    }
}

impl<F: Fn(&str) -> u64 + Send + Sync> TokenCounter for CountWith<F> {
    fn count_text(&self, text: &str) -> u64 {
        (self.count)(text)
    }

    fn id(&self) -> Option<u64> {
        self.id
    }
}

/// The tokens that each message, tool and request adds to its content.
pub(super) const MESSAGE: u64 = 4;
pub(super) const TOOL: u64 = 12;
pub(super) const REQUEST: u64 = 8;

#[derive(Clone, Copy)]
pub(crate) struct SizeCounter<'a> {
    pub(crate) counter: &'a dyn TokenCounter,
    /// The name of the protocol, which decides how images are counted.
    pub(crate) api: &'a str,
}

impl SizeCounter<'_> {
    pub(super) fn part(self, part: &Part) -> u64 {
        let (text, json) = (|t: &str| self.counter.count_text(t), |j: &str| self.counter.count_json(j));
        match &part.content {
            Content::Text(words) | Content::Refusal(words) | Content::Thinking { text: words, .. } => {
                text(words)
            }
            Content::Image(image) => media::image(image, self.api),
            Content::Document(document) => media::document(document, self.counter),
            Content::Audio(audio) => media::audio(audio),
            Content::Resource(resource) => match resource.as_text() {
                Some(words) => text(words),
                None => resource.as_data().map_or(0, |bytes| (bytes.len() as u64).div_ceil(2)),
            },
            Content::ResourceLink(link) => text(&link.uri),
            Content::ToolCall(call) => text(&call.name).saturating_add(json(call.args.text())),
            Content::ProviderTool(tool) => [&tool.input, &tool.output]
                .into_iter()
                .flatten()
                .map(|value| json(&value.to_string()))
                .fold(text(&tool.name), u64::saturating_add),
            Content::Opaque(opaque) => json(&opaque.data.to_string()),
            Content::Unknown(_) => 0,
        }
    }

    pub(crate) fn message(self, message: &Arc<Message>) -> u64 {
        self.messages([message])
    }

    pub(crate) fn messages<'m>(self, messages: impl IntoIterator<Item = &'m Arc<Message>>) -> u64 {
        let mut sum = 0_u64;
        self.sizes(messages, |_, size| sum = sum.saturating_add(size.tokens()));
        sum
    }

    pub(super) fn tool(self, tool: &ToolDefinition) -> u64 {
        let schema = self.counter.count_json(&tool.parameters().to_string());
        let texts = [tool.name(), tool.description()].map(|text| self.counter.count_text(text));
        texts.into_iter().chain([schema]).fold(TOOL, u64::saturating_add)
    }

    /// Returns the number of tokens of a request with these tools, without its messages.
    pub(crate) fn frame(self, request: &ModelRequest, tools: &[ToolDefinition]) -> u64 {
        let system = request.system.as_ref().map_or(0, |system| self.counter.count_text(system));
        let output =
            request.output.as_ref().map_or(0, |out| self.counter.count_json(&out.schema.to_string()));
        let tools = tools.iter().map(|tool| self.tool(tool));
        tools.fold(REQUEST.saturating_add(system).saturating_add(output), u64::saturating_add)
    }
}

impl SizeCounter<'_> {
    pub(crate) fn estimate_view(
        self,
        view: &ConversationView,
        info: &ModelInfo,
        frame: impl FnOnce() -> u64,
    ) -> TokenEstimate {
        anchor::estimate_view(view, info, self, frame)
    }
}

impl ModelRequest {
    /// Estimates the number of input tokens of the request, if it is sent to this model.
    ///
    /// The estimate starts from the usage in the model's newest reply, so only the messages after this reply are estimated. Tools and
    /// system prompt are assumed to be unchanged since then, unless the reply records their size. Tools that the provider runs are not
    /// counted.
    pub(crate) fn estimate_tokens(&self, info: &ModelInfo, counter: &dyn TokenCounter) -> TokenEstimate {
        let size = SizeCounter { counter, api: &info.api };
        anchor::estimate(&self.messages, &[], info, size, || size.frame(self, &self.tools))
    }

    /// Estimates like [`estimate_tokens`](Self::estimate_tokens), for the messages of this view.
    pub(crate) fn estimate_view(
        &self,
        view: &ConversationView,
        info: &ModelInfo,
        counter: &dyn TokenCounter,
    ) -> TokenEstimate {
        let size = SizeCounter { counter, api: &info.api };
        size.estimate_view(view, info, || size.frame(self, &self.tools))
    }
}
