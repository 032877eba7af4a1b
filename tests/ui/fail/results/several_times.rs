#![allow(unused)]
use agent::tool;

use std::pin::Pin;

/// Counts.
#[tool]
fn count(to: u8) -> impl Iterator<Item = u8> {
    0..to
}

/// Counts, perhaps.
#[tool]
fn perhaps(to: u8) -> Result<Box<dyn Iterator<Item = u8>>, String> {
    Ok(Box::new(0..to))
}

trait Stream {
    type Item;
}

/// Reads.
#[tool]
async fn read() -> Pin<Box<dyn Stream<Item = u8> + Send>> {
    loop {}
}

/// Reads on.
#[tool]
fn read_on() -> impl Stream<Item = u8> {
    Words
}

struct Words;

impl Stream for Words {
    type Item = u8;
}

fn main() {}
