#![allow(unused)]
use agent::{ToolArgs, tool};

use std::rc::Rc;

#[derive(ToolArgs)]
struct Point {
    x: i32,
    #[arg(skip)]
    seen: Rc<u8>,
}

/// Takes a value that stays on its thread.
#[tool]
fn f(point: Point) {}

/// Takes several.
#[tool]
fn g(points: Vec<Point>, name: String) {}

fn main() {}
