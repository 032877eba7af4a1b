#![allow(unused)]
use agent::{tool, tools};

/// Does it.
#[tool]
fn f() {}

fn list() {
    let mine = tools![f];
    let _ = tools![mine];
}

fn main() {}
