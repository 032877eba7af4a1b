//! What is measured and traced of calls, and what of their content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ScriptedModel;
use agent::message::{OutcomeKind, StopReason, Usage};
use agent::model::{ModelError, ModelErrorKind, ModelInfo, ModelRequest, reply};
use agent::{Assistant, AssistantBuilder, BeforeCall, Value, run::Metric, tool, tools};
use tokio::time::sleep;

use crate::trace_support::{Span, Traces, hear};

/// Sends money.
#[tool]
async fn transfer(
    to: String,
    #[arg(range(1..=100))] amount: u32,
    #[arg(default)] shares: BTreeMap<String, u32>,
) -> Result<String, String> {
    sleep(Duration::from_millis(40)).await;
    if to == "nobody" {
        Err("there is no such account, tulip".into())
    } else {
        Ok(format!("{amount} {}", shares.len()))
    }
}

/// Reads.
#[tool(read_only, cache)]
fn balance() -> u32 {
    5
}

const CALLS: [(&str, &str); 4] = [
    ("transfer", r#"{"to": "tulip", "amount": "5", "shares": {"tulip street": "7"}}"#),
    ("transfer", r#"{"amount": "tulip", "tulip": 1, "shares": {"12345678": "x"}}"#),
    ("tulip_tool", "{}"),
    ("balance", r#"{"blocked": "tulip"}"#),
];

fn model() -> ScriptedModel {
    let calls = CALLS.iter().fold(reply().text("tulip"), |reply, (name, args)| reply.tool_call(*name, *args));
    ScriptedModel::new([calls, reply().text("tulips for all")])
        .with_info(ModelInfo::new("acme", "chat", "a-1"))
}

/// Everything traced of a run whose calls are right, wrong, unknown and refused.
async fn traced(change: impl FnOnce(AssistantBuilder) -> AssistantBuilder) -> Traces {
    let traces = Traces::default();
    let _guard = hear(traces.clone());
    let builder = Assistant::builder(model()).system("The word is tulip.").tools(tools![transfer, balance]);
    change(builder).build().unwrap().prompt("tulip?").await.unwrap();
    traces
}

type Fields = BTreeMap<&'static str, String>;

/// The spans of calls, each with its events.
fn calls(traces: &Traces) -> Vec<(Span, Vec<Fields>)> {
    let (spans, events) = (traces.spans.lock().unwrap(), traces.events.lock().unwrap());
    let of = |at: usize| events.iter().filter(move |(span, _)| *span == Some(at as u64 + 1));
    let calls = spans.iter().enumerate().filter(|(_, span)| span.name == "execute_tool");
    calls.map(|(at, span)| (span.clone(), of(at).map(|(_, fields)| fields.clone()).collect())).collect()
}

fn shown(fields: &Fields) -> String {
    let shown: Vec<_> = fields.iter().map(|(key, value)| format!("{key}={value}")).collect();
    shown.join(" ")
}

#[tokio::test(start_paused = true)]
async fn coercions_and_faults_are_events_of_their_call_without_values() {
    let traces = traced(|builder| builder).await;
    let calls = calls(&traces);
    // Those that were refused come first: they end before any body runs.
    let found: Vec<_> = calls
        .iter()
        .map(|(span, _)| {
            (span.fields["gen_ai.tool.name"].as_str(), span.fields.get("error.type").map(String::as_str))
        })
        .collect();
    assert_eq!(
        found,
        [
            ("transfer", Some("invalid_arguments")),
            ("unknown", Some("unknown_tool")),
            ("balance", Some("invalid_arguments")),
            ("transfer", None)
        ]
    );
    let told = |at: usize| calls[at].1.iter().map(shown).collect::<Vec<_>>();
    let mut refused = told(0);
    refused.sort();
    assert_eq!(
        refused,
        [
            "agent.argument.code=missing agent.argument.path=/to message=agent.argument.refused",
            "agent.argument.code=type agent.argument.path=/amount message=agent.argument.refused",
            "agent.argument.code=type agent.argument.path=/shares/* message=agent.argument.refused",
            "agent.argument.code=unknown agent.argument.path=/* message=agent.argument.refused",
        ]
    );
    assert_eq!(
        told(3),
        [
            "agent.argument.path=/amount agent.argument.rule=text_to_integer message=agent.argument.coerced",
            "agent.argument.path=/shares/* agent.argument.rule=text_to_integer message=agent.argument.coerced",
        ]
    );
    let all = format!("{:?} {:?}", traces.spans.lock().unwrap(), traces.events.lock().unwrap());
    assert!(!all.contains("tulip") && !all.contains("12345678"), "{all}");
    let spans = traces.spans.lock().unwrap();
    assert!(
        calls
            .iter()
            .all(|(span, _)| spans[usize::try_from(span.parent.unwrap()).unwrap() - 1].name == "turn"),
        "{spans:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn captured_content_goes_through_the_application_first() {
    let plain = traced(AssistantBuilder::capture_content).await;
    let all = format!("{:?} {:?}", plain.spans.lock().unwrap(), plain.events.lock().unwrap());
    assert!(all.contains("tulip") && !all.contains("[word]"), "{all}");

    let redact = |path: &str, value: &mut Value| {
        if path.ends_with("/amount") {
            *value = "[amount]".into();
        } else if let Value::String(text) = value {
            *text = text.replace("tulip", "[word]");
        }
    };
    // Asked for twice, it is still redacted.
    let traces = traced(|builder| builder.capture_content_with(redact).capture_content()).await;
    let calls = calls(&traces);
    let (span, events) = &calls[3];
    assert_eq!(
        span.fields["gen_ai.tool.call.arguments"],
        r#"{"to":"[word]","amount":"[amount]","shares":{"tulip street":"7"}}"#
    );
    assert_eq!(span.fields["gen_ai.tool.call.result"], r#""5 1""#);
    assert_eq!((&*events[0]["agent.argument.from"], &*events[0]["agent.argument.to"]), (r#""5""#, "5"));
    let spans = traces.spans.lock().unwrap();
    let of = |key: &str| spans.iter().filter_map(|span| span.fields.get(key)).collect::<Vec<_>>();
    assert_eq!(of("gen_ai.system_instructions")[0], r#"[{"type":"text","content":"The word is [word]."}]"#);
    assert!(of("gen_ai.input.messages")[0].contains("[word]?"));
    // Values, but not the keys that the model made up: of those the documentation warns.
    let texts = of("gen_ai.output.messages");
    assert!(texts[1].contains("[word]s for all") && !texts[1].contains("tulip"), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn where_the_applications_function_panics_nothing_is_captured() {
    let traces =
        traced(|builder| builder.capture_content_with(|_, _| panic!("a closure of a test panics"))).await;
    let calls = calls(&traces);
    assert_eq!(calls.len(), 4);
    assert!(calls.iter().all(|(span, _)| !span.fields.contains_key("gen_ai.tool.call.arguments")));
    let spans = traces.spans.lock().unwrap();
    assert!(spans.iter().all(|span| !span.fields.contains_key("gen_ai.input.messages")));
}

/// Measures into a list.
fn measured(builder: AssistantBuilder) -> (Assistant, Arc<Mutex<Vec<Metric>>>) {
    let metrics: Arc<Mutex<Vec<Metric>>> = Arc::default();
    let sink = metrics.clone();
    let builder = builder.on_metric(move |metric| sink.lock().unwrap().push(metric.clone()));
    (builder.build().unwrap(), metrics)
}

/// Takes its time for each reply of these.
fn slowly(replies: Vec<agent::model::ScriptedReply>) -> ScriptedModel {
    let replies = Arc::new(Mutex::new(replies.into_iter()));
    ScriptedModel::from_async_fn(move |_: ModelRequest| {
        let reply = replies.lock().unwrap().next().unwrap();
        async move {
            sleep(Duration::from_millis(300)).await;
            reply
        }
    })
    .with_info(ModelInfo::new("acme", "chat", "a-1"))
}

#[tokio::test(start_paused = true)]
async fn every_request_and_call_is_measured_on_the_clock_of_the_runtime() {
    let model = slowly(vec![
        reply()
            .tool_call("transfer", r#"{"to": "a", "amount": "5"}"#)
            .tool_call("transfer", r#"{"to": "nobody", "amount": 5}"#)
            .tool_call("transfer", "{}")
            .tool_call("nothing", "{}")
            .usage(Usage::new(10, 5)),
        reply().tool_call("balance", "{}").tool_call("transfer", r#"{"to": "b", "amount": 1}"#),
        reply().tool_call("balance", "{}"),
        reply().text("done").usage(Usage::new(20, 7)),
    ]);
    let blocks = |call: agent::hooks::ToolCallInfo| async move {
        Ok(if call.args()["to"] == "b" { BeforeCall::block("no") } else { BeforeCall::Continue })
    };
    let builder = Assistant::builder(model).tools(tools![transfer, balance]).before_tool_call(blocks);
    let (assistant, metrics) = measured(builder);
    let output = assistant.prompt("go").await.unwrap();
    let metrics = metrics.lock().unwrap();
    let Metric::Request { run_id, turn, provider, model, .. } = &metrics[0] else { panic!("{metrics:?}") };
    assert_eq!((&**run_id, *turn), (&*output.run_id, 1));
    assert_eq!((provider.as_str(), model.as_str()), ("acme", "a-1"));
    let Metric::Request { usage, stop_reason, error, duration, first_piece, .. } = &metrics[0] else {
        panic!("{metrics:?}")
    };
    assert_eq!((usage.total, stop_reason, *error), (15, &StopReason::ToolUse, None));
    let waited = Duration::from_millis(300);
    assert_eq!((*duration, *first_piece), (waited, Some(waited)));
    let calls: Vec<_> = metrics
        .iter()
        .filter_map(|metric| match metric {
            Metric::ToolCall { turn, call_id, code, ran, cached, duration, .. } => {
                Some((*turn, call_id.as_str(), code.as_deref(), *ran, *cached, duration.as_millis()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        calls,
        [
            (1, "call_3", Some("invalid_arguments"), false, false, 0),
            (1, "call_4", Some("unknown_tool"), false, false, 0),
            (1, "call_1", None, true, false, 40),
            (1, "call_2", Some("tool_error"), true, false, 40),
            (2, "call_6", Some("blocked"), false, false, 0),
            (2, "call_5", None, true, false, 0),
            (3, "call_7", None, false, true, 0),
        ]
    );
    let Metric::ToolCall { coercions, outcome, attempt, .. } = &metrics[3] else { panic!("{metrics:?}") };
    assert_eq!((*coercions, outcome, *attempt), (1, &OutcomeKind::Completed, 1));
    let Some(Metric::Request { usage, .. }) = metrics.last() else { panic!("{metrics:?}") };
    assert_eq!(usage.total, 27);
    assert_eq!(metrics.len(), 4 + 7);
    let text = format!("{metrics:?}");
    assert!(!text.contains("no such account"), "nothing of what is said: {text}");
}

#[tokio::test]
async fn what_a_sub_agent_measures_is_not_measured_once_more_above_it() {
    let model = || ScriptedModel::new([reply().tool_call("balance", "{}"), reply().text("done")]);
    let (plain, metered) = (
        Assistant::builder(model()).tools(tools![balance]).build().unwrap(),
        measured(Assistant::builder(model()).tools(tools![balance])),
    );
    let asks =
        [reply().tool_call("plain", r#"{"task": "a"}"#), reply().tool_call("metered", r#"{"task": "b"}"#)];
    let root = Assistant::builder(ScriptedModel::new(asks.into_iter().chain([reply().text("done")])));
    let root = root.tools(plain.as_tool("plain", "Knows.")).tools(metered.0.as_tool("metered", "Knows."));
    let (root, of_root) = measured(root);
    root.prompt("go").await.unwrap();
    let calls = |metrics: &Arc<Mutex<Vec<Metric>>>| -> Vec<String> {
        let metrics = metrics.lock().unwrap();
        let tool = |metric: &Metric| match metric {
            Metric::ToolCall { tool, .. } => Some(tool.clone()),
            _ => None,
        };
        metrics.iter().filter_map(tool).collect()
    };
    assert_eq!(calls(&of_root), ["balance", "plain", "metered"]);
    assert_eq!(calls(&metered.1), ["balance"]);
}

#[tokio::test(start_paused = true)]
async fn requests_that_fail_or_are_dropped_are_measured_too() {
    let failing = ModelError::new(ModelErrorKind::Connection, "tulip");
    let (assistant, metrics) = measured(Assistant::builder(slowly(vec![reply().text("so").error(failing)])));
    assistant.prompt("go").await.unwrap_err();
    {
        let metrics = metrics.lock().unwrap();
        let Metric::Request { error, stop_reason, .. } = &metrics[0] else { panic!("{metrics:?}") };
        assert_eq!((*error, stop_reason), (Some("transport"), &StopReason::Error));
        assert!(!format!("{metrics:?}").contains("tulip"));
    }
    let (assistant, metrics) = measured(Assistant::builder(ScriptedModel::new([reply().text("a").hang()])));
    let waited = tokio::time::timeout(Duration::from_millis(70), assistant.prompt("go").into_future()).await;
    assert!(waited.is_err(), "it hangs");
    let metrics = metrics.lock().unwrap();
    let Metric::Request { error, duration, first_piece, .. } = &metrics[0] else { panic!("{metrics:?}") };
    assert_eq!((*error, *duration), (Some("cancelled"), Duration::from_millis(70)));
    assert_eq!((*first_piece, metrics.len()), (Some(Duration::ZERO), 1));
}

#[tokio::test]
async fn one_that_measures_and_panics_stops_nothing() {
    let model = ScriptedModel::new([reply().tool_call("balance", "{}"), reply().text("done")]);
    let builder = Assistant::builder(model).tools(tools![balance]);
    let assistant = builder.on_metric(|_| panic!("a closure of a test panics")).build().unwrap();
    assert_eq!(assistant.prompt("go").await.unwrap().text(), "done");
}
