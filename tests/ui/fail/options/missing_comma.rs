#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(name = "x" read_only)]
fn f() {}

fn main() {}
