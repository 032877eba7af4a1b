#![allow(unused)]
use agent::tool;

/// Looks.
///
/// # Arguments
/// * `ctiy` - Where.
/// * `unit` - What.
#[tool]
fn a(city: String, days: u8) {}

/// Looks.
///
/// # Arguments
/// * `city` - Where.
#[tool]
fn b() {}

fn main() {}
