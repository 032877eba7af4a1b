//! Calls that wait for a decision or for a result from outside: the run is suspended, stored, and goes on later, here or in
//! another process; decisions count for the call that they were made on, and for nothing else.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent::ScriptedModel;
use agent::SuspendedRun;
use agent::loop_core::AgentLoop;
use agent::message::{Message, ToolArguments, ToolResultMessage};
use agent::model::{reply, reply_with};
use agent::{
    Assistant, AssistantBuilder, BeforeCall, Decision, Decisions, EventKind, RunError, RunOutput, RunStop,
    Tool, ToolContext, ToolOutcome, ToolOutput, ToolSet, Value, json, run::ResumeError, tool, tools,
};

use crate::assistant_support::{assert_sound, outline};

/// How often money was sent.
#[derive(Default)]
struct Bank(AtomicUsize);

/// Pays an invoice.
#[tool(inline, approval = when(|amount: &u64| *amount > 100))]
fn pay(invoice: String, amount: u64, bank: &Bank) -> String {
    bank.0.fetch_add(1, Ordering::SeqCst);
    format!("paid {amount} for {invoice}")
}

/// Pays an invoice, in the next version of the application.
#[tool(inline, name = "pay", type = PayOn, approval = when(|amount: &u64| *amount > 100))]
fn pay_on(invoice: String, amount: u64, account: String, bank: &Bank) -> String {
    bank.0.fetch_add(1, Ordering::SeqCst);
    format!("paid {amount} for {invoice} from {account}")
}

/// Looks something up.
#[tool(inline)]
fn look(what: String) -> String {
    format!("seen {what}")
}

const KEY: [u8; 32] = [42; 32];

