//! `#[tool]` on functions: name, docs, parameters, options.

#![expect(
    clippy::unused_async,
    clippy::non_minimal_cfg,
    reason = "tools are async where that is what is tested"
)]

use crate::macro_support::{definition, failure, property, text};
use agent::{Registry, ToolContext, ToolSet, tool, tool::Effect, tools};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Adds two
/// numbers.
///
/// * exactly
/// * at once
#[tool]
async fn add(
    /// First term,
    /// any size.
    a: i64,
    /** Second term. */
    b: i64,
) -> i64 {
    a + b
}

/// Adds without waiting.
#[tool]
fn add_now(a: i64, b: i64) -> i64 {
    a + b
}

/// Every kind of parameter.
#[tool]
#[expect(clippy::too_many_arguments, reason = "every kind")]
async fn kinds<'a>(
    text: &'a str,
    list: &[u32],
    cow: Cow<'_, str>,
    mut count: u8,
    maybe: Option<f64>,
    map: BTreeMap<String, i8>,
    r#type: bool,
    path: PathBuf,
    pair: (u8, char),
    #[arg(default = "none")] word: String,
    #[arg(default = Some(3))] some: Option<u8>,
    #[arg(default)] zero: u16,
    cx: &ToolContext,
) -> impl std::fmt::Display + serde::Serialize + use<'a> {
    count += 1;
    let rest = format!("{list:?} {cow} {count} {maybe:?} {map:?} {type} {} {pair:?}", path.display());
    let _ = text.len();
    format!("{rest} {word} {some:?} {zero} {}", cx.call_id())
}

#[tokio::test]
async fn async_and_sync_functions_are_called() {
    assert_eq!(text(tools![add], "add", r#"{"a": 40, "b": 2}"#).await, "42");
    assert_eq!(text(tools![add_now], "add_now", r#"{"a": 40, "b": 2}"#).await, "42");
}

#[tokio::test]
async fn the_function_stays_a_function() {
    assert_eq!(add(1, 2).await, 3);
    let plain: fn(i64, i64) -> i64 = add_now;
    assert_eq!(plain(1, 2), 3);
}

mod stays {
    /// Adds.
    #[agent::tool]
    #[inline]
    #[must_use]
    pub(crate) const fn sum(a: u8, b: u8) -> u8 {
        a + b
    }
}

#[test]
fn attributes_visibility_and_constness_stay() {
    use stays::sum;
    const SUM: u8 = sum(1, 2);
    assert_eq!(SUM, 3);
    assert_eq!(tools![sum].len(), 1);
}

#[tokio::test]
async fn every_kind_of_parameter_arrives() {
    let sent = r#"{"text": "t", "list": [1, 2], "cow": "c", "count": 1, "map": {"k": -1}, "type": true,
        "path": "a/b", "pair": [7, "x"]}"#;
    let got = text(tools![kinds], "kinds", sent).await;
    assert_eq!(got, r#"[1, 2] c 2 None {"k": -1} true a/b (7, 'x') none Some(3) 0 call_1"#);
}

#[test]
fn docs_are_the_description() {
    let definition = definition(tools![add]);
    assert_eq!(definition.name(), "add");
    assert_eq!(definition.description(), "Adds two numbers.\n* exactly\n* at once");
    let properties = &definition.parameters()["properties"];
    assert_eq!(properties["a"]["description"], "First term, any size.");
    assert_eq!(properties["b"]["description"], "Second term.");
    let names: Vec<_> = properties.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(definition.parameters()["required"], serde_json::json!(["a", "b"]));
}

#[test]
fn optional_and_defaulted_parameters_are_not_required() {
    let parameters = definition(tools![kinds]).parameters().clone();
    let required = parameters["required"].as_array().expect("a list").clone();
    let required: Vec<_> = required.iter().filter_map(|name| name.as_str()).collect();
    assert_eq!(required, ["text", "list", "cow", "count", "map", "type", "path", "pair"]);
    assert_eq!(parameters["properties"]["word"]["default"], "none");
    assert_eq!(parameters["properties"]["some"]["default"], 3);
}

/// Has every option.
#[tool(
    name = "all-options", description = "Said here.", title = "All options", read_only, destructive = false,
    idempotent, open_world = false, timeout = "1500ms", coerce = "lenient", unknown = "keep", redact_errors,
    type = AllOptions
)]
async fn all_options() -> Result<(), &'static str> {
    Err("a secret")
}

#[tokio::test]
async fn options_are_kept() {
    let registry = Registry::new(tools![AllOptions]).expect("sound");
    let tool = registry.get("all-options").expect("named so");
    let definition = tool.definition();
    assert_eq!(definition.description(), "Said here.");
    assert_eq!(definition.title(), Some("All options"));
    assert_eq!((definition.read_only(), definition.destructive()), (Some(true), Some(false)));
    assert_eq!((definition.idempotent(), definition.open_world()), (Some(true), Some(false)));
    assert_eq!(tool.policy().effect, Effect::Pure);
    assert_eq!(tool.policy().timeout, Some(Duration::from_millis(1500)));
    let options = definition.plan().options();
    assert_eq!(
        (options.policy(), options.unknown_keys().as_str()),
        (agent::args::CoercionPolicy::lenient(), "keep")
    );
    assert!(!failure(tools![AllOptions], "all-options", "{}").await.1.contains("secret"));
    assert!(all_options().await.is_err());
}

/// Idempotent.
#[tool(idempotent, description = "Instead of the docs.")]
fn idempotent() {}

#[test]
fn an_idempotent_tool_has_that_effect() {
    let registry = Registry::new(tools![idempotent]).expect("sound");
    let tool = registry.get("idempotent").expect("there");
    assert_eq!(tool.policy().effect, Effect::Idempotent);
    assert_eq!(tool.definition().description(), "Instead of the docs.");
}

/// Where it runs.
#[tool]
fn where_blocking(cx: &ToolContext) -> bool {
    cx.get::<ThreadId>() == Some(&thread::current().id())
}

/// Where it runs.
#[tool(inline)]
fn where_inline(cx: &ToolContext) -> bool {
    cx.get::<ThreadId>() == Some(&thread::current().id())
}

/// An executor with a thread for each piece of work.
#[derive(Debug)]
struct Threads;
impl tool::Executor for Threads {
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> agent::BoxFuture<'static, ()> {
        Box::pin(async move { thread::spawn(work).join().expect("work does not panic") })
    }
    fn sleep(&self, _: Duration) -> Option<agent::BoxFuture<'static, ()>> {
        None
    }
}

