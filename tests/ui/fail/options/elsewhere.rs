#![allow(unused)]
use agent::tool;

/// Looks.
#[tool(set = "admin", pattern = "x", example = 1)]
fn a() {}

fn main() {}
