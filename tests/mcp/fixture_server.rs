//! The server that the official conformance suite is run against, and that tests start as a child.
//!
//! `PORT=18013 mcp-fixture-server` serves at `http://127.0.0.1:18013/mcp`; `mcp-fixture-server stdio` over standard input.
//! What each tool gives is what the suite's scenarios ask for.
#![allow(missing_docs, clippy::print_stderr, clippy::exit, reason = "a program of the test suite")]

use agent::mcp::McpServer;
use agent::mcp::{RequestInfo, ServerHandle};
use agent::message::{Content, Part, Resource};
use agent::{Progress, Tool, ToolArgs, ToolContext, ToolError, ToolOutput, json, tool, tools};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

/// A picture of one pixel.
const PNG: [u8; 67] = [
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0,
    1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0x60, 0,
    0, 0, 2, 0, 1, 0x48, 0xaf, 0xa4, 0x71, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

/// A sound without samples.
const WAV: [u8; 44] = [
    b'R', b'I', b'F', b'F', 36, 0, 0, 0, b'W', b'A', b'V', b'E', b'f', b'm', b't', b' ', 16, 0, 0, 0, 1, 0,
    1, 0, 0x40, 0x1f, 0, 0, 0x40, 0x1f, 0, 0, 1, 0, 8, 0, b'd', b'a', b't', b'a', 0, 0, 0, 0,
];

/// The place in a trace that was sent with the last call.
#[derive(Clone, Default)]
struct LastTrace(Arc<Mutex<BTreeMap<String, String>>>);

/// Returns the place in a trace that was sent with this call.
#[tool]
fn show_trace(last: &LastTrace) -> String {
    format!("{:?}", last.0.lock().expect("not poisoned"))
}

/// Asks the person at the client.
#[tool(asks)]
async fn ask_seat(to: String, cx: &ToolContext) -> Result<String, ToolError> {
    let is_sure: bool = cx.ask("Are you sure?").await?;
    Ok(format!("{to}: {is_sure}"))
}

#[derive(ToolArgs)]
struct Name {
    name: String,
}

#[derive(ToolArgs)]
struct Color {
    color: String,
}

#[derive(ToolArgs)]
struct Confirmation {
    ok: bool,
}

/// Asks for a name.
#[tool(read_only)]
async fn test_input_required_result_elicitation(cx: &ToolContext) -> Result<String, ToolError> {
    let Name { name } = cx.ask("What is your name?").await?;
    Ok(format!("Hello, {name}!"))
}

/// Asks for a confirmation.
#[tool(read_only)]
async fn test_input_required_result_request_state(cx: &ToolContext) -> Result<String, ToolError> {
    let Confirmation { ok } = cx.ask("Please confirm").await?;
    Ok(format!("state-ok: {ok}"))
}

/// Asks twice.
#[tool(read_only)]
async fn test_input_required_result_multi_round(cx: &ToolContext) -> Result<String, ToolError> {
    let Name { name } = cx.ask("Step 1: What is your name?").await?;
    let Color { color } = cx.ask("Step 2: What is your favorite color?").await?;
    Ok(format!("{name} likes {color}."))
}

/// Asks for a confirmation, with a state that counts unchanged alone.
#[tool(read_only)]
async fn test_input_required_result_tampered_state(cx: &ToolContext) -> Result<String, ToolError> {
    let Confirmation { ok } = cx.ask("Please confirm").await?;
    Ok(ok.to_string())
}

/// Gives a text.
#[tool(read_only)]
fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Gives a picture.
#[tool]
fn test_image_content() -> ToolOutput {
    ToolOutput::image(PNG, "image/png")
}

/// Gives a sound.
#[tool]
fn test_audio_content() -> ToolOutput {
    ToolOutput::parts(vec![Part::audio(WAV, "audio/wav")])
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Part {
    Part::new(Content::Resource(Resource::text(uri, text).with_mime_type(mime_type)))
}

/// Gives a resource with its content.
#[tool]
fn test_embedded_resource() -> ToolOutput {
    ToolOutput::parts(vec![resource(
        "test://embedded-resource",
        "text/plain",
        "This is an embedded resource.",
    )])
}

/// Gives several kinds of content.
#[tool]
fn test_multiple_content_types() -> ToolOutput {
    ToolOutput::parts(vec![
        Part::text("Several kinds of content:"),
        Part::image(PNG, "image/png"),
        resource("test://mixed-content-resource", "application/json", r#"{"test":"data"}"#),
    ])
}

/// Always fails.
#[tool]
fn test_error_handling() -> Result<(), String> {
    Err("This tool fails on purpose.".to_owned())
}

/// Tells how far it is.
#[tool]
async fn test_tool_with_progress(cx: &ToolContext) -> &'static str {
    for done in [0, 50, 100] {
        cx.progress(Progress::new(format!("{done} of 100")).of(done, 100));
        sleep(Duration::from_millis(50)).await;
    }
    "Done."
}

/// How many calls of `test_cancellation` their clients cancelled.
#[derive(Default)]
struct Cancelled(AtomicUsize);

/// Waits for half a minute, or until its client cancels it.
#[tool]
async fn test_cancellation(cx: &ToolContext, cancelled: &Cancelled) -> &'static str {
    tokio::select! {
        () = cx.cancelled() => {
            cancelled.0.fetch_add(1, Ordering::Relaxed);
        }
        () = sleep(Duration::from_secs(30)) => {}
    }
    "Done."
}

/// Counts the calls of `test_cancellation` that were cancelled.
#[tool(read_only)]
fn test_cancelled_calls(cancelled: &Cancelled) -> Vec<usize> {
    vec![cancelled.0.load(Ordering::Relaxed)]
}

/// Takes a moment.
#[tool]
async fn test_reconnection() -> &'static str {
    sleep(Duration::from_millis(100)).await;
    "Still here."
}

