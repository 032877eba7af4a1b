//! Limits on concurrency, and the shutdown of a server.

use super::caller::Caller;
use crate::CancelToken;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

/// A limit on concurrency, in total and for each authenticated caller.
pub(super) struct Quota {
    all: Arc<Semaphore>,
    /// The limit of each caller.
    each: usize,
    /// The semaphores of the callers that have a permit or wait for one.
    callers: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

impl Quota {
    pub(super) fn new(all: usize, each: usize) -> Arc<Self> {
        let all = Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { all, each: each.min(Semaphore::MAX_PERMITS), callers: Mutex::default() })
    }

    /// Returns a permit for this caller, if one is free.
    pub(super) fn try_enter(self: &Arc<Self>, caller: &Caller) -> Option<QuotaPermit> {
        let mut permit = self.unfilled(caller);
        if let Some(own) = &permit.own {
            permit.own_permit = Some(own.clone().try_acquire_owned().ok()?);
        }
        permit.global = Some(self.all.clone().try_acquire_owned().ok()?);
        Some(permit)
    }

    /// Waits for a permit; `None` if that takes longer than `wait`.
    pub(super) async fn enter(self: &Arc<Self>, caller: &Caller, wait: Duration) -> Option<QuotaPermit> {
        let turn = async {
            let mut permit = self.unfilled(caller);
            // The caller's limit is first: a caller that has reached it must not hold a permit that others could use.
            if let Some(own) = &permit.own {
                permit.own_permit = Some(own.clone().acquire_owned().await.ok()?);
            }
            permit.global = Some(self.all.clone().acquire_owned().await.ok()?);
            Some(permit)
        };
        tokio::time::timeout(wait, turn).await.ok().flatten()
    }

    /// Creates a permit without slots of the semaphores.
    fn unfilled(self: &Arc<Self>, caller: &Caller) -> QuotaPermit {
        let own = caller.is_known().then(|| {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            callers
                .entry(caller.shared_id().clone())
                .or_insert_with(|| Arc::new(Semaphore::new(self.each)))
                .clone()
        });
        let id = caller.shared_id().clone();
        QuotaPermit { quota: self.clone(), id, global: None, own_permit: None, own }
    }
}

/// A permit of a [`Quota`], which is released on drop.
pub(super) struct QuotaPermit {
    quota: Arc<Quota>,
    id: Arc<str>,
    global: Option<OwnedSemaphorePermit>,
    own_permit: Option<OwnedSemaphorePermit>,
    /// The caller's semaphore, if the caller is authenticated.
    own: Option<Arc<Semaphore>>,
}

impl Drop for QuotaPermit {
    /// Removes the entry of a caller without permits, so that the map does not grow.
    fn drop(&mut self) {
        drop((self.global.take(), self.own_permit.take()));
        let Some(own) = self.own.take() else { return };
        let mut callers = self.quota.callers.lock().unwrap_or_else(PoisonError::into_inner);
        // The two references are this one and that of the map.
        if Arc::strong_count(&own) == 2 {
            callers.remove(&self.id);
        }
    }
}

/// The phase of a server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownPhase {
    Open,
    /// No new calls are accepted.
    Draining,
    /// Running calls are cancelled.
    Stopped,
}

/// A handle that notifies a running server of changed tools, and ends it. Cheap to clone.
///
/// ```no_run
/// use agent::{mcp::Server, tools};
/// use std::time::Duration;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::new(tools![]);
/// let handle = server.handle();
/// tokio::spawn(async move {
///     tokio::time::sleep(Duration::from_secs(3600)).await;  // or until a signal arrives
///     handle.shutdown(Duration::from_secs(10)).await;
/// });
/// server.serve(([127, 0, 0, 1], 8080)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ServerHandle {
    signals: Arc<ServerSignals>,
}

struct ServerSignals {
    changed: watch::Sender<u64>,
    phase: watch::Sender<ShutdownPhase>,
    busy: AtomicUsize,
    /// Notified when the last request has ended.
    idle: Notify,
    stop: CancelToken,
}

impl ServerHandle {
    pub(super) fn new() -> Self {
        let signals = ServerSignals {
            changed: watch::Sender::new(0),
            phase: watch::Sender::new(ShutdownPhase::Open),
            busy: AtomicUsize::new(0),
            idle: Notify::new(),
            stop: CancelToken::new(),
        };
        Self { signals: Arc::new(signals) }
    }

