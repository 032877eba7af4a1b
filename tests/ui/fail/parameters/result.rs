#![allow(unused)]
use agent::tool;

/// Takes a result.
#[tool]
fn a(value: Result<u8, String>) {}

fn main() {}
