#![allow(unused)]
use agent::tool;

type Text = str;

/// Does it.
#[tool]
fn f(a: &Text) {}

fn main() {}
