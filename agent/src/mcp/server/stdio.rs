//! The server over standard input and output: one message per line.

use super::built::{BuiltServer, RawArguments};
use super::error::McpServerError;
use super::handler::ProtocolHandler;
use super::http::Envelope;
use crate::mcp::ErrorCode;
use crate::serve::ShutdownPhase;
use crate::tool::cancel::CancelToken;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, ServiceExt, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

/// Maximum length of a line, in bytes. A longer line is answered with an error.
const LONGEST_LINE: usize = 16 << 20;
/// Maximum number of unanswered requests. At this number, no further line is read until an answer was written.
const MAX_OPEN: usize = 1_024;
/// The time limit of a write, as a multiple of the limit for HTTP connections.
const SEND_FACTOR: u32 = 10;
/// Maximum capacity of the buffer of written lines when the buffer is reused for new lines, in bytes.
const MAX_SPARE: usize = 64 << 10;
/// Maximum wait for the end of running calls, after the input ended or the server was stopped.
const GRACE: Duration = Duration::from_secs(5);

/// Serves one connection until the input ends, the output cannot be written or a `ServerHandle` shuts down the server.
pub(super) async fn serve(
    shared: Arc<BuiltServer>,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), McpServerError> {
    let handle = shared.handle.clone();
    let lines = LineTransport::new(input, output, shared.limits.send.saturating_mul(SEND_FACTOR));
    let handler = ProtocolHandler { shared, admitted: None };
    let started = tokio::select! {
        started = handler.serve(lines) => started,
        () = handle.reached(ShutdownPhase::Draining) => return Ok(()),
    };
    let running = match started {
        Ok(running) => running,
        // A client that closes the input without a message is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(McpServerError::Connection { reason: error.to_string() }),
    };
    let token = running.cancellation_token();
    let mut waiting = pin!(running.waiting());
    tokio::select! {
        _ = &mut waiting => {}
        () = handle.reached(ShutdownPhase::Stopped) => {
            token.cancel();
            let _ = tokio::time::timeout(GRACE, waiting).await;
        }
    }
    handle.shutdown(Duration::ZERO).await;
    Ok(())
}

/// A transport of messages as lines. `rmcp` may drop the future of a read at any time, so the part of a line that was already
/// read is stored in the transport.
struct LineTransport<I, O> {
    input: BufReader<I>,
    output: Arc<LineOutput<O>>,
    line: Vec<u8>,
    /// Whether the rest of the current line is skipped, because the line is too long.
    is_skipping: bool,
    open: watch::Sender<OpenRequests>,
    /// The time at which the server stops waiting for answers; set when the input ends.
    end: Option<Instant>,
}

#[derive(Default)]
struct OpenRequests {
    /// The ids of requests that wait for an answer of `rmcp`. A repeated id is stored once, because `rmcp` answers each id at most once.
    ids: HashSet<RequestId>,
    writing: usize,
}

impl OpenRequests {
    fn len(&self) -> usize {
        self.ids.len() + self.writing
    }
}

/// The output stream. After a line was cut off, every further write fails.
struct LineOutput<O> {
    /// The stream, and a buffer that is reused for the lines of each write.
    stream: Mutex<(O, Vec<u8>)>,
    waiting: SyncMutex<Vec<u8>>,
    /// Maximum time of one write.
    limit: Duration,
    failed: CancelToken,
}

impl<I: AsyncRead + Unpin, O: AsyncWrite + Unpin> LineTransport<I, O> {
    fn new(input: I, output: O, limit: Duration) -> Self {
        let (stream, waiting) = (Mutex::new((output, Vec::new())), SyncMutex::default());
        let output = LineOutput { stream, waiting, limit, failed: CancelToken::new() };
        Self {
            input: BufReader::new(input),
            output: Arc::new(output),
            line: Vec::new(),
            is_skipping: false,
            open: watch::Sender::default(),
            end: None,
        }
    }

