//! Saved conversations: one file each, one message per line, written as messages become final. A line with a model names the model that
//! continues the conversation; the last such line counts. A line with a view changes what the model is sent of the messages before it.
//!
//! This uses files instead of the library's `SqlStore`, which compiles a database and is meant for runs that must survive a crash in the
//! middle of a call. Here a person is watching.

use agent::message::{Conversation, Message, ViewChange};
use agent::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The key of a line that names the model.
const MODEL: &str = "model";
/// The beginning of a line with a change of what the model is sent.
const VIEW: &[u8] = br#"{"view":"#;
/// A line of more bytes than this is not read as one message.
const LONGEST: u64 = 256 << 20;

/// The folder of this program's files.
#[derive(Clone, Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    /// Returns the folder in `AGENT_CHAT_HOME`, else `agent-chat` in the user's data folder, else `.agent-chat` in the current folder.
    /// The first write creates it.
    pub(crate) fn find() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let usual = || {
            let data = set("XDG_DATA_HOME").or_else(|| set("LOCALAPPDATA"));
            data.or_else(|| set("HOME").map(|home| home.join(".local/share")))
                .map(|data| data.join("agent-chat"))
        };
        Self(set("AGENT_CHAT_HOME").or_else(usual).unwrap_or_else(|| PathBuf::from(".agent-chat")))
    }

    #[cfg(test)]
    fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the path of the input history. Creates its folder.
    pub(crate) fn history(&self) -> io::Result<PathBuf> {
        make_private(&self.0)?;
        Ok(self.0.join("history"))
    }

    fn file(&self, name: &str) -> Result<PathBuf, String> {
        let is_fine = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(is_fine) {
            return Err(format!("`{name}` is no name for a session: use letters, digits, `-`, `_` and `.`"));
        }
        Ok(self.0.join("sessions").join(format!("{name}.jsonl")))
    }

    /// The names of the saved sessions, last written first.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let files = fs::read_dir(self.0.join("sessions")).into_iter().flatten().flatten();
        let mut found: Vec<_> = files
            .filter_map(|file| {
                let name = file.file_name().into_string().ok()?.strip_suffix(".jsonl")?.to_owned();
                Some((file.metadata().and_then(|data| data.modified()).ok(), name))
            })
            .collect();
        found.sort_by(|one, other| other.cmp(one));
        found.into_iter().map(|(_, name)| name).collect()
    }
}

/// The length of a file and the time of its last write. They differ if another program wrote to the file.
type Stamp = (u64, Option<SystemTime>);

fn stamp(path: &Path) -> io::Result<Stamp> {
    let data = fs::metadata(path)?;
    Ok((data.len(), data.modified().ok()))
}

/// A conversation and its file.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) name: String,
    path: PathBuf,
    file: File,
    /// The model that the file names last.
    pub(crate) model: Option<String>,
    /// The messages that are in the file.
    written: Vec<Arc<Message>>,
    /// How many changes of the view are in the file.
    changes: usize,
    /// The stamp after the last read or write. If the file has another one, another program wrote to it.
    left: Stamp,
}

impl Session {
    /// Opens or creates the session of this name. Returns its conversation too, and a note if lines could not be read.
    pub(crate) fn open(
        home: &Home,
        name: &str,
    ) -> Result<(Self, Conversation, Option<String>), Box<dyn Error>> {
        let path = home.file(name)?;
        if let Some(folder) = path.parent() {
            make_private(folder)?;
        }
        let mut file = private().read(true).append(true).create(true).open(&path)?;
        let Found { messages, changes, model, unreadable } =
            read(&mut file).map_err(|error| format!("{}: {error}", path.display()))?;
        let left = stamp(&path)?;
        let mut conversation: Conversation = messages.iter().cloned().collect();
        let (name_kept, written) = (name.to_owned(), changes.len());
        for change in changes {
            conversation.record_view_change(change);
        }
        let mut session =
            Self { name: name_kept, path, file, model, written: messages, changes: written, left };
        let note = (unreadable > 0).then(|| {
            // The lines stay in the file: another version of this program may be able to read them.
            let lines = crate::look::count(unreadable, "line");
            format!("{lines} of session {name} cannot be read and are left out")
        });
        if session.ends_in_a_line()? {
            return Ok((session, conversation, note));
        }
        // A process died while it wrote a line. The next line must not continue that one.
        session.append("\n")?;
        Ok((session, conversation, note))
    }

