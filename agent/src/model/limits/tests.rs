//! Tests of each limit with many requests, in simulated time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::quota::{ProviderQuota, QuotaLeft};
use super::*;
use crate::message::{Message, Usage};
use crate::model::scripted::ScriptedModel;
use crate::model::{ModelErrorKind, ScriptedReply, reply};
use crate::tool::BoxFuture;
use crate::tool::cancel::CancelToken;

/// A clock that the test advances. Sleepers are polled by the test.
#[derive(Clone, Default)]
struct TestClock(Arc<Mutex<Duration>>);

impl TestClock {
    fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Executor for TestClock {
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        work();
        Box::pin(std::future::ready(()))
    }

    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn sleep(&self, duration: Duration) -> Option<BoxFuture<'static, ()>> {
        let (clock, until) = (self.clone(), self.now() + duration);
        Some(Box::pin(std::future::poll_fn(move |_| {
            if clock.now() >= until { Poll::Ready(()) } else { Poll::Pending }
        })))
    }
}

type Call = BoxFuture<'static, Result<AssistantMessage, ModelError>>;

fn poll(call: &mut Call) -> Option<Result<AssistantMessage, ModelError>> {
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

fn request() -> ModelRequest {
    ModelRequest::new([Message::user("Hi")]).with_max_tokens(100)
}

fn noting(clock: &TestClock, usage: Usage) -> (ScriptedModel, Arc<Mutex<Vec<Duration>>>) {
    let (times, clock) = (Arc::new(Mutex::new(Vec::new())), clock.clone());
    let noted = times.clone();
    let model = ScriptedModel::from_fn(move |_| {
        noted.lock().unwrap().push(clock.now());
        reply().text("Hello!").usage(usage.clone())
    });
    (model, times)
}

fn most_in_a_minute(times: &[Duration]) -> usize {
    let minute = Duration::from_secs(60);
    let after = |from: &Duration| {
        times.iter().filter(|at| at.checked_sub(*from).is_some_and(|age| age < minute)).count()
    };
    times.iter().map(after).max().unwrap_or_default()
}

/// Runs these calls to their ends. Returns the results in the order in which they came, with the indices of their calls.
fn run(clock: &TestClock, calls: Vec<Call>) -> Vec<(usize, Result<AssistantMessage, ModelError>)> {
    let mut calls: Vec<_> = calls.into_iter().enumerate().collect();
    let mut ended = Vec::new();
    while !calls.is_empty() {
        calls.retain_mut(|(number, call)| match poll(call) {
            Some(result) => {
                ended.push((*number, result));
                false
            }
            None => true,
        });
        clock.advance(Duration::from_millis(50));
        assert!(clock.now() < Duration::from_secs(3_600), "a request waits for ever");
    }
    ended
}

#[test]
fn sixty_four_requests_never_exceed_the_requests_per_minute_and_keep_their_order() {
    let clock = TestClock::default();
    let (model, times) = noting(&clock, Usage::default());
    let limits = RateLimits::new().requests_per_minute(10).max_wait(Duration::from_secs(600));
    let model = model.limited(limits.clock(Arc::new(clock.clone())));
    let calls = (0..64).map(|_| model.clone().call(&StepCx::new(), &request())).collect();
    let ended = run(&clock, calls);
    assert!(ended.iter().all(|(_, result)| result.is_ok()));
    assert_eq!(ended.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
    let times = times.lock().unwrap();
    assert_eq!(most_in_a_minute(&times), 10);
    assert!(*times.last().unwrap() < Duration::from_secs(6 * 62), "the limit is used: {times:?}");
}

#[test]
fn tokens_are_taken_before_the_request_and_corrected_after_it() {
    // Each request is estimated at 13 tokens plus 100 for its reply, but uses 15 + 5. The estimates alone would admit only one request.
    let clock = TestClock::default();
    let (model, times) = noting(&clock, Usage::new(15, 5));
    let limits = RateLimits::new().tokens_per_minute(200).max_wait(Duration::ZERO);
    let model = model.limited(limits.clock(Arc::new(clock.clone())));
    let mut refused = 0;
    for _ in 0..8 {
        let mut call = model.call(&StepCx::new(), &request());
        refused += usize::from(poll(&mut call).unwrap().is_err());
    }
    assert_eq!((times.lock().unwrap().len(), refused), (5, 3), "5 times 20 are 100, and 113 more do not fit");
    clock.advance(Duration::from_millis(60_100));
    assert!(poll(&mut model.call(&StepCx::new(), &request())).unwrap().is_ok());
}

#[test]
fn what_a_failed_request_keeps() {
    let taken_after = |last: ScriptedReply| {
        let clock = TestClock::default();
        let model = ScriptedModel::new([last, "Hello!".into(), "Hello!".into()]);
        let limits = RateLimits::new().tokens_per_minute(120).max_wait(Duration::ZERO);
        let model = model.limited(limits.clock(Arc::new(clock)));
        poll(&mut model.call(&StepCx::new(), &request())).unwrap().unwrap_err();
        // This request needs 13 + 107 tokens, which is the whole limit. It is admitted only if the failed request keeps no tokens.
        poll(&mut model.call(&StepCx::new(), &request().with_max_tokens(107))).unwrap().is_ok()
    };
    assert!(taken_after(ModelError::new(ModelErrorKind::RateLimit, "429").into()), "nothing was used");
    assert!(!taken_after(ModelError::new(ModelErrorKind::Server, "500").into()), "its input may have been");
    assert!(!taken_after(reply().text("Hel").error(ModelError::new(ModelErrorKind::Connection, "lost"))));
}

#[test]
fn a_rate_limit_of_the_provider_closes_the_queue() {
    let clock = TestClock::default();
    let refused = ModelError::new(ModelErrorKind::RateLimit, "429").with_retry_after(Duration::from_secs(20));
    let model = ScriptedModel::new([refused.into(), ScriptedReply::from("Hello!")]);
    let model = model.limited(RateLimits::new().concurrency(4).clock(Arc::new(clock.clone())));
    poll(&mut model.call(&StepCx::new(), &request())).unwrap().unwrap_err();
    let mut call = model.call(&StepCx::new(), &request());
    clock.advance(Duration::from_millis(19_900));
    assert!(poll(&mut call).is_none());
    clock.advance(Duration::from_millis(100));
    assert!(poll(&mut call).unwrap().is_ok());
}

#[test]
fn waiting_is_bounded_and_fails_at_once_where_it_cannot_help() {
    let clock = TestClock::default();
    let limits = RateLimits::new().requests_per_minute(1).clock(Arc::new(clock.clone()));
    let model = LimitedModel::new(ScriptedModel::new(["1", "2"]), limits);
    poll(&mut model.call(&StepCx::new(), &request())).unwrap().unwrap();
    // The limit admits the next request after 60.1 s, and a request waits for at most 60 s.
    let error = poll(&mut model.call(&StepCx::new(), &request())).unwrap().unwrap_err();
    assert_eq!(
        (error.code(), error.retry_after()),
        (Some("local_limit"), Some(Duration::from_millis(60_100)))
    );
    assert!(error.is_rate_limit() && error.is_retryable());
    clock.advance(Duration::from_secs(1));
    let mut waiting = model.call(&StepCx::new(), &request());
    let mut behind = model.call(&StepCx::new(), &request());
    assert!(poll(&mut waiting).is_none() && poll(&mut behind).is_none());
    clock.advance(Duration::from_millis(59_100));
    assert!(poll(&mut waiting).unwrap().is_ok());
    clock.advance(Duration::from_millis(900));
    assert_eq!(poll(&mut behind).unwrap().unwrap_err().code(), Some("local_limit"));
    assert!(model.limiter_is_idle());
}

#[test]
fn a_request_waits_from_its_first_poll() {
    let clock = TestClock::default();
    let limits = RateLimits::new().concurrency(1).max_wait(Duration::from_secs(5));
    let model = ScriptedModel::new([reply().hang(), ScriptedReply::from("Hello!")])
        .limited(limits.clock(Arc::new(clock.clone())));
    let mut held = model.call(&StepCx::new(), &request());
    let mut late = model.call(&StepCx::new(), &request());
    assert!(poll(&mut held).is_none());
    clock.advance(Duration::from_secs(6));
    assert!(poll(&mut late).is_none(), "its time begins now");
    drop(held);
    assert_eq!(poll(&mut late).unwrap().unwrap().text(), "Hello!");
}

#[test]
fn cancelled_requests_leave_the_queue_and_their_places() {
    let clock = TestClock::default();
    let hang = || reply().text("Hel").hang();
    let limits = RateLimits::new().concurrency(1).clock(Arc::new(clock));
    let model = LimitedModel::new(ScriptedModel::new([hang(), ScriptedReply::from("Hello!")]), limits);
    let (first, second) = (CancelToken::new(), CancelToken::new());
    let mut held = model.call(&StepCx::new().with_cancel(first.clone()), &request());
    let mut cancelled = model.call(&StepCx::new().with_cancel(second.clone()), &request());
    let mut last = model.call(&StepCx::new(), &request());
    assert!(poll(&mut held).is_none() && poll(&mut cancelled).is_none() && poll(&mut last).is_none());
    second.cancel("no time");
    assert!(poll(&mut cancelled).unwrap().unwrap_err().is_aborted());
    assert!(poll(&mut last).is_none(), "the first one still has the place");
    first.cancel("no time");
    assert!(poll(&mut held).unwrap().unwrap_err().is_aborted());
    assert_eq!(poll(&mut last).unwrap().unwrap().text(), "Hello!");
    assert!(model.limiter_is_idle());
}

#[test]
fn the_end_of_a_request_wakes_the_first_that_waits() {
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    let model = ScriptedModel::new([reply().hang(), ScriptedReply::from("Hello!")])
        .limited(RateLimits::new().concurrency(1).clock(Arc::new(TestClock::default())));
    let mut held = model.call(&StepCx::new(), &request());
    assert!(poll(&mut held).is_none());
    let count = Arc::new(WakeCount(AtomicUsize::new(0)));
    let mut waiting = model.call(&StepCx::new(), &request());
    let task_waker = Waker::from(count.clone());
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&task_waker)).is_pending());
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    drop(held);
    assert!(count.0.load(Ordering::Relaxed) > 0);
    assert_eq!(poll(&mut waiting).unwrap().unwrap().text(), "Hello!");
}

