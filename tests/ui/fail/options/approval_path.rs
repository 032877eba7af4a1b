#![allow(unused)]
use agent::tool;

fn is_risky(amount: u64) -> bool {
    amount > 100
}

/// Pays.
#[tool(approval = is_risky)]
fn pay(amount: u64) {}

fn main() {}
