//! Real tools, a scripted model that makes typical mistakes, and every message between them.
//!
//! ```sh
//! cargo run --example quickstart     # no key, no network
//! ```
//!
//! The same with a real model, whose key is in `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `GEMINI_API_KEY`:
//!
//! ```sh
//! cargo run --example quickstart --features anthropic -- anthropic/claude-sonnet-5
//! cargo run --example quickstart --features openai -- openai/gpt-5
//! cargo run --example quickstart --features gemini -- gemini/gemini-3-flash-preview
//! ```
#![expect(clippy::print_stdout, reason = "the trace is what this example is for")]

use agent::model::{Model, reply};
use agent::{Assistant, EventKind, ScriptedModel, ToolArgs, ToolOutput, ToolSet, tool, tools};
use std::error::Error;
use std::sync::{Arc, Mutex};

// ---- The application: some state, two tools -------------------------------------------------------------------

/// What the tools work on; injected wherever one of them asks for `&Hotels`.
struct Hotels {
    rooms: Vec<Hotel>,
    booked: Mutex<u32>,
}

#[derive(ToolOutput, Clone)]
struct Hotel {
    name: &'static str,
    city: &'static str,
    stars: u8,
}

/// Finds hotels in a city.
#[tool(read_only)]
fn find_hotels(
    /// Name of the city, in English.
    city: String,
    /// At least this many stars.
    #[arg(range(1..=5), default = 1)]
    stars: u8,
    hotels: &Hotels,
) -> Vec<Hotel> {
    hotels.rooms.iter().filter(|hotel| hotel.city == city && hotel.stars >= stars).cloned().collect()
}

/// What `book_room` takes.
#[derive(ToolArgs)]
struct Booking {
    /// Name of the hotel, as `find_hotels` gave it.
    hotel: String,
    /// How many nights.
    #[arg(range(1..=30))]
    nights: u32,
    /// Everybody who stays.
    #[arg(length(1..=8))]
    guests: Vec<Guest>,
    /// Meals.
    #[arg(default = Meals::Breakfast)]
    board: Meals,
}

#[derive(ToolArgs)]
struct Guest {
    name: String,
    /// In years.
    #[arg(range(0..=150))]
    age: u8,
}

#[derive(ToolArgs, ToolOutput)]
#[serde(rename_all = "snake_case")]
enum Meals {
    RoomOnly,
    Breakfast,
    HalfBoard,
}

#[derive(ToolOutput)]
struct Confirmation {
    number: String,
    nights: u32,
    guests: Vec<String>,
    board: Meals,
}

/// Books a room in a hotel.
#[tool]
fn book_room(booking: Booking, hotels: &Hotels) -> Result<Confirmation, String> {
    if !hotels.rooms.iter().any(|hotel| hotel.name == booking.hotel) {
        return Err(format!("there is no hotel {:?}; ask find_hotels", booking.hotel));
    }
    let mut booked = hotels.booked.lock().map_err(|_| "the register is out of order")?;
    *booked += 1;
    Ok(Confirmation {
        number: format!("R-{:03}", *booked),
        nights: booking.nights,
        guests: booking.guests.into_iter().map(|guest| format!("{} ({})", guest.name, guest.age)).collect(),
        board: booking.board,
    })
}

/// What the model may call.
pub(crate) fn tools() -> ToolSet {
    tools![find_hotels, book_room]
}

// ---- The model: it sends what real ones send -------------------------------------------------------------------

fn model() -> ScriptedModel {
    ScriptedModel::new([
        // "4" where an integer is wanted: accepted, and recorded.
        reply().tool_call("find_hotels", r#"{"city": "Lisbon", "stars": "4"}"#),
        // A misspelt key, a wrong enum value, a number for a text, a word for a number, a key too many.
        reply().tool_call(
            "book_room",
            r#"{"hotel": "Astoria", "nigths": 2, "board": "halfboard",
                "guests": [{"name": "Ann", "age": "thirty"}, {"name": 7, "age": 29, "vip": true}]}"#,
        ),
        // One message told it all, so one more call is enough.
        reply().tool_call(
            "book_room",
            r#"{"hotel": "Astoria", "nights": "2", "board": "half_board",
                "guests": [{"name": "Ann", "age": 30}, {"name": "Bo", "age": 29}]}"#,
        ),
        reply().text("Done: two nights at the Astoria for Ann and Bo, half board, booking R-001."),
    ])
}

/// The scripted model, or the provider's that the first word names.
fn chosen() -> Result<Arc<dyn Model>, Box<dyn Error>> {
    match std::env::args().nth(1) {
        None => Ok(Arc::new(model())),
        #[cfg(any(feature = "anthropic", feature = "gemini", feature = "openai"))]
        Some(name) => Ok(Arc::new(agent::model(&name)?)),
        #[cfg(not(any(feature = "anthropic", feature = "gemini", feature = "openai")))]
        Some(name) => Err(format!("for `{name}` add `--features anthropic`, `gemini` or `openai`").into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let hotels = Hotels {
        rooms: vec![
            Hotel { name: "Astoria", city: "Lisbon", stars: 4 },
            Hotel { name: "Pensão Sol", city: "Lisbon", stars: 2 },
        ],
        booked: Mutex::new(0),
    };
    let assistant = Assistant::builder(chosen()?)
        .system("You are a travel agent.")
        .state(hotels)
        .tools(tools())
        .on_event(|event| trace(&event.kind))
        .build()?;

    section("What the model is shown");
    for definition in assistant.definitions().iter() {
        println!("{}: {}", definition.name(), definition.description());
        println!("{:#}\n", definition.parameters());
    }

    section("The run");
    let output = assistant
        .prompt("Two nights in Lisbon for Ann (30) and Bo (29), something nice, with dinner.")
        .await?;

    section("The answer");
    println!("{}", output.text());
    Ok(())
}

/// Prints what happens, as it happens.
fn trace(event: &EventKind) {
    match event {
        EventKind::ToolExecutionStart { call, .. } => {
            println!("the model calls {} with\n    {}", call.name, call.args.text());
        }
        EventKind::ToolExecutionEnd { result, .. } => {
            for c in &result.coercions {
                println!("  coerced {}: {} -> {} ({})", c.path, c.from, c.to, c.rule);
            }
            let said = if result.outcome.is_error() { "is told" } else { "gets" };
            println!("the model {said}\n    {}\n", result.outcome.text().replace('\n', "\n    "));
        }
        _ => {}
    }
}

fn section(title: &str) {
    println!("── {title} ─{}\n", "─".repeat(70 - title.chars().count()));
}
