#![allow(unused)]
use agent::{ToolArgs, ToolOutput};

#[derive(ToolArgs)]
struct A {
    #[serde(renam = "x")]
    a: u8,
}

#[derive(ToolArgs)]
#[serde(rename_all = "snake")]
enum B {
    A,
}

#[derive(ToolOutput)]
#[serde(rename_all = "snake")]
struct C {
    a: u8,
}

fn main() {}
