//! Tools declared at run time: parameters of all kinds, preparation, sources, results shown otherwise.

use agent::args::{PlanOptions, UnknownKeys};
use agent::message::{OutcomeKind, Part, ToolCall, ToolResultMessage};
use agent::tool::{AcceptedArguments, ToolBody};
use agent::{
    BoxFuture, Parameters, Registry, Tool, ToolBuilder, ToolContext, ToolDefinition, ToolError, ToolOutcome,
    ToolOutput, Value, json,
    tool::{CallError, DefinitionError, Effect, Source},
    tools,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

async fn echo(arguments: Value, _cx: ToolContext) -> String {
    arguments.to_string()
}

fn build(builder: ToolBuilder) -> Tool {
    builder.description("Says it again.").build(echo).expect("a tool")
}

async fn call(tool: &Tool, arguments: &str, cx: &ToolContext) -> (Option<String>, String) {
    let registry = Registry::new(tools![tool.clone()]).expect("sound");
    let name = tool.definition().name();
    let outcome = registry.call(&ToolCall::new("1", name, arguments), cx).await.outcome;
    (outcome.code().map(str::to_owned), outcome.text().into_owned())
}

#[test]
fn every_kind() {
    let tool = build(
        ToolBuilder::new("all")
            .required_string("s", "Text.")
            .with_keyword("maxLength", 3)
            .optional_integer("i", "Whole.")
            .required_number("n", "")
            .optional_boolean("b", "Flag.")
            .required_enum("e", "Word.", ["one", "two"])
            .optional_date("d", "Day.")
            .optional_date_time("t", "Time.")
            .required_string_array("ss", "Texts.")
            .optional_integer_array("is", "Wholes.")
            .optional_number_array("ns", "Numbers.")
            .required_object("o", "Place.", Parameters::new().required_number("lat", "North."))
            .optional_object_array("os", "Places.", Parameters::new().optional_string("name", "Its name."))
            .optional_schema("x", json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
    );
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let mut place = object(json!({"lat": {"type": "number", "description": "North."}}), json!(["lat"]));
    place["description"] = json!("Place.");
    let named = object(json!({"name": {"type": "string", "description": "Its name."}}), json!([]));
    assert_eq!(
        *tool.definition().parameters(),
        object(
            json!({
                "s": {"type": "string", "description": "Text.", "maxLength": 3},
                "i": {"type": "integer", "description": "Whole."},
                "n": {"type": "number"},
                "b": {"type": "boolean", "description": "Flag."},
                "e": {"type": "string", "enum": ["one", "two"], "description": "Word."},
                "d": {"type": "string", "format": "date", "description": "Day."},
                "t": {"type": "string", "format": "date-time", "description": "Time."},
                "ss": {"type": "array", "items": {"type": "string"}, "description": "Texts."},
                "is": {"type": "array", "items": {"type": "integer"}, "description": "Wholes."},
                "ns": {"type": "array", "items": {"type": "number"}, "description": "Numbers."},
                "o": place,
                "os": {"type": "array", "items": named, "description": "Places."},
                "x": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            }),
            json!(["s", "n", "e", "ss", "o"]),
        )
    );
    let given: Vec<_> = tool.definition().plan().parameter_names().collect();
    assert_eq!(given, ["s", "i", "n", "b", "e", "d", "t", "ss", "is", "ns", "o", "os", "x"]);
}

#[tokio::test]
async fn arguments_are_checked_and_coerced() {
    let tool = build(ToolBuilder::new("t").required_integer("n", "N.").optional_string_array("w", "Words."));
    let cx = ToolContext::new();
    assert_eq!(
        call(&tool, r#"{"n": "3", "w": [1, "a"]}"#, &cx).await,
        (None, r#"{"n":3,"w":["1","a"]}"#.into())
    );
    let (code, report) = call(&tool, r#"{"m": 3, "w": "a"}"#, &cx).await;
    assert_eq!(code.as_deref(), Some("invalid_arguments"));
    assert!(report.contains("3 problems"), "{report}");
}

#[test]
fn what_cannot_be_is_an_error_of_build() {
    let reason = |builder: ToolBuilder| {
        let error = builder.description("X.").build(echo).expect_err("must not be");
        assert!(matches!(error, DefinitionError::Parameter { .. }), "{error}");
        error.to_string()
    };
    let new = || ToolBuilder::new("t");
    let none: [&str; 0] = [];
    assert_eq!(
        reason(new().required_enum("e", "", none)),
        "parameter \"e\": its words are none, or one of them is empty"
    );
    assert!(reason(new().optional_enum("e", "", ["a", ""])).contains("one of them is empty"));
    assert!(reason(new().required_string("a", "").optional_integer("a", "")).contains("two of this name"));
    assert!(reason(new().required_string("", "")).contains("no name"));
    assert!(reason(new().with_keyword("maximum", 3)).contains("there is none"));
    assert!(reason(new().required_schema("a", json!(3))).contains("its schema is not a schema"));
    let inner = Parameters::new().required_enum("e", "", none);
    assert!(reason(new().required_object("o", "", inner)).contains("parameter \"o\": parameter \"e\""));
    // What the engine refuses, with its place.
    let error = new()
        .description("X.")
        .required_string("a", "")
        .with_keyword("pattern", "(")
        .build(echo)
        .unwrap_err();
    assert!(error.to_string().contains("pattern"), "{error}");
    assert!(matches!(new().build(echo), Err(DefinitionError::NoDescription)));
    assert!(matches!(
        ToolBuilder::new("a b").description("X.").build(echo),
        Err(DefinitionError::Name { .. })
    ));
}

#[test]
fn everything_else_is_kept() {
    let tool = build(
        ToolBuilder::new("t")
            .title("T")
            .effect(Effect::Pure)
            .unknown(UnknownKeys::Keep)
            .example(json!({"a": 1})),
    );
    let definition = tool.definition();
    assert_eq!((definition.title(), tool.policy().effect), (Some("T"), Effect::Pure));
    assert_eq!(definition.examples(), [json!({"a": 1})]);
    assert_eq!(definition.parameters()["additionalProperties"], true);
    assert!(definition.describe_for_llm().contains("Example Usage:"));
}

#[tokio::test]
async fn arguments_are_prepared_before_every_check() {
    let tool = build(ToolBuilder::new("t").required_string("path", "Where.").prepare(|arguments| {
        if arguments.contains_key("bad") {
            return Err(ToolError::new("not like this"));
        }
        assert!(!arguments.contains_key("panic"), "oh");
        if let Some(path) = arguments.remove("file") {
            arguments.insert("path".into(), path);
        }
        Ok(())
    }));
    let cx = ToolContext::new();
    assert_eq!(call(&tool, r#"{"file": "a"}"#, &cx).await, (None, r#"{"path":"a"}"#.into()));
    assert_eq!(call(&tool, r#"{"path": "a"}"#, &cx).await, (None, r#"{"path":"a"}"#.into()));
    let (code, text) = call(&tool, r#"{"bad": 1}"#, &cx).await;
    assert_eq!((code.as_deref(), text.as_str()), (Some("prepare_error"), "not like this"));
    assert_eq!(call(&tool, r#"{"panic": 1}"#, &cx).await.0.as_deref(), Some("prepare_error"));
    for no_object in ["[1]", "{", "3"] {
        assert_eq!(call(&tool, no_object, &cx).await.0.as_deref(), Some("invalid_arguments"), "{no_object}");
    }
    let registry = Registry::new(tools![{ tool }]).expect("sound");
    let checked = registry.validate(&ToolCall::new("1", "t", r#"{"file": "a"}"#)).expect("fits");
    assert_eq!(*checked.value(), json!({"path": "a"}));
    let refused = registry.validate(&ToolCall::new("1", "t", r#"{"bad": 1}"#));
    assert!(matches!(refused, Err(CallError::Prepare(_))));
}

#[tokio::test]
async fn an_error_of_prepare_keeps_its_metadata_and_may_be_hidden() {
    let outcome = async |builder: ToolBuilder| {
        let builder = builder.prepare(|_| Err(ToolError::new("password is hunter2").with_metadata("why", 1)));
        build(builder).call("{}", &ToolContext::new()).await.outcome
    };
    let shown = outcome(ToolBuilder::new("t")).await;
    let hidden = outcome(ToolBuilder::new("t").redact_errors()).await;
    assert!(shown.text().contains("hunter2") && !hidden.text().contains("hunter2"), "{shown:?} {hidden:?}");
    for outcome in [shown, hidden] {
        let why = outcome.metadata().and_then(|metadata| metadata.get("why"));
        assert_eq!((outcome.code(), why), (Some("prepare_error"), Some(&json!(1))));
    }
}

struct User {
    roles: Vec<&'static str>,
}

#[tokio::test]
async fn parameters_depend_on_the_source() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let tool = build(ToolBuilder::new("t").optional_string("name", "Whose.").parameters_for(move |source| {
        count.fetch_add(1, Ordering::SeqCst);
        let user = source.get::<User>()?;
        let roles = user.roles.iter().copied();
        Some(Parameters::new().optional_string("name", "Whose.").required_enum("role", "As whom.", roles))
    }));
    let registry = Registry::new(tools![tool.clone()]).expect("sound");
    let admin = Source::new(User { roles: vec!["admin"] });
    let nobody = Source::new(User { roles: vec![] });
    let stranger = Source::new(3_u8);

    assert!(Arc::ptr_eq(&registry.definitions(), &registry.definitions_for(None).expect("always")));
    assert!(Arc::ptr_eq(
        &registry.definitions(),
        &registry.definitions_for(Some(&stranger)).expect("as always")
    ));
    let shown = registry.definitions_for(Some(&admin)).expect("for an admin");
    assert_eq!(shown[0].parameters()["properties"]["role"]["enum"], json!(["admin"]));
    let error = registry.definitions_for(Some(&nobody)).expect_err("a set of no words").to_string();
    assert!(error.contains("tool `t`") && error.contains("role"), "{error}");

    let of = |source: &Source| ToolContext::new().with_source(source.clone());
    let sent = r#"{"role": "admin"}"#;
    assert_eq!(call(&tool, sent, &of(&admin)).await.0, None);
    assert_eq!(call(&tool, sent, &of(&stranger)).await.0.as_deref(), Some("invalid_arguments"));
    assert_eq!(call(&tool, sent, &ToolContext::new()).await.0.as_deref(), Some("invalid_arguments"));
    assert_eq!(call(&tool, sent, &of(&nobody)).await.0.as_deref(), Some("tool_error"));
    assert_eq!(call(&tool, "{}", &of(&admin)).await.0.as_deref(), Some("invalid_arguments"));

    let asked_before = asked.load(Ordering::SeqCst);
    assert!(registry.validate(&ToolCall::new("1", "t", sent)).is_err());
    assert_eq!(asked.load(Ordering::SeqCst), asked_before, "without a source nobody is asked");
    let checked = registry.validate_for(&ToolCall::new("1", "t", sent), Some(&admin)).expect("fits");
    assert_eq!(*checked.value(), json!({"role": "admin"}));
    let refused = registry.validate_for(&ToolCall::new("1", "t", sent), Some(&nobody));
    assert!(matches!(refused, Err(CallError::Definition(_))));
}

#[test]
fn results_are_shown_as_the_tool_likes() {
    let live = Arc::new(AtomicU32::new(1));
    let now = live.clone();
    let tool =
        build(ToolBuilder::new("job").format_result(
            move |args, result| match result.content[0].as_text()? {
                "blank" => Some(vec![Part::text(" \n")]),
                "panic" => panic!("no"),
                "args" => Some(vec![Part::text(args.text())]),
                id => Some(vec![Part::text(format!("job {id}: {} %", now.load(Ordering::SeqCst)))]),
            },
        ));
    let registry = Registry::new(tools![{ tool }, build(ToolBuilder::new("plain"))]).expect("sound");
    let stored = |tool: &str, text: &str| {
        ToolResultMessage::new("1", tool, OutcomeKind::Completed).with_content(vec![Part::text(text)])
    };
    let shown = |message: &ToolResultMessage| {
        let call = ToolCall::new("1", "job", r#"{"id": 7}"#);
        registry.shown_content(&call, message)[0].as_text().unwrap_or_default().to_owned()
    };
    assert_eq!(shown(&stored("job", "7")), "job 7: 1 %");
    live.store(50, Ordering::SeqCst);
    assert_eq!(shown(&stored("job", "7")), "job 7: 50 %");
    assert_eq!(shown(&stored("job", "args")), r#"{"id": 7}"#);
    for (tool, text) in [("job", "blank"), ("job", "panic"), ("plain", "x"), ("gone", "x")] {
        assert_eq!(shown(&stored(tool, text)), text);
    }
}

/// A schema that depends on the value: a tool written by hand.
struct Table(Vec<&'static str>);

impl Table {
    fn tool(name: &str, columns: Vec<&'static str>) -> Result<Tool, DefinitionError> {
        let schema =
            Parameters::new().required_enum("column", "Which one.", columns.iter().copied()).schema()?;
        let plan = agent::args::Plan::compile(name, &schema, PlanOptions::default())?;
        Ok(Tool::from_body(ToolDefinition::new(plan, format!("Sums up a column of {name}."))?, Self(columns)))
    }
}

impl ToolBody for Table {
    fn call<'a>(
        &'a self,
        arguments: &'a AcceptedArguments,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            ToolOutput::text(format!("{} of {}", arguments.value()["column"], self.0.len())).into()
        })
    }
}

#[tokio::test]
async fn tools_by_hand_have_schemas_of_their_own() {
    let set = tools![
        Table::tool("sales", vec!["total", "tax"]).expect("a tool"),
        Table::tool("staff", vec!["age"]).expect("a tool"),
    ];
    let registry = Registry::new(set).expect("sound");
    let result =
        registry.call(&ToolCall::new("1", "sales", r#"{"column": "tax"}"#), &ToolContext::new()).await;
    assert_eq!(result.outcome.text(), "\"tax\" of 2");
    let result =
        registry.call(&ToolCall::new("1", "staff", r#"{"column": "tax"}"#), &ToolContext::new()).await;
    assert_eq!(result.outcome.code(), Some("invalid_arguments"));
}
