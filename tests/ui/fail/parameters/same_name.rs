#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(a: u8, #[arg(rename = "a")] b: u8, #[arg(alias = "d")] c: u8, d: u8) {}

fn main() {}
