#![allow(unused)]
use agent::tool;

struct F<T>(T);

#[tool]
impl<T: Send + Sync + 'static> F<T> {
    /// Does it.
    #[tool]
    fn a(&self, list: Vec<T>) {}
}

fn main() {}
