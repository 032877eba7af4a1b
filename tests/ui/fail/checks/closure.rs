#![allow(unused)]
use agent::{ToolArgs, tool};

/// Does it.
#[tool]
fn f(#[arg(validate = |n: &u32| if *n > 1 { Ok(()) } else { Err("too small") })] n: u32) {}

#[derive(ToolArgs)]
#[arg(validate = |args: &Args| Ok::<(), String>(()))]
struct Args {
    n: u32,
}

fn main() {}
