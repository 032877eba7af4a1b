#![allow(unused)]
use agent::tool;

struct Db;

/// Does it.
#[tool]
fn f(a: &&Db, b: *const u8) {}

fn main() {}
