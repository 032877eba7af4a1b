//! One call through the registry: every way of ending is an outcome.

use agent::args::{Plan, PlanOptions};
use agent::message::ToolCall;
use agent::tool::{AcceptedArguments, ToolBody};
use agent::{
    BoxFuture, CancelToken, Registry, Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput,
    ToolSet,
    tool::{OutcomeCode, StateKey, ToolOptions},
    tools,
};
use serde_json::{Value, json};
use std::future::{Future, pending};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn definition(name: &str) -> ToolDefinition {
    let plan = Plan::compile(name, &json!({"type": "object"}), PlanOptions::default()).unwrap();
    ToolDefinition::new(plan, "A tool of a test.").unwrap()
}

/// A tool whose body is any function of its context.
struct Scripted<F> {
    requires: Vec<StateKey>,
    run: F,
}

fn body<F>(name: &str, run: F) -> Tool
where
    F: Fn(&ToolContext) -> BoxFuture<'_, ToolOutcome> + Send + Sync + 'static,
{
    requiring(name, Vec::new(), run)
}

fn requiring<F>(name: &str, requires: Vec<StateKey>, run: F) -> Tool
where
    F: Fn(&ToolContext) -> BoxFuture<'_, ToolOutcome> + Send + Sync + 'static,
{
    Tool::from_body(definition(name), Scripted { requires, run })
}

impl<F> ToolBody for Scripted<F>
where
    F: Fn(&ToolContext) -> BoxFuture<'_, ToolOutcome> + Send + Sync + 'static,
{
    fn call<'a>(&'a self, _: &'a AcceptedArguments, cx: &'a ToolContext) -> BoxFuture<'a, ToolOutcome> {
        (self.run)(cx)
    }
    fn requires(&self) -> &[StateKey] {
        &self.requires
    }
}

fn text(text: &str) -> ToolOutcome {
    ToolOutcome::from(ToolOutput::text(text))
}

async fn outcome_with(tool: Tool, cx: &ToolContext) -> ToolOutcome {
    let name = tool.definition().name().to_owned();
    let mut registry = Registry::default();
    registry.register(tool).unwrap();
    let result = registry.call(&ToolCall::new("c1", name, "{}"), cx).await;
    assert_eq!(result.call_id, "c1");
    result.outcome
}

async fn outcome(tool: Tool) -> ToolOutcome {
    outcome_with(tool, &ToolContext::new()).await
}

fn code(outcome: &ToolOutcome) -> &str {
    outcome.code().unwrap_or("completed")
}

#[tokio::test]
async fn panics_are_outcomes_wherever_they_come_from() {
    struct Bomb;
    impl Future for Bomb {
        type Output = ToolOutcome;
        fn poll(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<ToolOutcome> {
            text("done").into_ready()
        }
    }
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("when it is dropped");
        }
    }
    trait IntoReady: Sized {
        fn into_ready(self) -> std::task::Poll<Self> {
            std::task::Poll::Ready(self)
        }
    }
    impl IntoReady for ToolOutcome {}

    let made = outcome(body("made", |_| panic!("when it is made"))).await;
    let polled = outcome(body("polled", |_| Box::pin(async { panic!("when it is polled") }))).await;
    assert_eq!((code(&made), code(&polled)), ("panic", "panic"));
    assert!(!polled.text().contains("when it is polled"), "the text is for the log: {}", polled.text());
    // It had its result before it panicked.
    assert_eq!(code(&outcome(body("dropped", |_| Box::pin(Bomb))).await), "completed");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_cancels_the_token_and_drops_the_body() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let mut tool = body("slow", |cx| {
        let token = cx.cancel_token().clone();
        tokio::spawn(async move {
            token.cancelled().await;
            TOLD.store(true, Ordering::SeqCst);
        });
        Box::pin(pending())
    });
    tool = tool.configure(|options| options.timeout(Duration::from_millis(1500))).unwrap();
    let outcome = outcome(tool).await;
    assert_eq!(code(&outcome), "timeout");
    assert!(outcome.text().contains("1.5 s"), "{}", outcome.text());
    tokio::task::yield_now().await;
    assert!(TOLD.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn the_context_has_a_timeout_for_tools_that_have_none() {
    let cx = ToolContext::new().with_default_timeout(Duration::from_secs(3));
    assert_eq!(code(&outcome_with(body("slow", |_| Box::pin(pending())), &cx).await), "timeout");
    let mut patient = body("patient", |_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            text("late")
        })
    });
    patient = patient.configure(ToolOptions::without_timeout).unwrap();
    assert_eq!(outcome_with(patient, &cx).await.text(), "late");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_body_has_a_grace_period() {
    async fn cancelled_after_1s(tool: Tool) -> (ToolOutcome, Duration) {
        let token = CancelToken::new();
        let cx = ToolContext::new().with_cancel(token.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            token.cancel("enough");
        });
        let start = tokio::time::Instant::now();
        (outcome_with(tool, &cx).await, start.elapsed())
    }
    fn after_cancel(wait: u64, reply: fn() -> ToolOutcome) -> Tool {
        body("t", move |cx| {
            Box::pin(async move {
                cx.cancelled().await;
                tokio::time::sleep(Duration::from_secs(wait)).await;
                reply()
            })
        })
    }
    let (value, _) = cancelled_after_1s(after_cancel(2, || text("finished"))).await;
    assert_eq!(value.text(), "finished");
    let (error, _) = cancelled_after_1s(after_cancel(2, || ToolError::new("told to stop").into())).await;
    assert_eq!(code(&error), "aborted");
    let (deaf, took) = cancelled_after_1s(body("deaf", |_| Box::pin(pending()))).await;
    assert_eq!((code(&deaf), took.as_secs()), ("aborted", 6));
    assert!(deaf.text().contains("enough"), "{}", deaf.text());
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_starts_does_not_run() {
    let token = CancelToken::new();
    token.cancel("never mind");
    let cx = ToolContext::new().with_cancel(token);
    let outcome = outcome_with(body("t", |_| panic!("it ran")), &cx).await;
    assert_eq!(code(&outcome), "aborted");
}

