#![allow(unused)]
use agent::tool;

struct F;

#[tool]
impl Clone for F {
    /// Does it.
    #[tool]
    fn clone(&self) -> F {
        F
    }
}

fn main() {}
