#![allow(unused)]
use agent::{ToolArgs, tool};

#[derive(ToolArgs)]
struct Both {
    a: u8,
}

/// Does it.
#[tool]
fn f(a: Both) -> Vec<Both> {
    vec![a]
}

fn main() {}
