//! Sets made of others keep what holds for every tool.

use agent::args::{CoercionPolicy, PlanOptions, UnknownKeys};
use agent::message::ToolCall;
use agent::tool::{AcceptedArguments, ToolBody};
use agent::{
    Approval, Parameters, Registry, Tool, ToolArgs, ToolBuilder, ToolContext, ToolError, ToolOutput, ToolSet,
    Value, args::Violations, json, tool, tool::Source, tools,
};

/// Finds documents.
#[tool(read_only, examples({"tenant": "acme", "words": ["tax"], "limit": 3}))]
fn find(
    /// Whose documents.
    #[arg(alias = "customer", length(1..=10))]
    tenant: String,
    words: Vec<String>,
    #[arg(range(1..=50), default = 10)] limit: u32,
) -> String {
    format!("{tenant} {words:?} {limit}")
}

/// Throws a document away.
#[tool(destructive, approval = when(|tenant: &String| tenant == "acme"))]
fn remove(tenant: String, id: u64) -> String {
    format!("{tenant} {id}")
}

/// Says hello.
#[tool]
fn hello() -> &'static str {
    "hello"
}

/// Looks after notes.
#[tool]
enum Notes {
    /// Writes one down.
    Add { tenant: String, text: String },
    /// Lists all.
    List { tenant: String },
}

impl agent::RunTool for Notes {
    type Output = String;
    async fn run(self, _: &ToolContext) -> String {
        match self {
            Self::Add { tenant, text } => format!("{tenant} + {text}"),
            Self::List { tenant } => tenant,
        }
    }
}

fn registry(set: ToolSet) -> Registry {
    Registry::new(set).expect("a registry")
}

async fn call(registry: &Registry, tool: &str, arguments: &str) -> String {
    registry.call(&ToolCall::new("1", tool, arguments), &ToolContext::new()).await.outcome.text().into_owned()
}

fn names(set: &ToolSet) -> Vec<&str> {
    set.names().collect()
}

