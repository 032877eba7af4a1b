#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(a: Option<&str>, b: Vec<&[u32]>) {}

fn main() {}
