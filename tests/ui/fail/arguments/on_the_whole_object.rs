#![allow(unused)]
use agent::{ToolArgs, tool};

#[derive(ToolArgs, Default)]
struct Args {
    a: u8,
}

/// Does it.
#[tool]
fn f(#[arg(default)] args: Args) {}

fn main() {}
