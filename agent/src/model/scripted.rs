//! A model with prepared replies, for tests and examples.

mod reply;
mod stream;

pub use reply::{ScriptedReply, reply, reply_with};

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream, StepCx};
use crate::tool::BoxFuture;
use reply::{CHUNKS, Chunks};
use stream::ScriptStream;

/// A model that plays prepared replies. Like the replies of a real model, they are streamed in pieces, have call ids and can be cancelled.
/// Clones share the script and the record of requests.
///
/// Each request after the end of the script fails with an error that explains this. A model with a function ([`from_fn`](Self::from_fn))
/// answers every request.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{Model as _, ModelRequest, StepCx, reply};
/// use agent::ScriptedModel;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
/// let model = ScriptedModel::new([
///     reply().tool_call("get_weather", r#"{"city": 42}"#),
///     reply().text("It is warm."),
/// ]);
/// let request = ModelRequest::new([Message::user("How is the weather?")]);
/// let asked = model.call(&StepCx::new(), &request).await?;
/// assert_eq!(asked.tool_calls().next().unwrap().id, "call_1");
/// assert_eq!(model.remaining(), 1);                    // of the script
/// assert_eq!(model.requests()[0].messages[0].text(), "How is the weather?");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ScriptedModel {
    info: ModelInfo,
    chunks: Chunks,
    state: Arc<Mutex<ScriptState>>,
    /// The function that replies after the end of the script. It has a separate lock, so that the function may read
    /// [`requests`](ScriptedModel::requests).
    fallback: Arc<Mutex<Option<FallbackReplies>>>,
}

enum FallbackReplies {
    Ready(Box<dyn FnMut(&ModelRequest) -> ScriptedReply + Send>),
    Future(Box<dyn FnMut(ModelRequest) -> BoxFuture<'static, ScriptedReply> + Send>),
}

#[derive(Default)]
struct ScriptState {
    replies: VecDeque<ScriptedReply>,
    given: usize,
    /// The number of requests so far, including requests that are not recorded.
    asked: usize,
    requests: Vec<ModelRequest>,
    keeps_no_record: bool,
    calls: usize,
}

impl ScriptedModel {
    /// Creates a model that returns these replies, one for each request. A text is a reply with that text.
    ///
    /// ```
    /// use agent::ScriptedModel;
    ///
    /// assert_eq!(ScriptedModel::new(["Hello!", "Bye!"]).remaining(), 2);
    /// ```
    pub fn new<R: Into<ScriptedReply>>(replies: impl IntoIterator<Item = R>) -> Self {
        let replies: VecDeque<ScriptedReply> = replies.into_iter().map(Into::into).collect();
        Self::make(ScriptState { given: replies.len(), replies, ..ScriptState::default() }, None)
    }

    /// Creates a model that answers each request with this function.
    ///
    /// ```
    /// use agent::message::Message;
    /// use agent::model::{Model as _, ModelRequest, StepCx, reply};
    /// use agent::ScriptedModel;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let echo = ScriptedModel::from_fn(|request| {
    ///     reply().text(request.messages.last().map(|message| message.text()).unwrap_or_default())
    /// });
    /// let request = ModelRequest::new([Message::user("Hello!")]);
    /// assert_eq!(echo.call(&StepCx::new(), &request).await?.text(), "Hello!");
    /// # Ok(()) }
    /// ```
    pub fn from_fn(answer: impl FnMut(&ModelRequest) -> ScriptedReply + Send + 'static) -> Self {
        Self::make(ScriptState::default(), Some(FallbackReplies::Ready(Box::new(answer))))
    }

    /// Creates a model that answers each request with this asynchronous function. The function returns a [`reply`], a text, or a
    /// [`ModelError`].
    ///
    /// Use this constructor if a reply depends on a file, on another model or on time.
    ///
    /// ```
    /// use agent::model::{ModelRequest, reply};
    /// use agent::{Assistant, ScriptedModel, tool, tools};
    ///
    /// /// Doubles a number.
    /// #[tool]
    /// fn double(n: i64) -> i64 {
    ///     n * 2
    /// }
    ///
    /// # #[cfg(feature = "runtime")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // The model calls the first tool of the request, and then tells the result.
    /// let model = ScriptedModel::from_async_fn(|request: ModelRequest| async move {
    ///     match request.messages.last() {
    ///         Some(message) if message.role() == "tool_result" => reply().text(format!("It is {}.", message.text())),
    ///         _ => reply().tool_call(request.tools[0].name(), r#"{"n": 21}"#),
    ///     }
    /// });
    /// let assistant = Assistant::builder(model.clone()).tools(tools![double]).build()?;
    /// assert_eq!(assistant.prompt("Double 21.").await?.text(), "It is 42.");
    /// assert_eq!(model.requests().len(), 2);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "runtime"))]
    /// # fn main() {}
    /// ```
    pub fn from_async_fn<F, Fut>(mut answer: F) -> Self
    where
        F: FnMut(ModelRequest) -> Fut + Send + 'static,
        Fut: Future<Output: Into<ScriptedReply>> + Send + 'static,
    {
        let answer = move |request| -> BoxFuture<'static, ScriptedReply> {
            let pending = answer(request);
            Box::pin(async move { pending.await.into() })
        };
        Self::make(ScriptState::default(), Some(FallbackReplies::Future(Box::new(answer))))
    }

