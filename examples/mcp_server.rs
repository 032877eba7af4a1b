//! An MCP server: tools for other programs.
//!
//! ```sh
//! cargo run --example mcp_server --features mcp-server                # stdio, for a host that starts it
//! cargo run --example mcp_server --features mcp-server -- http 8080   # http://127.0.0.1:8080/mcp
//! ```
//!
//! A host such as an editor needs the path of the built program, `target/debug/examples/mcp_server`:
//! `{"mcpServers": {"hotels": {"command": "/path/to/target/debug/examples/mcp_server", "args": []}}}`.
#![expect(clippy::print_stderr, reason = "standard output belongs to the protocol")]

use agent::mcp::McpServer;
use agent::{ToolArgs, ToolOutput, tool, tools};
use std::{error::Error, sync::Mutex, time::Duration};

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
    guests: Vec<String>,
}

/// Books a room.
#[tool]
fn book_room(booking: Booking, hotels: &Hotels) -> Result<String, String> {
    let Booking { hotel, nights, guests } = booking;
    if !hotels.rooms.iter().any(|known| known.name == hotel) {
        return Err(format!("there is no hotel {hotel:?}; ask find_hotels"));
    }
    let mut booked = hotels.booked.lock().map_err(|_| "the books are closed")?;
    *booked += 1;
    Ok(format!("booking {booked}: {hotel}, {nights} nights, for {}", guests.join(", ")))
}

fn hotels() -> Hotels {
    let rooms = vec![
        Hotel { name: "Lutetia", city: "Paris", stars: 5 },
        Hotel { name: "Mistral", city: "Paris", stars: 2 },
        Hotel { name: "Astoria", city: "Rome", stars: 4 },
    ];
    Hotels { rooms, booked: Mutex::new(0) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = McpServer::new(tools![find_hotels, book_room])
        .name("hotels")
        .instructions("Find a hotel before you book a room in it.")
        .state(hotels());
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        None | Some("stdio") => server.serve_stdio().await?,
        Some("http") => {
            let port = args.next().map_or(Ok(8080), |port| port.parse())?;
            let handle = server.handle();
            let (url, serving) = server.bind(([127, 0, 0, 1], port)).await?;
            eprintln!("listening at {url}; end it with Ctrl-C");
            tokio::spawn(async move {
                tokio::signal::ctrl_c().await.expect("a handler of Ctrl-C");
                handle.shutdown(Duration::from_secs(5)).await;
            });
            serving.await;
        }
        Some(other) => return Err(format!("{other:?}: write `stdio` or `http PORT`").into()),
    }
    Ok(())
}