#[tokio::test]
async fn missing_state_is_an_outcome_and_found_before() {
    let wants = vec![StateKey::of::<u32>(), StateKey::of::<str>()];
    let tool = requiring("wants", wants, |cx| {
        let n = cx.get::<u32>().copied();
        Box::pin(async move { text(&format!("{n:?}")) })
    });
    let registry = Registry::new(tools![{ tool }]).unwrap();
    let call = ToolCall::new("c", "wants", "{}");

    let problems = registry.check_state(&ToolContext::new()).unwrap_err().to_string();
    assert_eq!(problems.lines().count(), 2, "{problems}");
    assert!(
        problems.contains("`wants`") && problems.contains("`u32`") && problems.contains("`str`"),
        "{problems}"
    );
    let outcome = registry.call(&call, &ToolContext::new()).await.outcome;
    assert_eq!(code(&outcome), "tool_error");
    assert!(!outcome.text().contains("u32"), "the model has no use for our types: {}", outcome.text());

    // The run's state shadows the registry's.
    let registry = registry.with_state(1_u32).unwrap().with_shared_state::<str>("x".into()).unwrap();
    registry.check_state(&ToolContext::new()).unwrap();
    assert_eq!(registry.call(&call, &ToolContext::new()).await.outcome.text(), "Some(1)");
    let cx = ToolContext::new().with_state(2_u32).unwrap();
    assert_eq!(registry.call(&call, &cx).await.outcome.text(), "Some(2)");
    assert!(registry.with_state(3_u32).unwrap_err().to_string().contains("given twice"));
}

#[tokio::test]
async fn a_tool_may_keep_its_errors_to_itself() {
    let mut tool = body("t", |_| Box::pin(async { ToolError::new("password is hunter2").into() }));
    tool = tool.configure(ToolOptions::redact_errors).unwrap();
    let outcome = outcome(tool).await;
    assert_eq!(code(&outcome), "tool_error");
    assert!(!outcome.text().contains("hunter2"));
}

#[tokio::test]
async fn errors_carry_what_they_mean() {
    let reply =
        |error: fn() -> ToolError| outcome(body("t", move |_| Box::pin(async move { error().into() })));
    assert!(matches!(reply(|| ToolError::retry("better")).await, ToolOutcome::Retry { .. }));
    assert_eq!(code(&reply(|| ToolError::denied("no")).await), "denied");
    assert_eq!(code(&reply(|| ToolError::new("x").with_code("quota")).await), "quota");
}

