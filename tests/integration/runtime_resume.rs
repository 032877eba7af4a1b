//! Runs that were stored: what is signed cannot be replayed in another state, limits are the assistant's, and its rules are asked again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use agent::ScriptedModel;
use agent::SuspendedRun;
use agent::durable::{Rehearsal, RunRequest, Service};
use agent::loop_core::AgentLoop;
use agent::model::reply;
use agent::{
    Assistant, AssistantBuilder, BeforeCall, Decision, Decisions, RunError, RunStop, Tool, ToolContext,
    ToolOutcome, ToolOutput, ToolSet, UsageLimits, Value, json,
    run::{BuildError, ResumeError},
    tool, tools,
};

use crate::assistant_support::{assert_sound, outline};

/// What ran, and how often.
#[derive(Default)]
struct Ledger(Mutex<BTreeMap<String, u32>>);

impl Ledger {
    fn note(&self, what: String) {
        *self.0.lock().unwrap().entry(what).or_default() += 1;
    }

    fn count(&self, what: &str) -> u32 {
        self.0.lock().unwrap().get(what).copied().unwrap_or_default()
    }
}

/// Pays.
#[tool(inline, effect = "once", approval = when(|amount: &u64| *amount > 100))]
fn pay(to: String, amount: u64, ledger: &Ledger) -> String {
    ledger.note(format!("{amount} to {to}"));
    format!("paid {amount} to {to}")
}

/// A job whose result comes later.
fn job() -> ToolSet {
    let job = Tool::new("job", "Works.", json!({"type": "object"}), |_: Value, _: ToolContext| async {
        ToolOutcome::Deferred { handle: "h".to_owned() }
    });
    ToolSet::new().with(job.unwrap())
}

const KEY: [u8; 32] = [42; 32];

fn args(to: &str, amount: u64) -> String {
    json!({"to": to, "amount": amount}).to_string()
}

fn built(model: &ScriptedModel, ledger: &Arc<Ledger>) -> AssistantBuilder {
    let builder = Assistant::builder(model.clone()).tools(tools![pay]).tools(job());
    builder.shared_state(ledger.clone()).approval_key(KEY)
}

/// Pays Ann unasked, waits for Bob, and has a job.
fn asking() -> ScriptedModel {
    ScriptedModel::new([
        reply().tool_call("pay", args("ann", 1)).tool_call("pay", args("bob", 500)),
        reply().text("done"),
    ])
}

/// Pays Ann unasked, and has a job.
fn deferring() -> ScriptedModel {
    ScriptedModel::new([
        reply().tool_call("pay", args("ann", 1)).tool_call("job", "{}"),
        reply().text("done"),
    ])
}

fn stored(run: &SuspendedRun) -> Value {
    serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap()
}

async fn suspended(model: &ScriptedModel, ledger: &Arc<Ledger>) -> SuspendedRun {
    let output = built(model, ledger).build().unwrap().prompt("Pay").await.unwrap();
    assert_eq!(output.stop, RunStop::Suspended);
    output.snapshot.unwrap()
}

#[tokio::test]
async fn a_call_that_has_ended_cannot_be_made_ready_again() {
    let ledger = Arc::<Ledger>::default();
    let run = stored(&suspended(&deferring(), &ledger).await);
    assert_eq!(ledger.count("1 to ann"), 1);
    for state in ["ready", "planned", "started"] {
        let mut changed = run.clone();
        assert_eq!(changed["batch"]["slots"][0]["state"], "ended");
        changed["batch"]["slots"][0]["state"] = state.into();
        changed["batch"]["slots"][0]["result"] = Value::Null;
        let changed: SuspendedRun = serde_json::from_value(changed).unwrap();
        let next = built(&ScriptedModel::new(["done"]), &ledger).build().unwrap();
        let error = next
            .resume(&changed, Decisions::new().deliver("call_2", ToolOutput::text("x")))
            .await
            .unwrap_err();
        assert!(
            matches!(error.as_resume_error(), Some(ResumeError::Tampered { .. } | ResumeError::Changed)),
            "{state}: {error}"
        );
    }
    let run: SuspendedRun = serde_json::from_value(run).unwrap();
    let next = built(&ScriptedModel::new(["done"]), &ledger).build().unwrap();
    next.resume(&run, Decisions::new().deliver("call_2", ToolOutput::text("x"))).await.unwrap();
    assert_eq!(ledger.count("1 to ann"), 1);
}

