//! One conversation: its run, the events of the run, and its readers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc::Sender;

use super::super::{UiChunk, UiEncoder, UiProtocol, UiRequestError};
use super::log::ReplayLog;
use crate::loop_core::{AgentLoop, Event, EventKind};
use crate::message::Message;
use crate::runtime::{Assistant, RunHandle};

/// The time during which a run that is over can be read again.
pub(super) const KEPT: Duration = Duration::from_secs(60);

pub(super) struct UiThread {
    pub(super) assistant: Assistant,
    state: Mutex<ThreadState>,
}

pub(super) struct ThreadState {
    /// Whether a run begins or is active.
    is_busy: bool,
    pub(super) handle: Option<RunHandle>,
    pub(super) log: ReplayLog,
    pub(super) run_id: Option<Arc<str>>,
    /// Whether the client that began the run speaks the current version of AG-UI.
    pub(super) is_current: bool,
    pub(super) suspended: Option<Box<AgentLoop>>,
    /// How the run ended, for the last event.
    pub(super) error_code: Option<String>,
    pub(super) readers: Vec<LiveReader>,
    next_reader: u64,
    /// Raised when readers come, so that a timer for a run without readers knows.
    pub(super) attendance: u64,
    /// The run and turn of messages, by their address.
    labels: HashMap<usize, MessageLabel>,
    last_used: Instant,
}

/// Where a message is from. It keeps the message alive, so that its address stays its own.
#[derive(Clone)]
pub(super) struct MessageLabel {
    pub(super) run_id: Arc<str>,
    pub(super) turn: u32,
    _message: Arc<Message>,
}

/// A reader that is connected.
pub(super) struct LiveReader {
    pub(super) id: u64,
    pub(super) protocol: UiProtocol,
    pub(super) encoder: UiEncoder,
    pub(super) sender: Sender<Bytes>,
    pub(super) is_cut: Arc<AtomicBool>,
}

impl LiveReader {
    /// Sends chunks; false if the reader is gone or too slow.
    fn send(&self, chunks: &[UiChunk], end_mark: &str) -> bool {
        let mut text: String = chunks.iter().map(UiChunk::to_sse).collect();
        text.push_str(end_mark);
        if text.is_empty() {
            return !self.sender.is_closed();
        }
        match self.sender.try_send(text.into()) {
            Ok(()) => true,
            Err(error) => {
                let is_full = matches!(error, tokio::sync::mpsc::error::TrySendError::Full(_));
                self.is_cut.store(is_full, Ordering::Release);
                false
            }
        }
    }
}

