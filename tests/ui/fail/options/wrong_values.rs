#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(name, title = 3, read_only = "yes", unknown = drop, type = "T", crate = "agent")]
fn f() {}

fn main() {}
