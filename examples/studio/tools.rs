//! The tools of a small hotel.

use agent::{Progress, ToolArgs, ToolContext, ToolError, ToolOutcome, tool};
use std::time::Duration;

/// What a room looks out on.
#[derive(Clone, Copy, Debug, ToolArgs)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoomView {
    Sea,
    Garden,
    Street,
}

/// A person who stays.
#[derive(Debug, ToolArgs)]
pub(crate) struct Guest {
    /// The full name.
    #[arg(length(1..=80))]
    name: String,
    /// Where the confirmation is sent.
    email: Option<String>,
    /// The ages of children who come along.
    #[serde(default)]
    #[arg(length(..=4))]
    children: Vec<u8>,
}

/// How a stay is paid.
#[derive(Debug, ToolArgs)]
#[serde(tag = "method", rename_all = "snake_case")]
pub(crate) enum Payment {
    /// At the desk.
    Cash,
    /// By a card.
    Card {
        /// The last four digits.
        #[arg(pattern = "^[0-9]{4}$")]
        last_digits: String,
    },
    /// By an invoice to a company.
    Invoice {
        /// The name of the company.
        company: String,
        /// Its number for taxes.
        tax_number: Option<String>,
    },
}

/// Finds rooms that are free.
#[tool(read_only)]
pub(crate) async fn find_rooms(
    /// The number of guests.
    #[arg(range(1..=8))]
    guests: u32,
    /// The number of nights.
    #[arg(range(1..=30), default = 1)]
    nights: u32,
    /// What the room looks out on.
    view: Option<RoomView>,
    /// The most that a night may cost, in euros.
    budget: Option<f64>,
) -> Result<Vec<String>, ToolError> {
    tokio::time::sleep(Duration::from_millis(350)).await;
    let view = view.unwrap_or(RoomView::Garden);
    let price = 60.0 + 30.0 * f64::from(guests);
    if budget.is_some_and(|budget| budget < price) {
        return Err(ToolError::new(format!("No room for {guests} costs less than {price} euros.")));
    }
    Ok(vec![format!("Room 12, {view:?}, nights: {nights}, {price} euros each"), format!("Room 31, {view:?}")])
}

/// Books a room.
#[tool(approval = "always")]
pub(crate) fn book_room(
    /// The number of the room.
    #[arg(range(1..=60))]
    room: u32,
    /// Who stays.
    guest: Guest,
    /// How the stay is paid.
    payment: Payment,
    /// Wishes, such as a late arrival.
    #[arg(default)]
    wishes: Vec<String>,
) -> String {
    let Guest { name, email, children } = guest;
    let paid = match payment {
        Payment::Cash => "cash".to_owned(),
        Payment::Card { last_digits } => format!("the card that ends in {last_digits}"),
        Payment::Invoice { company, tax_number } => {
            format!("an invoice to {company} ({})", tax_number.as_deref().unwrap_or("no tax number"))
        }
    };
    let confirmation = email.map_or_else(String::new, |email| format!(" A confirmation goes to {email}."));
    let (children, wishes) = (children.len(), wishes.join(", "));
    format!(
        "Room {room} is booked for {name} and {children} children, paid by {paid}. Wishes: {wishes}.{confirmation}"
    )
}

/// Cancels a booking.
#[tool(destructive)]
pub(crate) fn cancel_booking(
    /// The number of the room.
    room: u32,
) -> String {
    format!("The booking of room {room} is cancelled.")
}

/// Has a welcome letter written. The desk delivers it later.
#[tool]
pub(crate) fn order_letter(
    /// The name on the letter.
    name: String,
) -> ToolOutcome {
    ToolOutcome::Deferred { handle: format!("letter for {name}") }
}

/// Unlocks a door.
#[tool(effect = "idempotent")]
pub(crate) fn unlock_door(
    door: String,
    /// The code of the door.
    #[arg(secret)]
    code: String,
) -> String {
    format!("{door} is open ({} digits)", code.len())
}

/// Forecasts the weather.
#[tool(read_only, timeout = "5s")]
pub(crate) async fn forecast(
    /// The number of days.
    #[arg(range(1..=7))]
    days: u32,
    cx: &ToolContext,
) -> String {
    for day in 0..days {
        cx.progress(Progress::new("asking the stations").of(day, days));
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    format!("Sunny for {days} days.")
}

/// A table in a restaurant.
#[derive(Debug, ToolArgs)]
struct Table {
    /// How many people come.
    #[arg(range(1..=12))]
    seats: u32,
    /// Where it stands.
    place: Place,
    /// A card to hold the table.
    #[arg(secret)]
    card: Option<String>,
}

#[derive(Debug, ToolArgs)]
#[serde(rename_all = "snake_case")]
enum Place {
    Inside,
    Terrace,
}

/// Reserves a table in a restaurant, and asks what it has to know.
#[tool(asks)]
pub(crate) async fn reserve_table(
    /// The name of the restaurant.
    restaurant: String,
    cx: &ToolContext,
) -> Result<String, ToolError> {
    let table: Table = cx.ask(format!("Which table at {restaurant}?")).await?;
    let Table { seats, place, card } = table;
    let held = card.map_or_else(String::new, |card| format!(", held by a card of {} digits", card.len()));
    let is_sure: bool = cx.ask(format!("{seats} seats at {restaurant}, {place:?}: is that right?")).await?;
    Ok(if is_sure {
        format!("{seats} seats at {restaurant} are reserved{held}.")
    } else {
        "Nothing is reserved.".to_owned()
    })
}
