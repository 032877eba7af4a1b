//! Structured results that are not objects: clients get them as a member of an object, as FastMCP sends them.

use super::mcp_mock::{Answer, Mock};
use super::mcp_support::{Era, ask, call, modern, run};
use agent::mcp::ClientConfig;
use agent::mcp::{McpClient, McpServer};
use agent::message::ToolCall;
use agent::{Registry, Tool, ToolContext, ToolOutcome, ToolOutput, Value, json, tool, tools};

#[derive(agent::ToolOutput)]
struct Hotel {
    name: &'static str,
    annexes: Vec<Hotel>,
}

/// Finds hotels.
#[tool(inline)]
fn find_hotels(city: String) -> Vec<Hotel> {
    let annex = Hotel { name: "Annex", annexes: Vec::new() };
    if city == "Paris" { vec![Hotel { name: "Lutetia", annexes: vec![annex] }] } else { Vec::new() }
}

/// Names colours.
#[tool(inline)]
fn colours() -> Vec<String> {
    vec!["red".to_owned()]
}

#[derive(agent::ToolOutput)]
struct Room {
    beds: Vec<Bed>,
}

#[derive(agent::ToolOutput)]
struct Bed {
    width: u32,
}

/// Lists rooms.
#[tool(inline)]
fn rooms() -> Vec<Room> {
    vec![Room { beds: vec![Bed { width: 90 }] }]
}

/// Counts, and has no schema.
#[tool(inline)]
fn count() -> u32 {
    7
}

/// A tool that gives `output`, and announces a schema.
fn announced(name: &str, schema: Value, output: ToolOutput) -> Tool {
    let made = Tool::new(name, "Gives data.", json!({"type": "object"}), move |_args, _cx| {
        let output = output.clone();
        async move { output }
    });
    made.unwrap().configure(|options| options.output_schema(schema)).unwrap()
}

fn hotels() -> Value {
    json!([{"name": "Lutetia", "annexes": [{"name": "Annex", "annexes": []}]}])
}

fn server() -> McpServer {
    let number = announced("number", json!({"type": "integer"}), ToolOutput::text("42"));
    let word = announced("word", json!({"type": "string"}), ToolOutput::text("42"));
    let maybe = announced("maybe", json!({"type": ["object", "null"]}), ToolOutput::text("null"));
    let wrong = announced("wrong", json!({"type": "array"}), ToolOutput::text("hunter2"));
    let bare = announced("bare", json!({}), ToolOutput::text("a list").with_structured(json!({"a": 1})));
    let set =
        tools![find_hotels, rooms, colours, count, { number }, { word }, { maybe }, { wrong }, { bare }];
    McpServer::new(set).name("hotels")
}