#[test]
fn a_limit_of_zero_is_an_error_that_names_it() {
    for (limits, what) in [
        (RateLimits::new().requests_per_minute(0), "0 requests per minute"),
        (RateLimits::new().tokens_per_minute(0), "0 tokens per minute"),
        (RateLimits::new().concurrency(0), "0 requests at a time"),
    ] {
        let model = ScriptedModel::new(["Hello!"]).limited(limits);
        let error = poll(&mut model.call(&StepCx::new(), &request())).unwrap().unwrap_err();
        assert!(error.to_string().contains(what) && !error.is_retryable(), "{error}");
    }
}

#[test]
fn the_reply_is_that_of_the_model() {
    let part = crate::message::Part::thinking("hm")
        .with_provider_data(crate::message::ProviderData::new("scripted", "signature"));
    let script =
        || reply().part(part.clone()).text("Hello!").tool_call("f", r#"{"a": 1}"#).usage(Usage::new(3, 4));
    let read = |model: &dyn Model| {
        let mut stream = model.stream(&StepCx::new(), &request().with_argument_events());
        let mut events = Vec::new();
        let mut next = || match std::pin::pin!(stream.next()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(next) => next,
            Poll::Pending => panic!("the reply waits"),
        };
        while let Some(event) = next() {
            events.push(event.unwrap());
        }
        (events, stream.partial().clone())
    };
    let limits = RateLimits::new().concurrency(1).clock(Arc::new(TestClock::default()));
    let limited = ScriptedModel::new([script()]).limited(limits);
    assert_eq!(read(&limited), read(&ScriptedModel::new([script()])));
}

/// A model whose responses report the quotas in `reports`, one after the other.
#[derive(Clone)]
struct ReportingModel {
    model: ScriptedModel,
    reports: Arc<Mutex<std::collections::VecDeque<ProviderQuota>>>,
}

impl ReportingModel {
    fn new(reports: impl IntoIterator<Item = ProviderQuota>) -> Self {
        let model = ScriptedModel::from_fn(|_| reply().text("Hello!"));
        Self { model, reports: Arc::new(Mutex::new(reports.into_iter().collect())) }
    }
}

impl Model for ReportingModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        if let Some(listener) = &cx.quota {
            self.reports.lock().unwrap().pop_front().into_iter().for_each(|report| listener.notify(report));
        }
        self.model.stream(cx, request)
    }

    answered_by_model!();
}

