use agent::{ToolArgs, tool};

#[derive(ToolArgs)]
#[arg(validate = of_another)]
struct Args {
    #[arg(validate = is_even)]
    name: String,
    #[arg(validate = by_value)]
    count: Option<u32>,
}

fn is_even(n: &u32) -> Result<(), String> {
    if n % 2 == 0 { Ok(()) } else { Err("must be even".into()) }
}

fn by_value(_: u32) -> Result<(), String> {
    Ok(())
}

fn of_another(_: &String) -> Result<(), String> {
    Ok(())
}

/// Counts.
#[tool]
fn count(#[arg(validate = is_even)] text: &str) -> usize {
    text.len()
}

fn main() {}
