//! The command line.

use agent::args::{CoercionPolicy, PlanOptions, UnknownKeys};
use agent::schema::Dialect;
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: check [options] '<json>'     check this JSON text
       check [options] -            check standard input
       check [options] --batch      answer each line of standard input:
                                    {\"id\", \"schema\", \"text\" | \"arguments\", \"policy\"?, \"unknown\"?}
       check [options] --dialect D  show the schema as a provider is sent it, and what it does not say
options: --schema FILE              any JSON Schema, instead of the sample tool
         --policy exact|strict|lenient, and single rules: 'strict + fold_enum - number_to_text'
         --dialect canonical|plain|openai-strict|anthropic-strict|gemini-json-schema|gemini-legacy|llama-cpp
                                    with JSON text: it is a reply to that form of the schema
         --unknown deny|strip|keep
         --report text|json
         --help                     this text";

/// Where the arguments come from.
#[derive(Debug, PartialEq)]
pub(crate) enum Input {
    Text(String),
    Stdin,
    Batch,
    /// No arguments are read: the schema is shown.
    Schema,
    /// No arguments are read: the usage is shown.
    Help,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Report {
    Text,
    Json,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) input: Input,
    pub(crate) schema: Option<PathBuf>,
    pub(crate) plan: PlanOptions,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) report: Report,
}

impl Options {
    /// # Errors
    /// Returns a message that says what is wrong with the command line.
    pub(crate) fn from_args(args: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let (mut input, mut schema, mut plan, mut dialect, mut report) =
            (None, None, PlanOptions::default(), None, Report::Text);
        let mut args = args;
        while let Some(arg) = args.next() {
            let arg = arg.into_string().map_err(|_| "an argument is not UTF-8".to_owned())?;
            let mut value = || args.next().ok_or_else(|| format!("{arg} wants a value\n{USAGE}"));
            let one_of =
                |value: OsString, words: &str| format!("{arg} is one of {words}, not {}", value.display());
            match arg.as_str() {
                "--schema" => schema = Some(PathBuf::from(value()?)),
                "--policy" => {
                    let policy = value()?.to_string_lossy().parse::<CoercionPolicy>();
                    plan = plan.coercion(policy.map_err(|unknown| format!("{arg}: {unknown}"))?);
                }
                "--dialect" => {
                    let word = value()?.to_string_lossy().parse::<Dialect>();
                    dialect = Some(word.map_err(|unknown| format!("{arg}: {unknown}"))?);
                }
                "--unknown" => {
                    let word = value()?;
                    let unknown = word.to_str().and_then(UnknownKeys::from_name);
                    plan = plan.unknown(unknown.ok_or_else(|| one_of(word, "deny, strip, keep"))?);
                }
                "--report" => {
                    let word = value()?;
                    report = match word.to_str() {
                        Some("text") => Report::Text,
                        Some("json") => Report::Json,
                        _ => return Err(one_of(word, "text, json")),
                    };
                }
                _ if input.is_some() => return Err(format!("one input at a time\n{USAGE}")),
                "--help" | "-h" => input = Some(Input::Help),
                "--batch" => input = Some(Input::Batch),
                "-" => input = Some(Input::Stdin),
                unknown if unknown.starts_with("--") => {
                    return Err(format!("there is no option {unknown}\n{USAGE}"));
                }
                _ => input = Some(Input::Text(arg)),
            }
        }
        let input = input.or(dialect.map(|_| Input::Schema)).ok_or(USAGE)?;
        if input == Input::Batch && (schema.is_some() || dialect.is_some() || report == Report::Json) {
            return Err("in a batch each line brings its schema, and answers are JSON".into());
        }
        Ok(Self { input, schema, plan, dialect, report })
    }
}
