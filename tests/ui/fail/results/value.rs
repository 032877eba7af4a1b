#![allow(unused)]
use agent::tool;

struct Out;

/// Does it.
#[tool]
fn f() -> Out {
    Out
}

fn main() {}
