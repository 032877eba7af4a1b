#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(a: &std::cell::Cell<u8>) {}

fn main() {}
