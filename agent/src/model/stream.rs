//! A reply that is being received.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::accumulator::Accumulator;
use super::arguments::CallArguments;
use super::{ModelError, ModelEvent, ModelInfo, ModelRequest, StepCx};
use crate::message::AssistantMessage;
use crate::panics::DropsQuietly;
use crate::tool::cancel::{CancelToken, Cancelled};

type BoxedEvents = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// A reply that is being received: a stream of events that ends with the complete message or one error.
///
/// ```
/// # use agent::message::Message;
/// # use agent::model::{Model, ModelError, ModelRequest, StepCx};
/// # use agent::ScriptedModel;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ModelError> {
/// let model = ScriptedModel::new(["It is warm."]);
/// let request = ModelRequest::new([Message::user("How is the weather?")]);
/// let mut stream = model.stream(&StepCx::new(), &request);
/// let mut shown = String::new();
/// while let Some(event) = stream.next().await {
///     shown.push_str(event?.text_delta().unwrap_or_default());
/// }
/// assert_eq!(shown, stream.reply().await?.text());
/// # Ok(()) }
/// ```
///
/// Dropping the stream ends the exchange with the provider.
#[must_use = "a stream does nothing until it is read"]
pub struct ModelStream {
    /// `None` once the stream has ended, so that the connection is released.
    events: Option<BoxedEvents>,
    cancel: CancelToken,
    cancelled: Cancelled,
    accumulator: Accumulator,
    ready: VecDeque<ModelEvent>,
    arguments: Option<CallArguments>,
    /// The cell in which a `Fallback`, a model with limits or a [whole reply](Self::from_reply) puts the provider, protocol, model and
    /// additional fields of the reply. `None` for any other model, and after the cell was read.
    author: Option<Arc<OnceLock<AssistantMessage>>>,
    error: Option<ModelError>,
    #[cfg(feature = "studio")]
    on_end: Option<OnStreamEnd>,
}

/// A function that is called at the end of a reply, with the error if the reply is incomplete.
#[cfg(feature = "studio")]
type OnStreamEnd = Box<dyn FnOnce(&AssistantMessage, Option<&ModelError>) + Send>;

impl ModelStream {
    /// Creates the stream of a reply from the events of an adapter. The stream does the work that is common to all adapters:
    ///
    /// * It adds missing starts before the first delta of a text or of thinking, and missing ends when the reply stops. A complete
    ///   [`Part`](ModelEvent::Part) of text, thinking or a call is emitted as start, delta and end. Empty deltas are left out.
    /// * It gives an id to a call without one, and changes an id that another call of the reply has.
    /// * It changes the stop reason `stop` to `tool_use` if the reply contains calls.
    /// * It leaves out [`ToolCallArgument`](ModelEvent::ToolCallArgument) events: see [`with_argument_events`](Self::with_argument_events).
    /// * It ends with an error if the events end without [`Stop`](ModelEvent::Stop) or contradict each other.
    /// * When the token of `cx` is cancelled, it drops the events and ends the reply as aborted.
    pub fn new(
        cx: &StepCx,
        info: &ModelInfo,
        events: impl Stream<Item = Result<ModelEvent, ModelError>> + Send + 'static,
    ) -> Self {
        Self {
            events: Some(Box::pin(events)),
            cancel: cx.cancel.clone(),
            cancelled: cx.cancel.cancellation(),
            accumulator: Accumulator::new(info),
            ready: VecDeque::new(),
            arguments: None,
            author: None,
            error: None,
            #[cfg(feature = "studio")]
            on_end: None,
        }
    }

    /// Sets a function that is called when the reply is complete or has failed, but not if this stream is dropped before that.
    #[cfg(feature = "studio")]
    pub(crate) fn with_on_end(
        mut self,
        on_end: impl FnOnce(&AssistantMessage, Option<&ModelError>) + Send + 'static,
    ) -> Self {
        self.on_end = Some(Box::new(on_end));
        self
    }

    /// Adds events for the arguments of calls while the arguments arrive, if the request [asks for these
    /// events](ModelRequest::argument_events).
    ///
    /// A model that does not use an adapter of this library calls this method on the stream that it returns.
    ///
    /// ```
    /// use agent::message::StopReason;
    /// use agent::model::{ModelEvent, ModelInfo, ModelRequest, ModelStream, StepCx};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let recorded = [
    ///     ModelEvent::ToolCallStart { content_index: 0, id: "call_1".into(), name: "write".into() },
    ///     ModelEvent::ToolCallDelta { content_index: 0, delta: r#"{"path": "a.txt"}"#.into() },
    ///     ModelEvent::Stop { reason: StopReason::ToolUse, detail: None, raw: None },
    /// ];
    /// let request = ModelRequest::default().with_argument_events();
    /// let mut stream = ModelStream::from_events(&StepCx::new(), &ModelInfo::default(), recorded.map(Ok))
    ///     .with_argument_events(&request);
    /// let mut paths = Vec::new();
    /// while let Some(event) = stream.next().await {
    ///     if let ModelEvent::ToolCallArgument { path, .. } = event? { paths.push(path) }
    /// }
    /// assert!(paths.contains(&"/path".to_owned()));
    /// # Ok(()) }
    /// ```
    pub fn with_argument_events(mut self, request: &ModelRequest) -> Self {
        self.arguments = request.argument_events.then(|| CallArguments::new(request.tools.clone()));
        self
    }

