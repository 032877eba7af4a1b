//! One secret, looked for in everything that leaves a run: as it is, as JSON quotes it, in base 64, percent-encoded, and in pieces. Only
//! the conversation, a stored run and what a listener asks for by name may have it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use agent::ScriptedModel;
use agent::model::{Model, reply};
use agent::provider::http::HttpModel;
use agent::store::{EntryKind, InvocationQuery, MemoryStore, SqlStore, Store};
use agent::testing::{Cassette, EventLog};
use agent::{Assistant, AssistantBuilder, Decision, Registry, json, tool, tools};

use crate::provider_support::{Server, answer, quick};
use crate::trace_support::{EveryLine, Traces, hear};

/// It has what serialisers escape.
const SECRET: &str = "hünter2/\"SECRET\"+\\x";

/// Signs in.
#[tool(inline)]
fn log_in(user: String, #[arg(secret, alias = "pass")] password: String) -> String {
    format!("signed in with {} and {} characters", user.chars().count(), password.chars().count())
}

/// Signs in, if a person allows it.
#[tool(inline, approval = "always")]
fn log_in_asked(user: String, #[arg(secret)] password: String) -> String {
    format!("signed in with {} and {} characters", user.chars().count(), password.chars().count())
}

/// The ways in which a model calls a tool that has a secret: the tool, and the arguments.
fn calls() -> Vec<(&'static str, &'static str, String)> {
    let good = json!({"user": "ann", "password": SECRET});
    let text = good.to_string();
    let cut = text[..text.len() - 3].to_owned();
    vec![
        ("good", "log_in", text.clone()),
        ("asked", "log_in_asked", text.clone()),
        ("misspelled tool", "log_inn", text.clone()),
        ("misspelled key", "log_in", json!({"user": "ann", "pasword": SECRET}).to_string()),
        ("alias", "log_in", json!({"user": "ann", "pass": SECRET}).to_string()),
        ("twice", "log_in", json!({"user": "ann", "pass": SECRET, "password": SECRET}).to_string()),
        ("wrong type", "log_in", json!({"user": "ann", "password": [SECRET]}).to_string()),
        ("under another name", "log_in", json!({"user": {"password": SECRET}}).to_string()),
        ("cut", "log_in", cut),
        ("wrapped", "log_in", json!({"arguments": good}).to_string()),
        ("JSON text", "log_in", json!(text).to_string()),
        ("JSON text in a parameter", "log_in", json!({"user": text, "password": SECRET}).to_string()),
        ("a list", "log_in", json!([good]).to_string()),
        ("asked, misspelled key", "log_in_asked", json!({"user": "ann", "pasword": SECRET}).to_string()),
    ]
}

/// The standard alphabet; `url` has another one.
fn base64(bytes: &[u8], url: bool) -> String {
    let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').collect();
    let last = if url { ['-', '_'] } else { ['+', '/'] };
    let char = |six: usize| alphabet.get(six).copied().unwrap_or_else(|| last[six - 62]);
    let groups = bytes.chunks_exact(3).flat_map(|three| {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        [bits >> 18 & 63, bits >> 12 & 63, bits >> 6 & 63, bits & 63]
    });
    groups.map(char).collect()
}

/// The forms that are looked for.
fn forms() -> Vec<String> {
    let once = json!(SECRET).to_string();
    let once = once[1..once.len() - 1].to_owned();
    let again = json!(once).to_string();
    let percent: String =
        SECRET
            .bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect();
    let mut forms = vec![
        SECRET.to_owned(),
        once,
        again[1..again.len() - 1].to_owned(),
        percent.clone(),
        percent.to_lowercase(),
    ];
    // Wherever it begins in what is encoded.
    for skipped in 0..3 {
        let whole = (SECRET.len() - skipped) / 3 * 3;
        forms.extend([false, true].map(|url| base64(&SECRET.as_bytes()[skipped..skipped + whole], url)));
    }
    // Its parts, wherever it is cut.
    forms.extend(["nter2/", "SECRET"].map(str::to_owned));
    forms
}

/// What left the runs: where, and the text.
#[derive(Clone, Default)]
struct Found(Arc<Mutex<Vec<(String, String)>>>);

impl Found {
    fn add(&self, place: impl Into<String>, text: impl Into<String>) {
        self.0.lock().unwrap().push((place.into(), text.into()));
    }

