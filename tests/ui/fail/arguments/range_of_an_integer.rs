#![allow(unused)]
use agent::{ToolArgs, tool};

const BIG: u32 = 300;
const HALF: f64 = 0.5;
type Small = u8;

/// Does it.
#[tool]
fn f(
    #[arg(range(1..=300))] a: u8,
    #[arg(range(-1..=10))] b: u32,
    #[arg(range(0.5..=3))] c: i8,
    #[arg(range(..=BIG))] d: Option<Small>,
    #[arg(range(HALF..))] e: u8,
    #[arg(range(-128..=127))] fits: i8,
    #[arg(range(0.5..=18446744073709551615))] float: f64,
) {
}

#[derive(ToolArgs)]
struct A {
    #[arg(range(0..=0x100))]
    a: Box<u8>,
}

fn main() {}
