#![allow(unused)]
use agent::ToolArgs;

struct Handle;

#[derive(ToolArgs)]
struct Args {
    #[arg(skip)]
    handle: Handle,
    b: u8,
}

fn main() {}
