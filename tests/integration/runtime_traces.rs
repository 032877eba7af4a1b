//! The spans of a run: their names and attributes are those of the OpenTelemetry conventions for generative AI, and what is
//! said is not in them unless the application asks for it.

use agent::message::Usage;
use agent::model::{ModelError, ModelErrorKind, ModelInfo, reply};
use agent::{Assistant, Decision, ScriptedModel, ToolContext, ToolSet, tool, tools};

use crate::assistant_support::assistant;
use crate::trace_support::{Traces, hear};

const SECRET: &str = "my password is tulip";

fn model() -> ScriptedModel {
    let info = ModelInfo::new("acme", "acme-chat", "a-1");
    let scripts = [
        reply()
            .text("let me see")
            .tool_call("double", r#"{"value": 1234567}"#)
            .tool_call("boom", "{}")
            .usage(Usage::new(12, 34)),
        reply().text(SECRET).usage(Usage::new(50, 6)),
    ];
    ScriptedModel::new(scripts).with_info(info)
}

async fn traced(capture: bool) -> Traces {
    let traces = Traces::default();
    let _guard = hear(traces.clone());
    let builder = assistant(&model()).request(|request| request.with_max_tokens(500));
    let builder = if capture { builder.capture_content() } else { builder };
    builder.build().unwrap().prompt(SECRET).session_id("s-1").await.unwrap();
    traces
}

#[tokio::test]
async fn spans_have_the_names_and_attributes_of_the_conventions() {
    let traces = traced(false).await;
    let spans = traces.spans.lock().unwrap().clone();
    let names: Vec<_> = spans.iter().map(|span| span.name).collect();
    assert_eq!(names, ["invoke_agent", "turn", "chat", "execute_tool", "execute_tool", "turn", "chat"]);
    let parents: Vec<_> = spans.iter().map(|span| span.parent).collect();
    assert_eq!(
        parents,
        [None, Some(1), Some(2), Some(2), Some(2), Some(1), Some(6)],
        "to the run, by its turns"
    );
    let has = |at: usize, wanted: &[(&str, &str)]| {
        for (key, value) in wanted {
            let found = spans[at].fields.get(key).map(String::as_str);
            assert_eq!(found, Some(*value), "{} {key}: {:?}", spans[at].name, spans[at].fields);
        }
    };
    has(
        0,
        &[
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.provider.name", "acme"),
            ("gen_ai.request.model", "a-1"),
            ("gen_ai.conversation.id", "s-1"),
            ("gen_ai.usage.input_tokens", "62"),
            ("gen_ai.usage.output_tokens", "40"),
            ("agent.run.stop", "completed"),
        ],
    );
    has(1, &[("otel.name", "turn 1"), ("agent.turn", "1")]);
    has(
        2,
        &[
            ("otel.name", "chat a-1"),
            ("otel.kind", "client"),
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "acme"),
            ("gen_ai.request.model", "a-1"),
            ("gen_ai.request.max_tokens", "500"),
            ("gen_ai.response.finish_reasons", r#"["tool_call"]"#),
            ("gen_ai.usage.input_tokens", "12"),
            ("gen_ai.usage.output_tokens", "34"),
        ],
    );
    has(
        3,
        &[
            ("otel.name", "execute_tool double"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "double"),
            ("gen_ai.tool.type", "function"),
            ("gen_ai.tool.call.id", "call_1"),
        ],
    );
    assert!(!spans[3].fields.contains_key("error.type"));
    has(4, &[("gen_ai.tool.name", "boom"), ("error.type", "tool_error")]);
    let said = format!("{spans:?} {:?}", traces.events.lock().unwrap());
    for content in ["tulip", "let me see", "1234567", "2469134", "kaput"] {
        assert!(!said.contains(content), "{content} is in the traces: {said}");
    }
}

/// Closes an account.
#[tool(approval = "always")]
fn close_account() -> String {
    "closed".to_owned()
}

#[tokio::test]
async fn a_call_that_somebody_denies_has_a_span() {
    let traces = Traces::default();
    let _guard = hear(traces.clone());
    let model = ScriptedModel::new([reply().tool_call("close_account", "{}"), reply().text("Not closed.")]);
    let assistant = Assistant::builder(model)
        .tools(tools![close_account])
        .on_approval(|_| async { Decision::Deny("the tulip said no".to_owned()) })
        .build()
        .unwrap();
    assistant.prompt("Close it.").await.unwrap();
    let spans = traces.spans.lock().unwrap().clone();
    let calls: Vec<_> = spans.iter().filter(|span| span.name == "execute_tool").collect();
    assert_eq!(calls.len(), 1, "{spans:?}");
    assert_eq!(calls[0].fields.get("error.type").map(String::as_str), Some("denied"));
    assert_eq!(calls[0].fields.get("gen_ai.tool.name").map(String::as_str), Some("close_account"));
    assert!(!format!("{spans:?}").contains("tulip"));
}

#[tokio::test]
async fn what_is_said_is_traced_where_the_application_asks_for_it() {
    let traces = traced(true).await;
    let spans = traces.spans.lock().unwrap();
    let content = |at: usize, key| spans[at].fields.get(key).map(String::as_str).unwrap_or_default();
    assert_eq!((spans[2].name, spans[6].name), ("chat", "chat"));
    assert!(content(2, "gen_ai.input.messages").contains("tulip"));
    assert!(content(6, "gen_ai.output.messages").contains("tulip"));
}

#[tokio::test]
async fn a_request_that_fails_says_so_without_the_words_of_the_provider() {
    let traces = Traces::default();
    {
        let _guard = hear(traces.clone());
        let error = ModelError::new(ModelErrorKind::Connection, SECRET);
        let assistant = assistant(&ScriptedModel::new([reply().error(error)])).build().unwrap();
        assistant.prompt("go").await.unwrap_err();
    }
    let spans = traces.spans.lock().unwrap();
    assert_eq!(spans[2].fields.get("error.type").map(String::as_str), Some("transport"));
    assert_eq!(spans[0].fields.get("error.type").map(String::as_str), Some("error"));
    assert!(!format!("{spans:?}").contains("tulip"));
}

#[tokio::test]
async fn the_run_of_a_sub_agent_is_within_the_span_of_its_call() {
    let traces = Traces::default();
    let _guard = hear(traces.clone());
    let leaf = Assistant::builder(ScriptedModel::new(["leaf"])).build().unwrap();
    let asks = |tool: &str| reply().tool_call(tool, r#"{"task": "go"}"#);
    let model = ScriptedModel::new([asks("leaf"), reply().text("middle")]);
    let middle = Assistant::builder(model).tools(leaf.as_tool("leaf", "Thinks.")).build().unwrap();
    let model = ScriptedModel::new([asks("middle"), reply().text("root")]);
    let root = Assistant::builder(model).tools(middle.as_tool("middle", "Thinks.")).build().unwrap();
    root.prompt("go").await.unwrap();
    let spans = traces.spans.lock().unwrap().clone();
    let parent = |at: usize| spans[at].parent.map(|id| usize::try_from(id).unwrap() - 1);
    let runs: Vec<usize> = (0..spans.len()).filter(|at| spans[*at].name == "invoke_agent").collect();
    assert_eq!(runs.len(), 3);
    // Above each run is its call, above that the turn of the run around it.
    for (inner, outer) in [(runs[2], runs[1]), (runs[1], runs[0])] {
        let call = parent(inner).unwrap();
        let turn = parent(call).unwrap();
        assert_eq!((spans[call].name, spans[turn].name, parent(turn)), ("execute_tool", "turn", Some(outer)));
    }
    assert_eq!(parent(runs[0]), None);
}

struct Sales(u64);

/// Returns a tenth of the sales.
#[tool]
fn tenth(sales: &Sales) -> u64 {
    sales.0 / 10
}

/// Logs in.
#[tool(unknown = "strip")]
fn log_in(user: String, #[arg(secret)] pin: String) -> String {
    format!("{user} {}", pin.len())
}

async fn call(set: ToolSet, name: &str, arguments: &str) -> Traces {
    let traces = Traces::default();
    let _guard = hear(traces.clone());
    crate::macro_support::outcome(set, name, arguments, &ToolContext::new()).await;
    traces
}

#[tokio::test]
async fn a_call_without_its_state_has_a_span() {
    let traces = call(tools![tenth], "tenth", "{}").await;
    let spans = traces.spans.lock().unwrap();
    assert_eq!((spans.len(), spans[0].name), (1, "execute_tool"));
    assert_eq!(spans[0].fields["error.type"], "tool_error");
}
