//! Demo tools. They have no real effect, and say so.

use agent::{Progress, ToolArgs, ToolContext, ToolError, ToolOutput, ToolSet, tool, tools};
use std::time::Duration;

pub(crate) fn tools() -> ToolSet {
    tools![weather, pay, slow_work, count_up, unlock, reserve]
}

#[derive(ToolArgs, ToolOutput, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[derive(ToolOutput)]
struct Day {
    number: u8,
    degrees: i32,
    unit: Unit,
    sky: &'static str,
}

/// Forecast of the weather in a city. It is made up, for trying things out.
#[tool(read_only, inline)]
fn weather(
    /// Name of the city, such as Paris.
    city: String,
    /// For how many days.
    #[arg(range(1..=7), default = 1)]
    days: u8,
    #[arg(default = Unit::Celsius)] unit: Unit,
) -> Vec<Day> {
    let seed: i32 = city.bytes().map(i32::from).sum();
    let day = |day: u8| {
        let celsius = (seed + i32::from(day) * 7) % 30;
        let degrees = if let Unit::Fahrenheit = unit { celsius * 9 / 5 + 32 } else { celsius };
        let sky = ["sunny", "cloudy", "rain"][usize::from(day) % 3];
        Day { number: day, degrees, unit, sky }
    };
    (1..=days).map(day).collect()
}

/// Pretends to pay money to somebody. Above 100, somebody has to allow it.
#[tool(inline, approval = when(|amount: &u64| *amount > 100))]
fn pay(
    /// Who gets it, such as Ann.
    to: String,
    /// How much.
    #[arg(range(1..=10_000))]
    amount: u64,
) -> String {
    format!("{amount} paid to {to} (not really)")
}

/// Does slow work for some seconds, and tells how far it is.
#[tool(timeout = "2m")]
async fn slow_work(
    /// How long it takes.
    #[arg(range(1..=60), default = 6)]
    seconds: u64,
    cx: &ToolContext,
) -> String {
    for second in 0..seconds {
        cx.progress(Progress::new("working").of(second, seconds));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    format!("{seconds} seconds of work are done")
}

/// Counts up to a number, one number a line.
#[tool(read_only, inline)]
fn count_up(
    /// The last number.
    #[arg(range(1..=10_000))]
    to: u32,
) -> String {
    (1..=to).map(|number| number.to_string()).collect::<Vec<_>>().join("\n")
}

/// Pretends to unlock a door. Its code is secret: neither the screen nor the log shows it.
#[tool(inline, approval = "always")]
fn unlock(
    /// Which door, such as Garage.
    door: String,
    /// Its code.
    #[arg(secret, range(1_000..=9_999))]
    code: u32,
) -> String {
    format!("{door} is open (not really), by a code whose digits add up to {}", digits(code))
}

#[derive(ToolArgs)]
#[serde(rename_all = "lowercase")]
enum Place {
    Inside,
    Garden,
}

#[derive(ToolArgs)]
struct Table {
    /// How many people come.
    #[arg(range(1..=12))]
    seats: u8,
    place: Place,
}

/// Pretends to reserve a table. The tool asks you what it has to know.
#[tool(asks)]
async fn reserve(
    /// Name of the restaurant, such as Sole.
    restaurant: String,
    cx: &ToolContext,
) -> Result<String, ToolError> {
    let table: Table = cx.ask(format!("Which table at {restaurant}?")).await?;
    let place = match table.place {
        Place::Inside => "inside",
        Place::Garden => "in the garden",
    };
    Ok(format!("{} seats {place} of {restaurant} are reserved (not really)", table.seats))
}

fn digits(code: u32) -> u32 {
    code.to_string().chars().filter_map(|digit| digit.to_digit(10)).sum()
}
