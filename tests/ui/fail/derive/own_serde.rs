#![allow(unused)]
use agent::ToolArgs;

#[derive(ToolArgs)]
#[arg(own_serde, nested)]
struct A {
    #[arg(range(1..=5))]
    a: u8,
}

fn main() {}
