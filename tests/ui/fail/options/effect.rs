#![allow(unused)]
use agent::tool;

/// Reads.
#[tool(read_only, effect = "once")]
fn a() {}

/// Writes.
#[tool(effect = "idempotant")]
fn b() {}

/// Writes.
#[tool(effect = pure)]
fn c() {}

fn main() {}