    async fn next_line_when_ready(&mut self) -> io::Result<Option<InputLine>> {
        let mut open = self.open.subscribe();
        let _ = open.wait_for(|open| open.len() < MAX_OPEN).await;
        self.next_line().await
    }

    /// Reads the next line into `self.line`. Returns `None` at the end of the input.
    async fn next_line(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let read = self.input.fill_buf().await?;
            if read.is_empty() {
                // The last line may lack its newline, so the bytes read so far are a line.
                if std::mem::take(&mut self.is_skipping) {
                    return Ok(Some(InputLine::TooLong));
                }
                return Ok((!self.line.is_empty()).then_some(InputLine::Read));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            if self.line.len() + part.len() > LONGEST_LINE {
                self.is_skipping = true;
                self.line.clear();
            } else if !self.is_skipping {
                self.line.extend_from_slice(part);
            }
            let length = part.len() + usize::from(end.is_some());
            self.input.consume(length);
            if end.is_some() {
                let was_too_long = std::mem::take(&mut self.is_skipping);
                return Ok(Some(if was_too_long { InputLine::TooLong } else { InputLine::Read }));
            }
        }
    }

    /// Waits for at most [`GRACE`] until all requests are answered.
    async fn finish(&mut self) {
        let end = *self.end.get_or_insert_with(|| Instant::now() + GRACE);
        let mut open = self.open.subscribe();
        let _ = tokio::time::timeout_at(end, open.wait_for(|open| open.len() == 0)).await;
    }

    fn message(&self) -> Result<ClientJsonRpcMessage, InvalidLine> {
        let envelope =
            Envelope::read(&self.line).map_err(|malformed| (Value::Null, malformed.0, malformed.1))?;
        let invalid = |code, text| (envelope.error_id(), code, text);
        let mut message = if let Some(call) = envelope.call() {
            call.into()
        } else {
            let rest = envelope.without_arguments(|_, _| None);
            serde_json::from_slice(rest.as_ref().map_or(&*self.line, String::as_bytes)).map_err(|_| {
                invalid(ErrorCode::InvalidRequest, "Invalid request: not a message of the protocol")
            })?
        };
        if let ClientJsonRpcMessage::Request(request) = &mut message
            && let ClientRequest::CallToolRequest(call) = &mut request.request
        {
            if let Some(arguments) = envelope.arguments() {
                call.extensions.insert(RawArguments::from(arguments));
            }
            let answers = envelope.answers().map_err(|malformed| invalid(malformed.0, malformed.1))?;
            if let Some(answers) = answers {
                call.extensions.insert(answers);
            }
        }
        Ok(message)
    }
}

/// A guard that ends the connection if a write does not complete, because a line may be cut. A complete write sets the field to `None`.
struct CutLine<'o>(Option<&'o CancelToken>);

impl Drop for CutLine<'_> {
    fn drop(&mut self) {
        self.0.inspect(|failed| failed.cancel("the output cannot be written"));
    }
}

