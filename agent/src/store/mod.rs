//! What lasts: records of tool calls, and sessions that survive their process.
//!
//! Give an assistant a store, and each tool call leaves a record: what was called, with which arguments, what came of
//! it, when, at which attempt. Give it a session, and its conversation is written down as it becomes final; a process that
//! is killed at any point is followed by another that opens the same session and goes on.
//!
//! ```
//! use agent::store::{InvocationQuery, InvocationStore as _, MemoryStore};
//! use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
//!
//! /// Adds two numbers.
//! #[tool(effect = "pure")]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! # #[cfg(feature = "runtime")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new();                     // or SqlStore::sqlite("agent.db").await? (feature `store-sql`)
//! let model = ScriptedModel::new([reply().tool_call("add", r#"{"a": "40", "b": 2}"#), reply().text("It is 42.")]);
//! let assistant = Assistant::builder(model).tools(tools![add]).store(store.clone()).session("ann").await?;
//! assistant.prompt("What is 40 plus 2?").await?;
//!
//! let records = store.list(InvocationQuery::new().session("ann")).await?.records;
//! assert_eq!(records[0].call.args, agent::json!({"a": 40, "b": 2}));       // as it ran, after coercion
//! assert_eq!(records[0].result().unwrap().text_content(), "42");
//!
//! // Later, perhaps in another process:
//! let again = Assistant::builder(ScriptedModel::new(["You asked for a sum."])).store(store).session("ann").await?;
//! assert_eq!(again.messages().len(), 4);
//! assert_eq!(again.prompt("What did I ask?").await?.text(), "You asked for a sum.");
//! # Ok(()) }
//! # #[cfg(not(feature = "runtime"))]
//! # fn main() {}
//! ```
//!
//! # After a crash
//!
//! A run that was going on when its process died is found when the session is opened. `continue_run` goes on with it under
//! its own id: replies that were stored are not asked for again, calls that ended are not run again. A call that had
//! begun, and whose end was not recorded, depends on what its tool [says](crate::Effect) about itself: `pure` and
//! `idempotent` ones run again with the same idempotency key, at most [`max_attempts`](crate::ToolPolicy::max_attempts) times
//! (3 where the tool says nothing); one that must happen `once` is never run again: it ends as interrupted, code `lost`.
//! Decisions on approvals that were not used are asked for again. `prompt` leaves such a run where it is, gives its open
//! calls the results that are recorded or say that there is none, and begins another one.
//!
//! # When the store fails
//!
//! A body whose begin cannot be recorded does not run. Whatever else the store does wrong ends the run with
//! [`RunError::Store`](crate::RunError::Store), which carries the typed [error](StoreError) and what the run came to all
//! the same; the conversation in memory is whole, and the next prompt writes down what is missing: messages, and the ends
//! of calls. Two assistants on one
//! session do not mix: the one that is late gets a [conflict](StoreErrorKind::Conflict), before its next reply, and has
//! to open the session again. Times in records are informative: nothing is decided by a clock but
//! [retention](InvocationStore::delete_finished_before).
//!
//! # When the store hangs
//!
//! The store has 10 s for one request ([`store_timeout`](crate::AssistantBuilder::store_timeout)). Then the request is an
//! [error](StoreErrorKind::Timeout), and the run ends. Once the run is cancelled, or its `wall_time` is up, a request has 1 s.
//! A cancelled run whose store hangs therefore ends after 1 s; after 2 s where messages were being written, as the store is
//! asked once whether they arrived. A running body has its [`cancel_grace`](crate::AssistantBuilder::cancel_grace) before that.
//! The run's error is [`RunError::Store`](crate::RunError::Store), and the output in it says that the run was aborted.
//!
//! A call whose begin was not recorded by then does not run, and its result says so. A call that had begun keeps the end it
//! came to, or is interrupted; where that could not be recorded, its record stays pending until the next prompt of the
//! assistant ends it. An assistant keeps at most 1,000 such ends. When its process is gone before, the next one that opens the
//! session decides as [after a crash](#after-a-crash); without a session,
//! [`pending_before`](InvocationStore::pending_before) finds the record.
//!
//! # What is stored
//!
//! Arguments that are marked `secret` are not, neither in records nor in messages, unless the application asks for it
//! ([`AssistantBuilder::store_secrets`](crate::AssistantBuilder::store_secrets)); of a tool that has secret ones, neither
//! are keys it does not know. A call that has not begun and lacks its secrets after a crash is not run. Results, and what
//! users and models say, are stored as they are.

mod error;
mod memory;
mod record;
mod session;
#[cfg(feature = "store-sql")]
mod sql;

use std::sync::Arc;

