//! The shutdown of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::tool::cancel::CancelToken;
use crate::tool::context::CANCEL_GRACE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownPhase {
    Open,
    Draining,
    Stopped,
}

/// The state of a server: whether it accepts calls, and how many requests are running. Clones share the state.
#[derive(Clone)]
pub(crate) struct Lifecycle {
    signals: Arc<LifecycleSignals>,
}

struct LifecycleSignals {
    phase: watch::Sender<ShutdownPhase>,
    busy: AtomicUsize,
    idle: Notify,
    stop: CancelToken,
}

/// The time after `CANCEL_GRACE` during which the server still waits for the end of cancelled calls.
const CLEAN_UP: Duration = Duration::from_millis(500);

impl Lifecycle {
    pub(crate) fn new() -> Self {
        let signals = LifecycleSignals {
            phase: watch::Sender::new(ShutdownPhase::Open),
            busy: AtomicUsize::new(0),
            idle: Notify::new(),
            stop: CancelToken::new(),
        };
        Self { signals: Arc::new(signals) }
    }

    /// Ends the server: running calls have the time `grace` to finish, and are then cancelled. Returns when no call is running, or when
    /// the cancelled calls do not end in time.
    pub(crate) async fn shutdown(&self, grace: Duration) {
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
            // A cancelled tool has its own grace period, after which it is dropped.
            let _ = tokio::time::timeout(CANCEL_GRACE + CLEAN_UP, self.idle()).await;
        }
        signals.stop.cancel("the server ends");
        signals.phase.send_replace(ShutdownPhase::Stopped);
    }

    async fn idle(&self) {
        loop {
            // The subscription begins before the check, so that no notification is missed.
            let idle = self.signals.idle.notified();
            if self.busy() == 0 {
                return;
            }
            idle.await;
        }
    }

    #[cfg(feature = "mcp-server")]
    pub(crate) fn is_open(&self) -> bool {
        self.phase() == ShutdownPhase::Open
    }

    pub(crate) async fn reached(&self, target: ShutdownPhase) {
        let reached = |phase: &ShutdownPhase| match target {
            ShutdownPhase::Open => true,
            ShutdownPhase::Draining => *phase != ShutdownPhase::Open,
            ShutdownPhase::Stopped => *phase == ShutdownPhase::Stopped,
        };
        let _ = self.signals.phase.subscribe().wait_for(reached).await;
    }

    pub(crate) fn stop(&self) -> &CancelToken {
        &self.signals.stop
    }

    /// Counts a request as running until the guard is dropped.
    pub(crate) fn begin(&self) -> RunningGuard {
        self.signals.busy.fetch_add(1, Ordering::SeqCst);
        RunningGuard(self.signals.clone())
    }

    pub(crate) fn busy(&self) -> usize {
        self.signals.busy.load(Ordering::SeqCst)
    }

    #[cfg(feature = "mcp-server")]
    pub(crate) fn phase(&self) -> ShutdownPhase {
        *self.signals.phase.borrow()
    }
}

pub(crate) struct RunningGuard(Arc<LifecycleSignals>);

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
    async fn shutdown_waits_for_running_calls_and_then_cancels_them() {
        let handle = Lifecycle::new();
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
