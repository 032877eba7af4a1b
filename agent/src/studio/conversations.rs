//! The open conversations and their latest runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::cut::{MAX_TEXT, cut_texts};
use super::response::Rejection;
use super::run::StudioRun;
use super::shared::StudioShared;
use crate::message::Message;
use crate::runtime::{Assistant, new_id};

/// Maximum number of open conversations. A new conversation closes the oldest conversation without an unfinished run. There is always one
/// to close, because at most [`MAX_RUNS`] runs are unfinished.
const MAX_OPEN: usize = 64;
/// Maximum number of runs whose events are kept.
const MAX_RUNS: usize = 16;
/// Time limit for the operations of the store in one request.
pub(super) const STORE_TIME: Duration = Duration::from_secs(15);
/// Maximum number of messages in one response.
const PAGE: usize = 100;
/// Maximum length of a title, in characters.
const TITLE: usize = 120;

pub(super) struct StudioConversation {
    pub(super) id: Arc<str>,
    pub(super) assistant: Assistant,
}

impl StudioConversation {
    /// Returns the beginning of the user's first message at or after the position `from`, or an empty text if there is none.
    fn title(&self, from: usize) -> String {
        let messages = self.assistant.messages();
        let said = messages.shared().iter().skip(from).find(|message| matches!(***message, Message::User(_)));
        said.map(|message| title_of(message)).unwrap_or_default()
    }
}

pub(super) fn title_of(message: &Message) -> String {
    message.text().chars().take(TITLE).collect()
}

#[derive(Default)]
pub(super) struct Conversations {
    open: Mutex<VecDeque<Arc<StudioConversation>>>,
    runs: Mutex<VecDeque<Arc<StudioRun>>>,
}

impl Conversations {
    fn open(&self) -> MutexGuard<'_, VecDeque<Arc<StudioConversation>>> {
        // Poisoning is ignored, because no code that can panic runs under these locks.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runs(&self) -> MutexGuard<'_, VecDeque<Arc<StudioRun>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn run(&self, id: &str) -> Result<Arc<StudioRun>, Rejection> {
        let found = self.runs().iter().find(|run| run.id() == id).cloned();
        found.ok_or_else(|| Rejection::not_found("run"))
    }

    pub(super) fn latest_run(&self, conversation: &str) -> Option<Arc<StudioRun>> {
        self.runs().iter().rev().find(|run| &*run.conversation.id == conversation).cloned()
    }

    /// Returns the number of messages before the next run of the same conversation, or `None` if this run is the latest.
    pub(super) fn end_of(&self, run: &StudioRun) -> Option<usize> {
        let runs = self.runs();
        let mut later = runs.iter().skip_while(|other| other.id() != run.id()).skip(1);
        later.find(|other| other.conversation.id == run.conversation.id).map(|next| next.from)
    }

    fn has_unfinished_run(&self, conversation: &str) -> bool {
        self.runs().iter().any(|run| &*run.conversation.id == conversation && !run.is_over())
    }

    pub(super) fn add_run(&self, run: Arc<StudioRun>) -> Result<(), Rejection> {
        let mut runs = self.runs();
        let is_busy =
            runs.iter().any(|other| other.conversation.id == run.conversation.id && !other.is_over());
        if is_busy {
            let message = "A run of this conversation is active: steer it, answer it or cancel it.";
            return Err(Rejection::conflict("busy", message));
        }
        let forgotten = if runs.len() < MAX_RUNS {
            None
        } else {
            runs.iter().position(|run| run.is_over()).and_then(|at| runs.remove(at))
        };
        if runs.len() >= MAX_RUNS {
            return Err(Rejection::conflict("too_many_runs", format!("{MAX_RUNS} runs are active.")));
        }
        runs.push_back(run);
        drop(runs);
        drop(forgotten);
        Ok(())
    }

    pub(super) fn cancel_runs(&self, reason: &str) {
        let runs: Vec<_> = self.runs().iter().cloned().collect();
        for run in &runs {
            run.cancel(reason);
        }
    }
}

