//! A pseudo-terminal in which the tests run the chat.

use pty_process::blocking::{Command, Pty, open};
use rustix::termios::{LocalModes, tcgetattr};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Limit of every wait. Waits end as soon as their condition holds, so only a failure or a busy machine takes this long.
const PATIENCE: Duration = Duration::from_secs(240);

/// Texts of the row above the input line during a run.
const RUNNING: [&str; 3] = ["type to steer", "waits for the next turn", "stopping;"];

/// Returns the path of an example program. The first call builds the programs, which is quick if they are up to date.
pub(crate) fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        // The caller of the tests sets this variable if it has built the programs, possibly with other features.
        if std::env::var_os("CHAT_IS_BUILT").is_some() {
            return;
        }
        let examples = [
            "build",
            "--locked",
            "-q",
            "-p",
            "agent-examples",
            "--example",
            "chat",
            "--example",
            "mcp_server",
        ];
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(examples).args(["--features", "chat-test"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().unwrap().success(), "the chat is not built");
    });
    std::env::current_exe().unwrap().with_file_name(name)
}

/// A folder that is deleted when this value is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static FOLDERS: AtomicUsize = AtomicUsize::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("agent-chat-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The options that the chat is started with.
pub(crate) struct Start<'a> {
    pub(crate) home: &'a Path,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) rows: u16,
    pub(crate) columns: u16,
}

impl<'a> Start<'a> {
    /// Returns options with a terminal so high that nothing scrolls away.
    pub(crate) fn new(home: &'a Folder, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self { home: &home.0, args, env: Vec::new(), rows: 200, columns: 110 }
    }

    pub(crate) fn size(mut self, rows: u16, columns: u16) -> Self {
        (self.rows, self.columns) = (rows, columns);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the variables of the chat. Apart from `PATH`, none is inherited: the environment of this machine may name models.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut all = vec![
            ("PATH".to_owned(), path),
            ("TERM".to_owned(), "xterm-256color".to_owned()),
            ("AGENT_CHAT_HOME".to_owned(), self.home.display().to_string()),
        ];
        all.extend(self.env.iter().cloned());
        all
    }

    pub(crate) fn run(self) -> Terminal {
        let program = program("chat");
        let (pty, pts) = open().unwrap();
        pty.resize(pty_process::Size::new(self.rows, self.columns)).unwrap();
        let command = Command::new(program).args(&self.args).env_clear().envs(self.variables());
        let child = command.current_dir(self.home).spawn(pts).unwrap();
        let parser = vt100::Parser::new(nonzero(self.rows), nonzero(self.columns), 0);
        let seen = Arc::new(Mutex::new(Seen { parser, bytes: Vec::new() }));
        let (mut reader, kept) =
            (std::fs::File::from(pty.as_fd().try_clone_to_owned().unwrap()), seen.clone());
        // The thread ends when the terminal is closed.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                let mut seen = lock(&kept);
                seen.parser.process(&buffer[..read]);
                seen.bytes.extend_from_slice(&buffer[..read]);
            }
        });
        Terminal { pty, child: Mutex::new(child), seen, said_at: AtomicUsize::new(0) }
    }
}