#[tokio::test]
async fn limits_are_those_of_the_assistant_that_resumes() {
    let ledger = Arc::<Ledger>::default();
    let mut run = stored(&suspended(&asking(), &ledger).await);
    run["config"]["max_turns"] = 1_000_000.into();
    run["config"]["limits"]["requests"] = Value::Null;
    run["config"]["loop_guard"] = Value::Null;
    let run: SuspendedRun = serde_json::from_value(run).unwrap();
    let endless = ScriptedModel::from_fn(|_| reply().tool_call("pay", args("eve", 1)));
    let resume = async |limit: &dyn Fn(AssistantBuilder) -> AssistantBuilder| {
        let next = limit(built(&endless, &ledger)).build().unwrap();
        next.resume(&run, Decisions::new().deny(&run.requests()[0], "no")).await
    };
    let turns = resume(&|builder| builder.max_turns(3)).await;
    assert!(
        matches!(&turns, Err(RunError::Limit(reached)) if reached.limit.as_str() == "turns"),
        "{turns:?}"
    );
    let limits = UsageLimits { requests: Some(2), ..UsageLimits::default() };
    let requests = resume(&move |builder| builder.limits(limits.clone())).await;
    assert!(
        matches!(&requests, Err(RunError::Limit(reached)) if reached.limit.as_str() == "requests"),
        "{requests:?}"
    );
    let guard = resume(&|builder| builder).await;
    assert!(
        matches!(&guard, Err(RunError::Limit(reached)) if reached.limit.as_str() == "repeated_calls"),
        "{guard:?}"
    );
}

/// Every place of a value, as a pointer.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| places(value, &format!("{at}/{key}"), out)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, value)| places(value, &format!("{at}/{n}"), out));
        }
        _ => {}
    }
}

/// Other values for a place: those of its kind, and every state and phase that there is.
fn others(value: &Value) -> Vec<Value> {
    let mut all = vec![Value::Null, json!({}), json!([])];
    match value {
        Value::Number(_) => all.extend([json!(0), json!(1), json!(2), json!(99)]),
        Value::Bool(is) => all.push(json!(!is)),
        Value::String(_) => {
            let words = [
                "",
                "planned",
                "started",
                "ready",
                "ended",
                "prepare",
                "approve",
                "call_tools",
                "await",
                "call_model",
                "poll_first",
                "skip",
                "turn_end",
                "end_now",
                "call_1",
                "call_2",
                "pay",
                "job",
                "x",
            ];
            all.extend(words.map(Value::from));
        }
        Value::Object(_) => all.extend([
            json!("ready"),
            json!("planned"),
            json!("ended"),
            json!({"undecided": {"to": "bob", "amount": 5}}),
            json!({"deferred": "h"}),
            json!({"to": "bob", "amount": 7}),
            json!("call_tools"),
            json!("prepare"),
        ]),
        Value::Array(items) => {
            let mut twice = items.clone();
            twice.extend(items.iter().cloned());
            all.push(twice.into());
            let mut turned = items.clone();
            turned.reverse();
            all.push(turned.into());
        }
        Value::Null => all.extend([json!(1), json!(true), json!("x"), json!({"to": "bob", "amount": 7})]),
    }
    all.retain(|other| other != value);
    all
}

