#![allow(unused)]
use agent::{ToolArgs, tool};

const NOTHING: &str = " \n";
const NUMBER: u8 = 1;

#[tool(description = NOTHING)]
fn empty() {}

#[tool(description = NUMBER)]
fn number() {}

#[derive(ToolArgs)]
struct Args {
    #[arg(description = NOTHING)]
    a: String,
}

fn main() {}
