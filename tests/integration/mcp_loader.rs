//! The tools that a loader gives to each caller of a server.

use super::mcp_support::{Running, message, post, run};
use agent::args::{CoercionPolicy, PlanOptions};
use agent::mcp::McpServer;
use agent::mcp::{Bearer, Caller};
use agent::{Registry, Value, json, tool, tools};

/// Adds all.
#[tool(inline)]
fn sum(numbers: Vec<i64>) -> i64 {
    numbers.iter().sum()
}

/// Adds all, and takes no text for a list.
#[tool(inline, coerce = "strict")]
fn sum_strictly(numbers: Vec<i64>) -> i64 {
    numbers.iter().sum()
}

/// Whose tools they are.
struct Owner(String);

/// Says whose it is.
#[tool(inline)]
fn owner(names: Vec<String>, owner: &Owner) -> String {
    format!("{}: {}", owner.0, names.join(" "))
}

#[tokio::test]
async fn tools_of_a_loader_take_what_other_tools_take() {
    let shared = Registry::new(tools![sum, sum_strictly, owner]).unwrap();
    let loader = move |caller: Caller| {
        // The same tools, with other state for each caller.
        let tools = shared.clone().with_state(Owner(caller.id().to_owned()));
        async { Ok(tools?) }
    };
    let tokens = || [("a", Caller::new("ann")), ("b", Caller::new("bob"))];
    let own = |options: Option<PlanOptions>| {
        let server = McpServer::with_loader(loader.clone()).authenticator(Bearer::new(tokens()));
        match options {
            Some(options) => server.options(options),
            None => server,
        }
    };
    let call = async |server: &Running, token: &str, tool: &str, arguments: Value| {
        let body = message("tools/call", &json!({"name": tool, "arguments": arguments}));
        post(server.address, &format!("authorization: Bearer {token}\r\n"), &body).await.text()
    };
    let usual = run(own(None)).await;
    assert_eq!(call(&usual, "a", "sum", json!({"numbers": "[1, 2]"})).await, "3");
    let own_policy = call(&usual, "a", "sum_strictly", json!({"numbers": "[1, 2]"})).await;
    assert!(own_policy.starts_with("isError: Invalid arguments"), "{own_policy}");
    for (token, name) in [("a", "ann"), ("b", "bob"), ("a", "ann")] {
        let text = call(&usual, token, "owner", json!({"names": "[\"x\"]"})).await;
        assert_eq!(text, format!("{name}: x"), "each caller has its own state");
    }
    let strict = run(own(Some(PlanOptions::default().coercion(CoercionPolicy::strict())))).await;
    let refused = call(&strict, "a", "sum", json!({"numbers": "[1, 2]"})).await;
    assert!(refused.starts_with("isError: Invalid arguments"), "{refused}");
}
