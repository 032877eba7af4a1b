#![allow(unused)]
use agent::tool;

struct Out;

/// Does it.
#[tool]
async fn f() -> Result<Out, String> {
    Ok(Out)
}

fn main() {}