#[cfg(feature = "runtime")]
pub(crate) use crate::args::withheld;
pub use error::{StoreError, StoreErrorKind};
pub use memory::MemoryStore;
pub use record::{
    Begin, InvocationEnd, InvocationPage, InvocationQuery, InvocationRecord, InvocationStatus, NewInvocation,
};
pub use session::{EntryKind, SessionEntry, StoredEntry};
#[cfg(feature = "store-sql")]
pub use sql::SqlStore;

use crate::message::UserMessage;
use crate::{BoxFuture, StepKey};

/// Records of tool calls, by the key of their step.
///
/// Each function is one atomic step: when its future is dropped, it has happened or it has not.
/// `agent::testing::assert_store` (feature `testing`) holds a store of yours against all of this.
///
/// ```
/// use agent::store::{InvocationEnd, InvocationStore, MemoryStore, NewInvocation};
/// use agent::{StepKey, StepKind, ToolOutput, json};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// let key = StepKey::new("run-1", 1, StepKind::Tool, 0);
/// store.begin(NewInvocation::new(key.clone(), "call_1", "add", json!({"a": 1, "b": 2}))).await?;
/// store.finish(&key, InvocationEnd::new(ToolOutput::text("3").into(), 1_000)).await?;
/// let record = store.get(&key).await?.expect("it has begun");
/// assert_eq!(record.result().unwrap().text_content(), "3");
/// # Ok(()) }
/// ```
///
/// What an operator asks: which calls were lost, which are waited for, and what may be deleted.
///
/// ```
/// use agent::store::{InvocationEnd, InvocationQuery, InvocationStore, MemoryStore, NewInvocation};
/// use agent::{StepKey, StepKind, ToolOutput, json};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// let keys = [0, 1, 2].map(|ord| StepKey::new("run-1", 1, StepKind::Tool, ord));
/// for (key, tool) in keys.iter().zip(["add", "translate", "send"]) {
///     store.begin(NewInvocation::new(key.clone(), format!("call_{}", key.ord), tool, json!({})).at(1_000)).await?;
/// }
/// store.finish(&keys[0], InvocationEnd::new(ToolOutput::text("3").into(), 2_000)).await?;
/// assert!(store.defer(&keys[1], "order 7").await?);            // its result comes from outside
/// assert!(!store.defer(&keys[0], "order 8").await?);           // it has ended
///
/// let lost = store.pending_before(5_000, 10).await?;
/// assert_eq!(lost.iter().map(|record| record.call.tool.as_str()).collect::<Vec<_>>(), ["send"]);
/// assert_eq!(store.delete_finished_before(5_000).await?, 1);
/// assert_eq!(store.list(InvocationQuery::new()).await?.records.len(), 2);
/// # Ok(()) }
/// ```
pub trait InvocationStore: Send + Sync {
    /// Inserts a pending record unless there is one of that key, and says what is there. A pending one that is found has
    /// its attempt counted up.
    fn begin(&self, new: NewInvocation) -> BoxFuture<'_, Result<Begin, StoreError>>;

    /// Ends a pending record; false when there is none, or somebody ended it before.
    fn finish<'a>(&'a self, key: &'a StepKey, end: InvocationEnd) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Notes that the result of a pending record comes from outside; false when there is no such record.
    fn defer<'a>(&'a self, key: &'a StepKey, handle: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The record of a key, if there is one.
    fn get<'a>(&'a self, key: &'a StepKey) -> BoxFuture<'a, Result<Option<InvocationRecord>, StoreError>>;

    /// The records that a query asks for, oldest first, a page at a time.
    fn list(&self, query: InvocationQuery) -> BoxFuture<'_, Result<InvocationPage, StoreError>>;