fn asking() -> ScriptedModel {
    ScriptedModel::new([
        reply()
            .tool_call("look", r#"{"what": "A-7"}"#)
            .tool_call("pay", r#"{"invoice": "A-7", "amount": "500"}"#)
            .tool_call("pay", r#"{"invoice": "B-1", "amount": 7}"#),
        reply().text("done"),
    ])
}

fn answering() -> ScriptedModel {
    ScriptedModel::new([reply_with(|request| {
        let results = request.messages.iter().filter_map(|message| message.as_tool_result());
        reply().text(results.map(ToolResultMessage::text).collect::<Vec<_>>().join(" | "))
    })])
}

fn built(model: &ScriptedModel, bank: &Arc<Bank>) -> AssistantBuilder {
    Assistant::builder(model.clone()).tools(tools![look, pay]).shared_state(bank.clone())
}

/// A run that waits for the first payment.
async fn suspended(bank: &Arc<Bank>) -> (Assistant, SuspendedRun) {
    let assistant = built(&asking(), bank).approval_key(KEY).build().unwrap();
    let output = assistant.prompt("Pay both").await.unwrap();
    assert_eq!((output.stop, output.text().as_str()), (RunStop::Suspended, ""));
    (assistant, output.snapshot.unwrap())
}

/// Whether the run had ended when the snapshot was taken: its stored form is that of the loop.
fn is_over(run: &SuspendedRun) -> bool {
    let run: AgentLoop = serde_json::from_value(serde_json::to_value(run).unwrap()).unwrap();
    run.end().is_some()
}

fn stored(run: &SuspendedRun) -> SuspendedRun {
    serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap()
}

async fn refused(assistant: &Assistant, run: &SuspendedRun, decisions: Decisions) -> ResumeError {
    match assistant.resume(run, decisions).await {
        Err(RunError::Resume(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_run_is_suspended_and_goes_on_with_a_decision() {
    let bank = Arc::<Bank>::default();
    let (assistant, run) = suspended(&bank).await;
    assert!(!assistant.is_busy());
    assert_eq!(bank.0.load(Ordering::SeqCst), 0, "nothing of the segment runs before the decision");
    let requests = run.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].call.args.value(), Some(json!({"invoice": "A-7", "amount": 500})), "as checked");
    assert_eq!(requests[0].request_id, format!("{}/1/approval/1", run.run_id()));

    let told: Arc<Mutex<Vec<(u64, String)>>> = Arc::default();
    let write = told.clone();
    let _told = assistant.subscribe(move |event| {
        let word = serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned();
        write.lock().unwrap().push((event.seq, word));
    });
    let output = assistant.resume(&run, Decisions::new().allow(&requests[0])).await.unwrap();
    assert_eq!((output.text().as_str(), &*output.run_id), ("done", run.run_id()));
    assert_eq!(output.messages.len(), 6, "every message that the run added, before and after");
    assert_eq!(output.coercions.len(), 1);
    assert_eq!(output.coercions[0].0, requests[0].call.id, "the call of the request");
    assert_eq!(bank.0.load(Ordering::SeqCst), 2);
    assert_eq!(
        outline(&assistant)[1..],
        ["tool_use look,pay,pay", "look seen A-7", "pay paid 500 for A-7", "pay paid 7 for B-1", "stop done"]
    );
    let told = told.lock().unwrap();
    let words: Vec<&str> = told.iter().map(|(_, word)| word.as_str()).collect();
    assert_eq!(words[..2], ["run_resumed", "approval_resolved"]);
    assert_eq!(words.last(), Some(&"agent_end"));
    assert!(told.windows(2).all(|two| two[1].0 == two[0].0 + 1), "the numbers go on: {told:?}");
    assert!(told[0].0 > 10);
}

#[tokio::test]
async fn a_denied_call_is_a_result_and_the_run_goes_on() {
    let bank = Arc::<Bank>::default();
    let (assistant, run) = suspended(&bank).await;
    let decisions = Decisions::new().deny(&run.requests()[0], "too much");
    assert_eq!(assistant.resume(&run, decisions).await.unwrap().text(), "done");
    assert_eq!(outline(&assistant)[3], "pay denied(denied)");
    assert_eq!(assistant.messages().get(3).unwrap().text(), "too much");
    assert_eq!(bank.0.load(Ordering::SeqCst), 1, "the call that needed no approval ran");
}

#[tokio::test]
async fn changed_arguments_are_checked_and_the_model_is_told() {
    let bank = Arc::<Bank>::default();
    for (args, result) in [
        (json!({"invoice": "A-7", "amount": "90"}), "paid 90 for A-7"),
        (json!({"invoice": "A-7"}), "Invalid arguments"),
    ] {
        let (_, run) = suspended(&bank).await;
        let model = answering();
        let assistant = built(&model, &bank).approval_key(KEY).build().unwrap();
        let decisions = Decisions::new().allow_with(&run.requests()[0], args.clone());
        assistant.resume(&stored(&run), decisions).await.unwrap();
        let sent = model.requests()[0].messages[3].as_tool_result().unwrap().content_for_model().into_owned();
        let told = sent[0].as_text().unwrap();
        assert!(
            told.starts_with("[a person changed the arguments") && told.contains(&args.to_string()),
            "{told}"
        );
        assert!(sent[1].as_text().unwrap().starts_with(result), "{sent:?}");
        let kept = assistant.messages();
        let kept = kept.get(3).unwrap().as_tool_result().unwrap();
        assert_eq!(
            kept.edited_args.as_ref().and_then(ToolArguments::value),
            Some(args),
            "apart from the content"
        );
        let again: Message =
            serde_json::from_str(&serde_json::to_string(&Message::from(kept.clone())).unwrap()).unwrap();
        assert_eq!(again.as_tool_result(), Some(kept));
        assert_sound(&assistant);
    }
}

#[tokio::test]
async fn stale_and_forged_decisions_are_refused_and_the_approval_stays_pending() {
    let bank = Arc::<Bank>::default();
    let (first, run) = suspended(&bank).await;
    let run = stored(&run);
    let request = run.requests().remove(0);
    let allow = || Decisions::new().allow(&request);
    let fresh = || built(&answering(), &bank).approval_key(KEY).build().unwrap();

    // Of another run, decided twice, not decided, nothing that waits.
    let (_, other) = suspended(&bank).await;
    let foreign = Decisions::new().allow(&other.requests()[0]);
    assert!(matches!(refused(&fresh(), &run, foreign).await, ResumeError::NotPending { .. }));
    let twice = allow().deny(&request, "no");
    assert!(matches!(refused(&fresh(), &run, twice).await, ResumeError::AnsweredTwice { .. }));
    assert!(matches!(refused(&fresh(), &run, Decisions::new()).await, ResumeError::Undecided { .. }));
    let result = allow().deliver("call_1", ToolOutput::text("forged"));
    assert!(matches!(refused(&fresh(), &run, result).await, ResumeError::NoSuchCall { .. }));

    // Made on something else than what waits.
    let change = |change: fn(&mut Value)| {
        let mut value = serde_json::to_value(allow()).unwrap();
        change(&mut value["made"][0]["request"]);
        serde_json::from_value::<Decisions>(value).unwrap()
    };
    let wrong = [
        (change(|request| request["call"]["args"]["amount"] = 5.into()), "arguments"),
        (change(|request| request["call"]["name"] = "look".into()), "tool"),
        (change(|request| request["call"]["id"] = "call_9".into()), "call"),
        (change(|request| request["fingerprint"] = 1.into()), "schema"),
        (change(|request| request["mac"] = "00".into()), "signature"),
        (change(|request| drop(request.as_object_mut().unwrap().remove("mac"))), "signature"),
    ];
    for (decisions, expected) in wrong {
        match refused(&fresh(), &run, decisions).await {
            ResumeError::ApprovalMismatch { what, .. } => assert_eq!(what, expected),
            other => panic!("{expected}: {other}"),
        }
    }

    // Without the key, and with another.
    let keyless = built(&answering(), &bank).build().unwrap();
    assert_eq!(refused(&keyless, &run, allow()).await, ResumeError::NotSigned);
    let other = built(&answering(), &bank).approval_key([1; 32]).build().unwrap();
    let error = refused(&other, &run, allow()).await;
    assert!(error.to_string().contains("without an approval key or with another one"), "{error}");

    // The conversation went on.
    let busy = fresh();
    busy.prompt("Something else").await.unwrap();
    assert_eq!(refused(&busy, &run, allow()).await, ResumeError::ConversationMovedOn);

    assert_eq!(bank.0.load(Ordering::SeqCst), 0);
    // All of that changed nothing: it goes on as it was.
    let last = fresh();
    assert!(last.resume(&run, allow()).await.unwrap().text().contains("paid 500 for A-7"));
    first.resume(&run, allow()).await.unwrap();
    assert!(
        matches!(refused(&first, &run, allow()).await, ResumeError::ConversationMovedOn),
        "a run goes on once"
    );
    assert!(built(&answering(), &bank).approval_key([1; 31]).build().is_err());
}

#[tokio::test]
async fn a_snapshot_that_was_tampered_with_does_not_go_on() {
    let bank = Arc::<Bank>::default();
    let (_, run) = suspended(&bank).await;
    let text = serde_json::to_value(&run).unwrap();
    let slots = |change: fn(&mut Value)| {
        let mut stored = text.clone();
        change(&mut stored["batch"]["slots"]);
        serde_json::from_value::<SuspendedRun>(stored).unwrap()
    };
    let tampered = [
        // What runs, with or without what is shown.
        slots(|slots| slots[1]["call"]["args"]["amount"] = 900.into()),
        slots(|slots| slots[1]["state"]["undecided"]["amount"] = 5.into()),
        slots(|slots| slots[1]["args"] = json!({"invoice": "A-7", "amount": 900})),
        slots(|slots| slots[1]["call"]["name"] = "look".into()),
        slots(|slots| slots[1]["call"]["id"] = "call_9".into()),
        slots(|slots| drop(slots[1].as_object_mut().unwrap().remove("mac"))),
        // One that nobody had to allow, and one that would not be asked about.
        slots(|slots| slots[2]["call"]["args"]["amount"] = 900.into()),
        slots(|slots| {
            let unasked = slots[0].clone();
            slots[1]["state"] = unasked["state"].clone();
        }),
        {
            let mut stored = text.clone();
            stored["turn"] = 2.into();
            serde_json::from_value(stored).unwrap()
        },
        {
            let mut stored = text.clone();
            stored["config"]["tools"]["pay"]["fingerprint"] = 1.into();
            serde_json::from_value(stored).unwrap()
        },
    ];
    for (n, run) in tampered.iter().enumerate() {
        let assistant = built(&answering(), &bank).approval_key(KEY).build().unwrap();
        let decisions = run.requests().iter().fold(Decisions::new(), Decisions::allow);
        let error = assistant.resume(run, decisions).await.unwrap_err();
        assert!(
            matches!(
                error.as_resume_error(),
                Some(ResumeError::ApprovalMismatch { .. } | ResumeError::Tampered { .. })
            ),
            "{n}: {error}"
        );
        assert!(assistant.messages().is_empty() && !assistant.is_busy());
    }
    assert_eq!(bank.0.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_tool_that_changed_since_is_not_run() {
    let bank = Arc::<Bank>::default();
    let (_, run) = suspended(&bank).await;
    let run = stored(&run);
    for tools in [tools![look, PayOn], tools![look]] {
        let assistant =
            Assistant::builder(answering()).tools(tools).shared_state(bank.clone()).approval_key(KEY).build();
        let assistant = assistant.unwrap();
        let decisions = Decisions::new().allow(&run.requests()[0]);
        assistant.resume(&run, decisions).await.unwrap();
        assert_eq!(outline(&assistant)[3], "pay failed(approval_stale)");
        assert_eq!(bank.0.load(Ordering::SeqCst), 0, "and its neighbour is refused by what the tool is now");
        assert_sound(&assistant);
    }
}

/// What the other process of [`decided_in_another_process`] does: reads a suspended run, allows, and prints.
#[tokio::test]
async fn in_the_other_process() {
    let (bank, key) = (Arc::<Bank>::default(), KEY);
    let run = match std::env::var("AGENT_TEST_SUSPENDED") {
        Ok(stored) => serde_json::from_str(&stored).unwrap(),
        // Played as any other test: the process is this one.
        Err(_) => stored(&suspended(&bank).await.1),
    };
    let tools =
        if std::env::var("AGENT_TEST_CHANGED").is_ok() { tools![look, PayOn] } else { tools![look, pay] };
    let builder = Assistant::builder(answering()).tools(tools).shared_state(bank.clone());
    let assistant = builder.approval_key(key).build().unwrap();
    let decisions = run.requests().iter().fold(Decisions::new(), Decisions::allow);
    match assistant.resume(&run, decisions).await {
        Ok(output) => println!("came to: {}", output.text()),
        Err(error) => {
            assert_eq!(bank.0.load(Ordering::SeqCst), 0);
            println!("refused: {error}");
        }
    }
}

#[tokio::test]
async fn decided_in_another_process() {
    let bank = Arc::<Bank>::default();
    let (_, run) = suspended(&bank).await;
    let as_it_was = serde_json::to_string(&run).unwrap();
    let elsewhere = |stored: &str, changed: bool| {
        let mut process = Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "runtime_approvals::in_the_other_process", "--nocapture"]);
        process.env("AGENT_TEST_SUSPENDED", stored);
        if changed {
            process.env("AGENT_TEST_CHANGED", "1");
        }
        let output = process.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let said = elsewhere(&as_it_was, false);
    assert!(said.contains("came to: seen A-7 | paid 500 for A-7 | paid 7 for B-1"), "{said}");
    let said = elsewhere(&as_it_was, true);
    assert!(said.contains("is not what it was when a decision on this call was requested"), "{said}");
    let tampered = as_it_was.replace(r#""amount":500"#, r#""amount":501"#);
    assert_ne!(tampered, as_it_was);
    let said = elsewhere(&tampered, false);
    assert!(said.contains("refused: ") && said.contains("signature"), "{said}");
}

#[tokio::test]
async fn a_handler_is_asked_and_may_say_later() {
    let bank = Arc::<Bank>::default();
    let says = Arc::new(Mutex::new(Decision::Later));
    let say = says.clone();
    let assistant = built(&asking(), &bank)
        .on_approval(move |request| {
            assert_eq!(request.call.name, "pay");
            let decision = say.lock().unwrap().clone();
            async move { decision }
        })
        .build()
        .unwrap();
    let run = assistant.prompt("Pay both").await.unwrap().snapshot.unwrap();
    *says.lock().unwrap() = Decision::AllowWith(json!({"invoice": "A-7", "amount": 1}));
    // Nobody decided meanwhile: the handler is asked again.
    assert_eq!(assistant.resume(&run, Decisions::new()).await.unwrap().text(), "done");
    assert_eq!(outline(&assistant)[3], "pay paid 1 for A-7");
}

#[tokio::test]
async fn a_hook_may_ask_for_approval() {
    let bank = Arc::<Bank>::default();
    let assistant = built(&asking(), &bank)
        .before_tool_call(|call| async move {
            let asks = call.call().name == "look";
            Ok(if asks { BeforeCall::RequireApproval } else { BeforeCall::Continue })
        })
        .build()
        .unwrap();
    let run = assistant.prompt("Pay both").await.unwrap().snapshot.unwrap();
    let asked: Vec<_> = run.requests().iter().map(|request| request.call.name.clone()).collect();
    assert_eq!(asked, ["look", "pay"]);
    let half = Decisions::new().allow(&run.requests()[0]);
    assert!(matches!(refused(&assistant, &run, half).await, ResumeError::Undecided { .. }));
    let both = run.requests().iter().fold(Decisions::new(), Decisions::allow);
    assert_eq!(assistant.resume(&run, both).await.unwrap().text(), "done");
}

#[tokio::test]
async fn another_prompt_gives_up_what_waited() {
    let bank = Arc::<Bank>::default();
    let (assistant, run) = suspended(&bank).await;
    assert_eq!(assistant.prompt("Never mind").await.unwrap().text(), "done");
    assert_eq!(outline(&assistant)[3], "pay interrupted(steered)");
    let waited = assistant.messages().get(3).unwrap().text();
    assert!(waited.starts_with("The call was not run: it waited for a decision"), "{waited}");
    assert_sound(&assistant);
    let allow = Decisions::new().allow(&run.requests()[0]);
    assert_eq!(refused(&assistant, &run, allow).await, ResumeError::ConversationMovedOn);
    assert_eq!(bank.0.load(Ordering::SeqCst), 0);
}

/// An oven that says later that it is done.
fn oven() -> ToolSet {
    let bake = Tool::new(
        "bake",
        "Bakes.",
        json!({"type": "object", "properties": {"what": {"type": "string"}}}),
        |args: Value, _: ToolContext| async move {
            ToolOutcome::Deferred { handle: args["what"].as_str().unwrap_or_default().to_owned() }
        },
    );
    ToolSet::new().with(bake.unwrap())
}

#[tokio::test]
async fn results_arrive_from_outside_by_call_id() {
    let model = ScriptedModel::new([
        reply()
            .tool_call("bake", r#"{"what": "bread"}"#)
            .tool_call("look", r#"{"what": "oven"}"#)
            .tool_call("bake", r#"{"what": "cake"}"#),
        reply().text("done"),
    ]);
    let ended: Arc<Mutex<Vec<String>>> = Arc::default();
    let write = ended.clone();
    let assistant = Assistant::builder(model)
        .tools(tools![look])
        .tools(oven())
        .on_event(move |event| {
            if let EventKind::ToolExecutionEnd { result, .. } = &event.kind {
                write.lock().unwrap().push(result.call_id.clone());
            }
        })
        .build()
        .unwrap();
    let run = assistant.prompt("Bake").await.unwrap().snapshot.unwrap();
    assert_eq!(*ended.lock().unwrap(), ["call_2"], "siblings finish first");
    assert_eq!(run.pending().len(), 2);
    let text = |text: &str| ToolOutput::text(text);
    for wrong in ["call_2", "call_9"] {
        let error = refused(&assistant, &run, Decisions::new().deliver(wrong, text("x"))).await;
        assert!(matches!(error, ResumeError::NoSuchCall { .. }), "{error}");
    }
    let twice = Decisions::new().deliver("call_1", text("x")).deliver("call_1", text("y"));
    assert!(matches!(refused(&assistant, &run, twice).await, ResumeError::AnsweredTwice { .. }));
    let never = Decisions::new().deliver("call_1", ToolOutcome::Deferred { handle: "h".into() });
    assert!(matches!(refused(&assistant, &run, never).await, ResumeError::StillDeferred { .. }));

    // One after the other; no key is needed, since nothing is to be allowed.
    let bread = Decisions::new().deliver("call_3", text("a cake"));
    let output: RunOutput = assistant.resume(&stored(&run), bread).await.unwrap();
    let run = output.snapshot.expect("the bread is still in the oven");
    assert_eq!(run.pending().len(), 1);
    let again = Decisions::new().deliver("call_3", text("another cake"));
    assert!(matches!(refused(&assistant, &run, again).await, ResumeError::NoSuchCall { .. }));
    let burnt = ToolOutcome::failed(tool::OutcomeCode::TOOL_ERROR, "burnt");
    let output = assistant.resume(&run, Decisions::new().deliver("call_1", burnt)).await.unwrap();
    assert_eq!((output.text().as_str(), output.stop), ("done", RunStop::Completed));
    assert_eq!(outline(&assistant)[2..5], ["bake failed(tool_error)", "look seen oven", "bake a cake"]);
    assert_eq!(*ended.lock().unwrap(), ["call_2", "call_3", "call_1"]);
    assert_sound(&assistant);
}

#[tokio::test]
async fn an_answer_of_a_type_waits_too() {
    let bank = Arc::<Bank>::default();
    let model = ScriptedModel::new([
        reply().tool_call("pay", r#"{"invoice": "A", "amount": 500}"#),
        reply().tool_call("structured_output", r#"{"result": 500}"#),
    ]);
    let assistant = built(&model, &bank).build().unwrap();
    let error = assistant.prompt("How much?").output::<u64>().await.unwrap_err();
    let RunError::Suspended(run) = error else { panic!("{error}") };
    let allow = Decisions::new().allow(&run.requests()[0]);
    assert_eq!(assistant.resume(&run, allow).output::<u64>().await.unwrap().value, 500);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_stored_in_the_middle_goes_on_from_there() {
    let bank = Arc::<Bank>::default();
    let script = || {
        ScriptedModel::new([
            reply()
                .tool_call("look", r#"{"what": "x"}"#)
                .tool_call("pay", r#"{"invoice": "A", "amount": 5}"#),
            reply().text("done"),
        ])
    };
    let assistant = built(&script(), &bank).approval_key(KEY).build().unwrap();
    let mut run = assistant.prompt("go").stream();
    let handle = run.handle();
    let mut snapshots: Vec<(String, SuspendedRun)> = Vec::new();
    while let Some(event) = run.next().await {
        if let Some(snapshot) = handle.snapshot() {
            snapshots.push((format!("{} {:?}", event.seq, event.kind), stored(&snapshot)));
        }
    }
    let whole = run.output().await.unwrap();
    assert!(snapshots.len() > 20);
    for (at, snapshot) in snapshots {
        let rest = ScriptedModel::from_fn(|request| match request.messages.last().map(|last| last.role()) {
            Some("tool_result") => reply().text("done"),
            _ => reply()
                .tool_call("look", r#"{"what": "x"}"#)
                .tool_call("pay", r#"{"invoice": "A", "amount": 5}"#),
        });
        let assistant = built(&rest, &bank).approval_key(KEY).build().unwrap();
        let result = assistant.resume(&snapshot, Decisions::new()).await;
        if is_over(&snapshot) {
            assert!(matches!(result, Err(RunError::Resume(ResumeError::Over))), "{at}");
            continue;
        }
        let output = result.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert_eq!((output.text(), output.messages.len()), (whole.text(), whole.messages.len()), "{at}");
        assert_sound(&assistant);
    }
}
