//! The input mode of the terminal from the first line of the chat to its last.
//!
//! In this mode the system does not echo or edit input, and Ctrl-C is a key, not a signal. The mode also stays between the line editor and
//! the keys of a run: input waits in the terminal until it is read, and is read once.

#[cfg(unix)]
pub(crate) use unix::{Held, Keys, size};

#[cfg(not(unix))]
pub(crate) use elsewhere::{Held, Keys, size};

#[cfg(unix)]
mod unix {
    use crate::keys::{Key, MOST, Reader};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::{read, retry_on_intr};
    use rustix::termios::{
        InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize,
        tcsetattr,
    };
    use std::collections::VecDeque;
    use std::io::{self, Stdin, Write as _};
    use std::time::Duration;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::signal::unix::{Signal, SignalKind, signal};
    use tokio::time::{Instant, timeout, timeout_at};

    const PASTES_ON: &str = "\x1b[?2004h";
    const PASTES_OFF: &str = "\x1b[?2004l";

    /// If the terminal passes to the line editor in the middle of a paste, [`Keys::finish`] waits at most this long for the next piece.
    const PIECE: Duration = Duration::from_secs(1);
    /// The longest time that [`Keys::finish`] waits for the rest of a paste in all.
    const PASTE: Duration = Duration::from_secs(30);

    /// Returns the terminal's size in columns and rows, or 80 × 24 if the terminal does not report it.
    pub(crate) fn size() -> (u16, u16) {
        tcgetwinsize(io::stdout()).map_or((80, 24), |size| (size.ws_col, size.ws_row))
    }

    /// Holds the terminal in the chat's input mode. Dropping it restores the earlier mode.
    #[derive(Debug)]
    pub(crate) struct Held {
        before: Termios,
    }

    impl Held {
        pub(crate) fn hold() -> io::Result<Self> {
            let before = tcgetattr(io::stdin())?;
            let mut held = before.clone();
            held.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
            held.input_modes -= InputModes::BRKINT
                | InputModes::ICRNL
                | InputModes::INPCK
                | InputModes::ISTRIP
                | InputModes::IXON;
            held.special_codes[SpecialCodeIndex::VMIN] = 1;
            held.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(io::stdin(), OptionalActions::Now, &held)?;
            Ok(Self { before })
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let _ = write!(io::stdout(), "{PASTES_OFF}").and_then(|()| io::stdout().flush());
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        }
    }

    /// Reads keys from a terminal that is [`Held`].
    pub(crate) struct Keys {
        input: AsyncFd<Stdin>,
        resized: Signal,
        reader: Reader,
        read: VecDeque<Key>,
        /// The most bytes per read.
        piece: usize,
    }

    impl Keys {
        pub(crate) fn new() -> io::Result<Self> {
            Self::in_pieces(4096)
        }

        /// Reads one byte at a time, so that unread input stays in the terminal for the next reader.
        pub(crate) fn one_by_one() -> io::Result<Self> {
            Self::in_pieces(1)
        }

        fn in_pieces(piece: usize) -> io::Result<Self> {
            let resized = signal(SignalKind::window_change())?;
            #[expect(deprecated, reason = "because others can close what it waits for; nobody closes this")]
            let input = AsyncFd::with_interest(io::stdin(), Interest::READABLE)?;
            // Terminals that do not support bracketed paste ignore this.
            write!(io::stdout(), "{PASTES_ON}")?;
            io::stdout().flush()?;
            Ok(Self { input, resized, reader: Reader::default(), read: VecDeque::new(), piece })
        }

        /// Waits for the next key. Cancel-safe.
        pub(crate) async fn next(&mut self) -> Key {
            loop {
                if let Some(key) = self.read.pop_front() {
                    return key;
                }
                tokio::select! {
                    ready = self.input.readable() => match ready {
                        Ok(mut ready) => match piece(self.piece) {
                            Ok(Some(bytes)) => self.read.extend(self.reader.read(&bytes)),
                            Ok(None) => ready.clear_ready(),
                            Err(_) => return Key::Gone,
                        },
                        Err(_) => return Key::Gone,
                    },
                    Some(()) = self.resized.recv() => {
                        let (columns, rows) = size();
                        return Key::Resize(columns, rows);
                    }
                }
            }
        }

        /// Reads the input that has arrived, and returns all keys that `next` has not returned. Waits only for the rest of a paste.
        pub(crate) async fn finish(mut self) -> Vec<Key> {
            let (mut taken, end) = (0, Instant::now() + PASTE);
            while taken < MOST || self.reader.is_pasting() {
                match piece(self.piece) {
                    Ok(Some(bytes)) => {
                        taken += bytes.len();
                        self.read.extend(self.reader.read(&bytes));
                    }
                    Ok(None) if self.reader.is_pasting() => {
                        let ready = timeout_at(end, timeout(PIECE, self.input.readable())).await;
                        let Ok(Ok(Ok(mut ready))) = ready else { break };
                        // The loop reads everything that has arrived. After that, `readable` waits for new input.
                        ready.clear_ready();
                    }
                    Ok(None) => break,
                    Err(_) => {
                        self.read.push_back(Key::Gone);
                        break;
                    }
                }
                if Instant::now() > end {
                    break;
                }
            }
            let reader = std::mem::take(&mut self.reader);
            self.read.extend(reader.rest());
            std::mem::take(&mut self.read).into()
        }
    }

    impl Drop for Keys {
        fn drop(&mut self) {
            let _ = write!(io::stdout(), "{PASTES_OFF}").and_then(|()| io::stdout().flush());
        }
    }

    /// Reads available input without waiting. Returns `None` if there is none, and an error if the terminal is gone.
    fn piece(most: usize) -> io::Result<Option<Vec<u8>>> {
        let stdin = io::stdin();
        let mut wanted = [PollFd::new(&stdin, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if retry_on_intr(|| poll(&mut wanted, Some(&at_once)))? == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; most];
        let length = retry_on_intr(|| read(&stdin, &mut bytes[..]))?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(length);
        Ok(Some(bytes))
    }
}

/// Placeholders for systems other than Unix. All terminals there count as [dumb](crate::look::is_dumb), so the chat never holds one.
#[cfg(not(unix))]
mod elsewhere {
    use crate::keys::Key;
    use std::io;

    pub(crate) fn size() -> (u16, u16) {
        (80, 24)
    }

    #[derive(Debug)]
    pub(crate) enum Held {}

    impl Held {
        pub(crate) fn hold() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    pub(crate) enum Keys {}

    impl Keys {
        pub(crate) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn one_by_one() -> io::Result<Self> {
            Self::new()
        }

        pub(crate) async fn next(&mut self) -> Key {
            match *self {}
        }

        pub(crate) async fn finish(self) -> Vec<Key> {
            match self {}
        }
    }
}
