//! Compile errors.
fn main() {}
