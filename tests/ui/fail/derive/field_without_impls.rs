#![allow(unused)]
use agent::ToolArgs;
use std::collections::BTreeMap;

struct No;

#[derive(ToolArgs)]
struct Plain {
    a: u8,
    b: No,
}

#[derive(ToolArgs)]
struct Wrapped(Option<No>);

#[derive(ToolArgs)]
enum Recursive {
    Leaf(No),
    Node { map: BTreeMap<String, Vec<No>>, more: Box<Recursive> },
}

#[derive(ToolArgs)]
struct Defaulted {
    #[arg(default = No)]
    a: No,
}

fn main() {}
