#![allow(unused)]
use agent::ToolArgs;

#[derive(ToolArgs)]
struct A {
    a: std::time::Instant,
}

fn main() {}
