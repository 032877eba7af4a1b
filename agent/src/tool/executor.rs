//! The environment that tools need: a place to block, and a clock.

use super::BoxFuture;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Runs blocking work, and waits. The feature `runtime` provides the executor of tokio; tests can bring executors of their own.
///
/// A call gets its executor from the [`ToolContext`](crate::ToolContext), so nothing in the library requires a specific
/// asynchronous runtime.
///
/// ```
/// use agent::{BoxFuture, ToolContext, tool::Executor};
/// use std::{sync::Arc, time::Duration};
///
/// /// Blocks where it is awaited, and knows no time: for a test without a runtime.
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
/// let begin = cx.executor().now();                                  // by default, that of the system
///
/// let (sender, lines) = std::sync::mpsc::channel();
/// cx.executor().run_blocking(Box::new(move || sender.send("read from a slow disk").unwrap_or(()))).await;
/// assert_eq!(lines.try_recv()?, "read from a slow disk");
/// assert!(cx.executor().now() >= begin);
/// # Ok(()) }
/// ```
pub trait Executor: Send + Sync + 'static {
    /// Runs `work` where blocking does no harm; the future completes when it is done. `work` does not panic: a panic of a tool's
    /// body is caught inside it.
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;

    /// Completes after `duration`; `None` when this executor has no clock.
    fn sleep(&self, duration: Duration) -> Option<BoxFuture<'static, ()>>;

    /// Whether [`sleep`](Self::sleep) returns a timer. By default it is called to find out.
    fn has_clock(&self) -> bool {
        self.sleep(Duration::ZERO).is_some()
    }

    /// Returns the time since a fixed moment in the past, by the clock of [`sleep`](Self::sleep). It never decreases. Default: the clock of
    /// the system.
    fn now(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// An executor without a runtime: blocking work runs where it is awaited, and there is no clock.
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
