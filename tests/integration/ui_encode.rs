//! Events to chunks: every kind of event, every scenario, any sequence.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ScriptedModel;
use agent::message::{Content, Media, Part, ProviderTool, ResourceLink, Usage};
use agent::model::{ModelError, ModelEvent, ScriptedReply, reply};
use agent::testing::EventLog;
use agent::ui::{UiChunk, UiData, UiEncoder, UiOptions, UiProtocol, UiRequest};
use agent::{
    Assistant, AssistantBuilder, Decision, Decisions, Event, Progress, ToolContext, ToolError, ToolOutcome,
    UsageLimits, json, tool, tools,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::runtime_scenarios::{given, model, play, setup};
use crate::ui_readers::{AgUiReader, AiSdkReader};

// All of them run where they are awaited, so that calls end in the order in which they begin.

/// Adds two numbers.
#[tool(inline)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Signs in.
#[tool(inline)]
fn log_in(user: String, #[arg(secret)] password: String) -> String {
    let _ = password;
    format!("{user} is in")
}

/// Sends money.
#[tool(inline, approval = "always")]
fn send(to: String, amount: u64) -> String {
    format!("{amount} to {to}")
}

/// Fails.
#[tool(inline)]
fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("the vault code is 4711").with_metadata("vault", 4711))
}

/// Reads pages.
#[tool(inline)]
fn read(cx: &ToolContext) -> String {
    cx.progress(Progress::new("reading").of(1, 2).with_content([Part::text("page 1")]));
    "both".to_owned()
}

/// Scrolls the page.
#[tool]
fn scroll(to: u32) -> ToolOutcome {
    let _ = to;
    ToolOutcome::Deferred { handle: "secret-handle".into() }
}

const BOTH: [UiProtocol; 2] = [UiProtocol::AiSdk, UiProtocol::AgUi];

pub(crate) fn builder(model: ScriptedModel) -> AssistantBuilder {
    Assistant::builder(model).tools(tools![add, log_in, send, fail, read, scroll])
}

fn error(text: &str) -> ModelError {
    ModelError::protocol(text)
}

fn request() -> UiRequest {
    UiRequest::new("thread")
}

/// Runs a prompt, and returns its events.
pub(crate) async fn events_of(assistant: &Assistant) -> Vec<Event> {
    let log = EventLog::new();
    let listening = assistant.subscribe(log.listener());
    drop(assistant.prompt("go").await);
    drop(listening);
    log.events()
}

pub(crate) fn encoded(
    protocol: UiProtocol,
    assistant: &Assistant,
    options: &UiOptions,
    events: &[Event],
) -> Vec<UiChunk> {
    let mut encoder = UiEncoder::new(protocol, assistant.registry(), options, &request());
    let mut chunks = Vec::new();
    for event in events {
        encoder.encode(event, &mut chunks);
    }
    encoder.end(&mut chunks);
    chunks
}

fn values(chunks: &[UiChunk]) -> Vec<Value> {
    for chunk in chunks {
        let sse = chunk.to_sse();
        assert!(!sse.contains('\r') && sse.matches('\n').count() == 3, "{sse:?}");
    }
    chunks.iter().map(|chunk| serde_json::from_str(&chunk.json).unwrap()).collect()
}

fn read_ai_sdk(chunks: &[UiChunk]) -> AiSdkReader {
    let mut reader = AiSdkReader::default();
    reader.read_all(&values(chunks));
    reader.assert_ended();
    reader
}

fn read_ag_ui(chunks: &[UiChunk]) -> AgUiReader {
    let mut reader = AgUiReader::default();
    reader.read_all(&values(chunks));
    reader.assert_ended();
    reader
}

/// The chunks as lines, without the id of the run.
pub(crate) fn lines(chunks: &[UiChunk]) -> String {
    let run_id = chunks[0].id.split(':').next().unwrap().to_owned();
    chunks.iter().map(|chunk| chunk.json.replace(&run_id, "RUN") + "\n").collect()
}

pub(crate) async fn golden(model: ScriptedModel, options: &UiOptions) -> (String, String) {
    let assistant = builder(model).build().unwrap();
    let events = events_of(&assistant).await;
    let [ai, ag] = BOTH.map(|protocol| encoded(protocol, &assistant, options, &events));
    read_ai_sdk(&ai);
    read_ag_ui(&ag);
    (lines(&ai), lines(&ag))
}

