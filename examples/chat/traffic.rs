//! The log of requests and responses of the model and of MCP servers: one JSON object per line, without keys and secret
//! arguments.

use crate::secrets::Secrets;
use agent::Registry;
use agent::model::{Model, ModelError, ModelEvent, ModelInfo, ModelRequest, ModelStream, StepCx};
use agent::traffic::{Traffic, TrafficKind};
use agent::{Value, json};
use futures_core::Stream;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file to which lines are appended. Clones write to the same file.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    inner: Arc<Mutex<Inner>>,
    secrets: Secrets,
}

#[derive(Debug)]
struct Inner {
    file: File,
    /// The unfinished replies, by exchange, if any tool has secret arguments. A secret may be cut between two pieces of a reply, so the
    /// pieces are checked together at its end.
    held: BTreeMap<u64, Held>,
}

/// The pieces of a reply that have arrived.
#[derive(Debug, Default)]
struct Held {
    lines: Vec<Value>,
    /// The text of all pieces.
    text: String,
}

impl Log {
    /// Opens the file to append to it. A new file can be read only by its owner.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = crate::sessions::private().append(true).create(true).open(path)?;
        let inner = Arc::new(Mutex::new(Inner { file, held: BTreeMap::new() }));
        Ok(Self { inner, secrets: Secrets::default() })
    }

    /// Learns which arguments are secret.
    pub(crate) fn learn(&self, registry: &Registry) {
        self.secrets.learn(registry);
    }

    /// Logs what the transport of a provider reports.
    pub(crate) fn traffic(&self, traffic: &Traffic<'_>) {
        let exchange = traffic.exchange;
        match &traffic.kind {
            TrafficKind::Request { method, url, headers, body, .. } => {
                let body = self.shown(body, None);
                self.of_exchange(
                    exchange,
                    json!({"kind": "request", "method": method, "url": url, "headers": pairs(headers), "body": body}),
                );
            }
            TrafficKind::Response { status, headers, .. } => {
                let line = json!({"kind": "answer", "status": status, "headers": pairs(headers)});
                self.of_exchange(exchange, line);
            }
            TrafficKind::Body { text, .. } => {
                self.of_reply(exchange, text, json!({"kind": "body", "text": text}));
            }
            TrafficKind::End { error, .. } => {
                self.end(exchange, json!({"kind": "end", "error": error.map(ToString::to_string)}));
            }
            _ => {}
        }
    }

    /// Logs the traffic with an MCP server.
    pub(crate) fn mcp(&self, traffic: &Traffic<'_>) {
        let server = Some(traffic.server);
        let mut line = match traffic.kind {
            TrafficKind::Sent { message, .. } => {
                json!({"kind": "mcp_sent", "message": self.shown(message, server)})
            }
            TrafficKind::Received { message, .. } => {
                json!({"kind": "mcp_received", "message": self.shown(message, server)})
            }
            TrafficKind::ErrorOutput { line, .. } => json!({"kind": "mcp_error_output", "line": line}),
            TrafficKind::Failed { reason, .. } => json!({"kind": "mcp_failed", "error": reason}),
            TrafficKind::Closed => json!({"kind": "mcp_closed"}),
            _ => return,
        };
        line["server"] = json!(traffic.server);
        self.write(&stamped(line));
    }

    /// Returns a body without the secret arguments of its calls. `server` is the MCP server, or `None` for the model's provider.
    fn shown(&self, body: &str, server: Option<&str>) -> Value {
        let mut body = body_of(body);
        if !self.secrets.is_empty() {
            self.secrets.hide(&mut body, server);
        }
        body
    }

    fn of_exchange(&self, exchange: u64, mut line: Value) {
        line["exchange"] = json!(exchange);
        self.write(&stamped(line));
    }

    /// Logs a piece of a reply. If any tool has secret arguments, the piece is held back until the reply ends.
    fn of_reply(&self, exchange: u64, text: &str, mut line: Value) {
        line["exchange"] = json!(exchange);
        let line = stamped(line);
        if self.secrets.is_empty() {
            return self.write(&line);
        }
        let mut inner = self.lock();
        let held = inner.held.entry(exchange).or_default();
        held.text.push_str(text);
        held.lines.push(line);
    }

    /// Logs the end of a reply, preceded by the pieces that were held back, or by a note if they may contain secrets.
    fn end(&self, exchange: u64, line: Value) {
        let held = self.lock().held.remove(&exchange).unwrap_or_default();
        if self.secrets.are_called_in(&held.text) {
            let why =
                "it calls a tool that has secret arguments; the next request shows the call without them";
            self.of_exchange(
                exchange,
                json!({"kind": "body", "left_out": why, "bytes": held.text.len(), "pieces": held.lines.len()}),
            );
        } else {
            held.lines.iter().for_each(|line| self.write(line));
        }
        self.of_exchange(exchange, line);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, line: &Value) {
        // One write per line, so that lines stay whole. Errors are ignored: a full disk does not end the chat.
        let _ = self.lock().file.write_all(format!("{line}\n").as_bytes());
    }
}

/// Adds the current time to a line.
fn stamped(mut line: Value) -> Value {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    line["at_ms"] = json!(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    line
}

/// Parses a body, because JSON is easier to read in the log. A body that is not JSON stays a text.
fn body_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| body.into())
}

fn pairs(headers: &[(String, String)]) -> Value {
    headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

/// A model without HTTP. Its requests and events are logged in the SDK's own format.
pub(crate) struct Logged<M> {
    model: M,
    log: Log,
}

impl<M> Logged<M> {
    pub(crate) fn new(model: M, log: Log) -> Self {
        Self { model, log }
    }
}

impl<M: Model> Model for Logged<M> {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        // The transport of a provider counts its exchanges from 1, in the same log.
        static EXCHANGES: AtomicU64 = AtomicU64::new(1 << 32);
        let exchange = EXCHANGES.fetch_add(1, Ordering::Relaxed) + 1;
        let messages: Vec<Value> = request
            .messages
            .iter()
            .map(|message| serde_json::to_value(&**message).unwrap_or_default())
            .collect();
        let tools: Vec<&str> = request.tools.iter().map(agent::ToolDefinition::name).collect();
        let mut body = json!({"system": request.system, "messages": messages, "tools": tools});
        self.log.secrets.hide(&mut body, None);
        self.log.of_exchange(exchange, json!({"kind": "request", "model": self.info().model, "body": body}));
        let events = self.model.stream(cx, request);
        let events = Tapped { events, log: self.log.clone(), exchange, has_ended: false };
        ModelStream::new(cx, self.info(), events)
    }

    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn context_window(&self) -> Option<u64> {
        self.model.context_window()
    }

    fn max_output(&self) -> Option<u64> {
        self.model.max_output()
    }
}

struct Tapped {
    events: ModelStream,
    log: Log,
    exchange: u64,
    has_ended: bool,
}

impl Tapped {
    fn end(&mut self, error: Option<&str>) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.log.end(self.exchange, json!({"kind": "end", "error": error}));
        }
    }
}

impl Stream for Tapped {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(Pin::new(&mut self.events).poll_next(cx));
        match &event {
            Some(Ok(event)) => {
                let text = serde_json::to_string(event).unwrap_or_default();
                self.log.of_reply(self.exchange, &text, json!({"kind": "event", "event": event}));
            }
            Some(Err(error)) => self.end(Some(&error.to_string())),
            None => self.end(None),
        }
        Poll::Ready(event)
    }
}

impl Drop for Tapped {
    /// Ends the entry of a stream that is not read to its end, as in a cancelled run.
    fn drop(&mut self) {
        self.end(Some("it was not read any further"));
    }
}
