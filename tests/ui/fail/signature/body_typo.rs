#![allow(unused)]
use agent::{tool, tools};

/// Does it.
#[tool]
fn f(
    /// Documented.
    a: u8,
) -> u8 {
    let x = ;
    a
}

fn other() {
    f(1);
    let _ = tools![f];
}

fn main() {}
