//! No argument of a call reaches the logs of the protocol's library, at any level, in the server and in the client.

use super::mcp_support::{Era, ask, message, modern, post, run};
use super::trace_support::{EveryLine, hear};
use agent::mcp::ClientConfig;
use agent::mcp::{McpClient, McpServer};
use agent::message::ToolCall;
use agent::{Registry, ToolContext, json, tool, tools};

const SECRET: &str = "hunter2-SECRET";

/// Signs in.
#[tool(inline)]
fn log_in(user: String, #[arg(secret)] password: String) -> String {
    format!("{user} signed in with {} characters", password.len())
}

/// Takes a region, which is also sent in a header.
#[tool(inline)]
fn enter(
    #[arg(extend("x-mcp-header" = "Region"))] region: String,
    #[arg(secret)] password: String,
) -> String {
    format!("{region} {}", password.len())
}

/// Asserts that the library of the protocol wrote to the log, and nothing secret.
fn assert_silent(log: &EveryLine, at_least: &[&str]) {
    let text = log.text();
    for part in at_least {
        assert!(text.contains(part), "the log is heard: {part}");
    }
    let found = text.lines().find(|line| line.contains("hunter2"));
    assert!(found.is_none(), "{found:?}");
}

#[tokio::test]
async fn the_server_logs_no_arguments_in_whatever_form_they_come() {
    let log = EveryLine::default();
    let _guard = hear(log.clone());
    let server = run(McpServer::new(tools![log_in])).await;
    let good = json!({"user": "ann", "password": SECRET});
    let text = good.to_string();
    let call = |params| ask(server.address, "tools/call", params);
    assert_eq!(
        call(json!({"name": "log_in", "arguments": good})).await.text(),
        "ann signed in with 14 characters"
    );
    for params in [
        json!({"name": "log_inn", "arguments": good}),
        json!({"name": "log_in", "arguments": {"user": "ann", "pasword": SECRET}}),
        json!({"name": "log_in", "arguments": {"user": "ann", "password": [SECRET]}}),
        json!({"name": "log_in", "arguments": {"arguments": good}}),
        json!({"name": "log_in", "arguments": text}),
        json!({"name": "log_in", "arguments": [good]}),
        json!({"name": "log_in", "arguments": null, "args": good}),
        json!({"name": "log_in", "args": good}),
        json!({"name": "log_in", "password": SECRET}),
        json!({"tool": "log_in", "input": good}),
        json!({"name": good}),
        json!({"params": {"name": "log_in", "arguments": good}}),
    ] {
        let reply = call(params.clone()).await;
        let is_refused = reply.json().get("error").is_some() || reply.text().starts_with("isError");
        assert!(is_refused && !reply.body.contains("hunter2"), "{params}: {reply:?}");
    }
    for method in ["tools/cal", "call", "tools/execute"] {
        ask(server.address, method, json!({"name": "log_in", "arguments": good})).await;
    }
    let modern = modern(server.address, "", "tools/call", json!({"name": "log_in", "arguments": good})).await;
    assert_eq!(modern.text(), "ann signed in with 14 characters");
    // A notification, several at once, and one that is cut.
    let whole = message("tools/call", &json!({"name": "log_in", "arguments": good}));
    let notification =
        json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "log_in", "arguments": good}});
    for body in [notification.to_string(), format!("[{whole}]"), whole[..whole.len() - 4].to_owned()] {
        post(server.address, "", &body).await;
    }
    assert_silent(&log, &["rmcp", "received request", "log_in"]);
}

#[tokio::test]
async fn arguments_that_are_in_headers_are_compared_and_the_others_are_not_logged() {
    let log = EveryLine::default();
    let _guard = hear(log.clone());
    let server = run(McpServer::new(tools![enter])).await;
    let params = |region: &str| json!({"name": "enter", "arguments": {"region": region, "password": SECRET}});
    let header = "mcp-param-region: eu\r\n";
    assert_eq!(modern(server.address, header, "tools/call", params("eu")).await.text(), "eu 14");
    let other = modern(server.address, header, "tools/call", params("us")).await;
    assert!(other.json().get("error").is_some(), "{other:?}");
    assert_silent(&log, &["rmcp", "received request", "enter"]);
}

#[tokio::test]
async fn the_client_logs_no_arguments() {
    let log = EveryLine::default();
    let _guard = hear(log.clone());
    let server = run(McpServer::new(tools![log_in, enter])).await;
    for era in [Era::Modern, Era::Legacy] {
        let client = McpClient::connect(era.of(ClientConfig::http(server.url()).name("s"))).await.unwrap();
        let registry = Registry::new(client.tools()).unwrap();
        let call = async |tool: &str, arguments: agent::Value| {
            let call = ToolCall::new("1", tool, arguments.to_string());
            registry.call(&call, &ToolContext::new()).await.outcome.text().to_string()
        };
        let good = json!({"user": "ann", "password": SECRET});
        assert_eq!(call("s__log_in", good.clone()).await, "ann signed in with 14 characters");
        assert_eq!(call("s__enter", json!({"region": "eu", "password": SECRET})).await, "eu 14");
        for wrong in [
            json!({"user": "ann", "pasword": SECRET}),
            json!({"user": "ann", "password": [SECRET]}),
            json!({"arguments": good}),
            json!(good.to_string()),
        ] {
            call("s__log_in", wrong).await;
        }
        client.close().await;
    }
    let config = ClientConfig::command(super::mcp_client::FIXTURE).arg("stdio").name("child");
    let client = McpClient::connect(config).await.unwrap();
    let registry = Registry::new(client.tools()).unwrap();
    // The result quotes what was sent, so something that is refused is sent.
    let call = ToolCall::new("1", "child__sleeps", json!({"milliseconds": 0}).to_string());
    assert_eq!(registry.call(&call, &ToolContext::new()).await.outcome.code(), None);
    client.close().await;
    assert_silent(&log, &["rmcp", "new event", "log_in", "sleeps"]);
}