/// Changes of one place each, and of all places together that say what happens next.
fn changes(run: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let mut at = Vec::new();
    places(run, "", &mut at);
    for place in at {
        for other in others(run.pointer(&place).unwrap()) {
            let mut changed = run.clone();
            *changed.pointer_mut(&place).unwrap() = other.clone();
            all.push((format!("{place} = {other}"), changed));
        }
    }
    let states = ["planned", "started", "ready", "ended"];
    for slot in 0..2 {
        for state in states {
            for phase in
                ["poll_first", "call_model", "prepare", "skip", "approve", "call_tools", "await", "turn_end"]
            {
                for segment in [[0, 2], [0, 1], [1, 2], [0, 0]] {
                    let mut changed = run.clone();
                    changed["batch"]["slots"][slot]["state"] = state.into();
                    changed["phase"] = phase.into();
                    changed["batch"]["segment"] = json!({"start": segment[0], "end": segment[1]});
                    all.push((format!("slot {slot} {state}, {phase}, {segment:?}"), changed));
                }
            }
        }
    }
    all
}

#[tokio::test]
async fn a_stored_run_that_was_changed_anywhere_runs_nothing_twice_and_nothing_unapproved() {
    let (mut tried, mut unreadable, mut refused) = (0, 0, 0);
    for model in [asking(), deferring()] {
        let paid = Arc::<Ledger>::default();
        let run = stored(&suspended(&model, &paid).await);
        let was_paid = paid.count("1 to ann");
        for (what, changed) in changes(&run) {
            let Ok(changed) = serde_json::from_value::<SuspendedRun>(changed) else {
                unreadable += 1;
                continue;
            };
            for decides in 0..3 {
                tried += 1;
                let ledger = Arc::<Ledger>::default();
                let requests = changed.requests();
                let decisions = match decides {
                    0 => requests.iter().fold(Decisions::new(), Decisions::allow),
                    1 => requests.iter().fold(Decisions::new(), |all, one| all.deny(one, "no")),
                    _ => Decisions::new().deliver("call_2", ToolOutput::text("x")),
                };
                let next = built(&ScriptedModel::new(["done", "done"]), &ledger).build().unwrap();
                let result = next.resume(&changed, decisions).await;
                refused += u32::from(result.is_err());
                let what = format!("{what}, {decides}: {:?}", ledger.0.lock().unwrap());
                // Bob is paid what he was to be paid, once, where that was allowed; Ann once.
                let bob = ledger.count("500 to bob");
                assert!(bob <= u32::from(decides == 0), "{what}");
                assert!(was_paid + ledger.count("1 to ann") <= 1, "{what}");
                let paid: u32 = ledger.0.lock().unwrap().values().sum();
                assert_eq!(paid, bob + ledger.count("1 to ann"), "{what}");
            }
        }
    }
    assert!(tried > 2000 && unreadable > 500 && refused > 1000, "{tried} {unreadable} {refused}");
}

#[tokio::test]
async fn a_key_can_be_changed() {
    let ledger = Arc::<Ledger>::default();
    let run: SuspendedRun = serde_json::from_value(stored(&suspended(&asking(), &ledger).await)).unwrap();
    let answering = ScriptedModel::new(["done"]);
    let with = |key: u8| {
        let builder = Assistant::builder(answering.clone()).tools(tools![pay]).tools(job());
        builder.shared_state(ledger.clone()).approval_key([key; 32])
    };
    let allow = || Decisions::new().allow(&run.requests()[0]);
    assert!(with(1).build().unwrap().resume(&run, allow()).await.is_err());
    assert!(with(1).former_approval_key([2; 32]).build().unwrap().resume(&run, allow()).await.is_err());
    let next = with(1).former_approval_key([2; 32]).former_approval_key(KEY).build().unwrap();
    // It waits on, and is signed with the new key from now on.
    let later = Decisions::new().decide(&run.requests()[0], Decision::Later);
    let again = next.resume(&run, later).await.unwrap().snapshot.unwrap();
    let again: SuspendedRun = serde_json::from_value(stored(&again)).unwrap();
    let allow = Decisions::new().allow(&again.requests()[0]);
    assert!(built(&answering, &ledger).build().unwrap().resume(&again, allow.clone()).await.is_err());
    assert_eq!(with(1).build().unwrap().resume(&again, allow).await.unwrap().text(), "done");
    assert_eq!((ledger.count("500 to bob"), ledger.count("1 to ann")), (1, 1));

    let builder = || Assistant::builder(answering.clone());
    assert!(matches!(builder().former_approval_key(KEY).build().unwrap_err(), BuildError::NoApprovalKey));
    let short = builder().approval_key(KEY).former_approval_key([1; 31]).build().unwrap_err();
    assert!(matches!(short, BuildError::ShortApprovalKey { length: 31, .. }));
}

