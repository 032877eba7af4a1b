//! Language models behind one trait.
//!
//! A [`Model`] turns a [`ModelRequest`] into a [`ModelStream`]: events while the reply grows, then the whole
//! [`AssistantMessage`] or one [`ModelError`]. [`ScriptedModel`] plays a model in tests and examples.
//! ```
//! use agent::message::Message;
//! use agent::model::{Model, ModelRequest, ScriptedModel, StepCx};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
//! let model = ScriptedModel::new(["Hello!"]);          // or `agent::model("anthropic/claude-sonnet-5")?`
//! let request = ModelRequest::new([Message::user("Hi")]).with_system("Be brief.").with_max_tokens(100);
//! assert_eq!(model.call(&StepCx::new(), &request).await?.text(), "Hello!");
//! # Ok(()) }
//! ```

mod accumulator;
mod arguments;
mod error;
mod event;
mod managed;
mod options;
mod request;
mod scripted;
mod stream;
mod thinking;

pub use arguments::{ArgumentChange, ArgumentUpdate, CallArguments};
pub use error::{ModelError, ModelErrorKind};
pub use event::ModelEvent;
pub use managed::{
    CodeExecutionResult, ImageGenerationResult, ManagedResult, ManagedTool, WebFetch, WebFetchResult,
    WebSearch, WebSearchResult, WebSource,
};
pub use options::PromptCache;
pub use request::{ModelRequest, OutputSchema, ToolChoice};
pub use scripted::{Reply, ScriptedModel, reply, reply_with};
pub use stream::ModelStream;
pub use thinking::{ParseThinkingError, Thinking};

use std::sync::{Arc, LazyLock};

use crate::message::AssistantMessage;
#[cfg(feature = "runtime")]
use crate::message::Recipient;
use crate::{BoxFuture, CancelToken, StepKey};

#[cfg(test)]
mod tests;

/// A language model.
///
/// [`stream`](Self::stream) is the one required method. A model that does not stream answers with
/// [`ModelStream::from_reply`]:
///
/// ```
/// use agent::message::{AssistantMessage, Message};
/// use agent::model::{Model, ModelInfo, ModelRequest, ModelStream, StepCx};
///
/// struct Parrot(ModelInfo);
///
/// impl Model for Parrot {
///     fn info(&self) -> &ModelInfo {
///         &self.0
///     }
///
///     fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
///         let said = request.messages.last().map(|message| message.text()).unwrap_or_default();
///         ModelStream::from_reply(cx, &self.0, async move { Ok(AssistantMessage::from(said)) })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
/// let model = Parrot(ModelInfo::new("zoo", "parrot", "grey-1"));
/// assert_eq!(model.info().model, "grey-1");
/// let (cx, request) = (StepCx::new(), ModelRequest::new([Message::user("Hello!")]));
/// assert_eq!(model.call(&cx, &request).await?.text(), "Hello!");
/// let mut stream = model.stream(&cx, &request);        // the same, as events
/// while let Some(event) = stream.next().await {
///     assert_eq!(event?.text_delta().unwrap_or("Hello!"), "Hello!");
/// }
/// # Ok(()) }
/// ```
///
/// # Contract
/// The stream must not borrow from `cx` or `request`: clone what it needs. It must not block. [`ModelStream`] handles
/// cancelling, by dropping the stream that it was made of.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    label = "not a model",
    note = "a provider's model is made of its name: write `agent::model(\"openai/gpt-5\")?`, with the provider's feature of `agent` switched on",
    note = "a `ScriptedModel` plays a model in tests; a type of your own implements `agent::model::Model`"
)]
pub trait Model: Send + Sync {
    /// Begins one reply.
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream;

    /// Who answers. Provider state in a conversation is sent back only to a model of the same identity, so a model
    /// that keeps such state must have one. The default is nobody.
    fn info(&self) -> &ModelInfo {
        static NOBODY: LazyLock<ModelInfo> = LazyLock::new(ModelInfo::default);
        &NOBODY
    }

    /// The whole reply at once: drains [`stream`](Self::stream).
    fn call(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
    ) -> BoxFuture<'static, Result<AssistantMessage, ModelError>> {
        Box::pin(self.stream(cx, request).reply())
    }
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        (**self).stream(cx, request)
    }

    fn info(&self) -> &ModelInfo {
        (**self).info()
    }

    fn call(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
    ) -> BoxFuture<'static, Result<AssistantMessage, ModelError>> {
        (**self).call(cx, request)
    }
}

/// Who a model is.
///
/// ```
/// use agent::model::{Capabilities, ManagedTool, ModelInfo};
///
/// let info = ModelInfo::new("openai", "openai-chat", "gpt-5");
/// assert_eq!((info.provider.as_str(), info.model.as_str()), ("openai", "gpt-5"));
/// assert!(!info.runs(&ManagedTool::web_search()));     // unless its capabilities say so
/// let mut known = Capabilities::default();
/// known.web_search = true;
/// assert!(info.with_capabilities(known).runs(&ManagedTool::web_search()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The provider, for example `anthropic`.
    pub provider: String,
    /// The protocol, for example `anthropic-messages`.
    pub api: String,
    /// The model's own name.
    pub model: String,
    /// What it can do.
    pub capabilities: Capabilities,
}

