#![allow(unused)]
use agent::tool;

/// Counts.
#[tool(read_only, max_attempts = 0, max_retries = "3", max_result_bytes = 64 * 1024)]
fn a() {}

/// Counts.
#[tool(read_only, max_attempts = 99999999999, max_retries = -1, max_result_bytes)]
fn b() {}

fn main() {}
