#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(a: &mut Vec<u8>) {}

fn main() {}
