#![allow(unused)]
use agent::ToolArgs;

#[derive(ToolArgs)]
#[arg(range(1..=5))]
enum E {
    #[arg(default)]
    A,
    B {
        #[arg(nested)]
        a: u8,
    },
}

fn main() {}
