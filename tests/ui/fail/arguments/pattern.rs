#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(#[arg(pattern = "[a-")] a: String, #[arg(pattern = "a(?=b)")] b: String, #[arg(pattern = "^a+$")] c: String) {}

fn main() {}
