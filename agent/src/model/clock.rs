//! Time, as models measure it.

use std::time::Duration;

use crate::tool::BoxFuture;

/// A source of time for models that wait and measure: [`Fallback`](super::Fallback) and [`RateLimits`](super::RateLimits).
///
/// By default they use the clock of tokio. Tests set their own, for example `testing::FakeClock`.
///
/// ```
/// use agent::BoxFuture;
/// use agent::ScriptedModel;
/// use agent::model::{Fallback, Model as _, ModelClock, RateLimits};
/// use std::{sync::Arc, time::Duration};
///
/// /// A clock that never advances, and cannot wait.
/// struct StoppedClock;
///
/// impl ModelClock for StoppedClock {
///     fn now(&self) -> Duration {
///         Duration::ZERO
///     }
///
///     fn sleep(&self, _: Duration) -> Option<BoxFuture<'static, ()>> {
///         None
///     }
/// }
///
/// let clock = Arc::new(StoppedClock);
/// assert!(clock.now().is_zero() && clock.sleep(Duration::from_secs(1)).is_none());
/// let limited = ScriptedModel::new(["Hello!"]).limited(RateLimits::new().concurrency(1).clock(clock.clone()));
/// let model = Fallback::new([limited]).with_clock(clock);
/// assert_eq!(model.candidates().len(), 1);
/// ```
pub trait ModelClock: Send + Sync + 'static {
    /// Returns the time since a fixed moment in the past. It never decreases.
    fn now(&self) -> Duration;

    /// Returns a future that completes after `duration`; `None` if the clock cannot wait.
    fn sleep(&self, duration: Duration) -> Option<BoxFuture<'static, ()>>;
}

/// The clock of the standard library, which cannot wait.
#[cfg(not(feature = "runtime"))]
pub(crate) struct StandardClock;

#[cfg(not(feature = "runtime"))]
impl ModelClock for StandardClock {
    fn now(&self) -> Duration {
        use std::sync::LazyLock;
        use std::time::Instant;
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }

    fn sleep(&self, _: Duration) -> Option<BoxFuture<'static, ()>> {
        None
    }
}
