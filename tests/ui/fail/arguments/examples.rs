#![allow(unused)]
use agent::tool;

/// Looks.
#[tool]
fn a(#[arg(example)] city: String, #[arg(example())] days: u8) {}

/// Looks.
#[tool]
fn b(#[arg(extend("minimum" = 1))] days: u8, #[arg(extend(x = 1))] city: String) {}

/// Looks.
#[tool]
fn c(#[arg(extend("x-secret" = true))] days: u8) {}

fn main() {}
