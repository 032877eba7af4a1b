//! Prints the public items in a file of rustdoc's JSON, one a line, sorted. See `.ci/public-api`.

use std::error::Error;
use std::io::{BufWriter, Write as _, stdout};

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args().nth(1).ok_or("usage: agent-public-api FILE")?;
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
    Ok(())
}
