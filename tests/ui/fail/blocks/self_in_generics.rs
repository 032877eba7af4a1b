#![allow(unused)]
use agent::tool;

use std::collections::BTreeMap;

struct Cart;

#[tool]
impl Cart {
    /// Returns them.
    #[tool]
    fn all(&self) -> Result<Vec<Self>, String> {
        Ok(Vec::new())
    }

    /// Takes them.
    #[tool]
    fn add(&self, carts: Vec<Self>, named: Option<BTreeMap<String, Self>>) {}
}

fn main() {}
