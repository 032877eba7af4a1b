#![allow(unused)]
use agent::ToolOutput;

struct No;

#[derive(ToolOutput)]
struct A {
    a: u8,
    b: No,
    c: Vec<No>,
}

#[derive(ToolOutput)]
enum B {
    A(No),
    B(Box<B>),
}

fn main() {}
