//! Listeners: functions that are notified of the events of a run.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;

use crate::loop_core::Event;
use crate::panics::{DropsQuietly, catch};

type EventFunction = Box<dyn Fn(&Event) + Send + Sync>;

/// A function that is called with each event, and removed after a panic.
pub(super) struct Listener {
    /// Panics are caught when the function is dropped, because it may own values of the application whose `Drop` panics.
    call: DropsQuietly<EventFunction>,
    is_removed: AtomicBool,
    is_meter: bool,
}

impl Listener {
    pub(super) fn new(on_event: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        let call = DropsQuietly(Some(Box::new(on_event) as EventFunction));
        Self { call, is_removed: AtomicBool::new(false), is_meter: false }
    }

    /// Creates a listener that gets no events of sub-agents with meters of their own.
    pub(super) fn meter(on_event: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self { is_meter: true, ..Self::new(on_event) }
    }

    fn notify(&self, event: &Event) {
        if self.is_removed.load(Ordering::Acquire) {
            return;
        }
        if let Err(panic) = catch(|| self.call.0.iter().for_each(|call| call(event))) {
            self.is_removed.store(true, Ordering::Release);
            tracing::error!(%panic, "a listener panicked and was unsubscribed");
        }
    }
}

/// The slot through which a run hands events to the reader of its stream. The run waits until the reader has taken each event.
#[derive(Clone, Default)]
pub(super) struct EventSlot {
    slot: Arc<Mutex<Option<Arc<Event>>>>,
}

impl EventSlot {
    pub(super) fn take(&self) -> Option<Arc<Event>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Puts an event into the slot, and waits until the reader has taken it. If the slot still has another event, for example of a
    /// sub-agent, the reader takes that event first. No waker is needed, because the reader polls the run again after it takes an event.
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

/// A subscription to events, which ends when it is dropped. With [`forever`](Self::forever), it lasts as long as the assistant.
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

    /// Keeps the subscription as long as the assistant. The subscription can no longer be ended.
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

    /// Removes a listener, and returns the previous list. Drop that list while no lock is held, because a dropped listener may unsubscribe
    /// others.
    #[must_use = "dropping a listener runs code of the application"]
    pub(super) fn remove(&mut self, listener: &Weak<Listener>) -> Self {
        let list = self.list.iter().filter(|one| Arc::as_ptr(one) != listener.as_ptr()).cloned().collect();
        Self { list: std::mem::replace(&mut self.list, list) }
    }

    pub(super) fn notify(&self, event: &Event) {
        self.list.iter().for_each(|listener| listener.notify(event));
    }

    /// Passes an event of a sub-agent to the listeners. `is_measured` is true if a meter of the sub-agent, or of a run between, has
    /// measured the event.
    pub(super) fn notify_above(&self, event: &Event, is_measured: bool) {
        let listeners = self.list.iter().filter(|listener| !(is_measured && listener.is_meter));
        listeners.for_each(|listener| listener.notify(event));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
