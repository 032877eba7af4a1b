//! Limits of requests, tokens and concurrency that apply before a request is sent.

mod quota;
#[cfg(test)]
mod tests;
mod wait;
mod window;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
pub(crate) use quota::QuotaListener;
#[cfg(feature = "http")]
pub(crate) use quota::{ProviderQuota, QuotaLeft};
use wait::{Limiter, Permit, QueuePlace};

use super::wrapped::{WrappedReply, answered_by_model};
use super::{Model, ModelError, ModelEvent, ModelRequest, ModelStream, StepCx, TokenEstimator};
use crate::message::AssistantMessage;
use crate::tool::executor::Executor;

/// The error code of a request that was not sent because of these limits.
pub(super) const LOCAL_LIMIT: &str = "local_limit";
/// Maximum number of tokens that are reserved for a reply. A lower `max_tokens` of the request is reserved instead.
const MAX_REPLY: u64 = 4_096;

/// Limits of the requests to a model, for [`Model::limited`]. Every limit that is set must admit a request.
///
/// Limits apply to one process. Requests are sent in the order in which they were made. A request counts once, also if a provider's client
/// retries it. A failed request without usage counts its estimated input. If the provider rejects a request with a rate limit, the request
/// counts no tokens, and no other request is sent for the time that the provider asks to wait. This pause also applies if the provider's
/// client retries the rejected request.
///
/// A provider may report how much of its own limits remains, in headers of a response such as `x-ratelimit-remaining-requests` or
/// `anthropic-ratelimit-tokens-remaining`. A reported limit applies in addition to these limits, until the provider has refilled it
/// completely. In a [`Fallback`](super::Fallback), limit each model separately: limits around the fallback are not the limits of one
/// provider.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{Model as _, ModelRequest, RateLimits, StepCx};
/// use agent::ScriptedModel;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let limits = RateLimits::new().requests_per_minute(1).tokens_per_minute(40_000).concurrency(8);
/// let model = ScriptedModel::new(["Hello!", "Hello again!"]).limited(limits.max_wait(Duration::from_secs(5)));
///
/// let request = ModelRequest::new([Message::user("Hi")]);
/// assert_eq!(model.call(&StepCx::new(), &request).await.unwrap().text(), "Hello!");
/// let error = model.clone().call(&StepCx::new(), &request).await.unwrap_err();
/// assert!(error.is_rate_limit() && error.code() == Some("local_limit"));
/// assert!(error.retry_after().unwrap() > Duration::from_secs(50));
/// # }
/// ```
#[derive(Clone)]
pub struct RateLimits {
    requests: Option<u32>,
    tokens: Option<u64>,
    concurrency: Option<usize>,
    max_wait: Duration,
    clock: Arc<dyn Executor>,
}

impl RateLimits {
    /// Creates limits that admit every request.
    pub fn new() -> Self {
        Self {
            requests: None,
            tokens: None,
            concurrency: None,
            max_wait: Duration::from_secs(60),
            clock: crate::default_clock(),
        }
    }

    /// Sets the maximum number of requests that are sent in any 60 seconds.
    pub fn requests_per_minute(mut self, requests: u32) -> Self {
        self.requests = Some(requests);
        self
    }

    /// Sets the maximum number of tokens in any 60 seconds. A request first counts as its [estimated](super::ContextReport::of) input and
    /// at most 4,096 tokens for the reply. Later, the usage of the reply replaces this sum. If the reply takes longer than a minute, the
    /// tokens that it used beyond this sum count when it ends. A request with more tokens than the limit is sent alone.
    pub fn tokens_per_minute(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Sets the maximum number of requests at the same time. A request ends when its reply is complete, has failed or is dropped.
    pub fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = Some(requests);
        self
    }

    /// Sets the maximum time for which a request waits until the limits admit it. Default: 60 s. After this time, the request fails with
    /// [`RateLimit`](super::ModelErrorKind::RateLimit) and the code `local_limit`, and a [`Fallback`](super::Fallback) asks another model.
    /// A request that cannot be admitted in this time fails at once. Without a runtime, no request can wait.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Sets the executor whose clock measures the waiting time. Default: the clock of tokio. The example has a clock for tests, which
    /// never really waits:
    ///
    /// ```
    /// use agent::message::Message;
    /// use agent::model::{Model as _, ModelRequest, RateLimits, StepCx};
    /// use agent::{BoxFuture, ScriptedModel, tool::Executor};
    /// use std::sync::{Arc, Mutex};
    /// use std::time::Duration;
    ///
    /// /// A clock whose time jumps to the end of each wait.
    /// #[derive(Default)]
    /// struct Skips(Mutex<Duration>);
    ///
    /// impl Executor for Skips {
    ///     fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
    ///         Box::pin(async move { work() })
    ///     }
    ///
    ///     fn sleep(&self, duration: Duration) -> Option<BoxFuture<'static, ()>> {
    ///         *self.0.lock().unwrap() += duration;
    ///         Some(Box::pin(async {}))
    ///     }
    ///
    ///     fn now(&self) -> Duration {
    ///         *self.0.lock().unwrap()
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let clock = Arc::new(Skips::default());
    /// let limits = RateLimits::new().requests_per_minute(1).max_wait(Duration::from_secs(90)).clock(clock.clone());
    /// let model = ScriptedModel::new(["Hello!", "Hello again!"]).limited(limits);
    /// for reply in ["Hello!", "Hello again!"] {
    ///     let request = ModelRequest::new([Message::user("Hi")]);
    ///     assert_eq!(model.call(&StepCx::new(), &request).await.unwrap().text(), reply);
    /// }
    /// assert!(clock.now() >= Duration::from_secs(60));
    /// # }
    /// ```
    pub fn clock(mut self, clock: Arc<dyn Executor>) -> Self {
        self.clock = clock;
        self
    }
}