    /// Returns the places that have the secret.
    fn leaks(&self, call: &str) -> Vec<String> {
        let found = self.0.lock().unwrap();
        assert!(found.len() > 10, "{call}: something left the run");
        let mut leaks: Vec<String> = found
            .iter()
            .flat_map(|(place, text)| {
                forms().into_iter().filter_map(move |form| {
                    let at = text.find(&form)?;
                    let start = text[..at].char_indices().rev().nth(60).map_or(0, |(at, _)| at);
                    let end = text[at..].char_indices().nth(60).map_or(text.len(), |(end, _)| at + end);
                    Some(format!("{call}: {place}: …{}…", &text[start..end]))
                })
            })
            .collect();
        leaks.sort_unstable();
        leaks.dedup_by_key(|leak| leak.split('…').next().unwrap_or_default().to_owned());
        leaks
    }
}

/// A file or database that is gone in the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("agent-hunt-{}-{name}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

fn observed(model: impl Model + 'static, found: &Found) -> AssistantBuilder {
    let (events, deltas, asked, log) = (found.clone(), found.clone(), found.clone(), EventLog::new());
    let pieces = Arc::new(Mutex::new(String::new()));
    Assistant::builder(model)
        .tools(tools![log_in, log_in_asked])
        .approval_key([7; 32])
        .on_event(log.listener())
        .on_event(move |event| {
            events.add("event as JSON", serde_json::to_string(event).unwrap());
            events.add("Debug of an event", format!("{event:?}"));
            let value = serde_json::to_value(event).unwrap();
            if let Some(piece) = value["delta"].as_str().or(value["argument"]["fragment"].as_str()) {
                let mut pieces = pieces.lock().unwrap();
                pieces.push_str(piece);
                deltas.add("pieces of events", pieces.clone());
            }
            if value["type"] == "agent_end" {
                events.add("outline of an event log", log.outline());
            }
        })
        .on_approval(move |request| {
            asked.add("approval request as JSON", serde_json::to_string(&request).unwrap());
            asked.add("Debug of an approval request", format!("{request:?}"));
            async { Decision::Allow }
        })
        .on_metric({
            let found = found.clone();
            move |metric| found.add("Debug of a metric", format!("{metric:?}"))
        })
}

async fn records(found: &Found, place: &str, store: &impl Store) {
    for record in store.list(InvocationQuery::new()).await.unwrap() {
        found.add(format!("{place}, a record"), format!("{} {:?}", json!(record.args), record.result()));
        found.add(format!("{place}, Debug of a record"), format!("{record:?}"));
    }
    for stored in store.load("s", 0, 100).await.unwrap() {
        found.add(format!("{place}, Debug of an entry"), format!("{stored:?}"));
        if let EntryKind::Message { message, .. } = &stored.1.kind {
            found.add(format!("{place}, an entry"), serde_json::to_string(message).unwrap());
        }
    }
}

