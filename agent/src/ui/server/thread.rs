//! One conversation: its run, the events of the run, and its readers.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;

use super::super::encode::is_shown_of_child;
use super::super::{UiChunk, UiEncoder, UiProtocol, UiRequestError};
use super::client_tools::ClientTools;
use super::earlier::{EarlierMessage, with_turns};
use super::log::ReplayLog;
use crate::loop_core::{Event, EventKind};
use crate::message::{AssistantMessage, Message};
use crate::runtime::{Assistant, RunHandle, SuspendedRun};
use crate::tool::outcome::OutcomeCode;

/// The time for which a run can still be read after its end.
pub(super) const KEPT: Duration = Duration::from_secs(60);

pub(super) struct UiThread {
    pub(super) assistant: Assistant,
    state: Mutex<ThreadState>,
    /// Notified when a run has ended or was suspended, or when a reservation was dropped without a run.
    settled: Notify,
    /// Maximum size of the kept events, in bytes.
    max_log: usize,
}

pub(super) struct ThreadState {
    /// Whether a run is active, or about to begin.
    is_busy: bool,
    pub(super) handle: Option<RunHandle>,
    pub(super) log: ReplayLog,
    pub(super) run_id: Option<Arc<str>>,
    /// Whether the client that began the run speaks the current version of AG-UI.
    pub(super) is_current: bool,
    pub(super) client_tools: Option<ClientTools>,
    pub(super) suspended: Option<SuspendedRun>,
    /// The kind of the error that ended the run. The last event does not contain this kind.
    pub(super) error_code: Option<String>,
    readers: Vec<LiveReader>,
    /// Readers that were disconnected before their encoders had read all earlier events.
    ended: Vec<LiveReader>,
    /// The ids of all connected readers. A reader is not in `readers` while an event is being sent to it.
    connected: BTreeSet<u64>,
    next_reader: u64,
    /// Increased when a reader connects, so that the timer in `leave` does not cancel the run of a reader that came back.
    pub(super) attendance: u64,
    /// The run and turn of each message, by the message's address.
    labels: HashMap<usize, MessageLabel>,
    /// Readers that disconnected while an event was being sent to them.
    left: Vec<u64>,
    /// If set, the readers to whom an event is being sent are disconnected after the event, for this reason.
    closing: Option<String>,
    last_used: Instant,
}

/// The run and turn that a message comes from. The label keeps the message alive, so that no other message can get its address.
#[derive(Clone)]
pub(super) struct MessageLabel {
    pub(super) run_id: Arc<str>,
    pub(super) turn: u32,
    message: Arc<Message>,
}

pub(super) struct LiveReader {
    pub(super) id: u64,
    pub(super) protocol: UiProtocol,
    /// `None` while the encoder reads earlier events outside of the lock.
    encoder: Option<UiEncoder>,
    /// The events that arrived while `encoder` was `None`.
    backlog: Vec<Arc<Event>>,
    pub(super) sender: Sender<Bytes>,
    pub(super) is_cut: Arc<AtomicBool>,
}

