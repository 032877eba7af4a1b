//! One reply of a script, and its events.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::message::{Content, Part, StopReason, ToolArguments, Usage};
use crate::model::{ModelError, ModelEvent, ModelRequest};

#[derive(Clone, Copy)]
pub(super) struct Chunks {
    /// Maximum length of a delta in characters.
    pub(super) size: usize,
    pub(super) streams_arguments: bool,
}

pub(super) const CHUNKS: Chunks = Chunks { size: 12, streams_arguments: true };

/// One reply of a [`ScriptedModel`](super::ScriptedModel). Created by [`reply`] or [`reply_with`].
///
/// ```
/// use agent::Assistant;
/// use agent::message::Usage;
/// use agent::model::reply;
/// use agent::ScriptedModel;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = reply().thinking("Short is better.").text("No.").usage(Usage::new(12, 3)).stop_reason("max_tokens");
/// let output = Assistant::builder(ScriptedModel::new([script])).build()?.prompt("May I?").await?;
/// assert_eq!((output.text().as_str(), output.usage.total), ("No.", 15));
/// # Ok(()) }
/// ```
#[derive(Default)]
#[must_use = "a reply does nothing until it is part of a script"]
pub struct ScriptedReply {
    parts: Vec<Part>,
    usage: Option<Usage>,
    end: ReplyEnd,
    answer: Option<ReplyFunction>,
}

type ReplyFunction = Box<dyn FnOnce(&ModelRequest) -> ScriptedReply + Send>;

enum ReplyEnd {
    Stop(StopReason),
    Error(ModelError),
    Hang,
}

impl Default for ReplyEnd {
    fn default() -> Self {
        Self::Stop(StopReason::Stop)
    }
}

/// Creates an empty reply. Parts are emitted in the order in which they are added.
///
/// ```
/// use agent::model::{Model as _, ModelRequest, StepCx, reply};
/// use agent::ScriptedModel;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
/// let script = reply().thinking("I need the weather.").text("One moment.").tool_call("get_weather", "{}");
/// let said = ScriptedModel::new([script]).call(&StepCx::new(), &ModelRequest::default()).await?;
/// assert_eq!((said.content.len(), said.text().as_str()), (3, "One moment."));
/// # Ok(()) }
/// ```
pub fn reply() -> ScriptedReply {
    ScriptedReply::default()
}

/// Creates a reply that depends on the request.
///
/// ```
/// use agent::model::{reply, reply_with};
/// use agent::{Assistant, ScriptedModel, tool, tools};
///
/// /// Says what time it is.
/// #[tool]
/// fn clock() -> String {
///     "noon".to_owned()
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([
///     reply().tool_call("clock", "{}"),
///     reply_with(|request| {
///         let result = request.messages.last().map(|message| message.text()).unwrap_or_default();
///         reply().text(format!("It is {result}."))
///     }),
/// ]);
/// let assistant = Assistant::builder(model).tools(tools![clock]).build()?;
/// assert_eq!(assistant.prompt("What time is it?").await?.text(), "It is noon.");
/// # Ok(()) }
/// ```
pub fn reply_with(answer: impl FnOnce(&ModelRequest) -> ScriptedReply + Send + 'static) -> ScriptedReply {
    ScriptedReply { answer: Some(Box::new(answer)), ..ScriptedReply::default() }
}

impl ScriptedReply {
    /// Adds text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.part(Part::text(text))
    }

    /// Adds thinking.
    pub fn thinking(self, text: impl Into<String>) -> Self {
        self.part(Part::thinking(text))
    }

    /// Adds a call. A string is the raw text of the arguments, including broken JSON. The call gets the id `call_1`, `call_2`, …, by its
    /// number among all calls of the script.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelRequest, StepCx, reply};
    /// use agent::ScriptedModel;
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

    /// Adds a call with this id.
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
    /// use agent::model::{Model as _, ModelRequest, StepCx, reply};
    /// use agent::ScriptedModel;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let script = reply().text("Here it is:").part(Part::image(vec![0x89, 0x50], "image/png"));
    /// let drawn = ScriptedModel::new([script]).call(&StepCx::new(), &ModelRequest::default()).await?;
    /// assert_eq!(drawn.content[1], Part::image(vec![0x89, 0x50], "image/png"));
    /// # Ok(()) }
    /// ```
    pub fn part(mut self, part: Part) -> Self {
        // Room is reserved for exactly one part, because most replies have one part and parts are large.
        if self.parts.is_empty() {
            self.parts.reserve_exact(1);
        }
        self.parts.push(part);
        self
    }

    /// Sets the token usage of the reply.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets the reason why the reply ends. Default: `tool_use` for a reply with calls, and `stop` for a reply without calls.
    pub fn stop_reason(mut self, reason: impl Into<StopReason>) -> Self {
        self.end = ReplyEnd::Stop(reason.into());
        self
    }

    /// Makes the reply fail with this error after its parts.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelError, ModelErrorKind, ModelRequest, StepCx, reply};
    /// use agent::ScriptedModel;
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
        self.end = ReplyEnd::Error(error);
        self
    }

    /// Makes the reply wait after its parts until it is cancelled.
    ///
    /// ```
    /// use agent::CancelToken;
    /// use agent::model::{Model as _, ModelRequest, StepCx, reply};
    /// use agent::ScriptedModel;
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
        self.end = ReplyEnd::Hang;
        self
    }

    pub(super) fn resolve(mut self, request: &ModelRequest) -> Self {
        while let Some(answer) = self.answer.take() {
            self = answer(request);
        }
        self
    }

    /// Gives ids to the calls that have none. `calls` counts the calls of the whole script.
    pub(super) fn number_calls(&mut self, calls: &mut usize) {
        for part in &mut self.parts {
            if let Content::ToolCall(call) = &mut part.content {
                *calls += 1;
                if call.id.is_empty() {
                    call.id = format!("call_{calls}");
                }
            }
        }
    }

    #[cfg(feature = "testing")]
    pub(crate) fn into_events(
        self,
        request: &ModelRequest,
        calls: &mut usize,
    ) -> impl Stream<Item = Result<ModelEvent, ModelError>> + Send + use<> {
        let mut reply = self.resolve(request);
        reply.number_calls(calls);
        reply.play(CHUNKS)
    }

    pub(super) fn play(self, chunks: Chunks) -> ReplyEvents {
        // The capacity is enough for short parts, each with a start, two deltas and an end, and for the usage and the end of the reply.
        let mut events = VecDeque::with_capacity(4 * self.parts.len() + 2);
        for (content_index, part) in self.parts.into_iter().enumerate() {
            play_part(content_index, part, chunks, &mut events);
        }
        if let Some(usage) = self.usage {
            events.push_back(Ok(ModelEvent::Usage { usage: Box::new(usage) }));
        }
        match self.end {
            ReplyEnd::Stop(reason) => {
                events.push_back(Ok(ModelEvent::Stop { reason, detail: None, raw: None }));
            }
            ReplyEnd::Error(error) => events.push_back(Err(error)),
            ReplyEnd::Hang => return ReplyEvents { events, hangs: true },
        }
        ReplyEvents { events, hangs: false }
    }
}

