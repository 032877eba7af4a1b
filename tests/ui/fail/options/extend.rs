#![allow(unused)]
use agent::tool;

/// Looks.
#[tool(extend(category = "files"))]
fn a() {}

/// Looks.
#[tool(extend("category"))]
fn b() {}

/// Looks.
#[tool(extend("a" = 1, "b" = {}, "a" = 2))]
fn c() {}

/// Looks.
#[tool(extend = "x")]
fn d() {}

fn main() {}
