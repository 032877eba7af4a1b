//! A model that says what it is told to: for tests and examples.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;

use super::{Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream, StepCx};
use crate::message::{Content, Part, StopReason, ToolArguments, Usage};

/// A model that gives replies it was given in advance, as a real one would: streamed in pieces, with call ids,
/// cancellable. Clones share the script and the record of requests.
///
/// A request beyond the script is an error that says so.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{Model as _, ModelRequest, ScriptedModel, StepCx, reply};
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
    state: Arc<Mutex<State>>,
    /// Apart from the state, so that it may ask for the requests itself.
    fallback: Arc<Mutex<Option<Fallback>>>,
}

/// In which pieces a reply comes.
#[derive(Clone, Copy)]
struct Chunks {
    /// How many characters a delta has at most.
    size: usize,
    /// Whether arguments come in deltas.
    streams_arguments: bool,
}

const CHUNKS: Chunks = Chunks { size: 12, streams_arguments: true };

/// What answers once the list is used up.
type Fallback = Box<dyn FnMut(&ModelRequest) -> Reply + Send>;

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    /// How many replies there were in the beginning.
    given: usize,
    requests: Vec<ModelRequest>,
    keeps_no_record: bool,
    /// How many calls were made, for their ids.
    calls: usize,
}

impl ScriptedModel {
    /// A model that gives these replies, one for each request. Text is a reply of that text.
    ///
    /// ```
    /// use agent::model::ScriptedModel;
    ///
    /// assert_eq!(ScriptedModel::new(["Hello!", "Bye!"]).remaining(), 2);
    /// ```
    pub fn new<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Self {
        let replies: VecDeque<Reply> = replies.into_iter().map(Into::into).collect();
        Self::make(State { given: replies.len(), replies, ..State::default() }, None)
    }

    /// A model that answers each request by this function.
    ///
    /// ```
    /// use agent::model::{ScriptedModel, reply};
    ///
    /// let echo = ScriptedModel::from_fn(|request| {
    ///     reply().text(request.messages.last().map(|message| message.text()).unwrap_or_default())
    /// });
    /// # drop(echo);
    /// ```
    pub fn from_fn(answer: impl FnMut(&ModelRequest) -> Reply + Send + 'static) -> Self {
        Self::make(State::default(), Some(Box::new(answer)))
    }

    fn make(state: State, fallback: Option<Fallback>) -> Self {
        let info = ModelInfo::new("scripted", "scripted", "scripted");
        Self { info, chunks: CHUNKS, state: Arc::new(state.into()), fallback: Arc::new(fallback.into()) }
    }

    /// Sets who the model says it is; provider, api and model are `scripted` by default.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelInfo, ScriptedModel};
    ///
    /// let model = ScriptedModel::new(["Hello!"]).with_info(ModelInfo::new("acme", "acme", "large-1"));
    /// assert_eq!(model.info().model, "large-1");
    /// ```
    pub fn with_info(mut self, info: ModelInfo) -> Self {
        self.info = info;
        self
    }

    /// Sets how many characters a delta has at most; 12 by default, at least 1. `usize::MAX` gives each part in
    /// one piece.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelRequest, ScriptedModel, StepCx};
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

    /// Gives the arguments of a call only when it is whole, without deltas, as some providers do.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelEvent, ModelRequest, ScriptedModel, StepCx, reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let script = [reply().tool_call("search", r#"{"query": "how a stream begins"}"#)];
    /// let mut stream = ScriptedModel::new(script).with_whole_arguments().stream(&StepCx::new(), &ModelRequest::default());
    /// let mut deltas = 0;
    /// while let Some(event) = stream.next().await {
    ///     deltas += usize::from(matches!(event?, ModelEvent::ToolCallDelta { .. }));
    /// }
    /// assert!(deltas <= 1, "{deltas}");                    // three of 12 characters otherwise
    /// # Ok(()) }
    /// ```
    pub fn with_whole_arguments(mut self) -> Self {
        self.chunks.streams_arguments = false;
        self
    }

    /// Keeps no record of requests. A record holds on to each request's messages, which a long run would then copy.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelRequest, ScriptedModel, StepCx};
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

    /// The requests so far, oldest first; none [without a record](Self::without_record).
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state().requests.clone()
    }

    /// How many replies of the script were not asked for yet.
    pub fn remaining(&self) -> usize {
        self.state().replies.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The reply to this request. Ids of calls are counted over the whole script.
    fn take_reply(&self, request: &ModelRequest) -> Reply {
        let scripted = {
            let mut state = self.state();
            if !state.keeps_no_record {
                state.requests.push(request.clone());
            }
            state.replies.pop_front()
        };
        let mut reply = match scripted {
            Some(reply) => reply,
            None => match &mut *lock(&self.fallback) {
                Some(answer) => answer(request),
                None => Reply::from(self.used_up()),
            },
        };
        reply.settle(request);
        reply.number_calls(&mut self.state().calls);
        reply
    }

    fn used_up(&self) -> ModelError {
        let state = self.state();
        let (given, number) = (state.given, state.requests.len());
        let message = format!("the script has {given} replies, and this is request {number}");
        ModelError::new(ModelErrorKind::Other, message)
    }
}

