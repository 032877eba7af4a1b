//! Recorded runs, where they are at hand: what the assistant can already do of them, event by event.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use agent::message::ToolArguments;
use agent::model::{ModelError, ModelErrorKind, ModelRequest, Reply, ScriptedModel, reply, reply_with};
use agent::{
    Assistant, Control, DynamicTool, Event, RunError, Timeout, Tool, ToolContext, ToolError, ToolOutput,
    ToolPolicy, ToolReply, ToolSet,
};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

/// Next to the repository, or where `AGENT_SHARED` says.
fn scenarios() -> Option<Vec<Value>> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let shared = std::env::var_os("AGENT_SHARED").map_or(beside, PathBuf::from);
    let text = std::fs::read_to_string(shared.join("vectors/runtime/events.json")).ok()?;
    let mut file: Value = serde_json::from_str(&text).expect("the vectors are JSON");
    Some(serde_json::from_value(file["scenarios"].take()).expect("the vectors have scenarios"))
}

/// Whether it needs nothing that a later version brings: queues, hooks, approvals, exclusive tools, progress.
fn is_supported(given: &Map<String, Value>) -> bool {
    let is_plain = |(key, value): (&String, &Value)| match key.as_str() {
        "prompt" => value.is_string(),
        "tools" => value
            .as_array()
            .is_some_and(|names| names.iter().all(|name| tool(name.as_str().unwrap_or("")).is_some())),
        "actions" => {
            value.as_array().is_some_and(|actions| actions.iter().all(|action| action["do"] == "abort"))
        }
        "model" | "max_turns" | "max_concurrency" => true,
        // They stay where they are in a run that ends early.
        "follow_up_queued" => given.contains_key("max_turns") || given.contains_key("actions"),
        _ => value == &json!([]),
    };
    given.iter().all(is_plain)
}

/// A tool that takes its time limit from a test.
struct Timed(DynamicTool, ToolPolicy);

impl Tool for Timed {
    fn definition(&self) -> &agent::ToolDefinition {
        self.0.definition()
    }
    fn call<'a>(&'a self, arguments: &'a str, cx: &'a ToolContext) -> agent::BoxFuture<'a, ToolReply> {
        self.0.call(arguments, cx)
    }
    fn policy(&self) -> &ToolPolicy {
        &self.1
    }
}