#[tokio::test]
async fn lists_are_data_for_clients_of_both_forms() {
    let server = run(server()).await;
    let paris = || json!({"name": "find_hotels", "arguments": {"city": "Paris"}});
    for reply in [
        ask(server.address, "tools/call", paris()).await,
        modern(server.address, "", "tools/call", paris()).await,
    ] {
        let result = reply.json()["result"].clone();
        assert_eq!(result["structuredContent"], json!({"result": hotels()}), "{reply:?}");
        assert_eq!(result["_meta"]["fastmcp"], json!({"wrap_result": true}));
        assert_eq!(reply.text(), hotels().to_string(), "the text is the list");
    }
    let none = call(server.address, "find_hotels", json!({"city": "Rome"})).await;
    assert_eq!(none.json()["result"]["structuredContent"], json!({"result": []}));
    for (tool, data) in [
        ("colours", json!({"result": ["red"]})),
        ("number", json!({"result": 42})),
        ("word", json!({"result": "42"})),
        ("maybe", json!({"result": null})),
        ("bare", json!({"a": 1})),
        ("count", Value::Null),
    ] {
        let reply = call(server.address, tool, json!({})).await;
        assert_eq!(reply.json()["result"]["structuredContent"], data, "{tool}");
        assert_eq!(reply.json()["result"]["isError"], json!(false), "{tool}");
    }
    let text = call(server.address, "wrong", json!({})).await.text();
    assert!(text.starts_with("isError: The tool failed.") && !text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn the_schema_of_a_list_is_that_of_an_object_around_it() {
    let server = run(server()).await;
    let list = ask(server.address, "tools/list", json!({})).await.json();
    let schema = |name: &str| {
        let tools = list["result"]["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap()["outputSchema"].clone()
    };
    let hotels = schema("find_hotels");
    assert_eq!((&hotels["type"], &hotels["x-fastmcp-wrap-result"]), (&json!("object"), &json!(true)));
    assert_eq!(hotels["required"], json!(["result"]));
    assert_eq!(hotels["properties"]["result"]["type"], "array");
    let hotel = &hotels["properties"]["result"]["items"];
    assert_eq!(hotel["properties"]["name"]["type"], "string", "{hotels}");
    let at = hotel["properties"]["annexes"]["items"]["$ref"].as_str().unwrap();
    assert_eq!(hotels.pointer(at.trim_start_matches('#')).unwrap()["type"], "object", "{hotels}");
    // What does not refer to itself stands where it is used.
    let rooms = schema("rooms");
    let room = &rooms["properties"]["result"]["items"];
    assert_eq!(room["properties"]["beds"]["items"]["properties"]["width"]["type"], "integer", "{rooms}");
    assert!(!rooms.to_string().contains('$'), "{rooms}");
    assert_eq!(schema("colours")["properties"]["result"]["items"], json!({"type": "string"}));
    assert_eq!(schema("bare"), json!({"type": "object"}));
    assert_eq!(schema("count"), Value::Null);
}

#[tokio::test]
async fn our_client_gives_the_list_itself() {
    let server = run(server()).await;
    for era in [Era::Modern, Era::Legacy] {
        let client = McpClient::connect(era.of(ClientConfig::http(server.url()).name("h"))).await.unwrap();
        let registry = Registry::new(&client).unwrap();
        let schema = registry.get("h__find_hotels").unwrap().definition().output_schema().unwrap().clone();
        assert_eq!(schema["type"], "array", "{schema}");
        let call = ToolCall::new("1", "h__find_hotels", r#"{"city": "Paris"}"#);
        let ToolOutcome::Completed(output) = registry.call(&call, &ToolContext::new()).await.outcome else {
            panic!("{era:?}")
        };
        assert_eq!(output.structured, Some(hotels()));
        assert_eq!(output.text_content(), hotels().to_string());
        let item: Value = serde_json::from_str(&output.first_item_json().unwrap()).unwrap();
        assert_eq!(item, json!({"type": "text", "text": hotels().to_string()}));
    }
}

#[tokio::test]
async fn what_another_server_wraps_is_unwrapped_and_nothing_else() {
    let wrapped = json!({"type": "object", "properties": {"result": {"type": "array", "items": {"type": "integer"}}},
        "required": ["result"], "x-fastmcp-wrap-result": true});
    let object = json!({"type": "object", "properties": {"result": {"type": "integer"}}});
    let url = Mock::start(move |_, _, _| {
        let tool = |name: &str, schema: &Value| json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": schema});
        let marked = json!({"name": "marked", "inputSchema": {"type": "object"}});
        Answer::Result(json!({"tools": [tool("list", &wrapped), tool("wrong", &wrapped), tool("object", &object), marked]}))
    })
    .on_call(|tool, _| {
        let text = json!([{"type": "text", "text": "as before"}]);
        Answer::Result(match tool {
            "list" => json!({"content": text, "structuredContent": {"result": [1, 2]}}),
            "wrong" => json!({"content": text, "structuredContent": {"result": ["hunter2"]}}),
            "marked" => json!({"content": text, "structuredContent": {"result": "x"}, "_meta": {"fastmcp": {"wrap_result": true}}}),
            _ => json!({"content": text, "structuredContent": {"result": 1}}),
        })
    })
    .run()
    .await;
    let client = McpClient::connect(ClientConfig::http(url).name("m").legacy()).await.unwrap();
    let registry = Registry::new(&client).unwrap();
    for (tool, data) in [
        ("list", Some(json!([1, 2]))),
        ("object", Some(json!({"result": 1}))),
        ("marked", Some(json!("x"))),
        ("wrong", None),
    ] {
        let call = ToolCall::new("1", format!("m__{tool}"), "{}");
        match (registry.call(&call, &ToolContext::new()).await.outcome, data) {
            (ToolOutcome::Completed(output), Some(data)) => {
                assert_eq!(output.text_content(), "as before", "{tool}");
                assert_eq!(output.structured, Some(data), "{tool}");
            }
            (ToolOutcome::Failed { message, .. }, None) => {
                assert!(message.contains("does not fit the schema"));
            }
            (other, _) => panic!("{tool}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_reason_of_a_failure_may_be_structured() {
    let url = Mock::start(|_, _, _| Answer::tools(&["fails"]))
        .on_call(|_, _| {
            let reason = json!({"error": "no such city"});
            Answer::Result(json!({"content": [], "structuredContent": reason, "isError": true}))
        })
        .run()
        .await;
    let client = McpClient::connect(ClientConfig::http(url).name("m").legacy()).await.unwrap();
    let registry = Registry::new(&client).unwrap();
    let call = ToolCall::new("1", "m__fails", "{}");
    let outcome = registry.call(&call, &ToolContext::new()).await.outcome;
    assert_eq!(outcome.text(), r#"{"error":"no such city"}"#);
}
