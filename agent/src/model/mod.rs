//! A common interface to language models.
//!
//! A [`Model`] turns a [`ModelRequest`] into a [`ModelStream`]. The stream returns events while the reply grows, and ends with the complete
//! [`AssistantMessage`] or one [`ModelError`]. [`ScriptedModel`](crate::ScriptedModel) plays prepared replies in tests and examples.
//! ```
//! use agent::message::Message;
//! use agent::ScriptedModel;
//! use agent::model::{Model, ModelRequest, StepCx};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
//! let model = ScriptedModel::new(["Hello!"]);          // or `agent::model("anthropic/claude-sonnet-5")?`
//! let request = ModelRequest::new([Message::user("Hi")]).with_system("Be brief.").with_max_tokens(100);
//! assert_eq!(model.call(&StepCx::new(), &request).await?.text(), "Hello!");
//! # Ok(()) }
//! ```

mod accumulator;
mod arguments;
mod attempts;
mod context_rules;
mod error;
mod event;
mod fallback;
mod limits;
mod managed;
mod notices;
mod request;
pub(crate) mod scripted;
mod stream;
mod thinking;
mod tokens;
pub(crate) mod wrapped;

pub use arguments::ArgumentChange;
pub(crate) use attempts::{AttemptTrace, AttemptTracer};
pub use context_rules::ContextRules;
#[cfg(feature = "runtime")]
pub(crate) use context_rules::SummaryAuthor;
#[cfg(feature = "runtime")]
pub(crate) use context_rules::{ViewDecision, reply_reserve};
pub use error::{ModelError, ModelErrorKind};
pub use event::ModelEvent;
pub use fallback::{Fallback, ModelAttempt};
pub(crate) use limits::QuotaListener;
pub use limits::RateLimits;
#[cfg(feature = "http")]
pub(crate) use limits::{ProviderQuota, QuotaLeft};
pub use managed::{ManagedResult, ManagedTool};
pub(crate) use notices::{RequestNotice, RequestNotices};
pub use request::{ModelRequest, OutputSchema, ToolChoice};
pub use scripted::{ScriptedReply, reply, reply_with};
pub use stream::ModelStream;
pub use thinking::Thinking;
#[cfg(feature = "runtime")]
pub(crate) use tokens::CountWith;
pub(crate) use tokens::TokenEstimator;
pub use tokens::{ContextPart, ContextReport, ContextSource};
#[cfg(feature = "runtime")]
pub(crate) use tokens::{SizeCounter, TokenCounter, TokenEstimate};

use std::sync::{Arc, LazyLock};

use crate::message::{AssistantMessage, Conversation, HandOff, MessageList, Recipient};
use crate::schema::Dialect;
use crate::step_key::StepKey;
use crate::tool::BoxFuture;
use crate::tool::cancel::CancelToken;

#[cfg(test)]
mod tests;

/// A language model.
///
/// [`stream`](Self::stream) is the only required method. A model that does not stream returns [`ModelStream::from_reply`]:
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
/// The stream must not borrow from `cx` or `request`, so `stream` clones the data that the reply needs. The stream must not block the
/// thread. [`ModelStream`] handles cancellation by dropping the stream that it wraps.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    label = "not a model",
    note = "a provider's model is made of its name: write `agent::model(\"openai/gpt-5\")?`, with the provider's feature of `agent` switched on",
    note = "a `ScriptedModel` plays a model in tests; a type of your own implements `agent::model::Model`"
)]
pub trait Model: Send + Sync {
    /// Starts one reply.
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream;

    /// Returns the identity of the model, which is empty by default. A model that attaches provider data to its replies needs an identity,
    /// because [`hand_off`](ModelInfo::hand_off) compares identities to decide which provider data is sent back.
    fn info(&self) -> &ModelInfo {
        static NOBODY: LazyLock<ModelInfo> = LazyLock::new(ModelInfo::default);
        &NOBODY
    }

    /// Returns the models that may answer: this model, unless it chooses among several, as [`Fallback`] does.
    ///
    /// ```
    /// use agent::ScriptedModel;
    /// use agent::model::{Fallback, Model as _};
    ///
    /// let model = ScriptedModel::new(["Hello!"]);
    /// assert_eq!(model.candidates(), [model.info().clone()]);
    /// assert_eq!(Fallback::new([model.clone(), model]).candidates().len(), 2);
    /// ```
    fn candidates(&self) -> Vec<ModelInfo> {
        vec![self.info().clone()]
    }

