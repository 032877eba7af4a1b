//! Durable storage: records of tool calls, and sessions that survive their process.
//!
//! With a store, an assistant records each tool call: the tool, the arguments, the result, the times and the attempt. With a session, each
//! message of the conversation is stored as soon as it is final. If the process is killed at any point, another process can open the same
//! session and continue.
//!
//! ```
//! use agent::store::{InvocationQuery, MemoryStore, Store as _};
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
//! let records = store.list(InvocationQuery::new().session("ann")).await?;
//! assert_eq!(records[0].args, agent::json!({"a": 40, "b": 2}));       // as it ran, after coercion
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
//! An opened session may contain a run whose process died. `continue_run` continues this run under its own id: stored replies are not
//! requested again, and calls that have ended do not run again. If a call began and its end was not recorded, the
//! [effect](crate::tool::Effect) of the tool decides. Calls of `pure` and `idempotent` tools run again with the same idempotency key, at
//! most [`max_attempts`](crate::tool::ToolPolicy::max_attempts) times (3 unless the tool sets it), if the parameters of the tool and the
//! arguments are still the same. Any other call ends as interrupted, with the code `lost`. A call that waited is not lost: a deferred call
//! still waits for its result. A call that asked a person, or started a sub-agent with stored steps, continues. Approval decisions that
//! were not used yet are requested again. `prompt` does not continue the interrupted run, but begins a new run. Each call without a result
//! then gets its recorded result, or a result that reports that none was recorded.
//!
//! # When the store fails
//!
//! Most operations are tried up to three times while the store is busy or cannot be reached. A tool does not run if the begin of its call
//! cannot be recorded. Every failure of the store ends the run with [`RunError::Store`](crate::RunError::Store), which carries the typed
//! [error](StoreError) and the output of the run. The conversation in memory is complete, and the next prompt stores the missing messages
//! and the missing ends of calls. If two assistants write to one session, their messages do not mix. The assistant that writes later gets
//! a [conflict](StoreErrorKind::Conflict) before its next reply, and must open the session again. Recorded times affect only queries by
//! time, lists and [retention](Store::delete_finished_before). No run depends on them.
//!
//! # When the store hangs
//!
//! The store has 10 s to respond to each request ([`store_timeout`](crate::AssistantBuilder::store_timeout)). After that the request fails
//! with a [timeout](StoreErrorKind::Timeout), and the run ends. Once the run is cancelled, or its `wall_time` is used up, a request has
//! only 1 s. So a cancelled run whose store hangs ends after 1 s. If the run was writing messages, it ends after 2 s, because it then asks
//! the store once whether the messages arrived. A running tool first gets its [`cancel_grace`](crate::AssistantBuilder::cancel_grace). The
//! run fails with [`RunError::Store`](crate::RunError::Store), whose output reports that the run was aborted.
//!
//! A call whose begin was not recorded in time does not run, and its result reports this. A call that had begun ends with its own outcome,
//! or as interrupted. If this end could not be recorded, the record stays pending until the next prompt of the assistant records the end.
//! An assistant keeps at most 1,000 unrecorded ends. If its process dies before an end is recorded, the next process that opens the
//! session decides as [after a crash](#after-a-crash). Without a session, [`pending_before`](Store::pending_before) finds the record.
//!
//! # What is stored
//!
//! Arguments that are marked `secret` are left out of records and messages, unless the application stores them with
//! [`AssistantBuilder::store_secrets`](crate::AssistantBuilder::store_secrets). For a tool with secret arguments, unknown keys are left out
//! too. After a crash, a call that has not begun and lacks its secrets is not run. Results, and the messages of users and models, are
//! stored unchanged.
#![cfg_attr(feature = "runtime", doc = "\n", doc = include_str!("../docs/own_store.md"))]

mod budget;
mod error;
mod memory;
mod record;
mod session;
#[cfg(feature = "store-sql")]
mod sql;

use std::sync::Arc;

pub use budget::{BudgetHold, BudgetUse};
pub use error::{StoreError, StoreErrorKind};
pub use memory::MemoryStore;
pub use record::{InvocationEnd, InvocationQuery, InvocationRecord, InvocationStatus};
pub use session::{EntryKind, SessionEntry, SessionSummary};
#[cfg(feature = "store-sql")]
pub use sql::SqlStore;

use crate::message::UserMessage;
use crate::step_key::StepKey;
use crate::tool::BoxFuture;

