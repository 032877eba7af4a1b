#![allow(unused)]
use agent::{tool, tools};

/// Does it.
#[tool]
fn u8(x: u8) -> u8 {
    x
}

/// Does it.
#[tool]
fn std(x: u16) -> std::string::String {
    x.to_string()
}

/// Has another name.
#[tool(type = TextTool)]
fn str(x: &str) -> usize {
    x.len()
}

/// Gets such a name.
#[tool(type = bool)]
fn flag(x: u8) -> u8 {
    x
}

fn list() {
    let _ = tools![TextTool];
}

fn main() {}
