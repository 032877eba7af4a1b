use agent::{ToolArgs, tool};
use std::collections::HashMap;

#[derive(ToolArgs, PartialEq, Eq, Hash)]
struct Place {
    row: u8,
}

/// Seats people.
#[tool]
fn seat(places: HashMap<Place, String>) -> usize {
    places.len()
}

fn main() {}
