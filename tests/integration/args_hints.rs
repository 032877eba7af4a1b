//! What the report says of slips that have a name, and the calls that it offers.

use super::mcp_support::{call, run};
use agent::args::{CoercionPolicy, InvalidArguments, Plan, PlanOptions};
use agent::mcp::McpServer;
use agent::{
    Assistant, Registry, ScriptedModel, ToolContext, args::HumanDuration, json, message::ToolCall,
    model::reply, tool, tools,
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

#[test]
fn what_cannot_be_unwrapped_is_told_by_what_is_inside() {
    let lines = |sent: &str| {
        let report = refused::<Book>(sent);
        assert_eq!(report.corrected(), None, "{report}");
        assert_eq!(report.count(), report.issues().len(), "{report}");
        report.issues().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let around = "unknown parameter: send what is inside, without anything around it";
    assert_eq!(
        lines(r#"{"name":"book_room","arguments":{"nights":"many","payment":{"kind":"cash"}}}"#),
        [
            "/name: unknown parameter".to_owned(),
            format!("/arguments: {around}"),
            "/arguments/file_path: required, but missing; expected string".to_owned(),
            r#"/arguments/nights: wrong type; got string "many"; expected integer >= 0"#.to_owned(),
            "/arguments/payment/amount: required, but missing; expected integer >= 0".to_owned(),
        ]
    );
    assert_eq!(
        lines(r#"{"calls":[{"recipient":"x","input":{"file_path":5,"nights":-1}}]}"#),
        [
            "/calls: unknown parameter: send what is inside `/calls/0/input`, without anything around it"
                .to_owned(),
            "/calls/0/input/file_path: must be text in quotes; got number 5; expected string".to_owned(),
            "/calls/0/input/nights: out of range; got number -1; expected integer >= 0".to_owned(),
        ]
    );
    assert_eq!(
        lines(r#"{"input":"{\"file_path\":5,\"nights\":-1}"}"#),
        [
            format!("/input: {around}"),
            "/input: /file_path in this text: must be text in quotes; got number 5; expected string"
                .to_owned(),
            "/input: /nights in this text: out of range; got number -1; expected integer >= 0".to_owned(),
        ]
    );
    let two = lines(r#"{"calls":[{"file_path":"a","nights":1},{"file_path":"b","nights":1}]}"#);
    assert_eq!(two, ["/calls: unknown parameter: send 2 calls, each with what is inside one of these"]);
    // Nothing in it is a parameter: the usual report.
    let other = lines(r#"{"options":{"x":1}}"#);
    assert_eq!(other.len(), 3, "{other:?}");
}

#[test]
fn wrappers_are_known_by_their_structure() {
    let bare = Some(r#"{"file_path":"a","nights":1}"#);
    for sent in [
        r#"{"thought":"x","do":"book_room","with":{"file_path":"a","nights":1}}"#,
        r#"{"with":{"file_path":"a"},"nights":1}"#,
        r#"{"a":{"b":{"c":{"file_path":"a","nights":1}}}}"#,
        r#"[{"file_path":"a","nights":1}]"#,
        r#"{"kwargs":{"file_path":"a","nights":1},"args":[],"more":{}}"#,
        r#"{"parameters":[{"name":"file_path","value":"a"},{"name":"nights","value":1}]}"#,
        r#"{"book_room":{"file_path":"a","nights":1}}"#,
        r#"{"file_path":["a"],"nights":[1]}"#,
        r#"{"with":"\"{\\\"file_path\\\":\\\"a\\\",\\\"nights\\\":1}\""}"#,
    ] {
        let report = refused::<Book>(sent);
        let same = |a: &str| serde_json::from_str::<agent::Value>(a).ok();
        assert_eq!(report.corrected().and_then(same), bare.and_then(same), "{sent}: {report}");
    }
    for sent in [
        r#"{"a":{"file_path":"a","nights":1},"b":{"file_path":"b","nights":2}}"#,
        r#"{"a":{"file_path":"a","nights":1},"b":5}"#,
        r#"{"a":{"file_path":"a","nights":1},"file_path":"b"}"#,
        r#"{"a":{"file_path":"a","nights":12345678901234567890123}}"#,
    ] {
        assert_eq!(refused::<Book>(sent).corrected(), None, "{sent}");
    }
}

#[test]
fn keys_that_belong_elsewhere_and_values_with_something_around_them() {
    let lines = |sent: &str| {
        let report = refused::<Book>(sent);
        let lines: Vec<String> = report.issues().iter().map(ToString::to_string).collect();
        (lines.join("\n"), report.corrected().map(str::to_owned))
    };
    let paid = Some(r#"{"file_path":"a","nights":1,"payment":{"kind":"cash","amount":2}}"#.to_owned());
    let (text, call) = lines(r#"{"file_path":"a","nights":1,"kind":"cash","amount":2}"#);
    assert!(text.starts_with("/kind: unknown parameter; it belongs inside `payment`"), "{text}");
    assert_eq!(call, paid);
    let (text, call) = lines(r#"{"file_path":"a","nights":1,"payment.kind":"cash","payment.amount":2}"#);
    assert!(text.starts_with("/payment.kind: unknown parameter; it belongs inside `payment`"), "{text}");
    assert_eq!(call, paid);
    let (text, call) = lines(r#"{"args.file_path":"a","nights":{"value":1}}"#);
    assert!(text.starts_with("/args.file_path: unknown parameter; write `file_path`"), "{text}");
    assert!(
        text.contains("/nights: send the value alone, without an object around it; got object"),
        "{text}"
    );
    assert_eq!(call.as_deref(), Some(r#"{"file_path":"a","nights":1}"#));
    let (text, call) = lines(r#"{"file_path":"a","nights":1,"payment":{"pay":{"kind":"cash","amount":2}}}"#);
    assert!(text.contains("payment"), "{text}");
    assert_eq!(call, paid);
    let (text, call) = lines(r#"{"file_path":"a","nights":1,"payment":[{"kind":"cash","amount":2}]}"#);
    assert!(text.starts_with("/payment: send the value alone, without a list around it"), "{text}");
    assert_eq!(call, paid);
    // A name that is nearly that of another parameter is not taken for the missing one.
    assert_eq!(lines(r#"{"nights":1,"agee":"a"}"#).1, None);
}

#[test]
fn what_says_nothing_is_left_out_as_a_whole() {
    let bare = Some(r#"{"file_path":"a","nights":1}"#);
    for payment in [
        r#"{"kind":null}"#,
        r#"{"kind":"","number":null}"#,
        r#""{}""#,
        r#""{\"kind\":\"\"}""#,
        r#"{"kind":{}}"#,
    ] {
        let report = refused::<Book>(&format!(r#"{{"file_path":"a","nights":1,"payment":{payment}}}"#));
        assert!(report.to_text().contains("optional: leave it out if there is none"), "{report}");
        assert_eq!(report.corrected(), bare, "{report}");
    }
    let report =
        refused::<Book>(r#"{"file_path":"a","nights":1,"payment":{"kind":"card","number":""},"age":"x"}"#);
    assert!(!report.to_text().contains("leave it out"), "{report}");
}

#[test]
fn spellings_are_offered_as_json() {
    let bare = Some(r#"{"file_path":"a","nights":1}"#);
    for (sent, hint) in [
        ("{file_path: a, nights: 1}", "put names in double quotes"),
        ("{{\"file_path\": \"a\", \"nights\": 1}}", "write each brace once"),
        ("{\"file_path\": \"a\", \"nights\": 1}}", "a closing bracket too many"),
        ("{'file_path': 'a', 'nights': 1, 'age': None}", "double quotes"),
        ("book_room(file_path='a', nights=1)", "as one JSON object"),
        ("I book it: {\"file_path\": \"a\", \"nights\": 1}", "plain text, not JSON"),
        ("```json\n{\"file_path\": \"a\", \"nights\": 1}\n```", "code fence"),
    ] {
        let report = refused::<Book>(sent);
        assert!(report.to_text().contains(hint), "{sent}: {report}");
        assert_eq!(report.corrected(), bare, "{sent}: {report}");
    }
    let report = refused::<Book>("{\"file_path\": \"a\nb\", \"nights\": 1}");
    assert!(report.to_text().contains("write a line break in a text as `\\n`"), "{report}");
    assert_eq!(report.corrected(), Some(r#"{"file_path":"a\nb","nights":1}"#));
    for cut in [
        "{\"file_path\": \"a",
        "{file_path: a, nights: 1",
        "{\"file_path\": \"a\", \"nights\": 1} and [more]",
    ] {
        assert_eq!(refused::<Book>(cut).corrected(), None, "{cut}");
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Shape {
    B(u8),
    C { side: u8 },
    Many(Vec<Shape>),
    Both(Box<Shape>, Box<Other>),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Other {
    Back(Box<Shape>),
    End,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Drawing {
    shape: Shape,
    others: Option<Vec<Other>>,
}

#[test]
fn an_alternative_is_the_only_key_and_recursion_is_readable() {
    let report = refused::<Drawing>(r#"{"shape":{"B":1,"C":{"side":2}}}"#);
    let line = report.issues()[0].to_string();
    assert!(
        line.starts_with(
            r#"/shape: send exactly one of these; got object with "B", "C"; expected {B: integer"#
        ),
        "{line}"
    );
    let text = report.to_text();
    for part in ["{C: {side: ", "{Many: [", "{Both: [", "others?: [\"End\" | {Back: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() < 300), "{text}");
    assert!(!text.contains('…'), "{text}");
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
    let served = run(McpServer::new(tools![add_up, add_strictly])).await;
    assert_eq!(call(served.address, "add_up", sent.clone()).await.text(), "[1, 2] true");
    let own = call(served.address, "add_strictly", json!({"numbers": "[1,2]"})).await;
    assert!(own.text().contains("send a JSON array, not text"), "{}", own.text());
    let strict = PlanOptions::default().coercion(CoercionPolicy::strict());
    let served = run(McpServer::new(tools![add_up]).options(strict)).await;
    let reply = call(served.address, "add_up", sent).await;
    assert!(
        reply.text().contains("2 problems") && reply.text().contains("If this is what you meant"),
        "{}",
        reply.text()
    );
}
