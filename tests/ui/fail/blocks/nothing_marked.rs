#![allow(unused)]
use agent::tool;

struct F;

#[tool]
impl F {
    fn a(&self) {}
}

fn main() {}
