#![allow(unused)]
use agent::tool;

struct F;

#[tool]
impl F {
    /// Does it.
    #[tool]
    fn a(&mut self, x: u8) {}
    /// Does it.
    #[tool]
    fn b(x: u8) {}
    /// Does it.
    #[tool]
    fn c(self, x: u8) {}
    /// Does it.
    #[tool]
    fn d(self: std::sync::Arc<Self>, x: &mut u8) {}
    #[tool]
    fn e(&self) {}
}

fn main() {}
