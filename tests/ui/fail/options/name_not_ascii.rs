#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn größe() {}

fn main() {}
