#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(read_only, destructive)]
fn f() {}

/// Does it.
#[tool(inline, timeout = "1s")]
fn g() {}

/// Does it.
#[tool(inline)]
async fn h() {}

fn main() {}
