//! Names are serde's.
#![allow(unused)]
use agent::ToolArgs;

#[derive(ToolArgs)]
#[arg(rename_all = "camelCase")]
struct Args {
    first_name: String,
}

#[derive(ToolArgs)]
#[arg(tag = "kind")]
enum Payment {
    #[arg(rename_all = "camelCase")]
    Card { card_number: String },
}

fn main() {}
