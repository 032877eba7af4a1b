//! Raw HTTP to a server under test, and servers that behave as told.

use agent::mcp::{ClientConfig, McpServer, ServerHandle};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A server that runs, and ends with the test.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) handle: ServerHandle,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Completes when the server has ended.
    pub(crate) async fn ended(&mut self) {
        (&mut self.task).await.unwrap();
    }
}

pub(crate) async fn run(server: McpServer) -> Running {
    let handle = server.handle();
    let (url, serving) = server.bind(([127, 0, 0, 1], 0)).await.unwrap();
    let address = url["http://".len()..].trim_end_matches("/mcp").parse().unwrap();
    Running { address, handle, task: tokio::spawn(serving) }
}

/// The form of the protocol that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Auto,
    Modern,
    Legacy,
}

impl Era {
    pub(crate) fn of(self, config: ClientConfig) -> ClientConfig {
        match self {
            Self::Auto => config,
            Self::Modern => config.modern(),
            Self::Legacy => config.legacy(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        // A stream of events, or one document.
        let last = self.body.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&self.body);
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// The text of a result, after `isError: `, if it is one.
    pub(crate) fn text(&self) -> String {
        let result = self.json()["result"].clone();
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{self:?}"));
        if result["isError"] == true { format!("isError: {text}") } else { text.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (own, value) = line.split_once(": ")?;
            own.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A request as it is, on a connection of its own.
pub(crate) async fn send(address: SocketAddr, request: &str) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that does not want the rest of a body closes early.
    let _ = stream.write_all(request.as_bytes()).await;
    read(stream).await
}

pub(crate) async fn read(mut stream: TcpStream) -> Reply {
    let mut all = Vec::new();
    let reading = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut all));
    let _ = reading.await.expect("an answer within 30 s");
    let all = String::from_utf8_lossy(&all).into_owned();
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {all:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { dechunked(body) } else { body.to_owned() };
    Reply { status, head: head.to_owned(), body }
}

fn dechunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        out.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    out
}

/// A POST with more headers, each with its line end.
pub(crate) async fn post(address: SocketAddr, headers: &str, body: &str) -> Reply {
    let host = if headers.to_lowercase().contains("host: ") {
        String::new()
    } else {
        format!("host: {address}\r\n")
    };
    let length = body.len();
    send(
        address,
        &format!(
            "POST /mcp HTTP/1.1\r\n{host}connection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ),
    )
    .await
}

pub(crate) fn message(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// A request of the older versions, which need no headers.
pub(crate) async fn ask(address: SocketAddr, method: &str, params: Value) -> Reply {
    post(address, "", &message(method, &params)).await
}

pub(crate) async fn call(address: SocketAddr, tool: &str, arguments: Value) -> Reply {
    ask(address, "tools/call", json!({"name": tool, "arguments": arguments})).await
}

/// A request of 2026-07-28, with its headers.
pub(crate) async fn modern(address: SocketAddr, headers: &str, method: &str, mut params: Value) -> Reply {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params["name"].as_str().map_or(String::new(), |name| format!("mcp-name: {name}\r\n"));
    let standard = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}");
    post(address, &format!("{standard}{headers}"), &message(method, &params)).await
}

pub(crate) fn names(reply: &Reply) -> Vec<String> {
    let tools = reply.json()["result"]["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}
