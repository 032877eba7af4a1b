//! Task: test an agent without a key and without a network.
//!
//! ```sh
//! cargo test -p agent-examples --example test_an_agent --features testing     # four kinds of tests
//! cargo run --example test_an_agent --features testing                        # prints what happens in a run, line by line
//! ```
//!
//! `agent::testing` needs the feature `testing`: enable it in your dev-dependencies.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::ScriptedModel;
use agent::model::{Model, reply};
use agent::testing::EventLog;
use agent::{Assistant, AssistantBuilder, ToolArgs, ToolSet, tool, tools};
use std::error::Error;

/// A stay in a hotel.
#[derive(ToolArgs, Debug, PartialEq)]
struct Stay {
    /// As it stands over the door, such as "Astoria".
    #[arg(length(1..=80))]
    hotel: String,
    /// How many.
    #[arg(range(1..=30))]
    nights: u32,
}

/// Says what a stay costs.
#[tool(read_only)]
fn price(stay: Stay) -> Result<String, String> {
    match stay.hotel.as_str() {
        "Astoria" => Ok(format!("{} EUR", stay.nights * 120)),
        other => Err(format!("there is no hotel {other:?}")),
    }
}

fn our_tools() -> ToolSet {
    tools![price]
}

/// The agent of the application. The model is an argument: that is all it takes to test it.
fn agent(model: impl Model + 'static) -> AssistantBuilder {
    Assistant::builder(model).system("You are a travel agent.").tools(our_tools())
}

/// A slip, as models make them, and the call that mends it.
fn script() -> ScriptedModel {
    ScriptedModel::new([
        reply().tool_call("price", r#"{"hotell": "Astoria", "nights": 2}"#),
        reply().tool_call("price", r#"{"hotel": "Astoria", "nights": "2"}"#),
        reply().text("Two nights are 240 EUR."),
    ])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let log = EventLog::new();
    agent(script()).on_event(log.listener()).build()?.prompt("Two nights at the Astoria?").await?;
    println!("{}", log.outline());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::{Registry, testing::SchemaModel, testing::assert_agrees};

    #[tokio::test]
    async fn a_slip_is_told_and_mended() -> Result<(), Box<dyn Error>> {
        let (log, model) = (EventLog::new(), script());
        let assistant = agent(model.clone()).on_event(log.listener()).build()?;
        assert_eq!(assistant.prompt("Two nights?").await?.text(), "Two nights are 240 EUR.");
        log.assert_sequence(&[
            "end price failed invalid_arguments",
            "end price completed \"240 EUR\"",
            "run ends: completed",
        ]);
        assert!(model.requests()[1].messages.last().unwrap().text().contains("did you mean \"hotel\"?"));
        Ok(())
    }

    #[tokio::test]
    async fn no_call_makes_a_tool_panic() -> Result<(), Box<dyn Error>> {
        let model = SchemaModel::new();
        agent(model.clone()).build()?.prompt("Try everything.").await?;
        model.assert_safe();
        Ok(())
    }

    #[test]
    fn models_know_all_that_they_need() -> Result<(), Box<dyn Error>> {
        assert_eq!(Registry::new(our_tools())?.lint(), []);
        Ok(())
    }

    #[test]
    fn schema_and_type_agree() {
        assert_agrees::<Stay>();
    }
}
