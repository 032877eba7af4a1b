//! Our client against the official server with everything in it, over standard input and over HTTP.
//!
//! `MCP_EVERYTHING` names its program (`tests/mcp/conformance.sh` sets it).

use agent::mcp::{ClientConfig, McpClient};
use agent::message::{Content, ToolCall};
use agent::{Registry, ToolContext, ToolOutcome, Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::sleep;

async fn use_it(config: ClientConfig) {
    let client = McpClient::connect(config.name("all")).await.unwrap();
    let registry = Registry::new(client.tools()).unwrap();
    let call = async |tool: &str, arguments: Value| -> ToolOutcome {
        let call = ToolCall::new("1", format!("all__{tool}"), arguments.to_string());
        registry.call(&call, &ToolContext::new()).await.outcome
    };
    assert_eq!(call("echo", json!({"message": "hello"})).await.text(), "Echo: hello");
    assert!(call("get-sum", json!({"a": "40", "b": 2})).await.text().contains("42"));
    assert!(call("get-sum", json!({"a": "many"})).await.text().contains("Invalid arguments"));
    let image = call("get-tiny-image", json!({})).await;
    let content = &image.output().unwrap().content;
    assert!(content.iter().any(|part| matches!(part.content, Content::Image(_))));
    let structured = call("get-structured-content", json!({"location": "New York"})).await;
    assert!(structured.output().unwrap().structured.is_some(), "{structured:?}");
    let long = call("trigger-long-running-operation", json!({"duration": 1, "steps": 4})).await;
    assert!(!long.is_error(), "{long:?}");
    client.close().await;
}

#[tokio::test]
#[ignore = "conformance: needs MCP_EVERYTHING"]
async fn the_everything_server_is_used_over_both_transports() {
    let program = std::env::var_os("MCP_EVERYTHING").expect("MCP_EVERYTHING names the server's program");
    use_it(ClientConfig::command(&program).arg("stdio").inherit_env("NODE_OPTIONS")).await;
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut server = std::process::Command::new(&program)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..100 {
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    let used = tokio::spawn(use_it(ClientConfig::http(format!("http://127.0.0.1:{port}/mcp")))).await;
    let _ = server.kill();
    let _ = server.wait();
    used.unwrap();
}
