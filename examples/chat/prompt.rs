//! The line that is typed while nothing goes on: edited, completed, remembered.

use crate::commands;
use crate::look::{Kind, Look};
use crate::sessions::Home;
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
use std::sync::atomic::{AtomicBool, Ordering};

/// Before what the user says.
pub(crate) const SIGN: &str = "› ";

/// Whether a line is edited: nothing else of the chat runs then, so a panic is the editor's, and told in words.
static EDITS: AtomicBool = AtomicBool::new(false);

/// What somebody answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// The line editor.
pub(crate) struct Prompt {
    editor: Editor<Help, FileHistory>,
    history: Option<PathBuf>,
    look: Look,
}

impl Prompt {
    pub(crate) fn new(look: Look, home: &Home) -> Result<Self, Box<dyn std::error::Error>> {
        let colours = if look.has_colours { ColorMode::Enabled } else { ColorMode::Disabled };
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !EDITS.load(Ordering::Acquire) {
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
        editor.set_helper(Some(Help { look, words: Vec::new(), completes: true }));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), EventHandler::Simple(Cmd::Newline));
        // Without a folder there is a history of this chat alone.
        let history = home.history().ok();
        if let Some(path) = &history {
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, history, look })
    }

    /// What the user says next. `begun` stands there already; `words` complete what follows a command.
    pub(crate) fn line(
        &mut self,
        begun: &str,
        words: Vec<(String, Vec<String>)>,
    ) -> Result<Line, ReadlineError> {
        if let Some(help) = self.editor.helper_mut() {
            help.words = words;
        }
        let line = self.read(SIGN, begun, true)?;
        if let Line::Text(text) = &line
            && !text.trim().is_empty()
        {
            // A history that cannot be written is no reason to stop.
            let _ = self.editor.add_history_entry(text.as_str());
            if let Some(path) = &self.history {
                let _ = self.editor.append_history(path);
            }
        }
        Ok(line)
    }

    /// The answer to a question, which nobody remembers.
    pub(crate) fn ask(&mut self, question: &str, begun: &str) -> Result<Line, ReadlineError> {
        self.read(question, begun, false)
    }

    fn read(&mut self, sign: &str, begun: &str, completes: bool) -> Result<Line, ReadlineError> {
        if let Some(help) = self.editor.helper_mut() {
            help.completes = completes;
        }
        let mut begun = begun;
        loop {
            EDITS.store(true, Ordering::Release);
            let read =
                catch_unwind(AssertUnwindSafe(|| self.editor.readline_with_initial(sign, (begun, ""))));
            EDITS.store(false, Ordering::Release);
            let Ok(read) = read else {
                // It counts rows in 16 bits; the terminal is as it was.
                let note = "✗ that was too long to edit; pipe it: chat < FILE";
                writeln!(io::stdout(), "{}", self.look.paint(Kind::Bad, note))?;
                begun = "";
                continue;
            };
            return match read {
                Ok(text) => Ok(Line::Text(text)),
                Err(ReadlineError::Interrupted) => Ok(Line::Interrupt),
                Err(ReadlineError::Eof) => Ok(Line::End),
                // Bytes that are no UTF-8 cost what was typed, not the chat.
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    writeln!(io::stdout(), "{}", self.look.paint(Kind::Bad, "✗ what was typed is no UTF-8"))?;
                    continue;
                }
                Err(error) => Err(error),
            };
        }
    }
}

/// What helps while a line is typed.
struct Help {
    look: Look,
    /// By command, what may follow it.
    words: Vec<(String, Vec<String>)>,
    completes: bool,
}

impl Completer for Help {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>), ReadlineError> {
        let typed = line.get(..at).unwrap_or(line);
        Ok(if self.completes { completions(typed, &self.words) } else { (0, Vec::new()) })
    }
}

/// Where the word begins that is being typed, and what it may become.
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
        Cow::Owned(self.look.paint(Kind::User, prompt))
    }
}

impl Validator for Help {
    /// A line that ends in a backslash goes on.
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