    /// Returns the size of the context window in tokens, or `None` if the size is unknown, which is the default. A model that passes
    /// requests on to another model also forwards this method, [`max_output`](Self::max_output) and [`count_tokens`](Self::count_tokens).
    ///
    /// ```
    /// # #[cfg(feature = "anthropic")] {
    /// use agent::model::Model as _;
    /// use agent::provider::http::HttpModel;
    ///
    /// let model = HttpModel::builder("anthropic/claude-sonnet-4-5").key("sk-123").build().unwrap();
    /// assert_eq!((model.context_window(), model.max_output()), (Some(200_000), Some(64_000)));
    /// # }
    /// ```
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Returns the maximum length of a reply in tokens, or `None` if the length is unknown, which is the default.
    /// [`context_window`](Self::context_window) has an example.
    fn max_output(&self) -> Option<u64> {
        None
    }

    /// Asks the provider how many input tokens a request has, without requesting a reply. Returns `None` if the provider has no endpoint
    /// for token counts, which is the default.
    ///
    /// ```
    /// use agent::ScriptedModel;
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let model = ScriptedModel::new(["Hello!"]);
    /// assert_eq!(model.count_tokens(&StepCx::new(), &ModelRequest::default()).await?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The future fails if the request to the provider fails or is cancelled.
    fn count_tokens(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
    ) -> BoxFuture<'static, Result<Option<u64>, ModelError>> {
        let _ = (cx, request);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns the HTTP body that the provider would get for a request, for programs that show it. The body contains no address, headers
    /// or keys. Returns `None` if the request cannot be written as a body, or if the model sends no such body, which is the default.
    ///
    /// ```
    /// # #[cfg(feature = "openai")] {
    /// use agent::Value;
    /// use agent::message::Message;
    /// use agent::model::{Model as _, ModelRequest};
    /// use agent::provider::http::HttpModel;
    ///
    /// let model = HttpModel::builder("openai/gpt-5").key("sk-123").build().unwrap();
    /// let body = model.request_body(&ModelRequest::new([Message::user("Hi")])).unwrap();
    /// assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["model"], "gpt-5");
    /// assert!(!body.contains("sk-123"));
    /// # }
    /// ```
    fn request_body(&self, request: &ModelRequest) -> Option<String> {
        let _ = request;
        None
    }

    /// Limits the requests to this model, as [`RateLimits`] describes. Clones of the returned model share the limits, also in the forks of
    /// an assistant.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    /// use agent::model::{Model as _, RateLimits};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["Hello!", "Hello!"]).limited(RateLimits::new().concurrency(1));
    /// assert_eq!(model.info().provider, "scripted");
    /// let assistant = Assistant::builder(model).build()?;
    /// let fork = assistant.fork();
    /// let (one, other) = tokio::join!(assistant.prompt("Hi"), fork.prompt("Hi"));     // one after the other
    /// assert_eq!(one?.text() + &other?.text(), "Hello!Hello!");
    /// # Ok(()) }
    /// ```
    fn limited(self, limits: RateLimits) -> impl Model + Clone + 'static
    where
        Self: Sized + Clone + 'static,
    {
        limits::LimitedModel::new(self, limits)
    }

    /// Reads [`stream`](Self::stream) to its end, and returns the complete reply.
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

    fn candidates(&self) -> Vec<ModelInfo> {
        (**self).candidates()
    }

    fn context_window(&self) -> Option<u64> {
        (**self).context_window()
    }

    fn max_output(&self) -> Option<u64> {
        (**self).max_output()
    }

    fn request_body(&self, request: &ModelRequest) -> Option<String> {
        (**self).request_body(request)
    }

    fn count_tokens(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
    ) -> BoxFuture<'static, Result<Option<u64>, ModelError>> {
        (**self).count_tokens(cx, request)
    }

    fn call(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
    ) -> BoxFuture<'static, Result<AssistantMessage, ModelError>> {
        (**self).call(cx, request)
    }
}

