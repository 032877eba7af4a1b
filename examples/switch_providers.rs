//! Task: switch to another provider within a conversation, without changing anything else.
//!
//! ```sh
//! cargo run --example switch_providers --features anthropic,openai,gemini     # local servers take the providers' place: no key, no network
//! ANTHROPIC_API_KEY=… OPENAI_API_KEY=… \
//! cargo run --example switch_providers --features anthropic,openai,gemini -- anthropic/claude-sonnet-5 openai/gpt-5
//! ```
//!
//! Each model receives the whole conversation in its own format, including the calls and results of the others.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::message::Conversation;
use agent::provider::http::HttpModel;
use agent::{Assistant, EventKind, json, tool, tools};
use agent_examples::loopback::Loopback;
use std::error::Error;

/// What one euro is in another currency.
#[tool(read_only)]
fn rate(
    /// Three letters.
    #[arg(pattern = "^[A-Z]{3}$")]
    currency: String,
) -> Result<f64, String> {
    match currency.as_str() {
        "CHF" => Ok(0.93),
        "USD" => Ok(1.16),
        _ => Err(format!("no rate for {currency}")),
    }
}

/// A provider's model: with the key of the environment, or played.
fn model(name: &str, played: Option<&Loopback>) -> Result<HttpModel, Box<dyn Error>> {
    match played {
        None => Ok(agent::model(name)?),
        Some(server) => Ok(HttpModel::builder(name).key("played").base_url(server.url()).build()?),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    let server = if names.is_empty() { Some(played()?) } else { None };
    if server.is_some() {
        names = ["anthropic/claude-sonnet-5", "openai/gpt-5", "gemini/gemini-3-flash-preview"]
            .map(String::from)
            .into();
    }

    let mut conversation = Conversation::new();
    for (name, question) in names.iter().zip(["And in CHF?", "And in USD?", "Which is more?"]) {
        let assistant = Assistant::builder(model(name, server.as_ref())?)
            .system("You know what 100 euros are worth.")
            .tools(tools![rate])
            .conversation(conversation)
            .on_event(|event| {
                if let EventKind::ToolExecutionEnd { result, .. } = &event.kind {
                    println!("  {} = {}", result.tool, result.outcome.text());
                }
            })
            .build()?;
        println!("{question}");
        println!("  {name}: {}", assistant.prompt(question).await?.text());
        conversation = assistant.messages();
    }
    println!("{} messages in one conversation", conversation.len());
    Ok(())
}

/// What the three say, each in the JSON of its protocol.
fn played() -> std::io::Result<Loopback> {
    let anthropic =
        |content| json!({"id": "m", "model": "claude", "content": [content], "usage": {"input_tokens": 9}});
    let openai = |message| json!({"id": "c", "model": "gpt", "choices": [{"index": 0, "message": message}]});
    let bodies = [
        anthropic(json!({"type": "tool_use", "id": "toolu_1", "name": "rate", "input": {"currency": "CHF"}})),
        anthropic(json!({"type": "text", "text": "93 francs."})),
        openai(json!({"role": "assistant", "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "rate", "arguments": "{\"currency\": \"USD\"}"}}
        ]})),
        openai(json!({"role": "assistant", "content": "116 dollars."})),
        json!({"candidates": [{"content": {"parts": [{"text": "The dollars are more."}]}, "finishReason": "STOP"}]}),
    ];
    Loopback::new("application/json", bodies.map(|body| body.to_string()))
}