impl StudioShared {
    fn known(&self, id: &str) -> Option<Arc<StudioConversation>> {
        self.conversations.open().iter().find(|known| &*known.id == id).cloned()
    }

    /// Returns the conversation with this id. If it is not open, it is opened from the store or created. `None` creates a conversation
    /// with a new id.
    pub(super) async fn conversation(&self, id: Option<&str>) -> Result<Arc<StudioConversation>, Rejection> {
        let id: Arc<str> = match id {
            Some(id) if id.is_empty() || id.len() > 200 => {
                return Err(Rejection::invalid("The name of a session has 1 to 200 bytes."));
            }
            Some(id) => id.into(),
            None => new_id("studio").into(),
        };
        if let Some(known) = self.known(&id) {
            return Ok(known);
        }
        let assistant = if self.template.has_store() {
            let opened = timeout(STORE_TIME, self.template.fork_session(id.clone())).await;
            let opened = opened.map_err(|_| Rejection::store("The store does not answer."))?;
            opened.map_err(|error| Rejection::store(error.to_string()))?
        } else {
            self.template.fork()
        };
        let conversation = Arc::new(StudioConversation { id: id.clone(), assistant });
        let mut open = self.conversations.open();
        // Another request may have opened the conversation in the meantime. Both requests must use the same conversation.
        if let Some(known) = open.iter().find(|known| known.id == id) {
            return Ok(known.clone());
        }
        let closed = if open.len() < MAX_OPEN {
            None
        } else {
            let is_idle = |known: &Arc<StudioConversation>| {
                !known.assistant.is_busy() && !self.conversations.has_unfinished_run(&known.id)
            };
            open.iter().position(is_idle).and_then(|at| open.remove(at))
        };
        open.push_back(conversation.clone());
        drop(open);
        drop(closed);
        Ok(conversation)
    }

    pub(super) fn open_conversations(&self) -> Value {
        let open: Vec<_> = self.conversations.open().iter().rev().cloned().collect();
        let shown = open.iter().map(|conversation| {
            let messages = conversation.assistant.messages();
            let title = conversation.title(0);
            let run = self.conversations.latest_run(&conversation.id);
            json!({
                "id": conversation.id,
                "title": title,
                "messages": messages.len(),
                "run": run.as_ref().map(|run| run.id()),
                "is_active": run.is_some_and(|run| !run.is_over()),
            })
        });
        shown.collect()
    }

    pub(super) fn messages(&self, conversation: &StudioConversation, after: usize) -> Value {
        let messages = conversation.assistant.messages();
        let page = messages.shared().iter().skip(after).take(PAGE);
        let mut shown: Vec<Value> = page.map(|message| json!(self.secrets.shown(message))).collect();
        for message in &mut shown {
            cut_texts(message, MAX_TEXT);
        }
        let run = self.conversations.latest_run(&conversation.id);
        let next = after + shown.len();
        json!({
            "id": conversation.id,
            "messages": shown,
            "total": messages.len(),
            "next": (next < messages.len()).then_some(next),
            "run": run.as_ref().map(|run| run.id()),
            "run_from": run.as_ref().map(|run| run.from),
            "is_active": run.is_some_and(|run| !run.is_over()),
        })
    }

    pub(super) fn run_list(&self) -> Value {
        let runs: Vec<_> = self.conversations.runs().iter().rev().cloned().collect();
        let shown = runs.iter().map(|run| {
            json!({
                "id": run.id(),
                "session": run.conversation.id,
                "title": run.conversation.title(run.from),
                "ago_ms": u64::try_from(run.began.elapsed().as_millis()).unwrap_or(u64::MAX),
                "is_active": !run.is_over(),
            })
        });
        json!({"runs": shown.collect::<Vec<_>>()})
    }
}
