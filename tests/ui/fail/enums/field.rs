#![allow(unused)]
use agent::{RunTool, ToolContext, tool};

struct Secret;

/// Notes.
#[tool]
enum Notes {
    Add { text: Secret },
}
impl RunTool for Notes {
    type Output = ();
    async fn run(self, _: &ToolContext) {}
}

fn main() {}