    pub(crate) fn exists(home: &Home, name: &str) -> Result<bool, String> {
        Ok(home.file(name)?.exists())
    }

    fn ends_in_a_line(&mut self) -> io::Result<bool> {
        if self.left.0 == 0 {
            return Ok(true);
        }
        self.file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        io::Read::read_exact(&mut self.file, &mut last)?;
        Ok(last == *b"\n")
    }

    fn append(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.left = stamp(&self.path)?;
        Ok(())
    }

    /// Appends the new messages, the new changes of the view, and the model if it changed. If the conversation does not continue the one
    /// in the file, the file is written anew.
    ///
    /// # Errors
    /// The file cannot be written, or another program wrote to it.
    pub(crate) fn keep(&mut self, conversation: &Conversation, model: &str) -> io::Result<()> {
        let messages = conversation.shared();
        let same =
            self.written.iter().zip(messages).all(|(one, other)| Arc::ptr_eq(one, other) || one == other);
        let has_model = self.model.as_deref() == Some(model);
        let changes = conversation.view_changes();
        if same && self.written.len() == messages.len() && self.changes == changes.len() && has_model {
            return Ok(());
        }
        if stamp(&self.path)? != self.left {
            return Err(io::Error::other(format!(
                "somebody else went on with session {}; /save NAME keeps this conversation under another name",
                self.name
            )));
        }
        let is_longer = same && messages.len() >= self.written.len() && changes.len() >= self.changes;
        let (from, first_change) = if is_longer { (self.written.len(), self.changes) } else { (0, 0) };
        let mut lines = String::new();
        if !(is_longer && has_model) {
            lines = format!("{}\n", json!({ MODEL: model }));
        }
        for message in &messages[from..] {
            lines.push_str(&serde_json::to_string(&**message)?);
            lines.push('\n');
        }
        for change in &changes[first_change..] {
            lines.push_str(&json!({ "view": change }).to_string());
            lines.push('\n');
        }
        if is_longer {
            self.append(&lines)?;
        } else {
            // The new file replaces the old one once it is complete, so the file is whole at any time.
            let beside = self.path.with_extension("new");
            private().write(true).create(true).truncate(true).open(&beside)?.write_all(lines.as_bytes())?;
            fs::rename(&beside, &self.path)?;
            self.file = private().read(true).append(true).open(&self.path)?;
            self.left = stamp(&self.path)?;
        }
        (self.written, self.changes) = (messages.to_vec(), changes.len());
        self.model = Some(model.to_owned());
        Ok(())
    }
}

/// The contents of a file.
#[derive(Default)]
struct Found {
    messages: Vec<Arc<Message>>,
    changes: Vec<ViewChange>,
    model: Option<String>,
    /// How many lines are neither a message nor a change of the view nor a model.
    unreadable: u64,
}

fn read(file: &mut File) -> io::Result<Found> {
    let mut found = Found::default();
    let mut reader = BufReader::new(file);
    loop {
        let mut line = Vec::new();
        let read = io::Read::take(&mut reader, LONGEST).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(found);
        }
        // Messages are tried last: any object without a known role is read as a message of a later version.
        if let Some(model) = model_of(&line) {
            found.model = Some(model);
            continue;
        }
        if line.starts_with(VIEW) {
            match serde_json::from_slice::<BTreeMap<String, ViewChange>>(&line) {
                Ok(line) => found.changes.extend(line.into_values()),
                Err(_) => found.unreadable += 1,
            }
            continue;
        }
        match serde_json::from_slice::<Message>(&line) {
            Ok(message) => found.messages.push(Arc::new(message)),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) => found.unreadable += 1,
        }
    }
}

/// The model that this line names. None for any other line.
fn model_of(line: &[u8]) -> Option<String> {
    // A line with a model is short. Long messages need not be parsed twice.
    let line: Value = (line.len() < 1_000).then(|| serde_json::from_slice(line).ok())??;
    Some(line.as_object().filter(|line| line.len() == 1)?.get(MODEL)?.as_str()?.to_owned())
}