    pub(super) fn with_author(mut self, author: Arc<OnceLock<AssistantMessage>>) -> Self {
        self.author = Some(author);
        self
    }

    /// Creates a reply that arrives as a whole, from a model that does not stream. The provider, protocol and model come from `info`. A
    /// different model name in the reply becomes the [`response_model`](AssistantMessage::response_model).
    ///
    /// ```
    /// use agent::message::AssistantMessage;
    /// use agent::model::{ModelInfo, ModelStream, StepCx};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let info = ModelInfo::new("acme", "acme", "large-1");
    /// let reply = ModelStream::from_reply(&StepCx::new(), &info, async { Ok(AssistantMessage::from("Good morning.")) });
    /// let reply = reply.reply().await?;
    /// assert_eq!((reply.text().as_str(), reply.provider.as_str()), ("Good morning.", "acme"));
    /// # Ok(()) }
    /// ```
    pub fn from_reply(
        cx: &StepCx,
        info: &ModelInfo,
        reply: impl Future<Output = Result<AssistantMessage, ModelError>> + Send + 'static,
    ) -> Self {
        let ModelInfo { provider, api, model, .. } = info.clone();
        let names = AssistantMessage { provider, api, model, ..AssistantMessage::default() };
        let author = Arc::new(OnceLock::new());
        let reply = Some((Box::pin(reply), names));
        Self::new(cx, info, WholeReply { reply, events: VecDeque::new(), author: author.clone() })
            .with_author(author)
    }

    /// Creates the stream of a reply from events that are already available, for example in a recording or a test.
    ///
    /// ```
    /// use agent::message::StopReason;
    /// use agent::model::{ModelEvent, ModelInfo, ModelStream, StepCx};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
    /// let events = [
    ///     ModelEvent::TextDelta { content_index: 0, delta: "Hi".into() },
    ///     ModelEvent::Stop { reason: StopReason::Stop, detail: None, raw: None },
    /// ];
    /// let stream = ModelStream::from_events(&StepCx::new(), &ModelInfo::default(), events.map(Ok));
    /// assert_eq!(stream.reply().await?.text(), "Hi");
    /// # Ok(()) }
    /// ```
    pub fn from_events<I>(cx: &StepCx, info: &ModelInfo, events: I) -> Self
    where
        I: IntoIterator<Item = Result<ModelEvent, ModelError>>,
        I::IntoIter: Send + Unpin + 'static,
    {
        Self::new(cx, info, ReadyEvents(events.into_iter()))
    }

