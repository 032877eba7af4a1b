//! What does a model's call come to? Checks JSON against a sample tool, prints the coerced value or the report.
//!
//! ```sh
//! cargo run --example check -- '{"hotel": "Astoria", "nights": "2", "guests": [{"name": "Ann", "age": 31}]}'
//! echo '{"hotel": 5}' | cargo run --example check -- -
//! ```
//!
//! It ends with 0 when the call is accepted, 1 when it is refused, 2 when there is nothing usable to check.
#![expect(clippy::print_stderr, reason = "a command-line program talks on its standard streams")]

use agent::{Registry, ToolArgs, message::ToolCall, tool, tools};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::process::ExitCode;

/// More than any model sends as the arguments of one call.
const MOST: u64 = 4 * 1024 * 1024;

/// Books a room in a hotel.
#[tool]
fn book_room(booking: Booking) -> String {
    format!("{} nights at {}", booking.nights, booking.hotel)
}

/// What `book_room` takes: the kinds of parameters that models get wrong.
#[derive(ToolArgs)]
#[expect(dead_code, reason = "the sample is only checked, never run")]
struct Booking {
    /// Name of the hotel, as `find_hotels` gave it.
    #[arg(length(1..=80))]
    hotel: String,
    /// How many nights.
    #[arg(range(1..=30))]
    nights: u32,
    /// Day of arrival, like 2026-11-21.
    #[arg(pattern = r"^\d{4}-\d{2}-\d{2}$")]
    arrival: Option<String>,
    /// Everybody who stays.
    #[arg(length(1..=8))]
    guests: Vec<Guest>,
    /// Meals.
    #[arg(default = Meals::Breakfast)]
    board: Meals,
    /// How it is paid.
    #[arg(default = Payment::Invoice)]
    payment: Payment,
    /// Wishes in words, such as "quiet", "high floor".
    #[arg(default)]
    wishes: Vec<String>,
    /// Numbers of loyalty cards by programme.
    #[arg(default)]
    cards: BTreeMap<String, u64>,
}

/// Somebody who stays.
#[derive(ToolArgs)]
#[expect(dead_code, reason = "the sample is only checked, never run")]
struct Guest {
    name: String,
    /// In years.
    #[arg(range(0..=150))]
    age: u8,
    vegetarian: Option<bool>,
}

/// What is eaten at the hotel.
#[derive(ToolArgs)]
#[serde(rename_all = "snake_case")]
enum Meals {
    RoomOnly,
    Breakfast,
    HalfBoard,
}

/// How it is paid.
#[derive(ToolArgs)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "the sample is only checked, never run")]
enum Payment {
    /// By card.
    Card {
        /// Its number.
        #[arg(secret, pattern = "^[0-9]{12,19}$")]
        number: String,
    },
    /// By invoice.
    Invoice,
}

fn main() -> ExitCode {
    let (report, code) = match check() {
        Ok(report) => report,
        Err(error) => {
            eprintln!("check: {error}");
            return ExitCode::from(2);
        }
    };
    match writeln!(io::stdout().lock(), "{report}") {
        // Whoever read the output has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("check: the report cannot be written: {error}");
            ExitCode::from(2)
        }
        _ => ExitCode::from(code),
    }
}

/// What to print, and what to end with.
fn check() -> Result<(String, u8), Box<dyn Error>> {
    let registry = Registry::new(tools![book_room])?;
    match registry.validate(&ToolCall::new("call_1", "book_room", arguments()?)) {
        Ok(checked) => {
            let mut report = format!("{:#}", checked.args);
            for c in &checked.coercions {
                write!(report, "\ncoerced {}: {} -> {} ({})", c.path, c.from, c.to, c.rule)?;
            }
            Ok((report, 0))
        }
        Err(refusal) => Ok((refusal.to_string(), 1)),
    }
}

/// The JSON text to check: the only argument, or standard input for `-`.
fn arguments() -> Result<String, String> {
    const USAGE: &str = "usage: check '<json>', or check - to read standard input";
    let mut given = std::env::args_os().skip(1);
    let (Some(text), None) = (given.next(), given.next()) else { return Err(USAGE.into()) };
    let text = text.into_string().map_err(|_| "the argument is not UTF-8".to_owned())?;
    let text = if text == "-" {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes);
        read.map_err(|e| format!("standard input cannot be read: {e}"))?;
        if bytes.len() as u64 <= MOST {
            String::from_utf8(bytes).map_err(|e| format!("standard input is not UTF-8: {e}"))?
        } else {
            return Err(format!("the input is larger than {MOST} bytes"));
        }
    } else {
        text
    };
    if text.len() as u64 > MOST { Err(format!("the input is larger than {MOST} bytes")) } else { Ok(text) }
}
