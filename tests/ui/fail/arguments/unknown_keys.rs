#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(#[arg(defualt = 1)] a: u8, #[arg(required)] b: u8, #[arg(crate = ::agent)] c: u8) {}

fn main() {}
