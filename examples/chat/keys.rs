//! Input during a run: turns the bytes of a terminal into keys, and keys into a line.

/// The most bytes of a line that is typed during a run, and of a paste.
pub(crate) const MOST: usize = 1 << 20;

/// A key, a piece of text, or an event of the terminal.
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

/// Reads keys from bytes, which may be split at any place. Ctrl-C counts in every state, so that an incomplete escape sequence cannot
/// swallow it.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    state: State,
    /// Text that is not yet in `keys`.
    text: Vec<u8>,
    keys: Vec<Key>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Plain,
    /// After an escape byte.
    Escape,
    /// In a long escape sequence (`ESC [ … x`), with the first bytes of its parameters.
    Sequence(Vec<u8>),
    /// In a short escape sequence (`ESC O x`), before its last byte.
    Last,
    /// In a paste. The number counts the bytes of [`PASTE_END`] that arrived.
    Paste(usize),
}

const PASTE: &[u8] = b"200";
const PASTE_END: &[u8] = b"\x1b[201~";

impl Reader {
    /// Reads more bytes, and returns the keys that are complete.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        for byte in bytes {
            self.state = self.step(*byte);
        }
        if !self.is_pasting() {
            self.tell_text(false);
        }
        std::mem::take(&mut self.keys)
    }

    /// Whether a paste has begun and not ended.
    pub(crate) fn is_pasting(&self) -> bool {
        matches!(self.state, State::Paste(_))
    }

    /// Returns the text that is left when the input ends.
    pub(crate) fn rest(mut self) -> Option<Key> {
        self.tell_text(true);
        self.keys.pop()
    }

    fn step(&mut self, byte: u8) -> State {
        match std::mem::take(&mut self.state) {
            State::Paste(matched) => self.paste(byte, matched),
            State::Escape => match byte {
                b'[' => State::Sequence(Vec::new()),
                b'O' => State::Last,
                0x1b => State::Escape,
                // Alt-Enter.
                b'\r' | b'\n' => {
                    self.text.push(b'\n');
                    State::Plain
                }
                0x7f | 0x08 => self.key(Key::EraseWord),
                other => self.plain(other),
            },
            State::Sequence(mut parameters) => match byte {
                0x20..=0x3f => {
                    if parameters.len() < 8 {
                        parameters.push(byte);
                    }
                    State::Sequence(parameters)
                }
                b'~' if parameters == PASTE => {
                    self.tell_text(true);
                    State::Paste(0)
                }
                0x40..=0x7e => State::Plain,
                // The sequence is incomplete: this byte does not belong to it.
                other => self.plain(other),
            },
            State::Last if byte >= b' ' => State::Plain,
            State::Plain | State::Last => self.plain(byte),
        }
    }

    fn plain(&mut self, byte: u8) -> State {
        match byte {
            0x03 => self.key(Key::Interrupt),
            // Programs end lines with a line feed, a keyboard with a carriage return.
            b'\r' | b'\n' => self.key(Key::Enter),
            0x7f | 0x08 => self.key(Key::Erase),
            0x15 => self.key(Key::EraseLine),
            0x17 => self.key(Key::EraseWord),
            0x1b => State::Escape,
            0..b' ' => State::Plain,
            _ => {
                self.text.push(byte);
                State::Plain
            }
        }
    }

    fn paste(&mut self, byte: u8, matched: usize) -> State {
        if PASTE_END.get(matched) == Some(&byte) {
            if matched + 1 < PASTE_END.len() {
                return State::Paste(matched + 1);
            }
            self.tell_text(true);
            return State::Plain;
        }
        if byte == 0x03 {
            self.keys.push(Key::Interrupt);
            return State::Paste(0);
        }
        // The bytes that looked like the end of the paste are text.
        if self.text.len() < MOST {
            self.text.extend(&PASTE_END[..matched]);
        }
        if byte == PASTE_END[0] {
            return State::Paste(1);
        }
        if self.text.len() < MOST {
            self.text.push(byte);
        }
        State::Paste(0)
    }

    fn key(&mut self, key: Key) -> State {
        self.tell_text(true);
        self.keys.push(key);
        State::Plain
    }

    /// Moves the text into `keys`, without bytes that are not UTF-8. Unless `is_whole`, an incomplete character at the end stays for the
    /// next bytes.
    fn tell_text(&mut self, is_whole: bool) {
        let (mut text, mut waits) = (String::new(), Vec::new());
        for chunk in self.text.utf8_chunks() {
            text.push_str(chunk.valid());
            waits = chunk.invalid().to_vec();
        }
        let is_begun = std::str::from_utf8(&waits).is_err_and(|error| error.error_len().is_none());
        self.text = if is_begun && !is_whole { waits } else { Vec::new() };
        if !text.is_empty() {
            self.keys.push(Key::Text(text));
        }
    }
}