/// The storage of an assistant: records of tool calls, and sessions.
///
/// ```
/// use agent::store::{MemoryStore, Store};
/// use std::sync::Arc;
///
/// // A store that is chosen at run time.
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// let assistant = agent::Assistant::builder(agent::ScriptedModel::new(["Hello!"])).store(store).build()?;
/// # Ok::<(), agent::run::BuildError>(())
/// ```
///
/// # Your own store
///
/// Implement this trait, as in the [example](self#a-store-of-your-own). To share a store, use an `Arc` of your type. Each function is
/// atomic: if its future is dropped, its work is done completely or not at all. Test your own implementation with
/// `agent::testing::assert_store` (feature `testing`).
///
/// # Records
///
/// A record is stored under the key of its step.
///
/// ```
/// use agent::store::{InvocationEnd, InvocationRecord, MemoryStore, Store};
/// use agent::{ToolOutput, json, steps::{StepKey, StepKind}};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// let key = StepKey::new("run-1", 1, StepKind::Tool, 0);
/// store.begin(InvocationRecord::new(key.clone(), "call_1", "add", json!({"a": 1, "b": 2}))).await?;
/// store.finish(&key, InvocationEnd::new(ToolOutput::text("3").into(), 1_000)).await?;
/// let record = store.get(&key).await?.expect("it has begun");
/// assert_eq!(record.result().unwrap().text_content(), "3");
/// # Ok(()) }
/// ```
///
/// An operator can query which calls were lost, which calls wait for a result, and which records may be deleted:
///
/// ```
/// use agent::store::{InvocationEnd, InvocationQuery, InvocationRecord, MemoryStore, Store};
/// use agent::{ToolOutput, json, steps::{StepKey, StepKind}};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// let keys = [0, 1, 2].map(|ord| StepKey::new("run-1", 1, StepKind::Tool, ord));
/// for (key, tool) in keys.iter().zip(["add", "translate", "send"]) {
///     store.begin(InvocationRecord::new(key.clone(), format!("call_{}", key.ord), tool, json!({})).at(1_000)).await?;
/// }
/// store.finish(&keys[0], InvocationEnd::new(ToolOutput::text("3").into(), 2_000)).await?;
/// assert!(store.defer(&keys[1], "order 7").await?);            // its result comes from outside
/// assert!(!store.defer(&keys[0], "order 8").await?);           // it has ended
///
/// let lost = store.pending_before(5_000, 10).await?;
/// assert_eq!(lost.iter().map(|record| record.tool.as_str()).collect::<Vec<_>>(), ["send"]);
/// assert_eq!(store.delete_finished_before(5_000).await?, 1);
/// assert_eq!(store.list(InvocationQuery::new()).await?.len(), 2);
/// # Ok(()) }
/// ```
///
/// # Sessions
///
/// A session is an append-only list of entries, with an inbox for messages to a run in another process.
///
/// ```
/// use agent::message::Message;
/// use agent::store::{EntryKind, MemoryStore, SessionEntry, Store};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// let entry = SessionEntry::new(EntryKind::message(Message::user("Hi")));
/// assert_eq!(store.append("ann", 0, vec![entry.clone()]).await?, 1);
/// assert!(store.append("ann", 0, vec![entry]).await.unwrap_err().is_conflict());      // another writer was faster
/// assert_eq!(store.load("ann", 0, 100).await?.len(), 1);
/// # Ok(()) }
/// ```
///
/// Sessions are listed one page at a time, the latest first:
///
/// ```
/// use agent::store::{EntryKind, MemoryStore, SessionEntry, Store};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// for (at, name) in (1_000..).zip(["ann/1", "ann/2", "ben/1"]) {
///     store.append(name, 0, vec![SessionEntry::new(EntryKind::RunBegin).written_by("host-a", at)]).await?;
/// }
/// let (mut names, mut after) = (Vec::new(), None);
/// loop {
///     let page = store.list_sessions("ann/", after.as_ref(), 1).await?;
///     names.extend(page.iter().map(|listed| listed.session.clone()));
///     after = page.into_iter().last();
///     if after.is_none() {
///         break;
///     }
/// }
/// assert_eq!(names, ["ann/2", "ann/1"]);
/// # Ok(()) }
/// ```
///
/// The inbox of a session takes messages from other processes:
///
/// ```
/// use agent::message::UserMessage;
/// use agent::store::{EntryKind, MemoryStore, SessionEntry, Store};
/// use agent::steps::{StepKey, StepKind};
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
///
/// # Budgets
///
/// A [budget](crate::run::Budget) is an amount under a key. A request reserves a part of the budget. Once the used amount is known, this
/// amount replaces the reserved part:
///
/// ```
/// use agent::store::{BudgetHold, MemoryStore, Store};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// let now = 1_000_000;                                            // milliseconds since 1970
/// let hold = |amount| vec![BudgetHold::new("team a", amount, 100)];
/// assert_eq!(store.reserve("request 1", hold(70), now, now + 60_000).await?, None);
///
/// let refused = store.reserve("request 2", hold(40), now, now + 60_000).await?.unwrap();
/// assert_eq!((refused.budget.as_str(), refused.spent, refused.held), ("team a", 0, 70));
///
/// assert!(store.settle("request 1", vec![("team a".to_owned(), 50)]).await?);
/// assert!(!store.settle("request 1", vec![("team a".to_owned(), 50)]).await?);     // no effect
/// assert_eq!(store.budget("team a").await?.spent, 50);
/// assert_eq!(store.reserve("request 2", hold(40), now, now + 60_000).await?, None);
///
/// // The hold of `request 2` has expired, as if its process had died: the whole amount counts as spent.
/// assert_eq!(store.reserve("request 3", hold(20), now + 90_000, now + 150_000).await?.unwrap().spent, 90);
/// # Ok(()) }
/// ```
pub trait Store: Send + Sync {
    /// Inserts a record as pending, at its first attempt, and returns `None`. If a record with this key exists, returns that record. If it
    /// is pending, its number of attempts is first increased.
    ///
    /// For a pending record that [continues](InvocationRecord::continues), no attempt is counted. The store removes the
    /// [handle](InvocationRecord::handle) from the stored record, but the returned record still contains the handle. If several callers
    /// begin such a record at the same time, only one of them gets the handle.
    fn begin(&self, new: InvocationRecord) -> BoxFuture<'_, Result<Option<InvocationRecord>, StoreError>>;