fn one_call() -> ScriptedModel {
    ScriptedModel::new([
        reply()
            .thinking("Hm.")
            .text("I add.")
            .tool_call("add", r#"{"a": "1", "b": 2}"#)
            .usage(Usage::new(20, 5)),
        reply().text("3").usage(Usage::new(30, 1)),
    ])
}

#[tokio::test]
async fn a_run_with_a_call_as_chunks() {
    let (ai, ag) = golden(one_call(), &UiOptions::default()).await;
    expect_test::expect_file!["../golden/ui/call.ai-sdk.txt"].assert_eq(&ai);
    expect_test::expect_file!["../golden/ui/call.ag-ui.txt"].assert_eq(&ag);
}

#[tokio::test]
async fn results_are_sent_as_the_model_reads_them() {
    let options = UiOptions::default().show_results().reasoning(false).usage(false);
    let (ai, ag) = golden(one_call(), &options).await;
    assert!(ai.contains(r#""output":"3""#) && ag.contains(r#""content":"3""#), "{ai}{ag}");
    assert!(!ai.contains("Hm.") && !ag.contains("Hm.") && !ai.contains("Tokens") && !ag.contains("Tokens"));
    let custom = UiOptions::default().show_results_as(|result| json!({"seen": result.tool}));
    let (ai, _) = golden(one_call(), &custom).await;
    assert!(ai.contains(r#""output":{"seen":"add"}"#), "{ai}");
    let panics = UiOptions::default().show_results_as(|_| panic!("no view"));
    let (ai, _) = golden(one_call(), &panics).await;
    assert!(ai.contains(r#""output":{"outcome":"completed"}"#), "{ai}");
}

#[tokio::test]
async fn refused_failed_and_unknown_calls_as_chunks() {
    let model = ScriptedModel::new([
        reply()
            .tool_call("add", r#"{"a": "x", "c": 2}"#)
            .tool_call("fail", "{}")
            .tool_call("nothing", r#"{"x": 1}"#)
            .tool_call("read", "{}"),
        reply().text("done"),
    ]);
    let (ai, ag) = golden(model, &UiOptions::default()).await;
    expect_test::expect_file!["../golden/ui/errors.ai-sdk.txt"].assert_eq(&ai);
    expect_test::expect_file!["../golden/ui/errors.ag-ui.txt"].assert_eq(&ag);
    assert!(!ai.contains("4711") && !ag.contains("4711"));
}

#[tokio::test]
async fn parts_that_are_no_text() {
    let mut link = ResourceLink::new("https://example.com/a");
    link.title = Some("A".into());
    let mut search = ProviderTool::new("web_search");
    (search.id, search.input, search.output) =
        (Some("w1".into()), Some(json!({"q": "tea"})), Some(json!({"secret_blob": 1})));
    let parts = [
        Part::refusal("I will not."),
        Part::image(vec![1, 2, 3], "image/png"),
        Part::new(Content::ResourceLink(link)),
        Part::new(Content::ResourceLink(ResourceLink::new("file:///etc/passwd"))),
        Part::new(Content::ProviderTool(Box::new(search))),
        Part::new(Content::Image(Media::file_id("file-1"))),
        Part::opaque("acme", json!({"opaque": true})),
    ];
    let model = ScriptedModel::new([parts.into_iter().fold(reply(), ScriptedReply::part)]);
    let (ai, ag) = golden(model, &UiOptions::default()).await;
    expect_test::expect_file!["../golden/ui/parts.ai-sdk.txt"].assert_eq(&ai);
    expect_test::expect_file!["../golden/ui/parts.ag-ui.txt"].assert_eq(&ag);
    assert!(!ai.contains("secret_blob") && !ag.contains("secret_blob") && !ag.contains("opaque"));
}

#[tokio::test]
async fn secrets_never_leave() {
    let call = r#"{"user": "ann", "password": "hunter2"}"#;
    let model = ScriptedModel::new([
        reply().tool_call("log_in", call).tool_call("log_inn", call).tool_call("add", r#"{"a": 1, "b": 2}"#),
        reply().text("You are in."),
    ])
    .with_chunk_size(3);
    let options = UiOptions::default().show_results();
    let (ai, ag) = golden(model, &options).await;
    for all in [&ai, &ag] {
        assert!(!all.contains("hunter") && !all.contains("ter2"), "{all}");
        assert!(all.contains("[secret]") && all.contains("ann"), "{all}");
    }
    // The arguments of other tools grow as they arrive.
    assert!(ai.matches("tool-input-delta").count() > 3, "{ai}");
}

#[tokio::test]
async fn arguments_can_be_hidden_except_where_a_person_decides() {
    let model = ScriptedModel::new([reply()
        .tool_call("add", r#"{"a": 41, "b": 1}"#)
        .tool_call("send", r#"{"to": "Ann", "amount": 5}"#)]);
    let assistant = builder(model).build().unwrap();
    let events = events_of(&assistant).await;
    let options = UiOptions::default().args(false);
    let ai = lines(&encoded(UiProtocol::AiSdk, &assistant, &options, &events));
    assert!(!ai.contains("41") && ai.contains(r#""input":{"to":"Ann","amount":5}"#), "{ai}");
    let ag = lines(&encoded(UiProtocol::AgUi, &assistant, &options, &events));
    assert!(!ag.contains("41") && ag.contains("Ann"), "{ag}");
}

/// A run that waits for a decision with a call beside it, and what it becomes.
pub(crate) async fn suspended(decide: impl Fn(&agent::run::ApprovalRequest) -> Decision) -> (String, String) {
    let model = ScriptedModel::new([
        reply().tool_call("add", r#"{"a": 1, "b": 2}"#).tool_call("send", r#"{"to": "Ann", "amount": 5}"#),
        reply().text("done"),
    ]);
    let assistant = builder(model).build().unwrap();
    let log = EventLog::new();
    assistant.subscribe(log.listener()).forever();
    let snapshot = assistant.prompt("go").await.unwrap().snapshot.unwrap();
    let before = log.events();
    log.clear();
    let requests = snapshot.requests();
    let decisions =
        requests.iter().fold(Decisions::new(), |made, request| made.decide(request, decide(request)));
    assistant.resume(&snapshot, decisions).await.unwrap();
    let after = log.events();

    let mut all = Vec::new();
    for protocol in BOTH {
        let options = UiOptions::default().show_results();
        let mut encoder = UiEncoder::new(protocol, assistant.registry(), &options, &request());
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for event in &before {
            encoder.encode(event, &mut first);
        }
        encoder.end(&mut first);
        for event in &after {
            encoder.encode(event, &mut second);
        }
        encoder.end(&mut second);
        if protocol == UiProtocol::AiSdk {
            let mut reader = AiSdkReader::default();
            reader.read_all(&values(&first));
            reader.assert_ended();
            assert_eq!(reader.finish.as_deref(), Some("tool-calls"));
            reader.next_response();
            reader.read_all(&values(&second));
            reader.assert_ended();
            // A client that reads all of it in one response has the same message.
            let replayed = encoded(protocol, &assistant, &options, &[&before[..], &after].concat());
            assert_eq!(read_ai_sdk(&replayed).message, reader.message);
        } else {
            let mut reader = AgUiReader::default();
            reader.read_all(&values(&first));
            reader.assert_ended();
            assert_eq!(reader.outcome["type"], "interrupt");
            reader.read_all(&values(&second));
            reader.assert_ended();
        }
        // A new encoder knows less, and says nothing wrong.
        let mut fresh = UiEncoder::new(protocol, assistant.registry(), &options, &request());
        let mut chunks = Vec::new();
        for event in &after {
            fresh.encode(event, &mut chunks);
        }
        fresh.end(&mut chunks);
        assert_eq!(
            chunks.len() + usize::from(protocol == UiProtocol::AiSdk),
            second.len(),
            "{chunks:#?}{second:#?}"
        );
        all.push(lines(&first) + "\n" + &lines(&second));
    }
    let ag = all.pop().unwrap();
    (all.pop().unwrap(), ag)
}

#[tokio::test]
async fn a_decision_in_each_way() {
    let (ai, ag) = suspended(|_| Decision::AllowWith(json!({"to": "Ann", "amount": 4}))).await;
    expect_test::expect_file!["../golden/ui/edited.ai-sdk.txt"].assert_eq(&ai);
    expect_test::expect_file!["../golden/ui/edited.ag-ui.txt"].assert_eq(&ag);
    let (ai, ag) = suspended(|_| Decision::Deny("no".into())).await;
    expect_test::expect_file!["../golden/ui/denied.ai-sdk.txt"].assert_eq(&ai);
    expect_test::expect_file!["../golden/ui/denied.ag-ui.txt"].assert_eq(&ag);
    suspended(|_| Decision::Allow).await;
}

#[tokio::test]
async fn a_decision_within_the_run_is_automatic() {
    let model =
        ScriptedModel::new([reply().tool_call("send", r#"{"to": "Ann", "amount": 5}"#), reply().text("ok")]);
    let assistant = builder(model).on_approval(|_| async { Decision::Allow }).build().unwrap();
    let events = events_of(&assistant).await;
    let chunks = encoded(UiProtocol::AiSdk, &assistant, &UiOptions::default(), &events);
    let reader = read_ai_sdk(&chunks);
    assert_eq!(reader.message[1]["approval"]["isAutomatic"], true);
    read_ag_ui(&encoded(UiProtocol::AgUi, &assistant, &UiOptions::default(), &events));
    let old = encoded(UiProtocol::AiSdk, &assistant, &UiOptions::default().ai_sdk_version(6), &events);
    assert!(!lines(&old).contains("approval"));
}

#[tokio::test]
async fn calls_for_the_browser_wait() {
    let model = ScriptedModel::new([reply().tool_call("scroll", r#"{"to": 5}"#), reply().text("ok")]);
    let assistant = builder(model).build().unwrap();
    let events = events_of(&assistant).await;
    for (in_browser, is_success) in [(true, true), (false, false)] {
        let names: &[&str] = if in_browser { &["scroll"] } else { &[] };
        let options = UiOptions::default().run_in_browser(names.iter().copied());
        let ai = encoded(UiProtocol::AiSdk, &assistant, &options, &events);
        let reader = read_ai_sdk(&ai);
        assert_eq!(reader.message[1]["state"], "input-available");
        assert_eq!(lines(&ai).contains("data-agent-waiting"), !in_browser);
        let ag = encoded(UiProtocol::AgUi, &assistant, &options, &events);
        assert_eq!(read_ag_ui(&ag).outcome["type"] == "success", is_success);
        assert!(!(lines(&ai) + &lines(&ag)).contains("secret-handle"));
    }
}

#[tokio::test]
async fn ends_of_runs() {
    let endless = || ScriptedModel::from_fn(|_| reply().tool_call("add", r#"{"a": 1, "b": 1}"#));
    let limits = UsageLimits { requests: Some(2), ..UsageLimits::default() };
    let assistant = builder(endless()).limits(limits).build().unwrap();
    let events = events_of(&assistant).await;
    let ai = encoded(UiProtocol::AiSdk, &assistant, &UiOptions::default(), &events);
    assert!(lines(&ai).contains(r#""data":{"stop":"limit","limit":"requests"}"#), "{}", lines(&ai));
    assert_eq!(read_ai_sdk(&ai).finish.as_deref(), Some("other"));
    let ag = read_ag_ui(&encoded(UiProtocol::AgUi, &assistant, &UiOptions::default(), &events));
    assert_eq!(ag.outcome, json!({"type": "cancelled"}));

    // Its last step has no calls: a page would send their results.
    let message = read_ai_sdk(&ai).message;
    let step = message.iter().rposition(|part| part["type"] == "step-start").unwrap();
    assert!(message[step - 1]["type"] == "tool-add" && message[step + 1]["type"] == "data-agent-stop");

    // The text of an error stays here.
    let model =
        ScriptedModel::new([reply().text("half").error(error("key sk-123 of host db.internal is wrong"))]);
    let assistant = builder(model).build().unwrap();
    let events = events_of(&assistant).await;
    let ai = encoded(UiProtocol::AiSdk, &assistant, &UiOptions::default(), &events);
    let ag = encoded(UiProtocol::AgUi, &assistant, &UiOptions::default(), &events);
    assert!(!(lines(&ai) + &lines(&ag)).contains("sk-123"), "{}", lines(&ai));
    assert_eq!(read_ai_sdk(&ai).errors.len(), 1);
    assert!(read_ag_ui(&ag).error.is_some());

    // A response that ends in the middle says so.
    for cut in 0..events.len() - 1 {
        let ai = encoded(UiProtocol::AiSdk, &assistant, &UiOptions::default(), &events[..cut]);
        assert_eq!(read_ai_sdk(&ai).errors.len(), 1);
        read_ag_ui(&encoded(UiProtocol::AgUi, &assistant, &UiOptions::default(), &events[..cut]));
    }
}

#[tokio::test]
async fn a_queued_message_precedes_the_step_that_gets_it() {
    let model = ScriptedModel::new([reply().tool_call("add", r#"{"a": 1, "b": 1}"#), reply().text("ok")]);
    let assistant = builder(model).build().unwrap();
    let same = assistant.clone();
    assistant
        .subscribe(move |event| {
            if let agent::EventKind::ToolExecutionStart { .. } = &event.kind {
                same.steer("Be quick!");
            }
        })
        .forever();
    let events = events_of(&assistant).await;
    let ai = encoded(UiProtocol::AiSdk, &assistant, &UiOptions::default(), &events);
    read_ai_sdk(&ai);
    assert!(lines(&ai).contains(r#""parts":[{"type":"text","text":"Be quick!"}]"#));
    let ag = read_ag_ui(&encoded(UiProtocol::AgUi, &assistant, &UiOptions::default(), &events));
    assert!(ag.messages.iter().any(|message| message["role"] == "user" && message["content"] == "Be quick!"));
    let old = encoded(UiProtocol::AiSdk, &assistant, &UiOptions::default().ai_sdk_version(6), &events);
    assert!(!lines(&old).contains("steering"));
}

#[tokio::test]
async fn parts_of_the_application() {
    let options = UiOptions::default().data(|event| match &event.kind {
        agent::EventKind::TurnStart => vec![UiData::new("turn", json!({"n": event.turn})).with_id("turn")],
        agent::EventKind::MessageUpdate { .. } => panic!("not for updates"),
        agent::EventKind::ToolExecutionStart { .. } => panic!("a bug of the application"),
        _ => Vec::new(),
    });
    let (ai, ag) = golden(one_call(), &options).await;
    assert!(ai.contains(r#"{"type":"data-turn","id":"turn","data":{"n":2}}"#), "{ai}");
    assert!(ag.contains(r#"{"type":"CUSTOM","name":"turn","value":{"n":1}}"#), "{ag}");
}

#[tokio::test]
async fn hostile_texts_are_data() {
    let hostile = "</script><img src=x onerror=alert(1)>\r\n\ndata: {\"type\":\"finish\"}\n\u{2028}\u{0}\u{1b}[31m\u{202e}";
    let args = json!({"a": hostile, hostile: hostile}).to_string();
    let model = ScriptedModel::new([
        reply()
            .text(hostile)
            .thinking(hostile)
            .tool_call("add", args.as_str())
            .tool_call(hostile, "not json\r\n"),
        reply().text(hostile),
    ])
    .with_chunk_size(5);
    golden(model, &UiOptions::default().show_results()).await;
}

/// Every scenario that is written down.
#[test]
fn every_scenario_is_a_valid_stream() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/runs.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    for scenario in file["scenarios"].as_array().unwrap() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (assistant, events) = runtime.block_on(async {
            let given = Arc::new(given::Given::read(&scenario["given"].to_string()).unwrap());
            let assistant = setup::assistant(&given, model::scripted(&given)).unwrap();
            let log: Arc<Mutex<Vec<Event>>> = Arc::default();
            let to = log.clone();
            assistant.subscribe(move |event| to.lock().unwrap().push(event.clone())).forever();
            drop(play::to_its_end(&assistant, &given).await);
            let events = std::mem::take(&mut *log.lock().unwrap());
            (assistant, events)
        });
        println!("{}", scenario["id"]);
        assert_valid(&assistant, &events);
    }
}

/// Whether each run in these events is a valid stream in both protocols, whatever is shown.
fn assert_valid(assistant: &Assistant, events: &[Event]) {
    crate::events_schema::assert_described(events);
    let mut runs: Vec<Vec<Event>> = Vec::new();
    for event in events {
        match runs.last_mut().filter(|run| run[0].run_id == event.run_id) {
            Some(run) => run.push(event.clone()),
            None => runs.push(vec![event.clone()]),
        }
    }
    let views = [
        UiOptions::default(),
        UiOptions::default().show_results().args(false).reasoning(false).ai_sdk_version(6),
    ];
    for (run, options) in runs.iter().flat_map(|run| views.iter().map(move |options| (run, options))) {
        let live = read_ai_sdk(&encoded(UiProtocol::AiSdk, assistant, options, run));
        read_ag_ui(&encoded(UiProtocol::AgUi, assistant, options, run));
        // Without the updates, the parts come from the messages that ended: the page shows the same.
        let is_whole = run.iter().all(|event| match &event.kind {
            agent::EventKind::MessageEnd { message, .. } => {
                message.as_assistant().is_none_or(|reply| !reply.stop_reason.is_failure())
            }
            _ => true,
        });
        let whole: Vec<Event> = run
            .iter()
            .filter(|event| !matches!(event.kind, agent::EventKind::MessageUpdate { .. }))
            .cloned()
            .collect();
        let replayed = read_ai_sdk(&encoded(UiProtocol::AiSdk, assistant, options, &whole));
        if is_whole {
            assert_eq!(replayed.message, live.message);
        }
        read_ag_ui(&encoded(UiProtocol::AgUi, assistant, options, &whole));
    }
}

/// Choices, one byte each; zeros when they are used up.
struct Chance<'a>(std::slice::Iter<'a, u8>);

impl Chance<'_> {
    fn below(&mut self, n: u8) -> u8 {
        self.0.next().map_or(0, |byte| byte % n)
    }
}

fn any_model(bytes: &[u8]) -> ScriptedModel {
    let mut chance = Chance(bytes.iter());
    let mut replies = Vec::new();
    for _ in 0..=chance.below(4) {
        let mut next = reply();
        for part in 0..chance.below(5) {
            next = match chance.below(10) {
                0 => next.thinking("Hm, so."),
                1 | 2 => next.text("Some words."),
                3 => next.part(Part::refusal("no")),
                4 => next.part(Part::image(vec![1], "image/png")),
                kind => {
                    let (tool, args) = [
                        ("add", r#"{"a": 1, "b": 2}"#),
                        ("log_in", r#"{"user": "a", "password": "hunter2"}"#),
                        ("send", r#"{"to": "Ann", "amount": 5}"#),
                        ("fail", "{}"),
                        ("nothing", "{\"x\": "),
                    ][usize::from(kind - 5)];
                    // Some servers repeat ids.
                    next.part(Part::tool_call(format!("c{}", part % 2), tool, args))
                }
            };
        }
        if chance.below(8) == 7 {
            next = next.error(error("out of order"));
        }
        replies.push(next);
    }
    replies.push(reply().text("end"));
    ScriptedModel::new(replies).with_chunk_size(usize::from(chance.below(7)) + 1)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// Whatever a model says, tools do and people decide, and wherever the run is cancelled.
    #[test]
    fn any_run_is_a_valid_stream(bytes in proptest::collection::vec(any::<u8>(), 0..60), cut in 0_usize..60, decides in 0_u8..4) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (assistant, events) = runtime.block_on(async {
            let mut builder = builder(any_model(&bytes)).limits(UsageLimits { requests: Some(6), ..UsageLimits::default() });
            if decides > 0 {
                builder = builder.on_approval(move |_| async move {
                    match decides {
                        1 => Decision::Allow,
                        2 => Decision::Deny("no".into()),
                        _ => Decision::AllowWith(json!({"to": "Bo", "amount": 1})),
                    }
                });
            }
            let assistant = builder.build().unwrap();
            let log = EventLog::new();
            assistant.subscribe(log.listener()).forever();
            let (same, seen) = (assistant.clone(), log.clone());
            assistant.subscribe(move |_| if seen.events().len() == cut { same.cancel("enough") }).forever();
            let result = tokio::time::timeout(Duration::from_secs(60), assistant.prompt("go")).await;
            if let Ok(Ok(output)) = result
                && let Some(snapshot) = output.snapshot
            {
                let requests = snapshot.requests();
                let made = requests.iter().fold(Decisions::new(), Decisions::allow);
                drop(assistant.resume(&snapshot, made).await);
            }
            (assistant, log.events())
        });
        assert_valid(&assistant, &events);
    }
}

#[test]
fn numbers_in_ids_follow_the_events() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let assistant = builder(one_call()).build().unwrap();
    let events = runtime.block_on(events_of(&assistant));
    let chunks = encoded(UiProtocol::AiSdk, &assistant, &UiOptions::default(), &events);
    let mut last = (0, 0);
    for chunk in &chunks {
        let (_, position) = chunk.id.split_once(':').unwrap();
        let (seq, k) = position.split_once('.').unwrap();
        let next: (u64, i64) = (seq.parse().unwrap(), k.parse().unwrap());
        assert!(next > last || last == (0, 0), "{last:?} {next:?}");
        last = next;
    }
    let update = events.iter().find_map(|event| match &event.kind {
        agent::EventKind::MessageUpdate { update: ModelEvent::TextDelta { .. }, .. } => Some(event.seq),
        _ => None,
    });
    assert!(chunks.iter().any(|chunk| chunk.id.contains(&format!(":{}.", update.unwrap()))));
}
