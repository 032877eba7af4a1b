#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(a: &[u8]) {}

fn main() {}
