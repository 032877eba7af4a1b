use agent::{ToolArgs, tool};

/// Finds.
#[tool(coerce = "strict + fold_enums")]
fn find(#[arg(coerce = "strong - fold_enum")] query: String) -> String {
    query
}

#[derive(ToolArgs)]
struct Args {
    #[arg(coerce = "exact + text_to_integer - text_to_intger")]
    count: u32,
}

fn main() {}
