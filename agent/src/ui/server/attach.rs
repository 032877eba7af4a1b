//! Readers that come while a run is active, waits, or has just ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::super::{UiChunk, UiEncoder, UiProtocol, UiRequest, UiRequestError};
use super::UiServer;
use super::drive::QUEUE;
use super::response::{UiBody, UiResponse};
use super::thread::{ThreadState, UiThread};

impl UiServer {
    pub(super) fn attach_to(
        &self,
        thread: &Arc<UiThread>,
        protocol: UiProtocol,
        request: &UiRequest,
        after: Option<&str>,
    ) -> Result<UiResponse, UiRequestError> {
        let options = &self.shared.options;
        let mut encoder = UiEncoder::new(protocol, thread.assistant.registry(), options, request);
        // The log is read and the reader added under one lock: nothing is missing, and nothing comes twice.
        let mut state = thread.lock();
        if !state.is_readable() {
            return Ok(UiResponse::empty());
        }
        if state.readers.len() >= self.shared.limits.readers {
            return Err(UiRequestError::TooManyReaders { max: self.shared.limits.readers });
        }
        let is_live = state.is_active();
        if let Some(code) = &state.error_code {
            encoder.set_error_code(code);
        }
        let chunks = match after.and_then(|after| position(&state, after)) {
            Some(after) => rest(&state, &mut encoder, after, is_live),
            None => self.replay(thread, &state, protocol, &mut encoder, is_live),
        };
        let mut ready: VecDeque<Bytes> = chunks.iter().map(|chunk| chunk.to_sse().into()).collect();
        let is_cut = Arc::new(AtomicBool::new(false));
        if !is_live {
            drop(state);
            ready.push_back(protocol.end_mark().into());
            return Ok(UiResponse::stream(protocol, UiBody::new(protocol, ready, None, is_cut, || {})));
        }
        let (sender, live) = mpsc::channel(QUEUE);
        let id = state.add_reader(protocol, encoder, sender, is_cut.clone());
        drop(state);
        Ok(UiResponse::stream(protocol, self.body(thread, protocol, ready, live, is_cut, id)))
    }

    /// Returns the whole run so far.
    #[cfg_attr(
        not(feature = "ui-ag-ui"),
        allow(clippy::unused_self, reason = "the protocol that needs it is off")
    )]
    fn replay(
        &self,
        thread: &UiThread,
        state: &ThreadState,
        protocol: UiProtocol,
        encoder: &mut UiEncoder,
        is_live: bool,
    ) -> Vec<UiChunk> {
        let mut chunks = Vec::new();
        let mut reply_from = None;
        for (at, event) in state.log.events().iter().enumerate() {
            if state.log.open_reply() == Some(at) {
                reply_from = Some(chunks.len());
            }
            encoder.encode(event, &mut chunks);
        }
        let end_from = chunks.len();
        if !is_live {
            encoder.end(&mut chunks);
        }
        match protocol {
            #[cfg(feature = "ui-ai-sdk")]
            UiProtocol::AiSdk => {
                let _ = (thread, reply_from, end_from);
                chunks
            }
            #[cfg(feature = "ui-ag-ui")]
            UiProtocol::AgUi => {
                let history = self.history_of(protocol, thread, state);
                snapshot(&chunks, reply_from.unwrap_or(end_from), &history)
            }
        }
    }
}

/// Returns the number of the event after which a client wants the rest, if it can get that alone.
fn position(state: &ThreadState, after: &str) -> Option<u64> {
    let (run_id, position) = after.rsplit_once(':')?;
    let seq = position.split_once('.').map_or(position, |(seq, _)| seq).parse().ok()?;
    (state.run_id.as_deref() == Some(run_id) && state.log.has_all_after(seq)).then_some(seq)
}

fn rest(state: &ThreadState, encoder: &mut UiEncoder, after: u64, is_live: bool) -> Vec<UiChunk> {
    let (mut seen, mut chunks) = (Vec::new(), Vec::new());
    for event in state.log.events() {
        encoder.encode(event, if event.seq <= after { &mut seen } else { &mut chunks });
    }
    if !is_live {
        encoder.end(&mut chunks);
    }
    chunks
}

/// Returns a run of AG-UI as its start, the messages so far, and everything from `from` on: events that were sent before would be added to
/// messages that the client has.
#[cfg(feature = "ui-ag-ui")]
fn snapshot(chunks: &[UiChunk], from: usize, history: &serde_json::Value) -> Vec<UiChunk> {
    use serde_json::json;

    let (before, rest) = chunks.split_at(from.min(chunks.len()));
    let is = |chunk: &UiChunk, kind: &str| chunk.json.starts_with(&format!("{{\"type\":\"{kind}\""));
    // A run that is over ends with its last event, and that is among those before.
    let end = before.last().filter(|chunk| is(chunk, "RUN_FINISHED") || is(chunk, "RUN_ERROR"));
    let mut step: Option<&UiChunk> = None;
    for chunk in before {
        if is(chunk, "STEP_STARTED") {
            step = Some(chunk);
        } else if is(chunk, "STEP_FINISHED") {
            step = None;
        }
    }
    let Some(start) = before.first().or_else(|| rest.first()) else { return Vec::new() };
    let mut all = vec![start.clone()];
    all.extend(step.filter(|_| end.is_none()).cloned());
    let messages = json!({"type": "MESSAGES_SNAPSHOT", "messages": history});
    all.push(UiChunk { id: start.id.clone(), json: messages.to_string() });
    if before.is_empty() {
        all.extend(rest.iter().skip(1).cloned());
    } else {
        all.extend(rest.iter().cloned());
    }
    all.extend(end.cloned());
    all
}
