#![allow(unused)]
use agent::tool;

struct Db;

/// Does it.
#[tool]
fn f(text: &'static str, list: &'static [u32], db: &'static Db) {}

fn main() {}
