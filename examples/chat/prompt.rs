//! The input line between runs: editing, completion, history.

use crate::commands;
use crate::look::{Kind, Look};
use crate::sessions::Home;
use crate::signals::{self, Signal};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ColorMode, CompletionType, Config, Context, Editor, EventHandler, Helper, KeyCode, KeyEvent,
    Modifiers,
};
use std::borrow::Cow;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

/// The prompt sign, before the user's input.
pub(crate) const SIGN: &str = "› ";

/// The name of the thread that edits lines. The panic hook prints nothing for this thread: [`edit`] prints a message instead.
const EDITOR: &str = "line editor";

/// The longest wait until the editor has drawn its prompt.
const BEGIN: Duration = Duration::from_secs(1);

/// The outcome of reading a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, a closed terminal, or a signal to end.
    End,
}

type Lines = Box<Editor<Help, FileHistory>>;

/// The line editor. It runs in its own thread, so that signals are handled while a line is edited.
pub(crate) struct Prompt {
    editor: Option<Lines>,
    /// Receives the editor and the line from the editor's thread. None while no line is edited.
    away: Option<oneshot::Receiver<(Lines, Result<Line, ReadlineError>)>>,
    /// Notified when the editor has set up the terminal and draws its prompt.
    shown: Arc<Notify>,
    history: Option<PathBuf>,
    look: Look,
}

impl Prompt {
    pub(crate) fn new(look: Look, home: &Home) -> Result<Self, Box<dyn std::error::Error>> {
        let colours = if look.has_colours { ColorMode::Enabled } else { ColorMode::Disabled };
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if thread::current().name() != Some(EDITOR) {
                usual(panic);
            }
        }));
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .color_mode(colours)
            .max_history_size(1000)?
            .history_ignore_space(true)
            .bracketed_paste(true)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Help { look, words: Vec::new(), completes: true, shown: Arc::default() }));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), EventHandler::Simple(Cmd::Newline));
        // Without a folder, the history lasts for this chat only.
        let history = home.history().ok();
        if let Some(path) = &history {
            let _ = editor.load_history(path);
        }
        Ok(Self { editor: Some(Box::new(editor)), away: None, shown: Arc::default(), history, look })
    }

    /// Reads the next line of the user. `begun` is its initial text. `words` are the completions after each command.
    pub(crate) async fn line(
        &mut self,
        begun: &str,
        words: Vec<(String, Vec<String>)>,
    ) -> Result<Line, ReadlineError> {
        if let Some(help) = self.help() {
            help.words = words;
        }
        let line = self.read(SIGN, begun, true).await?;
        if let (Line::Text(text), Some(editor)) = (&line, &mut self.editor)
            && !text.trim().is_empty()
        {
            // The chat continues if the history cannot be written.
            let _ = editor.add_history_entry(text.as_str());
            if let Some(path) = &self.history {
                let _ = editor.append_history(path);
            }
        }
        Ok(line)
    }

    /// Asks a question. The answer does not go into the history.
    pub(crate) async fn ask(&mut self, question: &str, begun: &str) -> Result<Line, ReadlineError> {
        self.read(question, begun, false).await
    }

    fn help(&mut self) -> Option<&mut Help> {
        self.editor.as_mut()?.helper_mut()
    }

    async fn read(&mut self, sign: &str, begun: &str, completes: bool) -> Result<Line, ReadlineError> {
        if let Some(help) = self.help() {
            help.completes = completes;
        }
        if let Some(mut editor) = self.editor.take() {
            self.shown = Arc::default();
            if let Some(help) = editor.helper_mut() {
                help.shown = self.shown.clone();
            }
            let (done, away) = oneshot::channel();
            let (look, sign, begun) = (self.look, sign.to_owned(), begun.to_owned());
            thread::Builder::new().name(EDITOR.to_owned()).spawn(move || {
                let line = edit(&mut editor, look, &sign, &begun);
                // The receiver is gone if the chat ends meanwhile.
                let _ = done.send((editor, line));
            })?;
            self.away = Some(away);
        } else {
            // After an interrupt, the editor still reads its line. Only the sign is missing.
            write!(io::stdout(), "{sign}")?;
            io::stdout().flush()?;
        }
        let gone = || ReadlineError::from(io::Error::other("the line editor is gone"));
        let away = self.away.as_mut().ok_or_else(gone)?;
        tokio::select! {
            edited = away => {
                self.away = None;
                let (editor, line) = edited.map_err(|_| gone())?;
                self.editor = Some(editor);
                line
            }
            signal = signals::next() => match signal {
                Signal::Interrupt => {
                    writeln!(io::stdout())?;
                    Ok(Line::Interrupt)
                }
                Signal::End => {
                    // The chat restores the terminal at its end. An editor that sets up the terminal later would undo that.
                    let _ = timeout(BEGIN, self.shown.notified()).await;
                    Ok(Line::End)
                }
            },
        }
    }
}

