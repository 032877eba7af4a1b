#![allow(unused)]
use agent::{ToolArgs, tool};

#[derive(ToolArgs)]
struct Args {
    a: u8,
}

/// Does it.
#[tool]
fn f(#[arg(nested, flatten)] a: Args, #[arg(flatten, default)] b: Args, #[arg(name = "x", rename = "y")] c: u8) {}

fn main() {}
