//! A clock that a test controls.

use crate::tool::{BoxFuture, executor::Executor};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A clock that stands still until a test advances it.
///
/// The clock is an [`Executor`] for calls of tools, and measures their timeouts and grace periods. A blocking tool runs in the task that
/// awaits it. Clones share their time.
///
/// An [`Assistant`](crate::Assistant) uses tokio's clock. In tests of an assistant, use `#[tokio::test(start_paused = true)]`.
///
/// ```
/// use agent::testing::FakeClock;
/// use agent::{Registry, ToolContext, message::ToolCall, tool, tools};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// /// Never ends.
/// #[tool(timeout = "1h")]
/// async fn wait() {
///     std::future::pending().await
/// }
///
/// # #[cfg(feature = "runtime")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = FakeClock::new();
/// let registry = Registry::new(tools![wait])?;
/// let cx = ToolContext::new().with_executor(Arc::new(clock.clone()));
/// let call = ToolCall::new("1", "wait", "{}");
/// let (result, ()) = tokio::join!(registry.call(&call, &cx), async { clock.advance(Duration::from_secs(3600)) });
/// assert_eq!(result.outcome.code(), Some("timeout"));
/// assert_eq!(clock.now(), Duration::from_secs(3600));
/// # Ok(()) }
/// # #[cfg(not(feature = "runtime"))]
/// # fn main() {}
/// ```
#[derive(Clone, Default)]
pub struct FakeClock {
    state: Arc<Mutex<ClockState>>,
}

#[derive(Default)]
struct ClockState {
    now: Duration,
    /// The waiting tasks, each with the end of its wait.
    sleepers: Vec<(Duration, Waker)>,
}

impl FakeClock {
    /// Creates a clock at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the time by which the clock was advanced since it was created.
    pub fn now(&self) -> Duration {
        self.lock().now
    }

    /// Advances the clock, and wakes the tasks whose wait has ended.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        state.now = state.now.saturating_add(by);
        let now = state.now;
        let (due, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.sleepers).into_iter().partition(|(until, _)| *until <= now);
        state.sleepers = left;
        drop(state);
        for (_, waker) in due {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor for FakeClock {
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        Box::pin(async move { work() })
    }

    fn sleep(&self, duration: Duration) -> Option<BoxFuture<'static, ()>> {
        let until = self.now().saturating_add(duration);
        Some(Box::pin(Sleep { clock: self.clone(), until }))
    }

    fn now(&self) -> Duration {
        Self::now(self)
    }
}

struct Sleep {
    clock: FakeClock,
    until: Duration,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.lock();
        if state.now >= self.until {
            return Poll::Ready(());
        }
        let until = self.until;
        if !state.sleepers.iter().any(|(known, waker)| *known == until && waker.will_wake(cx.waker())) {
            state.sleepers.push((until, cx.waker().clone()));
        }
        Poll::Pending
    }
}

impl fmt::Debug for FakeClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeClock").field("now", &self.now()).finish_non_exhaustive()
    }
}
