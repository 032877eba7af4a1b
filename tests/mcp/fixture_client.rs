//! The client that the official conformance suite is run against.
//!
//! The suite gives the URL of its mock server as the last argument and says in the environment what it wants done. Calls that
//! fail are the suite's to judge; this program ends well unless it cannot connect at all.
#![allow(missing_docs, clippy::print_stderr, reason = "a program of the test suite")]

use agent::mcp::{ClientConfig, McpClient};
use agent::message::ToolCall;
use agent::{Registry, ToolContext, Value, json, tools};
use std::time::Duration;

/// What the suite has no more patience than.
const PATIENCE: Duration = Duration::from_secs(25);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().next_back().ok_or("no URL")?;
    if let Ok(result) = tokio::time::timeout(PATIENCE, run(&url)).await {
        return result;
    }
    eprintln!("gave up");
    Ok(())
}

async fn run(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let said = |name: &str| std::env::var(name).unwrap_or_default();
    // Two of the mock servers answer everything with success, so nothing can be found out by asking.
    let is_old = &*said("MCP_CONFORMANCE_PROTOCOL_VERSION") < "2026";
    let config = ClientConfig::http(url).name("suite");
    let client = McpClient::connect(if is_old { config.legacy() } else { config.modern() }).await?;
    let report = client.report().await;
    eprintln!("{report}");
    let registry = Registry::new(tools![{ client.clone() }])?;
    let context: Value = serde_json::from_str(&said("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    for (tool, arguments) in calls(&said("MCP_CONFORMANCE_SCENARIO"), &context, &report.tools, &registry) {
        let name = report.tools.iter().find(|(own, _)| *own == tool).map_or(&tool, |(_, shown_as)| shown_as);
        let call = ToolCall::new("1", name, arguments.to_string());
        let result = registry.call(&call, &ToolContext::new()).await;
        eprintln!("{name}: {}", result.outcome.text());
    }
    client.close().await;
    Ok(())
}

/// The calls to make: those that are asked for, or else one of every tool.
fn calls(
    scenario: &str,
    context: &Value,
    tools: &[(String, String)],
    registry: &Registry,
) -> Vec<(String, Value)> {
    if let Some(asked) = context["toolCalls"].as_array() {
        let call =
            |call: &Value| (call["name"].as_str().unwrap_or_default().to_owned(), call["arguments"].clone());
        return asked.iter().map(call).collect();
    }
    let parameters =
        |shown_as: &str| registry.get(shown_as).map(|tool| tool.definition().parameters().clone());
    if scenario == "json-schema-2020-12-preservation" {
        let received = tools
            .iter()
            .find(|(own, _)| own == "json_schema_2020_12_tool")
            .and_then(|(_, shown_as)| parameters(shown_as));
        return vec![("json_schema_echo".to_owned(), json!({"schema": received}))];
    }
    tools
        .iter()
        .map(|(own, shown_as)| (own.clone(), required(&parameters(shown_as).unwrap_or_default())))
        .collect()
}

/// Something for every required parameter.
fn required(schema: &Value) -> Value {
    let names = schema["required"].as_array().cloned().unwrap_or_default();
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("text"),
    };
    names.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), value(name))).collect()
}