impl LiveReader {
    /// Returns `false` if the reader has disconnected or is too slow.
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

impl LiveReader {
    fn finish(mut self, code: &str) {
        let mut chunks = Vec::new();
        if let Some(encoder) = &mut self.encoder {
            encoder.set_error_code(code);
            encoder.end(&mut chunks);
        }
        self.send(&chunks, self.protocol.end_mark());
    }
}

/// The state of a new reader after its encoder has read the log.
pub(super) enum AttachStep {
    Live,
    /// The encoder has to read these events, which arrived while the encoder read the log.
    More(UiEncoder, Vec<Arc<Event>>),
    /// The response ended meanwhile. The encoder still has to read these last events.
    Over(UiEncoder, Vec<Arc<Event>>),
}

impl UiThread {
    /// Creates a thread. Stored messages keep their run ids and turn numbers, so that the message ids are the same after a restart.
    pub(super) fn new(assistant: Assistant, max_log: usize) -> Self {
        let (mut log, mut labels, mut run_id) = (ReplayLog::new(max_log), HashMap::new(), None);
        for (message, run_id, turn) in assistant.stored_messages() {
            if !run_id.is_empty() {
                labels.insert(Arc::as_ptr(&message).addr(), MessageLabel { run_id, turn, message });
            }
        }
        if let Some((run, messages)) = assistant.unfinished_messages() {
            let earlier = with_turns(&messages);
            for EarlierMessage { turn, message, .. } in &earlier {
                let label = MessageLabel { run_id: run.clone(), turn: *turn, message: message.clone() };
                labels.insert(Arc::as_ptr(message).addr(), label);
            }
            log = ReplayLog::of_messages(max_log, run.clone(), earlier);
            run_id = Some(run);
        }
        let state = ThreadState {
            is_busy: false,
            handle: None,
            log,
            run_id,
            is_current: true,
            client_tools: None,
            suspended: None,
            error_code: None,
            readers: Vec::new(),
            ended: Vec::new(),
            connected: BTreeSet::new(),
            next_reader: 0,
            attendance: 0,
            labels,
            left: Vec::new(),
            closing: None,
            last_used: Instant::now(),
        };
        Self { assistant, state: Mutex::new(state), settled: Notify::new(), max_log }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ThreadState> {
        // Poisoning is ignored, because the encoder catches panics of the application's functions.
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

    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (!state.is_busy && state.connected.is_empty()).then_some(state.last_used)
    }

    /// Returns whether an unfinished run of another process called tools that only the front end declared. The front end must declare
    /// these tools again before the run can continue.
    pub(super) fn needs_client_tools(&self) -> bool {
        let Some((_, messages)) = self.assistant.unfinished_messages() else { return false };
        let was_unknown = |call_id: &str| {
            let mut results = messages.iter().filter_map(|message| message.as_tool_result());
            results.any(|result| {
                result.call_id == call_id
                    && result.code.as_deref() == Some(OutcomeCode::UNKNOWN_TOOL.as_str())
            })
        };
        let mut calls = messages
            .iter()
            .filter_map(|message| message.as_assistant())
            .flat_map(AssistantMessage::tool_calls);
        calls.any(|call| self.assistant.registry().get(&call.name).is_none() && !was_unknown(&call.id))
    }

    pub(super) fn client_tools(&self) -> Option<ClientTools> {
        self.lock().client_tools.clone()
    }

    pub(super) fn suspended(&self) -> Option<SuspendedRun> {
        self.lock().suspended.clone()
    }

    /// Marks the thread as busy until the reservation is dropped or handed to a run.
    pub(super) fn reserve(self: &Arc<Self>) -> Result<Reservation, UiRequestError> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_busy, true) {
            let run_id = state.handle.as_ref().map(|run| run.run_id().to_owned()).unwrap_or_default();
            return Err(UiRequestError::Busy { run_id });
        }
        state.last_used = Instant::now();
        Ok(Reservation { thread: self.clone(), is_kept: false })
    }

    /// Records an event, and sends it to all readers. Returns whether the queue of any reader is more than half full.
    pub(super) fn publish(&self, event: &Arc<Event>) -> bool {
        if !event.is_own() && !is_shown_of_child(&event.kind) {
            return false;
        }
        let mut state = self.lock();
        state.log.push(event.clone());
        if let EventKind::MessageEnd { message, .. } = &event.kind
            && event.is_own()
        {
            let label =
                MessageLabel { run_id: event.run_id.clone(), turn: event.turn, message: message.clone() };
            state.labels.insert(Arc::as_ptr(message).addr(), label);
        }
        let error_code = state.error_code.clone();
        for reader in &mut state.readers {
            if reader.encoder.is_none() {
                reader.backlog.push(event.clone());
            }
        }
        let (attaching, mut live): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.readers).into_iter().partition(|reader| reader.encoder.is_none());
        state.readers = attaching;
        state.left.clear();
        state.closing = None;
        drop(state);

        // The lock is not held while the readers encode the event, because an encoder calls functions of the application.
        let mut is_close = false;
        let mut cut = Vec::new();
        live.retain_mut(|reader| {
            let mut chunks = Vec::new();
            if let Some(encoder) = &mut reader.encoder {
                if let Some(code) = &error_code {
                    encoder.set_error_code(code);
                }
                encoder.encode(event, &mut chunks);
            }
            let stays = reader.send(&chunks, "");
            if !stays {
                cut.push(reader.id);
            }
            is_close |= reader.sender.capacity() * 2 < reader.sender.max_capacity();
            stays
        });