/// Only a panic of a script's own function can poison these locks, and that leaves the data whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Model for ScriptedModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        ModelStream::new(cx, &self.info, self.take_reply(request).play(self.chunks))
            .with_argument_events(request)
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

/// One reply of a [`ScriptedModel`]. Made by [`reply`] or [`reply_with`].
///
/// ```
/// use agent::Assistant;
/// use agent::message::Usage;
/// use agent::model::{ScriptedModel, reply};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = reply().thinking("Short is better.").text("No.").usage(Usage::new(12, 3)).stop_reason("max_tokens");
/// let output = Assistant::builder(ScriptedModel::new([script])).build()?.prompt("May I?").await?;
/// assert_eq!((output.text().as_str(), output.usage.total), ("No.", 15));
/// # Ok(()) }
/// ```
#[derive(Default)]
#[must_use = "a reply does nothing until it is part of a script"]
pub struct Reply {
    parts: Vec<Part>,
    usage: Option<Usage>,
    end: End,
    /// Gives the reply itself when it is asked for.
    answer: Option<Answer>,
}

type Answer = Box<dyn FnOnce(&ModelRequest) -> Reply + Send>;

enum End {
    Stop(StopReason),
    Error(ModelError),
    Hang,
}

impl Default for End {
    fn default() -> Self {
        Self::Stop(StopReason::Stop)
    }
}

/// An empty reply, to be filled: parts come in the order they are added.
///
/// ```
/// use agent::model::reply;
///
/// let both = reply().thinking("I need the weather.").text("One moment.").tool_call("get_weather", "{}");
/// # drop(both);
/// ```
pub fn reply() -> Reply {
    Reply::default()
}

/// A reply that depends on the request.
///
/// ```
/// use agent::model::{ScriptedModel, reply, reply_with};
///
/// let model = ScriptedModel::new([
///     reply().tool_call("now", ""),
///     reply_with(|request| {
///         let result = request.messages.last().map(|message| message.text()).unwrap_or_default();
///         reply().text(format!("The tool said {result}."))
///     }),
/// ]);
/// # drop(model);
/// ```
pub fn reply_with(answer: impl FnOnce(&ModelRequest) -> Reply + Send + 'static) -> Reply {
    Reply { answer: Some(Box::new(answer)), ..Reply::default() }
}

