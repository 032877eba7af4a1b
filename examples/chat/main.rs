//! A chat for the terminal: any model, tools with validated arguments, MCP servers, sessions.
//!
//! ```sh
//! cargo run --example chat --features chat                                      # no key, no network: the demo model
//! cargo run --example chat --features chat -- --model anthropic/claude-sonnet-5 --session trip
//! cargo run --example chat --features chat -- --mcp docs=https://docs.example/mcp --mcp 'npx -y some-server'
//! echo "What is the weather in Rome?" | cargo run -q --example chat --features chat
//! ```
//!
//! Answers stream, and thinking is dimmed. Tool calls are shown with their arguments, their coercions, and the report if they were
//! rejected. Calls that need approval ask: yes, no, edit, always. A tool that asks you something shows the fields, and takes JSON or a
//! line for each. The tools of MCP servers ask until you answer `always`. Input during an answer steers it. Ctrl-C stops the answer; a
//! second Ctrl-C ends the chat. `/help` lists the commands, `--help` the options. In a pipe only the answer goes to standard output and
//! everything else to standard error, and the exit code is 1 if there is no answer. Terminals that can only print, and systems other than
//! Unix, work line by line.
//!
//! A session is a file with one message per line, and a line for the model that it is continued with. `--log` writes requests and
//! responses as they go over the wire, and the messages of MCP servers, without keys and tokens. Arguments that a tool marks as secret are
//! hidden on the screen and in the log, but not in a session, because the model needs its own calls to continue. Only their owner can read
//! the files of sessions, log and history (mode 0600 on Unix).
//!
//! | file | contents |
//! | --- | --- |
//! | `args` `servers` `models` | the command line, MCP servers, the model |
//! | `chat` `turn` `commands` | the assistant and its state, one prompt and its answer, slash commands |
//! | `tell` `screen` `wrap` `look` `pager` | events in words, rows of the terminal, line breaks, colors, paging |
//! | `prompt` `keys` | the input line, keys during a run |
//! | `desk` `questions` | approvals, questions of tools |
//! | `terminal` `signals` | the state of the terminal, signals |
//! | `sessions` `traffic` `secrets` | saved conversations, the log, hidden arguments |
//! | `demo` | the built-in model and tools |

mod args;
mod chat;
mod commands;
mod demo;
mod desk;
mod keys;
mod look;
mod models;
mod pager;
mod prompt;
mod questions;
mod screen;
mod secrets;
mod servers;
mod sessions;
mod signals;
mod tell;
mod terminal;
#[cfg(test)]
#[cfg(all(unix, feature = "chat-test"))]
mod tests;
mod traffic;
mod turn;
mod wrap;

use args::Args;
use chat::{Chat, Refused};
use commands::Next;
use look::{Kind, Look, harmless};
use prompt::{Line, Prompt};
use screen::{Plain, Show};
use std::error::Error;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;
use terminal::Held;
use turn::{After, Unanswered};

/// The most bytes of a question from a pipe.
const MOST: u64 = 16 << 20;

/// The exit code for a wrong command line.
const USAGE: u8 = 2;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let code = run().await.unwrap_or_else(|error| {
        note(&format!("chat: {}", harmless(&error.to_string())));
        ExitCode::FAILURE
    });
    // Prints what is still buffered. An error here, such as a closed pipe, does not change the exit code.
    let _ = io::stdout().flush();
    code
}

/// Prints to standard error, and ignores errors.
fn note(text: &str) {
    let lines = [text.to_owned()];
    let lines = if io::stderr().is_terminal() { pager::fitted(&lines) } else { lines.to_vec() };
    let _ = writeln!(io::stderr().lock(), "{}", lines.join("\n"));
}

async fn run() -> Result<ExitCode, Box<dyn Error>> {
    let args = match Args::read(std::env::args_os().skip(1)) {
        Ok(args) => args,
        Err(error) => {
            note(&format!("chat: {error}"));
            return Ok(ExitCode::from(USAGE));
        }
    };
    if args.help {
        return Ok(written(write!(io::stdout().lock(), "{}", args::HELP)));
    }
    let is_interactive = look::is_interactive();
    let look = if is_interactive { Look::of(&io::stdout()) } else { Look::of(&io::stderr()) };
    let question =
        if is_interactive { Ok(args.question.clone()) } else { asked(args.question.as_deref()).map(Some) };
    let question = match question {
        Ok(question) => question,
        Err(error) => {
            note(&format!("chat: {error}"));
            return Ok(ExitCode::from(USAGE));
        }
    };
    if question.as_ref().is_some_and(|question| question.trim().is_empty()) {
        note("chat: nothing was asked; give a question, or pipe one in. --help tells more");
        return Ok(ExitCode::from(USAGE));
    }
    if !args.mcp.is_empty() {
        let servers = look::count(args.mcp.len() as u64, "MCP server");
        note(&look.paint(Kind::Dim, &format!("connecting to {servers} …")));
    }
    let (mut chat, notes) = match Chat::begin(&args, look, is_interactive).await {
        Ok(begun) => begun,
        Err(Refused::Usage(error)) => {
            note(&format!("chat: {}", harmless(&error.to_string())));
            return Ok(ExitCode::from(USAGE));
        }
    };
    for text in &notes {
        note(&look.paint(Kind::Notice, &harmless(text)));
    }
    let code = if is_interactive {
        let code = talk(&mut chat, question).await;
        // A turn that ended with the chat has shown no error of its session, or could not save it.
        if let Err(error) = chat.keep() {
            note(&format!("chat: not kept: {error}"));
        }
        code
    } else {
        answer(&mut chat, question).await
    };
    chat.close().await;
    code
}

