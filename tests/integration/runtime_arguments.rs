//! Rules of the application read arguments by type: what they read is what the body gets, and what they cannot read does not run.

use std::sync::{Arc, Mutex};

use agent::ScriptedModel;
use agent::args::CoercionPolicy;
use agent::model::reply;
use agent::run::ApprovalRequest;
use agent::{
    Assistant, AssistantBuilder, BeforeCall, Decision, Decisions, RunTool, Tool, ToolArgs, ToolContext,
    ToolSet, Value, args::ArgumentError, json, tool, tools,
};

/// What bodies got.
#[derive(Default)]
struct Got(Mutex<Vec<String>>);

impl Got {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[derive(ToolArgs, Clone, Debug, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Target {
    File {
        #[serde(alias = "file")]
        path: String,
    },
    Owner {
        name: String,
    },
}

/// Pays.
#[tool(inline)]
fn pay(
    #[arg(alias = "sum")] amount: u128,
    to: Target,
    #[arg(default = 3)] times: u8,
    note: Option<String>,
    got: &Got,
) -> String {
    got.0.lock().unwrap().push(format!("{amount} {to:?} {times} {note:?}"));
    "paid".to_owned()
}

/// Pays, and coerces nothing.
#[tool(inline, coerce = "exact")]
fn pay_exactly(#[arg(alias = "sum")] amount: u128) -> String {
    amount.to_string()
}

/// Looks.
#[tool(inline)]
fn look(what: String) -> String {
    what
}

/// The tool is one of these actions.
#[tool]
enum Act {
    /// Moves.
    Move {
        /// Where to.
        #[serde(alias = "dest")]
        to: String,
        /// How often.
        #[arg(default = 2)]
        times: u64,
    },
    /// Stays.
    Stay,
}

impl RunTool for Act {
    type Output = String;
    async fn run(self, cx: &ToolContext) -> String {
        cx.get::<Got>().unwrap().0.lock().unwrap().push(match self {
            Self::Move { to, times } => format!("{to} {times}"),
            Self::Stay => "stays".to_owned(),
        });
        "done".to_owned()
    }
}

fn calling(tool: &'static str, args: &str) -> ScriptedModel {
    ScriptedModel::new([reply().tool_call(tool, args), reply().text("done")])
}

fn built(model: ScriptedModel, got: &Arc<Got>) -> AssistantBuilder {
    Assistant::builder(model).tools(tools![pay, look]).shared_state(got.clone())
}

fn result(assistant: &Assistant) -> String {
    assistant.messages().get(2).unwrap().text()
}

const CALLS: [&str; 5] = [
    r#"{"amount": 5, "to": {"kind": "file", "path": "x"}}"#,
    r#"{"sum": "1000000000000000000000000000001", "to": {"file": "x", "kind": "file"}, "times": "4", "note": null}"#,
    r#"{"sum": 340282366920938463463374607431768211455, "to": {"kind": "owner", "name": "ann"}, "note": "n"}"#,
    r#"{"times": 1, "to": {"name": "ann", "kind": "owner"}, "amount": 0, "note": "a\u0062"}"#,
    r#"{"to": {"kind": "file", "file": "x"}, "sum": "7"}"#,
];

#[tokio::test]
async fn hooks_and_approvers_read_what_the_body_gets() {
    for args in CALLS {
        let got = Arc::<Got>::default();
        let read = Arc::<Got>::default();
        let (hook, approver) = (read.clone(), read.clone());
        let assistant = built(calling("pay", args), &got)
            .before_tool_call(move |call| {
                let read = hook.clone();
                async move {
                    read.0.lock().unwrap().push(format!(
                        "{} {:?} {} {:?}",
                        call.arg::<u128>("amount")?,
                        call.arg::<Target>("to")?,
                        call.arg::<u8>("times")?,
                        call.arg::<Option<String>>("note")?
                    ));
                    Ok(BeforeCall::RequireApproval)
                }
            })
            .after_tool_call(|call, _| async move {
                call.arg::<u128>("amount")?;
                Ok(agent::hooks::AfterCall::default())
            })
            .on_approval(move |request: ApprovalRequest| {
                let read = || {
                    Ok::<_, ArgumentError>(format!(
                        "{} {:?} {} {:?}",
                        request.arg::<u128>("amount")?,
                        request.arg::<Target>("to")?,
                        request.arg::<u8>("times")?,
                        request.arg::<Option<String>>("note")?
                    ))
                };
                approver.0.lock().unwrap().push(read().unwrap());
                // Stored and read again, it knows what is in the call.
                let stored: ApprovalRequest =
                    serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
                assert_eq!(stored.arg::<u128>("amount"), request.arg::<u128>("amount"));
                assert_eq!(stored.arg::<Target>("to"), request.arg::<Target>("to"));
                assert!(matches!(stored.arg::<Option<u8>>("nothing"), Err(ArgumentError::Missing { .. })));
                async { Decision::Allow }
            })
            .build()
            .unwrap();
        assistant.prompt("go").await.unwrap();
        assert_eq!(result(&assistant), "paid", "{args}");
        let [body] = got.take().try_into().unwrap();
        assert_eq!(read.take(), [body.clone(), body], "{args}");
    }
}

#[tokio::test]
async fn the_arguments_of_an_action_are_those_of_its_variant() {
    let calls = [
        (r#"{"dest": "x", "action": "move"}"#, "x 2"),
        (r#"{"action": "move", "to": "y", "times": "18446744073709551615"}"#, "y 18446744073709551615"),
        (r#"{"action": "stay"}"#, "stays"),
    ];
    for (args, wanted) in calls {
        let got = Arc::<Got>::default();
        let seen = got.clone();
        let assistant = Assistant::builder(calling("act", args))
            .tools(tools![Act])
            .shared_state(got.clone())
            .before_tool_call(move |call| {
                let seen = seen.clone();
                async move {
                    let text = if call.arg::<String>("action")? == "move" {
                        format!("{} {}", call.arg::<String>("to")?, call.arg::<u64>("times")?)
                    } else {
                        // Of another variant.
                        assert_eq!(call.arg::<Option<String>>("to"), Ok(None));
                        assert!(call.arg::<String>("to").is_err());
                        "stays".to_owned()
                    };
                    seen.0.lock().unwrap().push(text);
                    Ok(BeforeCall::Continue)
                }
            })
            .build()
            .unwrap();
        assistant.prompt("go").await.unwrap();
        assert_eq!(got.take(), [wanted, wanted], "{}", result(&assistant));
    }
}

type Rule = fn(&agent::hooks::ToolCallInfo) -> Result<(), ArgumentError>;

#[tokio::test]
async fn a_rule_that_cannot_be_evaluated_lets_nothing_through() {
    const AMOUNT: &str = r#"{"amount": 123456, "to": {"kind": "file", "path": "x"}}"#;
    let rules: [Rule; 5] = [
        |call| call.arg::<Option<u64>>("amuont").map(drop),
        |call| call.arg::<u8>("amount").map(drop),
        |call| call.arg::<String>("amount").map(drop),
        |call| call.arg::<Target>("note").map(drop),
        |call| call.arg::<bool>("to").map(drop),
    ];
    for rule in rules {
        let got = Arc::<Got>::default();
        let assistant = built(calling("pay", AMOUNT), &got)
            .before_tool_call(move |call| async move {
                rule(&call)?;
                Ok(BeforeCall::Continue)
            })
            .build()
            .unwrap();
        assistant.prompt("go").await.unwrap();
        assert_eq!(got.take(), [""; 0]);
        let messages = assistant.messages();
        let ended = messages.get(2).unwrap().as_tool_result().unwrap();
        assert_eq!(ended.code.as_deref(), Some("hook_error"));
        assert!(!ended.text().contains("123456"), "{}", ended.text());
    }
    // A tool without that parameter is refused, too: a rule asks for the tool first.
    for (is_asked, ended) in [(false, "A hook of the application failed"), (true, "seen")] {
        let assistant = built(calling("look", r#"{"what": "seen"}"#), &Arc::default())
            .before_tool_call(move |call| async move {
                if (!is_asked || call.call().name == "pay") && call.arg::<u128>("amount")? > 100 {
                    return Ok(BeforeCall::block("too much"));
                }
                Ok(BeforeCall::Continue)
            })
            .build()
            .unwrap();
        assistant.prompt("go").await.unwrap();
        assert!(result(&assistant).starts_with(ended), "{}", result(&assistant));
    }
}

#[tokio::test]
async fn a_decision_on_a_stored_run_reads_the_same_under_an_exact_policy() {
    let schema = json!({
        "type": "object",
        "properties": {"amount": {"type": "integer", "format": "uint128"}, "n": {"type": "integer", "default": 7}},
        "required": ["amount"],
    });
    let body = |args: Value, _: ToolContext| async move { args["amount"].to_string() };
    let dynamic = Tool::new("transfer", "Transfers.", schema, body).unwrap();
    let exact = dynamic
        .configure(|options| options.coerce(CoercionPolicy::exact()).approval(agent::Approval::ALWAYS));
    let tools = ToolSet::new().with(exact.unwrap());
    let model = calling("transfer", r#"{"amount": 12345}"#);
    let assistant = Assistant::builder(model).tools(tools).build().unwrap();
    let run = assistant.prompt("go").await.unwrap().snapshot.unwrap();
    let request = &run.requests()[0];
    assert_eq!((request.arg::<u64>("amount"), request.arg::<u8>("n")), (Ok(12345), Ok(7)));
    assert!(matches!(request.arg::<Option<u8>>("m"), Err(ArgumentError::Unknown { .. })));
    assistant.resume(&run, Decisions::new().allow(request)).await.unwrap();

    // A typed tool, with an integer that no 64 bits hold.
    let got = Arc::<Got>::default();
    let args = r#"{"sum": 1000000000000000000000000000001}"#;
    let exact = built(calling("pay_exactly", args), &got)
        .tools(tools![pay_exactly])
        .before_tool_call(|_| async { Ok(BeforeCall::RequireApproval) })
        .build()
        .unwrap();
    let run = exact.prompt("go").await.unwrap().snapshot.unwrap();
    let request = &run.requests()[0];
    assert_eq!(request.arg::<u128>("amount"), Ok(1_000_000_000_000_000_000_000_000_000_001));
}
