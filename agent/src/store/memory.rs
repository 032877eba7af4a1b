use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::budget::MemoryBudgets;
use super::record::Position;
use super::session::began;
use super::{
    BudgetHold, BudgetUse, InvocationEnd, InvocationQuery, InvocationRecord, InvocationStatus, SessionEntry,
    SessionSummary, Store, StoreError, StoreErrorKind,
};
use crate::message::UserMessage;
use crate::step_key::StepKey;
use crate::tool::BoxFuture;

/// A store in memory, for tests and for records that need not outlive their process. Clones share their contents.
///
/// ```
/// use agent::store::{InvocationRecord, MemoryStore, Store as _};
/// use agent::{json, steps::{StepKey, StepKind}};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// let call = InvocationRecord::new(StepKey::new("run-1", 1, StepKind::Tool, 0), "call_1", "add", json!({}));
/// assert_eq!(store.begin(call.clone()).await?, None);                        // it was not begun before
/// assert_eq!(store.begin(call).await?.map(|record| record.attempt), Some(2));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<MemoryContents>>,
    /// Maximum number of rows, as in [`with_room_for`](Self::with_room_for). `None` if the number is not limited.
    room: Option<usize>,
}

#[derive(Debug, Default)]
struct MemoryContents {
    records: HashMap<StepKey, InvocationRecord>,
    sessions: HashMap<String, MemorySession>,
    /// The rows of all sessions.
    session_rows: usize,
    budgets: MemoryBudgets,
}

#[derive(Debug, Default)]
struct MemorySession {
    entries: Vec<SessionEntry>,
    inbox: Vec<UserMessage>,
    /// The number of messages at the beginning of `inbox` that were taken.
    taken: usize,
    ids: HashSet<String>,
    /// The range of `inbox` that was taken under each key.
    batches: HashMap<StepKey, std::ops::Range<usize>>,
}

impl MemorySession {
    fn rows(&self) -> usize {
        self.entries.len() + self.inbox.len() + self.batches.len()
    }
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty store that holds at most this many rows: records, session entries, messages of inboxes, keys under which such
    /// messages were taken, budgets and reserved amounts. Requests that need more room fail with [`Full`](StoreErrorKind::Full).
    ///
    /// ```
    /// use agent::store::{EntryKind, MemoryStore, SessionEntry, Store as _, StoreErrorKind};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
    /// let store = MemoryStore::with_room_for(1);
    /// store.append("ann", 0, vec![SessionEntry::new(EntryKind::RunBegin)]).await?;
    /// let more = store.append("ann", 1, vec![SessionEntry::new(EntryKind::run_end("completed"))]).await;
    /// assert_eq!(more.unwrap_err().kind(), StoreErrorKind::Full);
    /// # Ok(()) }
    /// ```
    pub fn with_room_for(count: usize) -> Self {
        Self { inner: Arc::default(), room: Some(count) }
    }

