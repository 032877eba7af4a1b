#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(read_onyl)]
fn f() {}

fn main() {}