fn play_part(
    content_index: usize,
    part: Part,
    chunks: Chunks,
    events: &mut VecDeque<Result<ModelEvent, ModelError>>,
) {
    let mut deltas = |start: ModelEvent, text: &str, event: fn(usize, String) -> ModelEvent| {
        events.push_back(Ok(start));
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(chunks.size.max(1)).map_or(rest.len(), |(at, _)| at);
            let (delta, after) = rest.split_at(end);
            events.push_back(Ok(event(content_index, delta.to_owned())));
            rest = after;
        }
    };
    let end = match &part.content {
        Content::Text(text) => {
            let start = ModelEvent::TextStart { content_index };
            deltas(start, text, |content_index, delta| ModelEvent::TextDelta { content_index, delta });
            Some(ModelEvent::TextEnd { content_index })
        }
        Content::Thinking { text, redacted: false } => {
            let start = ModelEvent::ThinkingStart { content_index };
            deltas(start, text, |content_index, delta| ModelEvent::ThinkingDelta { content_index, delta });
            Some(ModelEvent::ThinkingEnd { content_index })
        }
        Content::ToolCall(call) => {
            let (id, name) = (call.id.clone(), call.name.clone());
            let start = ModelEvent::ToolCallStart { content_index, id, name };
            let args = if chunks.streams_arguments { call.args.text() } else { "" };
            deltas(start, args, |content_index, delta| ModelEvent::ToolCallDelta { content_index, delta });
            chunks.streams_arguments.then_some(ModelEvent::ToolCallEnd { content_index })
        }
        _ => None,
    };
    let has_more = part.provider_data.is_some() || part.cache.is_some() || !part.extra.is_empty();
    let whole = || ModelEvent::Part { content_index, part: Box::new(part) };
    events.push_back(Ok(end.filter(|_| !has_more).unwrap_or_else(whole)));
}

impl From<&str> for ScriptedReply {
    fn from(text: &str) -> Self {
        reply().text(text)
    }
}

impl From<String> for ScriptedReply {
    fn from(text: String) -> Self {
        reply().text(text)
    }
}

impl From<ModelError> for ScriptedReply {
    fn from(error: ModelError) -> Self {
        reply().error(error)
    }
}

impl fmt::Debug for ScriptedReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedReply")
            .field("parts", &self.parts)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

pub(super) struct ReplyEvents {
    events: VecDeque<Result<ModelEvent, ModelError>>,
    hangs: bool,
}

impl Stream for ReplyEvents {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.events.pop_front() {
            // No waker is registered, because only a cancellation can end this reply, and the outer stream waits for the cancellation.
            None if self.hangs => Poll::Pending,
            next => Poll::Ready(next),
        }
    }
}