    /// Notifies listening clients that the list of tools changed.
    ///
    /// ```
    /// # #[cfg(feature = "mcp-client")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::mcp::{Client, Server, client::ClientConfig, server::Caller};
    /// use agent::message::ToolCall;
    /// use agent::{Registry, ToolContext, tool, tools};
    /// use std::sync::{Arc, Mutex};
    /// use std::time::Duration;
    ///
    /// /// Searches the notes.
    /// #[tool(read_only)]
    /// fn search(query: String) -> String {
    ///     query
    /// }
    ///
    /// /// Deletes a note.
    /// #[tool]
    /// fn delete(name: String) -> String {
    ///     name
    /// }
    ///
    /// let offered = Arc::new(Mutex::new(Registry::new(tools![search, delete])?));
    /// let shared = offered.clone();
    /// let server = Server::with_loader(move |_: &Caller| Ok(shared.lock().unwrap().clone())).bind(([127, 0, 0, 1], 0)).await?;
    /// let (url, handle) = (server.url(), server.handle());
    /// tokio::spawn(server.run());
    /// let notes = Client::connect(ClientConfig::http(url).name("notes")).await?;
    /// let registry = Registry::new(&notes)?;
    ///
    /// *offered.lock().unwrap() = Registry::new(tools![search])?;
    /// // A client that listens lists the tools again before its next call.
    /// let call = ToolCall::new("call_1", "notes__search", r#"{"query": "tea"}"#);
    /// for _ in 0..1_000 {
    ///     handle.tools_changed();
    ///     tokio::time::sleep(Duration::from_millis(10)).await;
    ///     registry.call(&call, &ToolContext::default()).await;
    ///     if notes.tools().len() == 1 {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(notes.tools().len(), 1);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "mcp-client"))] fn main() {}
    /// ```
    pub fn tools_changed(&self) {
        self.signals.changed.send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Ends the server: no new calls are accepted, and running calls have `grace` to finish and are cancelled after that.
    /// Completes when the last call has ended, at the latest a few seconds after the grace period.
    pub async fn shutdown(&self, grace: Duration) {
        let signals = &self.signals;
        signals.phase.send_if_modified(|phase| {
            let first = *phase == ShutdownPhase::Open;
            if first {
                *phase = ShutdownPhase::Draining;
            }
            first
        });
        if tokio::time::timeout(grace, self.idle()).await.is_err() {
            signals.stop.cancel("the server ends");
            // A cancelled body has its own grace period, after which it is dropped.
            let _ = tokio::time::timeout(crate::tool::context::CANCEL_GRACE + CLEAN_UP, self.idle()).await;
        }
        signals.stop.cancel("the server ends");
        signals.phase.send_replace(ShutdownPhase::Stopped);
    }

    async fn idle(&self) {
        loop {
            // Subscribes before the check, so that no notification is missed.
            let idle = self.signals.idle.notified();
            if self.signals.busy.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }

    pub(super) fn is_open(&self) -> bool {
        *self.signals.phase.borrow() == ShutdownPhase::Open
    }

    /// Completes when the server has reached the phase.
    pub(super) async fn reached(&self, target: ShutdownPhase) {
        let reached = |phase: &ShutdownPhase| match target {
            ShutdownPhase::Open => true,
            ShutdownPhase::Draining => *phase != ShutdownPhase::Open,
            ShutdownPhase::Stopped => *phase == ShutdownPhase::Stopped,
        };
        let _ = self.signals.phase.subscribe().wait_for(reached).await;
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.signals.changed.subscribe()
    }

    /// Returns the token that cancels all calls.
    pub(super) fn stop(&self) -> &CancelToken {
        &self.signals.stop
    }

    /// Counts a request as running until the guard is dropped.
    pub(super) fn begin(&self) -> RunningGuard {
        self.signals.busy.fetch_add(1, Ordering::SeqCst);
        RunningGuard(self.signals.clone())
    }
}

/// Extra time after the grace period of a tool's body.
const CLEAN_UP: Duration = Duration::from_millis(500);

impl std::fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerHandle")
            .field("phase", &*self.signals.phase.borrow())
            .field("busy", &self.signals.busy.load(Ordering::SeqCst))
            .finish_non_exhaustive()
    }
}

/// Counts a request as running until it is dropped.
pub(super) struct RunningGuard(Arc<ServerSignals>);

impl Drop for RunningGuard {
    fn drop(&mut self) {
        if self.0.busy.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_caller_over_its_limit_waits_while_others_pass() {
        let quota = Quota::new(3, 1);
        let (ann, bob) = (Caller::new("ann"), Caller::new("bob"));
        let first = quota.try_enter(&ann).unwrap();
        assert!(quota.try_enter(&ann).is_none());
        let other = quota.try_enter(&bob).unwrap();
        assert!(quota.enter(&ann, Duration::from_millis(10)).await.is_none());
        drop(first);
        let again = quota.enter(&ann, Duration::from_millis(10)).await;
        assert!(again.is_some());
        drop((again, other));
        assert!(quota.callers.lock().unwrap().is_empty());
        let crowd: Vec<_> = (0..3).map(|_| quota.try_enter(&Caller::anonymous()).unwrap()).collect();
        assert!(quota.try_enter(&bob).is_none());
        assert_eq!(crowd.len(), 3);
        assert!(quota.callers.lock().unwrap().is_empty());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn shutdown_waits_for_running_calls_and_then_cancels_them() {
        let handle = ServerHandle::new();
        let running = handle.begin();
        let stop = handle.stop().clone();
        tokio::join!(handle.shutdown(Duration::from_secs(3)), async {
            handle.reached(ShutdownPhase::Draining).await;
            assert!(!handle.is_open() && !stop.is_cancelled());
            stop.cancelled().await;
            drop(running);
        });
        handle.reached(ShutdownPhase::Stopped).await;
    }
}
