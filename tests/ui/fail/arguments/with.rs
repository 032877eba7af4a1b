#![allow(unused)]
use agent::tool;

struct Host(String);

fn host(text: String) -> Result<Host, String> {
    Ok(Host(text))
}

/// No type.
#[tool]
fn a(#[arg(with = host)] to: Host) {}

/// No function.
#[tool]
fn b(#[arg(with(String))] to: Host) {}

/// Nothing.
#[tool]
fn c(#[arg(with)] to: Host) {}

fn main() {}