/// The exit code after a last write. A closed pipe is not a failure: the reader wanted no more.
fn written(written: io::Result<()>) -> ExitCode {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// The question, from the command line, from standard input, or from both.
fn asked(question: Option<&str>) -> Result<String, Box<dyn Error>> {
    let stdin = io::stdin();
    let mut piped = Vec::new();
    if !stdin.is_terminal() || question.is_none() {
        stdin.lock().take(MOST + 1).read_to_end(&mut piped)?;
    }
    if piped.len() as u64 > MOST {
        return Err(format!("standard input has more than {MOST} bytes").into());
    }
    let piped = String::from_utf8(piped).map_err(|error| {
        format!("standard input is not UTF-8 at byte {}", error.utf8_error().valid_up_to())
    })?;
    let parts = [question.unwrap_or_default(), piped.trim_end()];
    Ok(parts.into_iter().filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("\n\n"))
}

/// Answers one question, without a terminal.
async fn answer(chat: &mut Chat, question: Option<String>) -> Result<ExitCode, Box<dyn Error>> {
    let question = question.unwrap_or_default();
    if question.starts_with('/') && question.lines().count() == 1 {
        return match commands::run(chat, question.trim()).await {
            Ok(_) => Ok(ExitCode::SUCCESS),
            Err(error) => Ok(written(Err(error))),
        };
    }
    if let (true, Some(because)) = (chat.chosen.is_demo(), &chat.chosen.because) {
        note(&chat.look.paint(Kind::Notice, &format!("chat: the demo model answers, because {because}")));
    }
    signals::listen();
    let mut show = Plain::new(io::stdout(), io::stderr(), io::stdout().is_terminal());
    Ok(match turn::plain(chat, None, question, &mut show).await {
        Ok(After::Back { .. }) => ExitCode::SUCCESS,
        Ok(After::Quit) | Err(Unanswered::Cancelled) => ExitCode::from(130),
        Err(Unanswered::Closed(error)) => written(Err(error)),
        Err(Unanswered::Run(error)) => {
            note(&chat.look.paint(Kind::Bad, &format!("chat: {error}")));
            ExitCode::FAILURE
        }
    })
}

/// Runs the chat in a terminal until it ends.
async fn talk(chat: &mut Chat, question: Option<String>) -> Result<ExitCode, Box<dyn Error>> {
    signals::listen();
    let _held = if look::is_dumb() { None } else { Some(Held::hold()?) };
    let mut prompt = Prompt::new(chat.look, &chat.home)?;
    greet(chat)?;
    let (mut begun, mut question, mut interrupted) = (String::new(), question, false);
    loop {
        let line = match question.take() {
            Some(question) => Line::Text(question),
            None => prompt.line(&std::mem::take(&mut begun), commands::words(chat)).await?,
        };
        let text = match line {
            Line::Text(text) => text.replace("\\\n", "\n"),
            Line::End => return Ok(ExitCode::SUCCESS),
            Line::Interrupt if interrupted => return Ok(ExitCode::SUCCESS),
            Line::Interrupt => {
                interrupted = true;
                pager::page(chat.look, &[chat.look.paint(Kind::Dim, turn::ONCE_MORE)]).await?;
                continue;
            }
        };
        interrupted = false;
        let said = text.trim();
        if said.is_empty() {
            continue;
        }
        if commands::is_farewell(said) {
            return Ok(ExitCode::SUCCESS);
        }
        if said.starts_with('/') {
            if commands::run(chat, said).await? == Next::Quit {
                return Ok(ExitCode::SUCCESS);
            }
            continue;
        }
        match ask(chat, &mut prompt, said.to_owned()).await? {
            After::Back { unheard, is_interrupted } => (begun, interrupted) = (unheard, is_interrupted),
            After::Quit => return Ok(ExitCode::SUCCESS),
        }
    }
}

async fn ask(chat: &mut Chat, prompt: &mut Prompt, said: String) -> Result<After, Box<dyn Error>> {
    if !look::is_dumb() {
        return turn::live(chat, prompt, said).await;
    }
    // The terminal can only print: no spinners, and no input during the run.
    let mut show = Plain::new(io::stdout(), io::stdout(), true);
    match turn::plain(chat, Some(prompt), said, &mut show).await {
        Ok(after) => Ok(after),
        Err(Unanswered::Cancelled) => Ok(After::Back { unheard: String::new(), is_interrupted: true }),
        Err(Unanswered::Closed(_)) => Ok(After::Quit),
        Err(Unanswered::Run(error)) => {
            show.line(&format!("✗ {error}"));
            Ok(After::Back { unheard: String::new(), is_interrupted: false })
        }
    }
}

/// Prints the greeting: the model, a summary of the chat, a hint on the keys, and the last messages.
fn greet(chat: &Chat) -> io::Result<()> {
    let look = chat.look;
    let because = chat.chosen.because.iter().map(|because| look.paint(Kind::Dim, &format!("({because})")));
    let hint = "/help lists commands · typing while it works steers · Ctrl-C stops, twice ends";
    let mut lines = vec![look.paint(Kind::Bold, &chat.title())];
    lines.extend(because);
    lines.extend([chat.summary().as_str(), hint].map(|line| look.paint(Kind::Dim, line)));
    lines.extend(commands::last(chat));
    writeln!(io::stdout().lock(), "{}\n", pager::fitted(&lines).join("\n"))
}