type Says = Arc<Mutex<Vec<(u64, BeforeCall)>>>;

/// Asks the hook about each call: what it says by the amount, and which amounts it was asked about.
fn hooked(builder: AssistantBuilder, says: &Says, asked: &Arc<Mutex<Vec<Value>>>) -> AssistantBuilder {
    let (says, asked) = (says.clone(), asked.clone());
    builder.before_tool_call(move |call| {
        asked.lock().unwrap().push(call.args()["amount"].clone());
        let amount = call.args()["amount"].as_u64();
        let said = says.lock().unwrap().iter().find(|(about, _)| Some(*about) == amount).cloned();
        async move { Ok(said.map_or(BeforeCall::Continue, |(_, said)| said)) }
    })
}

/// The results of the two payments after the hook changed its mind while the run waited, here and on an engine; and what it was asked.
async fn after_waiting(
    before: &[(u64, BeforeCall)],
    now: &[(u64, BeforeCall)],
    decision: Decision,
) -> (Vec<String>, Vec<Value>) {
    let (results, heard, asked_again) = after_waiting_twice(before, now, decision, Decision::Later).await;
    assert_eq!(asked_again, [""; 0]);
    (results, heard)
}

/// The same where another decision is needed then; and what it is on.
async fn after_waiting_twice(
    before: &[(u64, BeforeCall)],
    now: &[(u64, BeforeCall)],
    decision: Decision,
    again: Decision,
) -> (Vec<String>, Vec<Value>, Vec<String>) {
    let (ledger, says, asked) = (Arc::<Ledger>::default(), Says::default(), Arc::default());
    *says.lock().unwrap() = before.to_vec();
    let assistant = hooked(built(&asking(), &ledger), &says, &asked).build().unwrap();
    let run = assistant.prompt("Pay").await.unwrap().snapshot.unwrap();
    let run: SuspendedRun = serde_json::from_value(stored(&run)).unwrap();
    *says.lock().unwrap() = now.to_vec();
    asked.lock().unwrap().clear();
    let next = hooked(built(&ScriptedModel::new(["done"]), &ledger), &says, &asked).build().unwrap();
    let decide = |run: &SuspendedRun, decision: &Decision| {
        let requests = run.requests();
        requests.iter().fold(Decisions::new(), |all, one| all.decide(one, decision.clone()))
    };
    let first = decide(&run, &decision);
    let mut output = next.resume(&run, first.clone()).await.unwrap();
    let (mut next, mut asked_again) = (next, Vec::new());
    if let Some(waits) = output.snapshot.take() {
        let waits: SuspendedRun = serde_json::from_value(stored(&waits)).unwrap();
        let shown = |request: &agent::run::ApprovalRequest| {
            format!("{} {}", request.request_id.split_once('/').unwrap().1, request.call.args.text())
        };
        asked_again = waits.requests().iter().map(shown).collect();
        next = hooked(built(&ScriptedModel::new(["done"]), &ledger), &says, &asked).build().unwrap();
        let stale = next.resume(&waits, first).await.unwrap_err();
        assert!(
            matches!(
                stale.as_resume_error(),
                Some(ResumeError::NotPending { .. } | ResumeError::Undecided { .. })
            ),
            "{stale}"
        );
        asked.lock().unwrap().truncate(2);
        let output = next.resume(&waits, decide(&waits, &again)).await.unwrap();
        assert_eq!(output.stop, RunStop::Completed);
    }
    assert_sound(&next);
    let results: Vec<String> = outline(&next)[2..4].to_vec();
    let heard = std::mem::take(&mut *asked.lock().unwrap());

    // On an engine, where the decision arrives while the run waits.
    *says.lock().unwrap() = before.to_vec();
    let (waits, same) = (Arc::new(AtomicBool::new(false)), says.clone());
    let (seen, now) = (waits.clone(), now.to_vec());
    let builder = hooked(built(&asking(), &ledger), &says, &asked).on_approval(move |_| {
        same.lock().unwrap().clone_from(&now);
        seen.store(true, Ordering::SeqCst);
        async { Decision::Later }
    });
    let durable =
        Rehearsal::new(Service::new(&builder.build().unwrap()).unwrap(), RunRequest::new("r", "Pay"));
    for ord in 0..2 {
        durable.decide(format!("r/1/approval/{ord}"), decision.clone());
        durable.decide(format!("r/1/approval/{ord}/2"), again.clone());
    }
    for _ in 0..2 {
        let outcome = durable.play().await.unwrap();
        let shown = |at: usize| {
            let result = outcome.messages[at].as_tool_result().unwrap();
            match &result.code {
                None => format!("{} {}", result.tool, result.text()),
                Some(code) => format!("{} {}({code})", result.tool, result.outcome),
            }
        };
        assert_eq!([shown(2), shown(3)].to_vec(), results);
    }
    assert!(waits.load(Ordering::SeqCst));
    let all = asked.lock().unwrap();
    assert_eq!(all[2..], heard, "the same calls are asked about on an engine, once");
    (results, heard, asked_again)
}

