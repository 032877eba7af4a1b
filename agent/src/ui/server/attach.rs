//! Readers that connect while a run is active, is suspended, or has just ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use http::Response;
use tokio::sync::mpsc;

use super::super::{UiChunk, UiEncoder, UiProtocol, UiRequest, UiRequestError};
use super::UiServer;
use super::drive::QUEUE;
use super::history::labelled;
use super::response::{self, UiBody};
use super::thread::{AttachStep, ThreadState, UiThread};
use crate::loop_core::Event;

impl UiServer {
    pub(super) fn attach_to(
        &self,
        thread: &Arc<UiThread>,
        protocol: UiProtocol,
        request: &UiRequest,
        after: Option<&str>,
    ) -> Result<Response<UiBody>, UiRequestError> {
        let (registry, options) = self.shown_by(thread);
        let mut encoder = UiEncoder::new(protocol, &registry, &options, request);
        let (sender, live) = mpsc::channel(QUEUE);
        let is_cut = Arc::new(AtomicBool::new(false));
        // The log is read and the reader added under one lock, so that no event is lost or sent twice. The lock is released before chunks
        // are made, because an encoder calls functions of the application.
        let (events, reply_at, after, messages, id) = {
            let mut state = thread.lock();
            if !state.is_readable() {
                return Ok(response::empty());
            }
            if state.reader_count() >= self.shared.limits.readers {
                return Err(UiRequestError::TooManyReaders { max: self.shared.limits.readers });
            }
            if let Some(code) = &state.error_code {
                encoder.set_error_code(code);
            }
            let after = after.and_then(|after| position(&state, after));
            let messages = labelled(thread, &state);
            let (events, reply_at) = state.log.events();
            let is_live = state.is_active();
            let id = is_live.then(|| state.add_reader(protocol, None, sender, is_cut.clone()));
            (events, reply_at, after, messages, id)
        };
        let mut chunks = if let Some(after) = after {
            rest(&events, &mut encoder, after, id.is_some())
        } else {
            let (chunks, from) = replay(&events, reply_at, &mut encoder, id.is_some());
            match protocol {
                #[cfg(feature = "ui-ai-sdk")]
                UiProtocol::AiSdk => {
                    let _ = (from, messages);
                    chunks
                }
                #[cfg(feature = "ui-ag-ui")]
                UiProtocol::AgUi => snapshot(&chunks, from, &self.history_of(protocol, thread, &messages)),
            }
        };
        let is_live = id.is_some_and(|id| catch_up(thread, id, encoder, &mut chunks));
        let mut ready: VecDeque<Bytes> = chunks.iter().map(|chunk| chunk.to_sse().into()).collect();
        if !is_live {
            ready.push_back(protocol.end_mark().into());
        }
        let body = match id {
            Some(id) => self.body(thread, protocol, ready, live, is_cut, id),
            None => UiBody::new(protocol, ready, None, is_cut, None, || {}),
        };
        Ok(response::stream(protocol, body))
    }
}

/// Encodes the events that arrived in the meantime, until the reader is up to date. Returns `true` if the reader now follows the run, and
/// `false` if its response has ended.
fn catch_up(thread: &UiThread, id: u64, mut encoder: UiEncoder, chunks: &mut Vec<UiChunk>) -> bool {
    loop {
        match thread.go_live(id, encoder) {
            AttachStep::Live => return true,
            AttachStep::More(behind, events) => {
                encoder = behind;
                for event in &events {
                    encoder.encode(event, chunks);
                }
            }
            AttachStep::Over(mut over, events) => {
                for event in &events {
                    over.encode(event, chunks);
                }
                over.end(chunks);
                return false;
            }
        }
    }
}

/// Encodes the run so far. Returns the chunks, and the position of the first chunk of the current reply. Without a current reply, the
/// position is the number of chunks.
fn replay(
    events: &[Arc<Event>],
    reply_at: Option<usize>,
    encoder: &mut UiEncoder,
    is_live: bool,
) -> (Vec<UiChunk>, usize) {
    let mut chunks = Vec::new();
    let mut reply_from = None;
    for (at, event) in events.iter().enumerate() {
        if reply_at == Some(at) {
            reply_from = Some(chunks.len());
        }
        encoder.encode(event, &mut chunks);
    }
    let from = reply_from.unwrap_or(chunks.len());
    if !is_live {
        encoder.end(&mut chunks);
    }
    (chunks, from)
}

