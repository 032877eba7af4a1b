#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(timeout = "10 seconds")]
fn f() {}

/// Does it.
#[tool(timeout = 10)]
fn h() {}

/// Does it.
#[tool(timeout = "0s")]
async fn g() {}

fn main() {}
