#![allow(unused)]
use agent::tool;

type Text<'a> = &'a str;

/// Does it.
#[tool]
fn f(text: Text<'_>) {}

fn main() {}
