//! Options of an assistant that hold in durable runs as in one process, also if the run dies at any step.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agent::durable::{Outcome, Rehearsal, RunRequest, Service};
use agent::message::Message;
use agent::model::{ModelInfo, ModelRequest, OutputSchema, reply};
use agent::{
    Assistant, RunStop, ScriptedModel, ToolBuilder, ToolOutput, UsageLimits, json, run::SteeringPolicy, tool,
    tools,
};

/// Shows the contract.
#[tool(inline, effect = "idempotent")]
fn show_contract() -> &'static str {
    "You sell your soul."
}

/// Signs the contract.
#[tool(inline, effect = "idempotent")]
fn sign_contract() -> &'static str {
    "signed"
}

fn rehearse(assistant: &Assistant) -> Rehearsal {
    Rehearsal::new(Service::new(assistant).unwrap(), RunRequest::new("r", "go"))
}

fn texts(outcome: &Outcome) -> Vec<String> {
    outcome.messages.iter().map(|message| message.text()).collect()
}

/// Plays a run that is killed before each of its steps in turn; returns its outcome, which is the same each time.
async fn killed_everywhere(assistant: impl Fn() -> Assistant) -> Outcome {
    let whole = rehearse(&assistant()).play().await.unwrap();
    let count = {
        let run = rehearse(&assistant());
        run.play().await.unwrap();
        run.steps().len()
    };
    for at in 0..count {
        let run = rehearse(&assistant());
        let killed = run.crash_before_step(at).await.unwrap();
        let outcome = match killed {
            Some(outcome) => outcome,
            None => run.play().await.unwrap(),
        };
        assert_eq!((texts(&outcome), outcome.stop), (texts(&whole), whole.stop), "killed before step {at}");
    }
    whole
}

#[tokio::test]
async fn the_application_chooses_the_tools_of_a_turn_once() {
    let chosen = Arc::new(AtomicU32::new(0));
    let assistant = || {
        let counter = chosen.clone();
        let model = ScriptedModel::new([
            reply().tool_call("sign_contract", "{}"),
            reply().tool_call("show_contract", "{}"),
            reply().tool_call("sign_contract", "{}"),
            reply().text("Signed."),
        ]);
        Assistant::builder(model)
            .tools(tools![show_contract, sign_contract])
            .prepare_tools(move |turn| {
                counter.fetch_add(1, Ordering::Relaxed);
                async move {
                    let was_shown = turn.messages().iter().any(
                        |message| matches!(&**message, Message::ToolResult(result) if result.tool == "show_contract"),
                    );
                    Ok(turn.filter(|tool| was_shown || tool.name() != "sign_contract"))
                }
            })
            .build()
            .unwrap()
    };
    let outcome = rehearse(&assistant()).play().await.unwrap();
    assert_eq!(chosen.load(Ordering::Relaxed), 4);
    assert!(texts(&outcome)[2].starts_with("There is no tool \"sign_contract\""), "{:?}", texts(&outcome));
    assert_eq!(texts(&outcome).last().unwrap(), "Signed.");
    assert_eq!(killed_everywhere(assistant).await.stop, RunStop::Completed);
}

#[tokio::test]
async fn a_failed_choice_of_tools_ends_the_run() {
    let model = ScriptedModel::new(["never"]);
    let assistant = Assistant::builder(model)
        .tools(tools![show_contract])
        .prepare_tools(|_| async { Err("the contract cannot be read".into()) })
        .build()
        .unwrap();
    let outcome = rehearse(&assistant).play().await.unwrap();
    assert_eq!(outcome.stop, RunStop::Error);
    assert!(outcome.detail.unwrap().contains("the contract cannot be read"));
}

/// An assistant whose tool takes that long, unless it is stopped.
fn slow(steering: SteeringPolicy, limits: UsageLimits, takes: Duration) -> Assistant {
    let tool = ToolBuilder::new("wait").description("Waits.").build(move |_, cx| async move {
        tokio::select! {
            () = tokio::time::sleep(takes) => Ok(ToolOutput::text("waited")),
            () = cx.cancelled() => Err(agent::ToolError::new("stopped")),
        }
    });
    let model = ScriptedModel::new([reply().tool_call("wait", "{}"), reply().text("ok")]);
    Assistant::builder(model)
        .tools(tools![tool.unwrap()])
        .steering_policy(steering)
        .limits(limits)
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_steering_message_stops_the_calls_that_run() {
    let assistant = slow(SteeringPolicy::CancelRunning, UsageLimits::default(), Duration::from_secs(60));
    let run = rehearse(&assistant);
    let play = run.play();
    let steer = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        run.steer("stop that");
    };
    let (outcome, ()) = tokio::join!(play, steer);
    let texts = texts(&outcome.unwrap());
    assert!(texts[2].contains("because of a new message"), "{texts:?}");
    assert_eq!(texts[3..], ["stop that", "ok"]);
}

