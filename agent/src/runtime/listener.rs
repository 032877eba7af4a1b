//! Who is told what happens in a run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Event, EventKind};

/// A function that is told of every event, until it panics.
pub(super) struct Listener {
    on_event: Box<dyn Fn(&Event) + Send + Sync>,
    is_gone: AtomicBool,
}

impl Listener {
    pub(super) fn new(on_event: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self { on_event: Box::new(on_event), is_gone: AtomicBool::new(false) }
    }

    fn tell(&self, event: &Event) {
        if self.is_gone.load(Ordering::Acquire) {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| (self.on_event)(event))).is_err() {
            self.is_gone.store(true, Ordering::Release);
            tracing::error!(run_id = %event.run_id, "a listener panicked and is not told of anything any more");
        }
    }
}

/// Numbers the events of one run and tells them in the order of subscription.
pub(super) struct Events {
    run_id: Arc<str>,
    seq: u64,
    listeners: Arc<[Listener]>,
}

impl Events {
    pub(super) fn new(run_id: Arc<str>, listeners: Arc<[Listener]>) -> Self {
        Self { run_id, seq: 0, listeners }
    }

    pub(super) fn run_id(&self) -> &Arc<str> {
        &self.run_id
    }

    /// Events carry copies; nothing is made when nobody listens.
    pub(super) fn tell(&mut self, turn: u32, kind: impl FnOnce() -> EventKind) {
        self.seq += 1;
        if self.listeners.is_empty() {
            return;
        }
        let event = Event { run_id: self.run_id.clone(), turn, seq: self.seq, kind: kind() };
        self.listeners.iter().for_each(|listener| listener.tell(&event));
    }
}
