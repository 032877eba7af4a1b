//! Tests of every kind of error, at every event, in each of two models.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use super::*;
use crate::message::{AssistantMessage, Message, Part, ProviderData, StopReason, ToolResultMessage, Usage};
use crate::model::scripted::ScriptedModel;
use crate::model::{ModelEvent, RateLimits, reply};
use crate::tool::BoxFuture;
use crate::tool::cancel::CancelToken;

use ModelEvent as E;
use std::task::{Context, Poll};

/// A clock on which every `sleep` ends at once and advances the clock by the whole duration.
#[derive(Clone, Default)]
struct TestClock(Arc<Mutex<Duration>>);

impl TestClock {
    fn advance(&self, by: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(by);
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
        *self.0.lock().unwrap() += duration;
        Some(Box::pin(std::future::ready(())))
    }
}

/// A model that emits the same events for each request. [`failing`](Self::failing) makes the next requests fail.
#[derive(Clone)]
struct FaultModel {
    info: ModelInfo,
    events: Vec<E>,
    faults: Arc<Mutex<Vec<(usize, ModelError)>>>,
    requests: Arc<Mutex<Vec<(ModelRequest, bool)>>>,
    asked: Arc<AtomicUsize>,
}

impl FaultModel {
    fn new(name: &str, events: Vec<E>) -> Self {
        let info = ModelInfo::new(name, format!("{name}-chat"), format!("{name}-1"));
        Self { info, events, faults: Arc::default(), requests: Arc::default(), asked: Arc::default() }
    }

    /// Makes the next requests fail, one for each fault. A fault is the number of events before the error, and the error.
    fn failing(self, faults: impl IntoIterator<Item = (usize, ModelError)>) -> Self {
        self.faults.lock().unwrap().extend(faults);
        self
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Model for FaultModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.requests.lock().unwrap().push((request.clone(), cx.is_retried));
        let mut events: Vec<_> = self.events.iter().cloned().map(Ok).collect();
        let mut faults = self.faults.lock().unwrap();
        if !faults.is_empty() {
            let (at, error) = faults.remove(0);
            events.truncate(at);
            events.push(Err(error));
        }
        ModelStream::from_events(cx, &self.info, events)
    }

    fn info(&self) -> &ModelInfo {
        &self.info
    }
}

