//! The server that foreign clients are run against: `programs-server stdio`, or `programs-server http` for a port of its own.
#![allow(missing_docs, clippy::print_stderr, reason = "a program of the test suite")]

use agent::mcp::McpServer;
use agent::{Progress, ToolContext, ToolOutput, tool, tools};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// A picture of one pixel.
const PNG: [u8; 67] = [
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0,
    1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0x60, 0,
    0, 0, 2, 0, 1, 0x48, 0xaf, 0xa4, 0x71, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

#[derive(ToolOutput)]
struct Hotel {
    name: &'static str,
    stars: u8,
}

#[derive(ToolOutput)]
struct Booking {
    hotel: String,
    nights: u32,
    guests: Vec<String>,
}

/// The state of each job, by its label: only a tool can tell that it was cancelled.
#[derive(Default)]
struct Jobs(Mutex<BTreeMap<String, String>>);

impl Jobs {
    fn set(&self, label: &str, state: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(label.to_owned(), state);
    }

    fn get(&self, label: &str) -> String {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.get(label).cloned().unwrap_or_else(|| "unknown".to_owned())
    }
}

/// Adds two numbers.
#[tool(read_only)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Lists the hotels.
#[tool(read_only)]
fn find_hotels() -> Vec<Hotel> {
    vec![Hotel { name: "Lutetia", stars: 5 }, Hotel { name: "Mistral", stars: 2 }]
}

/// Books a room.
#[tool]
fn book_room(
    hotel: String,
    #[arg(range(1..=30))] nights: u32,
    #[arg(length(1..=8))] guests: Vec<String>,
) -> Booking {
    Booking { hotel, nights, guests }
}

/// Draws a picture.
#[tool(read_only)]
fn draw() -> ToolOutput {
    ToolOutput::image(PNG, "image/png")
}

/// Works for a number of steps of 50 ms, and stops when the call is cancelled.
#[tool]
async fn work(label: String, #[arg(range(1..=600))] steps: u32, cx: &ToolContext, jobs: &Jobs) -> String {
    for step in 1..=steps {
        jobs.set(&label, format!("step {step}"));
        cx.progress(Progress::new(format!("step {step}")).of(u64::from(step), u64::from(steps)));
        tokio::select! {
            () = sleep(Duration::from_millis(50)) => {}
            () = cx.cancelled() => {
                jobs.set(&label, format!("cancelled at step {step}"));
                return "stopped".to_owned();
            }
        }
    }
    jobs.set(&label, "completed".to_owned());
    format!("{steps} steps")
}

/// Returns the state of a job: `step 3`, `cancelled at step 3`, `completed` or `unknown`.
#[tool(read_only)]
fn state_of(label: String, jobs: &Jobs) -> String {
    jobs.get(&label)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = McpServer::new(tools![add, find_hotels, book_room, draw, work, state_of])
        .name("programs")
        .max_calls_per_caller(64)
        .state(Jobs::default());
    if std::env::args().nth(1).as_deref() == Some("stdio") {
        return Ok(server.serve_stdio().await?);
    }
    let (url, serving) = server.bind(([127, 0, 0, 1], 0)).await?;
    eprintln!("listening at {url}");
    serving.await;
    Ok(())
}
