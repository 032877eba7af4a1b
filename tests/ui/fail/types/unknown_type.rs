#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(a: u8, x: Strin) -> u8 {
    a
}

fn main() {}
