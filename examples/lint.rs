//! Finds what a model would miss in the tools of the quickstart, and says what each costs in a request.
//!
//! ```sh
//! cargo run --example lint                                              # lists the costs and the findings
//! cargo run --example lint -- --deny                                    # exits with 1 if there are any
//! cargo run --example lint -- --deny --allow undocumented_parameter     # except for an allowed lint
//! ```
//!
//! In a test it is one line: `assert_eq!(Registry::new(tools![…])?.lint(), [])`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the command line")]

#[path = "quickstart.rs"]
#[expect(dead_code, reason = "its tools are wanted, not its run")]
mod quickstart;

use agent::{Registry, lint::Lint};
use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let (mut denies, mut allowed) = (false, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--deny" => denies = true,
            "--allow" => allowed.push(lint(&words.next().unwrap_or_default())?),
            other => {
                return Err(format!("no such option: {other:?}; there are --deny and --allow LINT").into());
            }
        }
    }
    let registry = Registry::new(quickstart::tools())?;
    for tool in &*registry.definitions() {
        println!("`{}` costs about {} tokens in each request", tool.name(), tool.estimated_tokens());
    }
    let mut findings = registry.lint();
    findings.retain(|finding| !allowed.contains(&finding.lint));
    for finding in &findings {
        println!("{finding}");
    }
    Ok(if denies && !findings.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn lint(name: &str) -> Result<Lint, String> {
    let names = || Lint::ALL.map(Lint::as_str).join(", ");
    let found = Lint::ALL.into_iter().find(|lint| lint.as_str() == name);
    found.ok_or_else(|| format!("no such lint: {name:?}; there are {}", names()))
}
