#![allow(unused)]
use agent::{tool, tools};

struct Files;

#[tool(set = "admin")]
impl Files {
    /// Reads.
    #[tool]
    fn read(&self) {}
}

fn main() {
    let set = tools![Files.admin()];
}
