#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(crate = ::ai)]
fn f() {}

fn main() {}
