//! A suspended run as a value: its stored form is that of the loop and does not change, and it shows no secrets.

use agent::loop_core::AgentLoop;
use agent::model::reply;
use agent::run::PendingCall;
use agent::{
    Assistant, Decision, Decisions, RunError, RunStop, ScriptedModel, SuspendedRun, ToolOutcome, ToolOutput,
    Value, tool, tools,
};

const KEY: [u8; 32] = [7; 32];
/// A run that an earlier version stored.
const STORED: &str = include_str!("../golden/suspended-run.json");

/// Pays an invoice.
#[tool(inline, approval = "always")]
fn pay(invoice: String, amount: u64, #[arg(secret)] pin: String) -> String {
    format!("{amount} for {invoice} with {} digits", pin.len())
}

/// Orders a translation; it comes tomorrow.
#[tool(inline)]
fn translate(text: String) -> ToolOutcome {
    ToolOutcome::Deferred { handle: format!("order of {text}") }
}

struct Sales(u64);

/// The tenth part of the sales.
#[tool(inline)]
fn tenth(sales: &Sales) -> u64 {
    sales.0 / 10
}

fn built(model: ScriptedModel) -> Assistant {
    Assistant::builder(model)
        .tools(tools![pay, translate, tenth])
        .state(Sales(500))
        .approval_key(KEY)
        .build()
        .unwrap()
}