/// A line that is being typed.
#[derive(Debug, Default)]
pub(crate) struct Typed {
    pub(crate) text: String,
}

impl Typed {
    /// Applies a key to the line. Returns the line on Enter, unless it is blank.
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

/// The input of the person at the terminal during a run.
#[derive(Debug, Default)]
pub(crate) struct Person {
    pub(crate) typed: Typed,
    /// The number of Ctrl-C.
    pub(crate) interrupts: u32,
    pub(crate) is_gone: bool,
}

impl Person {
    /// Whether the chat ends: the terminal is gone, or Ctrl-C was pressed twice.
    pub(crate) fn quits(&self) -> bool {
        self.is_gone || self.interrupts > 1
    }

    /// Applies the keys that are left when the run releases the terminal, and returns the entered lines. A `Resize` has no effect: the
    /// next reader of the terminal asks for its size.
    pub(crate) fn absorb(&mut self, keys: &[Key]) -> Vec<String> {
        let mut lines = Vec::new();
        for key in keys {
            match key {
                Key::Interrupt => self.interrupts += 1,
                Key::Gone => self.is_gone = true,
                key => lines.extend(self.typed.change(key)),
            }
        }
        lines
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

    /// Reads the bytes in pieces of this size, and joins adjacent texts.
    fn keys(bytes: &[u8], size: usize) -> Vec<Key> {
        let mut reader = Reader::default();
        let mut keys: Vec<Key> = bytes.chunks(size).flat_map(|piece| reader.read(piece)).collect();
        keys.extend(reader.rest());
        let mut told: Vec<Key> = Vec::new();
        for key in keys {
            match (told.last_mut(), key) {
                (Some(Key::Text(text)), Key::Text(more)) => text.push_str(&more),
                (_, key) => told.push(key),
            }
        }
        told
    }

    #[test]
    fn keys_are_read_wherever_their_bytes_are_cut() {
        use Key::{Enter, Erase, EraseLine, EraseWord, Interrupt};
        let text = |text: &str| Key::Text(text.to_owned());
        for (bytes, expected) in [
            (&b"caf\xc3\xa9\x7f\r"[..], vec![text("café"), Erase, Enter]),
            (b"a\x17b\x15\x03\n", vec![text("a"), EraseWord, text("b"), EraseLine, Interrupt, Enter]),
            // Arrows, function keys, a mouse; Alt with Enter, with a letter, with Erase.
            (b"\x1b[A1\x1bOP2\x1b[<0;1;2M3\x1b[1;5C4", vec![text("1234")]),
            (b"a\x1b\rb\x1bc\x1b\x7f", vec![text("a\nbc"), EraseWord]),
            // A paste is one text, whatever is in it.
            (b"\x1b[200~a\rb\x1b[31m\x1b\x1b[201~\r", vec![text("a\rb\x1b[31m\x1b"), Enter]),
            // Bytes that are not UTF-8.
            (b"\xff\xfe\xc3(\x15ok", vec![text("("), EraseLine, text("ok")]),
            // Ctrl-C is read after every incomplete sequence.
            (b"\x1b\x03", vec![Interrupt]),
            (b"\x1b[2\x03", vec![Interrupt]),
            (b"\x1bO\x03\xe2\x82\x03", vec![Interrupt, Interrupt]),
            (b"\x1b[200~a\x03b\x1b[20\x03", vec![Interrupt, Interrupt, text("ab")]),
        ] {
            for size in 1..=bytes.len() {
                let told = keys(bytes, size);
                assert_eq!(told, expected, "{:?} in pieces of {size}", String::from_utf8_lossy(bytes));
            }
        }
        let long = [b"\x1b[200~", &b"word ".repeat(MOST)[..], b"\x1b[201~\x03"].concat();
        let told = keys(&long, 4096);
        assert!(matches!(&told[..], [Key::Text(text), Interrupt] if text.len() == MOST), "{}", told.len());
    }

    #[test]
    fn nothing_is_lost_while_the_terminal_changes_hands() {
        let mut person = Person::default();
        person.typed.change(&Key::Text("one".into()));
        let keys = Reader::default().read(b" more\rtwo\x03");
        assert_eq!(person.absorb(&keys), ["one more"]);
        assert_eq!((person.typed.text.as_str(), person.interrupts, person.quits()), ("two", 1, false));
        person.absorb(&[Key::Resize(1, 1), Key::Interrupt]);
        assert!(person.quits());
        let mut gone = Person::default();
        gone.absorb(&[Key::Gone]);
        assert!(gone.quits());
    }
}