    /// Returns the next event, or `None` once the reply is complete or an error was returned.
    pub async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns the reply so far. It may be ahead of the events that [`next`](Self::next) has returned.
    pub fn partial(&self) -> &AssistantMessage {
        self.accumulator.message()
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn without_parts(&mut self) -> AssistantMessage {
        self.accumulator.without_parts()
    }

    /// Returns the complete reply, after reading the remaining events.
    ///
    /// # Errors
    /// Returns the error with which the stream ended, also if [`next`](Self::next) has already returned it.
    pub async fn reply(mut self) -> Result<AssistantMessage, ModelError> {
        while self.next().await.is_some() {}
        match self.error {
            Some(error) => Err(error),
            None => Ok(*self.accumulator.into_message()),
        }
    }

    /// Returns the reply as far as it was received, to continue the conversation with an incomplete reply. Unfinished parts keep their
    /// text. A call with incomplete arguments is left out.
    ///
    /// ```
    /// use agent::model::{Model as _, ModelError, ModelErrorKind, ModelRequest, StepCx, reply};
    /// use agent::ScriptedModel;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let reset = ModelError::new(ModelErrorKind::Connection, "the connection broke");
    /// let model = ScriptedModel::new([reply().text("It is warm, and").error(reset)]);
    /// let mut stream = model.stream(&StepCx::new(), &ModelRequest::default());
    /// while let Some(Ok(_)) = stream.next().await {}
    /// assert_eq!(stream.partial().text(), "It is warm, and");
    /// let kept = stream.into_partial();                    // where `reply` would give the error
    /// assert_eq!(kept.text(), "It is warm, and");
    /// # }
    /// ```
    pub fn into_partial(self) -> AssistantMessage {
        *self.into_partial_message()
    }

    pub(crate) fn into_partial_message(mut self) -> Box<AssistantMessage> {
        self.drop_events();
        self.accumulator.into_partial()
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn into_message(mut self) -> Box<AssistantMessage> {
        self.drop_events();
        self.accumulator.into_message()
    }

    /// Ends the exchange with the provider. Dropping `events` may set `author`, so `author` is taken last.
    pub(super) fn drop_events(&mut self) {
        drop(DropsQuietly(self.events.take()));
        self.take_author();
    }

    fn take_author(&mut self) {
        if let Some(author) = self.author.take_if(|author| author.get().is_some()) {
            author.get().into_iter().for_each(|author| self.accumulator.set_author(author));
        }
    }

    fn fail(&mut self, error: ModelError) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        self.drop_events();
        // An error is the last item of the stream, so the remaining events are dropped.
        self.ready.clear();
        #[cfg(feature = "studio")]
        self.on_end.take().into_iter().for_each(|on_end| on_end(self.accumulator.message(), Some(&error)));
        self.error = Some(error.clone());
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for ModelStream {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            let Some(events) = &mut this.events else { return Poll::Ready(None) };
            let next = if this.cancel.is_cancelled() { Poll::Pending } else { events.as_mut().poll_next(cx) };
            let Poll::Ready(next) = next else {
                ready!(Pin::new(&mut this.cancelled).poll(cx));
                let reason = this.cancel.reason().unwrap_or_else(|| "cancelled".into());
                return this.fail(ModelError::aborted(&*reason));
            };
            this.take_author();
            match next {
                Some(Ok(event)) => {
                    if this.arguments.is_none() && this.accumulator.append_to_open(&event) {
                        return Poll::Ready(Some(Ok(event)));
                    }
                    let pushed = this.accumulator.push(event, &mut this.ready);
                    if let Some(arguments) = &mut this.arguments {
                        let told = std::mem::take(&mut this.ready).into_iter();
                        this.ready = told
                            .flat_map(|event| {
                                let updates = arguments.updates(&event);
                                std::iter::once(event).chain(updates)
                            })
                            .collect();
                    }
                    if let Err(error) = pushed {
                        return this.fail(error);
                    }
                }
                Some(Err(error)) => return this.fail(error),
                None if this.accumulator.is_stopped() => {
                    this.drop_events();
                    #[cfg(feature = "studio")]
                    this.on_end
                        .take()
                        .into_iter()
                        .for_each(|on_end| on_end(this.accumulator.message(), None));
                }
                None => return this.fail(ModelError::protocol("the reply broke off before its end")),
            }
        }
    }
}

impl fmt::Debug for ModelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelStream")
            .field("partial", self.partial())
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

struct ReadyEvents<I>(I);

impl<I: Iterator<Item = Result<ModelEvent, ModelError>> + Unpin> Stream for ReadyEvents<I> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}

struct WholeReply<F> {
    /// The future reply, and a message with only the provider, protocol and model.
    reply: Option<(Pin<Box<F>>, AssistantMessage)>,
    events: VecDeque<ModelEvent>,
    author: Arc<OnceLock<AssistantMessage>>,
}

impl<F: Future<Output = Result<AssistantMessage, ModelError>>> Stream for WholeReply<F> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some((reply, names)) = &mut this.reply {
            let result = ready!(reply.as_mut().poll(cx));
            let names = std::mem::take(names);
            this.reply = None;
            match result {
                Ok(mut message) => {
                    let extra = std::mem::take(&mut message.extra);
                    // This is the only reply, so `author` is set only once.
                    let _ = this.author.set(AssistantMessage { extra, ..names });
                    this.events = events_of(message);
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        Poll::Ready(self.events.pop_front().map(Ok))
    }
}

fn events_of(message: AssistantMessage) -> VecDeque<ModelEvent> {
    let AssistantMessage { content, model, usage, stop_reason, error, response_id, provider_data, .. } =
        message;
    let (raw, model) = (message.provider_stop_reason, message.response_model.unwrap_or(model));
    let mut events = VecDeque::from([ModelEvent::ReplyStart { response_id, model: Some(model) }]);
    let parts = content.into_iter().enumerate();
    events
        .extend(parts.map(|(content_index, part)| ModelEvent::Part { content_index, part: Box::new(part) }));
    events.extend(provider_data.map(|data| ModelEvent::MessageData { data: *data }));
    events.push_back(ModelEvent::Usage { usage: Box::new(usage) });
    events.push_back(ModelEvent::Stop { reason: stop_reason, detail: error, raw });
    events
}
