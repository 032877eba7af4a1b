#![allow(unused)]
use agent::tool;

struct S;
impl S {
    /// Does it.
    #[tool]
    fn f(&self, a: u8) {}
}

fn main() {}
