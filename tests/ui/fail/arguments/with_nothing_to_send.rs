#![allow(unused)]
use agent::tool;

struct Host(String);

fn host(host: Host) -> Result<Host, String> {
    Ok(host)
}

/// Sends what cannot be sent.
#[tool]
fn b(#[arg(with(host as Host))] to: Host) {}

fn main() {}
