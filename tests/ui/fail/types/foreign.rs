#![allow(unused)]
use agent::tool;

struct No;

/// Does it.
#[tool]
fn f(a: std::time::Instant, b: Vec<No>, c: &[No]) {}

fn main() {}
