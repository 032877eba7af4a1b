#![allow(unused)]
use agent::tool;

/// Pays.
#[tool(approval = when(|amount: &u32| *amount > 100))]
fn pay(amount: u64, to: String) {}

/// Pays.
#[tool(approval = when(|amount: &u64| *amount))]
fn pay_more(amount: u64, to: String) {}

fn main() {}
