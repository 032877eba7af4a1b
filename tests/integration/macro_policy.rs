//! What `#[tool(…)]` says about running a tool arrives where it is read.

#![expect(clippy::items_after_statements, reason = "tools as people write them")]

use crate::macro_support::{definition, text};
use agent::{
    Approval, Registry, RunTool, ToolArgs, ToolContext, ToolSet, Value, json, tool,
    tool::{Effect, ToolPolicy},
    tools,
};

/// How the only tool of `set` may be run.
fn policy(set: ToolSet) -> ToolPolicy {
    let registry = Registry::new(set).expect("sound");
    let name = registry.names().next().expect("one tool").to_owned();
    registry.get(&name).expect("named so").policy().clone()
}

/// Says nothing.
#[tool]
fn plain() {}

/// Says everything.
#[tool(
    idempotent, timeout = false, max_attempts = 3, max_retries = ONE, approval = "always", exclusive, cache,
    allow_repeat, keep_result, max_result_bytes = 4_096, strict, defer, examples({"n": 1}, {"n": 2}),
    extend("vendor/category" = {"of": ["files", null]}, "plain" = 1)
)]
fn everything(n: u8) -> u8 {
    n
}
const ONE: u32 = 1;

#[test]
fn nothing_said_is_the_default() {
    assert_eq!(policy(tools![plain]), ToolPolicy::default());
    let definition = definition(tools![plain]);
    assert_eq!((definition.strict(), definition.is_deferred()), (None, false));
    assert!(definition.examples().is_empty() && definition.meta().is_empty());
}

#[test]
fn everything_said_arrives() {
    let found = policy(tools![everything]);
    assert_eq!(found.effect, Effect::Idempotent);
    assert_eq!(found.timeout, Some(std::time::Duration::MAX));
    assert_eq!(
        (found.max_attempts, found.max_retries, found.max_result_bytes),
        (Some(3), Some(1), Some(4096))
    );
    assert_eq!(found.approval, Approval::ALWAYS);
    assert_eq!((found.exclusive, found.cache, found.allow_repeat), (true, Some(true), true));
    assert!(found.keep_result && !policy(tools![plain]).keep_result);
    let definition = definition(tools![everything]);
    assert_eq!((definition.strict(), definition.is_deferred()), (Some(true), true));
    assert_eq!(definition.examples(), [json!({"n": 1}), json!({"n": 2})]);
    let meta = json!({"vendor/category": {"of": ["files", null]}, "plain": 1});
    assert_eq!(Value::from(definition.meta().clone()), meta);
    assert_eq!(serde_json::to_value(&definition).expect("JSON")["_meta"], meta);
}

#[test]
fn an_effect_of_its_own_wins_over_what_hints_imply() {
    /// Changes something.
    #[tool(effect = "idempotent", cache = false, strict = false)]
    fn upsert() {}
    /// Changes nothing that matters.
    #[tool(effect = "pure")]
    fn touch() {}
    assert_eq!(policy(tools![upsert]).effect, Effect::Idempotent);
    assert_eq!(policy(tools![upsert]).cache, Some(false));
    assert_eq!(definition(tools![upsert]).strict(), Some(false));
    assert_eq!(definition(tools![upsert]).idempotent(), None);
    assert_eq!(policy(tools![touch]).effect, Effect::Pure);
}

#[test]
fn examples_are_checked_against_the_plan() {
    assert!(Registry::new(tools![everything]).expect("sound").check_examples().is_ok());
    /// Has a bad example.
    #[tool(examples({"n": 1}, {"n": 500, "m": 1}))]
    fn bad(n: u8) -> u8 {
        n
    }
    let error =
        Registry::new(tools![bad, everything]).expect("sound").check_examples().expect_err("one is bad");
    assert_eq!(error.problems().len(), 1);
    let text = error.to_string();
    assert!(text.contains("example 2 of tool `bad`") && text.contains("/n") && text.contains("/m"), "{text}");
}

