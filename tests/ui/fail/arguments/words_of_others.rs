#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(#[arg(min = 1, optional, desc = "x")] a: u8, #[arg(max_length = 3, regex = "a")] b: String, #[arg(ge = 1, lt = 9)] c: u8) {}

fn main() {}
