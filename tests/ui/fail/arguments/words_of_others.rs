#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(#[arg(min = 1, optional, desc = "x")] a: u8, #[arg(max_length = 3, regex = "a")] b: String) {}

fn main() {}