/// Returns a report that `left` of `limit` remain. `kind` is the index in `Need`. If `limit` is 0, the report omits the limit.
fn left(kind: usize, limit: u64, left: u64, seconds: u64) -> ProviderQuota {
    let mut quota = ProviderQuota::default();
    quota.left[kind] =
        Some(QuotaLeft { limit: Some(limit).filter(|l| *l > 0), left, refill: Duration::from_secs(seconds) });
    quota
}

/// Returns the simulated milliseconds until a new request has succeeded.
fn admitted_after(model: &impl Model, clock: &TestClock) -> u128 {
    let (began, mut call) = (clock.now(), model.call(&StepCx::new(), &request()));
    loop {
        match poll(&mut call) {
            Some(result) => {
                result.unwrap();
                return clock.now().saturating_sub(began).as_millis();
            }
            None => clock.advance(Duration::from_millis(10)),
        }
    }
}

#[test]
fn what_the_provider_says_is_left_lowers_what_is_admitted() {
    let clock = TestClock::default();
    let limits = || RateLimits::new().requests_per_minute(10).clock(Arc::new(clock.clone()));
    // After the first request, one of ten requests is left, and all ten are available again in 50 s. The nine missing requests become
    // available one by one, every 50 / 9 s.
    let model = ReportingModel::new([left(0, 10, 1, 50)]).limited(limits());
    let waits: Vec<_> = (0..4).map(|_| admitted_after(&model, &clock)).collect();
    assert_eq!(waits, [0, 0, 5_560, 5_560]);
    // The size of this limit is not reported, so no request is admitted until the whole 50 s have passed.
    let model = ReportingModel::new([left(0, 0, 0, 50)]).limited(limits());
    let waits: Vec<_> = (0..3).map(|_| admitted_after(&model, &clock)).collect();
    assert_eq!(waits, [0, 50_000, 0]);
    // The newest report counts.
    let model = ReportingModel::new([left(0, 10, 0, 50), left(0, 10, 5, 20)]).limited(limits());
    let waits: Vec<_> = (0..7).map(|_| admitted_after(&model, &clock)).collect();
    assert_eq!(waits, [0, 5_000, 0, 0, 0, 0, 0]);
}