/// What a model can do, as far as it is known. What is not known is taken for granted where trying costs an error that
/// says so (pictures), and not where it would go wrong in silence (a promise to keep to a schema).
///
/// ```
/// use agent::model::{Capabilities, ModelInfo};
///
/// let mut text_only = Capabilities::default();
/// text_only.images = false;
/// let info = ModelInfo::new("local", "openai-chat", "tiny").with_capabilities(text_only);
/// assert!(!info.capabilities.images && info.capabilities.documents && !info.capabilities.native_output);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Capabilities {
    /// Whether it takes pictures. Where it does not, a text says what was there; the same for the next two.
    pub images: bool,
    /// Whether it takes documents, such as PDF.
    pub documents: bool,
    /// Whether it takes sound.
    pub audio: bool,
    /// Whether it keeps to a [schema for its reply](ModelRequest::output). Otherwise an answer of a type is asked for by
    /// a tool.
    pub native_output: bool,
    /// Whether its provider searches the web for it, beside tools of one's own; the same for the next three.
    pub web_search: bool,
    /// Whether its provider reads pages of the web for it.
    pub web_fetch: bool,
    /// Whether its provider runs code for it.
    pub code_execution: bool,
    /// Whether it, or its provider for it, draws pictures.
    pub image_generation: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            images: true,
            documents: true,
            audio: true,
            native_output: false,
            web_search: false,
            web_fetch: false,
            code_execution: false,
            image_generation: false,
        }
    }
}

impl ModelInfo {
    /// An identity from its three names.
    pub fn new(provider: impl Into<String>, api: impl Into<String>, model: impl Into<String>) -> Self {
        let (provider, api, model) = (provider.into(), api.into(), model.into());
        Self { provider, api, model, capabilities: Capabilities::default() }
    }

    /// Says what the model can do.
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Whether its provider is known to run this tool for it.
    ///
    /// ```
    /// use agent::model::{ManagedTool, ModelInfo};
    ///
    /// let mut info = ModelInfo::new("acme", "acme-chat", "large-1");
    /// assert!(!info.runs(&ManagedTool::web_search()));
    /// info.capabilities.web_search = true;
    /// assert!(info.runs(&ManagedTool::web_search()));
    /// assert!(info.runs(&ManagedTool::other("acme", agent::json!({"type": "oracle"}))));
    /// ```
    pub fn runs(&self, tool: &ManagedTool) -> bool {
        match tool {
            ManagedTool::WebSearch(_) => self.capabilities.web_search,
            ManagedTool::WebFetch(_) => self.capabilities.web_fetch,
            ManagedTool::CodeExecution => self.capabilities.code_execution,
            ManagedTool::ImageGeneration => self.capabilities.image_generation,
            ManagedTool::Other { provider, .. } => *provider == self.provider,
        }
    }

    /// Who a request to it goes to.
    #[cfg(feature = "runtime")]
    pub(crate) fn recipient(&self) -> Recipient {
        let mut recipient = Recipient::new(&*self.provider, &*self.api, &*self.model);
        let Capabilities { images, documents, audio, .. } = self.capabilities;
        (recipient.takes_images, recipient.takes_documents, recipient.takes_audio) =
            (images, documents, audio);
        recipient
    }
}

/// What surrounds one request to a model.
///
/// ```
/// use agent::CancelToken;
/// use agent::message::Message;
/// use agent::model::{Model as _, ModelRequest, ScriptedModel, StepCx};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cancel = CancelToken::new();
/// cancel.cancel("no time");
/// let cx = StepCx::new().with_cancel(cancel);
/// let error = ScriptedModel::new(["Hello!"]).call(&cx, &ModelRequest::new([Message::user("Hi")])).await.unwrap_err();
/// assert!(error.is_aborted());
/// # Ok(()) }
/// ```
///
/// Who drives steps itself says which step it is, and that it tries again itself:
///
/// ```
/// use agent::model::StepCx;
/// use agent::{StepKey, StepKind};
///
/// let key = StepKey::new("run-1", 2, StepKind::Model, 0);
/// let second = StepCx::new().with_key(key.clone()).with_attempt(2).retried_by_caller();
/// assert_eq!((second.key, second.attempt), (Some(key), 2));     // the key of the first attempt, too
/// assert!(second.is_retried);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StepCx {
    /// The step's key: the idempotency key for providers that take one.
    pub key: Option<StepKey>,
    /// Which attempt this is, counted from 1. The key does not contain it.
    pub attempt: u32,
    /// Ends the reply with an error of kind [`Aborted`](ModelErrorKind::Aborted).
    pub cancel: CancelToken,
    /// Whether who asks tries again by itself: then a client does not, as attempts would multiply.
    pub is_retried: bool,
}

impl StepCx {
    /// A first attempt without a key that nobody cancels.
    pub fn new() -> Self {
        Self { key: None, attempt: 1, cancel: CancelToken::new(), is_retried: false }
    }

    /// Sets the key of the step: the same for each attempt. There is none by default.
    pub fn with_key(mut self, key: StepKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets which attempt it is, counted from 1; 1 by default.
    pub fn with_attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sets the token that ends the reply; by default, one that nobody cancels.
    pub fn with_cancel(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Says that who asks tries again by itself: a client makes one attempt.
    pub fn retried_by_caller(mut self) -> Self {
        self.is_retried = true;
        self
    }
}

impl Default for StepCx {
    fn default() -> Self {
        Self::new()
    }
}
