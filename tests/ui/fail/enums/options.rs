#![allow(unused)]
use agent::tool;

/// Notes.
#[tool(inline, type = Other, approval = when(|text: &String| true))]
enum Notes {
    Add { text: String },
}

fn main() {}