#[test]
fn a_report_never_raises_what_is_admitted() {
    let clock = TestClock::default();
    let limits = RateLimits::new().requests_per_minute(1).tokens_per_minute(200);
    let reports = [left(0, u64::MAX, u64::MAX, 0), left(1, u64::MAX, u64::MAX, u64::MAX)];
    let model = ReportingModel::new(reports)
        .limited(limits.max_wait(Duration::from_secs(90)).clock(Arc::new(clock.clone())));
    let waits: Vec<_> = (0..3).map(|_| admitted_after(&model, &clock)).collect();
    assert_eq!(waits, [0, 60_100, 60_100]);
}

#[test]
fn tokens_that_are_left_count_without_a_limit_of_ones_own() {
    // A request has 13 tokens, and a reply at most 100.
    for (kind, enough, what) in [(1, 113, "all"), (2, 13, "input"), (3, 100, "output")] {
        for (remaining, admitted) in [(enough, 0), (enough - 1, 30_000)] {
            let clock = TestClock::default();
            let limits = RateLimits::new().concurrency(4).clock(Arc::new(clock.clone()));
            let model = ReportingModel::new([left(kind, 0, remaining, 30)]).limited(limits);
            assert_eq!(admitted_after(&model, &clock), 0);
            assert_eq!(admitted_after(&model, &clock), admitted, "{remaining} of {what}");
        }
    }
}

