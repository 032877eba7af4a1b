//! Unusual ways to write a signature, and further blocks of one type.

#![expect(clippy::needless_pass_by_value, reason = "tools as people write them")]

use crate::macro_support::{definition, failure, outcome, property, text};
use agent::{Registry, ToolArgs, ToolContext, tool, tools};
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;

#[derive(ToolArgs, Default)]
struct Point {
    x: i32,
    y: i32,
}

/// Takes the whole apart.
#[tool]
fn apart(Point { x, y }: Point, cx: &ToolContext) -> String {
    format!("{x} {y} {}", cx.call_id())
}

/// Does not look.
#[tool]
fn ignored(_: Point) -> &'static str {
    "seen nothing"
}

/// Takes a named one apart.
#[tool]
fn named(#[arg(name = "at")] Point { x, y }: Point, #[arg(name = "by")] (dx, dy): (i32, i32)) -> String {
    format!("{} {}", x + dx, y + dy)
}

#[tokio::test]
async fn patterns() {
    assert_eq!(text(tools![apart], "apart", r#"{"x": 1, "y": 2}"#).await, "1 2 call_1");
    assert_eq!(text(tools![ignored], "ignored", r#"{"x": 1, "y": 2}"#).await, "seen nothing");
    assert_eq!(text(tools![named], "named", r#"{"at": {"x": 1, "y": 2}, "by": [3, 4]}"#).await, "4 6");
    assert_eq!(apart(Point { x: 1, y: 2 }, &ToolContext::new()), "1 2 ");
}

fn parsed(text: String) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("{text} is no address"))
}

fn host(text: String) -> Result<Host, &'static str> {
    if text.is_empty() { Err("no host") } else { Ok(Host(text)) }
}

/// Has neither serde's nor schemars' impls.
struct Host(String);

#[derive(ToolArgs)]
struct Target {
    #[arg(with(host as String), length(..=20), description = "Where.")]
    host: Host,
    #[arg(skip)]
    hops: Option<&'static str>,
    #[arg(skip, default = 3)]
    tries: u8,
    #[arg(with(parsed as String), default = IpAddr::from([127, 0, 0, 1]))]
    from: IpAddr,
}

/// Pings.
#[tool]
fn ping(target: Target) -> String {
    format!("{} {:?} {} {}", target.host.0, target.hops, target.tries, target.from)
}

/// Traces.
#[tool]
fn trace(#[arg(with(host as String), example = "localhost")] to: Host, #[arg(default)] ttl: u8) -> String {
    format!("{} {ttl}", to.0)
}

#[tokio::test]
async fn another_type_is_sent_than_is_taken() {
    assert_eq!(text(tools![ping], "ping", r#"{"host": "h", "from": "::1"}"#).await, "h None 3 ::1");
    assert_eq!(text(tools![ping], "ping", r#"{"host": "h"}"#).await, "h None 3 127.0.0.1");
    assert_eq!(text(tools![trace], "trace", r#"{"to": "h"}"#).await, "h 0");
    let (code, why) = failure(tools![ping], "ping", r#"{"host": "h", "from": "x"}"#).await;
    assert_eq!(code, "invalid_arguments");
    assert!(why.contains("/from: x is no address"), "{why}");
    let host = property(tools![ping], "host");
    assert_eq!(host, json!({"type": "string", "description": "Where.", "maxLength": 20}));
    assert_eq!(definition(tools![ping]).parameters()["required"], json!(["host"]));
    assert_eq!(property(tools![trace], "to")["examples"], json!(["localhost"]));
}

#[derive(ToolArgs)]
struct Route {
    /// How far.
    #[arg(extend("x-unit" = "km", "x-more" = {"a": [1]}), example = 5, example({"not": "checked"}))]
    distance: u32,
}

/// Goes there.
#[tool]
fn go(route: Route, #[cfg(any())] never: NoSuchType, #[arg(extend("x-unit" = "h"))] hours: u8) -> u32 {
    route.distance + u32::from(hours)
}

#[test]
fn extensions_are_shown_where_nobody_minds() {
    let definition = definition(tools![go]);
    let distance = &definition.parameters()["properties"]["route"]["properties"]["distance"];
    assert_eq!((&distance["x-unit"], &distance["x-more"]), (&json!("km"), &json!({"a": [1]})));
    assert_eq!(distance["examples"], json!([5, {"not": "checked"}]));
    assert_eq!(definition.parameters()["properties"]["hours"]["x-unit"], "h");
    let strict = agent::schema::render(definition.plan(), agent::schema::Dialect::OpenAiStrict).schema;
    assert!(!strict.to_string().contains("x-unit"), "{strict}");
}

struct Files(String);

#[tool]
impl Files {
    /// Reads.
    #[tool(read_only)]
    fn read(&self) -> &str {
        &self.0
    }
}

#[tool(set = "admin")]
impl Files {
    /// Throws away.
    #[tool(destructive)]
    fn wipe(&self, cx: &ToolContext) -> String {
        format!("{} {}", self.0, cx.call_id())
    }
}

#[tool(set = "spare")]
impl Files {
    /// Copies.
    #[tool]
    fn copy(&self, times: u8) -> String {
        self.0.repeat(times.into())
    }
}

struct Boxed<T>(T);

#[tool(set = "inner")]
impl<T: std::fmt::Debug + Send + Sync + 'static> Boxed<T> {
    /// Shows it.
    #[tool]
    fn show(&self) -> String {
        format!("{:?}", self.0)
    }
}

#[tokio::test]
async fn further_blocks_name_their_set() {
    let files = Arc::new(Files("f".into()));
    let set = || tools![files.clone(), files.admin(), files.spare(), Arc::new(Boxed(3)).inner()];
    let registry = Registry::new(set()).expect("sound");
    assert_eq!(registry.names().collect::<Vec<_>>(), ["read", "wipe", "copy", "show"]);
    assert_eq!(text(set(), "wipe", "").await, "f call_1");
    assert_eq!(text(set(), "copy", r#"{"times": 2}"#).await, "ff");
    assert_eq!(text(set(), "show", "").await, "3");
    assert_eq!(text(tools![files.clone()], "read", "").await, "f");
}

/// Also instrumented above.
#[tracing::instrument(skip_all)]
#[tool]
async fn above(
    /// A word.
    word: String,
    cx: &ToolContext,
) -> String {
    format!("{word} {}", cx.call_id())
}

/// And below.
#[tool]
#[tracing::instrument(skip(cx))]
async fn below(
    /// A word.
    #[arg(length(1..))]
    word: String,
    cx: &ToolContext,
) -> String {
    format!("{word} {}", cx.call_id())
}

#[tokio::test]
async fn instrumented() {
    assert_eq!(text(tools![above], "above", r#"{"word": "w"}"#).await, "w call_1");
    assert_eq!(text(tools![below], "below", r#"{"word": "w"}"#).await, "w call_1");
    assert_eq!(property(tools![above], "word")["description"], "A word.");
    assert_eq!(
        outcome(tools![below], "below", r#"{"word": ""}"#, &ToolContext::new()).await.code(),
        Some("invalid_arguments")
    );
}
