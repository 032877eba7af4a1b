//! What a front end receives of sub-agents.

use agent::model::reply;
use agent::ui::{UiChunk, UiEncoder, UiOptions, UiProtocol, UiRequest, UiServer};
use agent::{Assistant, Event, EventKind, Registry, ScriptedModel, ToolOutcome, Value, json, tool, tools};

use crate::ui_encode::{encoded, events_of};
use crate::ui_readers::AiSdkReader;
use crate::ui_server::{ag_messages, ai_message, all, chunks, runs, says, until};

/// Books a train.
#[tool(approval = "always")]
fn book(to: String, #[arg(secret)] card: String) -> String {
    format!("booked to {to} with a card of {} digits", card.len())
}

/// Orders a ticket, which comes later.
#[tool]
fn order(to: String) -> ToolOutcome {
    ToolOutcome::Deferred { handle: format!("order to {to}") }
}

fn assistant() -> Assistant {
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => reply().text("A secret plan.").tool_call_with_id(
            "call_1",
            "book",
            r#"{"to": "Rome", "card": "4711"}"#,
        ),
        3 => reply().tool_call_with_id("call_1", "order", r#"{"to": "Rome"}"#),
        _ => reply().text("Booked."),
    });
    let expert = Assistant::builder(model).tools(tools![book, order]).build().unwrap();
    let model = ScriptedModel::new([
        reply().tool_call_with_id("call_1", "ask", r#"{"task": "To Rome."}"#),
        reply().text("You are on the train."),
    ]);
    // `count` has a secret, so the arguments of tools that the main assistant does not know would be withheld.
    let tools = expert.as_tool("ask", "Books trains.");
    Assistant::builder(model).tools(tools).tools(tools![count]).build().unwrap()
}

/// The chunks of the events of a run.
async fn chunks_of(
    run: agent::run::Run,
    encoder: &mut UiEncoder,
) -> (Vec<UiChunk>, Option<agent::SuspendedRun>) {
    let (mut run, mut chunks, mut last) = (run, Vec::new(), 0);
    while let Some(event) = run.next().await {
        let event: &Event = &event;
        encoder.encode(event, &mut chunks);
        if event.is_own() {
            assert!(event.seq > last);
            last = event.seq;
        }
    }
    encoder.end(&mut chunks);
    (chunks, run.output().await.unwrap().snapshot)
}

fn json_of(chunks: &[UiChunk]) -> Vec<Value> {
    chunks.iter().filter_map(|chunk| serde_json::from_str(&chunk.json).ok()).collect()
}

#[tokio::test]
async fn a_page_of_the_ai_sdk_answers_for_a_sub_agent() {
    let assistant = assistant();
    let request = UiRequest::new("chat-1");
    let mut encoder =
        UiEncoder::new(UiProtocol::AiSdk, assistant.registry(), &UiOptions::default(), &request);
    let (chunks, suspended) = chunks_of(assistant.prompt("To Rome.").stream(), &mut encoder).await;
    let suspended = suspended.unwrap();
    let approval = &suspended.requests()[0];
    let id = format!("{}/call_1", approval.path.calls()[0].run_id);
    let all = json_of(&chunks);
    let text = serde_json::to_string(&all).unwrap();
    assert!(!text.contains("secret plan") && !text.contains("4711"), "{text}");
    let input = all
        .iter()
        .find(|chunk| chunk["type"] == "tool-input-available" && chunk["toolCallId"] == *id)
        .unwrap();
    assert_eq!((&input["toolName"], &input["input"]["to"]), (&json!("book"), &json!("Rome")));
    let asked = all.iter().find(|chunk| chunk["type"] == "tool-approval-request").unwrap();
    assert_eq!((&asked["approvalId"], &asked["toolCallId"]), (&json!(approval.request_id), &json!(id)));

    let decisions = suspended.decide(|_| agent::Decision::Allow);
    let run = assistant.resume(&suspended, decisions).stream();
    let (_, suspended) = chunks_of(run, &mut encoder).await;
    let suspended = suspended.unwrap();
    let arrived =
        agent::Decisions::new().deliver_to(&suspended.pending()[0], agent::ToolOutput::text("a ticket"));
    let (chunks, suspended) = chunks_of(assistant.resume(&suspended, arrived).stream(), &mut encoder).await;
    assert!(suspended.is_none());
    let all = json_of(&chunks);
    let ends: Vec<_> = all.iter().filter(|chunk| chunk["type"] == "tool-output-available").collect();
    assert_eq!(ends.last().unwrap()["toolCallId"], "call_1");
    assert!(!all.iter().any(|chunk| chunk["type"] == "tool-output-error"), "{all:?}");
    assert!(all.iter().any(|chunk| chunk["type"] == "text-delta"));
}

