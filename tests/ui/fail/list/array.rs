use agent::{Registry, tool};

/// Does it.
#[tool]
fn t() {}

fn main() {
    let _ = Registry::new([t]);
}
