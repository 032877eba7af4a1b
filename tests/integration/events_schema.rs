//! Events as JSON against the published schema: `agent/events.schema.json`.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use agent::ScriptedModel;
use agent::message::{
    AssistantMessage, Content, Conversation, Cost, CustomMessage, Media, Message, OutcomeKind, Part,
    ProviderData, ProviderTool, Resource, ResourceLink, StopReason, ToolResultMessage, Usage,
};
use agent::model::{
    ContextRules, Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream,
    RateLimits, StepCx, reply,
};
use agent::run::Budget;
use agent::store::MemoryStore;
use agent::{
    Assistant, Decision, Decisions, Event, Progress, ToolContext, ToolError, ToolOutcome, ToolOutput, json,
    tool, tools,
};
use jsonschema::Validator;
use serde_json::Value;

/// The schema, and the same without what is left open for later versions.
static SCHEMAS: LazyLock<[(Value, Validator); 2]> = LazyLock::new(|| {
    let published: Value = serde_json::from_str(Event::JSON_SCHEMA).unwrap();
    let mut closed = published.clone();
    close(&mut closed);
    [published, closed].map(|schema| {
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        (schema, validator)
    })
});

/// Refuses unknown kinds and fields.
fn close(schema: &mut Value) {
    let is_open = |choice: &Value| choice["$ref"].as_str().is_some_and(|name| name.contains("/other_"));
    if let Some(choices) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        choices.retain(|choice| !is_open(choice));
    }
    // A branch of a condition describes an object only in part.
    if schema.get("type") == Some(&json!("object"))
        && schema.get("properties").is_some()
        && schema.get("additionalProperties").is_none()
    {
        schema["additionalProperties"] = json!(false);
    }
    match schema {
        Value::Object(map) => map.values_mut().for_each(close),
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

/// Whether the schema describes all of these events.
pub(crate) fn assert_described<'e>(events: impl IntoIterator<Item = &'e Event>) {
    for event in events {
        for event in
            [serde_json::to_value(event).unwrap(), serde_json::to_value(event.with_secrets()).unwrap()]
        {
            for (_, validator) in &*SCHEMAS {
                let kind = &event["type"];
                let errors: Vec<String> =
                    validator.iter_errors(&event).map(|error| error.to_string()).collect();
                assert!(errors.is_empty(), "{kind}: {errors:#?}\n{event:#}");
            }
        }
    }
}

/// Adds two numbers.
#[tool(inline)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Sends money.
#[tool(approval = "always")]
fn send(amount: u64, #[arg(secret)] pin: Option<String>) -> Result<String, ToolError> {
    let _ = pin;
    Err(ToolError::new(format!("{amount} is too much")).with_metadata("limit", 3))
}

/// Reads pages.
#[tool(inline)]
fn read(cx: &ToolContext) -> String {
    cx.progress(Progress::new("reading").of(1, 2).with_content([Part::text("page 1")]));
    "both".to_owned()
}

/// Scrolls the page.
#[tool]
fn scroll() -> ToolOutcome {
    ToolOutcome::Deferred { handle: "h".into() }
}

/// Asks where to begin.
#[tool(read_only)]
async fn search(cx: &ToolContext) -> Result<String, ToolError> {
    Ok(cx.ask::<u8>("On which page?").await?.to_string())
}

/// Says everything that a model can say.
struct EveryUpdate(ModelInfo);

impl Model for EveryUpdate {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn stream(&self, cx: &StepCx, _request: &ModelRequest) -> ModelStream {
        let data = || ProviderData::new("own", json!({"signature": "x"}));
        let mut usage = Usage::new(10, 5);
        usage.cost = Some(Cost::default());
        usage.raw = Some(Box::new(json!({"tokens": 15})));
        let updates = [
            ModelEvent::ReplyStart { response_id: Some("r".into()), model: None },
            ModelEvent::ThinkingStart { content_index: 0 },
            ModelEvent::ThinkingDelta { content_index: 0, delta: "Hm.".into() },
            ModelEvent::PartData { content_index: 0, data: data() },
            ModelEvent::ThinkingEnd { content_index: 0 },
            ModelEvent::TextStart { content_index: 1 },
            ModelEvent::TextDelta { content_index: 1, delta: "Hi".into() },
            ModelEvent::TextEnd { content_index: 1 },
            ModelEvent::MessageData { data: data() },
            ModelEvent::Usage { usage: Box::new(usage) },
            ModelEvent::Stop { reason: StopReason::Stop, detail: None, raw: Some("end".into()) },
        ];
        ModelStream::from_events(cx, &self.0, updates.map(Ok))
    }
}

