//! The option `strict` of tools, in requests of every protocol and in replies to them.

use serde_json::{Value, json};

use super::edges::protocols;
use super::support::{body, tool};
use crate::model::ModelRequest;
use crate::tool::definition::ToolDefinition;

fn with_option(name: &str, strict: Option<bool>) -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    let definition = tool(name, &schema);
    let Some(strict) = strict else { return definition };
    definition.configure(|options| options.strict(strict)).unwrap()
}

/// Returns which tools of a request body are strict. Strict tools must require the optional property `b`, except for Anthropic.
fn strict_tools(api: &str, body: &Value) -> Vec<bool> {
    let strict_of = |tool: &Value| {
        let (tool, schema) = match api {
            "openai-chat" => (&tool["function"], &tool["function"]["parameters"]),
            "openai-responses" => (tool, &tool["parameters"]),
            _ => (tool, &tool["input_schema"]),
        };
        let is_strict = tool["strict"] == true;
        let has_nulls = schema["required"] == json!(["a", "b"]);
        assert_eq!(has_nulls, is_strict && api != "anthropic-messages", "{api}: {tool}");
        is_strict
    };
    body["tools"].as_array().unwrap().iter().map(strict_of).collect()
}

#[test]
fn the_option_of_a_tool_decides_and_without_one_the_request() {
    let tools =
        [with_option("always", Some(true)), with_option("never", Some(false)), with_option("asked", None)];
    for api in protocols() {
        // The requests share the definitions, which cache their encoded text. No request may get the text of another setting.
        for strict in [false, true, false] {
            let request = ModelRequest::default().with_tools(tools.clone()).with_strict_tools(strict);
            let body = body(&*api, "gpt-4o", &request);
            if api.api() == "gemini-generate-content" {
                assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "VALIDATED", "{body}");
                continue;
            }
            assert_eq!(strict_tools(api.api(), &body), [true, false, strict], "{}", api.api());
        }
        let request =
            ModelRequest::default().with_tools([with_option("never", Some(false))]).with_strict_tools(true);
        let body = body(&*api, "gpt-4o", &request);
        match api.api() {
            // Gemini has one mode for all tools of a request.
            "gemini-generate-content" => assert_eq!(body.get("toolConfig"), None, "{body}"),
            api => assert_eq!(strict_tools(api, &body), [false], "{api}"),
        }
    }
}

#[cfg(feature = "anthropic")]
#[test]
fn a_tool_that_is_never_strict_uses_nothing_of_the_budget() {
    let anthropic = crate::provider::anthropic::AnthropicMessages::default();
    let tools: Vec<_> = (0..22).map(|at| with_option(&format!("t{at}"), (at < 2).then_some(false))).collect();
    let request = ModelRequest::default().with_tools(tools).with_strict_tools(true);
    let strict = strict_tools("anthropic-messages", &body(&anthropic, "m", &request));
    assert_eq!(strict.iter().position(|strict| *strict), Some(2));
    assert!(strict[2..].iter().all(|strict| *strict), "{strict:?}");
}