        let mut state = self.lock();
        for id in cut {
            state.connected.remove(&id);
        }
        let closing = state.closing.take();
        let left = std::mem::take(&mut state.left);
        let (stay, gone): (Vec<_>, Vec<_>) =
            live.into_iter().partition(|reader| closing.is_none() && !left.contains(&reader.id));
        state.readers.extend(stay);
        drop(state);
        for reader in gone.into_iter().filter(|reader| !left.contains(&reader.id)) {
            reader.finish(closing.as_deref().unwrap_or("incomplete"));
        }
        is_close
    }

    pub(super) fn has_late_reader(&self) -> bool {
        let state = self.lock();
        state.readers.iter().any(|reader| reader.sender.capacity() * 2 < reader.sender.max_capacity())
    }

    /// Frees the events of the thread's latest run, unless the thread is busy or has a suspended run.
    pub(super) fn forget(&self, run_id: &str) {
        let mut state = self.lock();
        let is_over = !state.is_busy && state.suspended.is_none();
        if !is_over || state.run_id.as_deref() != Some(run_id) {
            return;
        }
        let log = std::mem::replace(&mut state.log, ReplayLog::new(self.max_log));
        drop(state);
        // The log also holds references to messages, so the log is dropped before the references are counted.
        drop(log);
        // Labels of messages that the conversation no longer contains are removed, too.
        let is_unused = |_: &usize, label: &mut MessageLabel| Arc::strong_count(&label.message) == 1;
        let gone: Vec<_> = self.lock().labels.extract_if(is_unused).collect();
        drop(gone);
    }

    pub(super) fn disconnect(&self, code: &str) {
        let mut state = self.lock();
        state.closing = Some(code.to_owned());
        let readers = std::mem::take(&mut state.readers);
        let (attaching, live): (Vec<_>, Vec<_>) =
            readers.into_iter().partition(|reader| reader.encoder.is_none());
        // The encoders of these readers are still reading earlier events. `catch_up` ends their responses afterwards.
        state.ended.extend(attaching);
        drop(state);
        for reader in live {
            reader.finish(code);
        }
    }

    /// Lets a reader follow the run. If the encoder has not read all events yet, returns it with the remaining events instead.
    pub(super) fn go_live(&self, id: u64, mut encoder: UiEncoder) -> AttachStep {
        let mut state = self.lock();
        if let Some(code) = &state.error_code {
            encoder.set_error_code(code);
        }
        let Some(reader) = state.readers.iter_mut().find(|reader| reader.id == id) else {
            let at = state.ended.iter().position(|reader| reader.id == id);
            let backlog = at.map(|at| state.ended.swap_remove(at).backlog);
            return AttachStep::Over(encoder, backlog.unwrap_or_default());
        };
        let backlog = std::mem::take(&mut reader.backlog);
        if !backlog.is_empty() {
            return AttachStep::More(encoder, backlog);
        }
        reader.encoder = Some(encoder);
        AttachStep::Live
    }

    pub(super) fn settle(&self, suspended: Option<SuspendedRun>) {
        let mut state = self.lock();
        state.is_busy = false;
        state.handle = None;
        state.suspended = suspended;
        state.last_used = Instant::now();
        drop(state);
        self.settled.notify_waiters();
        self.disconnect("incomplete");
    }

    pub(super) fn take_log(&self) -> ReplayLog {
        std::mem::replace(&mut self.lock().log, ReplayLog::new(self.max_log))
    }

    pub(super) async fn until_settled(&self, at_most: Duration) {
        let settled = async {
            loop {
                let mut next = std::pin::pin!(self.settled.notified());
                next.as_mut().enable();
                if !self.is_busy() {
                    return;
                }
                next.await;
            }
        };
        drop(tokio::time::timeout(at_most, settled).await);
    }
}

impl ThreadState {
    pub(super) fn add_reader(
        &mut self,
        protocol: UiProtocol,
        encoder: Option<UiEncoder>,
        sender: Sender<Bytes>,
        is_cut: Arc<AtomicBool>,
    ) -> u64 {
        self.next_reader += 1;
        self.attendance += 1;
        let id = self.next_reader;
        self.connected.insert(id);
        let backlog = Vec::new();
        self.readers.push(LiveReader { id, protocol, encoder, backlog, sender, is_cut });
        id
    }

