#![allow(unused)]
use agent::tool;

struct NotArgs;

/// Does it.
#[tool]
fn f(x: Option<NotArgs>) {}

fn main() {}
