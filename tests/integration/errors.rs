//! What `main` prints of an error that leaves it by `?` is `Debug`: the sentence for people, not the fields of a type.

use std::error::Error;

use agent::message::{Conversation, ToolCall};
use agent::model::{ContextRules, ModelError, ModelErrorKind, ModelRequest, reply};
use agent::provider::http::HttpModel;
use agent::schema::Dialect;
use agent::store::{StoreError, StoreErrorKind};
use agent::{
    Assistant, Decisions, Registry, ScriptedModel, Tool, ToolContext, ToolError, UsageLimits, Value, json,
    steps::StepKey, tool, tools,
};

struct Database;

/// Counts the customers.
#[tool(read_only)]
fn count(_db: &Database, of: u8) -> u8 {
    of
}

/// Sends money.
#[tool(approval = "always")]
fn send(labels: std::collections::BTreeMap<String, Value>) -> usize {
    labels.len()
}

/// As `main` prints it.
fn printed(error: impl Error + Send + Sync + 'static) -> (String, String) {
    let said = error.to_string();
    let boxed: Box<dyn Error> = Box::new(error);
    (format!("{boxed:?}"), said)
}

fn assistant(replies: impl IntoIterator<Item = agent::model::ScriptedReply>) -> Assistant {
    Assistant::builder(ScriptedModel::new(replies)).tools(tools![send]).build().unwrap()
}

#[tokio::test]
async fn errors_print_their_sentence_first() {
    let call = |arguments: &str| ToolCall::new("1", "count", arguments);
    let registry = || Registry::new(tools![count]).unwrap();
    let broken = ModelError::new(ModelErrorKind::Auth, "the key is not valid").with_status(401);
    let suspended = assistant([reply().tool_call("send", r#"{"labels": {}}"#)]);
    let snapshot = suspended.prompt("Go.").await.unwrap().snapshot.unwrap();
    let limits = UsageLimits { requests: Some(0), ..UsageLimits::default() };
    let limited = Assistant::builder(ScriptedModel::new(["Hello!"])).limits(limits).build().unwrap();
    let full = agent::store::MemoryStore::with_room_for(0);
    let bad_schema = Assistant::builder(ScriptedModel::new(["Hello!"])).request(|request| {
        request.with_output(agent::model::OutputSchema::new("answer", json!({"type": "any"})))
    });
    let schema = json!({"properties": {"n": {"$dynamicRef": "#n"}}});
    let dynamic =
        Tool::new(
            "square",
            "Squares.",
            schema,
            |args: Value, _: ToolContext| async move { args.to_string() },
        );
    for (shown, said) in [
        printed(Registry::new(tools![count, { tools![count] }]).unwrap_err()),
        printed(registry().check_state(&ToolContext::new()).unwrap_err()),
        printed(registry().validate(&call(r#"{"of": "many"}"#)).unwrap_err()),
        printed(registry().fetch("cuont").err().unwrap()),
        printed(dynamic.err().unwrap()),
        printed(Registry::new(tools![send]).unwrap().check_dialect(Dialect::OpenAiStrict).unwrap_err()),
        printed(Assistant::builder(ScriptedModel::new(["Hello!"])).tools(tools![count]).build().unwrap_err()),
        printed(Assistant::builder(ScriptedModel::new(["Hello!"])).session("ann").await.err().unwrap()),
        printed(assistant([reply().error(broken.clone())]).prompt("Hi").await.unwrap_err()),
        printed(bad_schema.build().unwrap_err()),
        printed(registry().invoke(&call("{}"), &ToolContext::new(), full).await.unwrap_err()),
        printed(suspended.resume(&snapshot, Decisions::new()).await.unwrap_err()),
        printed(limited.prompt("Hi").await.unwrap_err()),
        printed(broken),
        printed(agent::model("antropic/x").err().unwrap()),
        printed(HttpModel::builder("openai/gpt-5").base_url("nowhere").key("k").build().err().unwrap()),
        printed(ToolError::retry("try again")),
        printed(StoreError::new(StoreErrorKind::Full, "no room")),
        printed(Conversation::new().compact(1, "nothing").unwrap_err()),
        printed({
            let (request, model) = (ModelRequest::default(), ScriptedModel::new(["Hello!"]));
            ContextRules::new().fit(&mut Conversation::new(), &request, &model).unwrap_err()
        }),
        printed("run".parse::<StepKey>().unwrap_err()),
        printed("x".parse::<Dialect>().unwrap_err()),
        printed("x".parse::<agent::args::CoercionPolicy>().unwrap_err()),
        printed(agent::ui::UiRequest::decode(agent::ui::UiProtocol::AgUi, b"{}").unwrap_err()),
        printed(agent::mcp::McpServer::new(tools![count]).into_service::<String>().err().unwrap()),
    ] {
        assert_eq!(shown, said);
    }
}

/// Causes that the sentence does not name follow it, and the body of a provider stands on a line of its own.
#[test]
fn causes_follow_the_sentence() {
    let io = std::io::Error::other("the disk is on fire");
    let (shown, said) = printed(ToolError::new("there is no file").with_source(io));
    assert_eq!((&*shown, &*said), ("there is no file: the disk is on fire", "there is no file"));
    let error = ModelError::new(ModelErrorKind::Server, "it failed").with_status(500).with_body("<p>Oh no");
    let (shown, said) = printed(error);
    assert_eq!(shown, format!("{said}\nThe body was: <p>Oh no"));
}
