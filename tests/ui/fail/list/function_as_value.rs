use agent::{ToolSet, tool};

/// Does it.
#[tool]
fn t() {}

fn main() {
    ToolSet::new().add(t);
}
