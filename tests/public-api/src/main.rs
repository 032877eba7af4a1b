//! Reads a file of rustdoc's JSON: `list` prints its public items, one a line, sorted; `examples` prints those without an
//! example, and fails if there are any. See `.ci/public-api`.

mod examples;

use std::error::Error;
use std::io::{BufWriter, Write as _, stdout};
use std::process::ExitCode;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list", json] => list(json),
        ["examples", json] => {
            let without = examples::without(&serde_json::from_str(&std::fs::read_to_string(json)?)?);
            without.iter().for_each(|item| println!("{item}"));
            Ok(if without.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        _ => Err("usage: agent-public-api list|examples FILE".into()),
    }
}

fn list(json: &str) -> Result<ExitCode, Box<dyn Error>> {
    // What every type has by itself says nothing.
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .sorted(true)
        .build()?;
    let mut out = BufWriter::new(stdout().lock());
    for item in api.items() {
        writeln!(out, "{item}")?;
    }
    Ok(ExitCode::SUCCESS)
}
