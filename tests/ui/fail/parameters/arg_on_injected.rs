#![allow(unused)]
use agent::tool;

struct Db;

/// Does it.
#[tool]
fn f(#[arg(default)] db: &Db) {}

fn main() {}
