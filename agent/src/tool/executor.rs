//! The environment that calls need: threads for blocking work, and a clock.

use super::BoxFuture;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The environment that runs blocking work and provides timers. The feature `runtime` provides the executor of tokio; tests can bring
/// executors of their own.
///
/// A call gets its executor from the [`ToolContext`](crate::ToolContext), so nothing in the library requires a specific
/// asynchronous runtime.
///
/// ```
/// use agent::{BoxFuture, ToolContext, tool::Executor};
/// use std::{sync::Arc, time::Duration};
///
/// /// An executor without a clock, for a test without a runtime. Work blocks the thread that awaits it.
/// struct Inline;
///
/// impl Executor for Inline {
///     fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
///         Box::pin(async move { work() })
///     }
///
///     fn sleep(&self, _: Duration) -> Option<BoxFuture<'static, ()>> {
///         None
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cx = ToolContext::new().with_executor(Arc::new(Inline));
/// assert!(cx.executor().sleep(Duration::ZERO).is_none() && !cx.executor().has_clock());
/// let begin = cx.executor().now();                                  // by default, the clock of the system
///
/// let (sender, lines) = std::sync::mpsc::channel();
/// cx.executor().run_blocking(Box::new(move || sender.send("read from a slow disk").unwrap_or(()))).await;
/// assert_eq!(lines.try_recv()?, "read from a slow disk");
/// assert!(cx.executor().now() >= begin);
/// # Ok(()) }
/// ```
pub trait Executor: Send + Sync + 'static {
    /// Runs `work` on a thread that may block. The future completes when the work is done. `work` does not panic, because it catches
    /// panics of the tool.
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;

    /// Returns a future that completes after `duration`; `None` if this executor has no clock.
    fn sleep(&self, duration: Duration) -> Option<BoxFuture<'static, ()>>;

    /// Returns whether [`sleep`](Self::sleep) returns a timer. The default calls `sleep` to find out.
    fn has_clock(&self) -> bool {
        self.sleep(Duration::ZERO).is_some()
    }

    /// Returns the time since a fixed moment in the past, by the clock of [`sleep`](Self::sleep). The time never decreases. Default: the
    /// clock of the system.
    fn now(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// An executor without a runtime: blocking work runs on the thread that polls it, and there is no clock.
#[cfg(not(feature = "runtime"))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InlineExecutor;

#[cfg(not(feature = "runtime"))]
impl Executor for InlineExecutor {
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        Box::pin(async move { work() })
    }

    fn sleep(&self, _duration: Duration) -> Option<BoxFuture<'static, ()>> {
        None
    }
}
