#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(name["x"])]
fn f(#[arg[default = 1]] a: u8, #[arg] b: u8, #[arg()] c: u8, #[arg = 1] d: u8) {}

fn main() {}
