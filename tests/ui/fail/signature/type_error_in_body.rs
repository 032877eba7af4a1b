#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
async fn f(a: u8) -> String {
    a
}

fn main() {}
