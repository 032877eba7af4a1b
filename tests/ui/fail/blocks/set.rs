#![allow(unused)]
use agent::tool;

struct Files;

#[tool(set = admin)]
impl Files {
    /// Reads.
    #[tool]
    fn read(&self) {}
}

#[tool(set = "for admins", name = "x")]
impl Files {
    /// Writes.
    #[tool(set = "admin")]
    fn write(&self) {}
}

fn main() {}
