#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
unsafe extern "C" fn f(a: u8, ...) {}

fn main() {}
