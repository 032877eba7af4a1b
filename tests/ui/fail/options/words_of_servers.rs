#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(version = "1.2", enabled = false, structured_output = true)]
fn f() {}

fn main() {}