    fn lock(&self) -> MutexGuard<'_, MemoryContents> {
        // No code that can panic runs while the lock is held, so the lock is never poisoned.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_room(&self, inner: &MemoryContents, more: usize) -> Result<(), StoreError> {
        let used = inner.records.len() + inner.session_rows + inner.budgets.len();
        match self.room {
            Some(room) if used + more > room => {
                Err(StoreError::new(StoreErrorKind::Full, format!("it has {used} of {room} rows")))
            }
            _ => Ok(()),
        }
    }

    fn do_begin(&self, new: InvocationRecord) -> Result<Option<InvocationRecord>, StoreError> {
        let mut inner = self.lock();
        if let Some(found) = inner.records.get_mut(&new.key) {
            let before = found.clone();
            if found.status == InvocationStatus::Pending {
                if found.continues() {
                    found.handle = None;
                    return Ok(Some(before));
                }
                found.attempt = found.attempt.saturating_add(1);
            }
            return Ok(Some(found.clone()));
        }
        self.check_room(&inner, 1)?;
        let begun = InvocationRecord {
            status: InvocationStatus::Pending,
            attempt: 1,
            handle: None,
            end: None,
            ..new
        };
        inner.records.insert(begun.key.clone(), begun);
        Ok(None)
    }

    fn update_pending<T>(&self, key: &StepKey, update: impl FnOnce(&mut InvocationRecord) -> T) -> bool {
        let mut inner = self.lock();
        let record = inner.records.get_mut(key);
        record.filter(|record| record.status == InvocationStatus::Pending).map(update).is_some()
    }

    /// Returns the records that match, oldest first.
    fn select(&self, mut matches: impl FnMut(&InvocationRecord) -> bool) -> Vec<InvocationRecord> {
        let inner = self.lock();
        let matching = inner.records.values().filter(|record| matches(record));
        let sorted: BTreeMap<_, _> = matching.map(|record| (Position::of(record), record.clone())).collect();
        sorted.into_values().collect()
    }

    fn do_append(&self, session: &str, expected: u64, entries: Vec<SessionEntry>) -> Result<u64, StoreError> {
        let mut inner = self.lock();
        let last = inner.sessions.get(session).map_or(0, |session| session.entries.len());
        if to_u64(last) != expected {
            return Err(StoreError::conflict(session, expected));
        }
        self.check_room(&inner, entries.len())?;
        let last = last + entries.len();
        inner.session_rows += entries.len();
        if !entries.is_empty() {
            inner.sessions.entry(session.to_owned()).or_default().entries.extend(entries);
        }
        Ok(to_u64(last))
    }

    fn do_list_sessions(
        &self,
        containing: &str,
        after: Option<&SessionSummary>,
        limit: usize,
    ) -> Vec<SessionSummary> {
        let containing = containing.to_ascii_lowercase();
        let after = after.map(|after| (Reverse(after.at), &*after.session));
        let inner = self.lock();
        let matching = inner.sessions.iter().filter_map(|(name, session)| {
            let place = (Reverse(session.entries.last()?.at), name.as_str());
            let is_listed =
                after.is_none_or(|after| place > after) && name.to_ascii_lowercase().contains(&containing);
            is_listed.then(|| (place, to_u64(session.entries.len())))
        });
        let sorted: BTreeMap<_, u64> = matching.collect();
        let listed = sorted.into_iter().take(limit);
        listed.map(|((Reverse(at), name), entries)| SessionSummary::new(name, entries, at)).collect()
    }

    fn do_push(&self, session: &str, message: UserMessage) -> Result<bool, StoreError> {
        let Some(id) = message.id.clone() else { return Err(missing_id()) };
        let mut inner = self.lock();
        if let Some(session) = inner.sessions.get(session) {
            if session.ids.contains(&id) {
                return Ok(false);
            }
            if session.inbox.len() - session.taken >= MAX_INBOX {
                return Err(full_inbox());
            }
        }
        self.check_room(&inner, 1)?;
        inner.session_rows += 1;
        let session = inner.sessions.entry(session.to_owned()).or_default();
        session.ids.insert(id);
        session.inbox.push(message);
        Ok(true)
    }

    fn do_take(&self, session: &str, key: &StepKey, limit: usize) -> Result<Vec<UserMessage>, StoreError> {
        let mut inner = self.lock();
        if !inner.sessions.get(session).is_some_and(|session| session.batches.contains_key(key)) {
            self.check_room(&inner, 1)?;
            inner.session_rows += 1;
        }
        let session = inner.sessions.entry(session.to_owned()).or_default();
        let (from, all) = (session.taken, session.inbox.len());
        let batch =
            session.batches.entry(key.clone()).or_insert_with(|| from..all.min(from.saturating_add(limit)));
        session.taken = session.taken.max(batch.end);
        Ok(session.inbox.get(batch.clone()).unwrap_or_default().to_vec())
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl Store for MemoryStore {
    fn begin(&self, new: InvocationRecord) -> BoxFuture<'_, Result<Option<InvocationRecord>, StoreError>> {
        Box::pin(async move { self.do_begin(new) })
    }

    fn finish<'a>(&'a self, key: &'a StepKey, end: InvocationEnd) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            Ok(self.update_pending(key, |record| {
                record.status = end.status();
                record.end = Some(end);
            }))
        })
    }

    fn defer<'a>(&'a self, key: &'a StepKey, handle: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(
            async move { Ok(self.update_pending(key, |record| record.handle = Some(handle.to_owned()))) },
        )
    }

    fn get<'a>(&'a self, key: &'a StepKey) -> BoxFuture<'a, Result<Option<InvocationRecord>, StoreError>> {
        Box::pin(async move { Ok(self.lock().records.get(key).cloned()) })
    }

    fn list(&self, query: InvocationQuery) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>> {
        Box::pin(async move {
            let after = query.position();
            let mut records = self.select(|record| {
                query.run.as_ref().is_none_or(|run| **run == *record.key.run)
                    && query.session.as_ref().is_none_or(|session| record.session.as_ref() == Some(session))
                    && query.tool.as_ref().is_none_or(|tool| *tool == record.tool)
                    && query.status.is_none_or(|status| status == record.status)
                    && query.from.is_none_or(|from| record.created_at >= from)
                    && query.until.is_none_or(|until| record.created_at < until)
                    && after.as_ref().is_none_or(|after| Position::of(record) > *after)
            });
            records.truncate(query.page_size());
            Ok(records)
        })
    }

    fn pending_before(
        &self,
        at: i64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>> {
        Box::pin(async move {
            let is_pending = |record: &InvocationRecord| {
                record.status == InvocationStatus::Pending
                    && record.handle.is_none()
                    && record.created_at < at
            };
            let mut records = self.select(is_pending);
            records.truncate(limit);
            Ok(records)
        })
    }

    fn delete_finished_before(&self, at: i64) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let mut inner = self.lock();
            let before = inner.records.len();
            inner.records.retain(|_, record| record.end.as_ref().is_none_or(|end| end.at >= at));
            Ok(to_u64(before - inner.records.len()))
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        entries: Vec<SessionEntry>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move { self.do_append(session, expected, entries) })
    }

    fn load<'a>(
        &'a self,
        session: &'a str,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(u64, SessionEntry)>, StoreError>> {
        Box::pin(async move {
            let inner = self.lock();
            let entries = inner.sessions.get(session).map(|session| &session.entries[..]).unwrap_or_default();
            let numbered = (1..).zip(entries).skip(usize::try_from(after).unwrap_or(usize::MAX)).take(limit);
            Ok(numbered.map(|(seq, entry)| (seq, entry.clone())).collect())
        })
    }

    fn list_sessions<'a>(
        &'a self,
        containing: &'a str,
        after: Option<&'a SessionSummary>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(async move { Ok(self.do_list_sessions(containing, after, limit)) })
    }

    fn push_steering<'a>(
        &'a self,
        session: &'a str,
        message: UserMessage,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { self.do_push(session, message) })
    }

    fn take_steering<'a>(
        &'a self,
        session: &'a str,
        key: &'a StepKey,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<UserMessage>, StoreError>> {
        Box::pin(async move { self.do_take(session, key, limit) })
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let mut inner = self.lock();
            let Some(removed) = inner.sessions.remove(session) else { return Ok(0) };
            let prefixes: Vec<String> = began(&removed.entries).map(|run| format!("{run}/")).collect();
            let (mut count, mut rows) = (removed.entries.len(), removed.rows());
            inner.sessions.retain(|name, of_child| {
                let is_within = prefixes.iter().any(|prefix| name.starts_with(prefix));
                if is_within {
                    count += of_child.entries.len();
                    rows += of_child.rows();
                }
                !is_within
            });
            inner.session_rows -= rows;
            Ok(to_u64(count))
        })
    }

    fn reserve<'a>(
        &'a self,
        id: &'a str,
        holds: Vec<BudgetHold>,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Option<BudgetUse>, StoreError>> {
        Box::pin(async move {
            let mut inner = self.lock();
            if let Some(refused) = inner.budgets.refusal(id, &holds, now) {
                return Ok(Some(refused));
            }
            self.check_room(&inner, inner.budgets.rows_for(id, &holds))?;
            inner.budgets.reserve(id, holds, until);
            Ok(None)
        })
    }

    fn settle<'a>(
        &'a self,
        id: &'a str,
        amounts: Vec<(String, u64)>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.lock().budgets.settle(id, &amounts)) })
    }

    fn budget<'a>(&'a self, budget: &'a str) -> BoxFuture<'a, Result<BudgetUse, StoreError>> {
        Box::pin(async move { Ok(self.lock().budgets.usage(budget)) })
    }
}

