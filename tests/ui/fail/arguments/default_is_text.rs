#![allow(unused)]
use agent::{ToolArgs, tool};

#[derive(ToolArgs)]
enum Mode {
    Fast,
    Slow,
}

/// Does it.
#[tool]
fn f(#[arg(default = "5")] a: u32, #[arg(default = "fast")] b: Mode, #[arg(default = "x")] c: String) {}

fn main() {}
