//! One result cache for several assistants, and the tools that a cache leaves out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agent::ScriptedModel;
use agent::durable::Service;
use agent::model::reply;
use agent::{
    Assistant, AssistantBuilder, BeforeCall, Tool, ToolContext, ToolError, ToolSet, Value, hooks::AfterCall,
    json, message::Part, run::ResultCache, tool, tool::Source, tools,
};

use crate::trace_support::{Traces, hear};

#[derive(Default)]
struct Runs(AtomicU32);

impl Runs {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

struct Customer(&'static str);

/// Reads.
#[tool(inline, read_only)]
fn read(n: u32, runs: &Runs) -> String {
    format!("{n} read in run {}", runs.next())
}

/// Reads what belongs to a customer.
#[tool(inline, read_only)]
fn orders(customer: &Customer, runs: &Runs) -> String {
    format!("orders of {} in run {}", customer.0, runs.next())
}

/// Reads whatever is there.
#[tool(inline, read_only)]
fn own(cx: &ToolContext, runs: &Runs) -> String {
    format!("{} in run {}", cx.get::<Customer>().map_or("nobody", |customer| customer.0), runs.next())
}

/// Finds nothing.
#[tool(inline, read_only)]
fn nothing(runs: &Runs) -> Option<u32> {
    runs.next();
    None
}

/// Fails.
#[tool(inline, read_only)]
fn fail(runs: &Runs) -> Result<u32, ToolError> {
    Err(ToolError::new(format!("failed in run {}", runs.next())))
}

/// Writes.
#[tool(inline)]
fn write(n: u32) -> u32 {
    n
}

/// Says the time.
#[tool(inline, read_only, cache = false)]
fn time() -> u32 {
    0
}

/// Every prompt makes this call, and is answered with its result.
fn calling(tool: &'static str, args: &'static str) -> ScriptedModel {
    ScriptedModel::from_fn(move |request| match request.messages.last().and_then(|m| m.as_tool_result()) {
        Some(result) => reply().text(result.text()),
        None => reply().tool_call(tool, args),
    })
}

fn builder(
    tool: &'static str,
    args: &'static str,
    runs: &Arc<Runs>,
    cache: &ResultCache,
) -> AssistantBuilder {
    Assistant::builder(calling(tool, args))
        .tools(tools![read, orders, own, nothing, fail])
        .shared_state(runs.clone())
        .cache_results_in(cache)
}

async fn text(assistant: &Assistant) -> String {
    assistant.prompt("go").await.unwrap().text()
}

#[tokio::test]
async fn assistants_share_the_results_of_one_cache() {
    let (runs, cache) = (Arc::<Runs>::default(), ResultCache::new());
    let customer = Arc::new(Customer("ann"));
    let assistant =
        |args| builder("read", args, &runs, &cache).shared_state(customer.clone()).build().unwrap();
    let (one, other) = (assistant(r#"{"n": 1}"#), assistant(r#"{"n": "1"}"#));
    assert_eq!(text(&one).await, "1 read in run 1");
    assert_eq!(
        (text(&other).await, text(&other.fork()).await),
        ("1 read in run 1".into(), "1 read in run 1".into())
    );
    assert_eq!(text(&assistant(r#"{"n": 2}"#)).await, "2 read in run 2");
    // Each assistant without a shared cache has its own, and another cache is another cache.
    let alone =
        || builder("read", r#"{"n": 1}"#, &runs, &ResultCache::new()).state(Customer("ann")).build().unwrap();
    assert_eq!(
        (text(&alone()).await, text(&alone()).await),
        ("1 read in run 3".into(), "1 read in run 4".into())
    );
    // What belongs to others stays when one starts over.
    one.reset().await;
    assert_eq!((text(&one).await, cache.len()), ("1 read in run 1".into(), 2));
    cache.clear();
    assert_eq!((cache.len(), text(&one).await), (0, "1 read in run 5".into()));
    assert!(!format!("{cache:?}").contains("read"));
}

#[tokio::test]
async fn owners_are_the_same_whichever_assistant_asks() {
    let (runs, cache) = (Arc::<Runs>::default(), ResultCache::new());
    let assistant = || builder("read", r#"{"n": 1}"#, &runs, &cache).state(Customer("ann")).build().unwrap();
    let (one, other) = (assistant(), assistant());
    let source = Source::new("ann");
    for (assistant, run) in [(&one, 1), (&other, 1)] {
        let output = assistant.prompt("go").session_id("s").source(source.clone()).await.unwrap();
        assert_eq!(output.text(), format!("1 read in run {run}"));
    }
    let output = other.prompt("go").session_id("s").source(Source::new("ann")).await.unwrap();
    assert_eq!(output.text(), "1 read in run 2");
    assert_eq!(other.prompt("go").session_id("t").await.unwrap().text(), "1 read in run 3");
}

#[tokio::test]
async fn state_that_is_not_the_same_keeps_results_apart() {
    for tool in ["orders", "own"] {
        let (runs, cache) = (Arc::<Runs>::default(), ResultCache::new());
        for (name, run) in [("ann", 1), ("bob", 2)] {
            let assistant = builder(tool, "{}", &runs, &cache).state(Customer(name)).build().unwrap();
            for _ in 0..2 {
                let said = text(&assistant).await;
                assert!(said.contains(name) && said.ends_with(&format!("in run {run}")), "{tool}: {said}");
            }
        }
        // One value is one value, whoever has it.
        let shared = Arc::new(Customer("eve"));
        for _ in 0..2 {
            let assistant = builder(tool, "{}", &runs, &cache).shared_state(shared.clone()).build().unwrap();
            assert!(text(&assistant).await.ends_with("in run 3"), "{tool}");
        }
    }
}

#[tokio::test]
async fn hooks_are_not_passed_over_for_what_another_assistant_knows() {
    let (runs, cache) = (Arc::<Runs>::default(), ResultCache::new());
    let builder = || builder("read", r#"{"n": 1}"#, &runs, &cache).state(Customer("ann"));
    assert_eq!(text(&builder().build().unwrap()).await, "1 read in run 1");
    let hidden = builder()
        .after_tool_call(|_, _| async {
            Ok(AfterCall { content: Some(vec![Part::text("hidden")]), ..AfterCall::default() })
        })
        .build()
        .unwrap();
    assert_eq!(
        (text(&hidden).await, text(&hidden.fork()).await, runs.count()),
        ("hidden".into(), "hidden".into(), 2)
    );
    assert_eq!(text(&builder().build().unwrap()).await, "1 read in run 1");
    let blocked = builder().before_tool_call(|_| async { Ok(BeforeCall::block("not you")) }).build().unwrap();
    assert_eq!((text(&blocked).await, runs.count()), ("not you".into(), 2));
}

#[tokio::test]
async fn failures_are_not_kept_and_nothing_is() {
    for (tool, ran) in [("fail", 2), ("nothing", 1)] {
        let (runs, cache) = (Arc::<Runs>::default(), ResultCache::new());
        for _ in 0..2 {
            text(&builder(tool, "{}", &runs, &cache).state(Customer("ann")).build().unwrap()).await;
        }
        assert_eq!(runs.count(), ran, "{tool}");
    }
}

#[tokio::test]
async fn a_tool_whose_parameters_are_others_is_another_tool() {
    let (runs, cache) = (Arc::<Runs>::default(), ResultCache::new());
    for (schema, said) in [
        (json!({"type": "object"}), "1"),
        (json!({"type": "object", "properties": {"n": {"type": "integer"}}}), "2"),
        (json!({"type": "object"}), "1"),
    ] {
        let count = runs.clone();
        let body = move |_: Value, _: ToolContext| {
            let text = count.next().to_string();
            async move { text }
        };
        let tool = Tool::new("count", "Counts.", schema, body).unwrap();
        let tools = ToolSet::new().with(tool.configure(|options| options.cache(true)).unwrap());
        let assistant =
            Assistant::builder(calling("count", "{}")).tools(tools).cache_results_in(&cache).build().unwrap();
        assert_eq!(text(&assistant).await, said);
    }
}

#[tokio::test]
async fn tools_that_are_left_out_are_named_with_the_reason() {
    let traces = Traces::default();
    let _guard = hear(traces.clone());
    let runs = Arc::<Runs>::default();
    let all = || {
        Assistant::builder(ScriptedModel::new(["Hello!"]))
            .tools(tools![read, orders, own, write, time])
            .shared_state(runs.clone())
            .state_per_prompt::<Customer>()
    };
    let assistant = all().cache_results().build().unwrap();
    let left_out = |assistant: &Assistant| assistant.uncached_tools().to_vec();
    let named = |reasons: &[(&str, &'static str)]| -> Vec<(String, &'static str)> {
        reasons.iter().map(|(tool, reason)| ((*tool).to_owned(), *reason)).collect()
    };
    let expected = named(&[
        ("orders", "the tool may read state that each prompt brings"),
        ("own", "the tool may read state that each prompt brings"),
        ("write", "the tool is neither `read_only` nor `idempotent`"),
        ("time", "the tool is declared with `cache = false`"),
    ]);
    assert_eq!(left_out(&assistant), expected);
    let told: Vec<_> =
        traces.events.lock().unwrap().iter().filter_map(|(_, fields)| fields.get("tools").cloned()).collect();
    assert_eq!(told.len(), 1, "one line: {told:?}");
    for (tool, reason) in &expected {
        assert!(told[0].contains(&format!("`{tool}`: {reason}")), "{told:?}");
    }
    let hooked =
        all().cache_results().before_tool_call(|_| async { Ok(BeforeCall::Continue) }).build().unwrap();
    assert!(
        left_out(&hooked).contains(&("read".to_owned(), "the hooks may read state that each prompt brings"))
    );
    // Nothing is left out where nothing is kept, or where nothing stands against it.
    assert_eq!(left_out(&all().build().unwrap()), []);
    let plain = Assistant::builder(ScriptedModel::new(["Hello!"]))
        .tools(tools![read, own])
        .shared_state(runs.clone());
    assert_eq!(left_out(&plain.cache_results().build().unwrap()), []);
    let count = || traces.events.lock().unwrap().len();
    let before = count();
    let _ =
        Service::new(&Assistant::builder(ScriptedModel::new(["Hello!"])).cache_results().build().unwrap())
            .unwrap();
    let events = traces.events.lock().unwrap();
    assert!(format!("{:?}", &events[before..]).contains("durable runs keep no results"), "{events:?}");
}