fn parts() -> Vec<Part> {
    let mut tool = ProviderTool::new("search");
    (tool.id, tool.input, tool.output) = (Some("s".into()), Some(json!({"q": 1})), Some(json!([1])));
    vec![
        Part::refusal("no"),
        Part::image(vec![1], "image/png"),
        Part::new(Content::Document(Media::url("https://example.com/a.pdf").with_name("a"))),
        Part::new(Content::Audio(Media::file_id("f"))),
        Part::new(Content::Resource(Resource::text("file:///a", "text").with_mime_type("text/plain"))),
        Part::new(Content::ResourceLink(ResourceLink::new("https://example.com"))),
        Part::new(Content::ProviderTool(Box::new(tool))),
        Part::new(Content::Opaque(ProviderData::new("own", json!({"x": 1})))),
        serde_json::from_value(json!({"type": "thinking", "text": "", "redacted": true})).unwrap(),
    ]
}

/// The events of runs with everything that events can say.
async fn all_events() -> Vec<Event> {
    let log: Arc<Mutex<Vec<Event>>> = Arc::default();
    let model = ScriptedModel::new([
        parts()
            .into_iter()
            .fold(reply().text("Hm. "), agent::model::ScriptedReply::part)
            .tool_call("read", "{}"),
        reply()
            .tool_call("add", r#"{"a": "1", "b": 2}"#)
            .tool_call("add", r#"{"a": "x", "c": 1}"#)
            .tool_call("nothing", "{")
            .tool_call("send", r#"{"amount": 5, "pin": "1234"}"#)
            .tool_call("scroll", "{}")
            .tool_call("search", "{}"),
        reply().text("Done."),
        reply().text("More.").usage(Usage::new(3, 2)),
    ]);
    let to = log.clone();
    let listen = move |assistant: &Assistant| {
        let to = to.clone();
        assistant.subscribe(move |event| to.lock().unwrap().push(event.clone())).forever();
    };
    let assistant = Assistant::builder(model)
        .tools(tools![add, send, read, scroll, search])
        .request(ModelRequest::with_argument_events)
        .build()
        .unwrap();
    listen(&assistant);
    let custom =
        CustomMessage::new("opened", json!({"path": "a.rs"})).with_for_model("The user opened a.rs.");
    let prompt = assistant.prompt("go").with_message(Message::from(custom));
    assistant.follow_up("and then?");
    let suspended = prompt.await.unwrap().snapshot.unwrap();
    let request = &suspended.requests()[0];
    let changed = Decision::AllowWith(json!({"amount": 4}));
    let waits = assistant.resume(&suspended, Decisions::new().decide(request, changed)).await.unwrap();
    let (waits, scrolled) = (waits.snapshot.unwrap(), ToolOutput::text("scrolled"));
    let decisions = Decisions::new().deliver("call_6", scrolled).accept(&waits.questions()[0], 5);
    assistant.resume(&waits, decisions).await.unwrap();

    let info = ModelInfo::new("own", "own", "every");
    for other in [
        Assistant::builder(EveryUpdate(info)),
        Assistant::builder(ScriptedModel::new([reply().error(ModelError::protocol("x"))])),
        Assistant::builder(ScriptedModel::from_fn(|_| reply().tool_call("x", "{}"))).max_turns(1),
    ] {
        let other = other.build().unwrap();
        listen(&other);
        drop(other.prompt("go").await);
    }
    small_windows(&listen).await;
    std::mem::take(&mut *log.lock().unwrap())
}

/// Conversations that do not fit into the windows of their models, and a model that another one follows.
async fn small_windows(listen: &impl Fn(&Assistant)) {
    let model = |name: &str| {
        let answer = |request: &ModelRequest| {
            let is_summary = request.messages[0].text().contains("<transcript>");
            reply().text(if is_summary { r#"{"goal": "x", "open": ["y"]}"# } else { "Yes." })
        };
        ScriptedModel::from_fn(answer).with_info(ModelInfo::new("own", "own", name))
    };
    let page = |number: usize| {
        let id = format!("page_{number}");
        let call = AssistantMessage::new([Part::tool_call(&*id, "read", "{}")]);
        let result =
            ToolResultMessage::new(id, "read", OutcomeKind::Completed).with_content("word ".repeat(430));
        [Message::user("Read."), call.into(), result.into(), Message::assistant("Read.")]
    };
    let results: Conversation = (0..8).flat_map(page).collect();
    let texts = (0..8).flat_map(|_| [Message::user("why ".repeat(1_000)), Message::assistant("Because.")]);
    for (conversation, prompt) in [
        (results, "go".to_owned()),
        (texts.collect(), "go".to_owned()),
        (Conversation::new(), "word ".repeat(4_500)),
    ] {
        let assistant = Assistant::builder(model("large"))
            .named_model("small", model("small"))
            .select_model(|turn| async move { Ok(turn.last_model().map(|_| "small".into())) })
            .request(|request| request.with_max_tokens(1_000))
            .conversation(conversation)
            .manage_context(ContextRules::new().window(8_000))
            .build()
            .unwrap();
        listen(&assistant);
        for prompt in [&*prompt, "And?"] {
            assistant.prompt(prompt).await.unwrap();
        }
    }
    let cut = reply().text("One, ").stop_reason(StopReason::MaxTokens);
    let model = ScriptedModel::new([cut, reply().text("two.")]);
    let assistant = Assistant::builder(model).continue_length(1).build().unwrap();
    listen(&assistant);
    assistant.prompt("Count.").await.unwrap();

    // A limit of the provider that is waited for, and a budget that is nearly spent.
    let busy = ModelError::new(ModelErrorKind::RateLimit, "busy").with_status(429);
    let busy = reply().error(busy.with_retry_after(Duration::from_millis(50)));
    let model = ScriptedModel::new([busy, reply().text("Yes.").usage(Usage::new(60, 60))]);
    let assistant = Assistant::builder(model.limited(RateLimits::new().concurrency(4)))
        .request(|request| request.with_max_tokens(100))
        .store(MemoryStore::new())
        .budget(Budget::tokens(140).in_total())
        .build()
        .unwrap();
    listen(&assistant);
    for _ in 0..3 {
        drop(assistant.prompt("Go.").await);
    }
}

#[tokio::test]
async fn the_schema_describes_every_kind_of_event() {
    let events = all_events().await;
    assert_described(&events);
    let (schema, _) = &SCHEMAS[0];
    let events: Vec<Value> = events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let seen = |key: &str| -> BTreeSet<String> {
        events.iter().filter_map(|event| Some(event[key].as_str()?.to_owned())).collect()
    };
    let kinds: BTreeSet<String> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["$ref"].as_str().unwrap().rsplit_once('/').unwrap().1.to_owned())
        .filter(|kind| kind != "other_event")
        .collect();
    assert_eq!(seen("type"), kinds);
    let updates = &schema["$defs"]["message_update"]["properties"]["update"]["anyOf"][0]["enum"];
    let updates: BTreeSet<String> = serde_json::from_value(updates.clone()).unwrap();
    assert_eq!(seen("update"), updates);
}

#[tokio::test]
async fn the_schema_refuses_what_no_event_is() {
    let (schema, validator) = &SCHEMAS[0];
    for event in all_events().await {
        let event = serde_json::to_value(&event).unwrap();
        let kind = event["type"].as_str().unwrap();
        for key in schema["$defs"][kind]["required"].as_array().unwrap() {
            let key = key.as_str().unwrap();
            let mut less = event.clone();
            less.as_object_mut().unwrap().remove(key);
            assert!(!validator.is_valid(&less), "{kind} without {key}");
            // No field is a list of lists; arguments and parts can be anything.
            let mut other = event.clone();
            other[key] = json!([[1]]);
            let is_free = key == "args" || key == "content";
            assert!(is_free || !validator.is_valid(&other), "{kind} with another {key}");
        }
        // A later version may add fields and kinds.
        let mut later = event.clone();
        later["later"] = json!(1);
        assert!(validator.is_valid(&later) && !SCHEMAS[1].1.is_valid(&later));
        later["type"] = json!("later");
        assert!(validator.is_valid(&later) && !SCHEMAS[1].1.is_valid(&later));
    }
}
