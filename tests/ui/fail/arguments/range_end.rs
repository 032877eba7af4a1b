#![allow(unused)]
use agent::tool;

const END: &str = "z";

/// Does it.
#[tool]
fn f(#[arg(range(1..=END))] a: u8) {}

fn main() {}
