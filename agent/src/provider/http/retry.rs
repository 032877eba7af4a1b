//! Decides whether, and after which pause, a request is retried.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use super::options::HttpOptions;
use crate::model::ModelError;

#[derive(Debug, Default)]
pub(super) struct Retries {
    number: u32,
}

impl Retries {
    /// Creates the state of a request that is never retried, because its caller retries.
    pub(super) fn none() -> Self {
        Self { number: u32::MAX }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Counts the next retry and returns the pause before it, or returns `None` if the request is not retried.
    pub(super) fn next_pause(
        &mut self,
        options: &HttpOptions,
        error: &ModelError,
        deadline: Option<Instant>,
    ) -> Option<Duration> {
        let delay = retry_delay(options, self.number, error)?;
        let end = Instant::now().checked_add(delay);
        if deadline.is_some_and(|deadline| end.is_none_or(|end| end >= deadline)) {
            return None;
        }
        self.number += 1;
        Some(delay)
    }
}

/// Returns the pause before retry `number` (counted from 0), or `None` if there is no retry.
fn retry_delay(options: &HttpOptions, number: u32, error: &ModelError) -> Option<Duration> {
    if number >= options.max_retries || !error.is_retryable() {
        return None;
    }
    if let Some(asked) = error.retry_after() {
        return (asked <= options.max_asked_delay).then_some(asked);
    }
    let doubled = options.first_delay.saturating_mul(2u32.saturating_pow(number));
    let longest = doubled.min(options.max_delay);
    // Up to a quarter is subtracted at random, so that clients that failed together do not retry together. The hasher is the standard
    // library's source of randomness.
    let quarters = RandomState::new().hash_one(number) % 1000;
    Some(
        longest
            .saturating_sub((longest / 4).mul_f64(f64::from(u32::try_from(quarters).unwrap_or(0)) / 1000.0)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelErrorKind;

    #[test]
    fn pauses_double_up_to_the_longest_and_what_is_asked_for_counts() {
        let options = HttpOptions::default().with_max_retries(6);
        let error = ModelError::new(ModelErrorKind::Server, "x");
        for (number, most) in [(0, 500), (1, 1000), (2, 2000), (4, 8000), (5, 8000)] {
            let delay = retry_delay(&options, number, &error).unwrap().as_millis();
            assert!(delay <= most && delay >= most * 3 / 4, "{number}: {delay}");
        }
        assert_eq!(retry_delay(&options, 6, &error), None);
        assert_eq!(Retries::none().next_pause(&options, &error, None), None);
        let soon = Some(Instant::now() + Duration::from_millis(100));
        let mut retries = Retries::default();
        assert!(retries.next_pause(&options, &error, soon).is_none() && retries.number() == 0);
        assert!(retries.next_pause(&options, &error, None).is_some() && retries.number() == 1);
        // The longest possible pause causes no overflow.
        let patient =
            HttpOptions { first_delay: Duration::MAX, max_delay: Duration::MAX, ..HttpOptions::default() };
        assert!(Retries::default().next_pause(&patient, &error, soon).is_none());
        let asked = |seconds| error.clone().with_retry_after(Duration::from_secs(seconds));
        assert_eq!(retry_delay(&options, 0, &asked(100)), Some(Duration::from_secs(100)));
        assert_eq!(retry_delay(&options, 0, &asked(121)), None);
        assert_eq!(retry_delay(&options, 0, &error.clone().with_retryable(false)), None);
    }
}