fn script(tool: &str, args: &str) -> ScriptedModel {
    ScriptedModel::new([
        reply().text("I sign in.").tool_call(tool, args),
        reply().tool_call(tool, args).tool_call("log_in", r#"{"user": 5}"#),
        reply().text("done"),
    ])
    .with_chunk_size(3)
}

#[tokio::test]
async fn no_secret_leaves_a_run() {
    let mut leaks = Vec::new();
    for (call, tool, args) in calls() {
        let found = Found::default();
        for is_captured in [false, true] {
            let (lines, memory) = (EveryLine::default(), MemoryStore::new());
            let _guard = hear(lines.clone());
            let builder = observed(script(tool, &args), &found).store(memory.clone());
            let builder = if is_captured { builder.capture_content() } else { builder };
            let builder = builder.request(agent::model::ModelRequest::with_argument_events);
            let assistant = builder.session("s").await.unwrap();
            let outcome = assistant.prompt("Sign in").await.unwrap();
            assert_eq!(outcome.text(), "done", "{call}");
            found.add("Debug of an outcome", format!("{outcome:?}"));
            found.add("Debug of an assistant", format!("{assistant:?}"));
            found.add("Debug of messages", format!("{:?}", assistant.messages()));
            found.add("logs at trace level", lines.text());
            assert!(lines.text().contains("execute_tool"));
            records(&found, "memory", &memory).await;
        }
        let traces = Traces::default();
        let guard = hear(traces.clone());
        observed(script(tool, &args), &found)
            .capture_content()
            .build()
            .unwrap()
            .prompt("Sign in")
            .await
            .unwrap();
        drop(guard);
        found
            .add("traces", format!("{:?} {:?}", traces.spans.lock().unwrap(), traces.events.lock().unwrap()));

        let file = File::new("db.sqlite");
        let sql = SqlStore::sqlite(&file.0).await.unwrap();
        let assistant = observed(script(tool, &args), &found).store(sql.clone()).session("s").await.unwrap();
        assistant.prompt("Sign in").await.unwrap();
        records(&found, "SQLite", &sql).await;
        for end in ["", "-wal"] {
            let bytes = std::fs::read(format!("{}{end}", file.0.display())).unwrap_or_default();
            found.add(format!("SQLite file {end}"), String::from_utf8_lossy(&bytes));
        }

        let cassette = File::new("cassette.json");
        let recording = Cassette::record(&cassette.0, script(tool, &args));
        found.add("Debug of a cassette", format!("{recording:?}"));
        observed(recording, &found).build().unwrap().prompt("Sign in").await.unwrap();
        found.add("cassette", std::fs::read_to_string(&cassette.0).unwrap());

        // Suspended: what is shown of it. The stored run itself needs its secrets.
        let suspended =
            Assistant::builder(script(tool, &args)).tools(tools![log_in, log_in_asked]).approval_key([7; 32]);
        let outcome = suspended.build().unwrap().prompt("Sign in").await.unwrap();
        if let Some(run) = &outcome.snapshot {
            found.add("Debug of a stored run", format!("{run:?}"));
            for request in run.requests() {
                found.add("approval request of a stored run", serde_json::to_string(&request).unwrap());
            }
        }
        let registry = Registry::new(tools![log_in, log_in_asked]).unwrap();
        let message = agent::message::ToolCall::new("1", tool, &*args);
        found.add("Debug of a call", format!("{message:?}"));
        let refused = registry.validate(&message);
        found.add("report", format!("{refused:?}"));
        found.add("report as text", refused.err().map(|error| error.to_string()).unwrap_or_default());
        leaks.extend(found.leaks(call));
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

#[tokio::test]
async fn no_secret_is_in_logs_and_errors_of_a_provider_that_quotes_it() {
    let mut leaks = Vec::new();
    for (call, tool, args) in calls() {
        if call == "cut" {
            // Arguments that cannot be read are not sent, so no provider quotes them.
            continue;
        }
        let pieces: Vec<String> = args
            .chars()
            .collect::<Vec<_>>()
            .chunks(3)
            .map(|piece| {
                let piece: String = piece.iter().collect();
                let delta = json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]});
                format!(
                    "data: {}\n\n",
                    json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
                )
            })
            .collect();
        let start = json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "c9", "type": "function", "function": {"name": tool, "arguments": ""}}]});
        let start = json!({"id": "c", "choices": [{"index": 0, "delta": start, "finish_reason": null}]});
        let end = json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
        let pieces = pieces.concat();
        let stream = format!("data: {start}\n\n{pieces}data: {end}\n\ndata: [DONE]\n\n");
        // What was sent stands in the message, once more quoted, and beside it.
        let error = json!({"error": {"message": format!("cannot read {args} with {SECRET}"), "sent": args, "again": json!(args).to_string()}});
        let server = Server::new([
            answer(200, &["content-type: text/event-stream"], stream),
            answer(400, &["content-type: application/json"], error.to_string()),
        ])
        .await;
        let model =
            HttpModel::builder("openai/gpt-4o").base_url(format!("{}/v1", server.url)).key("sk-secret-key");
        let model = model.options(quick()).build().unwrap();
        let (found, lines) = (Found::default(), EveryLine::default());
        let _guard = hear(lines.clone());
        let assistant = observed(model, &found).build().unwrap();
        let error = assistant.prompt("Sign in").await.unwrap_err();
        // Arguments that are no object are not sent again.
        let is_sent = serde_json::from_str(&args).is_ok_and(|args: agent::Value| args.is_object());
        assert!(
            !is_sent || server.requests()[1].contains("SECRET"),
            "{call}: the provider gets what it sent"
        );
        found.add("error", error.to_string());
        found.add("Debug of an error", format!("{error:?}"));
        let mut source = std::error::Error::source(&error);
        while let Some(error) = source {
            found.add("source of an error", format!("{error} {error:?}"));
            source = error.source();
        }
        found.add("logs at trace level", lines.text());
        assert!(lines.text().contains("request"));
        leaks.extend(found.leaks(call));
        assert!(!lines.text().contains("sk-secret-key"), "{call}");
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}
