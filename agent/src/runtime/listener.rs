//! Listeners, which are notified of the events of a run, and streams of events.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use futures_util::future::{Either, select};

use crate::loop_core::{Event, EventKind};
use crate::panics::{DropsQuietly, catch, catch_future};
use crate::tool::BoxFuture;
use crate::tool::cancel::CancelToken;

/// Maximum time that a run waits for one listener, or for the reader of a stream.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(60);

/// A listener of events, removed if it panics or takes too long.
pub(super) struct Listener {
    /// Panics are caught when it is dropped, because a closure owns values of the application.
    sink: DropsQuietly<EventSink>,
    is_removed: AtomicBool,
}

enum EventSink {
    Function(Box<dyn Fn(&Event) + Send + Sync>),
    AsyncFunction(Box<dyn Fn(Arc<Event>) -> BoxFuture<'static, ()> + Send + Sync>),
    Stream(Arc<EventBuffer>),
}

impl Listener {
    pub(super) fn new(on_event: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self::with_sink(EventSink::Function(Box::new(on_event)))
    }

    pub(super) fn asynchronous<F>(on_event: impl Fn(Arc<Event>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::with_sink(EventSink::AsyncFunction(Box::new(move |event| Box::pin(on_event(event)))))
    }

    fn with_sink(sink: EventSink) -> Self {
        Self { sink: DropsQuietly(Some(sink)), is_removed: AtomicBool::new(false) }
    }

    /// Notifies the listener, and returns a future if the run has to wait for it. If the future panics, call
    /// [`remove_panicked`](Self::remove_panicked).
    pub(super) fn notify_async(&self, event: &Arc<Event>) -> Option<BoxFuture<'_, ()>> {
        if self.is_removed.load(Ordering::Acquire) {
            return None;
        }
        let notified = catch(|| match self.sink.0.as_ref()? {
            EventSink::Function(call) => {
                call(event);
                None
            }
            EventSink::AsyncFunction(call) => Some(call(event.clone())),
            EventSink::Stream(buffer) => buffer.push(event),
        });
        notified.unwrap_or_else(|panic| {
            self.remove_panicked(&panic);
            None
        })
    }

    /// Notifies the listener without waiting for it.
    pub(super) fn notify(&self, event: &Arc<Event>) {
        drop(DropsQuietly(self.notify_async(event)));
    }

    /// Removes the listener after a panic.
    pub(super) fn remove_panicked(&self, panic: &str) {
        self.is_removed.store(true, Ordering::Release);
        tracing::error!(%panic, "a listener panicked and was unsubscribed");
    }

    /// Removes the listener because it did not return, or its events were not read, in time.
    pub(super) fn remove_late(&self) {
        self.is_removed.store(true, Ordering::Release);
        if let Some(EventSink::Stream(buffer)) = &self.sink.0 {
            buffer.close_late();
        }
        let seconds = LISTENER_TIMEOUT.as_secs();
        tracing::error!(seconds, "a run waited too long for a listener, which was unsubscribed");
    }

