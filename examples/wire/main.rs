//! Inspects provider traffic: decodes a recorded response, encodes a conversation as a request, or decodes and re-encodes a request.
//!
//! ```sh
//! cargo run --release --example wire --features openai,anthropic,gemini,testing -- decode --api anthropic body.sse
//! … decode --api openai-chat --chunk 1 --status 429 *.json     # one byte at a time; as the body of an error
//! … encode --api openai-responses conversation.json                 # what an assistant would send of it
//! … roundtrip --api gemini request.json                     # decodes and re-encodes a request
//! ```
//!
//! Prints one JSON line per file. The exit code is 0, 1 if a file could not be read, decoded or encoded, or 2 for invalid usage.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is what it is for")]

mod decode;
mod request;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use agent::Value;
use agent::model::ModelInfo;
use agent::provider::{Protocol, protocol, protocols};

const USAGE: &str = "usage: wire decode|encode|roundtrip --api API [options] FILE…
  decode     --chunk BYTES   feed the body in pieces of this size (default: whole)
             --status N      the HTTP status of the answer (default: 200)
  encode     --model NAME    the model, if the file does not name one
  all        --provider NAME whose it is (default: the API's own provider)";

/// What was asked for.
struct Options {
    command: String,
    protocol: Arc<dyn Protocol>,
    provider: String,
    model: String,
    chunk: usize,
    status: u16,
    files: Vec<String>,
}

impl Options {
    fn info(&self, model: &str) -> ModelInfo {
        ModelInfo::new(self.provider.as_str(), self.protocol.api(), model)
    }
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut failed = false;
    for file in &options.files {
        match run(&options, file) {
            Ok(line) => println!("{line}"),
            Err(error) => {
                eprintln!("{file}: {error}");
                failed = true;
            }
        }
    }
    ExitCode::from(u8::from(failed))
}

fn run(options: &Options, file: &str) -> Result<Value, Box<dyn Error>> {
    let bytes = std::fs::read(file)?;
    match options.command.as_str() {
        "decode" => decode::decode(options, file, &bytes),
        "encode" => request::encode(options, file, &serde_json::from_slice(&bytes)?),
        _ => request::roundtrip(options, file, &serde_json::from_slice(&bytes)?),
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let command = words.next().filter(|word| ["decode", "encode", "roundtrip"].contains(&word.as_str()));
    let command = command.ok_or("the first word says what to do")?;
    let (mut api, mut provider, mut model) = (None, None, "unnamed".to_owned());
    let (mut chunk, mut status, mut files) = (usize::MAX, 200, Vec::new());
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("`{word}` wants a value"));
        match word.as_str() {
            "--api" => api = Some(value()?),
            "--provider" => provider = Some(value()?),
            "--model" => model = value()?,
            "--chunk" => {
                chunk =
                    value()?.parse().ok().filter(|n| *n > 0).ok_or("`--chunk` wants a positive number")?;
            }
            "--status" => status = value()?.parse().map_err(|_| "`--status` wants a number")?,
            flag if flag.starts_with("--") => return Err(format!("`{flag}` is no option")),
            _ => files.push(word),
        }
    }
    let known = || protocols().collect::<Vec<_>>().join(", ");
    let api = api.ok_or_else(|| format!("`--api` is missing: one of {}", known()))?;
    let protocol = protocol(&api).ok_or_else(|| format!("`{api}` is no API: one of {}", known()))?;
    if files.is_empty() {
        return Err("no file is named".to_owned());
    }
    let provider = provider.unwrap_or_else(|| api.split('-').next().unwrap_or_default().to_owned());
    Ok(Options { command, protocol, provider, model, chunk, status, files })
}
