//! The entries of a session.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::message::{Message, ViewChange};

/// One entry of a session.
///
/// The stored form is a flat object. Kinds that this version does not know are read as [`EntryKind::Unknown`] and skipped.
///
/// ```
/// use agent::message::Message;
/// use agent::store::{EntryKind, SessionEntry};
///
/// let entry = SessionEntry::new(EntryKind::message(Message::user("Hi"))).in_run("run-1", 1).written_by("host-a", 1_000);
/// assert_eq!((entry.run.as_str(), entry.turn), ("run-1", 1));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionEntry {
    /// The kind of entry, with its content.
    #[serde(flatten)]
    pub kind: EntryKind,
    /// The run that the entry belongs to; empty outside of a run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The turn of the run.
    #[serde(default)]
    pub turn: u32,
    /// The name of the writer. Each opening of a session creates a new name, so that a writer recognizes its own entries.
    #[serde(default)]
    pub writer: String,
    /// The time of writing, in milliseconds since 1970.
    #[serde(default)]
    pub at: i64,
}

pub(super) fn began(entries: &[SessionEntry]) -> impl Iterator<Item = &str> {
    let begins = entries.iter().filter(|entry| matches!(entry.kind, EntryKind::RunBegin));
    begins.map(|entry| entry.run.as_str()).filter(|run| !run.is_empty())
}

/// The kind of a [`SessionEntry`].
///
/// ```
/// use agent::message::Message;
/// use agent::store::EntryKind;
///
/// let kind = EntryKind::message(Message::user("Hi"));
/// assert!(matches!(&kind, EntryKind::Message { message, .. } if message.text() == "Hi"));
/// assert!(matches!(EntryKind::run_end("completed"), EntryKind::RunEnd { stop, .. } if stop == "completed"));
///
/// // A reply whose call lacks its secret arguments.
/// let kind = EntryKind::message_without(Message::assistant("I log in."), vec!["call_1".into()], false);
/// assert!(matches!(&kind, EntryKind::Message { withheld, is_cut: false, .. } if withheld == &["call_1"]));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryKind {
    /// A run began. The following entries belong to the run.
    RunBegin,
    /// An interrupted run continues here.
    RunResume,
    /// A message.
    #[non_exhaustive]
    Message {
        /// The message. Secret arguments of its calls are left out, unless the application stores them.
        message: Arc<Message>,
        /// The ids of the calls whose secret arguments were left out.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        withheld: Vec<String>,
        /// Whether the reply was cut by its token limit, so that none of its calls runs.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_cut: bool,
    },
    /// A run ended.
    #[non_exhaustive]
    RunEnd {
        /// The kind of the run's end, for example `completed`.
        stop: String,
        /// The limit that was reached, the reason of the cancellation, or the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// The conversation was reset: earlier entries are no longer part of the conversation.
    Reset,
    /// The model sees other messages from here on: see [`ViewChange`]. The stored messages before this entry stay as they are.
    #[non_exhaustive]
    View {
        /// The change.
        change: Box<ViewChange>,
    },
    /// An entry of an unknown kind, or a [`ViewChange`] that this version cannot read.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

/// Reads unknown kinds, and [`ViewChange`]s that cannot be read, as [`EntryKind::Unknown`].
impl<'de> Deserialize<'de> for EntryKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum KnownKind {
            RunBegin,
            RunResume,
            Message {
                message: Arc<Message>,
                #[serde(default)]
                withheld: Vec<String>,
                #[serde(default)]
                is_cut: bool,
            },
            RunEnd {
                stop: String,
                #[serde(default)]
                detail: Option<String>,
            },
            Reset,
        }
        const KNOWN: [&str; 5] = ["run_begin", "run_resume", "message", "run_end", "reset"];
        let stored = Map::<String, Value>::deserialize(deserializer)?;
        // A change that cannot be read becomes `Unknown` below, so the view stays as the previous change made it.
        if stored.get("type").is_some_and(|word| word == "view")
            && let Some(Ok(change)) = stored.get("change").map(ViewChange::deserialize)
        {
            return Ok(Self::View { change: Box::new(change) });
        }
        match stored.get("type").and_then(Value::as_str) {
            Some(word) if !KNOWN.contains(&word) => return Ok(Self::Unknown(stored)),
            _ => {}
        }
        Ok(match KnownKind::deserialize(Value::Object(stored)).map_err(D::Error::custom)? {
            KnownKind::RunBegin => Self::RunBegin,
            KnownKind::RunResume => Self::RunResume,
            KnownKind::Message { message, withheld, is_cut } => Self::Message { message, withheld, is_cut },
            KnownKind::RunEnd { stop, detail } => Self::RunEnd { stop, detail },
            KnownKind::Reset => Self::Reset,
        })
    }
}

