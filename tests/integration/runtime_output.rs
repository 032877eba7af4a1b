//! Answers with a JSON Schema that is known only at run time: checked and sent back like those of a type.

use std::collections::BTreeMap;

use agent::ScriptedModel;
use agent::durable::Service;
use agent::model::{Capabilities, ModelInfo, OutputSchema, Thinking, reply};
use agent::schema::Dialect;
use agent::{Assistant, Control, RunError, RunStop, ToolOutput, Value, json, run::BuildError, tool, tools};

/// Ends the run.
#[tool(read_only)]
fn hand_over() -> ToolOutput {
    ToolOutput::text("Somebody will answer.").with_control(Control::EndNow)
}

/// Pays.
#[tool(approval = "always")]
fn pay(amount: u32) -> String {
    format!("paid {amount}")
}

/// Looks a word up.
#[tool(read_only)]
fn look_up(word: String) -> String {
    format!("{word} is a word")
}

fn stars() -> OutputSchema {
    let schema = json!({
        "type": "object",
        "properties": {"stars": {"type": "integer", "maximum": 5}, "why": {"type": "string"}},
        "required": ["stars", "why"]
    });
    OutputSchema::new("verdict", schema).with_description("A verdict on a book.")
}

fn cities() -> OutputSchema {
    let schema = json!({
        "type": "array", "items": {"$ref": "#/$defs/City"}, "minItems": 1,
        "$defs": {"City": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
    });
    OutputSchema::new("cities", schema)
}

fn native() -> ModelInfo {
    let mut native = Capabilities::default();
    native.native_output = true;
    ModelInfo::new("a", "b", "c").with_capabilities(native)
}

fn reports(model: &ScriptedModel) -> Vec<String> {
    model.requests()[1..].iter().map(|request| request.messages.last().unwrap().text()).collect()
}

#[tokio::test]
async fn an_answer_that_does_not_fit_a_schema_goes_back_with_the_report() {
    let wrong = r#"{"stars": 11}"#;
    let right = r#"{"stars": "4", "why": "short"}"#;
    // As a reply, for a model that keeps to a schema.
    let model = ScriptedModel::new([wrong, right]).with_info(native());
    let assistant = Assistant::builder(model.clone()).build().unwrap();
    let output = assistant.prompt("?").output_schema(stars()).await.unwrap();
    assert_eq!(output.value, json!({"stars": 4, "why": "short"}));
    assert_eq!(output.turns, 2);
    let requests = model.requests();
    assert_eq!(requests[0].output, Some(stars()), "as it was given");
    assert!(requests[0].tools.is_empty());
    let report = &reports(&model)[0];
    assert!(report.starts_with("Invalid answer: 2 problems, attempt 1 of 3."), "{report}");
    assert!(report.contains("/stars: ") && report.contains("/why: "), "{report}");

    // As a tool, for any other.
    let model = ScriptedModel::new([
        reply().tool_call("structured_output", wrong),
        reply().tool_call("structured_output", right),
    ]);
    let assistant = Assistant::builder(model.clone()).build().unwrap();
    let output = assistant.prompt("?").output_schema(stars()).await.unwrap();
    assert_eq!(output.value, json!({"stars": 4, "why": "short"}));
    let request = &model.requests()[0];
    assert!(request.output.is_none() && request.tools.len() == 1);
    assert_eq!(request.tools[0].name(), "structured_output");
    assert!(request.tools[0].description().ends_with("\nA verdict on a book."));
    assert!(reports(&model)[0].contains("/stars"), "{:?}", reports(&model));
}

#[tokio::test]
async fn after_all_attempts_the_faults_are_an_error() {
    for info in [native(), ModelInfo::new("a", "b", "c")] {
        let model = ScriptedModel::from_fn(|_| reply().text(r#"{"stars": 11, "why": "x"}"#)).with_info(info);
        let assistant = Assistant::builder(model.clone()).build().unwrap();
        let error = assistant.prompt("?").output_schema(stars()).await.unwrap_err();
        assert_eq!((error.code(), model.requests().len()), ("output", 3));
        assert!(error.to_string().contains("/stars"), "{error}");
        assert!(!error.to_string().contains("structured_output"), "{error}");
    }
}

#[tokio::test]
async fn what_is_not_an_object_is_a_field_of_one() {
    let answer = r#"{"result": [{"name": "Bern"}]}"#;
    for (info, replies) in [
        (native(), [reply().text(r#"{"result": []}"#), reply().text(answer)]),
        (
            ModelInfo::new("a", "b", "c"),
            [
                reply().tool_call("structured_output", r#"{"result": []}"#),
                reply().tool_call("structured_output", answer),
            ],
        ),
    ] {
        let model = ScriptedModel::new(replies).with_info(info);
        let assistant = Assistant::builder(model.clone()).build().unwrap();
        let mut run = assistant.prompt("?").output_schema(cities()).stream();
        while run.next().await.is_some() {}
        assert_eq!(run.output().await.unwrap().value, json!([{"name": "Bern"}]));
        let request = &model.requests()[0];
        let schema = match &request.output {
            Some(output) => output.schema.as_ref().clone(),
            None => request.tools[0].parameters().clone(),
        };
        assert_eq!(schema["required"], json!(["result"]));
        assert_eq!(schema["$defs"]["City"]["required"], json!(["name"]));
    }
}

/// What a provider would refuse is asked for by a tool.
#[tokio::test]
async fn a_schema_that_the_dialect_cannot_express_is_asked_for_by_a_tool() {
    let mut info = native();
    info.capabilities.output_dialect = Some(Dialect::AnthropicStrict);
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    for (schema, is_native) in [(map, false), ((*stars().schema).clone(), true)] {
        let model = ScriptedModel::from_fn(|request| {
            let last = request.messages.last().map(|message| message.text()).unwrap_or_default();
            let answer =
                if last.starts_with("Invalid") { r#"{"stars": 1, "why": "2"}"# } else { r#"{"stars": "x"}"# };
            match request.tools.len() {
                0 => reply().text(answer),
                _ => reply().tool_call("structured_output", answer.replace(r#""2""#, "2")),
            }
        });
        let model = model.with_info(info.clone());
        let assistant = Assistant::builder(model.clone()).build().unwrap();
        let output = assistant.prompt("?").output_schema(OutputSchema::new("x", schema)).await.unwrap();
        assert_eq!(output.value["stars"], 1);
        let requests = model.requests();
        assert!(requests.iter().all(|request| request.output.is_some() == is_native));
        assert!(requests.iter().all(|request| request.tools.is_empty() == is_native));
    }
    // Types as well.
    let model = ScriptedModel::new([reply().tool_call("structured_output", r#"{"a": 1}"#)]).with_info(info);
    let assistant = Assistant::builder(model).build().unwrap();
    assert_eq!(assistant.prompt("?").output::<BTreeMap<String, u8>>().await.unwrap().value.len(), 1);
}

#[tokio::test]
async fn an_assistant_checks_the_answers_of_all_its_runs() {
    for (info, replies) in [
        (native(), ["?", r#"{"stars": 4, "why": "short"}"#].map(|text| reply().text(text))),
        (
            ModelInfo::new("a", "b", "c"),
            [
                reply().tool_call("structured_output", "{}"),
                reply().tool_call("structured_output", r#"{"stars": 4, "why": "short"}"#),
            ],
        ),
    ] {
        let model = ScriptedModel::new(replies).with_info(info);
        let assistant = Assistant::builder(model.clone())
            .request(|request| request.with_output(stars()))
            .build()
            .unwrap();
        let output = assistant.prompt("?").await.unwrap();
        assert_eq!((output.answer, output.turns), (Some(json!({"stars": 4, "why": "short"})), 2));
        let report = &reports(&model)[0];
        assert!(report.starts_with("Invalid "), "{report}");
    }
    // A prompt that asks for something else gets that.
    let model = ScriptedModel::new([r#"{"result": 7}"#]).with_info(native());
    let assistant =
        Assistant::builder(model.clone()).request(|request| request.with_output(stars())).build().unwrap();
    let output = assistant.prompt("?").output::<u8>().await.unwrap();
    assert_eq!((output.value, output.answer), (7, None));
    assert_eq!(model.requests()[0].output.as_ref().unwrap().name, "output");
    // Without a schema there is no answer to check.
    let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build().unwrap();
    assert_eq!(assistant.prompt("?").await.unwrap().answer, None);
}

#[tokio::test]
async fn a_wrong_answer_of_an_assistant_is_an_error_and_a_run_that_a_tool_ended_has_none() {
    let model = ScriptedModel::from_fn(|_| reply().text("No idea."));
    let assistant =
        Assistant::builder(model).request(|request| request.with_output(stars())).build().unwrap();
    assert!(matches!(assistant.prompt("?").await, Err(RunError::Output { .. })));

    let model = ScriptedModel::new([reply().tool_call("hand_over", "{}")]);
    let builder = Assistant::builder(model).tools(tools![hand_over]);
    let assistant = builder.request(|request| request.with_output(stars())).build().unwrap();
    let output = assistant.prompt("?").await.unwrap();
    assert_eq!((output.stop, output.answer), (RunStop::Terminated, None));
}

#[tokio::test]
async fn tools_come_first_and_a_suspended_run_is_checked_when_it_ends() {
    let model = ScriptedModel::new([
        reply().tool_call("look_up", r#"{"word": "tea"}"#),
        reply().tool_call("pay", r#"{"amount": 3}"#),
        reply().tool_call("structured_output", r#"{"stars": 6, "why": "x"}"#),
        reply().tool_call("structured_output", r#"{"stars": 5, "why": "x"}"#),
    ]);
    let builder = Assistant::builder(model.clone()).tools(tools![look_up, pay]);
    let assistant = builder.request(|request| request.with_output(stars())).build().unwrap();
    let waits = assistant.prompt("?").await.unwrap();
    assert_eq!(waits.answer, None);
    let suspended = waits.snapshot.unwrap();
    let decisions = agent::Decisions::new().allow(&suspended.requests()[0]);
    let output = assistant.resume(&suspended, decisions).await.unwrap();
    assert_eq!(output.answer, Some(json!({"stars": 5, "why": "x"})));
    assert_eq!(model.requests()[0].tools.len(), 3);
}

#[tokio::test]
async fn a_schema_that_cannot_be_checked_is_refused_before_anything_is_sent() {
    let bad = || OutputSchema::new("x", json!({"type": "any"}));
    let model = ScriptedModel::new(["Hello!"]);
    let error =
        Assistant::builder(model.clone()).request(|request| request.with_output(bad())).build().unwrap_err();
    assert!(matches!(error, BuildError::Output(_)));
    assert!(error.to_string().starts_with("the answers cannot be checked: "), "{error}");
    let assistant = Assistant::builder(model.clone()).build().unwrap();
    let error = assistant.prompt("?").output_schema(bad()).await.unwrap_err();
    assert_eq!(error.code(), "output");
    let mut run = assistant.prompt("?").output_schema(bad()).stream();
    assert!(run.next().await.is_none() && run.output().await.unwrap_err().code() == "output");
    assert!(model.requests().is_empty() && assistant.messages().is_empty());
    // Durable runs check one, too, unless a tool has the name of the one for the answer.
    let builder = Assistant::builder(model).request(|request| request.with_output(stars()));
    assert!(Service::new(&builder.build().unwrap()).is_ok());
    let own = agent::ToolBuilder::new("structured_output")
        .description("Has the name of the tool for answers.")
        .build(|_: Value, _: agent::ToolContext| async { "done" })
        .unwrap();
    let builder =
        Assistant::builder(ScriptedModel::new(["Hello!"])).request(|request| request.with_output(stars()));
    let error = Service::new(&builder.tools(tools![{ own }]).build().unwrap()).unwrap_err();
    assert!(error.to_string().contains("a tool that is named `structured_output`"), "{error}");
}

#[tokio::test]
async fn any_json_is_an_answer_to_a_schema_that_takes_any() {
    for (answer, value) in [("3.5", json!(3.5)), ("null", Value::Null), (r#"[{"a": 1}]"#, json!([{"a": 1}]))]
    {
        let model = ScriptedModel::new([format!(r#"{{"result": {answer}}}"#)]).with_info(native());
        let assistant = Assistant::builder(model).build().unwrap();
        let output = assistant.prompt("?").output_schema(OutputSchema::new("any", json!({}))).await.unwrap();
        assert_eq!(output.value, value);
    }
}

#[test]
fn model_and_thinking_can_be_read() {
    let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]).with_info(native()))
        .request(|request| request.with_thinking(Thinking::Low))
        .build()
        .unwrap();
    assert_eq!((assistant.model(), assistant.thinking()), (&native(), Some(Thinking::Low)));
    assert_eq!(assistant.fork().thinking(), Some(Thinking::Low));
    let plain = Assistant::builder(ScriptedModel::new(["Hello!"])).build().unwrap();
    assert_eq!(plain.thinking(), None);
}
