//! The arguments of a call are parsed once between the reply and the body, whatever else of the run reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::model::reply;
use agent::store::MemoryStore;
use agent::{Assistant, BeforeCall, Decision, ScriptedModel, ToolArgs, hooks::AfterCall, json, tool, tools};
use serde::{Deserialize, Deserializer};

/// How often an amount was read in this process. Only the test below reads amounts.
static READ: AtomicU32 = AtomicU32::new(0);

/// Reads an amount, and counts.
fn counted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    READ.fetch_add(1, Ordering::Relaxed);
    u32::deserialize(deserializer)
}

#[derive(ToolArgs)]
struct Payment {
    /// In cents.
    #[serde(deserialize_with = "counted", alias = "sum")]
    #[schemars(with = "u32")]
    amount: u32,
}

/// Whether a person has to be asked.
fn is_large(payment: &Payment) -> bool {
    payment.amount > 10
}

/// Pays.
#[tool(inline, effect = "pure", approval = is_large)]
fn pay(payment: Payment) -> String {
    format!("paid {}", payment.amount)
}

#[tokio::test]
async fn hooks_approval_records_and_the_cache_read_what_the_check_parsed() {
    let model = ScriptedModel::new([
        reply().tool_call("pay", r#"{"sum": "50"}"#),
        reply().tool_call("pay", r#"{"sum": "50"}"#),
        reply().text("Done."),
    ]);
    let seen = Arc::new(AtomicU32::new(0));
    let (before, approval, after) = (seen.clone(), seen.clone(), seen.clone());
    let assistant = Assistant::builder(model)
        .tools(tools![pay])
        .cache_results()
        .store(MemoryStore::new())
        .before_tool_call(move |call| {
            assert_eq!(call.args(), &json!({"amount": 50}));
            before.fetch_add(1, Ordering::Relaxed);
            async { Ok(BeforeCall::Continue) }
        })
        .on_approval(move |request| {
            assert_eq!(request.call.args.value().unwrap(), json!({"amount": 50}));
            approval.fetch_add(1, Ordering::Relaxed);
            async { Decision::Allow }
        })
        .after_tool_call(move |call, _| {
            assert_eq!(call.args(), &json!({"amount": 50}));
            after.fetch_add(1, Ordering::Relaxed);
            async { Ok(AfterCall::default()) }
        })
        .build()
        .unwrap();
    assistant.prompt("Pay.").await.unwrap();
    let messages = assistant.messages();
    assert_eq!([2, 4].map(|at| messages.get(at).unwrap().text()), ["paid 50", "paid 50"]);
    // The second call is checked as well, once; its result is from the cache, so no hook follows a body.
    assert_eq!((READ.load(Ordering::Relaxed), seen.load(Ordering::Relaxed)), (2, 5));
}

static READ_ON_ENGINES: AtomicU32 = AtomicU32::new(0);

fn counted_on_engines<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    READ_ON_ENGINES.fetch_add(1, Ordering::Relaxed);
    u32::deserialize(deserializer)
}

#[derive(ToolArgs)]
struct Refund {
    /// In cents.
    #[serde(deserialize_with = "counted_on_engines")]
    #[schemars(with = "u32")]
    amount: u32,
}

/// Pays back.
#[tool(effect = "idempotent")]
fn refund(refund: Refund) -> String {
    format!("refunded {}", refund.amount)
}

#[tokio::test]
async fn on_an_engine_the_body_of_a_single_call_gets_what_the_check_parsed() {
    let run = |has_hook: bool| {
        let model =
            ScriptedModel::new([reply().tool_call("refund", r#"{"amount": 5}"#), reply().text("Done.")]);
        let mut builder = Assistant::builder(model).tools(tools![refund]);
        if has_hook {
            builder = builder.before_tool_call(|_| async { Ok(BeforeCall::Continue) });
        }
        Rehearsal::new(Service::new(&builder.build().unwrap()).unwrap(), RunRequest::new("r", "Pay back."))
    };
    for has_hook in [false, true] {
        READ_ON_ENGINES.store(0, Ordering::Relaxed);
        let outcome = run(has_hook).play().await.unwrap();
        assert_eq!(outcome.messages[2].text(), "refunded 5");
        assert_eq!(READ_ON_ENGINES.load(Ordering::Relaxed), 1, "{has_hook}");
    }
    // A replay that finds the step of the check does not have what was parsed, so the body checks its arguments.
    let run = run(true);
    let steps = {
        run.play().await.unwrap();
        run.steps()
    };
    let prepared =
        steps.iter().find(|step| step.contains("/prepare/")).unwrap_or_else(|| panic!("{steps:?}"));
    let model = ScriptedModel::new([reply().tool_call("refund", r#"{"amount": 5}"#), reply().text("Done.")]);
    let hooked = Assistant::builder(model).tools(tools![refund]);
    let hooked = hooked.before_tool_call(|_| async { Ok(BeforeCall::Continue) }).build().unwrap();
    let run = Rehearsal::new(Service::new(&hooked).unwrap(), RunRequest::new("r", "Pay back."));
    assert!(run.crash_after(prepared.as_str()).await.unwrap().is_none());
    READ_ON_ENGINES.store(0, Ordering::Relaxed);
    assert_eq!(run.play().await.unwrap().messages[2].text(), "refunded 5");
    assert!(READ_ON_ENGINES.load(Ordering::Relaxed) >= 1);
}
