#![allow(unused)]
use agent::{ToolArgs, tool};

struct Counter;

#[derive(ToolArgs)]
struct Request {
    a: i32,
}

#[tool(tool_box)]
impl Counter {
    /// Adds.
    #[tool]
    fn sum(&self, #[tool(aggr)] request: Request) -> i32 {
        request.a
    }

    /// Looks.
    #[tool]
    fn look(&self, #[tool(param)] city: String) -> String {
        city
    }
}

fn main() {}