    /// The oldest pending records that began before a time (milliseconds since 1970), at most `limit`: what may have been lost.
    /// Those whose results come from outside are not among them.
    fn pending_before(
        &self,
        at: i64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>>;

    /// Deletes the records that ended before a time (milliseconds since 1970), and says how many. Pending ones stay.
    fn delete_finished_before(&self, at: i64) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// Sessions: lists of entries that only grow, each with an inbox for messages to a run that goes on elsewhere.
///
/// ```
/// use agent::message::Message;
/// use agent::store::{EntryKind, MemoryStore, SessionEntry, SessionStore};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// let entry = SessionEntry::new(EntryKind::message(Message::user("Hi")));
/// assert_eq!(store.append("ann", 0, vec![entry.clone()]).await?, 1);
/// assert!(store.append("ann", 0, vec![entry]).await.unwrap_err().is_conflict());      // somebody was faster
/// assert_eq!(store.load("ann", 0, 100).await?.len(), 1);
/// # Ok(()) }
/// ```
///
/// The inbox of a session is for messages from other processes:
///
/// ```
/// use agent::message::UserMessage;
/// use agent::store::{EntryKind, MemoryStore, SessionEntry, SessionStore};
/// use agent::{StepKey, StepKind};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// let mut message = UserMessage::from("Look at the logs, too.");
/// message.id = Some("msg-1".into());
/// assert!(store.push_steering("ann", message.clone()).await?);
/// assert!(!store.push_steering("ann", message).await?);        // it was put there before
///
/// let poll = StepKey::new("run-1", 1, StepKind::Poll, 1);
/// assert_eq!(store.take_steering("ann", &poll, 10).await?.len(), 1);
/// assert_eq!(store.take_steering("ann", &poll, 10).await?.len(), 1);           // the same step gets the same
/// let next = StepKey::new("run-1", 2, StepKind::Poll, 1);
/// assert!(store.take_steering("ann", &next, 10).await?.is_empty());
///
/// store.append("ann", 0, vec![SessionEntry::new(EntryKind::RunBegin)]).await?;
/// assert_eq!(store.delete_session("ann").await?, 1);
/// assert!(store.load("ann", 0, 100).await?.is_empty());
/// # Ok(()) }
/// ```
pub trait SessionStore: Send + Sync {
    /// Adds entries behind the entry `expected` (0 for a new session), all or none, and says the number of the last one.
    ///
    /// The error is a [conflict](StoreErrorKind::Conflict) when `expected` is not the last entry.
    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        entries: Vec<SessionEntry>,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// At most `limit` entries behind the entry `after`, in order.
    fn load<'a>(
        &'a self,
        session: &'a str,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<StoredEntry>, StoreError>>;

    /// Puts a message into the inbox; false when one with its id was put there before. The message has an id.
    fn push_steering<'a>(
        &'a self,
        session: &'a str,
        message: UserMessage,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Takes at most `limit` messages out of the inbox, oldest first. Asked again with one key it gives what it gave
    /// before, nothing included.
    fn take_steering<'a>(
        &'a self,
        session: &'a str,
        key: &'a StepKey,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<UserMessage>, StoreError>>;

    /// Deletes a session with its inbox; says how many entries it had. Records of its calls stay.
    fn delete_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<u64, StoreError>>;
}

/// What an assistant stores in: both in one.
///
/// ```
/// use agent::store::{MemoryStore, Store};
/// use std::sync::Arc;
///
/// // A store that is chosen at run time.
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// let assistant = agent::Assistant::builder(agent::ScriptedModel::new(["Hello!"])).store(store).build()?;
/// # Ok::<(), agent::BuildError>(())
/// ```
pub trait Store: InvocationStore + SessionStore {}

impl<T: InvocationStore + SessionStore + ?Sized> Store for T {}

impl<T: InvocationStore + ?Sized> InvocationStore for Arc<T> {
    fn begin(&self, new: NewInvocation) -> BoxFuture<'_, Result<Begin, StoreError>> {
        (**self).begin(new)
    }

    fn finish<'a>(&'a self, key: &'a StepKey, end: InvocationEnd) -> BoxFuture<'a, Result<bool, StoreError>> {
        (**self).finish(key, end)
    }

    fn defer<'a>(&'a self, key: &'a StepKey, handle: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        (**self).defer(key, handle)
    }

    fn get<'a>(&'a self, key: &'a StepKey) -> BoxFuture<'a, Result<Option<InvocationRecord>, StoreError>> {
        (**self).get(key)
    }

    fn list(&self, query: InvocationQuery) -> BoxFuture<'_, Result<InvocationPage, StoreError>> {
        (**self).list(query)
    }

    fn pending_before(
        &self,
        at: i64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>> {
        (**self).pending_before(at, limit)
    }

    fn delete_finished_before(&self, at: i64) -> BoxFuture<'_, Result<u64, StoreError>> {
        (**self).delete_finished_before(at)
    }
}

impl<T: SessionStore + ?Sized> SessionStore for Arc<T> {
    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        entries: Vec<SessionEntry>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        (**self).append(session, expected, entries)
    }

    fn load<'a>(
        &'a self,
        session: &'a str,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<StoredEntry>, StoreError>> {
        (**self).load(session, after, limit)
    }

    fn push_steering<'a>(
        &'a self,
        session: &'a str,
        message: UserMessage,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        (**self).push_steering(session, message)
    }

    fn take_steering<'a>(
        &'a self,
        session: &'a str,
        key: &'a StepKey,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<UserMessage>, StoreError>> {
        (**self).take_steering(session, key, limit)
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        (**self).delete_session(session)
    }
}