impl UiThread {
    pub(super) fn new(assistant: Assistant) -> Self {
        let state = ThreadState {
            is_busy: false,
            handle: None,
            log: ReplayLog::default(),
            run_id: None,
            is_current: true,
            suspended: None,
            error_code: None,
            readers: Vec::new(),
            next_reader: 0,
            attendance: 0,
            labels: HashMap::new(),
            last_used: Instant::now(),
        };
        Self { assistant, state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ThreadState> {
        // A function of the application that panics under it is caught by the encoder.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.lock().is_busy
    }

    pub(super) fn is_current(&self) -> bool {
        self.lock().is_current
    }

    pub(super) fn active_run(&self) -> Option<RunHandle> {
        let state = self.lock();
        state.handle.clone().filter(|_| state.is_busy)
    }

    /// Returns since when nothing runs here; `None` while something does.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (!state.is_busy && state.readers.is_empty()).then_some(state.last_used)
    }

    pub(super) fn suspended(&self) -> Option<Box<AgentLoop>> {
        self.lock().suspended.clone()
    }

    /// Makes the thread busy, until the reservation is dropped or becomes a run.
    pub(super) fn reserve(self: &Arc<Self>) -> Result<Reservation, UiRequestError> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_busy, true) {
            let run_id = state.handle.as_ref().map(|run| run.run_id().to_owned()).unwrap_or_default();
            return Err(UiRequestError::Busy { run_id });
        }
        state.last_used = Instant::now();
        Ok(Reservation { thread: self.clone(), is_kept: false })
    }

    /// Records an event, and sends it to all readers. Returns whether a reader is close to its limit.
    pub(super) fn publish(&self, event: &Arc<Event>) -> bool {
        let mut state = self.lock();
        state.log.push(event.clone());
        if let EventKind::MessageEnd { message, .. } = &event.kind {
            let label =
                MessageLabel { run_id: event.run_id.clone(), turn: event.turn, _message: message.clone() };
            state.labels.insert(Arc::as_ptr(message).addr(), label);
        }
        let error_code = state.error_code.clone();
        let mut gone = Vec::new();
        let mut is_close = false;
        state.readers.retain_mut(|reader| {
            if let Some(code) = &error_code {
                reader.encoder.set_error_code(code);
            }
            let mut chunks = Vec::new();
            reader.encoder.encode(event, &mut chunks);
            let stays = reader.send(&chunks, "");
            is_close |= reader.sender.capacity() * 2 < reader.sender.max_capacity();
            if !stays {
                gone.push(reader.sender.clone());
            }
            stays
        });
        drop(state);
        // A sender that is dropped wakes a task, which is the application's code.
        drop(gone);
        is_close
    }

    /// Whether a reader is close to its limit.
    pub(super) fn has_late_reader(&self) -> bool {
        let state = self.lock();
        state.readers.iter().any(|reader| reader.sender.capacity() * 2 < reader.sender.max_capacity())
    }

    /// Frees the events of a run that can no longer be read.
    pub(super) fn forget(&self, run_id: &str) {
        let mut state = self.lock();
        let is_over = !state.is_busy && state.suspended.is_none();
        if !is_over || state.run_id.as_deref() != Some(run_id) {
            return;
        }
        let log = std::mem::take(&mut state.log);
        drop(state);
        drop(log);
    }

    /// Ends the responses of the readers.
    pub(super) fn disconnect(&self, code: &str) {
        let readers = std::mem::take(&mut self.lock().readers);
        for mut reader in readers {
            let mut chunks = Vec::new();
            reader.encoder.set_error_code(code);
            reader.encoder.end(&mut chunks);
            reader.send(&chunks, reader.protocol.end_mark());
        }
    }

    /// Ends the run of this thread, and the responses of its readers.
    pub(super) fn settle(&self, suspended: Option<Box<AgentLoop>>) {
        let mut state = self.lock();
        state.is_busy = false;
        state.handle = None;
        state.suspended = suspended;
        state.last_used = Instant::now();
        drop(state);
        self.disconnect("incomplete");
    }
}

impl ThreadState {
    pub(super) fn add_reader(
        &mut self,
        protocol: UiProtocol,
        encoder: UiEncoder,
        sender: Sender<Bytes>,
        is_cut: Arc<AtomicBool>,
    ) -> u64 {
        self.next_reader += 1;
        self.attendance += 1;
        let id = self.next_reader;
        self.readers.push(LiveReader { id, protocol, encoder, sender, is_cut });
        id
    }

    pub(super) fn is_active(&self) -> bool {
        self.is_busy
    }

    /// Whether the run can still be read.
    pub(super) fn is_readable(&self) -> bool {
        let is_recent = self.last_used.elapsed() < KEPT;
        !self.log.events().is_empty() && (self.is_busy || self.suspended.is_some() || is_recent)
    }

    pub(super) fn label(&self, message: &Arc<Message>) -> Option<MessageLabel> {
        self.labels.get(&Arc::as_ptr(message).addr()).cloned()
    }
}

/// A thread that is about to run.
pub(super) struct Reservation {
    thread: Arc<UiThread>,
    is_kept: bool,
}

impl Reservation {
    pub(super) fn thread(&self) -> &Arc<UiThread> {
        &self.thread
    }

    /// Hands the thread to its run, which settles it.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_kept {
            self.thread.lock().is_busy = false;
        }
    }
}
