//! Calls that clients of the older versions cancel over HTTP: by a notification in a request of its own.

use super::mcp_support::{Reply, Running, message, modern, post, run};
use agent::mcp::ClientConfig;
use agent::mcp::{Bearer, Caller};
use agent::mcp::{McpClient, McpServer};
use agent::message::ToolCall;
use agent::{CancelToken, Progress, Registry, ToolContext, Value, json, tool, tools};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What the tool tells the test: the name of a call when it begins, and when it is cancelled.
struct Told {
    began: UnboundedSender<String>,
    cancelled: UnboundedSender<(String, Instant)>,
}

/// Waits until it is cancelled, or for a minute.
#[tool]
async fn linger(name: String, told: &Told, cx: &ToolContext) -> &'static str {
    cx.progress(Progress::new("waiting"));
    told.began.send(name.clone()).unwrap();
    tokio::select! {
        () = cx.cancelled() => told.cancelled.send((name, Instant::now())).unwrap(),
        () = tokio::time::sleep(Duration::from_secs(60)) => {}
    }
    "Done."
}

struct Test {
    server: Running,
    began: UnboundedReceiver<String>,
    cancelled: UnboundedReceiver<(String, Instant)>,
}

impl Test {
    async fn start(change: impl FnOnce(McpServer) -> McpServer) -> Self {
        let ((began, has_begun), (cancelled, was_cancelled)) = (unbounded_channel(), unbounded_channel());
        let server = run(change(McpServer::new(tools![linger]).state(Told { began, cancelled }))).await;
        Self { server, began: has_begun, cancelled: was_cancelled }
    }

    /// Begins a session and returns the header that names it.
    async fn session(&self, headers: &str) -> String {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let reply = post(self.server.address, headers, &message("initialize", &params)).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let session = reply.header("mcp-session-id").unwrap_or_else(|| panic!("{reply:?}"));
        assert!(session.len() == 36 && session.bytes().all(|byte| byte.is_ascii_graphic()), "{session}");
        format!("{headers}mcp-session-id: {session}\r\n")
    }

    fn send(&self, headers: &str, id: &Value, name: &str) -> JoinHandle<Reply> {
        let params = json!({"name": "linger", "arguments": {"name": name}, "_meta": {"progressToken": name}});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
        let (address, headers) = (self.server.address, headers.to_owned());
        tokio::spawn(async move { post(address, &headers, &body).await })
    }

    /// Begins a call, and returns when it runs.
    async fn call(&mut self, headers: &str, id: Value, name: &str) -> JoinHandle<Reply> {
        let call = self.send(headers, &id, name);
        let began = timeout(Duration::from_secs(20), self.began.recv()).await.unwrap();
        assert_eq!(began.as_deref(), Some(name));
        call
    }

    async fn cancel(&self, headers: &str, id: &Value) {
        let params = json!({"requestId": id, "reason": "test"});
        let body =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string();
        assert_eq!(post(self.server.address, headers, &body).await.status, 202);
    }

    /// Checks that this call is cancelled, soon, and none before it.
    async fn is_cancelled(&mut self, name: &str, since: Instant) {
        let (cancelled, at) = timeout(Duration::from_secs(20), self.cancelled.recv()).await.unwrap().unwrap();
        assert_eq!(cancelled, name);
        // 100 ms where nothing else runs.
        assert!(at - since < Duration::from_secs(1), "{:?}", at - since);
    }
}

