//! The store of an assistant, asked with patience and a limit.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::Instant;

use crate::panics::catch_future;
use crate::store::{
    Begin, InvocationEnd, InvocationRecord, NewInvocation, SessionEntry, Store, StoreError, StoreErrorKind,
    StoredEntry,
};
use crate::{CancelToken, StepKey, ToolOutcome};

/// How long a store may take for one thing, unless the application says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take for one thing when the run that asks is cancelled, or out of time.
const GRACE: Duration = Duration::from_secs(1);

/// The pauses before something is tried again that may go better a moment later.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];

/// How many entries are loaded at a time.
const PAGE: usize = 500;

/// How an application wants its store to be used, in whatever order it says so.
#[derive(Clone, Copy)]
pub(in crate::runtime) struct StoreOptions {
    pub(super) keeps_secrets: bool,
    pub(super) patience: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { keeps_secrets: false, patience: PATIENCE }
    }
}

/// The store of an assistant.
#[derive(Clone)]
pub(in crate::runtime) struct Keeper {
    store: Arc<dyn Store>,
    pub(super) options: StoreOptions,
    /// The run that asks.
    asker: Option<Asker>,
}

#[derive(Clone)]
struct Asker {
    cancel: CancelToken,
    /// When its time is up. While it waits for a store, nobody else looks at the clock.
    ends_at: OnceLock<Instant>,
}

impl Asker {
    /// Until the run has to end, and its store had the time for that, too.
    async fn leaves(&self) {
        match self.ends_at.get() {
            None => self.cancel.cancelled().await,
            Some(at) => {
                let up = pin!(tokio::time::sleep_until(*at));
                select(self.cancel.cancelled(), up).await;
            }
        }
        tokio::time::sleep(GRACE).await;
    }
}

impl Keeper {
    pub(in crate::runtime) fn new(store: Arc<dyn Store>, options: StoreOptions) -> Self {
        Self { store, options, asker: None }
    }

    /// The same for one run: when that has to end, the store is not waited for much longer.
    pub(super) fn asked_by(&self, cancel: &CancelToken) -> Self {
        let asker = Asker { cancel: cancel.clone(), ends_at: OnceLock::new() };
        Self { asker: Some(asker), ..self.clone() }
    }

    /// The same where no run waits.
    pub(super) fn unhurried(&self) -> Self {
        Self { asker: None, ..self.clone() }
    }

    /// When the time of the run is up that asks.
    pub(super) fn ends_at(&self, at: Instant) {
        if let Some(asker) = &self.asker {
            // Once for each run.
            asker.ends_at.get_or_init(|| at);
        }
    }

    /// One try: within its time, its panics caught.
    async fn ask<T>(&self, asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let late = |words: String| Err(StoreError::new(StoreErrorKind::Timeout, words));
        let asked = pin!(catch_future(|| Box::pin(asked)));
        let left = pin!(async {
            match &self.asker {
                Some(run) => run.leaves().await,
                None => std::future::pending().await,
            }
        });
        match tokio::time::timeout(self.options.patience, select(asked, left)).await {
            Ok(Either::Left((Ok(answer), _))) => answer,
            Ok(Either::Left((Err(panic), _))) => {
                tracing::error!(%panic, "the store panicked");
                Err(StoreError::new(StoreErrorKind::Other, "it panicked"))
            }
            Ok(Either::Right(_)) => {
                late(format!("the run had to end, and {} ms have passed since", GRACE.as_millis()))
            }
            Err(_) => late(format!("{} ms have passed", self.options.patience.as_millis())),
        }
    }

    /// Some tries, of something that may be done twice.
    async fn insist<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        ask: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        for pause in PAUSES {
            match self.ask(async { ask().await }).await {
                // Who did not answer in time had its time.
                Err(error) if error.is_transient() && error.kind() != StoreErrorKind::Timeout => {
                    tracing::warn!(%error, "the store is asked again");
                    tokio::time::sleep(pause).await;
                }
                answer => return answer,
            }
        }
        self.ask(async { ask().await }).await
    }

    /// Tried again only where it is certain that nothing was done: a second try that finds the first looks like a crash.
    pub(super) async fn begin(&self, new: NewInvocation) -> Result<Begin, StoreError> {
        self.insist(|| async {
            match self.store.begin(new.clone()).await {
                Err(error) if error.kind() != StoreErrorKind::Busy => Ok(Err(error)),
                Err(error) => Err(error),
                Ok(begin) => Ok(Ok(begin)),
            }
        })
        .await?
    }

    /// Ends a record. False when somebody else did, with something else.
    pub(super) async fn finish(&self, key: &StepKey, end: InvocationEnd) -> Result<bool, StoreError> {
        if self.insist(|| self.store.finish(key, end.clone())).await? {
            return Ok(true);
        }
        // The answer to an earlier try may have been lost.
        let found = self.get(key).await?;
        Ok(found
            .and_then(|record| record.end)
            .is_some_and(|found| found.at == end.at && found.outcome == end.outcome))
    }

    pub(super) async fn defer(&self, key: &StepKey, handle: &str) -> Result<bool, StoreError> {
        self.insist(|| self.store.defer(key, handle)).await
    }

    pub(super) async fn get(&self, key: &StepKey) -> Result<Option<InvocationRecord>, StoreError> {
        self.insist(|| self.store.get(key)).await
    }

    /// A record of something that is over. One that is there is ended, if nobody did.
    pub(super) async fn note(&self, new: NewInvocation, outcome: ToolOutcome) -> Result<(), StoreError> {
        let (key, at) = (new.key.clone(), new.created_at);
        match self.begin(new).await? {
            Begin::Completed(_) | Begin::Failed(_) => Ok(()),
            _ => self.finish(&key, InvocationEnd::new(outcome, at)).await.map(drop),
        }
    }

    /// Adds entries; where it is not known whether that was done, looks.
    pub(super) async fn append(
        &self,
        session: &str,
        expected: u64,
        entries: Vec<SessionEntry>,
    ) -> Result<u64, StoreError> {
        let done = self.insist(|| self.store.append(session, expected, entries.clone())).await;
        let Err(error) = done else { return done };
        if !error.is_conflict() && !error.is_transient() {
            return Err(error);
        }
        // Each entry names its writer, so what is there and equal was written here.
        let found = self.ask(async { self.store.load(session, expected, entries.len()).await }).await;
        match found {
            Ok(found) if found.iter().map(|found| &found.entry).eq(&entries) => {
                Ok(found.last().map_or(expected, |last| last.seq))
            }
            // Not even that is known: it may have been written here.
            Err(unknown) if error.is_conflict() => Err(unknown),
            _ => Err(error),
        }
    }

    /// A whole session.
    pub(super) async fn load(&self, session: &str) -> Result<Vec<StoredEntry>, StoreError> {
        let mut all: Vec<StoredEntry> = Vec::new();
        loop {
            let after = all.last().map_or(0, |last| last.seq);
            let page = self.insist(|| self.store.load(session, after, PAGE)).await?;
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    pub(super) async fn take_steering(
        &self,
        session: &str,
        key: &StepKey,
        limit: usize,
    ) -> Result<Vec<crate::message::UserMessage>, StoreError> {
        self.insist(|| self.store.take_steering(session, key, limit)).await
    }
}