#[tokio::test]
async fn an_interrupt_of_ag_ui_resumes_a_sub_agent() {
    let assistant = assistant();
    let request = UiRequest::new("chat-1");
    // The run has a tool of the same name, whose parameters are not those of the sub-agent's tool.
    let registry = Registry::new(tools![count, book]).unwrap();
    let mut encoder = UiEncoder::new(UiProtocol::AgUi, &registry, &UiOptions::default(), &request);
    let (chunks, suspended) = chunks_of(assistant.prompt("To Rome.").stream(), &mut encoder).await;
    let suspended = suspended.unwrap();
    let all = json_of(&chunks);
    let outcome = &all.last().unwrap()["outcome"];
    let asked = &outcome["interrupts"][0]["responseSchema"]["properties"];
    assert!(asked["approved"].is_object() && asked["editedArgs"].is_null(), "{asked}");
    let id = &outcome["interrupts"][0]["id"];
    assert_eq!(*id, *suspended.requests()[0].request_id, "{outcome}");
    assert!(outcome["interrupts"][0]["message"].as_str().unwrap().contains("Rome"), "{outcome}");
    let resume = json!([{"interruptId": id, "status": "resolved", "payload": {"approved": false}}]);
    let body = json!({"threadId": "t", "runId": "r2", "messages": [], "resume": resume}).to_string();
    let decisions =
        UiRequest::decode(UiProtocol::AgUi, body.as_bytes()).unwrap().decisions(&suspended).unwrap();
    let output = assistant.resume(&suspended, decisions).await.unwrap();
    assert!(output.snapshot.is_some_and(|waits| waits.requests().is_empty() && waits.pending().len() == 1));
}

/// Counts letters.
#[tool]
fn count(word: String, #[arg(secret)] key: String) -> usize {
    word.len() + key.len()
}

/// Arguments that differ, so that no call is a repetition.
fn word(n: usize) -> String {
    format!(r#"{{"word": "w{n:03}", "key": "hunter2"}}"#)
}

/// A run within a run within a run: the chief asks an editor, who asks a reader, who counts and fails once.
fn chief(replies: usize) -> Assistant {
    let reader = ScriptedModel::from_fn(move |request| match request.messages.len() {
        n if n < 2 * replies => reply().text(format!("Reading {n}.")).tool_call("count", word(n)),
        n if n < 2 * replies + 2 => reply().tool_call("lose", "{}"),
        _ => reply().text("All read."),
    });
    let reader = Assistant::builder(reader).max_turns(12).tools(tools![count]).build().unwrap();
    let editor = ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => reply().thinking("Who reads?").text("I ask a reader.").tool_call("read", r#"{"task": "Read."}"#),
        _ => reply().text("It is edited."),
    });
    let editor = Assistant::builder(editor).tools(reader.as_tool("read", "Reads.")).build().unwrap();
    let chief = ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => reply()
            .text("Two at once.")
            .tool_call("edit", r#"{"task": "One."}"#)
            .tool_call("edit", r#"{"task": "Two."}"#),
        _ => reply().text("Done."),
    });
    Assistant::builder(chief).tools(editor.as_tool("edit", "Edits.")).build().unwrap()
}

fn parts<'m>(message: &'m [Value], kind: &str) -> Vec<&'m Value> {
    message.iter().filter(|part| part["type"] == kind).map(|part| &part["data"]).collect()
}

