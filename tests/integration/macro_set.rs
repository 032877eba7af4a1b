//! `tools![…]` and what is found when a registry is built.

use agent::args::{Plan, PlanOptions};
use agent::tool::{AcceptedArguments, ToolBody};
use agent::{
    BoxFuture, Registry, Tool, ToolArgs, ToolContext, ToolDefinition, ToolOutcome, ToolOutput, ToolSet, tool,
    tools,
};
use serde_json::json;

/// Adds.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

struct Counter;
#[tool]
impl Counter {
    /// Counts.
    #[tool]
    fn count(&self) -> u8 {
        1
    }
}

struct Echo;
impl ToolBody for Echo {
    fn call<'a>(
        &'a self,
        arguments: &'a AcceptedArguments,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move { ToolOutput::text(arguments.text()).into() })
    }
}

fn echo() -> Tool {
    let plan = Plan::compile("echo", &json!({"type": "object"}), PlanOptions::default()).expect("sound");
    Tool::from_body(ToolDefinition::new(plan, "Echo.").expect("sound"), Echo)
}

#[test]
fn everything_that_can_be_listed() {
    let dynamic = Tool::new("dynamic", "Made.", json!({"type": "object"}), |_, _| async { "x" }).expect("ok");
    let shared = echo().clone();
    let nothing: Option<ToolSet> = None;
    let set = tools![
        add,
        inner::deep,
        { Counter },
        { dynamic },
        { shared },
        tools![],
        ToolSet::new(),
        { nothing },
        vec![echo()],
    ];
    assert_eq!(format!("{set:?}"), r#"["add", "deep", "count", "dynamic", "echo", "echo"]"#);
    assert_eq!(set.len(), 6);
}

mod inner {
    /// Deep.
    #[agent::tool]
    pub(super) fn deep() {}
}

#[test]
fn names_of_values_are_compared_when_the_registry_is_built() {
    let error = Registry::new(tools![{ Counter }, { echo() }].with(Counter).with(echo())).expect_err("twice");
    assert_eq!(error.to_string(), "two tools are named `count`\ntwo tools are named `echo`");
}

/// A pattern that only schemars has seen, and that is none.
#[derive(ToolArgs)]
struct Word(#[schemars(extend("pattern" = "("))] String);

/// Does not get far.
#[tool(name = "broken_one")]
fn broken(word: Word) -> usize {
    word.0.len()
}

#[test]
fn a_schema_that_cannot_be_compiled_is_an_error_of_the_registry() {
    let set = tools![broken, add];
    assert_eq!(set.names().collect::<Vec<_>>(), ["broken_one", "add"]);
    let error = Registry::new(set).expect_err("the pattern does not compile");
    assert!(error.to_string().starts_with("tool `broken_one` cannot be defined: "), "{error}");
}

#[test]
fn plans_are_compiled_once() {
    let definition = || Registry::new(tools![add]).expect("sound").definitions()[0].clone();
    let (first, second) = (definition(), definition());
    assert!(std::ptr::eq(first.plan().schema(), second.plan().schema()));
}
