//! Traces, against the registry of the OpenTelemetry conventions for generative AI (`golden/genai-conventions.json`): every
//! attribute of every span exists there under its name with its type, or is our own; captured content has the JSON form of the
//! conventions.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use agent::ScriptedModel;
use agent::durable::{Rehearsal, RunRequest, Service};
use agent::message::{
    Content, CustomMessage, Media, Message, OutcomeKind, Part, ProviderTool, Resource, ResourceLink,
    ToolResultMessage, Usage,
};
use agent::model::{
    Capabilities, Fallback, ManagedTool, Model as _, ModelError, ModelErrorKind, ModelInfo, OutputSchema,
    Thinking, reply,
};
use agent::provider::Catalogue;
use agent::{Assistant, AssistantBuilder, ToolOutput, json, tool, tools};
use serde_json::Value;

use crate::context_runs::{chat, is_summary, rules};
use crate::provider_support::{Server, head, send};
use crate::trace_support::{Span, Traces, hear};

static CONVENTIONS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../golden/genai-conventions.json")).expect("a table")
});

fn words(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

/// What is wrong with an attribute, if anything.
fn fault(name: &str, kind: &str, value: &str) -> Option<String> {
    let table = &*CONVENTIONS;
    let Some(wanted) = table["attributes"].get(name).or(table["own"].get(name)) else {
        return Some("is not in the registry".to_owned());
    };
    let wanted = wanted.as_str().expect("a type");
    // Lists and structures are JSON, which is text to `tracing`.
    let is_json = matches!(wanted, "string[]" | "any");
    if kind != if is_json { "string" } else { wanted } {
        return Some(format!("is recorded as {kind}, and is {wanted}"));
    }
    let json: Option<Value> = is_json.then(|| serde_json::from_str(value).ok()).flatten();
    let is_list =
        json.as_ref().and_then(Value::as_array).is_some_and(|list| list.iter().all(Value::is_string));
    if (is_json && json.is_none()) || (wanted == "string[]" && !is_list) {
        return Some(format!("is no JSON of {wanted}: {value}"));
    }
    let known = table["well_known"].get(name).filter(|_| name != "gen_ai.provider.name");
    if known.is_some_and(|known| !words(known).contains(&value)) {
        return Some(format!("has no value of the list: {value}"));
    }
    if name == "gen_ai.response.finish_reasons"
        && !words(&table["finish_reasons"]).contains(&json.as_ref()?[0].as_str()?)
    {
        return Some(format!("has a reason that is not one of the conventions: {value}"));
    }
    match (name, json) {
        ("gen_ai.input.messages", Some(messages)) => message_fault(&messages, false),
        ("gen_ai.output.messages", Some(messages)) => message_fault(&messages, true),
        ("gen_ai.system_instructions", Some(parts)) => parts_fault(&parts),
        ("gen_ai.tool.definitions", Some(tools)) => {
            let is_tool = |tool: &Value| tool["type"].is_string() && tool["name"].is_string();
            (!tools.as_array()?.iter().all(is_tool))
                .then(|| format!("has tools without type or name: {tools}"))
        }
        ("gen_ai.tool.call.arguments", Some(arguments)) => {
            (!arguments.is_object()).then(|| format!("is no object: {arguments}"))
        }
        _ => None,
    }
}

fn message_fault(messages: &Value, is_output: bool) -> Option<String> {
    let Some(messages) = messages.as_array().filter(|messages| !is_output || messages.len() == 1) else {
        return Some(format!("is no list of messages: {messages}"));
    };
    messages.iter().find_map(|message| {
        let role = message["role"].as_str().unwrap_or_default();
        if !words(&CONVENTIONS["messages"]["role"]).contains(&role) {
            return Some(format!("has the role {role:?}"));
        }
        let reason = message.get("finish_reason").and_then(Value::as_str);
        let is_known = |reason| words(&CONVENTIONS["finish_reasons"]).contains(&reason);
        if is_output != reason.is_some_and(is_known) {
            return Some(format!("has the finish reason {reason:?}"));
        }
        parts_fault(&message["parts"])
    })
}

fn parts_fault(parts: &Value) -> Option<String> {
    let table = &CONVENTIONS["messages"];
    let Some(parts) = parts.as_array() else { return Some(format!("has no list of parts: {parts}")) };
    parts.iter().find_map(|part| {
        let kind = part["type"].as_str().unwrap_or_default();
        let Some(fields) = table["parts"].get(kind).and_then(Value::as_object) else {
            let is_own = words(&table["own_parts"]).contains(&kind);
            return (!is_own).then(|| format!("has a part of type {kind:?}: {part}"));
        };
        for (name, wanted) in fields {
            let wanted = wanted.as_str().expect("a type");
            let value = part.get(name).filter(|value| !value.is_null() || wanted == "any");
            let fits = match (value, wanted.trim_end_matches('?')) {
                (None, _) => wanted.ends_with('?'),
                (Some(value), "string") => value.is_string(),
                (Some(value), "typed") => value["type"].is_string(),
                (Some(_), _) => true,
            };
            if !fits {
                return Some(format!("has no {name} ({wanted}) in {part}"));
            }
        }
        let unknown = part.as_object()?.keys().find(|key| *key != "type" && !fields.contains_key(*key));
        let odd = part
            .get("modality")
            .and_then(Value::as_str)
            .filter(|word| !words(&table["modality"]).contains(word));
        unknown
            .map(|key| format!("has {key} in {part}"))
            .or(odd.map(|word| format!("has the modality {word}")))
    })
}

/// Every fault of these traces, and the names of all attributes that were seen.
fn faults(traces: &Traces) -> (Vec<String>, BTreeSet<&'static str>) {
    let (mut faults, mut seen) = (Vec::new(), BTreeSet::new());
    let spans = traces.spans.lock().unwrap();
    assert!(!spans.is_empty());
    for Span { name, fields, kinds, .. } in spans.iter() {
        let Some(required) = CONVENTIONS["required"].get(name) else {
            faults.push(format!("there is no span {name}"));
            continue;
        };
        for wanted in words(required).iter().filter(|wanted| !fields.contains_key(**wanted)) {
            faults.push(format!("{name} has no {wanted}: {fields:?}"));
        }
        // Set together or not at all.
        for (one, other) in [("error.type", "otel.status_code"), ("server.address", "server.port")] {
            if fields.contains_key(one) != fields.contains_key(other) {
                faults.push(format!("{name} has one of {one} and {other}"));
            }
        }
        for (field, value) in fields {
            seen.insert(*field);
            faults.extend(fault(field, kinds[field], value).map(|fault| format!("{name}: {field} {fault}")));
        }
    }
    for (_, fields) in traces.events.lock().unwrap().iter() {
        let is_ours = fields
            .get("message")
            .is_some_and(|name| name.starts_with("agent.") || name.starts_with("gen_ai."));
        for (field, value) in fields.iter().filter(|(field, _)| is_ours && **field != "message") {
            seen.insert(*field);
            faults.extend(fault(field, "string", value).map(|fault| format!("event: {field} {fault}")));
        }
    }
    (faults, seen)
}

/// Does what it is told.
#[tool(inline, cache)]
fn look(what: String, times: Option<u32>) -> ToolOutput {
    match what.as_str() {
        "object" => ToolOutput::text(r#"{"found": true}"#),
        "picture" => ToolOutput::parts(vec![Part::text("See:"), Part::image(vec![1, 2], "image/png")]),
        _ => ToolOutput::text(format!("{what} {times:?}")),
    }
}

/// Fails.
#[tool(inline)]
fn boom() -> Result<String, agent::ToolError> {
    Err(agent::ToolError::new("kaput"))
}

fn usage() -> Usage {
    let mut usage = Usage::new(120, 34);
    (usage.cache_read, usage.cache_write, usage.reasoning) = (100, 15, 12);
    let counts = |text| json!({"text_tokens": text, "image_tokens": 40, "audio_tokens": 20});
    let mut of_input = counts(60);
    of_input["cached_tokens_details"] = counts(40);
    usage.raw = Some(Box::new(json!({"input_tokens_details": of_input, "output_tokens_details": counts(4)})));
    usage
}

/// Calls of every end, a reply with thinking, and one cut short.
fn script() -> ScriptedModel {
    let mut capabilities = Capabilities::default();
    capabilities.native_output = true;
    ScriptedModel::new([
        reply()
            .thinking("Let me see.")
            .tool_call("look", r#"{"what": "tea", "times": "2"}"#)
            .tool_call("look", r#"{"what": "object"}"#)
            .tool_call("look", r#"{"what": "picture"}"#)
            .usage(usage()),
        reply()
            .tool_call("look", r#"{"what": "tea", "times": "2"}"#)
            .tool_call("look", r#"{"wat": "tea", "what": ["tea"]}"#)
            .tool_call("boom", "{}")
            .tool_call("nothing", "{}"),
        reply().text("{}").stop_reason("max_tokens").usage(usage()),
    ])
    .with_info(
        ModelInfo::new("xai", "openai-chat", "grok")
            .with_server("api.x.ai", 443)
            .with_capabilities(capabilities),
    )
}

fn builder(model: ScriptedModel) -> AssistantBuilder {
    Assistant::builder(model).tools(tools![look, boom]).system("Be brief.").cache_results().request(
        |request| {
            request
                .with_max_tokens(500)
                .with_temperature(0.5)
                .with_top_p(0.9)
                .with_stop(["END", "\n\n"])
                .with_thinking(Thinking::High)
                .with_managed_tools([ManagedTool::web_search()])
                .with_output(OutputSchema::new("answer", json!({"type": "object"})))
        },
    )
}

pub(crate) fn traced() -> (Traces, impl Drop) {
    let traces = Traces::default();
    let guard = hear(traces.clone());
    (traces, guard)
}

pub(crate) fn assert_conforms(traces: &Traces) -> BTreeSet<&'static str> {
    let (faults, seen) = faults(traces);
    assert!(faults.is_empty(), "{faults:#?}");
    seen
}

pub(crate) fn field<'s>(span: &'s Span, name: &str) -> Option<&'s str> {
    span.fields.get(name).map(String::as_str)
}

#[tokio::test]
async fn every_attribute_of_a_run_is_in_the_registry_with_its_type() {
    let mut seen = BTreeSet::new();
    for is_captured in [false, true] {
        let (traces, _guard) = traced();
        let builder = builder(script());
        let builder = if is_captured { builder.capture_content() } else { builder };
        builder.build().unwrap().prompt("Look for tea.").session_id("s-1").await.unwrap();
        seen.extend(assert_conforms(&traces));
        let spans = traces.spans.lock().unwrap();
        let chats: Vec<_> = spans.iter().filter(|span| span.name == "chat").collect();
        assert_eq!(chats.len(), 3, "{spans:?}");
        for (name, value) in [
            ("gen_ai.provider.name", "x_ai"),
            ("server.address", "api.x.ai"),
            ("server.port", "443"),
            ("gen_ai.conversation.id", "s-1"),
            ("gen_ai.request.stream", "true"),
            ("gen_ai.request.reasoning.level", "high"),
            ("gen_ai.request.stop_sequences", r#"["END","\n\n"]"#),
            ("gen_ai.output.type", "json"),
            ("gen_ai.response.finish_reasons", r#"["tool_call"]"#),
            ("gen_ai.usage.input_tokens", "120"),
            ("gen_ai.usage.cache_read.input_tokens", "100"),
            ("gen_ai.usage.cache_write.input_tokens", "15"),
            ("gen_ai.usage.reasoning.output_tokens", "12"),
            ("gen_ai.usage.text.input_tokens", "60"),
            ("gen_ai.usage.text.output_tokens", "4"),
            ("gen_ai.usage.audio.cache_read.input_tokens", "20"),
        ] {
            assert_eq!(field(chats[0], name), Some(value), "{name}");
        }
        assert!(field(chats[0], "gen_ai.response.time_to_first_chunk").is_some());
        // Nothing was reported of the second, which is not the same as nothing was used.
        assert_eq!(field(chats[1], "gen_ai.usage.input_tokens"), None);
        assert_eq!(field(chats[2], "gen_ai.response.finish_reasons"), Some(r#"["length"]"#));
        // The second of two equal calls was answered from the cache: nothing ran.
        let calls: Vec<_> = spans.iter().filter(|span| span.name == "execute_tool").collect();
        assert_eq!(calls.len(), 6, "{calls:?}");
        assert_eq!(field(calls[0], "gen_ai.tool.description"), Some("Does what it is told."));
        if is_captured {
            assert_eq!(field(calls[1], "gen_ai.tool.call.result"), Some(r#"{"found":true}"#));
            assert_eq!(
                field(chats[0], "gen_ai.tool.definitions"),
                Some(
                    r#"[{"type":"function","name":"look"},{"type":"function","name":"boom"},{"type":"web_search","name":"web_search"}]"#
                )
            );
        }
    }
    // A real protocol and the next test have what is left.
    let rest = [&["gen_ai.response.id"][..], &OF_LONG_RUNS].concat();
    let table = CONVENTIONS["attributes"]
        .as_object()
        .unwrap()
        .keys()
        .chain(CONVENTIONS["own"].as_object().unwrap().keys());
    let unseen: Vec<_> =
        table.filter(|name| !seen.contains(name.as_str()) && !rest.contains(&name.as_str())).collect();
    assert!(unseen.is_empty(), "the table has attributes that no span has: {unseen:?}");
}

#[tokio::test]
async fn captured_messages_have_the_form_of_the_conventions() {
    let (traces, _guard) = traced();
    let mut search = ProviderTool::new("web_search");
    (search.id, search.input, search.output) =
        (Some("w1".into()), Some(json!({"query": "tea"})), Some(json!([])));
    let model = ScriptedModel::new([reply()
        .thinking("Hm.")
        .part(Part::new(Content::ProviderTool(Box::new(search))))
        .part(Part::opaque("acme", json!({"type": "hologram"})))
        .part(Part::refusal("No."))
        .text("Found.")]);
    let said = [
        Message::user([
            Part::text("See:"),
            Part::image(vec![1, 2, 3], "image/png"),
            Part::image_url("https://a.example/i.png"),
            Part::document(b"%PDF-1.7", "application/pdf"),
            Part::audio(b"RIFF", "audio/wav"),
            Part::new(Content::Document(Media::file_id("file_1"))),
            Part::new(Content::Resource(Resource::text("file:///a.md", "# A"))),
            Part::new(Content::ResourceLink(ResourceLink::new("file:///b.md"))),
        ]),
        Message::assistant([Part::tool_call("c1", "look", r#"{"what": "tea"}"#)]),
        ToolResultMessage::new("c1", "look", OutcomeKind::Completed)
            .with_content([Part::text("See:"), Part::image(vec![1], "image/png")])
            .into(),
        CustomMessage::new("system", Value::Null).with_for_model("Be kind.").into(),
        CustomMessage::new("note", Value::Null).with_for_model("A note.").into(),
    ];
    let assistant = Assistant::builder(model)
        .tools(tools![look])
        .system("Be brief.")
        .conversation(said.into_iter().collect())
        .capture_content()
        .build();
    assistant.unwrap().prompt("And?").await.unwrap();
    assert_conforms(&traces);
    let spans = traces.spans.lock().unwrap();
    let chat = spans.iter().find(|span| span.name == "chat").unwrap();
    let json = |name| serde_json::from_str::<Value>(field(chat, name).unwrap()).unwrap();
    assert_eq!(json("gen_ai.system_instructions"), json!([{"type": "text", "content": "Be brief."}]));
    let input = json("gen_ai.input.messages");
    let roles: Vec<_> =
        input.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "system", "user", "user"]);
    assert_eq!(
        input[0]["parts"].as_array().unwrap()[..6],
        [
            json!({"type": "text", "content": "See:"}),
            json!({"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AQID"}),
            json!({"type": "uri", "modality": "image", "uri": "https://a.example/i.png"}),
            json!({"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "JVBERi0xLjc="}),
            json!({"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "UklGRg=="}),
            json!({"type": "file", "modality": "document", "file_id": "file_1"}),
        ]
    );
    assert_eq!(
        input[1]["parts"],
        json!([
            {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"what": "tea"}},
        ])
    );
    assert_eq!(
        input[2]["parts"],
        json!([{"type": "tool_call_response", "id": "c1", "response": [
            {"type": "text", "content": "See:"},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AQ=="},
        ]}])
    );
    assert_eq!(
        json("gen_ai.output.messages"),
        json!([{"role": "assistant", "finish_reason": "stop", "parts": [
            {"type": "reasoning", "content": "Hm."},
            {"type": "server_tool_call", "id": "w1", "name": "web_search",
             "server_tool_call": {"type": "web_search", "input": {"query": "tea"}}},
            {"type": "server_tool_call_response", "id": "w1",
             "server_tool_call_response": {"type": "web_search", "output": [], "is_error": false}},
            {"type": "opaque", "provider": "acme", "value": {"type": "hologram"}},
            {"type": "refusal", "content": "No."},
            {"type": "text", "content": "Found."},
        ]}])
    );
}

/// The attributes of runs with a name, several models or a summary.
const OF_LONG_RUNS: [&str; 7] = [
    "agent.compact.tokens_after",
    "agent.compact.tokens_before",
    "agent.fallback.answered",
    "agent.fallback.attempts",
    "gen_ai.agent.description",
    "gen_ai.agent.name",
    "gen_ai.conversation.compacted",
];

#[tokio::test]
async fn a_summary_the_models_of_a_fallback_and_the_name_of_the_agent_are_traced() {
    let busy = ModelError::new(ModelErrorKind::Overloaded, "a text of the provider");
    let first = ScriptedModel::from_fn(move |_| busy.clone().into());
    let first = first.with_info(ModelInfo::new("gemini", "gemini", "gemini-3-pro"));
    let second = ScriptedModel::from_fn(|request| {
        let record = r#"{"goal": "Know why", "open": ["Why"]}"#;
        reply().text(if is_summary(request) { record } else { "Because." })
    });
    let second = second.with_info(ModelInfo::new("xai", "openai-chat", "grok"));
    let (traces, _guard) = traced();
    let assistant = Assistant::builder(Fallback::new([first, second]))
        .agent_name("support")
        .agent_description("Answers questions about orders.")
        .conversation(chat(600, 15))
        .manage_context(rules())
        .build()
        .unwrap();
    assistant.prompt("And now?").await.unwrap();
    let seen = assert_conforms(&traces);
    assert!(OF_LONG_RUNS.iter().all(|name| seen.contains(name)), "{seen:?}");

    let spans = traces.spans.lock().unwrap();
    let [run] = &spans.iter().filter(|span| span.name == "invoke_agent").collect::<Vec<_>>()[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(field(run, "otel.name"), Some("invoke_agent support"));
    let chats: Vec<_> = spans.iter().filter(|span| span.name == "chat").collect();
    let compacted: Vec<_> = chats.iter().map(|span| field(span, "gen_ai.conversation.compacted")).collect();
    let is_in = Some("true");
    let around = |span: &Span| &spans[index(span.parent)];
    assert_eq!(compacted, [None, None, is_in, is_in], "the summary, and the request that begins with it");
    for pair in chats.chunks(2) {
        let names = pair.iter().map(|chat| field(chat, "otel.name").unwrap());
        assert_eq!(names.collect::<Vec<_>>(), ["generate_content gemini-3-pro", "chat grok"]);
        assert_eq!(field(pair[0], "gen_ai.operation.name"), Some("generate_content"));
        assert_eq!(field(pair[0], "error.type"), Some("overloaded"));
        assert_eq!(field(pair[1], "agent.stop_reason"), Some("stop"));
        assert_eq!(pair[0].parent, pair[1].parent);
        let all = around(pair[0]);
        assert_eq!(all.name, "agent.fallback");
        assert_eq!(field(all, "agent.fallback.attempts"), Some("1"));
        assert_eq!(field(all, "agent.fallback.answered"), Some("xai/grok"));
    }
    let [compaction, turn] = [chats[0], chats[2]].map(|chat| around(around(chat)).name);
    assert_eq!([compaction, turn], ["agent.compact", "turn"]);
    let events = traces.events.lock().unwrap();
    let attempts: Vec<_> = events
        .iter()
        .filter(|(_, fields)| fields.get("message").is_some_and(|name| name == "agent.fallback.attempt"))
        .collect();
    assert_eq!(attempts.len(), 2, "{events:?}");
    for (_, fields) in attempts {
        let named = ["gen_ai.provider.name", "gen_ai.request.model", "error.type"].map(|name| &*fields[name]);
        assert_eq!(named, ["gcp.gemini", "gemini-3-pro", "overloaded"]);
    }
}

pub(crate) fn index(id: Option<u64>) -> usize {
    usize::try_from(id.expect("a span around")).unwrap() - 1
}

#[tokio::test]
async fn a_failed_request_conforms() {
    let error = ModelError::new(ModelErrorKind::Connection, "no route");
    for broken in [
        reply().error(ModelError::new(ModelErrorKind::Overloaded, "busy")),
        reply().text("Half").error(error),
    ] {
        let (traces, _guard) = traced();
        builder(ScriptedModel::new([broken]))
            .capture_content()
            .build()
            .unwrap()
            .prompt("go")
            .await
            .unwrap_err();
        assert_conforms(&traces);
        let spans = traces.spans.lock().unwrap();
        let chat = spans.iter().find(|span| span.name == "chat").unwrap();
        assert_eq!(field(chat, "gen_ai.response.finish_reasons"), Some(r#"["error"]"#));
        assert!(field(chat, "error.type").is_some());
    }
}

#[tokio::test]
async fn every_protocol_is_traced_with_its_server_and_nothing_of_its_address_besides() {
    let bodies = Server::new([]).await.all().map(|(_, body, _)| body);
    for (at, body) in bodies.into_iter().enumerate() {
        let server = Server::new([vec![head(None), send(body)]]).await;
        let port = server.url.rsplit(':').next().unwrap().to_owned();
        let (traces, _guard) = traced();
        let model = server.all().into_iter().nth(at).unwrap().0.build().unwrap();
        let own = model.info().provider.clone();
        Assistant::builder(model).build().unwrap().prompt("Hi").await.unwrap();
        assert_conforms(&traces);
        let spans = traces.spans.lock().unwrap();
        let chat = spans.iter().find(|span| span.name == "chat").unwrap();
        assert_eq!(
            (field(chat, "server.address"), field(chat, "server.port")),
            (Some("127.0.0.1"), Some(&*port))
        );
        let provider = field(chat, "gen_ai.provider.name").unwrap();
        assert!(
            words(&CONVENTIONS["well_known"]["gen_ai.provider.name"]).contains(&provider),
            "{own}: {provider}"
        );
        assert!(!format!("{spans:?}").contains("sk-secret-key"));
    }
}

/// By the names of the catalogue: what the conventions have a word for, and what they do not.
#[tokio::test]
async fn providers_have_the_names_of_the_conventions() {
    let known = words(&CONVENTIONS["well_known"]["gen_ai.provider.name"]);
    let custom = [
        "alibaba",
        "cerebras",
        "fireworks",
        "llamacpp",
        "lmstudio",
        "ollama",
        "openrouter",
        "together",
        "vllm",
        "zai",
    ];
    let others = [("gemini", Some("europe-west1-aiplatform.googleapis.com"), "gcp.vertex_ai")];
    let own = Catalogue::default();
    let own = own.providers().map(|entry| (entry.name(), None, ""));
    for (name, host, wanted) in own.chain(others) {
        let (traces, _guard) = traced();
        let info = ModelInfo::new(name, "any", "model-1");
        let info = host.map_or(info.clone(), |host| info.with_server(host, 443));
        let model = ScriptedModel::new(["Hello"]).with_info(info);
        Assistant::builder(model).build().unwrap().prompt("Hi").await.unwrap();
        let spans = traces.spans.lock().unwrap();
        let names: BTreeSet<_> =
            spans.iter().filter_map(|span| field(span, "gen_ai.provider.name")).collect();
        let [shown] = names.into_iter().collect::<Vec<_>>()[..] else { panic!("{name}: {spans:?}") };
        if !wanted.is_empty() {
            assert_eq!(shown, wanted, "{name}");
        }
        assert!(known.contains(&shown) != (custom.contains(&shown) && shown == name), "{name}: {shown}");
    }
}

#[test]
fn a_durable_run_conforms() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (traces, _guard) = traced();
    // In one attempt for each reply: the first run ends with it.
    let busy = reply().error(ModelError::new(ModelErrorKind::Overloaded, "busy"));
    let calls = reply().tool_call("boom", "{}").usage(usage());
    let model = ScriptedModel::new([busy, calls, reply().text("Done")]);
    let assistant = Assistant::builder(model).tools(tools![boom]).capture_content().build().unwrap();
    for run in ["one", "two"] {
        let service = Service::new(&assistant).unwrap();
        let rehearsal = Rehearsal::new(service, RunRequest::new(run, "go"));
        runtime.block_on(rehearsal.play()).unwrap();
    }
    assert_conforms(&traces);
    let spans = traces.spans.lock().unwrap();
    let chats = spans.iter().filter(|span| span.name == "chat");
    let ends: Vec<_> = chats
        .map(|chat| (field(chat, "gen_ai.response.finish_reasons").unwrap(), field(chat, "error.type")))
        .collect();
    assert_eq!(
        ends,
        [(r#"["error"]"#, Some("overloaded")), (r#"["tool_call"]"#, None), (r#"["stop"]"#, None)],
        "an attempt that failed is marked, too"
    );
}

#[tokio::test]
async fn a_request_that_failed_is_an_exception_without_its_message() {
    let traces = Traces::default();
    let guard = hear(traces.clone());
    let busy = ModelError::new(ModelErrorKind::Overloaded, "a text of the provider");
    let assistant = Assistant::builder(ScriptedModel::new([reply().error(busy)])).build().unwrap();
    assistant.prompt("Hi").await.unwrap_err();
    drop(guard);
    let events = traces.events.lock().unwrap().clone();
    let exceptions: Vec<_> =
        events.iter().filter(|(_, fields)| fields.contains_key("exception.type")).collect();
    let [(Some(_), fields)] = &exceptions[..] else { panic!("{exceptions:?}") };
    assert_eq!(fields["exception.type"], "overloaded");
    assert!(!format!("{fields:?}").contains("a text of the provider"), "{fields:?}");
}
