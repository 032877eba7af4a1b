#![allow(unused)]
mod search {
    /// Does it.
    #[agent::tool]
    pub fn search(q: String) {}
}
use search::search;

fn main() {}