#[tokio::test]
async fn pages_see_the_runs_of_sub_agents() {
    for (options, shows_texts) in [(UiOptions::default(), false), (UiOptions::default().show_results(), true)]
    {
        let ui = UiServer::new(chief(2)).options(options).single_user();
        let whole = all(ui.post(UiProtocol::AiSdk, &says("go")).await).await;
        let page = ai_message(&whole);
        page.assert_ended();
        assert!(!whole.contains("hunter2"), "{whole}");
        assert_eq!(whole.contains("I ask a reader.") && whole.contains("Who reads?"), shows_texts);
        let shown = parts(&page.message, "data-agent-run");
        assert_eq!(shown.len(), 4, "{shown:?}");
        let readers: Vec<_> = shown.iter().filter(|run| run["tool"] == "read").collect();
        assert_eq!(readers.len(), 2);
        for run in &shown {
            assert_eq!(run["state"], "completed", "{run}");
        }
        for reader in readers {
            let editor = shown.iter().find(|run| run["runId"] == reader["parentRunId"]).unwrap();
            assert_eq!(editor["tool"], "edit");
            let outer = page.message.iter().find(|part| part["toolCallId"] == editor["toolCallId"]).unwrap();
            assert_eq!(outer["type"], "tool-edit");
        }
        let calls = parts(&page.message, "data-agent-run-call");
        let counted: Vec<_> = calls.iter().filter(|call| call["tool"] == "count").collect();
        assert_eq!(counted.len(), 4);
        let output = if shows_texts { json!("11") } else { json!({"outcome": "completed"}) };
        for call in counted {
            assert_eq!((&call["state"], &call["output"]), (&json!("completed"), &output), "{call}");
            assert!(call["input"]["word"].as_str().unwrap().starts_with('w'), "{call}");
        }
        assert!(
            calls.iter().any(|call| call["tool"] == "lose" && call["code"] == "unknown_tool"),
            "{calls:?}"
        );

        let ui = UiServer::new(chief(2))
            .options(if shows_texts { UiOptions::default().show_results() } else { UiOptions::default() })
            .single_user();
        let whole = all(ui.post(UiProtocol::AgUi, &runs("go", "r1")).await).await;
        let page = ag_messages(&whole);
        page.assert_ended();
        assert!(!whole.contains("hunter2"), "{whole}");
        assert_eq!(whole.contains("I ask a reader.") && whole.contains("Who reads?"), shows_texts);
        let of = |name: &str| {
            page.subagents
                .values()
                .filter(|(parent, of, _)| of == name && parent.is_some() == (name == "read"))
                .count()
        };
        assert_eq!((of("edit"), of("read")), (2, 2), "{:?}", page.subagents);
        // Clients of earlier versions know no sub-agents.
        let ui = UiServer::new(chief(2)).single_user();
        let body: Value = serde_json::from_slice(&runs("go", "r1")).unwrap();
        let mut body = body.as_object().unwrap().clone();
        body.remove("protocolVersion");
        let old = all(ui.post(UiProtocol::AgUi, &serde_json::to_vec(&body).unwrap()).await).await;
        let page = ag_messages(&old);
        page.assert_ended();
        assert!(
            !old.contains("subagentRunId") && !old.contains("SUBAGENT") && !old.contains("hunter2"),
            "{old}"
        );
        let named = |name: &str| page.custom.iter().filter(|(of, _)| of == name).count();
        assert_eq!((named("agent.run"), named("agent.run-call")), (8, 16));
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_ends_the_calls_of_its_sub_agents() {
    let assistant = chief(2);
    let mut events = events_of(&assistant).await;
    let counts = |event: &Event| match &event.kind {
        EventKind::ToolExecutionStart { call, .. } => call.name == "count",
        _ => false,
    };
    events.truncate(events.iter().position(counts).unwrap() + 1);
    let mut page = AiSdkReader::default();
    page.read_all(&json_of(&encoded(UiProtocol::AiSdk, &assistant, &UiOptions::default(), &events)));
    page.assert_ended();
    let calls = parts(&page.message, "data-agent-run-call");
    assert!(calls.len() >= 2 && calls.iter().all(|call| call["state"] == "ended"), "{calls:?}");
}

#[tokio::test]
async fn a_reader_gets_the_rest_of_a_sub_agents_run_at_every_chunk() {
    for protocol in [UiProtocol::AiSdk, UiProtocol::AgUi] {
        let ui = UiServer::new(chief(3)).options(UiOptions::default().show_results()).single_user();
        let body = if protocol == UiProtocol::AiSdk { says("go") } else { runs("go", "r1") };
        let whole = all(ui.post(protocol, &body).await).await;
        let frames: Vec<&str> =
            whole.split_inclusive("\n\n").filter(|frame| frame.starts_with("id: ")).collect();
        let of_children = |frames: &[&str]| -> Vec<String> {
            let is_of_child = |frame: &&&str| frame.contains("/1/tool/");
            frames.iter().filter(is_of_child).map(|frame| (*frame).to_owned()).collect()
        };
        let mut rests = 0;
        for (at, frame) in frames.iter().enumerate() {
            let id = frame.lines().next().unwrap().strip_prefix("id: ").unwrap();
            let rest = all(ui.attach(protocol, "c", Some(id)).await).await;
            let rest: Vec<&str> =
                rest.split_inclusive("\n\n").filter(|frame| frame.starts_with("id: ")).collect();
            if rest.first().is_some_and(|first| first.contains("\"start\"") || first.contains("RUN_STARTED"))
            {
                continue;
            }
            rests += 1;
            assert_eq!(of_children(&rest), of_children(&frames[at + 1..]), "after {id}");
        }
        assert!(rests > 40, "{rests} of {}", frames.len());
        // A page that comes later has the same.
        if protocol == UiProtocol::AiSdk {
            let again = ai_message(&all(ui.attach(protocol, "c", None).await).await);
            assert_eq!(again.message, ai_message(&whole).message);
        } else {
            ag_messages(&all(ui.attach(protocol, "c", None).await).await).assert_ended();
        }
    }
}

#[tokio::test]
async fn a_sub_agent_that_waits_is_suspended_and_continues() {
    let ui = UiServer::new(assistant()).single_user();
    let first = all(ui.post(UiProtocol::AgUi, &runs("To Rome.", "r1")).await).await;
    let mut page = ag_messages(&first);
    page.assert_ended();
    let interrupt = page.outcome["interrupts"][0].clone();
    let (id, ids) = page.suspended[0].clone();
    assert_eq!(
        (ids, &interrupt["subagentRunId"]),
        (vec![interrupt["id"].as_str().unwrap().to_owned()], &json!(id))
    );
    // Another tab sees the run as it waits.
    let tab = ag_messages(&all(ui.attach(UiProtocol::AgUi, "c", None).await).await);
    assert_eq!(tab.outcome, page.outcome);

    let resume =
        json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true}}]);
    let body =
        json!({"threadId": "c", "runId": "r2", "protocolVersion": "1.0", "messages": [], "resume": resume});
    let second = all(ui.post(UiProtocol::AgUi, body.to_string().as_bytes()).await).await;
    page.read_all(&chunks(&second));
    page.assert_ended();
    assert!(page.subagents.contains_key(&id), "it is announced again");
    let result = |call: &str| {
        page.messages
            .iter()
            .filter(|one| one["role"] == "tool" && one["toolCallId"].as_str().unwrap().ends_with(call))
            .count()
    };
    assert_eq!(result(&format!("{id}/call_1")), 1, "{:?}", page.messages);
    assert_eq!(page.outcome["interrupts"][0]["reason"], "waiting");

    let ui = UiServer::new(assistant()).single_user();
    let mut page = ai_message(&all(ui.post(UiProtocol::AiSdk, &says("To Rome.")).await).await);
    page.assert_ended();
    assert_eq!(parts(&page.message, "data-agent-run")[0]["state"], "suspended");
    let mut part = page.message.iter().find(|part| part["state"] == "approval-requested").unwrap().clone();
    (part["state"], part["approval"]["approved"]) = (json!("approval-responded"), json!(true));
    let body = json!({"id": "c", "messages": [{"id": "r", "role": "assistant", "parts": [part]}]});
    page.next_response();
    page.read_all(&chunks(&all(ui.post(UiProtocol::AiSdk, body.to_string().as_bytes()).await).await));
    page.assert_ended();
    let booked = page.message.iter().find(|part| part["type"] == "tool-book").unwrap();
    assert_eq!(
        (&booked["state"], &booked["output"]),
        (&json!("output-available"), &json!({"outcome": "completed"}))
    );
    assert_eq!(parts(&page.message, "data-agent-run-call")[0]["state"], "completed");
}