/// The identity of a model.
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
///
/// // The host and port of the provider, for traces.
/// let info = ModelInfo::new("acme", "acme-chat", "large-1").with_server("api.acme.example", 443);
/// assert_eq!((info.server_address.as_deref(), info.server_port), (Some("api.acme.example"), Some(443)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The provider, for example `anthropic`.
    pub provider: String,
    /// The protocol, for example `anthropic-messages`.
    pub api: String,
    /// The name of the model at the provider.
    pub model: String,
    /// The capabilities of the model.
    pub capabilities: Capabilities,
    /// The host that requests are sent to, for traces. It is a name or an IP address, without scheme, user, port and path.
    pub server_address: Option<String>,
    /// The port of the host.
    pub server_port: Option<u16>,
    /// Whether the model is a [`Fallback`]. If so, each of its attempts has its own trace.
    pub(crate) is_fallback: bool,
}

/// The capabilities of a model. The default values are guesses for an unknown model: `true` if a wrong guess causes a clear error, as for
/// images, and `false` if a wrong guess would go unnoticed, as for schemas of replies.
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
    /// Whether the model accepts images. If not, a text replaces each image. Documents and audio are treated in the same way.
    pub images: bool,
    /// Whether the model accepts documents, such as PDF.
    pub documents: bool,
    /// Whether the model accepts audio.
    pub audio: bool,
    /// Whether the model follows a [schema for its reply](ModelRequest::output). If not, a typed answer is requested with a tool.
    pub native_output: bool,
    /// The dialect that a schema for a reply must fit, or `None` if the provider accepts every schema. If the schema of an answer does not
    /// fit, the answer is requested with a tool.
    pub output_dialect: Option<Dialect>,
    /// Whether the provider can search the web for the model, also in a request with tools of the application. The next three fields
    /// include such requests, too.
    pub web_search: bool,
    /// Whether the provider can read web pages for the model.
    pub web_fetch: bool,
    /// Whether the provider can run code for the model.
    pub code_execution: bool,
    /// Whether the model, or the provider for the model, can draw images.
    pub image_generation: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            images: true,
            documents: true,
            audio: true,
            native_output: false,
            output_dialect: None,
            web_search: false,
            web_fetch: false,
            code_execution: false,
            image_generation: false,
        }
    }
}

impl ModelInfo {
    /// Creates an identity from the names of provider, protocol and model.
    pub fn new(provider: impl Into<String>, api: impl Into<String>, model: impl Into<String>) -> Self {
        let (provider, api, model) = (provider.into(), api.into(), model.into());
        Self {
            provider,
            api,
            model,
            capabilities: Capabilities::default(),
            server_address: None,
            server_port: None,
            is_fallback: false,
        }
    }

    /// Sets the host and port that requests are sent to. An `HttpModel` has the host and port of its base URL.
    pub fn with_server(mut self, address: impl Into<String>, port: u16) -> Self {
        self.server_address = Some(address.into());
        self.server_port = Some(port);
        self
    }

