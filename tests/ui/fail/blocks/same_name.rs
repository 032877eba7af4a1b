#![allow(unused)]
use agent::tool;

struct F;

#[tool]
impl F {
    /// Does it.
    #[tool]
    fn a(&self) {}
    /// Does it.
    #[tool(name = "a")]
    fn b(&self) {}
}

fn main() {}
