#![allow(unused)]
use agent::tool;

struct F(std::cell::Cell<u8>);

#[tool]
impl F {
    /// Does it.
    #[tool]
    fn a(&self) {}
}

fn main() {}
