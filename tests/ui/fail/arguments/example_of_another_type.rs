#![allow(unused)]
use agent::tool;

/// Waits.
#[tool]
fn wait(#[arg(example = "abc")] days: Option<u32>, #[arg(example = 5)] name: String) {}

fn main() {}
