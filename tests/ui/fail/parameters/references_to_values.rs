#![allow(unused)]
use agent::tool;

use std::path::Path;

type Text = String;

/// Does it.
#[tool]
fn f(a: &Text, b: &Vec<u8>, c: &Path, d: &u32, e: &Option<u8>) {}

fn main() {}
