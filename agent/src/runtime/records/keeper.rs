//! Access to the store of an assistant, with a timeout and retries.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::Instant;

use crate::panics::catch_future;
use crate::step_key::StepKey;
#[cfg(feature = "studio")]
use crate::store::SessionSummary;
use crate::store::{
    BudgetHold, BudgetUse, InvocationEnd, InvocationRecord, InvocationStatus, MemoryStore, SessionEntry,
    Store, StoreError, StoreErrorKind,
};
use crate::tool::cancel::CancelToken;
use crate::tool::outcome::ToolOutcome;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time for an operation after its run was cancelled, or reached its time limit.
const GRACE: Duration = Duration::from_secs(1);

/// The pauses before the retries of a transient error.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];

const PAGE: usize = 500;

/// The store options of a builder. They are separate from the store, so that the order in which the builder's methods are called does not
/// matter.
#[derive(Clone, Copy)]
pub(in crate::runtime) struct StoreOptions {
    pub(super) keeps_secrets: bool,
    pub(super) timeout: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { keeps_secrets: false, timeout: TIMEOUT }
    }
}

/// Access to the store of an assistant. Each operation has a timeout, transient errors are retried, and panics are caught.
#[derive(Clone)]
pub(in crate::runtime) struct StoreAccess {
    store: Arc<dyn Store>,
    pub(super) options: StoreOptions,
    /// The deadline of the run that waits for the operations, or `None` if no run waits for them.
    run: Option<RunDeadline>,
}

#[derive(Clone)]
struct RunDeadline {
    cancel: CancelToken,
    /// The time at which the run reaches its time limit. The run cannot check this limit while it waits for the store.
    at: OnceLock<Instant>,
}

impl RunDeadline {
    async fn pass(&self) {
        match self.at.get() {
            None => self.cancel.cancelled().await,
            Some(at) => {
                let reached = pin!(tokio::time::sleep_until(*at));
                select(self.cancel.cancelled(), reached).await;
            }
        }
        tokio::time::sleep(GRACE).await;
    }
}

impl StoreAccess {
    pub(in crate::runtime) fn new(store: Arc<dyn Store>, options: StoreOptions) -> Self {
        Self { store, options, run: None }
    }

    pub(in crate::runtime) fn in_memory() -> Self {
        Self::new(Arc::new(MemoryStore::new()), StoreOptions::default())
    }

    /// Reserves amounts of budgets. Returns the usage of a budget that has too little left, or `None` if all amounts were reserved. A retry
    /// is safe, because an amount is reserved only once for an id.
    pub(in crate::runtime) async fn reserve(
        &self,
        id: &str,
        holds: Vec<BudgetHold>,
        now: i64,
        until: i64,
    ) -> Result<Option<BudgetUse>, StoreError> {
        self.retry(|| self.store.reserve(id, holds.clone(), now, until)).await
    }

    pub(in crate::runtime) async fn settle(
        &self,
        id: &str,
        amounts: Vec<(String, u64)>,
    ) -> Result<bool, StoreError> {
        self.retry(|| self.store.settle(id, amounts.clone())).await
    }

    /// Returns the access for one run. Its operations fail [`GRACE`] after the run is cancelled or reaches its time limit.
    pub(super) fn for_run(&self, cancel: &CancelToken) -> Self {
        let run = RunDeadline { cancel: cancel.clone(), at: OnceLock::new() };
        Self { run: Some(run), ..self.clone() }
    }

    pub(super) fn without_run(&self) -> Self {
        Self { run: None, ..self.clone() }
    }

    /// Sets the time at which the run reaches its time limit. Only the first call has an effect.
    pub(super) fn set_deadline(&self, at: Instant) {
        if let Some(run) = &self.run {
            run.at.get_or_init(|| at);
        }
    }

