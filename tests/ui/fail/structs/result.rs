#![allow(unused)]
use agent::{RunTool, ToolContext, tool};

struct Out;

/// Does it.
#[tool]
struct A {
    a: u8,
}

impl RunTool for A {
    type Output = Out;
    async fn run(self, _: &ToolContext) -> Out {
        Out
    }
}

fn main() {}
