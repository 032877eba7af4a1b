#![allow(unused)]
use agent::tool;

/// As rig says it.
#[tool(params(x = "The first number."), required(x))]
fn a(x: i64) {}

/// As rmcp says it.
#[tool(annotations(read_only_hint = true), input_schema = schema())]
fn b(x: i64) {}

/// As others say it.
#[tool(needs_approval, retries = 2, sequential, blocking, tags("a"), about = "x")]
fn c(x: i64) {}

fn main() {}