#[tokio::test]
async fn a_call_is_cancelled_in_its_own_session_alone() {
    let mut test = Test::start(|server| server).await;
    let (ann, bob) = (test.session("").await, test.session("").await);
    assert_ne!(ann, bob);
    let one = test.call(&ann, json!(7), "ann's").await;
    let other = test.call(&bob, json!(7), "bob's").await;
    let stranger = "mcp-session-id: 00000000-0000-4000-8000-000000000000\r\n";
    let twice = format!("{ann}{bob}");
    for (headers, id) in [
        ("", json!(7)),
        (stranger, json!(7)),
        ("mcp-session-id: *\r\n", json!(7)),
        (&*twice, json!(7)),
        (&*ann, json!("7")),
        (&*ann, json!(8)),
        (&*ann, json!(null)),
    ] {
        test.cancel(headers, &id).await;
    }
    let since = Instant::now();
    test.cancel(&ann, &json!(7)).await;
    test.is_cancelled("ann's", since).await;
    // The request is answered, though its client does not wait for the answer.
    assert_eq!(one.await.unwrap().status, 200);
    // The id is free again, also as a text.
    let again = test.call(&ann, json!("7"), "ann's second").await;
    let since = Instant::now();
    test.cancel(&ann, &json!("7")).await;
    test.is_cancelled("ann's second", since).await;
    again.await.unwrap();
    assert!(test.cancelled.try_recv().is_err(), "bob's call runs");
    let since = Instant::now();
    test.cancel(&bob, &json!(7)).await;
    test.is_cancelled("bob's", since).await;
    other.await.unwrap();
}

#[tokio::test]
async fn a_session_serves_its_caller_alone() {
    let tokens = || Bearer::new([("a", Caller::new("ann")), ("b", Caller::new("bob"))]);
    let mut test = Test::start(|server| server.authenticator(tokens())).await;
    let ann = test.session("authorization: Bearer a\r\n").await;
    let call = test.call(&ann, json!(1), "ann's").await;
    // Bob has learnt the name of the session.
    test.cancel(&ann.replace("Bearer a", "Bearer b"), &json!(1)).await;
    let since = Instant::now();
    test.cancel(&ann, &json!(1)).await;
    test.is_cancelled("ann's", since).await;
    call.await.unwrap();
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_there_is_room_for_it_never_begins() {
    let mut test = Test::start(|server| server.max_calls(1).max_wait(Duration::from_secs(60))).await;
    let session = test.session("").await;
    let first = test.call(&session, json!(1), "first").await;
    let second = test.send(&session, &json!(2), "second");
    assert!(timeout(Duration::from_millis(200), test.began.recv()).await.is_err(), "it waits");
    test.cancel(&session, &json!(2)).await;
    test.cancel(&session, &json!(1)).await;
    assert_eq!((first.await.unwrap().status, second.await.unwrap().status), (200, 200));
    assert!(test.began.try_recv().is_err());
}

#[tokio::test]
async fn requests_without_a_session_and_those_of_the_new_form_are_served_as_before() {
    let mut test = Test::start(|server| server).await;
    let without = test.call("", json!(1), "without").await;
    test.cancel("", &json!(1)).await;
    let session = test.session("").await;
    let address = test.server.address;
    let headers = session.clone();
    let new = tokio::spawn(async move {
        modern(address, &headers, "tools/call", json!({"name": "linger", "arguments": {"name": "new"}})).await
    });
    assert_eq!(timeout(Duration::from_secs(20), test.began.recv()).await.unwrap().as_deref(), Some("new"));
    test.cancel(&session, &json!(1)).await;
    assert!(timeout(Duration::from_millis(200), test.cancelled.recv()).await.is_err());
    // The end of a request cancels it, in both forms.
    without.abort();
    test.is_cancelled("without", Instant::now()).await;
    new.abort();
    test.is_cancelled("new", Instant::now()).await;
}

#[tokio::test]
async fn our_client_of_the_older_form_cancels_and_goes_on() {
    let mut test = Test::start(|server| server).await;
    let client = McpClient::connect(ClientConfig::http(test.server.url()).name("s").legacy()).await.unwrap();
    let registry = Registry::new(&client).unwrap();
    for name in ["first", "second"] {
        let token = CancelToken::new();
        let cx = ToolContext::new().with_cancel(token.clone());
        let call = ToolCall::new("call_1", "s__linger", json!({"name": name}).to_string());
        let (registry, calling) = (registry.clone(), call);
        let call = tokio::spawn(async move { registry.call(&calling, &cx).await.outcome.is_error() });
        assert_eq!(timeout(Duration::from_secs(20), test.began.recv()).await.unwrap().as_deref(), Some(name));
        let since = Instant::now();
        token.cancel("test");
        test.is_cancelled(name, since).await;
        assert!(call.await.unwrap());
    }
    client.close().await;
}