fn now<F: Future>(future: F) -> F::Output {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

/// Returns the events of a reply with signatures, a call and provider state, which must not get lost.
fn events(name: &str) -> Vec<E> {
    let signed = Part::thinking("hm").with_provider_data(ProviderData::new(name, "signature"));
    vec![
        E::ReplyStart { response_id: Some(format!("{name}-7")), model: Some(format!("{name}-1-dated")) },
        E::Usage { usage: Box::new(Usage::new(5, 0)) },
        E::ThinkingStart { content_index: 0 },
        E::ThinkingDelta { content_index: 0, delta: "hm".into() },
        E::Part { content_index: 0, part: Box::new(signed) },
        E::TextDelta { content_index: 1, delta: format!("Hello from {name}") },
        E::ToolCallStart { content_index: 2, id: String::new(), name: "f".into() },
        E::ToolCallDelta { content_index: 2, delta: "{\"a\": 1}".into() },
        E::PartData { content_index: 2, data: ProviderData::new(name, "call") },
        E::Part { content_index: 3, part: Box::new(Part::image(b"png", "image/png")) },
        E::MessageData { data: ProviderData::new(name, "state") },
        E::Stop { reason: StopReason::Stop, detail: None, raw: Some("end".into()) },
        E::Usage { usage: Box::new(Usage::new(5, 9)) },
    ]
}

/// The number of events before the content of a reply.
const BEFORE_CONTENT: usize = 2;
const COMPLETE: usize = 12;

fn error(kind: ModelErrorKind) -> ModelError {
    ModelError::new(kind, format!("fault {kind}"))
}

fn fallback(a: &FaultModel, b: &FaultModel) -> Fallback {
    Fallback::new([a.clone(), b.clone()]).with_clock(Arc::new(TestClock::default()))
}

fn request() -> ModelRequest {
    ModelRequest::new([Message::user("Hi")])
}

fn read(model: &dyn Model) -> (Vec<E>, Result<AssistantMessage, ModelError>, AssistantMessage) {
    let mut stream = model.stream(&StepCx::new(), &request());
    let mut told = Vec::new();
    while let Some(next) = now(stream.next()) {
        told.extend(next);
    }
    let partial = stream.partial().clone();
    (told, now(stream.reply()), partial)
}

fn without_record(mut reply: AssistantMessage) -> AssistantMessage {
    reply.extra.clear();
    reply
}

/// All kinds of errors, with [`DEFAULT_KINDS`] first.
const KINDS: [ModelErrorKind; 12] = [
    ModelErrorKind::Overloaded,
    ModelErrorKind::RateLimit,
    ModelErrorKind::Connection,
    ModelErrorKind::Timeout,
    ModelErrorKind::Server,
    ModelErrorKind::Auth,
    ModelErrorKind::InvalidRequest,
    ModelErrorKind::ContextTooLong,
    ModelErrorKind::ContentFilter,
    ModelErrorKind::Protocol,
    ModelErrorKind::Aborted,
    ModelErrorKind::Other,
];

#[test]
fn each_error_at_each_event_of_the_first_model() {
    let (whole_a, reply_a, _) = read(&FaultModel::new("a", events("a")));
    let (whole_b, reply_b, _) = read(&FaultModel::new("b", events("b")));
    let (reply_a, reply_b) = (reply_a.unwrap(), reply_b.unwrap());
    for (number, kind) in KINDS.into_iter().enumerate() {
        for at in 0..=events("a").len() {
            let fault = error(kind);
            let a = FaultModel::new("a", events("a")).failing([(at, fault.clone())]);
            let alone = read(&FaultModel::new("a", events("a")).failing([(at, fault)]));
            let b = FaultModel::new("b", events("b"));
            let (told, reply, partial) = read(&fallback(&a, &b));
            let case = format!("{kind} before event {at}");
            if number < DEFAULT_KINDS.len() && at <= BEFORE_CONTENT {
                assert_eq!((a.asked(), b.asked()), (1, 1), "{case}");
                assert_eq!(told, whole_b, "{case}");
                let reply = reply.unwrap();
                let record = FallbackRecord::of(&reply).unwrap();
                assert_eq!(record.attempts.len(), 1, "{case}");
                assert_eq!((&*record.attempts[0].model, &*record.attempts[0].kind), ("a-1", kind.as_str()));
                assert_eq!(without_record(reply), reply_b, "{case}");
            } else {
                assert_eq!(b.asked(), 0, "{case}");
                assert!(whole_a.starts_with(&told), "{case}: {told:?}");
                let held = if at <= BEFORE_CONTENT { Vec::new() } else { alone.0 };
                assert_eq!(told, held, "{case}");
                assert_eq!(reply.unwrap_err().kind(), kind, "{case}");
                if at > BEFORE_CONTENT {
                    assert_eq!(without_record(partial), alone.2, "{case}: what arrived is kept");
                }
            }
        }
    }
    let (told, reply, _) =
        read(&fallback(&FaultModel::new("a", events("a")), &FaultModel::new("b", events("b"))));
    assert_eq!((told, reply.unwrap()), (whole_a, reply_a), "a healthy model: no record, the same events");
}

#[test]
fn each_error_at_each_event_of_the_second_model() {
    let whole_b = read(&FaultModel::new("b", events("b"))).0;
    for kind in KINDS {
        for at in 0..=COMPLETE {
            let a = FaultModel::new("a", events("a")).failing([(1, error(ModelErrorKind::Overloaded))]);
            let b = FaultModel::new("b", events("b")).failing([(at, error(kind))]);
            let alone = read(&FaultModel::new("b", events("b")).failing([(at, error(kind))]));
            let (told, reply, partial) = read(&fallback(&a, &b));
            let (case, failure) = (format!("{kind} before event {at}"), reply.unwrap_err());
            assert!(whole_b.starts_with(&told), "{case}: events of one reply");
            if at > BEFORE_CONTENT {
                assert_eq!((told, without_record(partial)), (alone.0, alone.2), "{case}");
                assert_eq!(failure.kind(), kind, "{case}");
                continue;
            }
            assert!(told.is_empty(), "{case}");
            let text = failure.to_string();
            match kind {
                ModelErrorKind::Aborted => assert_eq!(failure.kind(), kind),
                kind if DEFAULT_KINDS.contains(&kind) => {
                    assert_eq!(failure.kind(), ModelErrorKind::Overloaded, "{case}: the first error");
                    assert!(text.contains("`b/b-1` failed, too") && text.contains(&format!("fault {kind}")));
                    assert!(failure.is_retryable());
                }
                kind => {
                    assert_eq!(failure.kind(), kind, "{case}: it decides what follows");
                    assert!(text.contains("`a/a-1` failed, too: overloaded: fault overloaded"), "{text}");
                }
            }
        }
    }
}

#[test]
fn only_the_last_model_keeps_its_own_retries() {
    let a = FaultModel::new("a", events("a")).failing([(0, error(ModelErrorKind::Server))]);
    let b = FaultModel::new("b", events("b"));
    read(&fallback(&a, &b)).1.unwrap();
    let is_retried = |model: &FaultModel| model.requests.lock().unwrap()[0].1;
    assert_eq!((is_retried(&a), is_retried(&b)), (true, false));
}

#[test]
fn a_short_rate_limit_is_waited_for_once() {
    let limited = error(ModelErrorKind::RateLimit).with_retry_after(Duration::from_secs(5));
    let a = FaultModel::new("a", events("a")).failing([(0, limited.clone())]);
    let b = FaultModel::new("b", events("b"));
    let clock = TestClock::default();
    let model = Fallback::new([a.clone(), b.clone()]).with_clock(Arc::new(clock.clone()));
    assert_eq!(read(&model).1.unwrap().provider, "a");
    assert_eq!((a.asked(), b.asked(), clock.now()), (2, 0, Duration::from_secs(5)));

    let a = a.failing([(0, limited.clone()), (0, limited)]);
    let model = Fallback::new([a.clone(), b.clone()]).with_clock(Arc::new(clock.clone()));
    let reply = read(&model).1.unwrap();
    assert_eq!((reply.provider.as_str(), FallbackRecord::of(&reply).unwrap().attempts.len()), ("b", 2));

    let long = error(ModelErrorKind::RateLimit).with_retry_after(Duration::from_secs(6));
    // Limits in this program have their own maximum wait, so their refusals cause no pause.
    let own =
        error(ModelErrorKind::RateLimit).with_retry_after(Duration::from_secs(5)).with_code("local_limit");
    let before = clock.now();
    for refusal in [long, own] {
        let a = a.clone().failing([(0, refusal)]);
        let model = Fallback::new([a, b.clone()]).with_clock(Arc::new(clock.clone()));
        assert_eq!(read(&model).1.unwrap().provider, "b");
        assert_eq!(clock.now(), before, "neither is waited for");
    }
}

#[test]
fn the_breaker_skips_a_model_that_keeps_failing_and_tries_it_again() {
    let busy = || (0, error(ModelErrorKind::Overloaded));
    let a = FaultModel::new("a", events("a")).failing([busy(), busy(), busy(), busy()]);
    let b = FaultModel::new("b", events("b"));
    let clock = TestClock::default();
    let model = Fallback::new([a.clone(), b.clone()]).with_clock(Arc::new(clock.clone()));
    for asked in [1, 2, 3, 3, 3] {
        let reply = read(&model.clone()).1.unwrap();
        assert_eq!((reply.provider.as_str(), a.asked()), ("b", asked));
        let record = FallbackRecord::of(&reply).unwrap();
        let kind = if b.asked() > 3 { "breaker_open" } else { "overloaded" };
        assert_eq!(record.attempts[0].kind, kind);
    }
    clock.advance(30);
    assert_eq!((read(&model).1.unwrap().provider.as_str(), a.asked()), ("b", 4), "the probe fails");
    clock.advance(59);
    assert_eq!((read(&model).1.unwrap().provider.as_str(), a.asked()), ("b", 4));
    clock.advance(1);
    assert_eq!((read(&model).1.unwrap().provider.as_str(), a.asked()), ("a", 5), "the next one succeeds");
    assert_eq!((read(&model).1.unwrap().provider.as_str(), a.asked()), ("a", 6));
}

#[test]
fn with_every_breaker_open_the_model_that_is_due_first_is_asked() {
    let busy = |_| (0, error(ModelErrorKind::Overloaded));
    let (a, b) = (FaultModel::new("a", events("a")), FaultModel::new("b", events("b")));
    let (a, b) = (a.failing((0..3).map(busy)), b.failing((0..3).map(busy)));
    let model = fallback(&a, &b);
    for _ in 0..3 {
        read(&model).1.unwrap_err();
    }
    let reply = read(&model).1.unwrap();
    assert_eq!((reply.provider.as_str(), a.asked(), b.asked()), ("a", 4, 3));
    let before = ModelAttempt::before(&reply);
    let skipped: Vec<_> = before.iter().map(|attempt| (&*attempt.model, &*attempt.kind)).collect();
    assert_eq!(skipped, [("b-1", "breaker_open")]);
}

#[test]
fn an_abandoned_probe_frees_its_place() {
    let busy = |_| (0, error(ModelErrorKind::Overloaded));
    let a = FaultModel::new("a", events("a")).failing((0..3).map(busy));
    let (b, clock) = (FaultModel::new("b", events("b")), TestClock::default());
    let model = Fallback::new([a.clone(), b]).with_clock(Arc::new(clock.clone()));
    for _ in 0..3 {
        read(&model).1.unwrap();
    }
    clock.advance(30);
    let mut probe = model.stream(&StepCx::new(), &request());
    assert!(now(probe.next()).unwrap().is_ok());
    assert_eq!(read(&model).1.unwrap().provider, "b", "one probe at a time");
    drop(probe);
    assert_eq!(read(&model).1.unwrap().provider, "a");
}

#[test]
fn state_moves_by_a_hand_off_of_its_own_and_losses_are_counted() {
    let (a, b) = (FaultModel::new("a", events("a")), FaultModel::new("b", events("b")));
    let before = read(&b).1.unwrap();
    let call = before.tool_calls().next().unwrap().id.clone();
    let result = ToolResultMessage::new(&call, "f", crate::message::OutcomeKind::Completed);
    let request = ModelRequest::new([Message::user("Hi"), before.clone().into(), result.into()]);
    let reply = now(fallback(&a, &b).call(&StepCx::new(), &request)).unwrap();
    let record = FallbackRecord::of(&reply).unwrap();
    assert_eq!(record.switched_from.as_deref(), Some("b/b-1"));
    assert_eq!((record.losses.thinking, record.losses.provider_data), (1, 2));
    assert_eq!(record.losses.to_string(), "1 thinking part, 2 pieces of provider state");
    let sent = a.requests.lock().unwrap()[0].0.messages.clone();
    assert!(sent[1].content().iter().all(|part| part.provider_data.is_none()));

    let nested = Fallback::new([Fallback::new([a.clone()])]).or(b.clone());
    let reply = now(nested.call(&StepCx::new(), &request)).unwrap();
    assert_eq!(FallbackRecord::of(&reply), Some(record), "a fallback with one candidate");

    // Now the model that wrote the earlier reply is asked. It gets this reply unchanged, and nothing is lost.
    let a = a.failing([(0, error(ModelErrorKind::Server))]);
    let reply = now(fallback(&a, &b).call(&StepCx::new(), &request)).unwrap();
    let record = FallbackRecord::of(&reply).unwrap();
    assert_eq!((record.switched_from, record.losses.is_empty()), (None, true));
    let sent = b.requests.lock().unwrap().last().unwrap().0.messages.clone();
    assert_eq!(sent[1].as_assistant(), Some(&before));
}

#[test]
fn a_paused_reply_is_continued_by_its_own_model_first() {
    let mut paused = AssistantMessage::from("Searching …");
    (paused.provider, paused.api, paused.model) = ("b".into(), "b-chat".into(), "b-1".into());
    paused.stop_reason = StopReason::Pause;
    let request = ModelRequest::new([Message::user("Hi"), paused.into()]);
    let (a, b) = (FaultModel::new("a", events("a")), FaultModel::new("b", events("b")));
    assert_eq!(now(fallback(&a, &b).call(&StepCx::new(), &request)).unwrap().provider, "b");
    let b = b.failing([(0, error(ModelErrorKind::Overloaded))]);
    assert_eq!(now(fallback(&a, &b).call(&StepCx::new(), &request)).unwrap().provider, "a");
}

#[test]
fn nested_attempts_are_flat() {
    let fault = || (0, error(ModelErrorKind::Overloaded));
    let (a, b) = (FaultModel::new("a", events("a")), FaultModel::new("b", events("b")));
    let (a, b) = (a.failing([fault()]), b.failing([fault()]));
    let c = FaultModel::new("c", events("c"));
    let model =
        Fallback::new([a]).or(Fallback::new([b, c.clone()])).with_clock(Arc::new(TestClock::default()));
    assert_eq!(model.candidates().iter().map(|info| &*info.provider).collect::<Vec<_>>(), ["a", "b", "c"]);
    let reply = read(&model).1.unwrap();
    assert_eq!(reply.provider, "c");
    let record = FallbackRecord::of(&reply).unwrap();
    let models: Vec<_> = record.attempts.iter().map(|attempt| &*attempt.model).collect();
    assert_eq!(models, ["a-1", "b-1"]);
    assert_eq!(without_record(reply), read(&c).1.unwrap());
}

#[test]
fn a_request_that_is_cancelled_names_the_models_that_failed_before() {
    let busy = || (0, error(ModelErrorKind::Overloaded));
    let a = || FaultModel::new("a", events("a")).failing([busy(), busy()]);
    let silent =
        || ScriptedModel::from_fn(|_| reply().hang()).with_info(ModelInfo::new("b", "b-chat", "b-1"));
    let clock = || Arc::new(TestClock::default());
    let limits = || RateLimits::new().concurrency(1).clock(clock());
    let models: [(Box<dyn Model>, &[&str]); 4] = [
        (Box::new(Fallback::new([a()]).or(silent()).with_clock(clock())), &["a-1"]),
        (Box::new(Fallback::new([a()]).or(silent()).with_clock(clock()).limited(limits())), &["a-1"]),
        (Box::new(Fallback::new([a()]).or(silent().limited(limits())).with_clock(clock())), &["a-1"]),
        (
            Box::new(
                Fallback::new([a()])
                    .or(Fallback::new([a()]).or(silent()).with_clock(clock()))
                    .with_clock(clock()),
            ),
            &["a-1", "a-1"],
        ),
    ];
    for (at, (model, expected)) in models.iter().enumerate() {
        let attempts = |reply: &AssistantMessage| -> Vec<String> {
            ModelAttempt::before(reply).into_iter().map(|attempt| attempt.model).collect()
        };
        for is_dropped in [false, true] {
            let cancel = CancelToken::new();
            let mut stream = model.stream(&StepCx::new().with_cancel(cancel.clone()), &request());
            let mut next = Box::pin(stream.next());
            assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "{at}");
            drop(next);
            if !is_dropped {
                cancel.cancel("enough");
                assert!(now(stream.next()).unwrap().unwrap_err().is_aborted());
                assert_eq!(attempts(stream.partial()), *expected, "{at}");
            }
            let reply = stream.into_partial();
            assert_eq!(attempts(&reply), *expected, "{at}");
            assert_eq!(reply.provider, "b", "{at}");
        }
    }
}

