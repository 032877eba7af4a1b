use agent::{ToolArgs, tool};
use std::collections::{BTreeMap, HashMap};

#[derive(ToolArgs)]
struct Args {
    by_place: Option<Vec<HashMap<(i32, i32), String>>>,
}

/// Counts.
#[tool]
fn count(by_code: BTreeMap<[u8; 2], u32>) -> usize {
    by_code.len()
}

fn main() {}
