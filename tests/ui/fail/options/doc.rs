#![allow(unused)]
use agent::tool;

/// Reads.
#[tool(doc = true)]
fn a() {}

/// Reads.
#[tool(doc = "first")]
fn b() {}

/// Reads.
#[tool(doc = false, description = "Reads.")]
fn c() {}

fn main() {}
