//! Task: turn a function into a tool.
//!
//! ```sh
//! cargo run --example first_tool     # prints the result of a valid call, and what the model reads after an invalid one
//! ```
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::{Registry, ToolContext, message::ToolCall, tool, tool::RegistryError, tools};

/// Books a room in a hotel.
#[tool]
fn book_room(
    /// Name of the hotel.
    hotel: String,
    #[arg(range(1..=30), default = 1)] nights: u32,
) -> String {
    format!("{nights} nights at the {hotel}")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), RegistryError> {
    let registry = Registry::new(tools![book_room])?;
    for arguments in [r#"{"hotel": "Astoria", "nights": "2"}"#, r#"{"hotell": "Astoria", "nights": 90}"#] {
        let result =
            registry.call(&ToolCall::new("call_1", "book_room", arguments), &ToolContext::new()).await;
        println!("{arguments}\n=> {}\n", result.outcome.text());
    }
    Ok(())
}
