#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
fn f<T: Into<String>, const N: usize>(a: T, b: [u8; N]) {}

fn main() {}
