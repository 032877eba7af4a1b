#![allow(unused)]
use agent::{tool, tools};

#[tool]
fn f(a: u8) -> u8 {
    a
}

fn main_is_fine() -> u8 {
    let _ = tools![f];
    f(1)
}

fn main() {}
