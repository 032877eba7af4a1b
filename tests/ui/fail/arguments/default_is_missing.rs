#![allow(unused)]
use agent::{ToolArgs, tool};

struct Neither;

#[derive(ToolArgs)]
struct NoDefault {
    a: u8,
}

/// Does it.
#[tool]
fn f(#[arg(default)] a: Neither, #[arg(default = Neither)] b: Neither, #[arg(default)] c: NoDefault) {}

#[derive(ToolArgs)]
struct A {
    #[arg(default)]
    a: NoDefault,
}

fn main() {}
