#![allow(unused)]
use agent::tool;

struct F;

#[tool(read_only, name = "x", type = T)]
impl F {
    /// Does it.
    #[tool(crate = ::agent, type = T)]
    fn a(&self) {}
    #[tool]
    const A: u8 = 1;
}

fn main() {}
