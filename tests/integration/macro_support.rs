//! Calls through a registry, for the tests of the macros.

use agent::message::ToolCall;
use agent::{Registry, ToolContext, ToolDefinition, ToolOutcome, ToolSet};
use serde_json::Value;

/// The outcome of one call of a tool of `set`.
pub(crate) async fn outcome(set: ToolSet, name: &str, arguments: &str, cx: &ToolContext) -> ToolOutcome {
    let registry = Registry::new(set).expect("the set is sound");
    registry.call(&ToolCall::new("call_1", name, arguments), cx).await.outcome
}

/// The text of a call that succeeds without state.
pub(crate) async fn text(set: ToolSet, name: &str, arguments: &str) -> String {
    let outcome = outcome(set, name, arguments, &ToolContext::new()).await;
    assert!(!outcome.is_error(), "{name}: {}", outcome.text());
    outcome.text().into_owned()
}

/// The text and code of a call that fails.
pub(crate) async fn failure(set: ToolSet, name: &str, arguments: &str) -> (String, String) {
    let outcome = outcome(set, name, arguments, &ToolContext::new()).await;
    (outcome.code().unwrap_or("no code").to_owned(), outcome.text().into_owned())
}

/// What a model is shown of the only tool of `set`.
pub(crate) fn definition(set: ToolSet) -> ToolDefinition {
    let registry = Registry::new(set).expect("the set is sound");
    let definitions = registry.definitions();
    assert_eq!(definitions.len(), 1);
    definitions[0].clone()
}

/// One property of its parameters.
pub(crate) fn property(set: ToolSet, name: &str) -> Value {
    definition(set).parameters()["properties"][name].clone()
}
