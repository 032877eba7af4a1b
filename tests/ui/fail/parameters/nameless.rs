#![allow(unused)]
use agent::{ToolArgs, tool};

#[derive(ToolArgs)]
struct Point {
    x: i32,
}

/// Not an object.
#[tool]
fn a(_: u8) {}

/// Not an object.
#[tool]
fn b((x, y): (u8, u8)) {}

/// Under its own name, which there is not.
#[tool]
fn c(#[arg(nested)] Point { x }: Point) {}

fn main() {}