/// The number of an event, and the number of a chunk of this event.
type ChunkPosition = (u64, u32);

/// Returns the position after which a client requests chunks, or `None` if the client must receive the whole run.
fn position(state: &ThreadState, after: &str) -> Option<ChunkPosition> {
    let (run_id, position) = after.rsplit_once(':')?;
    let (seq, chunk) = position_of(position)?;
    (state.run_id.as_deref() == Some(run_id) && state.log.has_all_after(seq)).then_some((seq, chunk))
}

fn position_of(text: &str) -> Option<ChunkPosition> {
    match text.split_once('.') {
        Some((seq, chunk)) => Some((seq.parse().ok()?, chunk.parse().ok()?)),
        None => Some((text.parse().ok()?, u32::MAX)),
    }
}

fn rest(events: &[Arc<Event>], encoder: &mut UiEncoder, after: ChunkPosition, is_live: bool) -> Vec<UiChunk> {
    let mut chunks = Vec::new();
    for event in events {
        encoder.encode(event, &mut chunks);
    }
    let is_new = |chunk: &UiChunk| {
        let position = chunk.id.rsplit_once(':').and_then(|(_, position)| position_of(position));
        position.is_none_or(|position| position > after)
    };
    chunks.retain(is_new);
    if !is_live {
        encoder.end(&mut chunks);
    }
    chunks
}

/// Returns the run id of the sub-agent that the chunk belongs to, if any.
#[cfg(feature = "ui-ag-ui")]
fn child_of(json: &str) -> Option<String> {
    // This check is faster than parsing, and most chunks belong to no sub-agent.
    if !json.contains("\"subagentRunId\":") {
        return None;
    }
    serde_json::from_str::<serde_json::Value>(json).ok()?["subagentRunId"].as_str().map(str::to_owned)
}

/// Returns the chunks of a run for a new reader of AG-UI: the start, a snapshot of the messages so far, and all chunks from `from` on.
/// Earlier chunks are repeated only if the snapshot lacks their content, because a client shows repeated content twice.
#[cfg(feature = "ui-ag-ui")]
fn snapshot(chunks: &[UiChunk], from: usize, history: &serde_json::Value) -> Vec<UiChunk> {
    use serde_json::json;

    let (before, rest) = chunks.split_at(from.min(chunks.len()));
    let is = |chunk: &UiChunk, kind: &str| chunk.json.starts_with(&format!("{{\"type\":\"{kind}\""));
    // If the run has finished, the last chunk before `from` is its end, which is sent last.
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
    // The history lacks the results of a reply until all its calls have ended. Results that are missing are sent again.
    let known = |chunk: &UiChunk| {
        let result: serde_json::Value = serde_json::from_str(&chunk.json).unwrap_or_default();
        history.as_array().is_some_and(|list| list.iter().any(|message| message["id"] == result["messageId"]))
    };
    let (of_children, own): (Vec<_>, Vec<_>) =
        before.iter().partition(|chunk| child_of(&chunk.json).is_some());
    let results = own.into_iter().filter(|chunk| is(chunk, "TOOL_CALL_RESULT"));
    all.extend(results.filter(|chunk| !known(chunk)).cloned());
    // The history has no runs of sub-agents, so their chunks are repeated, except the chunks of ended runs.
    let has_ended = |child: &Option<String>| {
        let ends = |chunk: &&&UiChunk| is(chunk, "SUBAGENT_FINISHED") || is(chunk, "SUBAGENT_ERROR");
        of_children.iter().filter(ends).any(|chunk| child_of(&chunk.json) == *child)
    };
    all.extend(of_children.iter().filter(|chunk| !has_ended(&child_of(&chunk.json))).copied().cloned());
    if before.is_empty() {
        all.extend(rest.iter().skip(1).cloned());
    } else {
        all.extend(rest.iter().cloned());
    }
    all.extend(end.cloned());
    all
}
