//! The log of what goes to the model and to MCP servers and comes back: one JSON object a line, keys taken out.

use agent::mcp::client as mcp;
use agent::model::{Model, ModelError, ModelEvent, ModelInfo, ModelRequest, ModelStream, StepCx};
use agent::provider::http::{Traffic, TrafficKind};
use agent::{Value, json};
use futures_core::Stream;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that lines are added to. Clones write to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    file: Arc<Mutex<File>>,
}

impl Log {
    /// Adds to this file; a new one can be read by its owner alone.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = crate::sessions::private().append(true).create(true).open(path)?;
        Ok(Self { file: Arc::new(Mutex::new(file)) })
    }

    /// What a provider's transport tells.
    pub(crate) fn traffic(&self, traffic: &Traffic<'_>) {
        let line = match &traffic.kind {
            TrafficKind::Request { method, url, headers, body, .. } => {
                json!({"kind": "request", "method": method, "url": url, "headers": pairs(headers), "body": body_of(body)})
            }
            TrafficKind::Answer { status, headers, .. } => {
                json!({"kind": "answer", "status": status, "headers": pairs(headers)})
            }
            TrafficKind::Body { text, .. } => json!({"kind": "body", "text": text}),
            TrafficKind::End { error, .. } => {
                json!({"kind": "end", "error": error.map(ToString::to_string)})
            }
            _ => return,
        };
        self.of_exchange(traffic.exchange, line);
    }

    /// What an MCP server is told, and says.
    pub(crate) fn mcp(&self, traffic: &mcp::Traffic<'_>) {
        let mut line = match traffic.kind {
            mcp::TrafficKind::Sent { message, .. } => {
                json!({"kind": "mcp_sent", "message": body_of(message)})
            }
            mcp::TrafficKind::Received { message, .. } => {
                json!({"kind": "mcp_received", "message": body_of(message)})
            }
            mcp::TrafficKind::ErrorOutput { line, .. } => json!({"kind": "mcp_error_output", "line": line}),
            mcp::TrafficKind::Failed { reason, .. } => json!({"kind": "mcp_failed", "error": reason}),
            mcp::TrafficKind::Closed => json!({"kind": "mcp_closed"}),
            _ => return,
        };
        line["server"] = json!(traffic.server);
        self.write(line);
    }

    fn of_exchange(&self, exchange: u64, mut line: Value) {
        line["exchange"] = json!(exchange);
        self.write(line);
    }

    fn write(&self, mut line: Value) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        line["at_ms"] = json!(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write, so that lines stay whole. A full disk is no reason to end the chat.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// A body as JSON where it is JSON: easier to read.
fn body_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| body.into())
}

fn pairs(headers: &[(String, String)]) -> Value {
    headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

/// A model without HTTP, logged in neutral words.
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
        static EXCHANGES: AtomicU64 = AtomicU64::new(0);
        let exchange = EXCHANGES.fetch_add(1, Ordering::Relaxed) + 1;
        let messages: Vec<Value> = request
            .messages
            .iter()
            .map(|message| serde_json::to_value(&**message).unwrap_or_default())
            .collect();
        let tools: Vec<&str> = request.tools.iter().map(agent::ToolDefinition::name).collect();
        let body = json!({"system": request.system, "messages": messages, "tools": tools});
        self.log.of_exchange(exchange, json!({"kind": "request", "model": self.info().model, "body": body}));
        let events = Tapped { events: self.model.stream(cx, request), log: self.log.clone(), exchange };
        ModelStream::new(cx, self.info(), events)
    }

    fn info(&self) -> &ModelInfo {
        self.model.info()
    }
}

struct Tapped {
    events: ModelStream,
    log: Log,
    exchange: u64,
}

impl Stream for Tapped {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(Pin::new(&mut self.events).poll_next(cx));
        let line = match &event {
            Some(Ok(event)) => json!({"kind": "event", "event": event}),
            Some(Err(error)) => json!({"kind": "end", "error": error.to_string()}),
            None => json!({"kind": "end", "error": null}),
        };
        self.log.of_exchange(self.exchange, line);
        Poll::Ready(event)
    }
}