    /// Sets the capabilities of the model.
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Returns whether the provider can run this tool for the model, by the [`capabilities`](Self::capabilities) of the model. A
    /// [`ManagedTool::Other`] runs only at the provider that it names.
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
            ManagedTool::WebSearch { .. } => self.capabilities.web_search,
            ManagedTool::WebFetch { .. } => self.capabilities.web_fetch,
            ManagedTool::CodeExecution => self.capabilities.code_execution,
            ManagedTool::ImageGeneration => self.capabilities.image_generation,
            ManagedTool::Other { provider, .. } => *provider == self.provider,
            ManagedTool::Unrendered(tool) => self.runs(tool),
        }
    }

    /// Returns the messages of a conversation in the form in which they are sent to this model. An assistant calls this method itself.
    /// Code that creates a [`ModelRequest`] without an assistant must call it first.
    ///
    /// * Replies that failed or were aborted, messages without content for a model, messages with unknown roles, and parts of
    ///   unknown kinds in replies are left out.
    /// * Thinking, and the provider data of parts, go back only to the provider, protocol and model that created them. A reply without
    ///   other content is left out.
    /// * `Content::Opaque` parts, and the provider data of calls and messages, go back to any model of the same provider and protocol. For
    ///   other models, a text describes the calls that the provider ran.
    /// * Messages before the newest summary that the provider wrote for this model are left out, except pinned messages, which follow the
    ///   summary.
    /// * Call ids are mapped to `[A-Za-z0-9_-]{1,64}`, the same for a call and its result, and unique in the request.
    /// * Images, documents and audio that the model does not accept are replaced by a description. Arguments that are not JSON become `{}`.
    ///
    /// A message that needs no change is shared, not copied. The conversation must be [sound](Conversation::is_sound).
    ///
    /// ```
    /// use agent::message::{AssistantMessage, Conversation, Message, Part, UserMessage};
    /// use agent::model::ModelInfo;
    ///
    /// let mut reply = AssistantMessage::new([Part::thinking("A cat."), Part::text("A cat!")]);
    /// reply.provider = "anthropic".into();
    /// let question = UserMessage::new([Part::image_url("https://example.com/cat.png")]);
    /// let conversation = Conversation::from_iter([question.into(), Message::from(reply)]);
    ///
    /// let mut info = ModelInfo::new("deepseek", "openai-chat", "deepseek-chat");
    /// info.capabilities.images = false;
    /// let sent = info.hand_off(&conversation);
    /// assert!(sent[0].content()[0].as_text().is_some());                  // words stand for the picture
    /// assert_eq!(sent[1].content(), [Part::text("A cat!")]);
    /// assert_eq!(conversation.get(1).unwrap().content().len(), 2, "the conversation keeps what was received");
    /// ```
    pub fn hand_off(&self, conversation: &Conversation) -> MessageList {
        HandOff::of(conversation, self.recipient()).messages().clone()
    }

    pub(crate) fn recipient(&self) -> Recipient {
        let mut recipient = Recipient::new(&*self.provider, &*self.api, &*self.model);
        let Capabilities { images, documents, audio, .. } = self.capabilities;
        (recipient.takes_images, recipient.takes_documents, recipient.takes_audio) =
            (images, documents, audio);
        recipient
    }
}

/// The context of one request to a model.
///
/// ```
/// use agent::CancelToken;
/// use agent::message::Message;
/// use agent::ScriptedModel;
/// use agent::model::{Model as _, ModelRequest, StepCx};
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
/// Code that calls models without an assistant sets the key and the attempt of the step, and declares that it retries by itself:
///
/// ```
/// use agent::model::StepCx;
/// use agent::steps::{StepKey, StepKind};
///
/// let key = StepKey::new("run-1", 2, StepKind::Model, 0);
/// let second = StepCx::new().with_key(key.clone()).with_attempt(2).retried_by_caller();
/// assert_eq!((second.key, second.attempt), (Some(key), 2));     // all attempts have the same key
/// assert!(second.is_retried);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StepCx {
    /// The key of the step, if any. Models over HTTP send it to the provider as the header `idempotency-key`.
    pub key: Option<StepKey>,
    /// The number of the attempt, counted from 1. All attempts have the same key.
    pub attempt: u32,
    /// The token that cancels the reply. A cancelled reply ends with an error of kind [`Aborted`](ModelErrorKind::Aborted).
    pub cancel: CancelToken,
    /// Whether the caller retries failed requests. If so, the client makes only one attempt, because the numbers of attempts would
    /// multiply.
    pub is_retried: bool,
    #[cfg(feature = "http")]
    pub(crate) traffic: Option<crate::traffic::OnTraffic>,
    pub(crate) notices: RequestNotices,
    /// The listener that adjusts the limits of a [limited](Model::limited) model to the limits that the provider reports.
    pub(crate) quota: Option<QuotaListener>,
    pub(crate) tracer: Option<AttemptTracer>,
}

impl StepCx {
    /// Creates the context of a first attempt, without a key, whose token is never cancelled.
    pub fn new() -> Self {
        Self::of(CancelToken::new())
    }

    pub(crate) fn of(cancel: CancelToken) -> Self {
        Self {
            key: None,
            attempt: 1,
            cancel,
            is_retried: false,
            notices: RequestNotices::default(),
            quota: None,
            tracer: None,
            #[cfg(feature = "http")]
            traffic: None,
        }
    }

    /// Sets the key of the step, which is the same for each attempt. Default: none.
    pub fn with_key(mut self, key: StepKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the number of the attempt, counted from 1. Default: 1.
    pub fn with_attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sets the token that cancels the reply. By default, the reply is not cancelled.
    pub fn with_cancel(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Declares that the caller retries failed requests, so that a client makes only one attempt.
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
