#![allow(unused)]
use agent::ToolArgs;

#[derive(ToolArgs)]
struct A<'a> {
    a: &'a str,
    b: Option<&'static [u32]>,
}

fn main() {}