#[tokio::test]
async fn a_fixed_argument_is_gone_and_filled_in() {
    let registry = registry(tools![find, remove, hello].fix_argument("tenant", "acme"));
    let definitions = registry.definitions();
    for definition in definitions.iter() {
        assert!(!definition.parameters().to_string().contains("tenant"), "{definition:?}");
        assert!(!definition.parameters().to_string().contains("customer"), "{definition:?}");
    }
    assert_eq!(definitions[0].parameters()["required"], json!(["words"]));
    assert_eq!(definitions[0].examples(), [json!({"words": ["tax"], "limit": 3})]);
    registry.check_examples().expect("examples without the argument");

    assert_eq!(call(&registry, "find", r#"{"words": []}"#).await, "acme [] 10");
    assert_eq!(call(&registry, "hello", "").await, "hello");
    // Neither by its name nor by an alias.
    for text in [r#"{"words": [], "tenant": "other"}"#, r#"{"words": [], "customer": "other"}"#] {
        let told = call(&registry, "find", text).await;
        assert!(
            told.contains("unknown parameter") && told.starts_with("Invalid arguments for `find`: 1 problem"),
            "{told}"
        );
        assert!(!told.contains("Whose documents") && !told.contains("acme"), "{told}");
    }
}

#[tokio::test]
async fn what_is_coerced_stays_coerced_and_recorded() {
    let registry = registry(tools![find].fix_argument("tenant", "acme"));
    let call = ToolCall::new("1", "find", r#"{"limit": "3", "words": ["a"]}"#);
    let result = registry.call(&call, &ToolContext::new()).await;
    assert_eq!(result.outcome.text(), r#"acme ["a"] 3"#);
    let coerced: Vec<&str> = result.coercions.iter().map(|coercion| coercion.path.as_str()).collect();
    assert_eq!(coerced, ["/limit"]);
    assert_eq!(registry.validate(&call).expect("fits").coercions().len(), 1);
}

#[tokio::test]
async fn numbers_stay_exact() {
    /// Echoes.
    #[tool(coerce = "exact")]
    fn echo(#[arg(alias = "large")] big: u128, tenant: String) -> String {
        format!("{tenant} {big}")
    }
    let registry = registry(tools![echo].fix_argument("tenant", "a"));
    for key in ["big", "large"] {
        let text = format!("{{\"{key}\": {}}}", u128::MAX);
        assert_eq!(call(&registry, "echo", &text).await, format!("a {}", u128::MAX));
    }
}

#[tokio::test]
async fn where_other_keys_are_kept_a_hidden_one_does_not_come_in() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string", "default": "x"}}});
    for unknown in [UnknownKeys::Keep, UnknownKeys::Strip, UnknownKeys::Deny] {
        let body = |args: Value, _| async move { args.to_string() };
        let echo = Tool::new("echo", "Echoes.", schema.clone(), body).expect("a tool");
        let echo = echo.configure(|options| options.unknown(unknown)).expect("a tool");
        let hidden = registry(tools![{ echo.clone() }].hide_argument("b"));
        let fixed = registry(tools![{ echo }].fix_argument("b", "mine"));
        assert_eq!(call(&hidden, "echo", r#"{"a": 1}"#).await, r#"{"a":1}"#);
        assert_eq!(call(&fixed, "echo", r#"{"a": 1}"#).await, r#"{"a":1,"b":"mine"}"#);
        let (in_hidden, in_fixed) =
            (call(&hidden, "echo", r#"{"b": "evil"}"#).await, call(&fixed, "echo", r#"{"b": "evil"}"#).await);
        assert!(
            !in_hidden.contains("{\"b\"") && !in_fixed.contains("evil\"}"),
            "{unknown:?}: {in_hidden} {in_fixed}"
        );
        match unknown {
            UnknownKeys::Strip => {
                assert_eq!((in_hidden.as_str(), in_fixed.as_str()), ("{}", r#"{"b":"mine"}"#));
            }
            _ => assert!(
                in_hidden.contains("/b: unknown parameter") && in_fixed.contains("/b: unknown parameter")
            ),
        }
    }
}

#[tokio::test]
async fn the_only_parameter_of_a_schema_from_elsewhere_can_go() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let echo = Tool::new("echo", "Echoes.", schema, |args: Value, _| async move { args.to_string() });
    let registry = registry(tools![{ echo.expect("a tool") }].fix_argument("a", 7));
    assert_eq!(call(&registry, "echo", "").await, r#"{"a":7}"#);
    assert!(call(&registry, "echo", r#"{"a": 1}"#).await.contains("unknown parameter"));
    assert!(call(&registry, "echo", r#"{"z": 1}"#).await.contains("unknown parameter"));
}

#[tokio::test]
async fn every_action_of_an_enum_loses_it() {
    let registry = registry(tools![Notes].fix_argument("tenant", "acme"));
    assert!(!registry.definitions()[0].parameters().to_string().contains("tenant"));
    assert_eq!(call(&registry, "notes", r#"{"action": "add", "text": "x"}"#).await, "acme + x");
    assert_eq!(call(&registry, "notes", r#"{"action": "list"}"#).await, "acme");
    assert!(
        call(&registry, "notes", r#"{"action": "list", "tenant": "x"}"#).await.contains("unknown parameter")
    );
}

#[test]
fn what_cannot_be_is_told_with_everything_else() {
    let set = tools![find, remove]
        .hide_argument("words")
        .fix_argument("tenant", "longer than ten")
        .fix_argument("nothing", 1)
        .rename("remove", "no name")
        .change(["fnid"], |set| set.prefix("x"));
    let error = Registry::new(set).expect_err("mistakes").to_string();
    assert_eq!(
        error,
        "tool `find` cannot be defined: parameter \"words\": a call has to have it, so it cannot be hidden: fix it to a value\n\
         tool `remove` cannot be defined: a tool cannot be named \"no name\": use 1 to 64 letters, digits, `_` or `-`\n\
         tool `find, remove` cannot be defined: parameter \"nothing\": no tool of the set has such an argument\n\
         tool `fnid` cannot be defined: there is no such tool in the set; did you mean `find`?"
    );
    let error = Registry::new(tools![find].fix_argument("limit", 99)).expect_err("out of range").to_string();
    assert_eq!(
        error,
        "tool `find` cannot be defined: parameter \"limit\": it cannot be fixed to this value: /limit: out of range; got \
         number 99; expected integer 1..50"
    );
    let conditional = json!({
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "if": {"required": ["a"]}, "then": {"required": ["b"]}
    });
    let tool = Tool::new("c", "Has a condition.", conditional, |_, _| async {}).expect("a tool");
    let error = Registry::new(tools![{ tool }].hide_argument("a")).expect_err("a condition").to_string();
    assert_eq!(
        error,
        "tool `c` cannot be defined: parameter \"a\": `a` cannot be taken out: `if` speaks of it"
    );
    let referring = json!({
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "allOf": [{"$ref": "#/$defs/b%6Fth"}], "$defs": {"both": {"$ref": "#/$defs/one"}, "one": {"required": ["a"]}}
    });
    let tool = Tool::new("c", "Has a reference.", referring, |_, _| async {}).expect("a tool");
    assert!(Registry::new(tools![{ tool.clone() }].fix_argument("a", 1)).is_err());
    assert!(Registry::new(tools![{ tool }].hide_argument("b")).is_ok());
}

#[test]
fn a_fixed_value_has_no_issues_of_other_arguments() {
    let schema = json!({
        "type": "object", "properties": {"user": {"type": "string"}, "user_id": {"type": "string"}},
        "required": ["user", "user_id"]
    });
    let tool = Tool::new("c", "Has two names.", schema, |_, _| async {}).expect("a tool");
    Registry::new(tools![{ tool }].fix_argument("user", "ann")).expect("only `user_id` is missing");
}

#[tokio::test]
async fn another_name_is_the_name_everywhere() {
    let set = tools![find, hello].prefix("docs_").rename("docs_hello", "greet");
    assert_eq!(names(&set), ["docs_find", "greet"]);
    let registry = registry(set);
    assert_eq!(call(&registry, "greet", "{}").await, "hello");
    let told = call(&registry, "docs_find", r#"{"words": 5}"#).await;
    assert!(told.starts_with("Invalid arguments for `docs_find`: 2 problems"), "{told}");
    assert!(told.ends_with("Call `docs_find` again with all of these fixed."), "{told}");
    let checked = registry.validate(&ToolCall::new("1", "docs_find", r#"{"words": 5}"#));
    assert!(checked.expect_err("refused").to_string().starts_with("Invalid arguments for `docs_find`"));
    assert!(call(&registry, "find", "{}").await.contains("There is no tool \"find\""));
}

#[test]
fn subsets_keep_the_order_that_is_asked_for_and_filters_the_one_there_is() {
    assert_eq!(names(&tools![find, remove, hello].subset(["hello", "find"])), ["hello", "find"]);
    let filtered = tools![find, remove, hello].filter(|tool| tool.name() != "remove");
    assert_eq!(names(&filtered), ["find", "hello"]);
    let changed = tools![find, remove, hello].change(["remove"], |set| set.prefix("really_"));
    assert_eq!(names(&changed), ["find", "really_remove", "hello"]);
    let registry = registry(tools![find, remove, hello]).filter(|tool| tool.name() != "find");
    assert_eq!(registry.names().collect::<Vec<_>>(), ["remove", "hello"]);
    assert!(!registry.contains("find") && registry.get("hello").is_some());
    assert_eq!(names(&tools![{ registry }]), ["remove", "hello"]);
}

#[test]
fn approvals_are_asked_for_where_one_of_the_two_says_so() {
    let needed = |set: ToolSet, arguments: &str| {
        let registry = registry(set);
        let tool = registry.fetch("remove").expect("it is there").clone();
        tool.policy().approval.is_needed(tool.definition().plan(), arguments)
    };
    let (acme, other) = (r#"{"tenant": "acme", "id": 1}"#, r#"{"tenant": "other", "id": 1}"#);
    assert!(needed(tools![remove], acme) && !needed(tools![remove], other));
    // Its own rule is about the whole, also where part of it is filled in.
    assert!(needed(tools![remove].fix_argument("tenant", "acme"), r#"{"id": 1}"#));
    assert!(!needed(tools![remove].fix_argument("tenant", "other"), r#"{"id": 1}"#));
    assert!(needed(tools![remove].fix_argument("tenant", "other"), r#"{"id": 1, "tenant": "acme"}"#));

    let big = || Approval::when(|args: &Value| args["id"].as_u64() > Some(100));
    let set = || tools![remove].require_approval(big());
    assert!(needed(set(), acme) && !needed(set(), other));
    assert!(needed(set(), r#"{"tenant": "other", "id": 101}"#));
    assert!(needed(tools![remove].require_approval(Approval::ALWAYS), other));
    assert!(needed(tools![remove].require_approval(Approval::NEVER), acme));
    let both = || tools![remove].fix_argument("tenant", "other").require_approval(big());
    assert!(!needed(both(), r#"{"id": 5}"#) && needed(both(), r#"{"id": 500}"#));
    // A new schema hides nothing, so the rule sees what the model sends.
    let properties = json!({"tenant": {"type": "string"}, "id": {"type": "integer"}});
    let schema = json!({"type": "object", "properties": properties, "required": ["tenant", "id"]});
    let shown = || both().map(|tool| tool.with_schema(schema.clone()));
    assert!(needed(shown(), acme) && !needed(shown(), other));
}

#[tokio::test]
async fn outputs_are_changed_when_calls_complete() {
    let shout = |name: &str, output: ToolOutput| {
        ToolOutput::text(format!("{name}: {}", output.text_content().to_uppercase()))
    };
    let registry = registry(tools![hello, find].prefix("x_").map_output(shout));
    assert_eq!(call(&registry, "x_hello", "").await, "x_hello: HELLO");
    assert!(call(&registry, "x_find", "{}").await.starts_with("Invalid arguments"));
}

#[tokio::test]
async fn options_for_a_set_reach_tools_that_were_changed_before() {
    let lenient = PlanOptions::default().coercion(CoercionPolicy::lenient());
    let registry = registry(tools![find].fix_argument("tenant", "a").prefix("p_").with_options(lenient));
    assert_eq!(call(&registry, "p_find", r#"{"words": "one"}"#).await, r#"a ["one"] 10"#);
}

#[derive(ToolArgs)]
#[arg(validate = in_order)]
struct Slot {
    from: u8,
    to: u8,
}

fn in_order(slot: &Slot) -> Result<(), Violations> {
    let violations = Violations::new();
    if slot.from <= slot.to { Ok(()) } else { violations.at("to", "must not be before `from`").into_result() }
}

/// Books a slot.
#[tool]
fn book(slot: Slot) -> String {
    format!("{}-{}", slot.from, slot.to)
}

#[tokio::test]
async fn checks_of_the_tool_still_run_and_say_no_value_that_is_hidden() {
    let registry = registry(tools![book].fix_argument("to", 17));
    assert_eq!(call(&registry, "book", r#"{"from": 9}"#).await, "9-17");
    let told = call(&registry, "book", r#"{"from": 20}"#).await;
    assert!(told.contains("1. (arguments): must not be before `from`\n"), "{told}");
    assert!(!told.contains("17") && !told.contains("/to"), "{told}");
    let told =
        registry.validate(&ToolCall::new("1", "book", r#"{"from": 20}"#)).expect_err("refused").to_string();
    assert!(told.contains("1. (arguments): must not be before `from`\n"), "{told}");
}

#[tokio::test]
async fn what_depends_on_a_source_is_changed_too() {
    struct Admin;
    let list = ToolBuilder::new("list")
        .description("Lists.")
        .optional_string("tenant", "Whose.")
        .prepare(|arguments| {
            // Adds what was left out; here it is taken away again, and filled in.
            arguments.entry("tenant").or_insert("prepared".into());
            if arguments.contains_key("bad") { Err(ToolError::new("bad")) } else { Ok(()) }
        })
        .parameters_for(|source| {
            let admin = source.get::<Admin>()?;
            let _ = admin;
            Some(
                Parameters::new()
                    .optional_string("tenant", "Whose.")
                    .optional_boolean("deleted", "Those, too."),
            )
        })
        .build(|args: Value, _| async move { args.to_string() })
        .expect("a tool");
    let registry = registry(tools![{ list }].fix_argument("tenant", "acme").prefix("a_"));
    let admin = Source::new(Admin);
    let shown = registry.definitions_for(Some(&admin)).expect("definitions");
    assert_eq!(shown[0].name(), "a_list");
    assert_eq!(shown[0].plan().parameter_names().collect::<Vec<_>>(), ["deleted"]);

    let cx = ToolContext::new().with_source(admin);
    let text = |arguments: &str| ToolCall::new("1", "a_list", arguments);
    assert_eq!(
        registry.call(&text(r#"{"deleted": true}"#), &cx).await.outcome.text(),
        r#"{"deleted":true,"tenant":"acme"}"#
    );
    let told =
        registry.call(&text(r#"{"deleted": 4, "tenant": "x"}"#), &cx).await.outcome.text().into_owned();
    assert!(told.starts_with("Invalid arguments for `a_list`: 2 problems"), "{told}");
    let told = call(&registry, "a_list", r#"{"deleted": true}"#).await;
    assert!(told.contains("/deleted: unknown parameter"), "{told}");
    assert_eq!(call(&registry, "a_list", r#"{"bad": 1}"#).await, "bad");
}

#[tokio::test]
async fn a_tool_written_by_hand_can_be_changed() {
    struct Echo;
    impl ToolBody for Echo {
        fn call<'a>(
            &'a self,
            arguments: &'a AcceptedArguments,
            _: &'a ToolContext,
        ) -> agent::BoxFuture<'a, agent::ToolOutcome> {
            use agent::tool::IntoOutcome as _;
            Box::pin(async move { agent::Json(arguments.value()).into_outcome() })
        }
    }
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "integer"}}});
    let plan = agent::args::Plan::compile("echo", &schema, PlanOptions::default()).expect("a plan");
    let definition = agent::ToolDefinition::new(plan, "Echoes.").expect("a definition");
    let echo = Tool::from_body(definition, Echo);
    let registry = registry(tools![{ echo }].fix_argument("m", 2).rename("echo", "say"));
    assert_eq!(call(&registry, "say", r#"{"n": "1"}"#).await, r#"{"n":1,"m":2}"#);
    assert!(call(&registry, "say", r#"{"n": "x"}"#).await.starts_with("Invalid arguments for `say`"));
}

/// Converts an amount of money to another currency.
#[tool(defer)]
fn convert_currency(amount: f64, to: String) -> String {
    format!("{amount} {to}")
}

/// Books a flight.
#[tool(defer)]
fn book_flight(from: String, to: String) -> String {
    from + &to
}

/// Plans the day.
#[tool(defer)]
fn plan_day() {}

#[tokio::test]
async fn deferred_tools_are_shown_after_they_were_found() {
    let registry = registry(tools![convert_currency, hello, book_flight, plan_day].with_tool_search());
    let shown = |messages: &[agent::message::Message]| -> Vec<String> {
        registry.shown(messages).iter().map(|tool| tool.name().to_owned()).collect()
    };
    assert_eq!(shown(&[]), ["hello", "search_tools"]);
    let mut messages = Vec::new();
    for (query, added) in
        [("booking a trip by air: flights", "book_flight"), ("exchange currencies", "convert_currency")]
    {
        let arguments = json!({"query": query, "limit": 1}).to_string();
        let result = registry.call(&ToolCall::new("1", "search_tools", arguments), &ToolContext::new()).await;
        assert!(result.outcome.text().contains(added), "{query}: {}", result.outcome.text());
        messages.push(agent::message::Message::from(result.to_message().expect("a message")));
    }
    // In the order of finding, behind the others, and each once.
    messages.push(messages[0].clone());
    assert_eq!(shown(&messages), ["hello", "search_tools", "book_flight", "convert_currency"]);
    let nothing = call(&registry, "search_tools", r#"{"query": "zebra"}"#).await;
    assert_eq!(nothing, "No tool was found. There are: convert_currency, book_flight, plan_day.");
    // The search sees the tools of the registry that it is called in.
    let fewer = registry.filter(|tool| tool.name() != "book_flight");
    let found = call(&fewer, "search_tools", r#"{"query": "flights"}"#).await;
    assert_eq!(found, "No tool was found. There are: convert_currency, plan_day.");
    assert!(
        call(&registry, "search_tools", r#"{"query": "x", "limit": 99}"#)
            .await
            .contains("expected integer 1..20")
    );
}

#[test]
fn without_deferred_tools_nothing_is_added() {
    let plain = registry(tools![hello].with_tool_search());
    assert_eq!(plain.names().collect::<Vec<_>>(), ["hello"]);
    assert!(std::ptr::eq(plain.shown(&[]).as_ptr(), plain.definitions().as_ptr()));
}

#[test]
fn words_find_tools_by_name_first() {
    let registry = registry(tools![convert_currency, book_flight, plan_day, hello]);
    let found = |words: &str| -> Vec<String> {
        registry.search(words, 2).iter().map(|tool| tool.name().to_owned()).collect()
    };
    assert_eq!(found("Flights"), ["book_flight"]);
    assert_eq!(found("money"), ["convert_currency"]);
    assert_eq!(found("planning my day, and a flight")[0], "plan_day");
    assert_eq!(found("the of to"), Vec::<String>::new());
    assert_eq!(found(""), Vec::<String>::new());
}

#[test]
fn tools_that_are_found_equally_well_keep_their_order() {
    let tool = |name: &str, description: &str, parameter: &str| {
        let schema = json!({"type": "object", "properties": {parameter: {"type": "string"}}});
        Tool::new(name, description, schema, |_, _| async {}).unwrap()
    };
    let tools =
        [tool("alpha", "Beta.", "gamma"), tool("delta", "Epsilon.", "zeta"), tool("eta", "Theta.", "iota")];
    let registry = registry(tools.into_iter().collect());
    for _ in 0..100 {
        let found = registry.search("zeta epsilon delta gamma beta alpha", 5);
        assert_eq!(found.iter().map(agent::ToolDefinition::name).collect::<Vec<_>>(), ["alpha", "delta"]);
    }
}

#[tokio::test]
async fn nested_numbers_keep_their_digits_beside_a_coercion() {
    let item = json!({"type": "object", "properties": {"n": {"type": "number"}, "yes": {"type": "boolean"}}});
    let schema = json!({"type": "object", "properties": {
        "in": {"type": "object", "properties": {"n": {"type": "number"}, "list": {"type": "array", "items": item}}},
        "n": {"type": "number"},
        "tenant": {"type": "string"},
    }});
    let echo = Tool::new("echo", "Says it again.", schema, |_: Value, _| async { "" }).expect("a tool");
    let echo = echo.wrap(|_, arguments, _| {
        let text = arguments.text().to_owned();
        Box::pin(async move { ToolOutput::text(text).into() })
    });
    let registry = registry(tools![{ echo }].fix_argument("tenant", "acme"));
    let n = "18446744073709551617";
    let sent = format!(r#"{{"in": {{"n": {n}, "list": [{{"n": {n}, "yes": "true"}}]}}, "n": {n}}}"#);
    let got = format!(r#"{{"in":{{"n":{n},"list":[{{"n":{n},"yes":true}}]}},"n":{n},"tenant":"acme"}}"#);
    assert_eq!(call(&registry, "echo", &sent).await, got);
}
