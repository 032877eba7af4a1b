#![allow(unused)]
use agent::ToolArgs;

#[derive(ToolArgs)]
union U {
    a: u8,
}

fn main() {}
