#![allow(unused)]
use agent::tool;

/// Does it.
#[tool(none = "There is none.")]
fn always() -> String {
    String::new()
}

/// Does it.
#[tool(none = "There is none.")]
fn number() -> Result<u8, String> {
    Ok(1)
}

/// Does it.
#[tool(none = "")]
fn empty() -> Option<String> {
    None
}

/// Does it.
#[tool(none)]
fn flag() -> Option<String> {
    None
}

fn main() {}