impl Reply {
    /// Adds text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.part(Part::text(text))
    }

    /// Adds thinking.
    pub fn thinking(self, text: impl Into<String>) -> Self {
        self.part(Part::thinking(text))
    }

    /// Adds a call. Text is the arguments' raw text, broken JSON included. Ids are `call_1`, `call_2`, … over the
    /// whole script.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelRequest, ScriptedModel, StepCx, reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let script = reply()
    ///     .tool_call("get_weather", r#"{"city": "Paris"}"#)
    ///     .tool_call_with_id("toolu_7", "get_weather", r#"{"city": "Rome"}"#);
    /// let asked = ScriptedModel::new([script]).call(&StepCx::new(), &ModelRequest::default()).await?;
    /// let ids: Vec<&str> = asked.tool_calls().map(|call| call.id.as_str()).collect();
    /// assert_eq!(ids, ["call_1", "toolu_7"]);
    /// # Ok(()) }
    /// ```
    pub fn tool_call(self, name: impl Into<String>, args: impl Into<ToolArguments>) -> Self {
        self.tool_call_with_id("", name, args)
    }

    /// Adds a call with an id of one's own.
    pub fn tool_call_with_id(
        self,
        id: impl Into<String>,
        name: impl Into<String>,
        args: impl Into<ToolArguments>,
    ) -> Self {
        self.part(Part::tool_call(id, name, args))
    }

    /// Adds any part.
    ///
    /// ```
    /// use agent::message::Part;
    /// use agent::model::{Model as _, ModelRequest, ScriptedModel, StepCx, reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let script = reply().text("Here it is:").part(Part::image(vec![0x89, 0x50], "image/png"));
    /// let drawn = ScriptedModel::new([script]).call(&StepCx::new(), &ModelRequest::default()).await?;
    /// assert_eq!(drawn.content[1], Part::image(vec![0x89, 0x50], "image/png"));
    /// # Ok(()) }
    /// ```
    pub fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Says what the reply took.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Says why the reply ends. By default it is `tool_use` with calls and `stop` without.
    pub fn stop_reason(mut self, reason: impl Into<StopReason>) -> Self {
        self.end = End::Stop(reason.into());
        self
    }

    /// Breaks off with this error, after the parts.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelError, ModelErrorKind, ModelRequest, ScriptedModel, StepCx, reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ModelError> {
    /// let busy = ModelError::new(ModelErrorKind::Overloaded, "no capacity");
    /// let model = ScriptedModel::new([reply().error(busy), reply().text("Hello!")]);
    /// let (cx, request) = (StepCx::new(), ModelRequest::default());
    /// assert!(model.call(&cx, &request).await.unwrap_err().is_overloaded());
    /// assert_eq!(model.call(&cx, &request).await?.text(), "Hello!");
    /// # Ok(()) }
    /// ```
    pub fn error(mut self, error: ModelError) -> Self {
        self.end = End::Error(error);
        self
    }

    /// Never ends, after the parts: only cancelling helps.
    ///
    /// ```
    /// use agent::CancelToken;
    /// use agent::model::{Model as _, ModelRequest, ScriptedModel, StepCx, reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let cancel = CancelToken::new();
    /// let model = ScriptedModel::new([reply().text("One moment").hang()]);
    /// let mut stream = model.stream(&StepCx::new().with_cancel(cancel.clone()), &ModelRequest::default());
    /// while let Some(Ok(event)) = stream.next().await {
    ///     if event.text_delta().is_some() {
    ///         cancel.cancel("the user left");
    ///     }
    /// }
    /// assert_eq!(stream.reply().await.unwrap_err().message(), "the user left");
    /// # }
    /// ```
    pub fn hang(mut self) -> Self {
        self.end = End::Hang;
        self
    }

    /// Becomes what it depends on.
    fn settle(&mut self, request: &ModelRequest) {
        while let Some(answer) = self.answer.take() {
            *self = answer(request);
        }
    }

    /// Gives ids to calls that have none; `calls` goes on counting.
    fn number_calls(&mut self, calls: &mut usize) {
        for part in &mut self.parts {
            if let Content::ToolCall(call) = &mut part.content {
                *calls += 1;
                if call.id.is_empty() {
                    call.id = format!("call_{calls}");
                }
            }
        }
    }

    /// The reply to a request as a stream, for models of tests.
    #[cfg(feature = "testing")]
    pub(crate) fn into_events(
        mut self,
        request: &ModelRequest,
        calls: &mut usize,
    ) -> impl Stream<Item = Result<ModelEvent, ModelError>> + Send + use<> {
        self.settle(request);
        self.number_calls(calls);
        self.play(CHUNKS)
    }

    fn play(self, chunks: Chunks) -> Play {
        let mut events = VecDeque::new();
        for (content_index, part) in self.parts.into_iter().enumerate() {
            play_part(content_index, part, chunks, &mut events);
        }
        if let Some(usage) = self.usage {
            events.push_back(Ok(ModelEvent::Usage { usage }));
        }
        match self.end {
            End::Stop(reason) => events.push_back(Ok(ModelEvent::Stop { reason, detail: None, raw: None })),
            End::Error(error) => events.push_back(Err(error)),
            End::Hang => return Play { events, hangs: true },
        }
        Play { events, hangs: false }
    }
}

fn play_part(
    content_index: usize,
    part: Part,
    chunks: Chunks,
    events: &mut VecDeque<Result<ModelEvent, ModelError>>,
) {
    let deltas = |text: &str, event: fn(usize, String) -> ModelEvent| {
        let chars: Vec<char> = text.chars().collect();
        let chunks = chars.chunks(chunks.size).map(|chunk| Ok(event(content_index, chunk.iter().collect())));
        chunks.collect::<Vec<_>>()
    };
    match &part.content {
        Content::Text(text) => {
            events.push_back(Ok(ModelEvent::TextStart { content_index }));
            events
                .extend(deltas(text, |content_index, delta| ModelEvent::TextDelta { content_index, delta }));
        }
        Content::Thinking { text, redacted: false } => {
            events.push_back(Ok(ModelEvent::ThinkingStart { content_index }));
            events.extend(deltas(text, |content_index, delta| ModelEvent::ThinkingDelta {
                content_index,
                delta,
            }));
        }
        Content::ToolCall(call) => {
            let (id, name) = (call.id.clone(), call.name.clone());
            events.push_back(Ok(ModelEvent::ToolCallStart { content_index, id, name }));
            let args = if chunks.streams_arguments { call.args.text() } else { "" };
            events.extend(deltas(args, |content_index, delta| ModelEvent::ToolCallDelta {
                content_index,
                delta,
            }));
        }
        _ => {}
    }
    // The final word: with provider data and whatever else the part has.
    events.push_back(Ok(ModelEvent::Part { content_index, part }));
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        reply().text(text)
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        reply().text(text)
    }
}

impl From<ModelError> for Reply {
    fn from(error: ModelError) -> Self {
        reply().error(error)
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("parts", &self.parts)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

/// A reply as a stream.
struct Play {
    events: VecDeque<Result<ModelEvent, ModelError>>,
    hangs: bool,
}

impl Stream for Play {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.events.pop_front() {
            // A waker is not kept: who cancels wakes the stream itself.
            None if self.hangs => Poll::Pending,
            next => Poll::Ready(next),
        }
    }
}