#[test]
fn a_report_counts_for_requests_that_were_made_before_it() {
    let limits = RateLimits::new().concurrency(4).clock(Arc::new(TestClock::default()));
    let model = ReportingModel::new([left(1, 0, 112, 30)]).limited(limits);
    let [mut first, mut second] = [0; 2].map(|_| model.call(&StepCx::new(), &request()));
    assert!(poll(&mut first).unwrap().is_ok());
    assert!(poll(&mut second).is_none(), "it needs 113 tokens");
}

#[test]
fn requests_under_way_are_subtracted_from_a_report() {
    let mut quota = quota::ReportedQuota::default();
    let (now, need) = (Duration::ZERO, [1, 10, 5, 5]);
    (1..=3).for_each(|request| quota.take(request, need));
    // The provider has responded to the first request, and may not have counted the other two.
    quota.record(now, 1, left(0, 0, 2, 30));
    assert_eq!(quota.ready_at(now, need), Duration::from_secs(30));
    // The third request ends without a response, so it is no longer subtracted. When the second response arrives, no other request is
    // under way, so all that the provider reports is available.
    quota.end(3);
    quota.record(now, 2, left(0, 0, 1, 30));
    assert_eq!(quota.ready_at(now, need), Duration::ZERO);
    // A late response to an earlier request cannot raise the remaining amount.
    quota.record(now, 1, left(0, 0, 9, 30));
    quota.take(4, need);
    assert_eq!(quota.ready_at(now, need), Duration::from_secs(30));
    assert_eq!(quota.ready_at(Duration::from_secs(30), need), Duration::ZERO);
}

#[test]
fn each_limit_around_a_model_gets_its_reports_and_none_around_a_fallback() {
    let clock = TestClock::default();
    let limits = || RateLimits::new().concurrency(9).max_wait(Duration::ZERO).clock(Arc::new(clock.clone()));
    let (model, closed) = (ReportingModel::new([left(0, 0, 0, 30)]), Duration::from_secs(30));
    let inner = LimitedModel::new(model.clone(), limits());
    let outer = LimitedModel::new(inner.clone(), limits());
    poll(&mut outer.call(&StepCx::new(), &request())).unwrap().unwrap();
    assert_eq!((inner.limiter.quota_ready_at(), outer.limiter.quota_ready_at()), (closed, closed));

    model.reports.lock().unwrap().push_back(left(0, 0, 0, 30));
    let inner = LimitedModel::new(model, limits());
    let outer = LimitedModel::new(crate::model::Fallback::new([inner.clone()]), limits());
    poll(&mut outer.call(&StepCx::new(), &request())).unwrap().unwrap();
    assert_eq!((inner.limiter.quota_ready_at(), outer.limiter.quota_ready_at()), (closed, Duration::ZERO));
}

impl<M: Model> LimitedModel<M> {
    fn limiter_is_idle(&self) -> bool {
        self.limiter.is_idle()
    }
}
