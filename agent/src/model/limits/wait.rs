//! The queue of requests that wait for the limits, in the order in which the requests are first polled.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::RateLimits;
use super::quota::{Need, QuotaListener, ReportedQuota};
use super::window::MinuteWindow;
use crate::model::{ModelError, ModelErrorKind, RequestNotice, RequestNotices};
use crate::tool::BoxFuture;

pub(super) struct Limiter {
    pub(super) limits: RateLimits,
    state: Mutex<LimiterState>,
}

struct LimiterState {
    requests: Option<MinuteWindow>,
    tokens: Option<MinuteWindow>,
    quota: ReportedQuota,
    in_flight: usize,
    /// The time before which the provider admits no request.
    closed_until: Duration,
    queue: VecDeque<QueuedRequest>,
    next_id: u64,
    /// The limit that the first request of the queue waits for.
    awaited: &'static str,
}

struct QueuedRequest {
    id: u64,
    waker: Waker,
}

impl Limiter {
    pub(super) fn new(limits: RateLimits) -> Self {
        let state = LimiterState {
            requests: limits.requests.map(|limit| MinuteWindow::new(limit.into())),
            tokens: limits.tokens.map(MinuteWindow::new),
            quota: ReportedQuota::default(),
            in_flight: 0,
            closed_until: Duration::ZERO,
            queue: VecDeque::new(),
            next_id: 0,
            awaited: "",
        };
        Self { limits, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, LimiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn zero_limit(&self) -> Option<ModelError> {
        let RateLimits { requests, tokens, concurrency, .. } = self.limits;
        let zero = [
            (requests == Some(0), "requests per minute"),
            (tokens == Some(0), "tokens per minute"),
            (concurrency == Some(0), "requests at a time"),
        ];
        let (_, what) = zero.into_iter().find(|(is_zero, _)| *is_zero)?;
        let text = format!("a limit of 0 {what} admits no request; leave the limit out, or set a higher one");
        Some(ModelError::new(ModelErrorKind::InvalidRequest, text).with_code(super::LOCAL_LIMIT))
    }

    pub(super) fn counts_tokens(&self) -> bool {
        self.limits.tokens.is_some() || self.state().quota.limits_tokens()
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.in_flight == 0 && state.queue.is_empty()
    }

    #[cfg(test)]
    pub(super) fn quota_ready_at(&self) -> Duration {
        self.state().quota.ready_at(self.limits.clock.now(), [1, 1, 1, 1])
    }

    pub(super) fn close_for(&self, pause: Duration) {
        let until = self.limits.clock.now().saturating_add(pause);
        let mut state = self.state();
        state.closed_until = state.closed_until.max(until);
    }
}

impl LimiterState {
    /// Counts a request if all limits admit it, and returns the time slot of [`MinuteWindow`] that counts its tokens. Otherwise, returns
    /// the time of the next try, or `None` if another request has to end first.
    fn admit(
        &mut self,
        now: Duration,
        limits: &RateLimits,
        (id, need): (u64, Need),
    ) -> Result<u64, Option<Duration>> {
        let [_, tokens, ..] = need;
        let closed_until = self.closed_until.max(self.quota.ready_at(now, need));
        let requests = self.requests.as_mut().map(|window| (window.ready_at(now, 1), "requests"));
        let amounts = self.tokens.as_mut().map(|window| (window.ready_at(now, tokens), "tokens"));
        let ready = [Some((closed_until, "provider")), requests, amounts].into_iter().flatten().max();
        if let Some((ready, limit)) = ready.filter(|(ready, _)| *ready > now) {
            self.awaited = limit;
            return Err(Some(ready));
        }
        if limits.concurrency.is_some_and(|limit| self.in_flight >= limit) {
            self.awaited = "concurrency";
            return Err(None);
        }
        self.in_flight += 1;
        self.quota.take(id, need);
        if let Some(window) = &mut self.requests {
            window.add(now, 1);
        }
        Ok(self.tokens.as_mut().map_or(0, |window| window.add(now, tokens)))
    }

    fn wake_first(&self) {
        if let Some(first) = self.queue.front() {
            first.waker.wake_by_ref();
        }
    }

    fn leave(&mut self, id: u64) {
        self.queue.retain(|queued| queued.id != id);
        self.wake_first();
    }
}

/// A request that waits until the limits admit it. If this value is dropped, the request leaves the queue.
pub(super) struct QueuePlace {
    limiter: Arc<Limiter>,
    /// Estimates the need of the request.
    measure: Box<dyn Fn() -> Need + Send>,
    /// The estimate. `None` while no limit counts tokens.
    need: Option<Need>,
    id: Option<u64>,
    began: Option<Duration>,
    sleep: Option<(Duration, BoxFuture<'static, ()>)>,
    /// The limit that the request waits for, if it waits.
    awaited: Option<&'static str>,
    notices: RequestNotices,
}

impl QueuePlace {
    pub(super) fn new(
        limiter: Arc<Limiter>,
        measure: Box<dyn Fn() -> Need + Send>,
        notices: RequestNotices,
    ) -> Self {
        Self { limiter, measure, need: None, id: None, began: None, sleep: None, awaited: None, notices }
    }
}

impl Future for QueuePlace {
    type Output = Result<Permit, ModelError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let now = this.limiter.limits.clock.now();
            // The provider may report a limit of tokens while the request waits.
            if this.need.is_none() && this.limiter.counts_tokens() {
                this.need = Some((this.measure)());
            }
            let need = this.need.unwrap_or([1, 0, 0, 0]);
            let began = *this.began.get_or_insert(now);
            let deadline = began.saturating_add(this.limiter.limits.max_wait);
            let mut state = this.limiter.state();
            let id = *this.id.get_or_insert_with(|| {
                state.next_id += 1;
                let id = state.next_id;
                state.queue.push_back(QueuedRequest { id, waker: cx.waker().clone() });
                id
            });
            let mut wake_at = deadline;
            if state.queue.front().is_some_and(|first| first.id == id) {
                match state.admit(now, &this.limiter.limits, (id, need)) {
                    Ok(slot) => {
                        state.leave(id);
                        this.id = None;
                        drop(state);
                        if let Some(limit) = this.awaited {
                            let waited_ms = now.saturating_sub(began).as_millis();
                            tracing::debug!(waited_ms, limit, "a request waited for a local limit");
                            this.notices.add(RequestNotice::Delayed {
                                waited_ms: u64::try_from(waited_ms).unwrap_or(u64::MAX),
                                limit: limit.to_owned(),
                            });
                        }
                        let (limiter, [_, taken, input, _]) = (this.limiter.clone(), need);
                        return Poll::Ready(Ok(Permit { limiter, id, slot, taken, input }));
                    }
                    Err(ready) => {
                        wake_at = ready.unwrap_or(deadline);
                        // A request that cannot be admitted before its deadline fails at once.
                        if wake_at > deadline || deadline <= now {
                            let pause = ready.map(|ready| ready.saturating_sub(now));
                            return Poll::Ready(Err(this.refused(pause)));
                        }
                    }
                }
            } else if deadline <= now {
                drop(state);
                return Poll::Ready(Err(this.refused(None)));
            }
            this.awaited = Some(state.awaited);
            if let Some(queued) = state.queue.iter_mut().find(|queued| queued.id == id) {
                queued.waker.clone_from(cx.waker());
            }
            drop(state);
            if this.sleep.as_ref().is_none_or(|(until, _)| *until != wake_at) {
                let Some(sleep) = this.limiter.limits.clock.sleep(wake_at.saturating_sub(now)) else {
                    return Poll::Ready(Err(this.refused(None)));
                };
                this.sleep = Some((wake_at, sleep));
            }
            let is_pending =
                this.sleep.as_mut().is_some_and(|(_, sleep)| sleep.as_mut().poll(cx).is_pending());
            if is_pending {
                return Poll::Pending;
            }
            this.sleep = None;
        }
    }
}

impl QueuePlace {
    fn refused(&self, retry_after: Option<Duration>) -> ModelError {
        let limit = self.limiter.limits.max_wait;
        let text = format!("the limits of this program do not admit the request within {limit:?}");
        let error = ModelError::new(ModelErrorKind::RateLimit, text).with_code(super::LOCAL_LIMIT);
        match retry_after {
            Some(pause) => error.with_retry_after(pause),
            None => error,
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.limiter.state().leave(id);
        }
    }
}

/// The permit of an admitted request. If this value is dropped, the request has ended, and the next request may be admitted.
pub(super) struct Permit {
    limiter: Arc<Limiter>,
    id: u64,
    slot: u64,
    taken: u64,
    /// The estimated input, in tokens.
    pub(super) input: u64,
}

impl Permit {
    pub(super) fn settle(&mut self, tokens: u64) {
        let now = self.limiter.limits.clock.now();
        let mut state = self.limiter.state();
        if let Some(window) = &mut state.tokens {
            window.correct(now, self.slot, self.taken, tokens);
        }
        self.taken = tokens;
        state.wake_first();
    }

    /// Returns a listener that records the provider's quota for this limiter, and then notifies `outer`, the listener of a limiter around
    /// this one.
    pub(super) fn quota_listener(&self, outer: Option<QuotaListener>) -> QuotaListener {
        let (limiter, id) = (self.limiter.clone(), self.id);
        QuotaListener::new(move |quota| {
            let now = limiter.limits.clock.now();
            let mut state = limiter.state();
            state.quota.record(now, id, quota);
            state.wake_first();
            drop(state);
            if let Some(outer) = &outer {
                outer.notify(quota);
            }
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.limiter.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.quota.end(self.id);
        state.wake_first();
    }
}
