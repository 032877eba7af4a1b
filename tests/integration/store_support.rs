//! What the tests of stores share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use agent::message::UserMessage;
use agent::steps::{StepKey, StepKind};
use agent::store::{
    BudgetHold, BudgetUse, InvocationEnd, InvocationQuery, InvocationRecord, InvocationStatus, MemoryStore,
    SessionEntry, SessionSummary, SqlStore, Store, StoreError, StoreErrorKind,
};
use agent::{BoxFuture, ToolOutput};

/// A folder that goes with its test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("agent-store-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The Postgres of `DATABASE_URL`; `.ci/postgres` starts one.
pub(crate) async fn postgres() -> SqlStore {
    let url = std::env::var("DATABASE_URL").ok().filter(|url| url.starts_with("postgres"));
    let url = url.expect("DATABASE_URL names a Postgres; `.ci/postgres COMMAND` starts one");
    SqlStore::connect(&url).await.unwrap()
}

/// Unlike any other, so that a database can be used again.
pub(crate) fn unique(name: &str) -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{name}-{}-{}", std::process::id(), since.as_nanos())
}

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// It says that it failed, and did nothing.
    Fails(StoreErrorKind),
    /// It says that it failed, and did it.
    LosesTheAnswer,
    /// It never answers, and did nothing.
    Hangs,
    /// It never answers, and did it.
    HangsWhenDone,
    Panics,
    /// It never answers, and panics when nobody waits for it any more.
    HangsAndPanics,
    /// It takes its time.
    Slow(Duration),
    /// It takes its time to say that it did it.
    SlowWhenDone(Duration),
    /// It returns the record of another call.
    OtherRecord,
    /// It loads a session from its beginning, whatever was read before.
    StartsAgain,
    /// It lists the first page of records, whatever was listed before.
    SameRecords,
    /// It lists the first page of sessions, whatever was listed before.
    SameSessions,
    /// Returns a number below that of the entries it appended.
    LowNumber,
    /// Returns more messages of its inbox than were requested.
    ManyMessages,
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a test");
    }
}

/// The record of a completed call, which is another one.
fn other_record(mut record: InvocationRecord) -> InvocationRecord {
    record.key = StepKey::new("another", 1, StepKind::Tool, 0);
    record.status = InvocationStatus::Completed;
    record.end = Some(InvocationEnd::new(ToolOutput::text("the result of another call").into(), 1));
    record
}

/// A store that does one thing wrong: from the request of this number on, as often as this.
#[derive(Clone)]
pub(crate) struct Faulty {
    inner: MemoryStore,
    fault: Fault,
    at: usize,
    times: usize,
    asked: Arc<AtomicUsize>,
    is_well: Arc<AtomicBool>,
}

impl Faulty {
    pub(crate) fn new(inner: &MemoryStore, fault: Fault, at: usize, times: usize) -> Self {
        Self { inner: inner.clone(), fault, at, times, asked: Arc::default(), is_well: Arc::default() }
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// From now on it does nothing wrong.
    pub(crate) fn heal(&self) {
        self.is_well.store(true, Ordering::SeqCst);
    }

    fn ask<'a, T: Send + 'a>(
        &'a self,
        done: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        let is_wrong = (self.at..self.at.saturating_add(self.times)).contains(&number)
            && !self.is_well.load(Ordering::SeqCst);
        Box::pin(async move {
            if !is_wrong {
                return done.await;
            }
            match self.fault {
                Fault::Fails(kind) => Err(StoreError::new(kind, "a test")),
                Fault::LosesTheAnswer => {
                    done.await?;
                    Err(StoreError::new(StoreErrorKind::Unavailable, "the connection was lost"))
                }
                Fault::Hangs => std::future::pending().await,
                Fault::HangsWhenDone => {
                    done.await?;
                    std::future::pending().await
                }
                Fault::Panics => panic!("a test"),
                Fault::HangsAndPanics => {
                    let _bomb = Bomb;
                    std::future::pending().await
                }
                Fault::Slow(pause) => {
                    tokio::time::sleep(pause).await;
                    done.await
                }
                Fault::SlowWhenDone(pause) => {
                    let done = done.await;
                    tokio::time::sleep(pause).await;
                    done
                }
                Fault::OtherRecord
                | Fault::StartsAgain
                | Fault::SameRecords
                | Fault::SameSessions
                | Fault::LowNumber
                | Fault::ManyMessages => done.await,
            }
        })
    }
}

impl Store for Faulty {
    fn begin(&self, new: InvocationRecord) -> BoxFuture<'_, Result<Option<InvocationRecord>, StoreError>> {
        if self.fault == Fault::OtherRecord {
            return self.ask(Box::pin(async { Ok(Some(other_record(new))) }));
        }
        self.ask(self.inner.begin(new))
    }

    fn finish<'a>(&'a self, key: &'a StepKey, end: InvocationEnd) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.ask(self.inner.finish(key, end))
    }

    fn defer<'a>(&'a self, key: &'a StepKey, handle: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.ask(self.inner.defer(key, handle))
    }

    fn get<'a>(&'a self, key: &'a StepKey) -> BoxFuture<'a, Result<Option<InvocationRecord>, StoreError>> {
        self.ask(self.inner.get(key))
    }

    fn list(&self, mut query: InvocationQuery) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>> {
        if self.fault == Fault::SameRecords {
            query.after = None;
        }
        self.ask(self.inner.list(query))
    }

    fn pending_before(
        &self,
        at: i64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>> {
        self.ask(self.inner.pending_before(at, limit))
    }

    fn delete_finished_before(&self, at: i64) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.ask(self.inner.delete_finished_before(at))
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        entries: Vec<SessionEntry>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let appended = self.inner.append(session, expected, entries);
        if self.fault == Fault::LowNumber {
            return self.ask(Box::pin(async move { appended.await.map(|_| expected) }));
        }
        self.ask(appended)
    }

    fn load<'a>(
        &'a self,
        session: &'a str,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(u64, SessionEntry)>, StoreError>> {
        let after = if self.fault == Fault::StartsAgain { 0 } else { after };
        self.ask(self.inner.load(session, after, limit))
    }

    fn list_sessions<'a>(
        &'a self,
        containing: &'a str,
        after: Option<&'a SessionSummary>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        let after = after.filter(|_| self.fault != Fault::SameSessions);
        self.ask(self.inner.list_sessions(containing, after, limit))
    }

    fn push_steering<'a>(
        &'a self,
        session: &'a str,
        message: UserMessage,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.ask(self.inner.push_steering(session, message))
    }

    fn take_steering<'a>(
        &'a self,
        session: &'a str,
        key: &'a StepKey,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<UserMessage>, StoreError>> {
        let limit = if self.fault == Fault::ManyMessages { usize::MAX } else { limit };
        self.ask(self.inner.take_steering(session, key, limit))
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.ask(self.inner.delete_session(session))
    }

    fn reserve<'a>(
        &'a self,
        id: &'a str,
        holds: Vec<BudgetHold>,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Option<BudgetUse>, StoreError>> {
        self.ask(self.inner.reserve(id, holds, now, until))
    }

    fn settle<'a>(
        &'a self,
        id: &'a str,
        amounts: Vec<(String, u64)>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.ask(self.inner.settle(id, amounts))
    }

    fn budget<'a>(&'a self, budget: &'a str) -> BoxFuture<'a, Result<BudgetUse, StoreError>> {
        self.ask(self.inner.budget(budget))
    }
}