/// Opens files that others cannot read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(name: &str) -> Home {
        let path = std::env::temp_dir().join(format!("agent-chat-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Home::at(path)
    }

    #[test]
    fn a_conversation_is_kept_and_read_again() {
        let home = home("kept");
        let (mut session, mut conversation, _) = Session::open(&home, "ann").unwrap();
        for text in ["one", "two\nlines"] {
            conversation.push(Message::user(text));
            session.keep(&conversation, "demo").unwrap();
        }
        let (mut again, read, note) = Session::open(&home, "ann").unwrap();
        assert_eq!((read == conversation, note), (true, None));
        // Another conversation replaces the one in the file.
        let other = Conversation::from_iter([Message::user("else")]);
        again.keep(&other, "demo").unwrap();
        assert_eq!(Session::open(&home, "ann").unwrap().1, other);
        // A session that was open before notices the change.
        conversation.push(Message::user("three"));
        assert!(session.keep(&conversation, "demo").unwrap_err().to_string().contains("somebody else"));
        assert_eq!(home.sessions(), ["ann"]);
        fs::remove_dir_all(&home.0).unwrap();
    }

    #[test]
    fn what_the_model_is_sent_is_kept_too() {
        let home = home("view");
        let (mut session, mut conversation, _) = Session::open(&home, "a").unwrap();
        conversation.extend(["one", "two", "three"].map(Message::user));
        session.keep(&conversation, "demo").unwrap();
        conversation.compact(2, "They counted.").unwrap();
        session.keep(&conversation, "demo").unwrap();
        let (mut again, read, note) = Session::open(&home, "a").unwrap();
        assert_eq!((&read, note), (&conversation, None));
        assert_eq!(read.view().len(), 2);
        conversation.push(Message::user("four"));
        again.keep(&conversation, "demo").unwrap();
        assert_eq!(Session::open(&home, "a").unwrap().1, conversation);
        fs::remove_dir_all(&home.0).unwrap();
    }

    #[test]
    fn the_model_is_kept_too() {
        let home = home("model");
        let (mut session, mut conversation, _) = Session::open(&home, "a").unwrap();
        assert_eq!(session.model, None);
        for (text, model) in [("one", "demo"), ("two", "demo"), ("three", "acme/large")] {
            conversation.push(Message::user(text));
            session.keep(&conversation, model).unwrap();
        }
        // The model may change without a new message.
        session.keep(&conversation, "acme/small").unwrap();
        session.keep(&conversation, "acme/small").unwrap();
        let (mut again, read, note) = Session::open(&home, "a").unwrap();
        assert_eq!((read, note, again.model.as_deref()), (conversation, None, Some("acme/small")));
        assert_eq!(fs::read_to_string(&again.path).unwrap().lines().count(), 6);
        // A file that is written anew names the model too.
        again.keep(&Conversation::from_iter([Message::user("else")]), "acme/small").unwrap();
        let (again, read, _) = Session::open(&home, "a").unwrap();
        assert_eq!((read.len(), again.model.as_deref()), (1, Some("acme/small")));
        fs::remove_dir_all(&home.0).unwrap();
    }

    #[test]
    fn a_line_that_broke_off_costs_that_line() {
        let home = home("broken");
        let (mut session, mut conversation, _) = Session::open(&home, "a").unwrap();
        conversation.push(Message::user("one"));
        session.keep(&conversation, "demo").unwrap();
        session.append("{\"role\": \"assis").unwrap();
        let (mut again, read, note) = Session::open(&home, "a").unwrap();
        assert_eq!(read, conversation);
        assert!(note.unwrap().starts_with("1 line of session a"));
        conversation.push(Message::user("two"));
        again.keep(&conversation, "demo").unwrap();
        assert_eq!(Session::open(&home, "a").unwrap().1.len(), 2);
        fs::remove_dir_all(&home.0).unwrap();
    }

    #[test]
    fn names_stay_in_their_folder() {
        let home = home("names");
        for name in ["", "../x", "a/b", ".hidden", "a\\b", "x y"] {
            assert!(Session::open(&home, name).unwrap_err().to_string().contains("no name"), "{name}");
        }
    }
}