#[tokio::test]
async fn hooks_are_asked_again_once_and_a_block_wins() {
    let block = BeforeCall::block("the right was taken back");
    let both = vec![json!(1), json!(500)];
    let paid = |to: &str, amount: u64| format!("pay paid {amount} to {to}");
    let blocked = "pay denied(blocked)".to_owned();

    let (results, asked) = after_waiting(&[], &[], Decision::Allow).await;
    assert_eq!((results, asked), (vec![paid("ann", 1), paid("bob", 500)], both.clone()));
    let (results, asked) = after_waiting(&[], &[(500, block.clone())], Decision::Allow).await;
    assert_eq!((results, asked), (vec![paid("ann", 1), blocked.clone()], both.clone()));
    // The neighbour that nobody had to allow waited, too.
    let (results, _) = after_waiting(&[], &[(1, block.clone())], Decision::Allow).await;
    assert_eq!(results, [blocked.clone(), paid("bob", 500)]);
    let (results, asked) = after_waiting(&[], &[(500, block.clone())], Decision::Deny("no".into())).await;
    assert_eq!((results, asked), (vec![paid("ann", 1), "pay denied(denied)".to_owned()], vec![json!(1)]));

    // It is met by the decision.
    let ask = BeforeCall::RequireApproval;
    let (results, _) = after_waiting(&[(500, ask.clone())], &[(500, ask.clone())], Decision::Allow).await;
    assert_eq!(results, [paid("ann", 1), paid("bob", 500)]);
    let (results, _) = after_waiting(&[(1, ask.clone())], &[(1, ask)], Decision::Allow).await;
    assert_eq!(results, [paid("ann", 1), paid("bob", 500)]);

    // Changed arguments need a new decision, unless they need none.
    let less = |amount: u64| BeforeCall::Replace(json!({"to": "bob", "amount": amount}));
    let (results, _) = after_waiting(&[(500, less(400))], &[(500, less(400))], Decision::Allow).await;
    assert_eq!(results, [paid("ann", 1), paid("bob", 400)], "the same change is no change");
    let (results, _) = after_waiting(&[], &[(1, less(2))], Decision::Allow).await;
    assert_eq!(results, [paid("bob", 2), paid("bob", 500)]);

    // What a person changed is asked about as it was changed.
    let changed = || Decision::AllowWith(json!({"to": "bob", "amount": 300}));
    let (results, asked) = after_waiting(&[], &[(500, block.clone())], changed()).await;
    assert_eq!((results, asked), (vec![paid("ann", 1), paid("bob", 300)], vec![json!(1), json!(300)]));
    let (results, _) = after_waiting(&[], &[(300, block)], changed()).await;
    assert_eq!(results, [paid("ann", 1), blocked]);
}

