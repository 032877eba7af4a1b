//! `ToolArgs` derives serde's and schemars' traits itself.
#![allow(unused)]
use agent::{ToolArgs, ToolOutput};

#[derive(ToolArgs, serde::Deserialize)]
struct Arguments {
    a: u8,
}

#[derive(ToolOutput, serde::Serialize)]
struct Answer {
    a: u8,
}

#[derive(ToolArgs)]
#[derive(schemars::JsonSchema)]
struct InTwoLists {
    a: u8,
}

fn main() {}
