#![allow(unused)]
use agent::{ToolArgs, tool};

#[derive(ToolArgs)]
struct Args {
    #[arg(skip, range(1..))]
    a: u8,
    b: u8,
    #[arg(skip, coerce = "exact")]
    c: u8,
}

/// Skips.
#[tool]
fn f(#[arg(skip)] a: u8, b: u8) {}

fn main() {}
