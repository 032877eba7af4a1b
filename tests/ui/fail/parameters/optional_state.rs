#![allow(unused)]
use agent::tool;

struct Db;

/// Does it.
#[tool]
fn f(db: Option<&Db>, count: Option<&u32>) {}

fn main() {}