#[tokio::test]
async fn a_call_that_would_run_otherwise_than_it_was_decided_on_is_decided_on_again() {
    let paid = |to: &str, amount: u64| format!("pay paid {amount} to {to}");
    let (denied, ask) = ("pay denied(denied)".to_owned(), BeforeCall::RequireApproval);
    let less = |amount: u64| BeforeCall::Replace(json!({"to": "bob", "amount": amount}));
    let block = BeforeCall::block("no");
    let allow = || Decision::Allow;
    let request = |ord: u32, to: &str, amount: u64| {
        let args = json!({"to": to, "amount": amount});
        vec![format!("1/approval/{ord}/2 {args}")]
    };

    // It needs a decision now, and had none; its neighbour waits with it.
    let (results, asked, again) = after_waiting_twice(&[], &[(1, ask.clone())], allow(), allow()).await;
    assert_eq!((results, again), (vec![paid("ann", 1), paid("bob", 500)], request(0, "ann", 1)));
    assert_eq!(asked, [1, 500, 1, 500].map(Value::from), "once for each time that the run is resumed");
    let (results, _, again) =
        after_waiting_twice(&[], &[(1, ask)], allow(), Decision::Deny("no".into())).await;
    assert_eq!((results, again), (vec![denied.clone(), paid("bob", 500)], request(0, "ann", 1)));

    // It was allowed with other arguments.
    for (before, now, amount) in
        [(vec![], vec![(500, less(400))], 400), (vec![(500, less(400))], vec![], 500)]
    {
        let (results, _, again) = after_waiting_twice(&before, &now, allow(), allow()).await;
        assert_eq!((results, again), (vec![paid("ann", 1), paid("bob", amount)], request(1, "bob", amount)));
        let (results, _, _) = after_waiting_twice(&before, &now, allow(), Decision::Deny("no".into())).await;
        assert_eq!(results, [paid("ann", 1), denied.clone()]);
    }
    // Its new arguments need a decision.
    let (results, _, again) = after_waiting_twice(&[], &[(1, less(700))], allow(), allow()).await;
    assert_eq!((results, again), (vec![paid("bob", 700), paid("bob", 500)], request(0, "bob", 700)));

    // What a person changed was changed once more; and what a person changes then.
    let changed = |amount: u64| Decision::AllowWith(json!({"to": "bob", "amount": amount}));
    let (results, _, again) = after_waiting_twice(&[], &[(300, less(301))], changed(300), allow()).await;
    assert_eq!((results, again), (vec![paid("ann", 1), paid("bob", 301)], request(1, "bob", 301)));
    let (results, asked, _) = after_waiting_twice(&[], &[(500, less(400))], allow(), changed(350)).await;
    assert_eq!(results, [paid("ann", 1), paid("bob", 350)]);
    assert_eq!(asked, [1, 500, 1, 350].map(Value::from));

    // A block wins over the new decision, too.
    let (results, _, _) =
        after_waiting_twice(&[], &[(500, less(400)), (350, block)], allow(), changed(350)).await;
    assert_eq!(results, [paid("ann", 1), "pay denied(blocked)".to_owned()]);
}

#[tokio::test]
async fn a_tool_that_was_taken_away_is_not_run() {
    let ledger = Arc::<Ledger>::default();
    let run: SuspendedRun = serde_json::from_value(stored(&suspended(&asking(), &ledger).await)).unwrap();
    let chosen = Arc::new(Mutex::new(0));
    let count = chosen.clone();
    let next = built(&ScriptedModel::new(["done"]), &ledger)
        .prepare_tools(move |turn| {
            *count.lock().unwrap() += 1;
            async move { Ok(turn.filter(|tool| tool.name() != "pay")) }
        })
        .build()
        .unwrap();
    next.resume(&run, Decisions::new().allow(&run.requests()[0])).await.unwrap();
    assert_eq!(outline(&next)[2..4], ["pay failed(unknown_tool)", "pay failed(unknown_tool)"]);
    assert_eq!((*chosen.lock().unwrap(), ledger.0.lock().unwrap().len()), (2, 0), "once for each turn");
}