/// Maximum number of messages in an inbox that were not taken yet.
pub(super) const MAX_INBOX: usize = 1024;

pub(super) fn full_inbox() -> StoreError {
    StoreError::new(StoreErrorKind::Full, format!("the inbox already has {MAX_INBOX} messages"))
}

/// Returns the error for a message without an id. An inbox recognizes a repeated message by its id.
pub(super) fn missing_id() -> StoreError {
    StoreError::new(StoreErrorKind::Other, "a message for an inbox needs an id")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    fn result<T>(mut request: BoxFuture<'_, T>) -> T {
        match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("a store in memory never waits"),
        }
    }

    #[test]
    fn budgets_and_their_holds_need_room() {
        let hold = |budget: &str, amount| vec![BudgetHold::new(budget, amount, 100)];
        let store = MemoryStore::with_room_for(1);
        let full = result(store.reserve("a", hold("team", 10), 0, 10)).unwrap_err();
        assert_eq!(full.kind(), StoreErrorKind::Full, "the budget and its hold are two rows");
        assert_eq!(result(store.budget("team")).unwrap(), BudgetUse::new("team", 0, 0));

        assert_eq!(result(store.reserve("a", Vec::new(), 0, 10)).unwrap(), None);
        let empty = MemoryStore::with_room_for(1);
        assert_eq!(format!("{store:?}"), format!("{empty:?}"), "no amounts need no room");

        let store = MemoryStore::with_room_for(3);
        let twice = [hold("team", 10), hold("team", 10)].concat();
        assert_eq!(result(store.reserve("a", twice, 0, 10)).unwrap(), None, "it is held once");
        assert_eq!(result(store.reserve("b", hold("team", 10), 0, 10)).unwrap(), None);
        assert_eq!(result(store.reserve("b", hold("team", 10), 0, 10)).unwrap(), None);
        let refused = result(store.reserve("c", hold("team", 90), 0, 10)).unwrap();
        assert_eq!(refused, Some(BudgetUse::new("team", 0, 20)));
        let full = result(store.reserve("c", hold("team", 10), 0, 10)).unwrap_err();
        assert_eq!(full.kind(), StoreErrorKind::Full);
        assert!(result(store.settle("a", vec![("team".to_owned(), 5)])).unwrap());
        assert_eq!(result(store.reserve("c", hold("team", 10), 0, 10)).unwrap(), None);
    }
}
