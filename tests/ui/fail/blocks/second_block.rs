#![allow(unused)]
use agent::tool;

struct Files;

#[tool]
impl Files {
    /// Reads.
    #[tool]
    fn read(&self) {}
}

#[tool]
impl Files {
    /// Writes.
    #[tool]
    fn write(&self) {}
}

fn main() {}
