#![allow(unused)]
#![deny(deprecated)]
use agent::tool;

type Bytes = Vec<u8>;

/// Draws.
#[tool]
fn draw() -> Vec<u8> {
    Vec::new()
}

/// Reads.
#[tool]
fn read() -> Result<Bytes, String> {
    Ok(Vec::new())
}

/// Rolls dice.
#[tool]
fn roll() -> agent::Json<Vec<u8>> {
    agent::Json(vec![6, 1])
}

fn main() {}
