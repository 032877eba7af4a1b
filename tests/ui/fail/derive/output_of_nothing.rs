#![allow(unused)]
use agent::ToolOutput;

struct No;

#[derive(ToolOutput)]
struct A {
    a: No,
}

fn main() {}
