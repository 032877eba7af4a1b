#![allow(unused)]
use agent::tool;

/// Looks.
#[tool(examples("Paris"))]
fn a(city: String) {}

/// Looks.
#[tool(examples({"city": "Paris"}, ["Rome"]))]
fn b(city: String) {}

/// Looks.
#[tool(examples = {"city"})]
fn c(city: String) {}

/// Looks.
#[tool(examples())]
fn d(city: String) {}

fn main() {}