impl EntryKind {
    /// Creates an entry for a message.
    pub fn message(message: impl Into<Arc<Message>>) -> Self {
        Self::Message { message: message.into(), withheld: Vec::new(), is_cut: false }
    }

    /// Creates an entry for a reply that was cut, or that is stored without secret arguments. `withheld` has the ids of the calls whose
    /// secret arguments are left out, and `is_cut` is true if the reply was cut by its token limit.
    pub fn message_without(message: impl Into<Arc<Message>>, withheld: Vec<String>, is_cut: bool) -> Self {
        Self::Message { message: message.into(), withheld, is_cut }
    }

    /// Creates an entry for a change of the view of the conversation.
    ///
    /// ```
    /// use agent::message::{Conversation, Message};
    /// use agent::store::EntryKind;
    ///
    /// let mut conversation = Conversation::from_iter([Message::user("Hi"), Message::assistant("Hello!"), Message::user("Bye")]);
    /// conversation.compact(2, "The user greeted.")?;
    /// let change = conversation.view_changes()[0].clone();
    /// assert!(matches!(EntryKind::view(change), EntryKind::View { .. }));
    /// # Ok::<(), agent::message::ViewError>(())
    /// ```
    pub fn view(change: ViewChange) -> Self {
        Self::View { change: Box::new(change) }
    }

    /// Creates an entry for the end of a run. `stop` is the kind of the end, for example `completed`.
    pub fn run_end(stop: impl Into<String>) -> Self {
        Self::RunEnd { stop: stop.into(), detail: None }
    }
}

impl SessionEntry {
    /// Creates an entry outside of any run.
    pub fn new(kind: EntryKind) -> Self {
        Self { kind, run: String::new(), turn: 0, writer: String::new(), at: 0 }
    }

    /// Sets the run and its turn.
    pub fn in_run(mut self, run: impl Into<String>, turn: u32) -> Self {
        (self.run, self.turn) = (run.into(), turn);
        self
    }

    /// Sets the writer, and the time in milliseconds since 1970.
    pub fn written_by(mut self, writer: impl Into<String>, at: i64) -> Self {
        (self.writer, self.at) = (writer.into(), at);
        self
    }
}

/// A session in a list of sessions.
///
/// ```
/// use agent::store::SessionSummary;
///
/// let listed = SessionSummary::new("ann", 4, 1_700_000_000_000);
/// assert_eq!((listed.session.as_str(), listed.entries), ("ann", 4));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The name of the session.
    pub session: String,
    /// The number of entries of the session, which is also the number of the last entry.
    pub entries: u64,
    /// The time of the last entry, in milliseconds since 1970.
    pub at: i64,
}

impl SessionSummary {
    /// Creates the summary of a session.
    pub fn new(session: impl Into<String>, entries: u64, at: i64) -> Self {
        Self { session: session.into(), entries, at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn round_trip(entry: &SessionEntry) -> SessionEntry {
        serde_json::from_str(&serde_json::to_string(entry).unwrap()).unwrap()
    }

    #[test]
    fn entries_are_flat_and_go_both_ways() {
        let message = EntryKind::message_without(Message::user("Hi"), vec!["c1".to_owned()], true);
        for kind in [
            EntryKind::RunBegin,
            EntryKind::RunResume,
            message,
            EntryKind::run_end("completed"),
            EntryKind::Reset,
        ] {
            let entry = SessionEntry::new(kind).in_run("run_1", 2).written_by("w", 5);
            assert_eq!(round_trip(&entry), entry);
        }
        let form = serde_json::to_value(SessionEntry::new(EntryKind::RunBegin).in_run("r", 1)).unwrap();
        assert_eq!(form, json!({"type": "run_begin", "run": "r", "turn": 1, "writer": "", "at": 0}));
    }

    #[test]
    fn later_kinds_are_kept_and_broken_ones_refused() {
        let later =
            json!({"type": "note", "text": "x", "run": "r", "turn": 1, "writer": "w", "at": 3, "more": 1});
        let entry: SessionEntry = serde_json::from_value(later).unwrap();
        assert_eq!(entry.run, "r");
        assert!(matches!(&entry.kind, EntryKind::Unknown(map) if map["text"] == "x"));
        assert_eq!(round_trip(&entry), entry);
        let error = serde_json::from_value::<SessionEntry>(json!({"type": "message", "message": 5}));
        assert!(error.is_err());
    }
}
