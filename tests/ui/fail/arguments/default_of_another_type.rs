#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(#[arg(default = 'x')] n: u32, #[arg(default = "ten")] m: u32) {}

fn main() {}
