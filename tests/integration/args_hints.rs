//! What the report says of slips that have a name, and the calls that it offers.

use super::mcp_support::{call, run};
use agent::args::{CoercionPolicy, InvalidArguments, Plan, PlanOptions};
use agent::mcp::Server;
use agent::{
    Assistant, HumanDuration, Registry, ScriptedModel, ToolContext, json, message::ToolCall, model::reply,
    tool, tools,
};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};

#[track_caller]
fn refused<T: DeserializeOwned + JsonSchema>(text: &str) -> InvalidArguments {
    let plan = Plan::for_type::<T>("book_room", PlanOptions::default()).expect("a plan");
    plan.parse::<T>(text).map(|_| ()).expect_err("refused")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Payment {
    Card { number: String },
    Cash { amount: u32 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Book {
    file_path: String,
    nights: u64,
    payment: Option<Payment>,
    age: Option<u8>,
}

#[test]
fn a_filler_for_nothing_is_left_out() {
    let bare = r#"{"file_path":"a","nights":1}"#;
    for filler in
        [r#""payment":"null""#, r#""payment":"""#, r#""payment":{}"#, r#""age":"""#, r#""age":"None""#]
    {
        let report = refused::<Book>(&format!(r#"{{"file_path":"a","nights":1,{filler}}}"#));
        assert!(report.to_text().contains("optional: leave it out if there is none"), "{report}");
        assert_eq!(report.corrected(), Some(bare), "{report}");
    }
    let report = refused::<Book>(r#"{"file_path":"a","nights":""}"#);
    assert!(!report.to_text().contains("leave it out") && report.corrected().is_none(), "{report}");
}

#[test]
fn wrappers_are_taken_off_with_a_fault_inside() {
    let bare = r#"{"file_path":"a","nights":1}"#;
    for sent in [
        r#"{"name":"book_room","arguments":{"file_path":"a","nights":1}}"#,
        r#"{"arguments":{"file_path":"a","nights":1}}"#,
        r#"{"input":"{\"file_path\":\"a\",\"nights\":1}"}"#,
        r#"{"parameters":{"filePath":"a","nights":1}}"#,
        r#"{"args":{"file_path":"a","nights":1,"age":""}}"#,
        r#""{\"name\":\"book_room\",\"arguments\":{\"file_path\":\"a\",\"nights\":1}}""#,
        r#"{"type":"function","function":{"name":"book_room","arguments":"{\"file_path\":\"a\",\"nights\":1}"}}"#,
    ] {
        assert_eq!(refused::<Book>(sent).corrected(), Some(bare), "{sent}");
    }
    let report = refused::<Book>(r#"{"arguments":{"file_path":"a","nights":"many"}}"#);
    assert_eq!(report.corrected(), None);
}

#[test]
fn one_unknown_key_and_one_missing_parameter_may_be_the_same() {
    let report = refused::<Book>(r#"{"path":"a","nights":1}"#);
    assert!(
        report.to_text().contains("/file_path: required, but missing: perhaps `path` is meant for it"),
        "{report}"
    );
    assert_eq!(report.corrected(), Some(r#"{"file_path":"a","nights":1}"#));
    assert!(report.issues().iter().all(|issue| issue.suggestions.is_empty()));
    for other in [r#"{"path":7,"nights":1}"#, r#"{"path":"a","x":1,"nights":1}"#, r#"{"path":"a"}"#] {
        assert_eq!(refused::<Book>(other).corrected(), None, "{other}");
    }
}

#[test]
fn a_tag_under_another_name_and_one_sent_as_text() {
    let fixed = Some(r#"{"file_path":"a","nights":1,"payment":{"kind":"cash","amount":2}}"#);
    let report = refused::<Book>(r#"{"file_path":"a","nights":1,"payment":{"type":"cash","amount":2}}"#);
    assert!(
        report.to_text().contains("/payment/type: unknown parameter; its value belongs under `kind`"),
        "{report}"
    );
    assert_eq!(report.corrected(), fixed);
    let text = r#"{"file_path":"a","nights":1,"payment":"{\"kind\":\"cash\",\"amount\":2}"}"#;
    assert_eq!(refused::<Book>(text).corrected(), fixed);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Expr {
    Num(f64),
    Add(Box<Expr>, Box<Expr>),
    Neg { inner: Box<Expr> },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Odd {
    e: Option<Expr>,
    n: u64,
    wait: HumanDuration,
}

#[test]
fn recursion_whole_numbers_and_units() {
    let text = refused::<Odd>(r#"{"n":1e19,"wait":90}"#).to_text();
    assert!(text.contains("e?: {Num: number} | {Add: [object, object]} | {Neg: {inner: object}}"), "{text}");
    assert!(text.contains("/n: write the whole number in digits, without a point or an exponent"), "{text}");
    assert!(text.contains("/wait: must be text in quotes, with a unit; got number 90"), "{text}");
}

#[test]
fn spellings_of_other_languages() {
    for (sent, hint) in [
        (r"{'file_path': 'a'}", "use double quotes"),
        (r#"{"file_path":"a","nights":1,"age":None}"#, "in lower case"),
        (r#"{"file_path":"a","nights":1,"x":True}"#, "in lower case"),
        (r#"{"file_path":"a","nights":1,"x":undefined}"#, "leave out what has no value"),
        (r#"{"file_path":"a","nights":NaN}"#, "JSON has no such number"),
        (r#"{file_path:"a"}"#, "put names in double quotes"),
    ] {
        let report = refused::<Book>(sent);
        assert!(report.to_text().contains(hint), "{sent}: {report}");
    }
}

/// Books a room.
#[tool]
fn book_room(aa: u8, bb: u8, cc: u8, dd: u8, ee: u8) -> String {
    format!("{aa}{bb}{cc}{dd}{ee}")
}

#[tokio::test]
async fn a_namespace_before_the_name_of_a_tool() {
    let registry = Registry::new(tools![book_room]).unwrap();
    let result = registry.call(&ToolCall::new("1", "functions.book_room", "{}"), &ToolContext::new()).await;
    assert!(result.outcome.text().contains("did you mean") && result.outcome.text().contains("book_room"));
}

/// An obedient model that fixes one mistake per round.
#[tokio::test]
async fn a_model_that_gets_better_has_more_tries() {
    let tries = [
        json!({"aa": "x", "bb": "x", "cc": "x", "dd": "x", "ee": "x"}),
        json!({"aa": 1, "bb": "x", "cc": "x", "dd": "x", "ee": "x"}),
        json!({"aa": 1, "bb": 2, "cc": "y", "dd": "x", "ee": "x"}),
        json!({"aa": 1, "bb": 2, "cc": 3, "dd": "x", "ee": "x"}),
        json!({"aa": 1, "bb": 2, "cc": 3, "dd": 4, "ee": "x"}),
        json!({"aa": 1, "bb": 2, "cc": 3, "dd": 4, "ee": 5}),
    ];
    let calls = tries.iter().map(|args| reply().tool_call("book_room", args.to_string()));
    let model = ScriptedModel::new(calls.chain([reply().text("done")]));
    let assistant = Assistant::builder(model).tools(tools![book_room]).build().unwrap();
    let output = assistant.prompt("Book.").await.unwrap();
    let results: Vec<String> =
        output.messages.iter().filter_map(|message| Some(message.as_tool_result()?.text())).collect();
    assert_eq!(results.last().map(String::as_str), Some("12345"));
    assert!(results.iter().all(|text| !text.contains("Do not call it again")), "{results:?}");

    // The same mistake again and again.
    let model = ScriptedModel::new(
        (0..4).map(|_| reply().tool_call("book_room", r#"{"aa":"x"}"#)).chain([reply().text("x")]),
    );
    let assistant = Assistant::builder(model).tools(tools![book_room]).build().unwrap();
    let output = assistant.prompt("Book.").await.unwrap();
    let last = output.messages.iter().filter_map(|message| Some(message.as_tool_result()?.text())).nth(2);
    assert!(last.unwrap().contains("This was the last of 3 tries of `book_room`"));
}

/// Adds up.
#[tool]
fn add_up(numbers: Vec<u32>, pay: Option<Payment>) -> String {
    format!("{numbers:?} {}", pay.is_some())
}

/// Adds up, and takes nothing but lists.
#[tool(coerce = "strict")]
fn add_strictly(numbers: Vec<u32>) -> String {
    format!("{numbers:?}")
}

#[tokio::test]
async fn an_mcp_server_takes_lists_and_objects_as_json_text_unless_told_otherwise() {
    let sent = json!({"numbers": "[1,2]", "pay": "{\"kind\":\"cash\",\"amount\":2}"});
    let served = run(Server::new(tools![add_up, add_strictly])).await;
    assert_eq!(call(served.address, "add_up", sent.clone()).await.text(), "[1, 2] true");
    let own = call(served.address, "add_strictly", json!({"numbers": "[1,2]"})).await;
    assert!(own.text().contains("send a JSON array, not text"), "{}", own.text());
    let strict = PlanOptions::default().coercion(CoercionPolicy::strict());
    let served = run(Server::new(tools![add_up]).options(strict)).await;
    let reply = call(served.address, "add_up", sent).await;
    assert!(
        reply.text().contains("2 problems") && reply.text().contains("If this is what you meant"),
        "{}",
        reply.text()
    );
}
