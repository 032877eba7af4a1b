#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(nmae = "x", name = "a", name = "b", timeout = 10, coerce = "strikt", "text", default = 1)]
fn f() {}

fn main() {}