#[tokio::test]
async fn the_log_of_a_sub_agent_is_bounded() {
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        n if n < 200 => reply().text("word ".repeat(2_000)).tool_call("count", word(n)),
        _ => reply().text("Enough.").hang(),
    });
    let expert = Assistant::builder(model).max_turns(1_000).tools(tools![count]).build().unwrap();
    let model =
        ScriptedModel::new([reply().tool_call("ask", r#"{"task": "Write."}"#), reply().text("Good.")]);
    let assistant = Assistant::builder(model).tools(expert.as_tool("ask", "Writes.")).build().unwrap();
    let options = UiOptions::default().show_results();
    let ui = UiServer::new(assistant).options(options).single_user().max_log(100_000);
    let mut body = ui.post(UiProtocol::AiSdk, &says("go")).await.into_body();
    let mut first = until(&mut body, "data-agent-run-call").await;
    let first = first.split_off(first.find("id: ").unwrap());
    let mut text = String::new();
    while text.matches("data-agent-run-text").count() < 95 {
        text += std::str::from_utf8(&body.next().await.unwrap()).unwrap();
    }
    let tab = tokio::spawn(all(ui.attach(UiProtocol::AiSdk, "c", None).await));
    let rest = tokio::spawn(all(ui
        .attach(UiProtocol::AiSdk, "c", Some(first.lines().next().unwrap().strip_prefix("id: ").unwrap()))
        .await));
    tokio::task::yield_now().await;
    ui.run("c").unwrap().cancel("enough");
    let (tab, rest) = (tab.await.unwrap(), rest.await.unwrap());
    ai_message(&tab).assert_ended();
    assert!(tab.len() < 200_000, "{}", tab.len());
    assert!(chunks(&rest)[0]["type"] == "start", "what is gone cannot be read: the whole run is");
}
