//! The studio, with a model of a few rules that needs no key: `cargo run --example studio --features studio`.
//!
//! An argument sets the port, 4000 by default.

mod model;
mod tools;

use agent::store::MemoryStore;
use agent::studio::Studio;
use agent::{Assistant, tools};
use model::DemoModel;
use tools::{book_room, cancel_booking, find_rooms, forecast, order_letter, reserve_table, unlock_door};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let concierge = Assistant::builder(DemoModel::new())
        .system("You are the concierge of a small hotel.")
        .tools(tools![reserve_table, forecast])
        .build()?;
    let assistant = Assistant::builder(DemoModel::new())
        .system("You are the desk of a small hotel.")
        .tools(tools![
            find_rooms,
            forecast,
            book_room,
            cancel_booking,
            order_letter,
            unlock_door,
            reserve_table
        ])
        .tools(concierge.as_tool("concierge", "Looks after whatever a guest needs outside of the hotel."))
        .store(MemoryStore::new())
        .build()?;
    let port = std::env::args().nth(1).map_or(Ok(4000), |port| port.parse())?;
    Ok(Studio::new(assistant).serve(([127, 0, 0, 1], port)).await?)
}
