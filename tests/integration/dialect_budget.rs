//! All tools at once: what a dialect cannot express, and what of a request may be strict.

use agent::schema::{Dialect, Rendered};
use agent::{Registry, Tool, ToolSet, tools};
use serde_json::{Map, Value, json};

fn tool(name: &str, optional: usize, unions: usize) -> Tool {
    let mut properties = Map::new();
    for i in 0..optional {
        properties.insert(format!("o{i}"), json!({"type": "integer"}));
    }
    let unions: Vec<String> = (0..unions).map(|i| format!("u{i}")).collect();
    for name in &unions {
        properties.insert(name.clone(), json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}));
    }
    dynamic(name, json!({"type": "object", "properties": properties, "required": unions}))
}

fn dynamic(name: &str, schema: Value) -> Tool {
    Tool::new(name, "Does something.", schema, |_: Value, _| async { "done" }).unwrap()
}

fn strict(tools: Vec<Tool>) -> Vec<bool> {
    let mut registry = Registry::new(ToolSet::default()).unwrap();
    for tool in tools {
        registry.register(tool).unwrap();
    }
    registry.check_dialect(Dialect::AnthropicStrict).unwrap();
    let report = registry.in_dialect(Dialect::AnthropicStrict);
    for tool in &report {
        assert_eq!(tool.is_strict(), tool.dialect == Dialect::AnthropicStrict);
        assert_eq!(tool.is_strict(), tool.over_budget.is_none());
    }
    report.iter().map(Rendered::is_strict).collect()
}

#[test]
fn anthropics_budget_goes_to_the_first_that_fit() {
    assert_eq!(
        strict(vec![tool("a", 20, 0), tool("b", 5, 0), tool("c", 4, 0), tool("d", 1, 0)]),
        [true, false, true, false]
    );
    assert_eq!(
        strict(vec![tool("a", 0, 10), tool("b", 0, 7), tool("c", 0, 6), tool("d", 0, 0)]),
        [true, false, true, true]
    );
    let many = strict((0..22).map(|i| tool(&format!("t{i}"), 1, 0)).collect());
    assert_eq!(many.iter().filter(|strict| **strict).count(), 20);
    assert!(many[..20].iter().all(|strict| *strict));
}

#[test]
fn one_tool_beyond_the_budget_can_never_be_strict() {
    let registry =
        Registry::new(tools![{ tool("a", 25, 0) }, { tool("b", 0, 17) }, { tool("c", 24, 16) }]).unwrap();
    let error = registry.check_dialect(Dialect::AnthropicStrict).unwrap_err();
    let tools = registry.in_dialect(Dialect::AnthropicStrict);
    let strict: Vec<(&str, bool)> =
        tools.iter().map(|tool| (&*tool.tool, tool.is_expressible() && tool.is_strict())).collect();
    assert_eq!(strict, [("a", false), ("b", false), ("c", true)]);
    assert!(error.to_string().contains("25 optional properties, where 24 are allowed"), "{error}");
}

#[test]
fn other_dialects_have_no_budget() {
    let tools: Vec<Tool> = (0..30).map(|i| tool(&format!("t{i}"), 2, 2)).collect();
    let mut registry = Registry::default();
    for tool in tools {
        registry.register(tool).unwrap();
    }
    for dialect in Dialect::ALL {
        registry.check_dialect(dialect).unwrap();
        let report = registry.in_dialect(dialect);
        let strict = report.iter().filter(|tool| tool.is_strict()).count();
        let want = match dialect {
            Dialect::OpenAiStrict => 30,
            Dialect::AnthropicStrict => 8,
            _ => 0,
        };
        assert_eq!(strict, want, "{dialect}");
    }
}

#[test]
fn the_report_reads() {
    let map = json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {"type": "string"}}}});
    let bounded = json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}});
    let registry = Registry::new(tools![{ dynamic("bounded", bounded) }, { dynamic("map", map) }, {
        tool("wide", 24, 0)
    }])
    .unwrap();
    assert!(registry.check_dialect(Dialect::AnthropicStrict).is_err());
    let tools = registry.in_dialect(Dialect::AnthropicStrict);
    assert_eq!(tools[2].over_budget.as_deref(), Some("24 optional parameters"));
    assert_eq!(
        tools.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "`bounded` in `anthropic-strict`\n- /properties/n: `maximum` is said in the description",
            "`map` in `plain`\n\
             - /properties/m: `additionalProperties` cannot be expressed: a map: keys that are not known beforehand",
            "`wide` in `plain`: the request is full (24 optional parameters)"
        ]
    );
}
