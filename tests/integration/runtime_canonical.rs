//! What hooks, approvers, records and the loop guard see of a call: the names of the parameters and every digit, however the
//! model spelled them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use agent::ScriptedModel;
use agent::args::{Plan, PlanOptions};
use agent::message::ToolCall;
use agent::model::reply;
use agent::store::{InvocationQuery, MemoryStore, Store};
use agent::{Assistant, BeforeCall, Decision, Registry, ToolArgs, Value, json, tool, tools};
use proptest::prelude::*;

#[derive(ToolArgs, Debug, PartialEq)]
struct Who {
    #[serde(alias = "usr", alias = "login")]
    user: String,
    #[serde(alias = "lvl")]
    level: Option<u8>,
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Target {
    File {
        #[serde(alias = "file")]
        path: String,
    },
    Owner {
        #[serde(alias = "boss")]
        who: Who,
    },
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Action {
    Move {
        #[serde(alias = "dest")]
        to: String,
    },
    Stay,
}

#[derive(ToolArgs, Debug, PartialEq)]
#[serde(untagged)]
enum Either {
    Named {
        #[serde(alias = "title")]
        name: String,
    },
    Counted {
        #[serde(alias = "n")]
        count: u32,
    },
}

#[derive(ToolArgs, Debug, PartialEq)]
struct Place {
    #[serde(alias = "town")]
    city: String,
}

#[derive(ToolArgs, Debug, PartialEq)]
struct Everything {
    #[serde(alias = "sum")]
    amount: u64,
    #[serde(alias = "owner")]
    who: Option<Who>,
    #[serde(alias = "all")]
    list: Vec<Who>,
    by_name: BTreeMap<String, Who>,
    by_number: BTreeMap<i32, Who>,
    target: Target,
    action: Action,
    either: Either,
    #[serde(flatten)]
    place: Place,
}

/// Writes the arguments; `pick` chooses the spelling of each name.
fn spelled(pick: &mut dyn FnMut(&[&'static str]) -> &'static str) -> String {
    let who = |level: u8| {
        let (user, lvl) = (pick(&["user", "usr", "login"]), pick(&["level", "lvl"]));
        format!(r#"{{"{user}": "ann", "{lvl}": {level}}}"#)
    };
    let [single, listed, keyed, numbered, boss_of] = [1, 2, 3, 4, 5].map(who);
    let (amount, owner, list) = (pick(&["amount", "sum"]), pick(&["who", "owner"]), pick(&["list", "all"]));
    let (boss, to, city) = (pick(&["who", "boss"]), pick(&["to", "dest"]), pick(&["city", "town"]));
    let (name, number) = (pick(&["name", "title"]), pick(&["7", "07", "007"]));
    format!(
        r#"{{"{amount}": 5, "{owner}": {single}, "{list}": [{listed}], "by_name": {{"x": {keyed}}}, "by_number": {{"{number}": {numbered}}},
            "target": {{"{boss}": {boss_of}, "kind": "owner"}}, "action": {{"move": {{"{to}": "y"}}}}, "either": {{"{name}": "z"}},
            "{city}": "Rome"}}"#
    )
}

proptest! {
    #[test]
    fn the_value_of_a_call_is_the_same_for_all_spellings(choices in prop::collection::vec(any::<usize>(), 32)) {
        let plan = Plan::for_type::<Everything>("everything", PlanOptions::default()).unwrap();
        let mut choices = choices.into_iter();
        let text = spelled(&mut |names| names[choices.next().unwrap() % names.len()]);
        let plain = spelled(&mut |names| names[0]);
        let value = plan.parse::<Value>(&text).unwrap().value;
        prop_assert_eq!(&value, &serde_json::from_str::<Value>(&plain).unwrap());
        prop_assert_eq!(&value, &plan.parse::<Value>(&plain).unwrap().value);
        let typed = |text: &str| plan.parse::<Everything>(text).unwrap().value;
        prop_assert_eq!(typed(&text), typed(&plain));
    }
}

/// Pays.
#[tool(inline)]
fn pay(#[arg(alias = "sum")] amount: u64) -> String {
    format!("paid {amount}")
}

/// Pays much.
#[tool(inline, approval = "always")]
fn pay_much(#[arg(alias = "sum")] amount: u128) -> String {
    format!("paid {amount}")
}

#[tokio::test]
async fn hooks_and_records_see_the_names_of_the_parameters() {
    for args in [r#"{"amount": 1000000}"#, r#"{"sum": 1000000}"#, r#"{"sum": "1000000"}"#] {
        let model = ScriptedModel::new([reply().tool_call("pay", args), reply().text("done")]);
        let store = Arc::new(MemoryStore::new());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let assistant = Assistant::builder(model)
            .tools(tools![pay])
            .store(store.clone())
            .before_tool_call(move |call| {
                kept.lock().unwrap().push(call.args().clone());
                async { Ok(BeforeCall::Continue) }
            })
            .build()
            .unwrap();
        assistant.prompt("Pay").await.unwrap();
        assert_eq!(*seen.lock().unwrap(), [json!({"amount": 1_000_000})], "{args}");
        let records = store.list(InvocationQuery::new()).await.unwrap();
        assert_eq!(records[0].args, json!({"amount": 1_000_000}), "{args}");
        let checked = Registry::new(tools![pay]).unwrap().validate(&ToolCall::new("c", "pay", args)).unwrap();
        assert_eq!(*checked.value(), json!({"amount": 1_000_000}), "{args}");
    }
}

#[tokio::test]
async fn approvers_see_every_digit() {
    for args in [
        r#"{"amount": 1000000000000000000999999999999}"#,
        r#"{"sum": 1000000000000000000999999999999}"#,
        r#"{"sum": "1000000000000000000999999999999"}"#,
    ] {
        let model = ScriptedModel::new([reply().tool_call("pay_much", args), reply().text("done")]);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let assistant = Assistant::builder(model)
            .tools(tools![pay_much])
            .on_approval(move |request| {
                kept.lock().unwrap().push(request.call.args.value().unwrap());
                async { Decision::Allow }
            })
            .build()
            .unwrap();
        assistant.prompt("Pay").await.unwrap();
        assert_eq!(*seen.lock().unwrap(), [json!({"amount": "1000000000000000000999999999999"})], "{args}");
        assert_eq!(assistant.messages().get(2).unwrap().text(), "paid 1000000000000000000999999999999");
    }
}

#[tokio::test]
async fn the_loop_guard_counts_calls_however_they_are_spelled() {
    let calls = [r#"{"amount": 1}"#, r#"{"sum": 1}"#, r#"{"amount": "1"}"#, r#"{"sum": 1}"#];
    let replies = calls.map(|args| reply().tool_call("pay", args)).into_iter().chain([reply().text("done")]);
    let assistant = Assistant::builder(ScriptedModel::new(replies)).tools(tools![pay]).build().unwrap();
    assistant.prompt("Pay").await.unwrap();
    let messages = assistant.messages();
    let texts: Vec<_> = (1..=4).map(|call| messages.get(2 * call).unwrap().text()).collect();
    assert_eq!(&texts[..2], ["paid 1", "paid 1"]);
    assert!(texts[2].contains("this is call 3"), "{texts:?}");
}