fn nonzero(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Terminal {
    pty: Pty,
    child: Mutex<Child>,
    seen: Arc<Mutex<Seen>>,
    /// Number of bytes that were written before the last line was entered.
    said_at: AtomicUsize,
}

impl Terminal {
    /// Starts the chat with the demo model, and waits for its first prompt.
    pub(crate) fn at_prompt(start: Start<'_>) -> Self {
        let terminal = start.run();
        terminal.wait_for("/help lists commands");
        terminal.wait_for_prompt();
        terminal
    }

    pub(crate) fn send(&self, text: &str) {
        self.send_bytes(text.as_bytes());
    }

    pub(crate) fn send_bytes(&self, bytes: &[u8]) {
        (&self.pty).write_all(bytes).unwrap();
    }

    /// Types a line, and presses Enter once the line is on the screen: a person does not type ahead.
    pub(crate) fn say(&self, line: &str) {
        self.send(line);
        self.wait(&format!("the line {line:?}"), |seen| {
            seen.parser.screen().contents().trim_end().ends_with(&format!("› {line}"))
        });
        self.said_at.store(lock(&self.seen).bytes.len(), Ordering::Relaxed);
        self.send("\r");
    }

    /// Returns the text on the screen.
    pub(crate) fn screen(&self) -> String {
        lock(&self.seen).parser.screen().contents()
    }

    /// Returns all output of the chat, including escape sequences.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&lock(&self.seen).bytes).into_owned()
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let began = Instant::now();
        while !is_so(&lock(&self.seen)) {
            assert!(began.elapsed() < PATIENCE, "{what} did not come; {}", self.state());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Describes the terminal for the message of a failed test.
    fn state(&self) -> String {
        let ended = lock(&self.child).try_wait();
        let seen = lock(&self.seen);
        let last = String::from_utf8_lossy(&seen.bytes[seen.bytes.len().saturating_sub(2048)..]);
        let (screen, cursor) = (seen.parser.screen().contents(), seen.parser.screen().cursor_position());
        let ended = match ended {
            Ok(Some(status)) => format!("it ended with {status}"),
            Ok(None) => "it goes on".to_owned(),
            Err(error) => error.to_string(),
        };
        format!("{ended}; the screen is\n{screen}\nthe cursor is at {cursor:?}; the last bytes are\n{last:?}")
    }

    /// Waits until this text is on the screen.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait(&format!("{text:?}"), |seen| seen.parser.screen().contents().contains(text));
    }

    /// Waits until this text was written at least once since the last line was entered. The text may be gone from the screen again.
    pub(crate) fn wait_for_sign(&self, text: &str) {
        let from = self.said_at.load(Ordering::Relaxed);
        self.wait(&format!("{text:?}"), |seen| {
            // Each check searches all of these bytes again: they are few.
            String::from_utf8_lossy(&seen.bytes[from..]).contains(text)
        });
    }

    /// Waits until the cursor is at an empty prompt and no run is active. During a run, a text of `RUNNING` is in the row above.
    pub(crate) fn wait_for_prompt(&self) {
        self.wait("the prompt", |seen| {
            let screen = seen.parser.screen();
            let (row, column) = screen.cursor_position();
            // Row by row: in the contents as a whole, rows that were wrapped are one line.
            let lines: Vec<String> = screen.rows(0, screen.size().1.get()).collect();
            let line = lines.get(usize::from(row)).map_or("", String::as_str);
            let before = lines.get(usize::from(row).saturating_sub(1)).map_or("", String::as_str);
            column == 2 && line.trim() == "›" && !RUNNING.iter().any(|sign| before.contains(sign))
        });
    }

    /// Enters a line, and waits for the next prompt.
    pub(crate) fn ask(&self, line: &str) {
        self.say(line);
        self.wait_for_prompt();
    }

    /// Returns whether the first occurrence of this text has this look. `look` sees only the first character.
    ///
    /// Panics if the text is not on the screen.
    pub(crate) fn looks(&self, text: &str, look: impl Fn(&vt100::Cell) -> bool) -> bool {
        let seen = lock(&self.seen);
        let screen = seen.parser.screen();
        let (_, columns) = screen.size();
        let rows = screen.rows(0, columns.get());
        let found = (0u16..).zip(rows).find_map(|(row, line)| {
            let at = line.find(text)?;
            Some((row, u16::try_from(line[..at].chars().count()).unwrap()))
        });
        let (row, column) =
            found.unwrap_or_else(|| panic!("{text:?} is not on the screen\n{}", screen.contents()));
        screen.cell(row, column).is_some_and(look)
    }

    /// Returns the rows that the terminal wrapped because they were too long, except rows with a prompt.
    pub(crate) fn broken_rows(&self) -> Vec<String> {
        let seen = lock(&self.seen);
        let screen = seen.parser.screen();
        let rows = (0u16..).zip(screen.rows(0, screen.size().1.get()));
        let broken = rows.filter(|(row, line)| screen.row_wrapped(*row) && !line.contains('›'));
        broken.map(|(_, line)| line).collect()
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.pty.resize(pty_process::Size::new(rows, columns)).unwrap();
        lock(&self.seen).parser.screen_mut().set_size(nonzero(rows), nonzero(columns));
    }

    /// Waits until the screen fulfills this condition.
    pub(crate) fn wait_until(&self, is_so: impl Fn(&vt100::Screen) -> bool) {
        self.wait("what was waited for", |seen| is_so(seen.parser.screen()));
    }

    /// Sends a signal by its name, for example `TERM`, which the system sends when it shuts down.
    pub(crate) fn signal(&self, name: &str) {
        let id = lock(&self.child).id().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Returns whether the terminal is in its normal mode again: the system echoes and edits input, and turns Ctrl-C into a signal.
    pub(crate) fn is_as_before(&self) -> bool {
        tcgetattr(&self.pty)
            .unwrap()
            .local_modes
            .contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN)
    }

    /// Waits until the chat ends, and returns its status. Panics if the chat left the terminal in another mode.
    pub(crate) fn end(self) -> ExitStatus {
        let began = Instant::now();
        loop {
            let ended = lock(&self.child).try_wait().unwrap();
            if let Some(status) = ended {
                assert!(self.is_as_before(), "the terminal is not what it was; {}", self.state());
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end; {}", self.state());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the chat with `/quit`.
    pub(crate) fn quit(self) {
        self.say("/quit");
        let status = self.end();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}
