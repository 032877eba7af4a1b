#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f((a, b): (u8, u8), _: u8, _c: String, ref d: u8) {}

fn main() {}
