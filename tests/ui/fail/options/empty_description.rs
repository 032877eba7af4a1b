#![allow(unused)]
use agent::tool;

#[tool(description = " ")]
fn f() {}

fn main() {}