#[test]
fn capabilities_are_those_that_all_have() {
    let mut text_only = FaultModel::new("b", events("b"));
    text_only.info.capabilities.images = false;
    text_only.info.capabilities.web_search = true;
    let model = fallback(&FaultModel::new("a", events("a")), &text_only);
    assert_eq!(model.info().provider, "a");
    assert!(!model.info().capabilities.images && !model.info().capabilities.web_search);
    assert!(model.info().capabilities.documents);
}

#[test]
fn a_kind_that_is_not_named_is_the_error_of_the_reply() {
    let a = FaultModel::new("a", events("a"));
    let b = FaultModel::new("b", events("b"));
    let bad_key = || (0, error(ModelErrorKind::Auth));
    let model = fallback(&a.clone().failing([bad_key()]), &b);
    assert!(read(&model).1.unwrap_err().is_auth(), "a bad key would go unnoticed");
    let model = fallback(&a.clone().failing([bad_key()]), &b).on([ModelErrorKind::Auth]);
    assert_eq!(read(&model).1.unwrap().provider, "b");
    assert_eq!(read(&model).1.unwrap().provider, "b", "its breaker is open");
    let model = fallback(&a.failing([(0, error(ModelErrorKind::Overloaded))]), &b).on([]);
    assert!(read(&model).1.unwrap_err().is_overloaded());
}