/// Gives its value back.
#[tool]
fn test_custom_header(#[arg(extend("x-mcp-header" = "Value"))] value: String) -> String {
    value
}

/// Needs a client that runs its model for servers.
#[tool]
fn test_missing_capability(request: &RequestInfo) -> Result<&'static str, ToolError> {
    request.require("sampling")?;
    Ok("The client can sample.")
}

/// Does something that others would log.
#[tool]
fn test_logging_tool() -> &'static str {
    "Nothing was logged."
}

/// Does something that others would ask the user about.
#[tool]
fn test_streaming_elicitation() -> &'static str {
    "Nobody was asked."
}

/// Says that the tools changed.
#[tool]
fn test_trigger_tool_change(server: &ServerHandle) -> &'static str {
    server.tools_changed();
    "The clients that listen were told."
}

// What tests of ours need beyond the suite.

/// Crashes.
#[tool]
fn panics() -> String {
    panic!("a secret of the operator")
}

/// Ends the whole program.
#[tool]
fn exit_now() -> String {
    std::process::exit(3)
}

/// Takes long.
#[tool]
async fn sleeps(#[arg(range(..=60_000))] milliseconds: u64) -> &'static str {
    sleep(Duration::from_millis(milliseconds)).await;
    "Slept."
}

fn schema_tool() -> Result<Tool, tool::DefinitionError> {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    });
    Tool::new(
        "json_schema_2020_12_tool",
        "Has a schema with many keywords.",
        schema,
        |args, _cx| async move { Ok::<_, ToolError>(format!("Received {args}")) },
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut set = tools![
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_error_handling,
        test_tool_with_progress,
        test_reconnection,
        test_cancellation,
        test_cancelled_calls,
        test_custom_header,
        test_missing_capability,
        test_logging_tool,
        test_streaming_elicitation,
        test_trigger_tool_change,
        test_input_required_result_elicitation,
        test_input_required_result_request_state,
        test_input_required_result_multi_round,
        test_input_required_result_tampered_state,
        { schema_tool()? },
    ];
    let is_child = std::env::args().nth(1).as_deref() == Some("stdio");
    if is_child {
        set.add(tools![panics, exit_now, sleeps, ask_seat, show_trace]);
    }
    let server =
        McpServer::new(set).name("agent-fixture").version(env!("CARGO_PKG_VERSION")).max_calls_per_caller(64);
    let handle = server.handle();
    let server = server.state(handle).state(Cancelled::default());
    if is_child {
        let last = LastTrace::default();
        let server = server.state(last.clone()).on_trace_context(move |trace| {
            *last.0.lock().expect("not poisoned") = trace.clone().into_iter().collect();
        });
        return Ok(server.serve_stdio().await?);
    }
    let port = std::env::var("PORT").ok().map_or(Ok(0), |port| port.parse())?;
    let (url, serving) = server.bind(([127, 0, 0, 1], port)).await?;
    eprintln!("listening at {url}");
    serving.await;
    Ok(())
}
