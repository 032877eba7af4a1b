//! The studio, with a scripted model that needs no key: `cargo run --example studio --features studio`.

use agent::model::reply;
use agent::studio::Studio;
use agent::{Assistant, ScriptedModel, tool, tools};

/// Finds rooms that are free.
#[tool(read_only)]
fn find_rooms(
    /// The number of guests.
    #[arg(range(1..=8))]
    guests: u32,
) -> String {
    format!("Room 12 is free for {guests}.")
}

/// Books a room.
#[tool(approval = "always")]
fn book_room(
    /// The number of the room.
    room: u32,
    /// The name of the guest.
    guest: String,
) -> String {
    format!("Room {room} is booked for {guest}.")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new([
        reply().text("Let me look.").tool_call("find_rooms", r#"{"guests": "2"}"#),
        reply().tool_call("book_room", r#"{"room": 12, "guest": "Ann"}"#),
        reply().text("Room 12 is booked."),
    ]);
    let assistant = Assistant::builder(model).tools(tools![find_rooms, book_room]).build()?;
    let port = std::env::args().nth(1).map_or(Ok(4000), |port| port.parse())?;
    Ok(Studio::new(assistant).serve(([127, 0, 0, 1], port)).await?)
}
