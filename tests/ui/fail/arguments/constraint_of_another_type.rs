#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(
    #[arg(range(1..=5))] a: String,
    #[arg(length(1..=5))] b: u32,
    #[arg(pattern = "x")] c: Option<Vec<u8>>,
    #[arg(length(1))] d: bool,
    #[arg(range(1..=5))] e: Vec<u8>,
    #[arg(range(..=1))] f: bool,
) {
}

fn main() {}