#[tokio::test]
async fn an_unknown_tool_is_told_what_there_is() {
    let mut registry = Registry::default();
    for name in ["get_weather", "get_time", "search"] {
        registry.register(body(name, |_| Box::pin(async { text("") }))).unwrap();
    }
    let result = registry.call(&ToolCall::new("c", "getWeather", "{}"), &ToolContext::new()).await;
    assert_eq!(result.outcome.code(), Some(OutcomeCode::UNKNOWN_TOOL.as_str()));
    let said = result.outcome.text().into_owned();
    assert!(said.contains(r#"did you mean "get_weather"?"#) && said.contains("get_time, search"), "{said}");
    let long = "x".repeat(100_000);
    let said = registry.call(&ToolCall::new("c", long, "{}"), &ToolContext::new()).await.outcome;
    assert!(said.text().len() < 500);
}

#[test]
fn a_registry_keeps_order_and_refuses_twins() {
    let tool = |name| body(name, |_| Box::pin(async { text("") }));
    let mut registry = Registry::new(tools![{ tool("b") }, { tool("a") }]).unwrap();
    registry.register(tool("c")).unwrap();
    assert_eq!(registry.names().collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(registry.definitions().len(), 3);
    assert!(registry.contains("a") && registry.get("z").is_none() && registry.fetch("z").is_err());
    let copy = registry.clone();
    assert!(registry.register(tool("a")).unwrap_err().to_string().contains("two tools are named `a`"));
    assert_eq!((registry.len(), copy.len()), (3, 3));
    let subset = registry.subset(["c", "b"]).unwrap();
    assert_eq!(subset.names().collect::<Vec<_>>(), ["c", "b"]);
    assert!(registry.subset(["c", "q"]).unwrap_err().to_string().contains('q'));
    // Everything that is wrong, at once.
    let error =
        Registry::new(tools![{ tool("a") }, { tool("a") }, { tool("b") }, { tool("b") }]).unwrap_err();
    assert_eq!(error.problems().len(), 2);
    assert!(Registry::new(ToolSet::default()).unwrap().is_empty());
}

#[tokio::test]
async fn a_dynamic_tool_goes_through_the_same_engine() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0}, "mode": {"enum": ["fast", "slow"]}},
        "required": ["n"], "additionalProperties": false,
    });
    let run = |args: Value, cx: ToolContext| async move {
        let n = args["n"].as_i64().ok_or_else(|| ToolError::retry("n"))?;
        Ok::<_, ToolError>(format!("{} {}", n * 2, cx.call_id()))
    };
    let tool = Tool::new("double", "Doubles.", schema.clone(), run).unwrap();
    assert_eq!(tool.definition().parameters(), &schema, "it goes out as it was given");
    let registry = Registry::new(tools![{ tool }]).unwrap();
    let call = |args: &str| {
        let (registry, call) = (registry.clone(), ToolCall::new("c9", "double", args));
        async move { registry.call(&call, &ToolContext::new()).await }
    };
    let result = call(r#"{"n": "21"}"#).await;
    assert_eq!((&*result.outcome.text(), result.coercions.len()), ("42 c9", 1));
    let accepted = registry.validate(&ToolCall::new("c9", "double", r#"{"n": "21"}"#)).unwrap();
    let shown = format!("{accepted:?}");
    assert!(shown.contains("/n") && !shown.contains("21"), "values may be secret: {shown}");
    let refused = call(r#"{"n": -1, "mod": "fast"}"#).await.outcome;
    assert_eq!(code(&refused), "invalid_arguments");
    assert!(refused.text().contains(r#"did you mean "mode"?"#), "{}", refused.text());

    let remote = json!({"type": "object", "properties": {"v": {"$ref": "https://example.com/v.json"}}});
    let bad = Tool::new("bad", "Bad.", remote, run).unwrap_err().to_string();
    assert!(bad.contains("`$ref`") && bad.contains("/properties/v"), "{bad}");
    assert!(Tool::new("bad name", "Bad.", schema.clone(), run).is_err());
    assert!(Tool::new("blank", " ", schema, run).is_err());
}

#[tokio::test]
async fn metadata_stays_with_the_application() {
    let tool =
        body("t", |_| Box::pin(async { ToolOutput::text("seen").with_metadata("secret", "unseen").into() }));
    let mut registry = Registry::default();
    registry.register(tool).unwrap();
    let result = registry.call(&ToolCall::new("c", "t", ""), &ToolContext::new()).await;
    let message = result.to_message().unwrap();
    assert_eq!(message.metadata["secret"], "unseen");
    assert!(!serde_json::to_string(&message.content).unwrap().contains("unseen"));
    assert_eq!(message.text(), "seen");
}

#[test]
fn the_parts_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Registry>();
    shared::<ToolContext>();
    shared::<CancelToken>();
    shared::<ToolDefinition>();
    shared::<ToolOutcome>();
    shared::<Tool>();
}

#[tokio::test]
async fn dropping_a_call_tells_the_work_it_started() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let tool = body("t", |cx| {
        let token = cx.cancel_token().clone();
        tokio::spawn(async move {
            token.cancelled().await;
            TOLD.store(true, Ordering::SeqCst);
        });
        Box::pin(pending())
    });
    let mut registry = Registry::default();
    registry.register(tool).unwrap();
    let (call, cx) = (ToolCall::new("c", "t", "{}"), ToolContext::new());
    assert!(tokio::time::timeout(Duration::from_millis(20), registry.call(&call, &cx)).await.is_err());
    tokio::time::timeout(Duration::from_secs(60), async {
        while !TOLD.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert!(!cx.is_cancelled(), "the caller's own token is the caller's");
}

#[tokio::test]
async fn a_call_from_within_a_call_has_its_own_idempotency_key() {
    let say = |cx: &ToolContext| text(cx.idempotency_key());
    let mut inner = Registry::default();
    inner.register(body("inner", move |cx| Box::pin(std::future::ready(say(cx))))).unwrap();
    let outer = body("outer", move |cx| {
        let inner = inner.clone();
        Box::pin(async move {
            let nested = inner.call(&ToolCall::new("n1", "inner", "{}"), cx).await;
            text(&format!("{} {}", cx.idempotency_key(), nested.outcome.text()))
        })
    });
    // The id of a call that has no key is its key, and a call that is about to run is not within itself.
    let with_id = ToolContext::new().with_call_id("c");
    assert_eq!(outer.call("{}", &with_id).await.outcome.text(), "c c/n1");
    let with_key = with_id.with_idempotency_key("k");
    assert_eq!(outer.call("{}", &with_key).await.outcome.text(), "k k/n1");
    let cx = ToolContext::new().with_idempotency_key("run/1/tool/0");
    assert_eq!(outcome_with(outer, &cx).await.text(), "run/1/tool/0 run/1/tool/0/n1");
}

#[tokio::test(start_paused = true)]
async fn who_was_told_to_stop_is_not_late() {
    let token = CancelToken::new();
    let cx = ToolContext::new()
        .with_cancel(token.clone())
        .with_default_timeout(Duration::from_millis(300))
        .with_cancel_grace(Duration::from_secs(2));
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        token.cancel("enough");
    });
    assert_eq!(code(&outcome_with(body("t", |_| Box::pin(pending())), &cx).await), "aborted");
}

#[tokio::test]
async fn a_panic_of_what_a_tool_says_about_itself_is_an_outcome_too() {
    struct Shy;
    impl ToolBody for Shy {
        fn call<'a>(&'a self, _: &'a AcceptedArguments, _: &'a ToolContext) -> BoxFuture<'a, ToolOutcome> {
            Box::pin(async { text("ran") })
        }
        fn requires(&self) -> &[StateKey] {
            panic!("not telling")
        }
    }
    assert_eq!(code(&outcome(Tool::from_body(definition("shy"), Shy)).await), "panic");
}

#[test]
fn arguments_are_in_no_debug_text() {
    let schema = json!({"type": "object", "properties": {"card": {"type": "string"}}});
    let pay = Tool::new("pay", "Pays.", schema, |_: Value, _: ToolContext| async {}).unwrap();
    let registry = Registry::new(tools![{ pay }]).unwrap();
    let call = ToolCall::new("c", "pay", r#"{"card": "4111"}"#);
    let checked = registry.validate(&call).unwrap();
    assert_eq!(checked.value()["card"], "4111");
    let delta =
        agent::model::ModelEvent::ToolCallDelta { content_index: 0, delta: r#"{"card": "4111"}"#.into() };
    let message = agent::message::Message::assistant(vec![agent::message::Part::tool_call(
        "c",
        "pay",
        call.args.clone(),
    )]);
    for said in [format!("{call:?}"), format!("{checked:?}"), format!("{delta:?}"), format!("{message:?}")] {
        assert!(!said.contains("4111"), "{said}");
    }
}
