#![allow(unused)]
use agent::{tool, tools};

struct Cart;

#[tool]
impl Cart {
    /// Counts.
    #[tool]
    fn count(&self) -> u8 {
        1
    }
}

fn list() {
    let cart = Cart;
    let _ = tools![{ &cart }];
    let _ = tools![&cart];
}

fn main() {}
