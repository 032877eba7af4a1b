#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(name = "get weather")]
fn f() {}

fn main() {}