impl fmt::Debug for RateLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimits")
            .field("requests", &self.requests)
            .field("tokens", &self.tokens)
            .field("concurrency", &self.concurrency)
            .field("max_wait", &self.max_wait)
            .finish_non_exhaustive()
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Clone)]
pub(super) struct LimitedModel<M> {
    model: M,
    limiter: Arc<Limiter>,
}

impl<M: Model> LimitedModel<M> {
    pub(super) fn new(model: M, limits: RateLimits) -> Self {
        Self { model, limiter: Arc::new(Limiter::new(limits)) }
    }
}

impl<M: Model + Clone + 'static> Model for LimitedModel<M> {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        if let Some(error) = self.limiter.zero_limit() {
            return ModelStream::from_events(cx, self.model.info(), [Err(error)]);
        }
        let (model, asked) = (self.model.clone(), request.clone());
        let measure = move || {
            let input = asked.estimate_tokens(model.info(), &TokenEstimator).tokens;
            let output = asked.max_tokens.unwrap_or(MAX_REPLY).min(MAX_REPLY);
            [1, input.saturating_add(output), input, output]
        };
        let place = QueuePlace::new(self.limiter.clone(), Box::new(measure), cx.notices.clone());
        let author = Arc::new(OnceLock::new());
        let events = LimitedEvents {
            limiter: self.limiter.clone(),
            phase: LimitedPhase::Wait(place),
            start: {
                let (model, cx, mut request) = (self.model.clone(), cx.clone(), request.clone());
                // The outer stream adds the argument events, so the inner model must not add them, too.
                request.argument_events = false;
                Box::new(move |permit: &Permit| {
                    let mut cx = cx.clone();
                    cx.quota = Some(permit.quota_listener(cx.quota.take()));
                    model.stream(&cx, &request)
                })
            },
            author: author.clone(),
        };
        ModelStream::new(cx, self.model.info(), events).with_author(author).with_argument_events(request)
    }

    answered_by_model!();
}

impl<M: fmt::Debug> fmt::Debug for LimitedModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = &self.limiter.limits;
        f.debug_struct("LimitedModel").field("model", &self.model).field("limits", limits).finish()
    }
}

/// The events of a reply. The request is sent once the limits allow.
struct LimitedEvents {
    limiter: Arc<Limiter>,
    phase: LimitedPhase,
    start: Box<dyn Fn(&Permit) -> ModelStream + Send>,
    author: Arc<OnceLock<AssistantMessage>>,
}

enum LimitedPhase {
    Wait(QueuePlace),
    Read(Box<(WrappedReply, Permit)>),
    Over,
}

impl LimitedEvents {
    /// Replaces the reserved tokens by the tokens that the reply used, and releases the permit. A complete reply of unknown usage keeps
    /// its reservation.
    fn settle(&mut self, error: Option<&ModelError>) {
        let LimitedPhase::Read(mut read) = std::mem::replace(&mut self.phase, LimitedPhase::Over) else {
            return;
        };
        let (reply, permit) = &mut *read;
        let usage = &reply.partial().usage;
        let used = usage.input.saturating_add(usage.output);
        match error {
            Some(error) if error.is_rate_limit() => {
                permit.settle(0);
                error.retry_after().into_iter().for_each(|pause| self.limiter.close_for(pause));
            }
            _ if used > 0 => permit.settle(used),
            Some(_) => permit.settle(permit.input),
            None => {}
        }
    }
}

impl Stream for LimitedEvents {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            match &mut this.phase {
                LimitedPhase::Wait(place) => match ready!(Pin::new(place).poll(cx)) {
                    Ok(permit) => {
                        let reply = WrappedReply::new((this.start)(&permit));
                        this.phase = LimitedPhase::Read(Box::new((reply, permit)));
                    }
                    Err(error) => {
                        this.phase = LimitedPhase::Over;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                LimitedPhase::Read(read) => {
                    let reply = &mut read.0;
                    if let Some(event) = reply.pop() {
                        return Poll::Ready(Some(Ok(event)));
                    }
                    match ready!(reply.poll_stream(cx)) {
                        Some(Ok(event)) => {
                            this.author.get_or_init(|| reply.author());
                            reply.push(event);
                        }
                        Some(Err(error)) => {
                            this.author.get_or_init(|| reply.author());
                            this.settle(Some(&error));
                            return Poll::Ready(Some(Err(error)));
                        }
                        None => {
                            this.settle(None);
                            return Poll::Ready(None);
                        }
                    }
                }
                LimitedPhase::Over => return Poll::Ready(None),
            }
        }
    }
}

impl Drop for LimitedEvents {
    fn drop(&mut self) {
        if let LimitedPhase::Read(read) = &mut self.phase {
            self.author.get_or_init(|| read.0.abandon());
            self.settle(Some(&ModelError::aborted("dropped")));
        }
    }
}
