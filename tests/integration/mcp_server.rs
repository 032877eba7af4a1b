//! The server, request by request: what is answered, in which order, and what is kept from whom.

use super::mcp_support::{Running, ask, call, message, modern, names, post, read, run, send};
use agent::mcp::McpServer;
use agent::mcp::{Bearer, Caller, RequestInfo};
use agent::{Registry, Tool, ToolContext, ToolOutput, json, tool, tools};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep};

/// Adds two numbers.
#[tool(read_only)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Crashes.
#[tool]
fn crash() -> String {
    panic!("the password is hunter2")
}

/// Fails, and keeps why.
#[tool(redact_errors)]
fn fail_quietly() -> Result<(), String> {
    Err("the password is hunter2".to_owned())
}

/// Waits.
#[tool(timeout = "50ms")]
async fn wait_long() -> &'static str {
    sleep(Duration::from_secs(30)).await;
    "Waited."
}

/// Waits a moment.
#[tool]
async fn nap(milliseconds: u64) -> &'static str {
    sleep(Duration::from_millis(milliseconds)).await;
    "Slept."
}

/// Says who asks.
#[tool]
fn who(caller: &Caller) -> String {
    caller.id().to_owned()
}

/// Takes a region.
#[tool]
fn region(#[arg(extend("x-mcp-header" = "Region"))] region: String) -> String {
    region
}

/// Says which version is spoken.
#[tool]
fn version(request: &RequestInfo) -> String {
    request.protocol_version().to_owned()
}

/// A tool that says when it begins, and ends when it is let go.
fn hold() -> (Tool, UnboundedReceiver<()>, Arc<Notify>) {
    let (told, begun) = unbounded_channel();
    let go = Arc::new(Notify::new());
    let waits = go.clone();
    let tool = Tool::new("hold", "Waits.", json!({"type": "object"}), move |_, _: ToolContext| {
        let (told, waits) = (told.clone(), waits.clone());
        async move {
            told.send(()).unwrap();
            waits.notified().await;
            "Held."
        }
    });
    (tool.unwrap(), begun, go)
}

fn plain() -> McpServer {
    McpServer::new(tools![add, crash, fail_quietly, wait_long, nap, who, region, version])
}