    /// Performs an operation once, within its timeout and the deadline of its run. A panic becomes an error.
    async fn perform<T>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let late = |words: String| Err(StoreError::new(StoreErrorKind::Timeout, words));
        let operation = pin!(catch_future(|| Box::pin(operation)));
        let run_ends = pin!(async {
            match &self.run {
                Some(run) => run.pass().await,
                None => std::future::pending().await,
            }
        });
        match tokio::time::timeout(self.options.timeout, select(operation, run_ends)).await {
            Ok(Either::Left((Ok(result), _))) => result,
            Ok(Either::Left((Err(panic), _))) => {
                tracing::error!(%panic, "the store panicked");
                Err(StoreError::new(StoreErrorKind::Other, "it panicked"))
            }
            Ok(Either::Right(_)) => {
                late(format!("the run had to end, and {} ms have passed since", GRACE.as_millis()))
            }
            Err(_) => late(format!("{} ms have passed", self.options.timeout.as_millis())),
        }
    }

    /// Performs an operation, and retries it after transient errors other than timeouts. The operation has to be idempotent, because a
    /// failed attempt may have had an effect.
    async fn retry<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        operation: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        for pause in PAUSES {
            match self.perform(async { operation().await }).await {
                // A timeout is not retried, because the caller has already waited for the whole timeout.
                Err(error) if error.is_transient() && error.kind() != StoreErrorKind::Timeout => {
                    tracing::warn!(%error, "an operation of the store failed and is retried");
                    tokio::time::sleep(pause).await;
                }
                result => return result,
            }
        }
        self.perform(async { operation().await }).await
    }

    /// Stores a new record, or returns the existing record of the call. Retries only if the store was busy: after any other error, the
    /// record may be stored, and a retry would take it for the record of a process that died.
    pub(super) async fn begin(&self, new: InvocationRecord) -> Result<Option<InvocationRecord>, StoreError> {
        let found = self
            .retry(|| async {
                match self.store.begin(new.clone()).await {
                    Err(error) if error.kind() != StoreErrorKind::Busy => Ok(Err(error)),
                    Err(error) => Err(error),
                    Ok(found) => Ok(Ok(found)),
                }
            })
            .await??;
        found.iter().try_for_each(|record| check_key(record, &new.key))?;
        Ok(found)
    }

    /// Ends a record. Returns `false` if the record does not exist or already has another end.
    pub(super) async fn finish(&self, key: &StepKey, end: InvocationEnd) -> Result<bool, StoreError> {
        if self.retry(|| self.store.finish(key, end.clone())).await? {
            return Ok(true);
        }
        // An earlier attempt may have stored this end although it returned an error.
        let found = self.get(key).await?;
        Ok(found
            .and_then(|record| record.end)
            .is_some_and(|found| found.at == end.at && found.outcome == end.outcome))
    }

    pub(super) async fn defer(&self, key: &StepKey, handle: &str) -> Result<bool, StoreError> {
        self.retry(|| self.store.defer(key, handle)).await
    }

    pub(super) async fn get(&self, key: &StepKey) -> Result<Option<InvocationRecord>, StoreError> {
        let found = self.retry(|| self.store.get(key)).await?;
        found.iter().try_for_each(|record| check_key(record, key))?;
        Ok(found)
    }

    /// Records a call that has ended. If the call already has a pending record, this record gets the outcome. A record with an end is not
    /// changed.
    pub(super) async fn record_ended(
        &self,
        new: InvocationRecord,
        outcome: ToolOutcome,
    ) -> Result<(), StoreError> {
        let (key, at) = (new.key.clone(), new.created_at);
        match self.begin(new).await? {
            Some(found) if found.status != InvocationStatus::Pending => Ok(()),
            _ => self.finish(&key, InvocationEnd::new(outcome, at)).await.map(drop),
        }
    }

    /// Appends entries after the entry with the number `expected`, and returns the number of the last appended entry. If an error leaves
    /// open whether the entries were stored, loads them to find out.
    pub(super) async fn append(
        &self,
        session: &str,
        expected: u64,
        entries: Vec<SessionEntry>,
    ) -> Result<u64, StoreError> {
        let minimum = expected.saturating_add(u64::try_from(entries.len()).unwrap_or(u64::MAX));
        let error = match self.retry(|| self.store.append(session, expected, entries.clone())).await {
            // A returned number that is too low would fail the next append, so this append already fails.
            Ok(last) if last < minimum => {
                let text = format!(
                    "the store appended {} entries to session `{session}` after number {expected}, and returned {last} as their last number",
                    entries.len()
                );
                return Err(StoreError::new(StoreErrorKind::Corrupt, text));
            }
            Ok(last) => return Ok(last),
            Err(error) => error,
        };
        if !error.is_conflict() && !error.is_transient() {
            return Err(error);
        }
        // Each entry names its writer, so equal entries in the store come from this `append`.
        let found = self.perform(async { self.store.load(session, expected, entries.len()).await }).await;
        match found {
            Ok(found) if found.iter().map(|(_, entry)| entry).eq(&entries) => {
                Ok(found.last().map_or(expected, |(seq, _)| *seq))
            }
            // An earlier attempt may have stored the entries and thereby caused the conflict. Without the load, this stays unknown, so the
            // error of the load is returned.
            Err(unknown) if error.is_conflict() => Err(unknown),
            _ => Err(error),
        }
    }

    pub(super) async fn load(&self, session: &str) -> Result<Vec<(u64, SessionEntry)>, StoreError> {
        self.load_after(session, 0).await
    }

    /// Returns the number of the last entry after `after`, if `writer` wrote all entries after `after`.
    pub(super) async fn last_of_writer(
        &self,
        session: &str,
        after: u64,
        writer: &str,
    ) -> Result<Option<u64>, StoreError> {
        let found = self.load_after(session, after).await?;
        let is_own = found.iter().all(|(_, entry)| entry.writer == writer);
        Ok(found.last().filter(|_| is_own).map(|(seq, _)| *seq))
    }

    async fn load_after(&self, session: &str, number: u64) -> Result<Vec<(u64, SessionEntry)>, StoreError> {
        let mut all: Vec<(u64, SessionEntry)> = Vec::new();
        loop {
            let after = all.last().map_or(number, |(seq, _)| *seq);
            let page = self.retry(|| self.store.load(session, after, PAGE)).await?;
            let mut numbers = page.iter().map(|(seq, _)| *seq);
            if numbers.try_fold(after, |last, seq| (seq > last).then_some(seq)).is_none() {
                let text =
                    format!("the entries of session `{session}` after number {after} are not in order");
                return Err(StoreError::new(StoreErrorKind::Corrupt, text));
            }
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Lists at most `limit` sessions whose names contain the text `containing`, the latest session first.
    #[cfg(feature = "studio")]
    pub(in crate::runtime) async fn list_sessions(
        &self,
        containing: &str,
        after: Option<&SessionSummary>,
        limit: usize,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        let mut listed = self.retry(|| self.store.list_sessions(containing, after, limit)).await?;
        listed.truncate(limit);
        Ok(listed)
    }

    #[cfg(feature = "studio")]
    pub(in crate::runtime) async fn load_first(
        &self,
        session: &str,
        limit: usize,
    ) -> Result<Vec<(u64, SessionEntry)>, StoreError> {
        self.retry(|| self.store.load(session, 0, limit)).await
    }

    pub(super) async fn take_steering(
        &self,
        session: &str,
        key: &StepKey,
        limit: usize,
    ) -> Result<Vec<crate::message::UserMessage>, StoreError> {
        let taken = self.retry(|| self.store.take_steering(session, key, limit)).await?;
        if taken.len() > limit {
            let text = format!(
                "the store returned {} messages of session `{session}` for `{key}`, {limit} at most were requested",
                taken.len()
            );
            return Err(StoreError::new(StoreErrorKind::Corrupt, text));
        }
        Ok(taken)
    }
}

fn check_key(record: &InvocationRecord, key: &StepKey) -> Result<(), StoreError> {
    if record.key == *key {
        return Ok(());
    }
    let text = format!("the store returned the record of `{}` for `{key}`", record.key);
    Err(StoreError::new(StoreErrorKind::Corrupt, text))
}

/// Returns the current time in milliseconds since 1970. Times in records and sessions are only informative, because clocks jump. Only the
/// time windows and reservations of budgets depend on the time.
pub(in crate::runtime) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default()
}