fn edit(editor: &mut Lines, look: Look, sign: &str, begun: &str) -> Result<Line, ReadlineError> {
    let mut begun = begun;
    loop {
        let read = catch_unwind(AssertUnwindSafe(|| editor.readline_with_initial(sign, (begun, ""))));
        let Ok(read) = read else {
            // The editor panicked: it counts rows in 16 bits. The terminal is already restored.
            let note = "✗ that was too long to edit; pipe it: chat < FILE";
            writeln!(io::stdout(), "{}", look.paint(Kind::Bad, note))?;
            begun = "";
            continue;
        };
        return match read {
            Ok(text) => Ok(Line::Text(text)),
            Err(ReadlineError::Interrupted) => Ok(Line::Interrupt),
            Err(ReadlineError::Eof) => Ok(Line::End),
            // Bytes that are not UTF-8 discard the line, but do not end the chat.
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                writeln!(io::stdout(), "{}", look.paint(Kind::Bad, "✗ what was typed is no UTF-8"))?;
                continue;
            }
            Err(error) => Err(error),
        };
    }
}

/// The helper of the line editor: completion, colors, continuation lines.
struct Help {
    look: Look,
    /// The words that may follow each command.
    words: Vec<(String, Vec<String>)>,
    completes: bool,
    shown: Arc<Notify>,
}

impl Completer for Help {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>), ReadlineError> {
        let typed = line.get(..at).unwrap_or(line);
        Ok(if self.completes { completions(typed, &self.words) } else { (0, Vec::new()) })
    }
}

/// Returns the start of the word that is being typed, and its completions.
fn completions(typed: &str, words: &[(String, Vec<String>)]) -> (usize, Vec<Pair>) {
    let pair =
        |word: &str, after: &str| Pair { display: word.to_owned(), replacement: format!("{word}{after}") };
    if !typed.starts_with('/') {
        return (0, Vec::new());
    }
    let Some((command, begun)) = typed.split_once(' ') else {
        let names = commands::NAMES.iter().filter(|name| name.starts_with(typed));
        return (0, names.map(|name| pair(name, " ")).collect());
    };
    let known = words.iter().find(|(name, _)| name == command).map(|(_, words)| words.as_slice());
    let fitting = known.unwrap_or_default().iter().filter(|word| word.starts_with(begun));
    (typed.len() - begun.len(), fitting.map(|word| pair(word, "")).collect())
}

impl Hinter for Help {
    type Hint = String;
}

impl Highlighter for Help {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        self.shown.notify_one();
        Cow::Owned(self.look.paint(Kind::User, prompt))
    }
}

impl Validator for Help {
    /// A line that ends with a backslash continues on the next line.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let goes_on = self.completes && context.input().ends_with('\\');
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Helper for Help {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_what_follows_them_are_completed() {
        let words = [("/model".to_owned(), vec!["demo".to_owned(), "openai".to_owned()])];
        let found = |typed: &str| {
            let (at, pairs) = completions(typed, &words);
            (at, pairs.into_iter().map(|pair| pair.replacement).collect::<Vec<_>>())
        };
        assert_eq!(found("/mo"), (0, vec!["/model ".to_owned()]));
        assert_eq!(found("/model d"), (7, vec!["demo".to_owned()]));
        assert_eq!(found("/tools w"), (7, vec![]));
        assert_eq!(found("mo"), (0, vec![]));
        assert!(found("/").1.len() > 5);
    }
}