#[tokio::test]
async fn hosts_and_origins_come_before_everything() {
    let server = run(plain()).await;
    let port = server.address.port();
    let ping = message("ping", &json!({}));
    for (headers, status) in [
        (format!("host: evil.example:{port}\r\n"), 403),
        (format!("host: 127.0.0.1:{port}\r\norigin: http://evil.example\r\n"), 403),
        (format!("host: 127.0.0.1:{port}\r\norigin: http://127.0.0.1:1\r\n"), 403),
        (format!("host: 127.0.0.1:{port}\r\norigin: null\r\n"), 403),
        (format!("host: 127.0.0.1:{port}\r\norigin: http://127.0.0.1:{port}\r\n"), 200),
        (format!("host: localhost:{port}\r\n"), 200),
    ] {
        let reply = post(server.address, &headers, &ping).await;
        assert_eq!(reply.status, status, "{headers}");
        if status == 403 {
            assert_eq!((reply.code(), &reply.json()["id"]), (-32003, &Value::Null), "{headers}");
        }
    }
    let get = format!("GET /mcp HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n\r\n");
    let get = send(server.address, &get).await;
    assert_eq!((get.status, get.header("allow")), (405, Some("POST")));
    let elsewhere = send(server.address, "GET /other HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert_eq!(elsewhere.status, 404);
}

#[tokio::test]
async fn messages_that_are_none_are_told_apart() {
    let Running { address, .. } = &*Box::leak(Box::new(run(plain()).await));
    let bad = |body: &'static str| post(*address, "", body);
    for (body, status, code) in [("{", 400, -32700), ("[]", 400, -32600), (r#"{"id":1}"#, 400, -32600)] {
        let reply = bad(body).await;
        assert_eq!((reply.status, reply.code()), (status, code), "{body}");
    }
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}"#, "[".repeat(100_000));
    assert_eq!(post(*address, "", &deep).await.code(), -32700);
    // Known methods with parameters that cannot be read, and what there is not.
    let unread = ask(*address, "tools/call", json!({"name": "add", "arguments": [1]})).await;
    assert_eq!((unread.status, unread.code()), (200, -32602));
    let cursor = ask(*address, "tools/list", json!({"cursor": "nonsense"})).await;
    assert_eq!((cursor.status, cursor.code()), (200, -32602));
    for method in ["prompts/list", "resources/list", "resources/templates/list", "nonsense"] {
        let reply = modern(*address, "", method, json!({})).await;
        assert_eq!((reply.status, reply.code()), (404, -32601), "{method}");
    }
    let version = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2025-11-25",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let old = post(*address, "mcp-protocol-version: 2025-11-25\r\n", &message("tools/list", &version)).await;
    assert_eq!((old.status, old.code()), (400, -32022));
    assert!(old.json()["error"]["data"]["supported"].as_array().unwrap().contains(&json!("2026-07-28")));
    let note = post(*address, "", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    assert_eq!((note.status, &*note.body), (202, ""));
}

#[tokio::test]
async fn arguments_are_checked_as_everywhere_and_from_their_text() {
    let server = run(plain()).await;
    assert_eq!(call(server.address, "add", json!({"a": "40", "b": 2})).await.text(), "42");
    let refused = call(server.address, "add", json!({"a": [], "c": 1})).await;
    assert_eq!(refused.status, 200);
    let text = refused.text();
    assert!(text.starts_with("isError: Invalid arguments for `add`: 3 problems."), "{text}");
    assert!(text.contains("/a") && text.contains("/b") && text.contains("/c"), "{text}");
    // A key that comes twice is seen, because the text is.
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"a":2,"b":3}}}"#;
    let text = post(server.address, "", twice).await.text();
    assert!(text.starts_with("isError: ") && text.contains("/a"), "{text}");
    let mut deep = json!({});
    for _ in 0..70 {
        deep = json!({"a": deep});
    }
    let text = call(server.address, "add", deep).await.text();
    assert_eq!(text, "isError: The arguments nest deeper than 64 levels.");
    // None at all, null and empty are the same.
    for params in [
        json!({"name": "who"}),
        json!({"name": "who", "arguments": null}),
        json!({"name": "who", "arguments": {}}),
    ] {
        assert_eq!(ask(server.address, "tools/call", params).await.text(), "anonymous");
    }
}