    /// Removes a reader. Returns the reader, unless an event is being sent to it at the moment.
    pub(super) fn remove_reader(&mut self, id: u64) -> Option<LiveReader> {
        self.connected.remove(&id);
        let at = self.readers.iter().position(|reader| reader.id == id);
        if at.is_none() {
            self.left.push(id);
        }
        at.map(|at| self.readers.swap_remove(at))
    }

    pub(super) fn reader_count(&self) -> usize {
        self.connected.len()
    }

    pub(super) fn has_readers(&self) -> bool {
        !self.connected.is_empty()
    }

    pub(super) fn is_active(&self) -> bool {
        self.is_busy
    }

    pub(super) fn is_readable(&self) -> bool {
        let is_recent = self.last_used.elapsed() < KEPT;
        !self.log.is_empty() && (self.is_busy || self.suspended.is_some() || is_recent)
    }

    pub(super) fn label(&self, message: &Arc<Message>) -> Option<MessageLabel> {
        self.labels.get(&Arc::as_ptr(message).addr()).cloned()
    }
}

pub(super) struct Reservation {
    thread: Arc<UiThread>,
    is_kept: bool,
}

impl Reservation {
    pub(super) fn thread(&self) -> &Arc<UiThread> {
        &self.thread
    }

    /// Leaves the thread reserved. The task that drives the run releases the thread.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_kept {
            self.thread.lock().is_busy = false;
            self.thread.settled.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::scripted::ScriptedModel;

    #[tokio::test(start_paused = true)]
    async fn a_dropped_reservation_settles_its_thread() {
        let assistant = Assistant::builder(ScriptedModel::new(["Hi"])).build().unwrap();
        let thread = Arc::new(UiThread::new(assistant, 1_000));
        let reserved = thread.reserve().unwrap();
        let start = tokio::time::Instant::now();
        let dropped = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(reserved);
        };
        tokio::join!(thread.until_settled(Duration::from_secs(10)), dropped);
        assert!(!thread.is_busy());
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test]
    async fn a_label_of_a_message_that_only_the_log_holds_is_forgotten() {
        let assistant = Assistant::builder(ScriptedModel::new(["Hi"])).build().unwrap();
        let thread = UiThread::new(assistant, 1_000);
        let message = Arc::new(Message::from(AssistantMessage::default()));
        let kind = EventKind::MessageEnd { message, queued_id: None };
        thread.publish(&Arc::new(Event::new("r".into(), 1, 1, kind)));
        thread.lock().run_id = Some("r".into());
        assert_eq!(thread.lock().labels.len(), 1);
        thread.forget("r");
        assert!(thread.lock().labels.is_empty());
    }

    #[cfg(feature = "ui-ag-ui")]
    #[tokio::test]
    async fn a_reader_that_still_reads_when_the_run_fails_gets_the_error_code() {
        use crate::model::scripted::reply;
        use crate::model::{ModelError, ModelErrorKind};

        let error = ModelError::new(ModelErrorKind::RateLimit, "slowly");
        let assistant = Assistant::builder(ScriptedModel::new([reply().error(error)])).build().unwrap();
        let thread = UiThread::new(assistant.clone(), 1_000);
        let request = super::super::super::UiRequest::new("c");
        let options = super::super::super::UiOptions::default();
        let encoder = UiEncoder::new(UiProtocol::AgUi, assistant.registry(), &options, &request);
        let (sender, _live) = tokio::sync::mpsc::channel(1);
        let id = thread.lock().add_reader(UiProtocol::AgUi, None, sender, Arc::default());
        let mut run = assistant.prompt("go").stream();
        while let Some(event) = run.next().await {
            thread.publish(&event);
        }
        thread.lock().error_code = Some("rate_limit".to_owned());
        thread.settle(None);
        let AttachStep::Over(mut encoder, events) = thread.go_live(id, encoder) else { panic!("it is over") };
        let mut chunks = Vec::new();
        for event in &events {
            encoder.encode(event, &mut chunks);
        }
        assert!(chunks.last().unwrap().json.contains(r#""code":"rate_limit""#), "{chunks:?}");
    }
}
