//! `rig-agent`.

use std::sync::Arc;

use rig_agent::AgentBuilder;
use rig_agent::core::test_utils::{MockCompletionModel, MockTurn};
use rig_agent::tool::{Tool, ToolContext};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Barrier;

use crate::{Measured, Meter};

#[derive(Deserialize)]
struct Terms {
    a: i64,
    b: i64,
}

#[derive(Debug)]
struct Never;

impl std::fmt::Display for Never {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("never")
    }
}

impl std::error::Error for Never {}

struct Add(Option<Arc<Barrier>>);

impl Tool for Add {
    const NAME: &'static str = "add";
    type Error = Never;
    type Args = Terms;
    type Output = i64;

    fn description(&self) -> String {
        "Adds two numbers.".to_owned()
    }

    fn parameters(&self) -> serde_json::Value {
        json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        })
    }

    async fn call(&self, _: &mut ToolContext, args: Terms) -> Result<i64, Never> {
        if let Some(barrier) = &self.0 {
            barrier.wait().await;
        }
        Ok(args.a + args.b)
    }
}

fn call() -> MockTurn {
    MockTurn::tool_call("call_1", "add", json!({"a": 1, "b": 2}))
}

pub async fn prompts(n: usize) -> Measured {
    let model = MockCompletionModel::from_turns((0..n).flat_map(|_| [call(), MockTurn::text("3")]));
    let agent = AgentBuilder::new(model).tool(Add(None)).build();
    let meter = Meter::start();
    for _ in 0..n {
        let output = agent.prompt("What is 1 plus 2?").max_turns(3).await.expect("it answers");
        assert_eq!(output.output(), "3");
    }
    meter.stop(n)
}

pub async fn concurrent(n: usize, rounds: usize) -> Measured {
    let turns = (0..=rounds).flat_map(|_| (0..n).map(|_| call()).chain((0..n).map(|_| MockTurn::text("3"))));
    let agent = AgentBuilder::new(MockCompletionModel::from_turns(turns))
        .tool(Add(Some(Arc::new(Barrier::new(n)))))
        .build();
    let round = async || {
        let run = |_| {
            let agent = agent.clone();
            tokio::spawn(async move { agent.prompt("What is 1 plus 2?").max_turns(3).await })
        };
        let runs: Vec<_> = (0..n).map(run).collect();
        for output in runs {
            assert_eq!(output.await.expect("no panic").expect("it answers").output(), "3");
        }
    };
    round().await;
    let meter = Meter::start();
    for _ in 0..rounds {
        round().await;
    }
    meter.stop(n * rounds)
}
