#![allow(unused)]
use agent::{tool, tools};

/// Notes.
#[tool]
enum Notes {
    Add { text: String },
}

fn main() {
    let set = tools![Notes];
}
