#![allow(unused)]
use agent::{ToolArgs, tool};

/// Looks.
///
/// # Arguments
/// * `city` - Where.
#[tool(require_docs)]
fn a(city: String, days: u8, #[arg(description = "Unit.")] unit: char) {}

#[derive(ToolArgs)]
#[arg(require_docs)]
struct Args {
    city: String,
    /// How many.
    days: u8,
}

struct Files;
#[tool(require_docs)]
impl Files {
    /// Reads.
    #[tool]
    fn read(&self, path: String) {}
}

fn main() {}
