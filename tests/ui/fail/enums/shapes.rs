#![allow(unused)]
use agent::tool;

/// Two texts.
#[tool]
enum Pair {
    Add(String, String),
    Remove(),
}

/// No action.
#[tool]
enum Nothing {}

/// Generic.
#[tool]
enum Generic<T> {
    Add { item: T },
}

fn main() {}
