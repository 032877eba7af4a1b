//! A model that calls a closure.

use crate::BoxFuture;
use crate::model::{Model, ModelError, ModelEvent, ModelInfo, ModelRequest, ModelStream, Reply, StepCx};
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

/// A model that replies with an asynchronous closure and records its requests. Clones share the requests.
///
/// Its replies are streamed in pieces and have call ids, like those of [`ScriptedModel`](crate::ScriptedModel). Use `ScriptedModel` if the
/// replies are known in advance; here each reply can depend on the request, a file or another model.
///
/// ```
/// use agent::model::{ModelRequest, reply};
/// use agent::testing::FunctionModel;
/// use agent::{Assistant, tool, tools};
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
/// // Calls the first tool it is shown, then says what came back.
/// let model = FunctionModel::new(|request: ModelRequest| async move {
///     match request.messages.last() {
///         Some(message) if message.role() == "tool_result" => reply().text(format!("It is {}.", message.text())),
///         _ => reply().tool_call(request.tools[0].name(), r#"{"n": 21}"#),
///     }
/// });
/// let assistant = Assistant::builder(model.clone()).tools(tools![double]).build()?;
/// assert_eq!(assistant.prompt("Double 21.").await?.text(), "It is 42.");
/// assert_eq!(model.requests().len(), 2);
/// assert_eq!(model.requests()[0].messages[0].text(), "Double 21.");
/// # Ok(()) }
/// # #[cfg(not(feature = "runtime"))]
/// # fn main() {}
/// ```
#[derive(Clone)]
pub struct FunctionModel {
    info: ModelInfo,
    reply: Arc<ReplyFn>,
    state: Arc<Mutex<FunctionState>>,
}

type ReplyFn = dyn Fn(ModelRequest) -> BoxFuture<'static, Reply> + Send + Sync;

#[derive(Default)]
struct FunctionState {
    requests: Vec<ModelRequest>,
    /// The number of calls so far, for their ids.
    calls: usize,
}

impl FunctionModel {
    /// Creates a model that calls this closure for each request. The closure returns a [`reply`](crate::model::reply), text, or a
    /// [`ModelError`].
    pub fn new<F, Fut>(reply: F) -> Self
    where
        F: Fn(ModelRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Into<Reply>> + Send + 'static,
    {
        let reply = move |request| -> BoxFuture<'static, Reply> {
            let pending = reply(request);
            Box::pin(async move { pending.await.into() })
        };
        let info = ModelInfo::new("function", "function", "function");
        Self { info, reply: Arc::new(reply), state: Arc::default() }
    }

    /// Sets the model's information. Provider, API and model are `function` by default.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelInfo, ModelRequest};
    /// use agent::testing::FunctionModel;
    ///
    /// let model = FunctionModel::new(|_: ModelRequest| async { "Hello!" }).with_info(ModelInfo::new("acme", "acme", "large-1"));
    /// assert_eq!(model.info().model, "large-1");
    /// ```
    pub fn with_info(mut self, info: ModelInfo) -> Self {
        self.info = info;
        self
    }

    /// Returns the requests so far, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.state).requests.clone()
    }
}

/// Locks the state. A poisoned lock is used, because no code that can panic runs while it is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Model for FunctionModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        lock(&self.state).requests.push(request.clone());
        let reply = (self.reply)(request.clone());
        let events =
            PendingReply::Waiting { reply, request: Box::new(request.clone()), state: self.state.clone() };
        ModelStream::new(cx, &self.info, events).with_argument_events(request)
    }

    fn info(&self) -> &ModelInfo {
        &self.info
    }
}

impl fmt::Debug for FunctionModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = lock(&self.state).requests.len();
        f.debug_struct("FunctionModel")
            .field("info", &self.info)
            .field("requests", &requests)
            .finish_non_exhaustive()
    }
}

/// The stream of a reply that is not available yet.
enum PendingReply {
    Waiting { reply: BoxFuture<'static, Reply>, request: Box<ModelRequest>, state: Arc<Mutex<FunctionState>> },
    Playing(Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>),
}

impl Stream for PendingReply {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match &mut *self {
                Self::Playing(events) => return events.as_mut().poll_next(cx),
                Self::Waiting { reply, request, state } => {
                    let reply = ready!(reply.as_mut().poll(cx));
                    let events = reply.into_events(request, &mut lock(state).calls);
                    *self = Self::Playing(Box::pin(events));
                }
            }
        }
    }
}
