#![allow(unused)]
use agent::ToolArgs;

struct No;

#[derive(ToolArgs)]
struct A {
    a: No,
}

fn main() {}
