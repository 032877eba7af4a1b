#![allow(unused)]
use agent::tool;

#[doc = concat!("Does ", "it.")]
#[tool]
fn f() {}

fn main() {}
