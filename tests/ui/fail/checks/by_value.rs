//! A check takes a reference.
use agent::{ToolArgs, tool};

#[derive(ToolArgs)]
#[arg(validate = whole)]
struct Args {
    #[arg(validate = positive)]
    n: u64,
    #[arg(validate = small)]
    m: Option<u64>,
}

fn positive(n: u64) -> bool {
    n > 0
}

fn small(n: u64) -> Result<(), String> {
    if n < 10 { Ok(()) } else { Err("must be small".into()) }
}

fn whole(_: Args) -> Result<(), String> {
    Ok(())
}

fn two(_: &u64, _: &u64) -> Result<(), String> {
    Ok(())
}

/// Counts.
#[tool]
fn count(#[arg(validate = two)] n: u64) -> u64 {
    n
}

fn main() {}
