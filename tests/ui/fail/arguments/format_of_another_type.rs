use agent::{ToolArgs, tool};

#[derive(ToolArgs)]
struct Args {
    #[arg(format = "date")]
    day: u32,
    #[arg(multiple_of = 0.5)]
    whole: i64,
    #[arg(multiple_of = 2)]
    name: String,
    #[arg(unique)]
    word: Option<String>,
}

/// Looks.
#[tool]
fn look(#[arg(unique)] n: u8) -> u8 {
    n
}

fn main() {}
