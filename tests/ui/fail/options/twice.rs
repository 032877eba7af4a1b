#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
#[tool(read_only)]
fn f() {}

fn main() {}