fn on_threads() -> ToolContext {
    ToolContext::new()
        .with_state(thread::current().id())
        .expect("one")
        .with_executor(std::sync::Arc::new(Threads))
}

#[tokio::test]
async fn synchronous_bodies_leave_the_thread_unless_inline() {
    let set = || tools![where_blocking, where_inline];
    let call = |name: &'static str| async move {
        crate::macro_support::outcome(set(), name, "", &on_threads()).await.text().into_owned()
    };
    assert_eq!(call("where_blocking").await, "false");
    assert_eq!(call("where_inline").await, "true");
}

/// Panics.
#[tool]
fn panics(#[arg(default, name = "n")] _n: u8) -> u8 {
    panic!("on purpose {}", 1)
}

/// Panics later.
#[tool]
async fn panics_later() -> u8 {
    tokio::task::yield_now().await;
    panic!("on purpose")
}

#[tokio::test]
async fn panics_are_outcomes() {
    for (set, name) in [(tools![panics], "panics"), (tools![panics_later], "panics_later")] {
        let (code, text) = failure(set, name, "{}").await;
        assert_eq!(code, "panic");
        assert!(!text.contains("on purpose"));
    }
    let outcome = crate::macro_support::outcome(tools![panics], "panics", "{}", &on_threads()).await;
    assert_eq!(outcome.code(), Some("panic"));
}

/// Takes either.
#[tool]
fn conditional(
    #[cfg(all())] here: u8,
    #[cfg(any())] gone: NoSuchType,
    #[cfg(any())] gone_state: &NoSuchType,
    #[cfg(all())] cx: &ToolContext,
) -> String {
    format!("{here} {}", cx.call_id())
}

/// Is not there.
#[cfg(any())]
#[tool]
fn never(a: NoSuchType) {}

/// Is not there either.
#[tool]
#[cfg(any())]
fn never_again(a: NoSuchType) {}

#[tokio::test]
async fn cfg_is_honoured() {
    assert_eq!(text(tools![conditional], "conditional", r#"{"here": 1}"#).await, "1 call_1");
    let set: ToolSet = tools![
        conditional,
        #[cfg(any())]
        never,
        #[cfg(any())]
        NoSuchType::new()?,
        #[cfg(any())]
        &no_such_macro!().field,
    ];
    assert_eq!(set.len(), 1);
}

macro_rules! make_tool {
    ($name:ident, $text:literal, $ty:ty, $default:expr) => {
        #[doc = $text]
        #[tool(description = $text)]
        fn $name(#[arg(default = $default, range(1..=$default))] n: $ty) -> $ty {
            n
        }
    };
}
make_tool!(made, "Made by a macro.", u8, 7);

#[tokio::test]
async fn tools_made_by_a_macro_work() {
    assert_eq!(text(tools![made], "made", "{}").await, "7");
    assert_eq!(property(tools![made], "n")["maximum"], 7);
    assert_eq!(definition(tools![made]).description(), "Made by a macro.");
}

#[tokio::test]
async fn a_tool_inside_of_a_function() {
    /// Local.
    #[tool]
    fn local(a: u8) -> u8 {
        a
    }
    assert_eq!(text(tools![local], "local", r#"{"a": 1}"#).await, "1");
    assert_eq!(local(1), 1);
}

mod inner {
    pub(super) mod search {
        /// Searches.
        #[agent::tool(type = SearchTool)]
        pub(crate) fn search(#[arg(rename = "q", alias = "query")] words: &str) -> usize {
            words.len()
        }
    }
    pub(super) use search::{SearchTool, search};
}

#[tokio::test]
async fn the_type_can_be_named() {
    assert_eq!(text(tools![inner::SearchTool], "search", r#"{"query": "abc"}"#).await, "3");
    assert_eq!(inner::search("abcd"), 4);
    assert_eq!(property(tools![inner::SearchTool], "q")["type"], "string");
    assert_eq!(property(tools![inner::SearchTool], "query"), serde_json::Value::Null);
}
