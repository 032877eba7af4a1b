#![allow(unused)]
use agent::tool;

use std::sync::Arc;

/// Does it.
#[tool]
fn f(text: &Arc<str>, list: &Arc<[u32]>) {}

fn main() {}