#[tokio::test]
async fn faults_of_tools_are_results_and_keep_their_secrets() {
    let server = run(plain()).await;
    for tool in ["crash", "fail_quietly"] {
        let begun = Instant::now();
        let text = call(server.address, tool, json!({})).await.text();
        assert!(begun.elapsed() < Duration::from_secs(60));
        assert!(text.starts_with("isError: ") && text.contains("Reference: "), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let text = call(server.address, "wait_long", json!({})).await.text();
    assert_eq!(text, "isError: The tool did not finish within 0.05 s.");
    let hasty = run(plain().longest_call(Duration::from_millis(50))).await;
    let text = call(hasty.address, "nap", json!({"milliseconds": 30_000})).await.text();
    assert_eq!(text, "isError: The tool did not finish within 0.05 s.");
    assert_eq!(call(server.address, "add", json!({"a": 1, "b": 1})).await.text(), "2");
    let unknown = call(server.address, "nothing", json!({})).await;
    assert_eq!((unknown.status, unknown.code()), (200, -32602));
    assert_eq!(unknown.json()["error"]["message"], "Unknown tool: nothing");
}

/// Finds a name.
#[tool(none = "Nobody has this number.")]
fn find_name(number: u8) -> Option<String> {
    (number < 2).then(|| if number == 1 { "Ann".to_owned() } else { String::new() })
}

/// Finds a point.
#[tool]
fn find_point() -> Option<Point> {
    None
}

#[derive(agent::ToolOutput)]
struct Point {
    x: u8,
}

#[tokio::test]
async fn none_is_a_text_that_says_so() {
    let server = run(McpServer::new(tools![find_name, find_point])).await;
    for (number, text) in [(0, ""), (1, "Ann"), (2, "Nobody has this number.")] {
        assert_eq!(call(server.address, "find_name", json!({"number": number})).await.text(), text);
    }
    let reply = call(server.address, "find_point", json!({})).await;
    assert_eq!(reply.text(), "There is none.");
    assert_eq!(reply.json()["result"].get("structuredContent"), None);
    assert_eq!(reply.json()["result"]["isError"], json!(false));
}

#[tokio::test]
async fn structured_results_have_to_fit_and_long_ones_are_refused() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let structured = |name: &str, value: Value| {
        let made = Tool::new(name, "Gives data.", json!({"type": "object"}), move |_args, _cx| {
            let output = ToolOutput::empty().with_structured(value.clone());
            async move { output }
        });
        let schema = schema.clone();
        made.unwrap().configure(|options| options.output_schema(schema)).unwrap()
    };
    let long = Tool::new("long", "Gives much.", json!({"type": "object"}), |_args, _cx| async {
        "x".repeat(5 << 20)
    });
    let fits = structured("fits", json!({"n": 1}));
    let wrong = structured("wrong", json!({"n": "hunter2"}));
    let server = run(McpServer::new(tools![{ fits }, { wrong }, { long.unwrap() }])).await;
    let reply = call(server.address, "fits", json!({})).await;
    assert_eq!(reply.json()["result"]["structuredContent"], json!({"n": 1}));
    assert_eq!(reply.text(), r#"{"n":1}"#);
    let text = call(server.address, "wrong", json!({})).await.text();
    assert!(text.starts_with("isError: The tool failed.") && !text.contains("hunter2"), "{text}");
    let text = call(server.address, "long", json!({})).await.text();
    assert!(text.starts_with("isError: The result is longer than 4194304 bytes."), "{text}");
    let list = ask(server.address, "tools/list", json!({})).await;
    assert_eq!(list.json()["result"]["tools"][0]["outputSchema"], schema);
}

fn two_callers() -> McpServer {
    let loader = |caller: Caller| async move {
        Ok(Registry::new(if caller.id() == "ann" { tools![add, who, region] } else { tools![who] })?)
    };
    let late = SystemTime::now() - Duration::from_secs(1);
    let tokens = [
        ("token-a", Caller::new("ann").with_scope("tools")),
        ("token-b", Caller::new("bob").with_scope("tools")),
        ("late", Caller::new("ann").with_scope("tools").with_expiry(late)),
        ("little", Caller::new("ann")),
    ];
    McpServer::with_loader(loader)
        .authenticator(Bearer::new(tokens).required_scope("tools"))
        .protected_resource("http://localhost/mcp", ["https://login.example"], [])
}

#[tokio::test]
async fn without_a_good_token_nothing_is_read_or_run() {
    let server = run(two_callers()).await;
    let list = message("tools/list", &json!({}));
    for token in ["", "authorization: Bearer wrong\r\n", "authorization: Bearer late\r\n"] {
        let reply = post(server.address, token, &list).await;
        assert_eq!((reply.status, reply.code()), (401, -32002), "{token}");
        assert_eq!(reply.json()["id"], Value::Null);
        let challenge = reply.header("www-authenticate").unwrap().to_owned();
        assert!(challenge.starts_with("Bearer ") && challenge.contains(r#"scope="tools""#), "{challenge}");
        let metadata = r#"resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp""#;
        assert!(challenge.contains(metadata), "{challenge}");
        assert_eq!(challenge.contains("invalid_token"), !token.is_empty());
    }
    let little = post(server.address, "authorization: Bearer little\r\n", &list).await;
    assert_eq!((little.status, little.code()), (403, -32003));
    assert!(little.header("www-authenticate").unwrap().contains(r#"error="insufficient_scope""#));
    // Refused before a byte of the body came.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head =
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    // Whoever waits for it says 408.
    assert_eq!(read(stream).await.status, 401);
    let document = "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let document = send(server.address, document).await;
    assert_eq!(
        (document.status, document.json()["resource"].as_str().unwrap().to_owned()),
        (200, "http://localhost/mcp".to_owned())
    );
}

#[tokio::test]
async fn callers_see_and_call_their_own_tools_alone() {
    let server = run(two_callers()).await;
    let (ann, bob) = ("authorization: Bearer token-a\r\n", "authorization: Bearer token-b\r\n");
    let list = |token| modern(server.address, token, "tools/list", json!({}));
    let of_ann = list(ann).await;
    assert_eq!(names(&of_ann), ["add", "region", "who"]);
    assert_eq!(of_ann.json()["result"]["cacheScope"], "private");
    assert_eq!(names(&list(bob).await), ["who"]);
    let call = |token, tool: &'static str, headers: &'static str, arguments: Value| async move {
        modern(
            server.address,
            &format!("{token}{headers}"),
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        )
        .await
    };
    // Unknown and hidden are the same answer.
    let hidden = call(bob, "add", "", json!({"a": 1, "b": 2})).await;
    let unknown = call(bob, "nothing", "", json!({})).await;
    assert_eq!((hidden.status, hidden.code()), (unknown.status, unknown.code()));
    assert_eq!(hidden.json()["error"]["message"], "Unknown tool: add");
    // Headers are compared for a tool that only one caller has.
    let sent = |headers| call(ann, "region", headers, json!({"region": "eu"}));
    assert_eq!(sent("mcp-param-region: eu\r\n").await.text(), "eu");
    let mismatch = sent("mcp-param-region: us\r\n").await;
    assert_eq!((mismatch.status, mismatch.code()), (400, -32020));
    assert_eq!(sent("").await.code(), -32020);
    // Side by side, each gets its own answer.
    let both = (0..50).map(|n| {
        let (token, id) = if n % 2 == 0 { (ann, "ann") } else { (bob, "bob") };
        async move { assert_eq!(call(token, "who", "", json!({})).await.text(), id) }
    });
    futures_join(both).await;
}

/// All of them at once.
async fn futures_join<F: Future<Output = ()>>(all: impl IntoIterator<Item = F>) {
    let mut all: Vec<_> = all.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|task| {
        all.retain_mut(|one| one.as_mut().poll(task).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[tokio::test]
async fn long_and_slow_bodies_are_left() {
    let server = run(plain().max_body(1_000).receive_timeout(Duration::from_secs(1))).await;
    let long = message("ping", &json!({"a": "x".repeat(2_000)}));
    assert_eq!(post(server.address, "", &long).await.status, 413);
    let chunked = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n7d0\r\n{}\r\n0\r\n\r\n",
        "x".repeat(2_000)
    );
    assert_eq!(send(server.address, &chunked).await.status, 413);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(
            b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{",
        )
        .await
        .unwrap();
    assert_eq!(read(stream).await.status, 408);
    // Nor does a head that never ends hold a connection.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: local").await.unwrap();
    let mut rest = Vec::new();
    let reading = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest);
    let _ = tokio::time::timeout(Duration::from_secs(60), reading).await.expect("closed");
}

/// Sends the same request again and again, and reads nothing, until the server closes the connection.
async fn flood(address: std::net::SocketAddr, request: String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    while stream.write_all(request.as_bytes()).await.is_ok() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_never_read_hold_no_connection() {
    let server = run(two_callers().max_connections(2).send_timeout(Duration::from_millis(300))).await;
    let list = message("tools/list", &json!({}));
    let request = |token: &str| {
        let length = list.len();
        format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{token}content-length: {length}\r\n\r\n{list}"
        )
    };
    let good = "authorization: Bearer token-a\r\n";
    assert_eq!(post(server.address, good, &list).await.status, 200);
    // With and without a token: each of them is left, and so is a client that sends a request for an answer of many.
    for token in [good, "", good] {
        let holding = [flood(server.address, request(token)), flood(server.address, request(token))];
        tokio::time::timeout(Duration::from_secs(60), futures_join(holding)).await.expect("closed");
        assert_eq!(post(server.address, good, &list).await.status, 200, "an honest client");
    }
}

#[tokio::test]
async fn a_refusal_closes_its_connection_and_an_answer_keeps_it() {
    let server = run(two_callers()).await;
    let list = message("tools/list", &json!({}));
    let ask = async |token: &str, patience: u64| {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{token}content-length: {}\r\n\r\n{list}",
            list.len()
        );
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut all = Vec::new();
        let reading = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut all);
        let is_closed = tokio::time::timeout(Duration::from_secs(patience), reading).await.is_ok();
        (String::from_utf8_lossy(&all).lines().next().unwrap_or_default().to_owned(), is_closed)
    };
    let refused = ask("", 60).await;
    assert_eq!(refused, ("HTTP/1.1 401 Unauthorized".to_owned(), true));
    let answered = ask("authorization: Bearer token-a\r\n", 3).await;
    assert_eq!(answered, ("HTTP/1.1 200 OK".to_owned(), false));
}

#[tokio::test]
async fn no_answer_has_the_words_of_the_deserializer() {
    let server = run(plain()).await;
    for (params, id) in [
        (r#"{"name":"add","arguments":{},"_meta":{"progressToken":1.5e400}}"#, "1"),
        (r#"{"name":5,"arguments":{}}"#, "1"),
        (r#"{"name":"add","arguments":{}}"#, "99999999999999999999999"),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        let reply = post(server.address, "", &body).await;
        for word in ["column", "line 1", "deserialize", "expected", "out of range"] {
            assert!(!reply.body.contains(word), "{word}: {reply:?}");
        }
    }
    let body = r#"{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}"#;
    let reply = post(server.address, "", body).await;
    assert_eq!((reply.status, reply.code()), (400, -32600), "{reply:?}");
}

#[tokio::test]
async fn a_thousand_calls_at_once_are_all_answered() {
    let server = run(plain().max_wait(Duration::from_millis(300))).await;
    let (done, busy) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let calls = (0..1_000).map(|_| {
        let (done, busy) = (done.clone(), busy.clone());
        async move {
            match &*call(server.address, "nap", json!({"milliseconds": 100})).await.text() {
                "Slept." => done.fetch_add(1, Ordering::Relaxed),
                "isError: The server is busy. Try again in a moment." => busy.fetch_add(1, Ordering::Relaxed),
                other => panic!("{other}"),
            };
        }
    });
    futures_join(calls).await;
    let (done, busy) = (done.load(Ordering::Relaxed), busy.load(Ordering::Relaxed));
    assert_eq!(done + busy, 1_000);
    assert!(done >= 64, "{done}");
    assert_eq!(call(server.address, "nap", json!({"milliseconds": 1})).await.text(), "Slept.");
}

#[tokio::test]
async fn one_caller_over_its_limit_leaves_room_for_others() {
    let tokens = [("a", Caller::new("ann")), ("b", Caller::new("bob"))];
    let (hold, mut begun, go) = hold();
    let server = McpServer::new(tools![{ hold }, nap]).authenticator(Bearer::new(tokens));
    let server = run(server.max_calls_per_caller(1).max_wait(Duration::from_millis(50))).await;
    let call = |token: &'static str, tool: &'static str, arguments: Value| async move {
        let body = message("tools/call", &json!({"name": tool, "arguments": arguments}));
        post(server.address, &format!("authorization: Bearer {token}\r\n"), &body).await.text()
    };
    let others = async {
        begun.recv().await.unwrap();
        let soon = || json!({"milliseconds": 1});
        assert_eq!(call("a", "nap", soon()).await, "isError: The server is busy. Try again in a moment.");
        // What is wrong with a call is told also by a busy server.
        assert!(call("a", "nap", json!({"x": 1})).await.starts_with("isError: Invalid arguments"));
        assert_eq!(call("b", "nap", soon()).await, "Slept.");
        go.notify_one();
    };
    assert_eq!(tokio::join!(call("a", "hold", json!({})), others).0, "Held.");
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_call() {
    let (told, mut hears) = unbounded_channel();
    let waits = Tool::new("waits", "Waits.", json!({"type": "object"}), move |_args, cx: ToolContext| {
        let told = told.clone();
        async move {
            told.send("started").unwrap();
            cx.cancelled().await;
            told.send("cancelled").unwrap();
            "gone"
        }
    });
    let server = run(McpServer::new(tools![{ waits.unwrap() }])).await;
    let body = message("tools/call", &json!({"name": "waits"}));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut next = async || tokio::time::timeout(Duration::from_secs(60), hears.recv()).await.unwrap();
    assert_eq!(next().await, Some("started"));
    drop(stream);
    assert_eq!(next().await, Some("cancelled"));
}

#[tokio::test]
async fn the_end_waits_for_calls_and_takes_no_new_ones() {
    let (hold, mut begun, go) = hold();
    let mut server = run(McpServer::new(tools![{ hold }])).await;
    let running = call(server.address, "hold", json!({}));
    let handle = server.handle.clone();
    let ending = async {
        begun.recv().await.unwrap();
        // The end is asked for first.
        tokio::join!(handle.shutdown(Duration::from_secs(60)), async { go.notify_one() });
    };
    let (reply, ()) = tokio::join!(running, ending);
    assert_eq!(reply.text(), "Held.");
    server.ended().await;
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn lists_have_pages_and_titles_and_hints() {
    let server = run(plain().page_size(3)).await;
    let (mut all, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..4 {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let page = modern(server.address, "", "tools/list", params).await;
        assert_eq!(page.json()["result"]["cacheScope"], "public");
        assert_eq!(
            page.json()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
            "MCP Server"
        );
        all.extend(names(&page));
        cursor = page.json()["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(all, ["add", "crash", "fail_quietly", "nap", "region", "version", "wait_long", "who"]);
    let first = modern(server.address, "", "tools/list", json!({})).await.json();
    assert_eq!(first["result"]["tools"][0]["annotations"]["readOnlyHint"], true);
    let version = modern(server.address, "", "tools/call", json!({"name": "version"})).await;
    assert_eq!(version.text(), "2026-07-28");
}

/// The types of bodies follow from where a server is mounted.
#[tokio::test]
async fn a_server_is_mounted_in_an_application() {
    let page = || axum::Router::new().route("/", axum::routing::get(async || "the page"));
    let nested = page().nest_service("/mcp", plain().into_service().unwrap());
    let around = page().layer(plain().into_layer("/mcp").unwrap());
    for application in [nested, around] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, application).await });
        assert_eq!(post(address, "", &message("ping", &json!({}))).await.status, 200);
        let get = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        assert_eq!(send(address, get).await.body, "the page");
        serving.abort();
    }
}

struct Tenant(u32);

/// Wants what nobody gives.
#[tool]
fn wants(tenant: &Tenant) -> u32 {
    tenant.0
}

#[tokio::test]
async fn mistakes_are_found_when_the_server_is_built() {
    let missing = McpServer::new(tools![wants]).into_service::<String>().err().unwrap().to_string();
    assert!(missing.contains("tool `wants` needs state `") && missing.contains("Tenant`"), "{missing}");
    assert!(McpServer::new(tools![wants]).state(Tenant(1)).into_service::<String>().is_ok());
    let brings = Bearer::new([("t", Caller::new("ann").with(Tenant(7)).unwrap())]).providing::<Tenant>();
    let server = McpServer::new(tools![wants]).authenticator(brings.clone());
    let missing = server.serve_stdio().await.unwrap_err().to_string();
    assert!(missing.contains("tool `wants` needs state `"), "{missing}");
    let server = run(McpServer::new(tools![wants]).authenticator(brings)).await;
    let body = message("tools/call", &json!({"name": "wants"}));
    assert_eq!(post(server.address, "authorization: Bearer t\r\n", &body).await.text(), "7");
    for (server, told) in [
        (McpServer::new(tools![add]).allowed_origins(["https://app.example"]), "allows nothing"),
        (McpServer::new(tools![add]).allowed_hosts(["tools.example"]), "can be reached from elsewhere"),
        (McpServer::new(tools![add]).state(1_u8).state(2_u8), "given twice"),
    ] {
        let error = server.into_service::<String>().err().unwrap().to_string();
        assert!(error.contains(told), "{error}");
    }
    let open = McpServer::new(tools![add]).serve(([0, 0, 0, 0], 0)).await.unwrap_err().to_string();
    assert!(open.contains("allow_anonymous"), "{open}");
}