    fn make(state: ScriptState, fallback: Option<FallbackReplies>) -> Self {
        let info = ModelInfo::new("scripted", "scripted", "scripted");
        Self { info, chunks: CHUNKS, state: Arc::new(state.into()), fallback: Arc::new(fallback.into()) }
    }

    /// Sets the identity of the model. By default provider, api and model are `scripted`.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelInfo};
    /// use agent::ScriptedModel;
    ///
    /// let model = ScriptedModel::new(["Hello!"]).with_info(ModelInfo::new("acme", "acme", "large-1"));
    /// assert_eq!(model.info().model, "large-1");
    /// ```
    pub fn with_info(mut self, info: ModelInfo) -> Self {
        self.info = info;
        self
    }

    /// Sets the maximum length of a delta in characters, at least 1. Default: 12. `usize::MAX` emits each part in one piece.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::ScriptedModel;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let model = ScriptedModel::new(["Good morning."]).with_chunk_size(5);
    /// let mut stream = model.stream(&StepCx::new(), &ModelRequest::default());
    /// let mut pieces = Vec::new();
    /// while let Some(event) = stream.next().await {
    ///     pieces.extend(event?.text_delta().map(str::to_owned));
    /// }
    /// assert_eq!(pieces, ["Good ", "morni", "ng."]);
    /// # Ok(()) }
    /// ```
    pub fn with_chunk_size(mut self, characters: usize) -> Self {
        self.chunks.size = characters.max(1);
        self
    }

    /// Emits the arguments of a call at once when they are complete, as some providers do.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelEvent, ModelRequest, StepCx, reply};
    /// use agent::ScriptedModel;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let script = [reply().tool_call("search", r#"{"query": "how a stream begins"}"#)];
    /// let mut stream = ScriptedModel::new(script).with_whole_arguments().stream(&StepCx::new(), &ModelRequest::default());
    /// let mut deltas = 0;
    /// while let Some(event) = stream.next().await {
    ///     deltas += usize::from(matches!(event?, ModelEvent::ToolCallDelta { .. }));
    /// }
    /// assert!(deltas <= 1, "{deltas}");                    // otherwise three of at most 12 characters
    /// # Ok(()) }
    /// ```
    pub fn with_whole_arguments(mut self) -> Self {
        self.chunks.streams_arguments = false;
        self
    }

    /// Keeps no record of requests. A recorded request shares its list of messages with the conversation, so the conversation copies the
    /// list before it adds a message.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::ScriptedModel;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let model = ScriptedModel::new(["Hello!"]).without_record();
    /// model.call(&StepCx::new(), &ModelRequest::default()).await?;
    /// assert!(model.requests().is_empty());
    /// # Ok(()) }
    /// ```
    pub fn without_record(self) -> Self {
        self.state().keeps_no_record = true;
        self
    }

    /// Returns the requests so far, oldest first. The list is empty [without a record](Self::without_record).
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state().requests.clone()
    }

    /// Returns the number of replies that remain in the script.
    pub fn remaining(&self) -> usize {
        self.state().replies.len()
    }

    fn state(&self) -> MutexGuard<'_, ScriptState> {
        lock(&self.state)
    }

    fn take_reply(&self, request: &ModelRequest) -> ScriptStream {
        let scripted = {
            let mut state = self.state();
            state.asked += 1;
            if !state.keeps_no_record {
                state.requests.push(request.clone());
            }
            state.replies.pop_front()
        };
        let reply = match scripted {
            Some(reply) => reply,
            None => match &mut *lock(&self.fallback) {
                Some(FallbackReplies::Ready(answer)) => answer(request),
                Some(FallbackReplies::Future(answer)) => {
                    return ScriptStream::waiting(answer(request.clone()), request, self);
                }
                None => ScriptedReply::from(self.used_up()),
            },
        };
        ScriptStream::playing(reply, request, self)
    }

    fn used_up(&self) -> ModelError {
        let state = self.state();
        let number = state.asked;
        let message = match state.given {
            1 => format!("the script has 1 reply, and this is request {number}"),
            given => format!("the script has {given} replies, and this is request {number}"),
        };
        ModelError::new(ModelErrorKind::Other, message)
    }
}

/// Locks a mutex. Only a panic in a function of the script can poison the mutex, and this panic leaves the data intact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Model for ScriptedModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        ModelStream::new(cx, &self.info, self.take_reply(request)).with_argument_events(request)
    }

    fn info(&self) -> &ModelInfo {
        &self.info
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("ScriptedModel")
            .field("info", &self.info)
            .field("remaining", &state.replies.len())
            .field("requests", &state.requests.len())
            .finish_non_exhaustive()
    }
}
