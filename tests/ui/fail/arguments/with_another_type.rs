#![allow(unused)]
use agent::tool;

struct Host(String);

fn host(text: String) -> Result<Host, String> {
    Ok(Host(text))
}

/// Sends a number.
#[tool]
fn a(#[arg(with(host as u8))] to: Host) {}

fn main() {}
