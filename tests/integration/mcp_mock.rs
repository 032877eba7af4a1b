//! A server that answers as it is told, over HTTP, in the older form of the protocol. It stands on nothing but a socket.

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a request gets.
pub(crate) enum Answer {
    Result(Value),
    Error(i64, &'static str),
    /// This body, whatever it is.
    Raw(String),
    /// Nothing, for a minute.
    Hang,
    /// This stream of bytes, again and again for as long as they are read, after a head of this type.
    Endless(&'static str, &'static str),
    /// The connection ends.
    Close,
}

impl Answer {
    pub(crate) fn tools(names: &[&str]) -> Self {
        let tools: Vec<Value> =
            names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
        Self::Result(json!({"tools": tools}))
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Result(json!({"content": [{"type": "text", "text": text}]}))
    }
}

type Respond = dyn Fn(&str, &Value, usize) -> Answer + Send + Sync;
type RespondToCall = dyn Fn(&str, usize) -> Answer + Send + Sync;

/// Answers by method, and counts from 0 how often each was asked.
pub(crate) struct Mock {
    respond: Arc<Respond>,
    respond_to_call: Arc<RespondToCall>,
    /// The number of bytes of endless answers.
    sent: Arc<AtomicUsize>,
}

impl Mock {
    pub(crate) fn start(respond: impl Fn(&str, &Value, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            respond: Arc::new(respond),
            respond_to_call: Arc::new(|_, _| Answer::Result(json!({}))),
            sent: Arc::default(),
        }
    }

    /// How calls are answered, by tool.
    pub(crate) fn on_call(mut self, respond: impl Fn(&str, usize) -> Answer + Send + Sync + 'static) -> Self {
        self.respond_to_call = Arc::new(respond);
        self
    }

    /// The number of bytes of endless answers that were written.
    pub(crate) fn sent(&self) -> Arc<AtomicUsize> {
        self.sent.clone()
    }

    /// Its URL. It ends with the test's runtime.
    pub(crate) async fn run(self) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let mock = Arc::new(self);
        let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (mock, counts) = (mock.clone(), counts.clone());
                tokio::spawn(async move { mock.serve(stream, &counts).await });
            }
        });
        url
    }

    async fn serve(&self, mut stream: TcpStream, counts: &[AtomicUsize; 2]) {
        let Some((line, body)) = request(&mut stream).await else { return };
        if !line.starts_with("POST") {
            let _ =
                stream.write_all(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
            return;
        }
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        let (method, id) = (message["method"].as_str().unwrap_or_default(), message["id"].clone());
        let answer = match method {
            _ if id.is_null() => {
                let _ = stream
                    .write_all(b"HTTP/1.1 202 Ok\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    .await;
                return;
            }
            "initialize" => Answer::Result(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "mock", "version": "1"},
            })),
            "tools/call" => {
                let tool = message["params"]["name"].as_str().unwrap_or_default();
                (self.respond_to_call)(tool, counts[0].fetch_add(1, Ordering::Relaxed))
            }
            "tools/list" => {
                (self.respond)(method, &message["params"], counts[1].fetch_add(1, Ordering::Relaxed))
            }
            _ => (self.respond)(method, &message["params"], 0),
        };
        let body = match answer {
            Answer::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
            Answer::Error(code, message) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
            }
            Answer::Raw(body) => body,
            Answer::Hang => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                return;
            }
            Answer::Endless(kind, part) => {
                let head = format!("HTTP/1.1 200 Ok\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
                let part = part.repeat(1 << 16);
                let mut written = stream.write_all(head.as_bytes()).await;
                while written.is_ok() {
                    written = stream.write_all(part.as_bytes()).await;
                    self.sent.fetch_add(part.len(), Ordering::Relaxed);
                }
                return;
            }
            Answer::Close => return,
        };
        let head = format!(
            "HTTP/1.1 200 Ok\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body.as_bytes()).await;
    }
}

/// The first line and the body.
async fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = all.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&all[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if all.len() >= end + 4 + length.unwrap_or(0) {
                let line = String::from_utf8_lossy(&all).lines().next()?.to_owned();
                return Some((line, String::from_utf8_lossy(&all[end + 4..]).into_owned()));
            }
        }
        match stream.read(&mut part).await {
            Ok(read) if read > 0 => all.extend_from_slice(&part[..read]),
            _ => return None,
        }
    }
}