    /// Ends a pending record. Returns false if no record has this key, or if the record has already ended.
    fn finish<'a>(&'a self, key: &'a StepKey, end: InvocationEnd) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Sets the [handle](InvocationRecord::handle) of a pending record. The handle marks that the call waits: for a result from outside,
    /// for a person, or for a sub-agent. Returns false if no pending record has this key.
    fn defer<'a>(&'a self, key: &'a StepKey, handle: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns the record with this key, if there is one.
    fn get<'a>(&'a self, key: &'a StepKey) -> BoxFuture<'a, Result<Option<InvocationRecord>, StoreError>>;

    /// Returns the records that match a query, at most a [page](InvocationQuery::limit), oldest first: ordered by begin, turn, ordinal and
    /// key.
    fn list(&self, query: InvocationQuery) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>>;

    /// Returns the oldest pending records that began before a time (milliseconds since 1970), at most `limit` (`SqlStore` returns at most
    /// 1,000). These calls may have been lost. Records with a handle are not included, because their calls [wait](Self::defer).
    fn pending_before(
        &self,
        at: i64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>>;

    /// Deletes the records that ended before a time (milliseconds since 1970), and returns their number. Pending records are kept.
    fn delete_finished_before(&self, at: i64) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Appends entries after the entry `expected` (0 for a new session), all or none, and returns the number of the last entry.
    ///
    /// # Errors
    /// Returns a [conflict](StoreErrorKind::Conflict) if `expected` is not the last entry.
    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        entries: Vec<SessionEntry>,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Returns at most `limit` entries after the entry `after`, in order, each with its number. The first entry has the number 1.
    fn load<'a>(
        &'a self,
        session: &'a str,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(u64, SessionEntry)>, StoreError>>;

    /// Returns at most `limit` sessions (`SqlStore` returns at most 1,000) that have entries and whose names contain the text `containing`;
    /// the case of ASCII letters is ignored. The latest session is first, by the time of its last entry. Sessions with equal times are
    /// ordered by name, in the sort order of the store. `after` is the last session of the previous page, or `None` for the first page. A
    /// session that gets an entry between two pages moves to the front.
    ///
    /// # Errors
    /// Returns [`Unsupported`](StoreErrorKind::Unsupported) if the store cannot list sessions. The default implementation always returns
    /// this error.
    fn list_sessions<'a>(
        &'a self,
        containing: &'a str,
        after: Option<&'a SessionSummary>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        let _ = (containing, after, limit);
        let error = StoreError::new(StoreErrorKind::Unsupported, "it cannot list its sessions");
        Box::pin(std::future::ready(Err(error)))
    }

