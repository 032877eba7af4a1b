#![allow(unused)]
use agent::tool;

/// Words.
#[tool(approval = "allways")]
fn a() {}

/// No value.
#[tool(approval)]
fn b() {}

/// Another name.
#[tool(approval = when(|amuont: &u64| true))]
fn c(amount: u64, to: String) {}

/// No type.
#[tool(approval = when(|amount| true))]
fn d(amount: u64) {}

/// By value.
#[tool(approval = when(|amount: u64| true))]
fn e(amount: u64) {}

/// No arguments.
#[tool(approval = when(|| true))]
fn f(amount: u64) {}

/// Not when.
#[tool(approval = if_so(|amount: &u64| true))]
fn g(amount: u64) {}

/// No closure.
#[tool(approval = when(true))]
fn h(amount: u64) {}

/// No arguments at all.
#[tool(approval = when(|amount: &u64| true))]
fn i() {}

/// Another name, of the only one.
#[tool(approval = when(|amuont: &u64| true))]
fn j(amount: u64) {}

/// Another name, of a text that is lent.
#[tool(approval = when(|two: &String| true))]
fn k(to: &str) {}

fn main() {}
