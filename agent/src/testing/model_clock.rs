//! The fake clock as the clock of models.

use std::time::Duration;

use super::FakeClock;
use crate::model::ModelClock;
use crate::tool::{BoxFuture, executor::Executor};

/// Breakers and limits of models follow the test's time.
///
/// ```
/// use agent::model::ModelClock as _;
/// use agent::testing::FakeClock;
/// use std::time::Duration;
///
/// let clock = FakeClock::new();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(agent::model::ModelClock::now(&clock), Duration::from_secs(60));
/// ```
impl ModelClock for FakeClock {
    fn now(&self) -> Duration {
        Self::now(self)
    }

    fn sleep(&self, duration: Duration) -> Option<BoxFuture<'static, ()>> {
        Executor::sleep(self, duration)
    }
}
