#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn a123456789_123456789_123456789_123456789_123456789_123456789_1234() {}

fn main() {}