/// The id, the code and the text of the error that answers a line.
type InvalidLine = (Value, ErrorCode, &'static str);

enum InputLine {
    Read,
    TooLong,
}

impl<O: AsyncWrite + Unpin> LineOutput<O> {
    /// Writes a line, together with all other lines that wait for a write. Returns when the line is written.
    async fn write_line(&self, line: &[u8]) -> io::Result<()> {
        {
            let mut waiting = self.waiting();
            waiting.extend_from_slice(line);
            waiting.push(b'\n');
        }
        let mut stream = self.stream.lock().await;
        if self.failed.is_cancelled() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let (stream, lines) = &mut *stream;
        lines.clear();
        lines.shrink_to(MAX_SPARE);
        std::mem::swap(&mut *self.waiting(), lines);
        if lines.is_empty() {
            // Another call of this function has already written the line.
            return Ok(());
        }
        let mut cut = CutLine(Some(&self.failed));
        let writing = async {
            stream.write_all(lines).await?;
            stream.flush().await
        };
        let written = tokio::time::timeout(self.limit, writing).await;
        written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).inspect_err(|error| {
            tracing::warn!(%error, "the output cannot be written");
        })?;
        cut.0 = None;
        Ok(())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        // A poisoned lock is ignored, because no code that can panic runs while the lock is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I, O> Transport<RoleServer> for LineTransport<I, O>
where
    I: AsyncRead + Send + Unpin + 'static,
    O: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let output = self.output.clone();
        let answered = match &message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let is_answer = answered.is_some();
        if let Some(id) = answered {
            self.open.send_modify(|open| {
                open.ids.remove(id);
                open.writing += 1;
            });
        }
        let line = serde_json::to_vec::<ServerJsonRpcMessage>(&message);
        let open = self.open.clone();
        async move {
            let written = async { output.write_line(&line?).await }.await;
            if is_answer {
                open.send_modify(|open| open.writing -= 1);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let output = self.output.clone();
            let next = tokio::select! {
                next = self.next_line_when_ready() => next,
                () = output.failed.cancelled() => return None,
            };
            let next = next.unwrap_or_else(|error| {
                tracing::warn!(%error, "the input cannot be read");
                None
            });
            let message = match next {
                None => {
                    self.finish().await;
                    return None;
                }
                Some(InputLine::TooLong) => {
                    Err((Value::Null, ErrorCode::InvalidRequest, "Invalid request: the line is too long"))
                }
                Some(InputLine::Read) if self.line.iter().all(u8::is_ascii_whitespace) => {
                    self.line.clear();
                    continue;
                }
                Some(InputLine::Read) => self.message(),
            };
            self.line.clear();
            match message {
                Ok(message) => {
                    match &message {
                        ClientJsonRpcMessage::Request(request) => {
                            self.open.send_modify(|open| _ = open.ids.insert(request.id.clone()));
                        }
                        ClientJsonRpcMessage::Notification(sent) => {
                            if let ClientNotification::CancelledNotification(cancelled) = &sent.notification
                                && let Some(id) = &cancelled.params.request_id
                            {
                                self.open.send_modify(|open| _ = open.ids.remove(id));
                            }
                        }
                        _ => {}
                    }
                    return Some(message);
                }
                Err((id, code, text)) => {
                    let answer =
                        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.code(), "message": text}});
                    let open = self.open.clone();
                    open.send_modify(|open| open.writing += 1);
                    // The line is written in a separate task, because this future may be dropped in the middle of the write.
                    tokio::spawn(async move {
                        let _ = output.write_line(answer.to_string().as_bytes()).await;
                        open.send_modify(|open| open.writing -= 1);
                    });
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        let flushing = async {
            let mut stream = self.output.stream.lock().await;
            if self.output.failed.is_cancelled() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            stream.0.flush().await
        };
        let flushed = tokio::time::timeout(self.output.limit, flushing).await;
        flushed.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::McpServer;
    use crate::{tool::value::Tool, tools};

    async fn answers(lines: &str) -> Vec<Value> {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": "integer"},
        }});
        let slow = Tool::new("slow", "Waits.", schema, |_args, _cx| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            "Waited."
        });
        answers_of(McpServer::new(tools![{ slow.unwrap() }]), lines).await
    }

    async fn answers_of(server: McpServer, lines: &str) -> Vec<Value> {
        let (mut input, read) = tokio::io::duplex(1 << 20);
        let (write, output) = tokio::io::duplex(1 << 20);
        let serving = tokio::spawn(serve(Arc::new(server.build().unwrap()), read, write));
        input.write_all(lines.as_bytes()).await.unwrap();
        drop(input);
        let mut answers = Vec::new();
        let mut output = BufReader::new(output).lines();
        while let Some(line) = output.next_line().await.unwrap() {
            answers.push(serde_json::from_str(&line).unwrap());
        }
        serving.await.unwrap().unwrap();
        answers
    }

    const HELLO: &str = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
        r#""clientInfo":{"name":"t","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n",
    );

    fn of_id(answers: &[Value], id: &Value) -> Value {
        answers.iter().find(|answer| answer["id"] == *id).cloned().unwrap_or_else(|| panic!("{answers:?}"))
    }

    #[tokio::test]
    async fn requests_before_the_end_of_the_input_are_answered() {
        let call =
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{}}}"#;
        let twice = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow","arguments":{"n":1,"n":2}}}"#;
        let answers = answers(&format!("{HELLO}\n{call}\n{twice}")).await;
        assert_eq!(of_id(&answers, &json!(2))["result"]["content"][0]["text"], "Waited.");
        // The arguments are passed on as text, so the duplicate key is found.
        assert_eq!(of_id(&answers, &json!(3))["result"]["isError"], true);
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_and_repeated_requests_are_not_waited_for() {
        let mut lines = vec![HELLO.to_owned()];
        for id in 2..2 + MAX_OPEN {
            let call =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "slow"}});
            let params = json!({"requestId": id});
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            lines.extend([call.to_string(), cancel.to_string()]);
        }
        let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}"#;
        lines.extend([twice.to_owned(), twice.to_owned(), String::new()]);
        let answers = tokio::time::timeout(GRACE, answers(&lines.join("\n"))).await.unwrap();
        assert_eq!(answers.len(), 2, "{answers:?}");
    }

    #[tokio::test]
    async fn answers_that_are_written_together_are_whole_lines() {
        let call = |id: u32| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"slow","arguments":{{}}}}}}"#
            )
        };
        let lines: Vec<String> = (2..502).map(call).collect();
        let answers = answers(&format!("{HELLO}{}", lines.join("\n"))).await;
        assert_eq!(answers.len(), 501);
        for id in 2..502 {
            assert_eq!(of_id(&answers, &json!(id))["result"]["content"][0]["text"], "Waited.");
        }
    }

    #[tokio::test]
    async fn a_write_that_is_dropped_ends_the_output() {
        let (stream, _unread) = tokio::io::duplex(4);
        let lines = LineTransport::new(tokio::io::empty(), stream, Duration::from_secs(60));
        let first =
            tokio::time::timeout(Duration::from_millis(5), lines.output.write_line(b"longer than four"));
        assert!(first.await.is_err());
        let after = lines.output.write_line(b"next").await;
        assert_eq!(after.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test(start_paused = true)]
    async fn an_output_that_takes_nothing_is_closed() {
        let (stream, _unread) = tokio::io::duplex(4);
        let output = tokio::io::BufWriter::new(stream);
        let mut lines = LineTransport::new(tokio::io::empty(), output, Duration::from_secs(1));
        assert_eq!(lines.output.write_line(b"longer").await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let closed = tokio::time::timeout(Duration::from_secs(60), lines.close()).await;
        assert!(closed.expect("it is closed").is_err());
    }

    #[tokio::test]
    async fn a_call_carries_the_trace_of_its_client() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "x", "arguments": {}, "_meta": {"traceparent": parent, "baggage": "a=1"}}});
        let (seen, schema) = (Arc::<std::sync::Mutex<Vec<_>>>::default(), json!({"type": "object"}));
        let to = seen.clone();
        let tool = Tool::new("x", "Does it.", schema, |_args, _cx| async { "Done." }).unwrap();
        let server = McpServer::new(tools![{ tool }]).on_trace_context(move |trace| {
            to.lock().unwrap().push(trace.clone());
        });
        let answers = answers_of(server, &format!("{HELLO}\n{call}")).await;
        assert_eq!(of_id(&answers, &json!(2))["result"]["content"][0]["text"], "Done.");
        let trace = [("traceparent", parent), ("baggage", "a=1")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(*seen.lock().unwrap(), [std::collections::HashMap::from(trace)]);
    }

    #[derive(Clone, Default)]
    struct Log(Arc<std::sync::Mutex<String>>);

    impl tracing::field::Visit for &Log {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            use std::fmt::Write as _;
            writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
        }
    }

    impl tracing::Subscriber for Log {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            span.record(&mut &*self);
            tracing::span::Id::from_u64(1)
        }

        fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
            values.record(&mut &*self);
        }

        fn event(&self, event: &tracing::Event<'_>) {
            event.record(&mut &*self);
        }

        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[tokio::test]
    async fn arguments_are_not_logged_in_any_form() {
        let log = Log::default();
        // With only one subscriber, `tracing` may disable a call site for good because another test, without a subscriber, reaches it
        // first.
        let subscribers = [log.clone(), log.clone()].map(tracing::Dispatch::new);
        let _guard = tracing::dispatcher::set_default(&subscribers[0]);
        let mut lines = HELLO.to_owned();
        let mut id = 10;
        for params in [
            json!({"name": "slow", "arguments": {"other": "hunter2"}}),
            json!({"name": "slow", "arguments": "hunter2"}),
            json!({"name": "slow", "arguments": ["hunter2"]}),
            json!({"name": "slow", "args": {"other": "hunter2"}}),
            json!({"tool": "slow", "input": {"other": "hunter2"}}),
            json!({"name": {"other": "hunter2"}}),
        ] {
            for method in ["tools/call", "tools/cal"] {
                id += 1;
                lines += &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
                lines.push('\n');
                lines += &json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
                lines.push('\n');
            }
        }
        lines += r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow","arguments":{"other":"hunter2"#;
        let answers = answers(&lines).await;
        for asked in 11..=id {
            let answer = of_id(&answers, &json!(asked));
            assert!(!answer.to_string().contains("hunter2"), "{answer}");
        }
        let text = log.0.lock().unwrap();
        assert!(
            text.contains("received request") && text.contains("tools/call"),
            "the log is recorded: {text}"
        );
        let found = text.lines().find(|line| line.contains("hunter2"));
        assert!(found.is_none(), "{found:?}");
    }

    #[tokio::test]
    async fn lines_that_are_not_messages_are_answered_with_errors() {
        let ping = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
        let long = "x".repeat(LONGEST_LINE + 10);
        let call =
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"slow","requestState":5}}"#;
        let answers = answers(&format!(
            "{HELLO}nonsense\n[]\n{long}\n{call}\n{{\"id\":7,\"method\":\"ping\"}}\n{ping}\n"
        ))
        .await;
        let errors = answers.iter().filter(|answer| !answer["error"].is_null());
        let errors: Vec<_> = errors.map(|answer| json!([answer["id"], answer["error"]["code"]])).collect();
        let expected = json!([[null, -32700], [null, -32600], [null, -32600], ["a", -32602], [7, -32600]]);
        assert_eq!(json!(errors), expected);
        assert_eq!(of_id(&answers, &json!(9))["result"], json!({}));
    }

    #[tokio::test]
    async fn a_last_line_that_is_too_long_is_answered_with_an_error() {
        let answers = answers(&format!("{HELLO}{}", "x".repeat(LONGEST_LINE + 10))).await;
        assert_eq!(of_id(&answers, &json!(null))["error"]["code"], -32600, "{answers:?}");
    }

    #[tokio::test]
    async fn a_client_that_never_reads_ends_its_connection() {
        let server = McpServer::new(tools![]).send_timeout(Duration::from_millis(20));
        let shared = Arc::new(server.build().unwrap());
        let (mut input, read) = tokio::io::duplex(1 << 10);
        let (write, _output) = tokio::io::duplex(4 << 10);
        let serving = tokio::spawn(serve(shared, read, write));
        let ping = concat!(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#, "\n");
        let flood = async {
            input.write_all(HELLO.as_bytes()).await?;
            for _ in 0..10 * MAX_OPEN {
                input.write_all(ping.as_bytes()).await?;
            }
            io::Result::Ok(())
        };
        let end = async {
            // The server stops reading, and ends after that.
            let _ = flood.await;
            serving.await
        };
        tokio::time::timeout(Duration::from_secs(60), end).await.expect("it ends").unwrap().unwrap();
    }
}
