#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(#[arg(length(-1..=3))] a: String, #[arg(length(1.5..))] b: String, #[arg(length)] c: String) {}

fn main() {}
