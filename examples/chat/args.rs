//! The command line.

use agent::model::Thinking;
use lexopt::prelude::*;
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
A chat with tools.

usage: chat [options] [question]
       echo question | chat [options] [more of it]

  --model NAME           provider/model, such as anthropic/claude-sonnet-5 or ollama/qwen3; or `demo`.
                         Else the one that the session was made with.
                         Else the first of ANTHROPIC_DEFAULT_MODEL, OPENAI_DEFAULT_MODEL, GEMINI_DEFAULT_MODEL, ….
                         Else the built-in demo model, which is no language model.
  --mcp [NAME=]URL       also use the tools of an MCP server over HTTP; with a name, NAME_MCP_TOKEN is its bearer token
  --mcp [NAME=]COMMAND   also use the tools of an MCP server that is a program: 'npx -y some-server'
  --mcp-timeout SECONDS  how long an MCP server may take to connect (else 60, over HTTP 30); the chat begins without it then
  --session NAME         go on with this conversation, and keep it
  --log FILE             append what goes to the model and to MCP servers, and comes back, to this file, without keys and secrets
  --system TEXT          the system prompt
  --thinking LEVEL       none, minimal, low, medium, high, xhigh, max, or a number of tokens
  --allow TOOL           never ask before this tool runs; `docs__*` allows all tools of `docs`
  --window TOKENS        keep what the model is sent within so many tokens, else within its own window, if that is known
  --no-tools             leave out the tools to try things with
  --help

--mcp and --allow may be given several times. In the chat, /help lists the commands.
Sessions and history are in AGENT_CHAT_HOME, else in the usual folder for data.
It ends with 0; in a pipe with 1 when there is no answer; with 2 when it is called wrongly.
";

/// The parsed command line.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Args {
    pub(crate) model: Option<String>,
    pub(crate) mcp: Vec<String>,
    pub(crate) mcp_timeout: Option<Duration>,
    pub(crate) session: Option<String>,
    pub(crate) log: Option<PathBuf>,
    pub(crate) system: Option<String>,
    pub(crate) thinking: Option<Thinking>,
    pub(crate) allow: Vec<String>,
    pub(crate) window: Option<u64>,
    pub(crate) no_tools: bool,
    pub(crate) question: Option<String>,
    pub(crate) help: bool,
}

const FLAGS: [&str; 11] = [
    "model",
    "mcp",
    "mcp-timeout",
    "session",
    "log",
    "system",
    "thinking",
    "allow",
    "window",
    "no-tools",
    "help",
];

impl Args {
    /// Parses the arguments, without the program's name.
    pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, Box<dyn Error>> {
        let (mut args, mut question) = (Self::default(), Vec::new());
        let mut parser = lexopt::Parser::from_args(words);
        while let Some(arg) = parser.next()? {
            match arg {
                Long("model") => args.model = Some(parser.value()?.string()?),
                Long("mcp") => args.mcp.push(parser.value()?.string()?),
                Long("mcp-timeout") => args.mcp_timeout = Some(seconds(&parser.value()?.string()?)?),
                Long("session") => args.session = Some(parser.value()?.string()?),
                Long("log") => args.log = Some(parser.value()?.into()),
                Long("system") => args.system = Some(parser.value()?.string()?),
                Long("thinking") => args.thinking = Some(parser.value()?.string()?.parse()?),
                Long("allow") => args.allow.push(parser.value()?.string()?),
                Long("window") => args.window = Some(tokens(&parser.value()?.string()?)?),
                Long("no-tools") => args.no_tools = true,
                Long("help") | Short('h') => args.help = true,
                Value(word) => question.push(word.string()?),
                Long(other) => return Err(unknown(other).into()),
                Short(_) => return Err(arg.unexpected().into()),
            }
        }
        args.question = (!question.is_empty()).then(|| question.join(" "));
        Ok(args)
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0);
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit.ok_or_else(|| format!("--mcp-timeout {text}: give a number of seconds"))
}

fn tokens(text: &str) -> Result<u64, String> {
    let tokens = text.replace([',', '_'], "").parse().ok().filter(|tokens| *tokens >= 1_000);
    tokens.ok_or_else(|| format!("--window {text}: give a number of tokens, 1000 or more"))
}

fn unknown(flag: &str) -> String {
    let meant = nearest(flag, FLAGS).map(|near| format!("did you mean --{near}? ")).unwrap_or_default();
    let known: Vec<String> = FLAGS.iter().map(|flag| format!("--{flag}")).collect();
    format!("there is no --{flag}; {meant}known are {}", known.join(", "))
}

/// Returns the known word that was probably meant: one that begins with the typed word, or differs from it in at most two letters.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: String = word.chars().take(40).collect();
    let distances = known.into_iter().map(|one| {
        let is_begun = word.len() >= 2 && one.starts_with(&word);
        (if is_begun { 0 } else { slips(&word, one) }, one)
    });
    distances.min_by_key(|(slips, _)| *slips).filter(|(slips, _)| *slips <= 2).map(|(_, one)| one)
}

/// Counts the letters to add, drop or change to turn one word into the other: the Levenshtein distance.
fn slips(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, against) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *against);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Args, String> {
        Args::read(words.iter().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn everything_is_read() {
        let args = read(&[
            "--model=demo",
            "--mcp",
            "a",
            "what",
            "--mcp",
            "b",
            "--thinking",
            "high",
            "is",
            "--log",
            "f",
        ]);
        let args = args.unwrap();
        assert_eq!((args.model.as_deref(), args.question.as_deref()), (Some("demo"), Some("what is")));
        assert_eq!(
            (args.mcp.as_slice(), args.thinking),
            (&["a".to_owned(), "b".to_owned()][..], Some(Thinking::High))
        );
        assert_eq!(read(&["--", "--model"]).unwrap().question.as_deref(), Some("--model"));
        assert_eq!(read(&[]).unwrap(), Args::default());
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_known() {
        let said = |words: &[&str]| read(words).unwrap_err();
        assert!(said(&["--modle", "x"]).contains("did you mean --model? known are --model, --mcp"));
        assert!(said(&["--xyzzy"]).starts_with("there is no --xyzzy; known are"));
        assert!(said(&["--thinking", "hard"]).contains("minimal, low, medium"));
        assert!(said(&["--model"]).contains("--model"));
        assert!(said(&["-x"]).contains("-x"));
        assert_eq!(read(&["--window", "32,000"]).unwrap().window, Some(32_000));
        assert!(read(&["--window", "5"]).unwrap_err().contains("1000 or more"));
        assert_eq!(read(&["--mcp-timeout", "1.5"]).unwrap().mcp_timeout, Some(Duration::from_millis(1_500)));
        for wrong in ["soon", "0", "-1", "NaN", "1e300"] {
            assert!(said(&["--mcp-timeout", wrong]).ends_with("give a number of seconds"), "{wrong}");
        }
    }

    #[test]
    fn near_words_are_found() {
        assert_eq!(nearest("mo", ["usage", "model"]), Some("model"));
        assert_eq!(nearest("sesion", FLAGS), Some("session"));
        assert_eq!(nearest("quite", ["help", "quit"]), Some("quit"));
        assert_eq!(nearest("banana", FLAGS), None);
    }
}
