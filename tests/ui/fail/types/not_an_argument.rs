#![allow(unused)]
use agent::tool;

struct NotArgs;

/// Does it.
#[tool]
fn f(a: u8, x: NotArgs) {}

fn main() {}
