#![allow(unused)]
use agent::ToolArgs;

#[derive(ToolArgs)]
struct A {
    a: u8,
    #[arg(alias = "a")]
    b: u8,
    #[arg(rename = "b", alias = "x", alias = "x")]
    c: u8,
}

fn main() {}
