//! What is typed while a run goes on.

use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll,
    read,
};
use crossterm::{execute, terminal};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// What is typed while a run goes on is at most so long, in bytes.
const MOST: usize = 1 << 20;

/// How soon a reader that is told to stop does.
const POLL: Duration = Duration::from_millis(30);

/// One thing that somebody does at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Text(String),
    Enter,
    Erase,
    EraseWord,
    EraseLine,
    /// Ctrl-C.
    Interrupt,
    Resize(u16, u16),
    /// The terminal is gone.
    Gone,
}

/// Keys, one by one, as long as it lives; the terminal gives them unechoed and unedited.
pub(crate) struct Keys {
    received: mpsc::Receiver<Key>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Keys {
    pub(crate) fn new() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        // Terminals that do not know it ignore it.
        let _ = execute!(io::stdout(), EnableBracketedPaste);
        let (sender, received) = mpsc::channel(256);
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        let reader = std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            while !is_over.load(Ordering::Acquire) {
                let key = match poll(POLL) {
                    Ok(false) => continue,
                    Ok(true) => read().map(key),
                    Err(error) => Err(error),
                };
                let is_gone = key.is_err();
                if let Some(key) = key.unwrap_or(Some(Key::Gone))
                    && sender.blocking_send(key).is_err()
                {
                    return;
                }
                if is_gone {
                    return;
                }
            }
        });
        match reader {
            Ok(reader) => Ok(Self { received, stop, reader: Some(reader) }),
            Err(error) => {
                terminal::disable_raw_mode()?;
                Err(error)
            }
        }
    }

    /// The next one. It may be dropped while it waits.
    pub(crate) async fn next(&mut self) -> Key {
        self.received.recv().await.unwrap_or(Key::Gone)
    }

    /// Gives the terminal back, and what was typed until then and nobody took.
    pub(crate) fn finish(mut self) -> Vec<Key> {
        self.stop()
    }

    fn stop(&mut self) -> Vec<Key> {
        self.stop.store(true, Ordering::Release);
        let mut left = Vec::new();
        if let Some(reader) = self.reader.take() {
            // It may wait for room.
            while !reader.is_finished() {
                left.extend(std::iter::from_fn(|| self.received.try_recv().ok()));
                std::thread::sleep(Duration::from_millis(1));
            }
            let _ = reader.join();
        }
        left.extend(std::iter::from_fn(|| self.received.try_recv().ok()));
        left
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.stop();
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = terminal::disable_raw_mode();
    }
}

fn key(event: Event) -> Option<Key> {
    Some(match event {
        Event::Paste(text) => Key::Text(text),
        Event::Resize(columns, rows) => Key::Resize(columns, rows),
        Event::Key(KeyEvent { code, modifiers, kind, .. }) if kind != KeyEventKind::Release => {
            let control = modifiers.contains(KeyModifiers::CONTROL);
            match code {
                KeyCode::Char('c') if control => Key::Interrupt,
                KeyCode::Char('u') if control => Key::EraseLine,
                KeyCode::Char('w') if control => Key::EraseWord,
                KeyCode::Char('h') if control => Key::Erase,
                // A line that ends without a carriage return, as programs send it.
                KeyCode::Char('j' | 'm') if control => Key::Enter,
                KeyCode::Char(_) if control => return None,
                KeyCode::Char(c) => Key::Text(c.into()),
                KeyCode::Enter if modifiers.contains(KeyModifiers::ALT) => Key::Text("\n".into()),
                KeyCode::Enter => Key::Enter,
                KeyCode::Backspace if modifiers.contains(KeyModifiers::ALT) => Key::EraseWord,
                KeyCode::Backspace => Key::Erase,
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// A line that is being typed.
#[derive(Debug, Default)]
pub(crate) struct Typed {
    pub(crate) text: String,
}

impl Typed {
    /// Changes the line; gives it when it is entered, unless it is empty.
    pub(crate) fn change(&mut self, key: &Key) -> Option<String> {
        match key {
            Key::Text(text) => {
                let room = MOST.saturating_sub(self.text.len());
                let end = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
                self.text.push_str(&text[..end.unwrap_or(0)].replace("\r\n", "\n").replace('\r', "\n"));
            }
            Key::Erase => {
                self.text.pop();
            }
            Key::EraseWord => {
                let kept = self.text.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
                while self.text.len() > kept && self.text.pop().is_some() {}
            }
            Key::EraseLine => self.text.clear(),
            Key::Enter if self.text.trim().is_empty() => self.text.clear(),
            Key::Enter => return Some(std::mem::take(&mut self.text)),
            Key::Interrupt | Key::Resize(..) | Key::Gone => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_typed() {
        let mut typed = Typed::default();
        for text in ["one two", " thrée"] {
            assert_eq!(typed.change(&Key::Text(text.into())), None);
        }
        typed.change(&Key::Erase);
        assert_eq!(typed.text, "one two thré");
        typed.change(&Key::EraseWord);
        assert_eq!(typed.text, "one two ");
        typed.change(&Key::EraseWord);
        assert_eq!(typed.text, "one ");
        assert_eq!(typed.change(&Key::Enter).as_deref(), Some("one "));
        assert_eq!(typed.change(&Key::Enter), None);
        typed.change(&Key::Text("é".repeat(MOST)));
        assert_eq!(typed.text.len(), MOST);
        typed.change(&Key::EraseLine);
        assert_eq!(typed.text, "");
    }

    #[test]
    fn keys_are_what_they_mean() {
        let pressed = |code, modifiers| key(Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(pressed(KeyCode::Char('C'), KeyModifiers::SHIFT), Some(Key::Text("C".into())));
        assert_eq!(pressed(KeyCode::Enter, KeyModifiers::ALT), Some(Key::Text("\n".into())));
        assert_eq!(pressed(KeyCode::F(1), KeyModifiers::NONE), None);
    }
}
