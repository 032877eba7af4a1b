#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
struct A {
    a: u8,
}

fn main() {}
