#![allow(unused)]
use agent::tool;

struct F<'a>(&'a str);

#[tool]
impl<'a> F<'a> {
    /// Does it.
    #[tool]
    fn a(&self) {}
}

fn main() {}
