//! A server on loopback that answers as it is told, and bodies to answer with.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::message::Message;
use agent::model::{ModelRequest, ModelStream};
use agent::provider::http::{HttpModel, HttpModelBuilder, HttpOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with a connection, after it has read the request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    /// The connection is cut with bytes still promised.
    Reset,
    /// The connection is reset, at once.
    Abort,
    /// Nothing more comes, and the connection stays.
    Stall,
}

pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Each connection gets the next list of steps; the last one again and again.
    pub(crate) async fn new(script: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let script: Vec<_> = script.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let steps = script.get(number).or(script.last()).cloned().unwrap_or_default();
                number += 1;
                tokio::spawn(serve(stream, steps, seen.clone()));
            }
        });
        Self { url, requests }
    }

    /// The requests so far: heads and bodies as they came.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn anthropic(&self) -> HttpModelBuilder {
        HttpModel::builder("anthropic/claude-test").base_url(&self.url).key("sk-secret-key").options(quick())
    }

    pub(crate) fn openai(&self) -> HttpModelBuilder {
        HttpModel::builder("openai/gpt-4o")
            .base_url(format!("{}/v1", self.url))
            .key("sk-secret-key")
            .options(quick())
    }
}

impl Server {
    /// A model of each protocol, with the body of a good answer (`Hello`) and of an error event in the middle of one.
    pub(crate) fn all(&self) -> [(HttpModelBuilder, Vec<u8>, &'static str); 4] {
        let model = |name: &str, url: &str| {
            HttpModel::builder(name)
                .base_url(format!("{}{url}", self.url))
                .key("sk-secret-key")
                .options(quick())
        };
        [
            (
                model("openai/gpt-4o", "/v1"),
                CHAT.into(),
                "data: {\"error\":{\"message\":\"busy\",\"code\":\"overloaded\"}}\n\n",
            ),
            (
                model("openai-responses/gpt-5", "/v1"),
                RESPONSES.into(),
                "data: {\"type\":\"error\",\"code\":\"overloaded\",\"message\":\"busy\"}\n\n",
            ),
            (
                model("anthropic/claude-test", ""),
                anthropic_stream(),
                "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
            ),
            (
                model("gemini/gemini-3-flash", ""),
                GEMINI.into(),
                "data: {\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":\"busy\"}}\r\n\r\n",
            ),
        ]
    }
}

async fn serve(mut stream: TcpStream, steps: Vec<Step>, seen: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
    seen.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
    for step in steps {
        match step {
            Step::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::Reset => {
                drop(stream);
                return;
            }
            Step::Abort => {
                drop(stream.set_zero_linger());
                return;
            }
            Step::Stall => {
                // Until the other side goes.
                while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
                return;
            }
        }
    }
    drop(stream.shutdown().await);
}

/// Retries without pauses worth waiting for, and little patience; enough for a machine that is busy.
pub(crate) fn quick() -> HttpOptions {
    let patience = Duration::from_millis(1500);
    let mut options = HttpOptions::default()
        .with_idle_timeout(patience)
        .with_first_byte_timeout(patience)
        .with_connect_timeout(patience);
    options.first_delay = Duration::from_millis(1);
    options
}

/// A whole answer with a length.
pub(crate) fn answer(status: u16, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<Step> {
    let body = body.as_ref();
    let mut bytes = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for header in headers {
        bytes.push_str(header);
        bytes.push_str("\r\n");
    }
    bytes.push_str("\r\n");
    vec![Step::Send([bytes.as_bytes(), body].concat())]
}

/// The head of an answer whose body ends with the connection, or is longer than what comes.
pub(crate) fn head(length: Option<usize>) -> Step {
    let length = length.map(|length| format!("content-length: {length}\r\n")).unwrap_or_default();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{length}connection: close\r\n\r\n");
    Step::Send(head.into_bytes())
}

pub(crate) fn send(text: impl AsRef<[u8]>) -> Step {
    Step::Send(text.as_ref().to_vec())
}

pub(crate) const ANTHROPIC_START: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","model":"claude-test-1","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}

"#;

pub(crate) const ANTHROPIC_TEXT: &str = r#"event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

"#;

pub(crate) const ANTHROPIC_END: &str = r#"event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

event: message_stop
data: {"type":"message_stop"}

"#;

pub(crate) const CHAT: &str = r#"data: {"id":"c1","model":"gpt-4o-1","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}

data: [DONE]

"#;

pub(crate) const RESPONSES: &str = r#"data: {"type":"response.created","response":{"id":"r1","model":"gpt-5-1","status":"in_progress","output":[]}}

data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","content":[]}}

data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m1","delta":"Hello"}

data: {"type":"response.completed","response":{"id":"r1","status":"completed","output":[{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}],"usage":{"input_tokens":7,"output_tokens":2}}}

"#;

pub(crate) const GEMINI: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hello\"}]}}]}\r\n\r\n\
    data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":7}}\r\n\r\n";

pub(crate) fn anthropic_stream() -> Vec<u8> {
    [ANTHROPIC_START, ANTHROPIC_TEXT, ANTHROPIC_END].concat().into_bytes()
}

pub(crate) fn hi() -> ModelRequest {
    ModelRequest::new([Message::user("Hi")])
}

/// Reads to the end: the text that was handed out, and how it ended.
pub(crate) async fn drain(
    mut stream: ModelStream,
) -> (String, Result<agent::message::AssistantMessage, agent::model::ModelError>) {
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        if let Ok(event) = event {
            text.push_str(event.text_delta().unwrap_or_default());
        }
    }
    (text, stream.reply().await)
}
