//! The tool that arguments are validated against if no schema is given.

use agent::{ToolArgs, tool};
use std::collections::BTreeMap;

/// Books a room in a hotel.
#[tool]
pub(crate) fn book_room(booking: Booking) -> String {
    format!("{} nights at {}", booking.nights, booking.hotel)
}

/// What `book_room` takes: the kinds of parameters that models get wrong.
#[derive(ToolArgs)]
#[expect(dead_code, reason = "the sample is only checked, never run")]
pub(crate) struct Booking {
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
