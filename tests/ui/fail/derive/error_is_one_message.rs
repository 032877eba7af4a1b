#![allow(unused)]
use agent::{ToolArgs, tool};

#[derive(ToolArgs)]
struct A {
    #[arg(defualt = 1)]
    a: u8,
}

/// Does it.
#[tool]
fn f(a: A) -> u8 {
    a.a
}

fn main() {}
