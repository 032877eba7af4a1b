//! What a front end receives of sub-agents.

use agent::model::reply;
use agent::ui::{UiChunk, UiEncoder, UiOptions, UiProtocol, UiRequest};
use agent::{Assistant, Event, ScriptedModel, ToolOutcome, Value, json, tool, tools};

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
    Assistant::builder(model).tools(expert.as_tool("ask", "Books trains.")).build().unwrap()
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
    let mut encoder = UiEncoder::new(UiProtocol::AgUi, assistant.registry(), &UiOptions::default(), &request);
    let (chunks, suspended) = chunks_of(assistant.prompt("To Rome.").stream(), &mut encoder).await;
    let suspended = suspended.unwrap();
    let all = json_of(&chunks);
    let outcome = &all.last().unwrap()["outcome"];
    let id = &outcome["interrupts"][0]["id"];
    assert_eq!(*id, *suspended.requests()[0].request_id, "{outcome}");
    let resume = json!([{"interruptId": id, "status": "resolved", "payload": {"approved": false}}]);
    let body = json!({"threadId": "t", "runId": "r2", "messages": [], "resume": resume}).to_string();
    let decisions =
        UiRequest::decode(UiProtocol::AgUi, body.as_bytes()).unwrap().decisions(&suspended).unwrap();
    let output = assistant.resume(&suspended, decisions).await.unwrap();
    assert!(output.snapshot.is_some_and(|waits| waits.requests().is_empty() && waits.pending().len() == 1));
}
