//! Task: define tools at run time, from a configuration, a database or another service.
//!
//! ```sh
//! cargo run --example dynamic_tools     # prints the results of calls to two tools of a configuration
//! ```
//!
//! The model receives the schema unchanged. Arguments are validated and coerced by the same engine as those of `#[tool]`.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::{
    Registry, Tool, ToolBuilder, ToolContext, ToolError, ToolOutput, ToolSet, Value, message::ToolCall, tool,
    tool::Effect, tools,
};
use std::error::Error;

/// The configuration of two tools: name, description, schema, and a template for the result in `answer`.
const CONFIGURATION: &str = r#"[
    {"name": "greet", "description": "Greets somebody.", "answer": "Good morning, {name}!",
     "parameters": {"type": "object", "required": ["name"], "additionalProperties": false,
                    "properties": {"name": {"type": "string", "maxLength": 40}}}},
    {"name": "dim_light", "description": "Sets how bright a lamp is.", "answer": "Lamp {lamp} is at {percent} %.",
     "parameters": {"type": "object", "required": ["lamp", "percent"], "additionalProperties": false,
                    "properties": {"lamp": {"enum": ["desk", "door"]},
                                   "percent": {"type": "integer", "minimum": 0, "maximum": 100}}}}
]"#;

/// Builds a tool from one entry. If the schema cannot be honored, the error names the keyword and its location.
fn configured(entry: &Value) -> Result<Tool, Box<dyn Error>> {
    let text =
        |key: &str| entry[key].as_str().map(str::to_owned).ok_or_else(|| format!("no `{key}` in {entry}"));
    let answer = text("answer")?;
    let body = move |args: Value, _cx: ToolContext| {
        let mut said = answer.clone();
        for (name, value) in args.as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            said = said.replace(&format!("{{{name}}}"), &value);
        }
        async move { said }
    };
    Ok(Tool::new(text("name")?, text("description")?, entry["parameters"].clone(), body)?)
}

/// The current time of day.
#[tool(read_only)]
fn time() -> &'static str {
    "08:15"
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut set = ToolSet::new();
    for entry in serde_json::from_str::<Vec<Value>>(CONFIGURATION)? {
        set.add(configured(&entry)?);
    }

    // Without a schema, a tool is built from single parameters.
    let remind = ToolBuilder::new("remind")
        .description("Reminds of something.")
        .required_string("what", "In a few words.")
        .optional_integer("minutes", "From now.")
        .with_keyword("minimum", 1)
        .build(|args: Value, _cx| async move {
            let what = args["what"].as_str().ok_or_else(|| ToolError::retry("say what to remind of"))?;
            Ok::<_, ToolError>(ToolOutput::text(format!(
                "{what} in {} minutes",
                args["minutes"].as_u64().unwrap_or(10)
            )))
        })?;

    // Tools of all kinds can be in one registry. The names of the configured tools get a prefix.
    let registry = Registry::new(tools![time, { remind }, set.prefix("home_")])?;
    assert_eq!(registry.fetch("remind")?.policy().effect, Effect::Once);
    for (name, arguments) in [
        ("home_greet", r#"{"name": "Ann"}"#),
        ("home_dim_light", r#"{"lamp": "desk", "percent": "40"}"#),
        ("home_dim_light", r#"{"lamp": "dor", "percent": 140}"#),
        ("remind", r#"{"what": "tea", "minutes": 4}"#),
    ] {
        let result = registry.call(&ToolCall::new("call_1", name, arguments), &ToolContext::new()).await;
        println!("{name} {arguments}\n=> {}\n", result.outcome.text());
    }
    Ok(())
}
