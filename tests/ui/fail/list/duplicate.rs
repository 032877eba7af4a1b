#![allow(unused)]
use agent::{tool, tools};

mod a {
    /// Does it.
    #[agent::tool]
    pub fn search(q: String) {}
}

/// Does it.
#[tool]
fn search(q: String) {}

fn list() {
    let _ = tools![search, a::search];
    let _ = tools![
        #[cfg(any())]
        b::search,
        search,
        #[cfg(all())]
        a::search,
    ];
}

fn main() {}
