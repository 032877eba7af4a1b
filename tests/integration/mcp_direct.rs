//! Calls that the server answers itself have the answers of `rmcp`, which reads calls whose headers have another form.

use super::mcp_support::{Reply, post, run};
use agent::mcp::{McpServer, RequestInfo};
use agent::{Progress, ToolContext, ToolError, Value, json, tool, tools};
use std::net::SocketAddr;

#[derive(agent::ToolOutput)]
struct Point {
    x: u32,
}

/// Returns a point.
#[tool(inline)]
fn point(x: u32) -> Point {
    Point { x }
}

/// Counts up.
#[tool(inline)]
fn count(to: Option<u32>) -> Vec<u32> {
    (0..to.unwrap_or(2)).collect()
}

/// Fails.
#[tool(inline)]
fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("there is no more \"tea\""))
}

/// Names the client.
#[tool]
fn who(request: &RequestInfo) -> String {
    let (name, version) = (request.client_name(), request.protocol_version());
    format!("{name:?} {:?} {version} {}", request.client_version(), request.has("roots"))
}

/// Needs a model.
#[tool]
fn think(request: &RequestInfo) -> Result<String, ToolError> {
    request.require("sampling").map(|()| "thought".to_owned())
}

/// Asks.
#[tool(read_only)]
async fn ask(cx: &ToolContext) -> Result<String, ToolError> {
    Ok(cx.ask::<bool>("Is it?").await?.to_string())
}

/// Climbs, and says where it is.
#[tool]
async fn climb(steps: u64, cx: &ToolContext) -> &'static str {
    for step in 1..=steps {
        cx.progress(Progress::new("climbing").of(step, steps));
        tokio::task::yield_now().await;
    }
    "Up."
}

/// With this header, `rmcp` reads the call.
const OTHER_FORM: &str = "accept: text/plain\r\n";

/// The same call, answered by the server and by `rmcp`.
async fn both(address: SocketAddr, version: &str, id: &Value, params: &Value) -> [Reply; 2] {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
    let name = params["name"].as_str().unwrap();
    let headers = match version {
        "" => String::new(),
        _ => format!("mcp-protocol-version: {version}\r\nmcp-method: tools/call\r\nmcp-name: {name}\r\n"),
    };
    [post(address, &headers, &body).await, post(address, &format!("{headers}{OTHER_FORM}"), &body).await]
}

/// The answer without what is random in it.
fn constant(reply: &Reply) -> Value {
    let mut json = reply.json();
    if let Some(state) = json.pointer_mut("/result/requestState") {
        *state = Value::from(state.is_string());
    }
    json
}

#[tokio::test]
async fn the_server_answers_as_rmcp_does() {
    let server = run(McpServer::new(tools![point, count, fail, who, think, ask])).await;
    let capabilities = json!({"elicitation": {}, "roots": {}});
    let named = json!({"name": "test", "version": "2"});
    let (mut bad, mut asked) = (0, 0);
    for version in ["2026-07-28", "2025-11-25", "2025-03-26", "2024-11-05", ""] {
        for (tool, arguments) in [
            ("point", json!({"x": 3})),
            ("point", json!({"x": "three", "y": 1})),
            ("count", json!({"to": 3})),
            ("count", Value::Null),
            ("fail", json!({})),
            ("who", json!({})),
            ("think", json!({})),
            ("ask", json!({})),
            ("nothing", json!({})),
        ] {
            for (id, has_name, can_ask) in [(json!(1), true, true), (json!("a\"b"), false, false)] {
                let mut meta = json!({});
                if version == "2026-07-28" {
                    meta["io.modelcontextprotocol/protocolVersion"] = json!(version);
                }
                meta["io.modelcontextprotocol/clientCapabilities"] =
                    if can_ask { capabilities.clone() } else { json!({}) };
                if has_name {
                    meta["io.modelcontextprotocol/clientInfo"] = named.clone();
                }
                let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
                let [own, other] = both(server.address, version, &id, &params).await;
                let what = format!("{version} {tool} {arguments} {id}");
                assert_eq!((own.status, constant(&own)), (other.status, constant(&other)), "{what}");
                assert_eq!(own.header("content-type"), other.header("content-type"), "{what}");
                bad += u32::from(own.status == 400);
                asked += u32::from(own.body.contains("requestState"));
            }
        }
    }
    // The tool that needs a capability, twice; those that ask have it only once.
    assert_eq!((bad, asked), (3, 1));
}

#[tokio::test]
async fn progress_is_a_stream_as_that_of_rmcp() {
    let server = run(McpServer::new(tools![climb])).await;
    for version in ["2026-07-28", "2025-11-25"] {
        for steps in [0, 1, 3] {
            let mut meta = json!({"progressToken": "t"});
            if version == "2026-07-28" {
                meta["io.modelcontextprotocol/protocolVersion"] = json!(version);
                meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            }
            let params = json!({"name": "climb", "arguments": {"steps": steps}, "_meta": meta});
            let [own, other] = both(server.address, version, &json!(1), &params).await;
            let events = |reply: &Reply| -> Vec<Value> {
                let data = reply.body.lines().filter_map(|line| line.strip_prefix("data: "));
                data.map(|data| serde_json::from_str(data).unwrap()).collect()
            };
            assert_eq!(events(&own), events(&other));
            assert_eq!(own.json(), other.json());
            // The answer is the last event; without progress, it is the only message.
            assert_eq!(events(&own).len(), if steps == 0 { 0 } else { steps + 1 }, "{own:?}");
            for header in ["content-type", "cache-control", "x-accel-buffering"] {
                assert_eq!(own.header(header), other.header(header), "{header}");
            }
        }
    }
}

#[tokio::test]
async fn a_client_without_a_name_has_none() {
    let server = run(McpServer::new(tools![who])).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (version, params) in
        [("2026-07-28", json!({"name": "who", "_meta": meta})), ("2025-11-25", json!({"name": "who"}))]
    {
        for reply in both(server.address, version, &json!(1), &params).await {
            assert_eq!(reply.text(), format!("None None {version} false"));
        }
    }
}
