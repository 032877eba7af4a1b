#![allow(unused)]
use agent::{ToolArgs, tool};

const NOTHING: &str = " \n";
const NUMBER: u8 = 1;

#[tool(description = format!("Does {}", "it."))]
fn at_run_time() {}

#[tool(description = 5)]
fn number() {}

#[tool(title = NOTHING, description = "Does it.")]
fn title() {}

#[doc = include_str!("description_from_macro.rs")]
#[tool(doc = "summary")]
fn summary() {}

#[doc = concat!("", " ")]
#[tool]
fn nothing() {}

#[derive(ToolArgs)]
struct Args {
    #[arg(description = || "a")]
    a: String,
}

fn main() {}
