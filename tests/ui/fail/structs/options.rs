#![allow(unused)]
use agent::{RunTool, ToolContext, tool};

/// Does it.
#[tool(inline, type = B)]
struct A {
    a: u8,
}

impl RunTool for A {
    type Output = ();
    async fn run(self, _: &ToolContext) {}
}

fn main() {}
