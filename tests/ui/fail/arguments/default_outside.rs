#![allow(unused)]
use agent::tool;

/// Sends.
#[tool]
fn send(
    #[arg(default = "abcdef", length(1..=3))] code: String,
    #[arg(default = 2.5, range(0.0..=1.0))] ratio: f64,
    #[arg(default = -1, range(0..))] level: i32,
    #[arg(default = 7, multiple_of = 5)] minutes: u32,
) {
}

fn main() {}
