//! The tools that a model sees when the depth limit forbids sub-agents.

use serde_json::{Value, json};

use crate::model::reply;
use crate::runtime::output::TOOL;
use crate::runtime::{Assistant, AssistantBuilder};
use crate::tool::{context::ToolContext, parameters::Parameters, source::Source};
use crate::{Json, ScriptedModel, ToolArgs, ToolBuilder, ToolSet};

/// A type of answers for which the scripted model gets a tool.
#[derive(ToolArgs)]
struct Number {
    /// The number.
    #[expect(dead_code, reason = "only its schema matters")]
    number: i64,
}

fn list() -> ToolSet {
    let list = ToolBuilder::new("list")
        .description("Lists users.")
        .parameters_for(|_| Some(Parameters::new().optional_boolean("deleted", "Those, too.")))
        .build(|_: Value, _: ToolContext| async { Json(1) });
    ToolSet::new().with(list.unwrap())
}

fn expert() -> Assistant {
    Assistant::builder(ScriptedModel::new(["It is 8."])).build().unwrap()
}

fn answering(model: &ScriptedModel) -> AssistantBuilder {
    Assistant::builder(model.clone()).tools(expert().as_tool("ask", "Knows numbers.")).tools(list())
}

fn shown(model: &ScriptedModel) -> Vec<Vec<String>> {
    let names = |request: &crate::model::ModelRequest| {
        request.tools.iter().map(|tool| tool.name().to_owned()).collect()
    };
    model.requests().iter().map(names).collect()
}

#[tokio::test]
async fn a_root_at_the_limit_sees_no_sub_agent_whatever_its_prompt_adds() {
    let model = ScriptedModel::from_fn(|request| {
        let output = request.tools.iter().find(|tool| tool.name() == TOOL);
        match output {
            Some(tool) => reply().tool_call(tool.name(), json!({"number": 8})),
            None => reply().text("8"),
        }
    });
    let assistant = answering(&model).max_depth(0).build().unwrap();
    let more = || expert().as_tool("more", "Knows more.");
    assistant.prompt("a").await.unwrap();
    assistant.prompt("b").source(Source::new("a guest")).await.unwrap();
    assistant.prompt("c").with_tools(more()).await.unwrap();
    assistant.prompt("d").output::<Number>().with_tools(more()).source(Source::new("a guest")).await.unwrap();
    let requests = shown(&model);
    assert_eq!(requests[..3], [["list"], ["list"], ["list"]]);
    assert_eq!((requests[3].len(), requests.len()), (2, 4), "{requests:?}");
    assert!(!requests[3].iter().any(|name| name == "ask" || name == "more"), "{requests:?}");
    // The second prompt has a source, so `list` has the parameter of this source.
    assert_eq!(model.requests()[1].tools[0].plan().parameter_names().count(), 1);
}

#[tokio::test]
async fn a_sub_agent_at_the_limit_sees_no_sub_agent_whatever_its_prompt_adds() {
    let model = ScriptedModel::from_fn(|request| {
        let output = request.tools.iter().find(|tool| tool.name() == TOOL);
        match output {
            Some(tool) => reply().tool_call(tool.name(), json!({"number": 8})),
            None => reply().text("8"),
        }
    });
    let root = ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => reply().tool_call("part", json!({"task": "When?"})),
        _ => reply().text("At 8."),
    });
    for (max_depth, tools) in [(1, vec!["list"]), (2, vec!["ask", "list"])] {
        // The limit of the sub-agent itself has no effect.
        for own in [0, 3] {
            let before = model.requests().len();
            let part = answering(&model).max_depth(own).build().unwrap();
            let plain = Assistant::builder(root.clone())
                .tools(part.as_tool("part", "Answers."))
                .max_depth(max_depth)
                .build()
                .unwrap();
            plain.prompt("a").source(Source::new("a guest")).await.unwrap();
            let typed = Assistant::builder(root.clone())
                .tools(part.as_tool("part", "Answers.").output::<Number>())
                .max_depth(max_depth)
                .build()
                .unwrap();
            typed.prompt("a").await.unwrap();
            let requests = &shown(&model)[before..];
            assert_eq!(requests[0], tools, "{max_depth}, {own}");
            assert_eq!(requests[1].iter().filter(|name| *name == "ask").count(), tools.len() - 1);
        }
    }
}

#[tokio::test]
async fn a_call_of_a_hidden_sub_agent_is_refused() {
    let model = ScriptedModel::new([
        reply().tool_call("ask", r#"{"task": "When?"}"#),
        reply().text("I do not know."),
    ]);
    let assistant = answering(&model).max_depth(0).build().unwrap();
    assistant.prompt("a").source(Source::new("a guest")).await.unwrap();
    let text = assistant.messages().get(2).unwrap().text();
    assert!(text.contains("this run is at depth 0, the limit"), "{text}");
}
