//! The table of the guide that says what each protocol loses: every row, against streams.

use agent::ScriptedModel;
use agent::message::{Content, Media, Part, ProviderData, ProviderTool, Usage};
use agent::model::{ScriptedReply, reply};
use agent::ui::{UiEncoder, UiOptions, UiProtocol, UiRequest};
use agent::{
    Assistant, Decision, Event, EventKind, ToolArgs, ToolContext, ToolError, UsageLimits, json, tool, tools,
};
use serde_json::Value;

use crate::ui_encode::{builder, encoded, events_of, golden, lines, suspended};
use crate::ui_readers::{AgUiReader, AiSdkReader};

/// Both streams of a run, as lines and as clients read them.
struct Streams {
    ai: String,
    ag: String,
    ai_page: AiSdkReader,
    ag_ui_page: AgUiReader,
}

impl Streams {
    fn of(ai: String, ag: String) -> Self {
        let values = |lines: &str| -> Vec<Value> {
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let (mut ai_page, mut ag_ui_page) = (AiSdkReader::default(), AgUiReader::default());
        ai_page.read_all(&values(&ai));
        ag_ui_page.read_all(&values(&ag));
        Self { ai, ag, ai_page, ag_ui_page }
    }

    fn custom(&self, name: &str) -> Option<&Value> {
        self.ag_ui_page.custom.iter().find(|(of, _)| of == name).map(|(_, value)| value)
    }

    /// Whether both have this text.
    fn both(&self, text: &str) -> bool {
        self.ai.contains(text) && self.ag.contains(text)
    }

    fn neither(&self, text: &str) -> bool {
        !self.ai.contains(text) && !self.ag.contains(text)
    }
}

async fn streams(replies: impl IntoIterator<Item = ScriptedReply>) -> Streams {
    let model = ScriptedModel::new(replies).with_chunk_size(3);
    let (ai, ag) = golden(model, &UiOptions::default()).await;
    Streams::of(ai, ag)
}

fn streams_of(assistant: &Assistant, events: &[Event]) -> Streams {
    let [ai, ag] = [UiProtocol::AiSdk, UiProtocol::AgUi]
        .map(|protocol| lines(&encoded(protocol, assistant, &UiOptions::default(), events)));
    Streams::of(ai, ag)
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

async fn check_reply(row: &str) -> bool {
    match row {
        "several texts of a reply" => {
            let both = streams([reply().text("One.").thinking("Hm.").text("Two.")]).await;
            let texts = both.ai_page.message.iter().filter(|part| part["type"] == "text").count();
            let messages: Vec<&Value> =
                both.ag_ui_page.messages.iter().filter(|message| message["role"] == "assistant").collect();
            assert_eq!((texts, messages.len()), (2, 1));
            assert_eq!(messages[0]["content"], "One.Two.");
        }
        "thinking" => {
            let data = ProviderData::new("own", json!({"signature": "sig-1"}));
            let mut signed = Part::new(
                serde_json::from_value::<Part>(json!({"type": "thinking", "text": "Hm."})).unwrap().content,
            );
            signed.provider_data = Some(Box::new(data));
            let redacted: Part =
                serde_json::from_value(json!({"type": "thinking", "text": "", "redacted": true, "provider_data": {"provider": "own", "data": "blob-1"}}))
                    .unwrap();
            let both = streams([reply().part(signed).part(redacted).text("Yes.")]).await;
            assert!(both.both("Hm.") && both.neither("sig-1") && both.neither("blob-1"), "{}", both.ai);
        }
        "a refusal" => {
            let both = streams([reply().part(Part::refusal("I will not."))]).await;
            assert!(both.ai.contains(r#""type":"data-agent-refused""#) && both.both("I will not."));
            assert!(both.custom("agent.refused").is_some());
            assert_eq!(both.ag_ui_page.messages[0]["content"], "I will not.");
        }
        "files and sources of a reply" => {
            let named = Media::url("https://example.com/a.png").with_name("name-1.png");
            let parts = [named, Media::file_id("file-1")].map(|media| Part::new(Content::Image(media)));
            let both = streams([parts.into_iter().fold(reply(), ScriptedReply::part)]).await;
            assert!(
                both.neither("name-1") && both.neither("file-1") && both.both("https://example.com/a.png")
            );
            assert!(both.custom("agent.file").is_some());
        }
        "a limit" => {
            let endless = ScriptedModel::from_fn(|_| reply().tool_call("add", r#"{"a": 1, "b": 1}"#));
            let limits = UsageLimits { requests: Some(1), ..UsageLimits::default() };
            let assistant = builder(endless).limits(limits).build().unwrap();
            let both = streams_of(&assistant, &events_of(&assistant).await);
            assert!(both.ai.contains(r#""data":{"stop":"limit","limit":"requests"}"#));
            assert_eq!(both.custom("agent.stop").unwrap()["limit"], "requests");
            assert_eq!(both.ag_ui_page.outcome["type"], "cancelled");
        }
        "a cancelled run" => {
            let assistant = builder(ScriptedModel::new([reply().text("half").hang()])).build().unwrap();
            let same = assistant.clone();
            let stop = move |event: &Event| {
                if matches!(event.kind, EventKind::MessageUpdate { .. }) {
                    same.cancel("reason-1");
                }
            };
            assistant.subscribe(stop).forever();
            let both = streams_of(&assistant, &events_of(&assistant).await);
            assert!(both.ai.contains(r#"{"type":"abort"}"#) && both.neither("reason-1"), "{}", both.ai);
            assert_eq!(both.ag_ui_page.outcome["type"], "cancelled");
        }
        "provider tools" => {
            let mut search = ProviderTool::new("web_search");
            (search.id, search.input, search.output) =
                (Some("w".into()), Some(json!({"q": "tea"})), Some(json!("result-1")));
            let both =
                streams([reply().part(Part::new(Content::ProviderTool(Box::new(search)))).text("Yes.")])
                    .await;
            assert!(both.both("tea") && both.neither("result-1"), "{}", both.ai);
        }
        "token counts" => {
            let mut usage = Usage::new(10, 5);
            usage.cost = Some(agent::message::Cost::default());
            let one = || reply().tool_call("add", r#"{"a": 1, "b": 1}"#).usage(usage.clone());
            let both = streams([one(), reply().text("2").usage(usage.clone())]).await;
            assert_eq!(both.ai_page.metadata["usage"]["totalTokens"], 30);
            assert!(both.ag.contains(r#""usage":[{"#) && both.neither("cost"), "{}", both.ag);
        }
        _ => return false,
    }
    true
}

async fn check_sub_agents() {
    let model = ScriptedModel::new([
        reply()
            .text("A long text.")
            .tool_call("add", r#"{"a": "1", "b": 2}"#)
            .tool_call("add", r#"{"a": "x"}"#),
        reply().text("3"),
    ]);
    let expert = builder(model.with_chunk_size(3)).build().unwrap();
    let model = ScriptedModel::new([reply().tool_call("ask", r#"{"task": "Add."}"#), reply().text("ok")]);
    let assistant = Assistant::builder(model).tools(expert.as_tool("ask", "Adds.")).build().unwrap();
    let events = events_of(&assistant).await;
    let hidden = streams_of(&assistant, &events);
    assert!(
        hidden.neither("A long text.") && hidden.neither("text_to_integer") && hidden.neither("agent.report"),
        "{}",
        hidden.ai
    );
    let [ai, ag] = [UiProtocol::AiSdk, UiProtocol::AgUi]
        .map(|protocol| lines(&encoded(protocol, &assistant, &UiOptions::default().show_results(), &events)));
    let shown = Streams::of(ai, ag);
    assert!(shown.both("A long text."), "it does not come in pieces: {}", shown.ag);
    assert!(shown.ai.contains("data-agent-run") && shown.ag_ui_page.subagents.len() == 1);
}

async fn check_call(row: &str) -> bool {
    match row {
        "sub-agents" => check_sub_agents().await,
        "arguments while they grow" => {
            let both = streams([
                reply()
                    .tool_call("log_in", r#"{"user": "ann", "password": "hunter2"}"#)
                    .tool_call("add", r#"{"a": 1, "b": 2}"#),
                reply().text("ok"),
            ])
            .await;
            let deltas = |lines: &str, kind: &str, call: &str| {
                lines.lines().filter(|line| line.contains(kind) && line.contains(call)).count()
            };
            assert_eq!(deltas(&both.ai, "tool-input-delta", "call_1"), 0);
            assert_eq!(deltas(&both.ag, "TOOL_CALL_ARGS", "call_1"), 1);
            assert!(deltas(&both.ai, "tool-input-delta", "call_2") > 3);
            assert!(deltas(&both.ag, "TOOL_CALL_ARGS", "call_2") > 3);
        }
        "coercions, issues" => {
            let calls = reply().tool_call("add", r#"{"a": "1", "b": 2}"#).tool_call("add", r#"{"a": "x"}"#);
            let both = streams([calls, reply().text("ok")]).await;
            for (part, event, field) in [
                ("data-agent-coercions", "agent.coercions", "coercions"),
                ("data-agent-report", "agent.report", "issues"),
            ] {
                let data = both.ai_page.message.iter().find(|one| one["type"] == part).unwrap();
                assert_eq!(data["data"][field], both.custom(event).unwrap()[field]);
            }
        }
        "an error of a call" => {
            let model = ScriptedModel::new([reply().tool_call("fail", "{}"), reply().text("ok")]);
            let assistant = builder(model).build().unwrap();
            let events = events_of(&assistant).await;
            let both = streams_of(&assistant, &events);
            let facts = json!({"outcome": "failed", "code": "tool_error"});
            assert!(both.ai.contains(r#""outcome":"failed","code":"tool_error""#), "{}", both.ai);
            assert!(both.ag.contains(&format!(r#""metadata":{facts}"#)), "{}", both.ag);
            // A client that does not declare the version.
            let old = json!({"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "go"}]});
            let old = UiRequest::decode(UiProtocol::AgUi, old.to_string().as_bytes()).unwrap();
            let options = UiOptions::default();
            let mut encoder = UiEncoder::new(UiProtocol::AgUi, assistant.registry(), &options, &old);
            let mut chunks = Vec::new();
            for event in &events {
                encoder.encode(event, &mut chunks);
            }
            let text: String = chunks.iter().map(|chunk| chunk.json.as_str()).collect();
            assert!(text.contains("agent.outcome") && !text.contains("metadata"), "{text}");
        }
        "a structured result" => {
            let tool = agent::Tool::new(
                "weather",
                "The weather.",
                json!({"type": "object"}),
                |_: Value, _: ToolContext| async { agent::Json(json!({"degrees": 21})) },
            );
            let model = ScriptedModel::new([reply().tool_call("weather", "{}"), reply().text("ok")]);
            let assistant = Assistant::builder(model).tools(tool.unwrap()).build().unwrap();
            let events = events_of(&assistant).await;
            let options = UiOptions::default().show_results();
            let [ai, ag] = [UiProtocol::AiSdk, UiProtocol::AgUi]
                .map(|protocol| lines(&encoded(protocol, &assistant, &options, &events)));
            assert!(ai.contains(r#""output":{"degrees":21}"#), "{ai}");
            assert!(ag.contains(r#""content":"{\"degrees\":21}""#), "{ag}");
        }
        "progress" => {
            let both = streams([reply().tool_call("read", "{}"), reply().text("ok")]).await;
            let line = both.ai.lines().find(|line| line.contains("data-agent-progress")).unwrap();
            assert!(line.contains(r#""transient":true"#), "{line}");
            assert_eq!(both.ag_ui_page.activities.len(), 1);
        }
        "a call that waits for something else" => {
            let assistant =
                builder(ScriptedModel::new([reply().tool_call("scroll", r#"{"to": 5}"#)])).build().unwrap();
            let both = streams_of(&assistant, &events_of(&assistant).await);
            assert!(both.ai.contains("data-agent-waiting") && both.neither("secret-handle"));
            assert_eq!(both.ag_ui_page.outcome["interrupts"][0]["reason"], "waiting");
        }
        "a queued message" => {
            let model =
                ScriptedModel::new([reply().tool_call("add", r#"{"a": 1, "b": 1}"#), reply().text("ok")]);
            let assistant = builder(model).build().unwrap();
            let same = assistant.clone();
            let steer = move |event: &Event| {
                if matches!(event.kind, EventKind::ToolExecutionStart { .. }) {
                    let image = Part::new(Content::Image(Media::url("https://example.com/b.png")));
                    same.steer(agent::message::UserMessage::new([Part::text("Be quick!"), image]));
                }
            };
            assistant.subscribe(steer).forever();
            let both = streams_of(&assistant, &events_of(&assistant).await);
            assert!(both.both("Be quick!") && both.neither("follow"));
            assert!(both.ai.contains("b.png") && !both.ag.contains("b.png"));
        }
        _ => return false,
    }
    true
}

async fn check_decision(row: &str) -> bool {
    match row {
        "who decided, by which rule" => {
            let (ai, ag) = suspended(|_| Decision::Deny("reason-1".into())).await;
            let line = |lines: &str, kind: &str, id: &str| -> Value {
                let is_it = |line: &&str| line.contains(kind) && line.contains(id);
                serde_json::from_str(lines.lines().find(is_it).unwrap()).unwrap()
            };
            let response = line(&ai, "tool-approval-response", "/approval/");
            assert_eq!(keys(&response), ["type", "approvalId", "approved"]);
            assert_eq!(keys(&line(&ag, "agent.approval", "")["value"]), ["toolCallId", "approved", "edited"]);
        }
        "a decision with changed arguments" => {
            let (ai, ag) = suspended(|_| Decision::AllowWith(json!({"to": "Bo-1", "amount": 4}))).await;
            assert!(ai.contains(r#""input":{"to":"Bo-1","amount":4}"#), "{ai}");
            let approval = ag.lines().find(|line| line.contains("agent.approval")).unwrap();
            assert!(approval.contains(r#""edited":true"#) && !approval.contains("Bo-1"), "{approval}");
        }
        "a question of a tool" => {
            let [ai, ag] = question_streams().await;
            let asked = ai.lines().find(|line| line.contains("approvalDescriptor")).unwrap();
            assert!(asked.contains(r#""type":"questions""#) && asked.contains(r#""maximum":20"#), "{asked}");
            assert!(ag.contains("input_required") && ag.contains(r#""maximum":20"#), "{ag}");
        }
        _ => return false,
    }
    true
}

/// Asks for a coach.
#[tool(asks)]
async fn coach(cx: &ToolContext) -> Result<String, ToolError> {
    let coach: Coach = cx.ask("Which coach?").await?;
    Ok(coach.number.to_string())
}

#[derive(ToolArgs)]
struct Coach {
    #[arg(range(1..=20))]
    number: u8,
}

async fn question_streams() -> [String; 2] {
    let model = ScriptedModel::new([reply().tool_call("coach", "{}")]);
    let assistant = Assistant::builder(model).tools(tools![coach]).build().unwrap();
    let events = events_of(&assistant).await;
    [UiProtocol::AiSdk, UiProtocol::AgUi]
        .map(|protocol| lines(&encoded(protocol, &assistant, &UiOptions::default(), &events)))
}

#[tokio::test]
async fn the_version_of_the_ai_sdk_changes_nothing_of_ag_ui() {
    let model =
        ScriptedModel::new([reply().tool_call("send", r#"{"to": "Ann", "amount": 5}"#), reply().text("ok")]);
    let assistant = builder(model).on_approval(|_| async { Decision::Deny("no".into()) }).build().unwrap();
    let events = events_of(&assistant).await;
    let of = |options: UiOptions| lines(&encoded(UiProtocol::AgUi, &assistant, &options, &events));
    assert_eq!(of(UiOptions::default().ai_sdk_version(6)), of(UiOptions::default()));
}

#[tokio::test]
async fn arguments_of_an_unknown_tool_have_no_gap() {
    let numbers: String = (0..1540).map(|n| n.to_string()).collect();
    let args = json!({"numbers": numbers}).to_string();
    let model = ScriptedModel::new([reply().tool_call("nothing", &*args), reply().text("ok")]);
    let assistant = Assistant::builder(model.with_chunk_size(1000)).tools(tools![coach]).build().unwrap();
    let both = streams_of(&assistant, &events_of(&assistant).await);
    let chunks = both.ai.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let sent: String =
        chunks.filter_map(|chunk| Some(chunk["inputTextDelta"].as_str()?.to_owned())).collect();
    assert!(args.len() > 5000 && sent.len() == 4096 && args.starts_with(&sent), "{sent}");
}

#[tokio::test]
async fn every_row_of_the_guide_is_true() {
    let guide = include_str!("../../agent/src/guide/screens.md");
    let (_, table) = guide.split_once("# What each protocol loses").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: Vec<&str> =
        rows.map(str::trim).filter(|row| !row.is_empty() && !row.starts_with(['|', '-'])).collect();
    assert!(rows.len() >= 17, "{rows:?}");
    for row in rows {
        let is_known = check_reply(row).await || check_call(row).await || check_decision(row).await;
        assert!(is_known, "the row `{row}` has no check");
    }
}
