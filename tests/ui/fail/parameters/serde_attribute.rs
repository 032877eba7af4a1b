#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(#[serde(default)] a: u8) {}

fn main() {}
