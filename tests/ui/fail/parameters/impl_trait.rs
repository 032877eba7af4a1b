#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f(a: impl Into<String>, b: &impl std::fmt::Display) {}

fn main() {}
