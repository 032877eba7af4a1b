//! What tools do with the slips of models.

use agent::args::{CoercionPolicy, CoercionRule, Plan, PlanOptions};
use agent::testing::{FuzzReport, fuzz_tool, fuzz_tools};
use agent::tool::{AcceptedArguments, ToolBody};
use agent::{
    BoxFuture, Registry, Tool, ToolArgs, ToolContext, ToolDefinition, ToolOutcome, json, tool, tools,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(ToolArgs)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Payment {
    Card { number: String },
    ByInvoice { days: u8 },
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Guest {
    name: String,
    age: Option<u8>,
}

static RAN: AtomicBool = AtomicBool::new(false);

/// Books a room.
#[tool]
fn book_room(
    city: String,
    nights: u32,
    guests: Vec<Guest>,
    payment: Payment,
    price_limit: Option<f64>,
    breakfast: Option<bool>,
) {
    RAN.store(true, Ordering::SeqCst);
    drop((city, nights, guests, payment, price_limit, breakfast));
}

/// The same, bending more.
#[tool(coerce = "lenient")]
fn find_notes(words: Vec<String>, max_results: Option<u32>, by_tag: Option<BTreeMap<String, u8>>) {
    RAN.store(true, Ordering::SeqCst);
    drop((words, max_results, by_tag));
}

/// Takes nothing.
#[tool]
fn ping() {}

#[test]
fn every_slip_is_answered() {
    let reports = fuzz_tools(tools![book_room, find_notes, ping]).unwrap();
    for report in &reports {
        println!("{report}");
        report.assert_safe();
    }
    assert!(!RAN.load(Ordering::SeqCst), "nothing is run");
    let [strict, lenient, ping] = &reports[..] else { panic!("three tools") };
    let all = |report: &FuzzReport, slip: &str| {
        let ([sent, as_is, coerced, refused], _) =
            row(report, slip).unwrap_or_else(|| panic!("{slip}\n{report}"));
        (as_is + coerced == sent, refused == sent)
    };
    // (all accepted, all refused)
    for (slip, verdict) in [
        ("a number as text", (true, false)),
        ("a boolean as text", (true, false)),
        ("null for what is optional", (true, false)),
        ("null for what is required", (false, true)),
        ("a missing key", (false, true)),
        ("a boolean as in Python", (false, true)),
        ("a list as text", (false, true)),
        ("keys in camelCase", (false, true)),
        ("unknown keys", (false, true)),
        ("the arguments as text", (true, false)),
        ("the arguments as text, twice", (false, true)),
        ("cut short", (false, true)),
        ("a key twice", (false, true)),
    ] {
        assert_eq!(all(strict, slip), verdict, "{slip}\n{strict}");
    }
    for (slip, rule) in [
        ("a list as text", CoercionRule::JsonTextDecoded),
        ("one item for a list", CoercionRule::OneValueWrapped),
    ] {
        assert_eq!(all(lenient, slip), (true, false), "{slip}\n{lenient}");
        assert!(row(lenient, slip).is_some_and(|(_, how)| how.contains(rule.as_str())), "{lenient}");
    }
    // One near name is a mend; that of a tag too.
    for slip in ["keys in camelCase", "keys in PascalCase"] {
        let ([.., refused], how) = row(strict, slip).unwrap();
        assert!(refused > 0 && how == format!("corrected call offered {refused}"), "{strict}");
    }
    assert!(ping.samples > 0 && row(ping, "a number as text").is_none(), "{ping}");
    assert_eq!(row(ping, "unknown keys").map(|([.., refused], _)| refused), Some(1));
}

/// The numbers of a slip in the table (sent, as is, coerced, refused), and how.
fn row(report: &FuzzReport, slip: &str) -> Option<([usize; 4], String)> {
    let table = report.to_string();
    let line = table.lines().find_map(|line| line.strip_prefix(slip)?.strip_prefix("  "))?;
    let mut words = line.split_whitespace();
    let numbers = [(); 4].map(|()| words.next().and_then(|word| word.parse().ok()).unwrap_or(0));
    Some((numbers, words.collect::<Vec<_>>().join(" ")))
}

#[test]
fn tools_made_at_run_time() {
    let schema = json!({"type": "object", "properties": {
        "q": {"type": ["string", "null"]}, "n": {"anyOf": [{"type": "integer"}, {"enum": ["all"]}]},
        "at": {"type": "string", "format": "date-time"}, "deep": {"type": "object"}},
        "required": ["q", "n"]});
    let tool =
        Tool::new("find", "Finds.", schema, |value: agent::Value, _| async move { agent::Json(value) });
    let registry = Registry::new(tools![tool.unwrap()]).unwrap();
    let report = fuzz_tool(registry.fetch("find").unwrap());
    report.assert_safe();
    assert!(report.to_string().lines().count() > 45, "{report}");
    assert_eq!(report.to_string(), fuzz_tool(registry.fetch("find").unwrap()).to_string());
}

/// A tool that checks its arguments by itself, badly.
struct Careless;

impl ToolBody for Careless {
    fn call<'a>(&'a self, _: &'a AcceptedArguments, _: &'a ToolContext) -> BoxFuture<'a, ToolOutcome> {
        unreachable!("not run")
    }

    fn check(
        &self,
        definition: &ToolDefinition,
        arguments: &str,
    ) -> Result<AcceptedArguments, agent::args::InvalidArguments> {
        assert!(!arguments.contains("lorem ipsum lorem"), "too much text");
        if arguments.starts_with("```") {
            return Ok(AcceptedArguments::new(definition, arguments, Vec::new()));
        }
        AcceptedArguments::parse::<agent::Value>(definition, arguments)
    }
}

#[test]
fn carelessness_is_noticed() {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let plan =
        Plan::compile("note", &schema, PlanOptions::default().coercion(CoercionPolicy::exact())).unwrap();
    let report = fuzz_tool(&Tool::from_body(ToolDefinition::new(plan, "Notes.").unwrap(), Careless));
    let is_found = |law: &str, verdicts: &str| {
        let text = report.to_string();
        let mut violations = text.split("\n- ").skip(1);
        violations.any(|violation| violation.contains(law) && violation.ends_with(verdicts))
    };
    assert!(is_found("checking arguments must not panic", "very long text: too much text"), "{report}");
    assert!(is_found("text without a right reading must be refused", "a code fence: accepted"), "{report}");
    assert!(report.to_string().contains("Not safe, "), "{report}");
    let caught = std::panic::catch_unwind(|| report.assert_safe());
    assert!(caught.is_err());
    let impossible = json!({"type": "object", "properties": {"v": false}, "required": ["v"]});
    let plan = Plan::compile("never", &impossible, PlanOptions::default()).unwrap();
    let report = fuzz_tool(&Tool::from_body(ToolDefinition::new(plan, "Never.").unwrap(), Careless));
    assert_eq!(report.samples, 0);
    assert!(std::panic::catch_unwind(|| report.assert_safe()).is_err());
}
