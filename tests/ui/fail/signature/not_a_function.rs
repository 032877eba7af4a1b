#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
const A: u8 = 1;

fn main() {}
