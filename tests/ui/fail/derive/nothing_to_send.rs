#![allow(unused)]
use agent::ToolArgs;

#[derive(ToolArgs)]
enum Never {}

#[derive(ToolArgs)]
struct Unit;

fn main() {}
