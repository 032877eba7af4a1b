#![allow(unused)]
use agent::tool;

/// Sends.
#[tool(max_attempts = 3)]
fn send() {}

/// Sends.
#[tool(max_attempts = 3, effect = "once", idempotent)]
fn send_again() {}

fn main() {}
