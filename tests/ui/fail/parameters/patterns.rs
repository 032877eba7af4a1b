#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f((a, b): (u8, u8), _: u8, _1: String, ref d: u8, _fine: u8) {}

fn main() {}