    /// Waits for this listener within limits: its own, and that of a tool when the run is cancelled.
    pub(super) async fn wait(&self, wait: BoxFuture<'_, ()>, cancel: &CancelToken, grace: Duration) {
        let cancelled = std::pin::pin!(async {
            cancel.cancelled().await;
            tokio::time::sleep(grace).await;
        });
        let waited = std::pin::pin!(catch_future(|| wait));
        let patience = match crate::default_executor().sleep(LISTENER_TIMEOUT) {
            Some(sleep) => sleep,
            // Without a clock nothing has a time limit.
            None => Box::pin(std::future::pending()),
        };
        match select(waited, select(cancelled, patience)).await {
            Either::Left((Ok(()), _)) => {}
            Either::Left((Err(panic), _)) => self.remove_panicked(&panic),
            Either::Right((Either::Left(_), _)) => {
                tracing::warn!("a cancelled run does not wait for a listener any longer");
            }
            Either::Right((Either::Right(_), _)) => self.remove_late(),
        }
    }
}

/// The event that a run hands to the reader of its stream. The run waits until the reader took it.
#[derive(Clone, Default)]
pub(super) struct EventSlot {
    slot: Arc<Mutex<Option<Arc<Event>>>>,
}

impl EventSlot {
    pub(super) fn take(&self) -> Option<Arc<Event>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Hands over an event, and waits until it was taken: after those that runs within the same run hand over. Needs no waker: the reader polls
    /// the run again.
    pub(super) async fn hand_over(&self, event: Arc<Event>) {
        let mut is_placed = false;
        poll_fn(|_| {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            match &*slot {
                Some(other) if is_placed && !Arc::ptr_eq(other, &event) => return Poll::Ready(()),
                Some(_) => {}
                None if is_placed => return Poll::Ready(()),
                None => {
                    *slot = Some(event.clone());
                    is_placed = true;
                }
            }
            Poll::Pending
        })
        .await;
    }
}

/// A subscription to events. It ends when it is dropped, or lasts as long as the assistant with [`forever`](Self::forever).
///
/// ```
/// use agent::{Assistant, ScriptedModel};
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!", "Bye!"])).build()?;
/// let events = Arc::new(AtomicUsize::new(0));
/// let count = events.clone();
/// let subscription = assistant.subscribe(move |_event| {
///     count.fetch_add(1, Ordering::Relaxed);
/// });
/// assistant.prompt("Hi").await?;
/// drop(subscription);
/// let heard = events.load(Ordering::Relaxed);
/// assistant.prompt("Bye").await?;
/// assert!(heard > 0 && events.load(Ordering::Relaxed) == heard);
/// # Ok(()) }
/// ```
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Subscription {
    pub(super) fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { end: Some(Box::new(end)) }
    }

    /// Keeps the subscription as long as the assistant. It can no longer be ended.
    ///
    /// ```
    /// use agent::{Assistant, EventKind, ScriptedModel};
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!", "Bye!"])).build()?;
    /// let ends = Arc::new(AtomicUsize::new(0));
    /// let count = ends.clone();
    /// let subscription = assistant.subscribe(move |event| {
    ///     count.fetch_add(usize::from(matches!(event.kind, EventKind::AgentEnd { .. })), Ordering::Relaxed);
    /// });
    /// subscription.forever();                                      // instead of keeping it somewhere
    /// assistant.prompt("Hi").await?;
    /// assistant.prompt("Bye").await?;
    /// assert_eq!(ends.load(Ordering::Relaxed), 2);
    /// # Ok(()) }
    /// ```
    pub fn forever(mut self) {
        self.end = None;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

/// Maximum number of buffered events. If there are more, the run waits for the reader.
const MAX_BUFFERED: usize = 256;

/// The events that the reader of a stream has not taken yet.
struct EventBuffer {
    inner: Mutex<BufferedEvents>,
}

#[derive(Default)]
struct BufferedEvents {
    events: VecDeque<Arc<Event>>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    is_closed: bool,
    /// Whether the run no longer waits for the reader.
    is_late: bool,
}

impl EventBuffer {
    fn lock(&self) -> MutexGuard<'_, BufferedEvents> {
        // No code that can panic runs under the lock, so a poisoned lock has valid data.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_late(&self) {
        let mut waiting = self.lock();
        (waiting.is_closed, waiting.is_late) = (true, true);
        let reader = waiting.reader.take();
        drop(waiting);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Adds an event. If the buffer is full, returns a future that waits for the reader.
    fn push(self: &Arc<Self>, event: &Arc<Event>) -> Option<BoxFuture<'static, ()>> {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return None;
        }
        waiting.events.push_back(event.clone());
        let (reader, is_full) = (waiting.reader.take(), waiting.events.len() > MAX_BUFFERED);
        drop(waiting);
        reader.into_iter().for_each(Waker::wake);
        if !is_full {
            return None;
        }
        let buffer = self.clone();
        Some(Box::pin(poll_fn(move |cx| {
            let mut waiting = buffer.lock();
            if waiting.is_closed || waiting.events.len() <= MAX_BUFFERED {
                return Poll::Ready(());
            }
            // The waker is dropped without the lock, because it may own a task of the application.
            let replaced = waiting.writer.replace(cx.waker().clone());
            drop(waiting);
            drop(replaced);
            Poll::Pending
        })))
    }
}