    /// Puts a message into the inbox. Returns false if the inbox received a message with the same id before. The message must have an id.
    fn push_steering<'a>(
        &'a self,
        session: &'a str,
        message: UserMessage,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Takes at most `limit` messages out of the inbox, oldest first. A second request with the same key returns the same messages as the
    /// first request, even if the first request returned none.
    fn take_steering<'a>(
        &'a self,
        session: &'a str,
        key: &'a StepKey,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<UserMessage>, StoreError>>;

    /// Deletes a session, its inbox, and the sessions and inboxes of its sub-agents. Returns the number of deleted entries. The name of a
    /// sub-agent's session begins with the id of a run that this session [began](EntryKind::RunBegin), and a slash. Records of calls are
    /// kept.
    fn delete_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Reserves amounts of several budgets for a request, all or none. Returns `None` on success. If a limit would be exceeded, returns
    /// the use of that budget. A budget in which this id already has a reserved amount is skipped.
    ///
    /// A reserved amount that is not [settled](Self::settle) by `until` counts as spent, because the request may have been made. The next
    /// `reserve` call for the same budget counts the amount as spent, even if that call is refused. The reserved amount is kept for at
    /// least 7 more days, so that a late `settle` call corrects the spent amount. `now` and `until` are milliseconds since 1970.
    ///
    /// # Errors
    /// Returns [`Unsupported`](StoreErrorKind::Unsupported) if the store keeps no budgets. The default implementation always returns this
    /// error.
    fn reserve<'a>(
        &'a self,
        id: &'a str,
        holds: Vec<BudgetHold>,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Option<BudgetUse>, StoreError>> {
        let _ = (id, holds, now, until);
        Box::pin(std::future::ready(Err(no_budgets())))
    }

    /// Replaces reserved amounts of this id by spent amounts. Each item of `amounts` contains the key of a budget and the amount that was
    /// spent. Returns whether this id had a reserved amount in any of these budgets. A second call has no effect.
    ///
    /// # Errors
    /// Returns [`Unsupported`](StoreErrorKind::Unsupported) if the store keeps no budgets. The default implementation always returns this
    /// error.
    fn settle<'a>(
        &'a self,
        id: &'a str,
        amounts: Vec<(String, u64)>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let _ = (id, amounts);
        Box::pin(std::future::ready(Err(no_budgets())))
    }

    /// Returns the use of a budget. The amounts of a budget that was never used are zero.
    ///
    /// # Errors
    /// Returns [`Unsupported`](StoreErrorKind::Unsupported) if the store keeps no budgets. The default implementation always returns this
    /// error.
    fn budget<'a>(&'a self, budget: &'a str) -> BoxFuture<'a, Result<BudgetUse, StoreError>> {
        let _ = budget;
        Box::pin(std::future::ready(Err(no_budgets())))
    }
}

fn no_budgets() -> StoreError {
    StoreError::new(StoreErrorKind::Unsupported, "it keeps no budgets")
}

impl<T: Store + ?Sized> Store for Arc<T> {
    fn begin(&self, new: InvocationRecord) -> BoxFuture<'_, Result<Option<InvocationRecord>, StoreError>> {
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

    fn list(&self, query: InvocationQuery) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>> {
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
    ) -> BoxFuture<'a, Result<Vec<(u64, SessionEntry)>, StoreError>> {
        (**self).load(session, after, limit)
    }

    fn list_sessions<'a>(
        &'a self,
        containing: &'a str,
        after: Option<&'a SessionSummary>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        (**self).list_sessions(containing, after, limit)
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

    fn reserve<'a>(
        &'a self,
        id: &'a str,
        holds: Vec<BudgetHold>,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Option<BudgetUse>, StoreError>> {
        (**self).reserve(id, holds, now, until)
    }

    fn settle<'a>(
        &'a self,
        id: &'a str,
        amounts: Vec<(String, u64)>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        (**self).settle(id, amounts)
    }

    fn budget<'a>(&'a self, budget: &'a str) -> BoxFuture<'a, Result<BudgetUse, StoreError>> {
        (**self).budget(budget)
    }
}