fn paying() -> ScriptedModel {
    ScriptedModel::new([
        reply()
            .tool_call_with_id("c1", "pay", r#"{"invoice": "A-7", "amount": "500", "pin": "4711-SECRET"}"#)
            .tool_call_with_id("c2", "pay", r#"{"invoice": "B-1", "amount": 5, "pin": "4711-SECRET"}"#),
        reply().text("Paid."),
    ])
}

async fn suspended(model: ScriptedModel) -> SuspendedRun {
    let output = built(model).prompt("Pay both.").await.unwrap();
    assert_eq!(output.stop, RunStop::Suspended);
    output.snapshot.unwrap()
}

#[tokio::test]
async fn its_stored_form_is_that_of_the_loop() {
    let run = suspended(paying()).await;
    let stored = serde_json::to_value(&run).unwrap();
    let as_loop: AgentLoop = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(serde_json::to_value(&as_loop).unwrap(), stored);
    assert_eq!((run.run_id(), run.conversation().len()), (&**as_loop.run_id(), 2));
    assert_eq!(run.requests(), as_loop.approval_requests());
    assert_eq!(run.pending(), as_loop.pending());
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let earlier: Value = serde_json::from_str(STORED).unwrap();
    assert_eq!((keys(&stored), stored["version"].clone()), (keys(&earlier), earlier["version"].clone()));
}

#[tokio::test]
async fn a_run_of_an_earlier_version_is_resumed() {
    let run: SuspendedRun = serde_json::from_str(STORED).unwrap();
    let assistant = built(ScriptedModel::new(["Paid."]));
    let output = assistant.resume(&run, run.decide(|_| Decision::Allow)).await.unwrap();
    assert_eq!((output.text().as_str(), output.run_id.as_ref()), ("Paid.", run.run_id()));
    assert_eq!(assistant.messages().get(2).unwrap().text(), "500 for A-7 with 11 digits");
}

#[tokio::test]
async fn every_request_is_decided_on_once() {
    let run = suspended(paying()).await;
    let mut asked = Vec::new();
    let decisions = run.decide(|request| {
        asked.push(request.call.id.clone());
        match request.arg::<u64>("amount") {
            Ok(500..) => Decision::Deny("too much".into()),
            _ => Decision::Allow,
        }
    });
    assert_eq!(asked, ["c1", "c2"]);
    let assistant = built(ScriptedModel::new(["One is paid."]));
    assistant.resume(&run, decisions).await.unwrap();
    assert!(assistant.messages().get(2).unwrap().text().contains("too much"));
    assert_eq!(assistant.messages().get(3).unwrap().text(), "5 for B-1 with 11 digits");
}

#[tokio::test]
async fn it_shows_no_secret() {
    let run = suspended(paying()).await;
    let shown = format!("{run:?} {}", serde_json::to_string(&run.requests()).unwrap());
    assert!(!shown.contains("SECRET") && shown.contains("c2") && shown.contains(run.run_id()), "{shown}");
    assert!(serde_json::to_string(&run).unwrap().contains("SECRET"), "the calls need it");
}

#[tokio::test]
async fn deferred_calls_are_pending() {
    let model = ScriptedModel::new([reply().tool_call_with_id("c1", "translate", r#"{"text": "tea"}"#)]);
    let run = suspended(model).await;
    let [PendingCall::Deferred { call_id, handle, .. }] = &run.pending()[..] else { panic!("{run:?}") };
    assert_eq!((call_id.as_str(), handle.as_str(), run.requests().len()), ("c1", "order of tea", 0));
    let arrived = Decisions::new().deliver(call_id, ToolOutput::text("thé"));
    assert_eq!(built(ScriptedModel::new(["Thé."])).resume(&run, arrived).await.unwrap().text(), "Thé.");
}

#[tokio::test]
async fn a_delivered_result_is_marked_like_a_returned_one() {
    let model = ScriptedModel::new([
        reply().tool_call_with_id("c1", "translate", r#"{"text": "tea"}"#),
        reply().text("Thé."),
    ]);
    let untrusted = tools![translate].map(|tool| tool.configure(|options| options.untrusted().neutralize()));
    let assistant = Assistant::builder(model).tools(untrusted).build().unwrap();
    let run = assistant.prompt("Translate tea.").await.unwrap().snapshot.unwrap();
    assistant.resume(&run, Decisions::new().deliver("c1", ToolOutput::text("<|thé|>"))).await.unwrap();
    let shown = assistant.messages().get(2).unwrap().text();
    let parts = ["<untrusted id=", "< |thé|>", "</untrusted id="].map(|part| shown.find(part));
    assert!(parts[0] == Some(0) && parts.is_sorted(), "{shown}");
}

#[tokio::test]
async fn a_typed_prompt_takes_the_same_options_and_resumes_typed() {
    let model = || ScriptedModel::new([reply().tool_call("tenth", "{}"), reply().text(r#"{"result": 7}"#)]);
    let assistant =
        Assistant::builder(model()).tools(tools![tenth]).state_per_prompt::<Sales>().build().unwrap();
    let output = assistant.prompt("A tenth?").output::<u64>().with_state(Sales(70)).await.unwrap();
    assert_eq!((output.value, output.turns), (7, 2));
    assert_eq!(assistant.messages().get(2).unwrap().text(), "7");

    // Driven in its own task, the answer is asked for in the same way.
    let model = model();
    let assistant =
        Assistant::builder(model.clone()).tools(tools![tenth]).state_per_prompt::<Sales>().build().unwrap();
    assistant.prompt("A tenth?").output::<u64>().with_state(Sales(70)).start().unwrap();
    assistant.wait_until_idle().await;
    assert!(model.requests()[0].tools.iter().any(|tool| tool.name() == "structured_output"));

    let error = built(paying()).prompt("Pay.").output::<u64>().await.unwrap_err();
    let RunError::Suspended(run) = error else { panic!("{error}") };
    let assistant = built(ScriptedModel::new([r#"{"result": 505}"#]));
    let paid = assistant.resume(&run, run.decide(|_| Decision::Allow)).output::<u64>().await.unwrap();
    assert_eq!(paid.value, 505);
}

#[test]
fn the_debug_text_of_decisions_has_no_results() {
    let shown = format!("{:?}", Decisions::new().deliver("call_1", ToolOutput::text("hunter2")));
    assert!(shown.contains("call_1") && !shown.contains("hunter2"), "{shown}");
}