/// Asks whether a call of the only tool of `set` waits.
fn waits(set: ToolSet, arguments: &str) -> bool {
    let registry = Registry::new(set).expect("sound");
    let name = registry.names().next().expect("one tool").to_owned();
    let tool = registry.get(&name).expect("named so").clone();
    tool.policy().approval.is_needed(tool.definition().plan(), arguments)
}

#[derive(ToolArgs)]
struct Payment {
    amount: u64,
    to: String,
}

fn is_risky(payment: &Payment) -> bool {
    payment.amount > 100 || payment.to == "stranger"
}

/// By name, several of several.
#[tool(approval = when(|amount: &u64, to: &str, r#type: &Option<u8>| *amount > 100 || to == "stranger" || matches!(r#type, Some(7))))]
fn several(to: &str, amount: u64, r#type: Option<u8>) -> String {
    format!("{to} {amount} {type:?}")
}

/// The only one.
#[tool(approval = when(|amount: &u64| *amount > 100))]
fn only(amount: u64) -> u64 {
    amount
}

/// A field of the whole.
#[tool(approval = when(|amount: &u64| *amount > 100))]
fn field(payment: Payment) -> u64 {
    payment.amount
}

/// The whole, by its name.
#[tool(approval = when(|payment: &Payment| is_risky(payment)))]
fn whole(payment: Payment) -> u64 {
    payment.amount
}

/// The whole, by a path.
#[tool(approval = is_risky)]
fn path(payment: Payment) -> u64 {
    payment.amount
}

/// A struct.
#[tool(approval = when(|amount: &u64| *amount > Self::LIMIT))]
struct Pay {
    amount: u64,
}
impl Pay {
    const LIMIT: u64 = 100;
}
impl RunTool for Pay {
    type Output = u64;
    async fn run(self, _: &ToolContext) -> u64 {
        self.amount
    }
}

struct Bank;
#[tool]
impl Bank {
    const LIMIT: u64 = 100;
    /// A method.
    #[tool(approval = when(|amount: &u64| *amount > Self::LIMIT))]
    fn transfer(&self, amount: u64, to: String) -> String {
        format!("{amount} {to}")
    }
}

#[test]
fn rules_look_at_typed_arguments() {
    assert!(!waits(tools![several], r#"{"to": "ann", "amount": "99"}"#));
    assert!(waits(tools![several], r#"{"to": "ann", "amount": "101"}"#));
    assert!(waits(tools![several], r#"{"to": "stranger", "amount": 1}"#));
    assert!(waits(tools![several], r#"{"to": "ann", "amount": 1, "type": 7}"#));
    for (set, rest) in [
        (tools![only], ""),
        (tools![field], r#", "to": "ann""#),
        (tools![whole], r#", "to": "ann""#),
        (tools![path], r#", "to": "ann""#),
        (tools![Pay], ""),
        (tools![{ Bank }], r#", "to": "ann""#),
    ] {
        let name = format!("{set:?}");
        assert!(waits(set.clone(), &format!(r#"{{"amount": 101{rest}}}"#)), "{name}");
        assert!(!waits(set.clone(), &format!(r#"{{"amount": "100"{rest}}}"#)), "{name}");
        assert!(waits(set, "{}"), "{name}: what does not fit waits");
    }
    assert!(waits(tools![path], r#"{"amount": 1, "to": "stranger"}"#));
}

#[tokio::test]
async fn a_rule_does_not_stand_in_the_way_of_a_call() {
    assert_eq!(text(tools![several], "several", r#"{"to": "ann", "amount": 500}"#).await, "ann 500 None");
    assert_eq!(text(tools![Pay], "pay", r#"{"amount": 500}"#).await, "500");
}

#[test]
fn rules_can_be_made_by_hand() {
    let approval = Approval::when(|arguments: &Value| arguments["n"] == json!(3));
    let registry = Registry::new(tools![everything]).expect("sound");
    let plan = registry.get("everything").expect("there").definition().plan().clone();
    assert!(approval.is_needed(&plan, r#"{"n": "3"}"#) && !approval.is_needed(&plan, r#"{"n": 4}"#));
    assert_eq!(approval.clone(), approval);
    assert_ne!(approval, Approval::when(|_: &Value| true));
}