#[tokio::test]
async fn the_time_limit_of_a_run_holds() {
    let limits = UsageLimits { wall_time: Some(Duration::from_millis(150)), ..UsageLimits::default() };
    let assistant = slow(SteeringPolicy::AfterBatch, limits.clone(), Duration::from_secs(60));
    let run = rehearse(&assistant);
    let outcome = run.play().await.unwrap();
    assert_eq!(outcome.stop, RunStop::Limit, "{:?}", outcome.detail);
    assert!(outcome.detail.as_deref().unwrap().contains("time"), "{:?}", outcome.detail);
    // A replay comes to the same, however late it is.
    assert_eq!(run.play().await.unwrap().detail, outcome.detail);

    let hangs = ScriptedModel::new([reply().hang()]);
    let assistant = Assistant::builder(hangs).limits(limits.clone()).build().unwrap();
    let outcome = rehearse(&assistant).play().await.unwrap();
    assert_eq!(outcome.stop, RunStop::Limit, "{:?}", outcome.detail);

    // Time passes while nobody decides.
    let model = ScriptedModel::new([reply().tool_call("sign_contract", "{}"), reply().text("never")]);
    let assistant = Assistant::builder(model)
        .tools(tools![sign_contract])
        .before_tool_call(|_| async { Ok(agent::BeforeCall::RequireApproval) })
        .limits(limits)
        .build()
        .unwrap();
    let outcome = rehearse(&assistant).play().await.unwrap();
    assert_eq!(outcome.stop, RunStop::Limit, "{:?}", outcome.detail);
}

/// Orders paper, which comes later.
#[tool(inline, exclusive)]
fn order_paper() -> agent::ToolOutcome {
    agent::ToolOutcome::Deferred { handle: "paper".to_owned() }
}

/// Pays.
#[tool(inline, approval = "always")]
fn pay() {}

#[tokio::test(start_paused = true)]
async fn a_wait_takes_from_the_time_for_the_next_wait() {
    let calls = reply().tool_call("order_paper", "{}").tool_call("pay", "{}");
    let limits = UsageLimits { wall_time: Some(Duration::from_secs(7200)), ..UsageLimits::default() };
    let assistant = Assistant::builder(ScriptedModel::new([calls, reply().text("never")]))
        .tools(tools![order_paper, pay])
        .limits(limits);
    let run = rehearse(&assistant.build().unwrap());
    run.deliver("paper", ToolOutput::text("paper is here"));
    while run.steps().last().is_none_or(|step| step != "waited") {
        assert!(run.crash_before_step(1).await.unwrap().is_none());
    }
    tokio::time::advance(Duration::from_secs(7200)).await;
    let outcome = run.play().await.unwrap();
    assert_eq!(outcome.stop, RunStop::Limit, "{:?}", outcome.detail);
    assert!(!run.steps().contains(&"wait".to_owned()), "{:?}", run.steps());
}

#[tokio::test]
async fn an_answer_is_checked_against_its_schema() {
    let schema = json!({"type": "object", "properties": {"stars": {"type": "integer", "maximum": 5}}, "required": ["stars"]});
    // By the tool: arguments that do not fit, text instead of the call, and the call that fits. Replies follow from the request, because a
    // reply that was lost is requested again.
    let turn = |request: &ModelRequest| {
        request.messages.iter().filter(|message| message.as_assistant().is_some()).count()
    };
    let by_tool = || {
        ScriptedModel::from_fn(move |request| match turn(request) {
            0 => reply().tool_call_with_id("c0", "structured_output", r#"{"stars": 11}"#),
            1 => reply().text("Five stars."),
            _ => reply().tool_call_with_id("c2", "structured_output", r#"{"stars": 5}"#),
        })
    };
    // By the text of the reply.
    let by_text = || {
        let mut info = ModelInfo::new("scripted", "scripted", "scripted");
        info.capabilities.native_output = true;
        let texts = [r#"{"stars": 11}"#, r#"{"stars": 5}"#];
        ScriptedModel::from_fn(move |request| reply().text(texts[turn(request).min(1)])).with_info(info)
    };
    let models: [&dyn Fn() -> ScriptedModel; 2] = [&by_tool, &by_text];
    for model in models {
        let assistant = || {
            let output = OutputSchema::new("verdict", schema.clone());
            Assistant::builder(model()).request(|request| request.with_output(output)).build().unwrap()
        };
        let outcome = killed_everywhere(assistant).await;
        assert_eq!(outcome.answer, Some(json!({"stars": 5})));
        let run = rehearse(&assistant());
        run.play().await.unwrap();
        for step in run.steps() {
            let run = rehearse(&assistant());
            assert_eq!(run.crash_after(&step).await.unwrap(), None, "{step}");
            let again = run.play().await.unwrap();
            assert_eq!(
                (texts(&again), &again.answer),
                (texts(&outcome), &outcome.answer),
                "killed after {step}"
            );
        }
        let in_process = assistant().prompt("go").await.unwrap();
        assert_eq!(in_process.answer, outcome.answer);
        assert_eq!(outcome.turns, in_process.turns);
        let in_process: Vec<_> = in_process.messages.iter().map(|message| message.text()).collect();
        assert_eq!(texts(&outcome), in_process);
    }
}

#[tokio::test]
async fn an_answer_that_never_fits_is_an_error() {
    let output = OutputSchema::new(
        "verdict",
        json!({"type": "object", "properties": {"stars": {"type": "integer"}}, "required": ["stars"]}),
    );
    let assistant = || {
        let model = ScriptedModel::from_fn(|_| reply().text("Five stars."));
        Assistant::builder(model).request(|request| request.with_output(output.clone())).build().unwrap()
    };
    let outcome = killed_everywhere(assistant).await;
    assert_eq!((outcome.stop, &outcome.answer), (RunStop::Error, &None));
    let error = assistant().prompt("go").await.unwrap_err();
    assert_eq!(outcome.detail, Some(error.to_string()));
}