fn tool(name: &str) -> Option<ToolSet> {
    fn make<F>(name: &str, body: fn(Value, ToolContext) -> F) -> DynamicTool
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let schema = match name {
            "double" => {
                json!({"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]})
            }
            _ => json!({"type": "object", "properties": {}}),
        };
        DynamicTool::new(name, "A tool of a recorded run.", schema, body).expect("the schema is fine")
    }
    async fn after(millis: u64, text: &str) -> Result<ToolOutput, ToolError> {
        sleep(Duration::from_millis(millis)).await;
        Ok(ToolOutput::text(text))
    }
    let set = ToolSet::new();
    Some(match name {
        "double" => set.with(make(name, |args, _| async move {
            Ok(ToolOutput::text((args["value"].as_i64().unwrap_or_default() * 2).to_string()))
        })),
        "ok" => set.with(make(name, |_, _| after(50, "ok"))),
        "slow" => set.with(make(name, |_, _| after(150, "slow done"))),
        "fast" => set.with(make(name, |_, _| async { Ok(ToolOutput::text("fast done")) })),
        "boom" => set.with(make(name, |_, _| async { Err(ToolError::new("kaput")) })),
        "panics" => set.with(make(name, |_, _| async { panic!("a recorded panic") })),
        "wait" => set.with(make(name, |_, cx| async move {
            cx.cancelled().await;
            Err(ToolError::new("told to stop"))
        })),
        "deaf" => set.with(make(name, |_, _| std::future::pending())),
        "finish" => set.with(make(name, |_, _| async {
            Ok(ToolOutput::text("finished").with_control(Control::EndIfAll))
        })),
        "halt" => set
            .with(make(name, |_, _| async { Ok(ToolOutput::text("halted").with_control(Control::EndNow)) })),
        "timed" => {
            let mut policy = ToolPolicy::default();
            policy.timeout = Timeout::After(Duration::from_millis(100));
            set.with(Timed(make(name, |_, _| after(500, "late")), policy))
        }
        _ => return None,
    })
}

fn scripted(given: &Value) -> Reply {
    let text = |key: &str| given[key].as_str().map(str::to_owned);
    if let Some(template) = text("template") {
        return reply_with(move |request: &ModelRequest| {
            let last = request.messages.last().map(|message| message.text()).unwrap_or_default();
            reply().text(template.replace("{last}", &last))
        });
    }
    let mut scripted = reply();
    if let Some(thinking) = text("thinking") {
        scripted = scripted.thinking(thinking);
    }
    if let Some(said) = text("text") {
        scripted = scripted.text(said);
    }
    for call in given["calls"].as_array().into_iter().flatten() {
        let args = match &call["args"] {
            Value::String(text) => ToolArguments::from(text.as_str()),
            value => ToolArguments::from(value.clone()),
        };
        let word = |key: &str| call[key].as_str().unwrap_or_default();
        scripted = scripted.tool_call_with_id(word("id"), word("name"), args);
    }
    if let Some(error) = text("error").or_else(|| text("throws")) {
        scripted = scripted.error(ModelError::new(ModelErrorKind::Other, error));
    }
    match text("aborted") {
        Some(reason) => scripted.error(ModelError::aborted(reason)),
        None => scripted,
    }
}

/// Keeps what the vectors show of an event.
fn shown(event: &Event) -> Value {
    let event = serde_json::to_value(event).expect("an event is JSON");
    let mut shown = json!({"turn": event["turn"], "type": event["type"]});
    let mut show = |key: &str, value: &Value| {
        if !value.is_null() {
            shown[key] = value.clone();
        }
    };
    let joined = |parts: &Value| {
        let texts = parts
            .as_array()
            .into_iter()
            .flatten()
            .filter(|part| part["type"] == "text")
            .filter_map(|part| part["text"].as_str());
        Value::from(texts.collect::<String>())
    };
    for key in [
        "update",
        "content_index",
        "call_id",
        "tool",
        "args",
        "outcome",
        "code",
        "is_error",
        "stop",
        "detail",
        "control",
    ] {
        show(key, &event[key]);
    }
    match event["type"].as_str().unwrap_or_default() {
        "tool_execution_end" => show("text", &joined(&event["content"])),
        "turn_end" => {
            show("tool_results", &event["tool_results"]);
            shown["assistant"] = event["assistant"].clone();
        }
        "agent_end" => {
            let roles =
                event["messages"].as_array().into_iter().flatten().map(|message| message["role"].clone());
            shown["messages"] = roles.collect();
        }
        "message_update" => shown["role"] = "assistant".into(),
        _ if event["message"].is_object() => {
            let message = &event["message"];
            for key in ["role", "call_id", "outcome", "code", "is_error", "error"] {
                show(key, &message[key]);
            }
            show("text", &joined(&message["content"]));
            if message["role"] == "assistant" {
                let parts = message["content"].as_array().into_iter().flatten();
                let calls = parts.filter(|part| part["type"] == "tool_call").map(|part| part["id"].clone());
                show("calls", &calls.collect());
                show("stop_reason", &message["stop_reason"]);
            }
        }
        _ => {}
    }
    shown
}

/// Whether the event is what was recorded. What a recording leaves out is free.
fn matches(shown: &Value, recorded: &Value) -> bool {
    let recorded = recorded.as_object().into_iter().flatten();
    recorded.filter(|(key, _)| *key != "seq").all(|(key, value)| match key.as_str() {
        "mentions" => value.as_array().into_iter().flatten().all(|word| {
            shown["text"].as_str().is_some_and(|text| text.contains(word.as_str().unwrap_or_default()))
        }),
        key => shown.get(key) == Some(value),
    })
}

async fn play(given: &Value) -> (Vec<Value>, Result<(), RunError>) {
    let (events, here) = (Arc::new(Mutex::new(Vec::new())), Arc::new(OnceLock::<Assistant>::new()));
    let (record, itself) = (events.clone(), here.clone());
    let actions: Vec<Value> = given["actions"].as_array().cloned().unwrap_or_default();
    let model = ScriptedModel::new(given["model"].as_array().into_iter().flatten().map(scripted));
    let mut builder = Assistant::builder(model.with_chunk_size(usize::MAX)).on_event(move |event| {
        let shown = shown(event);
        for action in &actions {
            let (when, assistant) = (&action["when"], itself.get().expect("it is built").clone());
            let same = |key: &str| when.get(key).is_none_or(|wanted| shown.get(key) == Some(wanted));
            let earlier = record
                .lock()
                .expect("no panic")
                .iter()
                .filter(|e: &&Value| e["type"] == when["event"])
                .count();
            let nth = when["nth"].as_u64().is_none_or(|nth| earlier as u64 + 1 == nth);
            if shown["type"] == when["event"] && nth && ["role", "call_id", "update"].into_iter().all(same) {
                let reason = action["reason"].as_str().unwrap_or("cancelled").to_owned();
                match action["after_ms"].as_u64() {
                    None => assistant.cancel(reason),
                    Some(millis) => drop(tokio::spawn(async move {
                        sleep(Duration::from_millis(millis)).await;
                        assistant.cancel(reason);
                    })),
                }
            }
        }
        record.lock().expect("no panic").push(shown);
    });
    for name in given["tools"].as_array().into_iter().flatten() {
        builder = builder.tools(tool(name.as_str().unwrap_or_default()).expect("it is supported"));
    }
    if let Some(turns) = given["max_turns"].as_u64() {
        builder = builder.max_turns(u32::try_from(turns).expect("small"));
    }
    if let Some(calls) = given["max_concurrency"].as_u64() {
        builder = builder.max_concurrency(usize::try_from(calls).expect("small"));
    }
    let assistant = builder.build().expect("it can be built");
    here.set(assistant.clone()).expect("set once");
    let result = assistant.prompt(given["prompt"].as_str().unwrap_or_default()).await.map(drop);
    let mut events = std::mem::take(&mut *events.lock().expect("no panic"));
    // The recorded model gives its arguments whole, without a delta.
    events.retain(|event| event["update"] != "tool_call_delta");
    (events, result)
}

#[tokio::test(start_paused = true)]
#[expect(clippy::print_stderr, reason = "a developer wants to know what was skipped")]
async fn recorded_runs_have_the_same_events() {
    let Some(scenarios) = scenarios() else {
        eprintln!("skipped: no recorded runs here");
        return;
    };
    let (mut played, mut wrong) = (0, Vec::new());
    for scenario in &scenarios {
        let given = &scenario["given"];
        if !given.as_object().is_some_and(is_supported) {
            continue;
        }
        played += 1;
        let (events, result) = play(given).await;
        let recorded = scenario["expect"]["events"].as_array().cloned().unwrap_or_default();
        let same = events.len() == recorded.len() && events.iter().zip(&recorded).all(|(a, b)| matches(a, b));
        let completed = matches!(&scenario["expect"]["end"]["stop"], stop if *stop == "completed" || *stop == "terminated");
        if !same || completed != result.is_ok() {
            let first = events.iter().zip(&recorded).find(|(a, b)| !matches(a, b));
            wrong.push(format!("{}: {result:?}, {} events, first {first:#?}", scenario["id"], events.len()));
        }
    }
    eprintln!("{played} of {} recorded runs played", scenarios.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(played >= 20, "only {played} were played");
}