/// A stream of an assistant's events. It ends after the `agent_end` of a run.
///
/// If the reader is more than 256 events behind, the run waits for it, for at most 60 seconds at a time. If no event is read in this time,
/// the run continues without the reader: the stream ends after the buffered events, and [`has_lagged`](Self::has_lagged) is true. Dropping
/// the stream lets the run continue at once.
///
/// ```
/// use agent::{Assistant, EventKind, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let mut events = assistant.events();
/// assistant.prompt("Hi").start()?;
/// let mut text = String::new();
/// while let Some(event) = events.next().await {
///     if let EventKind::MessageUpdate { update, .. } = &event.kind {
///         text.push_str(update.text_delta().unwrap_or_default());
///     }
/// }
/// assert_eq!(text, "Hello!");
/// # Ok(()) }
/// ```
#[must_use = "a stream does nothing until it is read"]
pub struct EventStream {
    buffer: Arc<EventBuffer>,
    is_over: bool,
    _subscription: Subscription,
}

impl EventStream {
    /// Creates a listener, passes it to `subscribe`, and returns the stream of its events.
    pub(super) fn pair(subscribe: impl FnOnce(Listener) -> Subscription) -> Self {
        let buffer = Arc::new(EventBuffer { inner: Mutex::default() });
        let subscription = subscribe(Listener::with_sink(EventSink::Stream(buffer.clone())));
        Self { buffer, is_over: false, _subscription: subscription }
    }

    /// Returns whether the stream ends before its run because it was not read in time.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let mut events = assistant.events();
    /// assistant.prompt("Hi").start()?;
    /// while let Some(event) = events.next().await {
    ///     println!("{event:?}");
    /// }
    /// assert!(!events.has_lagged());
    /// # Ok(()) }
    /// ```
    pub fn has_lagged(&self) -> bool {
        self.buffer.lock().is_late
    }

    /// Returns the next event, or `None` after the end of the stream.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for EventStream {
    type Item = Arc<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let mut waiting = self.buffer.lock();
        let event = waiting.events.pop_front();
        let writer = waiting.writer.take();
        let is_late = waiting.is_late;
        let replaced = if event.is_none() { waiting.reader.replace(cx.waker().clone()) } else { None };
        drop(waiting);
        drop(replaced);
        writer.into_iter().for_each(Waker::wake);
        let Some(event) = event else {
            self.is_over = is_late;
            return if is_late { Poll::Ready(None) } else { Poll::Pending };
        };
        self.is_over = event.is_own() && matches!(event.kind, EventKind::AgentEnd { .. });
        Poll::Ready(Some(event))
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let mut waiting = self.buffer.lock();
        waiting.is_closed = true;
        let (events, writer) = (std::mem::take(&mut waiting.events), waiting.writer.take());
        drop(waiting);
        drop(events);
        writer.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// The listeners of an assistant, in the order of subscription.
#[derive(Clone, Default)]
pub(super) struct Listeners {
    list: Arc<[Arc<Listener>]>,
}

impl Listeners {
    pub(super) fn add(&mut self, listener: Listener) -> Weak<Listener> {
        let listener = Arc::new(listener);
        let weak = Arc::downgrade(&listener);
        self.list = self.list.iter().cloned().chain([listener]).collect();
        weak
    }

    /// Removes a listener and returns the previous list. Drop that list while no lock is held, because values that a listener owns may
    /// unsubscribe other listeners when they are dropped.
    #[must_use = "dropping a listener runs code of the application"]
    pub(super) fn remove(&mut self, listener: &Weak<Listener>) -> Self {
        let list = self.list.iter().filter(|one| Arc::as_ptr(one) != listener.as_ptr()).cloned().collect();
        Self { list: std::mem::replace(&mut self.list, list) }
    }

    /// Notifies all of them of an event, one after the other.
    pub(super) async fn notify_all(&self, event: &Arc<Event>, cancel: &CancelToken, grace: Duration) {
        for listener in self.iter() {
            if let Some(wait) = listener.notify_async(event) {
                Box::pin(listener.wait(wait, cancel, grace)).await;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Listener>> {
        self.list.iter()
    }
}