#[tokio::test]
async fn a_handler_of_the_process_that_resumes_is_asked_before_the_hooks() {
    let (ledger, says, asked) = (Arc::<Ledger>::default(), Says::default(), Arc::default());
    let run: SuspendedRun = serde_json::from_value(stored(&suspended(&asking(), &ledger).await)).unwrap();
    says.lock().unwrap().push((300, BeforeCall::block("never")));
    let next = hooked(built(&ScriptedModel::new(["done"]), &ledger), &says, &asked)
        .on_approval(|_| async { Decision::AllowWith(json!({"to": "bob", "amount": 300})) })
        .build()
        .unwrap();
    next.resume(&run, Decisions::new()).await.unwrap();
    assert_eq!(outline(&next)[2..4], ["pay paid 1 to ann", "pay denied(blocked)"]);
    assert_eq!(*asked.lock().unwrap(), [json!(1), json!(300)], "each once");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_stored_after_a_decision_needs_no_other() {
    let ledger = Arc::<Ledger>::default();
    let assistant = built(&asking(), &ledger).on_approval(|_| async { Decision::Allow }).build().unwrap();
    let mut run = assistant.prompt("Pay").stream();
    let handle = run.handle();
    let mut snapshots = Vec::new();
    while let Some(event) = run.next().await {
        snapshots.extend(handle.snapshot().map(|snapshot| (format!("{event:?}"), stored(&snapshot))));
    }
    run.output().await.unwrap();
    let mut checked = 0;
    for (at, snapshot) in snapshots {
        let run: AgentLoop = serde_json::from_value(snapshot.clone()).unwrap();
        let snapshot: SuspendedRun = serde_json::from_value(snapshot).unwrap();
        if run.end().is_some() {
            continue;
        }
        let (ledger, says, asked) = (Arc::<Ledger>::default(), Says::default(), Arc::default());
        let rest = ScriptedModel::from_fn(|request| match request.messages.last().map(|last| last.role()) {
            Some("tool_result") => reply().text("done"),
            _ => reply().tool_call("pay", args("ann", 1)).tool_call("pay", args("bob", 500)),
        });
        let next = hooked(built(&rest, &ledger), &says, &asked).on_approval(|_| async { Decision::Allow });
        let next = next.build().unwrap();
        next.resume(&snapshot, Decisions::new()).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert_sound(&next);
        let asked = asked.lock().unwrap();
        let once = |amount: u64| asked.iter().filter(|one| **one == json!(amount)).count() <= 1;
        assert!(once(1) && once(500), "{at}: {asked:?}");
        assert!(
            !outline(&next).iter().any(|line| line.contains("approval_stale")),
            "{at}: {:?}",
            outline(&next)
        );
        checked += 1;
    }
    assert!(checked > 10);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_prepared_when_its_run_was_stored_is_blocked_when_it_is_resumed() {
    let (ledger, says, asked) = (Arc::<Ledger>::default(), Says::default(), Arc::default());
    let assistant = hooked(built(&asking(), &ledger), &says, &asked).build().unwrap();
    let mut run = assistant.prompt("Pay").stream();
    let handle = run.handle();
    let mut prepared = None;
    while let Some(event) = run.next().await {
        // The second call begins: the first one is ready.
        if let agent::EventKind::ToolExecutionStart { call, .. } = &event.kind
            && call.id == "call_2"
        {
            prepared = handle.snapshot();
        }
    }
    let prepared: SuspendedRun = serde_json::from_value(stored(&prepared.unwrap())).unwrap();
    says.lock().unwrap().push((1, BeforeCall::block("not any more")));
    let next = hooked(built(&ScriptedModel::new(["done"]), &ledger), &says, &asked).build().unwrap();
    let run = next.resume(&prepared, Decisions::new()).await.unwrap().snapshot.unwrap();
    next.resume(&run, Decisions::new().deny(&run.requests()[0], "no")).await.unwrap();
    assert_eq!(outline(&next)[2..4], ["pay denied(blocked)", "pay denied(denied)"]);
    assert_eq!(ledger.0.lock().unwrap().len(), 0);
}
