#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(
    #[arg(range(1..50))] a: u8,
    #[arg(range(9..=1))] b: u8,
    #[arg(range(..))] c: u8,
    #[arg(range = 5)] d: u8,
    #[arg(range(5))] e: u8,
    #[arg(range(1, 5))] g: u8,
    #[arg(range(1..=5), default = 9)] f: u8,
) {
}

fn main() {}
