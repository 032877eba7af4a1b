#![allow(unused)]
use agent::tool;

struct Database;

/// Does it.
#[tool]
async fn f(db: Database) -> u8 {
    1
}

fn main() {}
