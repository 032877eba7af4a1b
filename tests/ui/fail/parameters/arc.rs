#![allow(unused)]
use agent::{ToolContext, tool};

use std::sync::Arc;

struct Db;

/// Does it.
#[tool]
fn f(a: Arc<Db>, b: &Arc<Db>, cx: ToolContext) {}

fn main() {}
