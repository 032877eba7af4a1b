//! What a model is shown: tools as its source may see them, results as their tools want them shown, and nothing that it
//! does not take.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent::ScriptedModel;
use agent::message::{Conversation, Message, Part};
use agent::model::{Capabilities, ModelInfo, reply};
use agent::{
    Assistant, Parameters, ToolArgs, ToolBuilder, ToolContext, ToolError, ToolOutput, Value, json,
    tool::Source, tools,
};

use crate::assistant_support::{assert_sound, outline};

struct Admin;

/// A tool with an old name for its parameter, one more parameter for admins, and results that are shown live.
fn list(live: &Arc<AtomicUsize>) -> agent::Tool {
    let live = live.clone();
    ToolBuilder::new("list")
        .description("Lists users.")
        .optional_string("group", "Whose.")
        .prepare(|arguments| {
            if arguments.contains_key("broken") {
                return Err(ToolError::new("cannot be prepared"));
            }
            if let Some(group) = arguments.remove("team") {
                arguments.insert("group".into(), group);
            }
            Ok(())
        })
        .parameters_for(|source| {
            source.get::<Admin>().map(|_| {
                Parameters::new()
                    .optional_string("group", "Whose.")
                    .optional_boolean("deleted", "Those, too.")
            })
        })
        .format_result(move |_, result| {
            let n = live.load(Ordering::SeqCst);
            (n > 0).then(|| vec![Part::text(format!("{} (seen {n} times)", result.text()))])
        })
        .build(|arguments: Value, _cx: ToolContext| async move { arguments.to_string() })
        .unwrap()
}

#[tokio::test]
async fn arguments_are_prepared_before_they_are_checked_and_shown_to_hooks() {
    let model = ScriptedModel::new([
        reply().tool_call("list", r#"{"team": "ops"}"#).tool_call("list", r#"{"broken": 1}"#),
        reply().text("done"),
    ]);
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let write = seen.clone();
    let assistant = Assistant::builder(model)
        .tools(tools![{ list(&Arc::default()) }])
        .before_tool_call(move |call| {
            write.lock().unwrap().push(call.args().clone());
            async { Ok(agent::BeforeCall::Continue) }
        })
        .build()
        .unwrap();
    assistant.prompt("go").await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [json!({"group": "ops"})]);
    assert_eq!(outline(&assistant)[2..4], [r#"list {"group":"ops"}"#, "list failed(prepare_error)"]);
}

#[tokio::test]
async fn the_same_source_is_used_for_showing_checking_and_running() {
    let script = || {
        ScriptedModel::new([
            reply().tool_call("list", r#"{"team": "ops", "deleted": "true"}"#),
            reply().text("done"),
        ])
    };
    let play = async |source: Option<Source>| {
        let model = script();
        let assistant =
            Assistant::builder(model.clone()).tools(tools![{ list(&Arc::default()) }]).build().unwrap();
        let prompt = assistant.prompt("go");
        match source {
            Some(source) => prompt.source(source).await.unwrap(),
            None => prompt.await.unwrap(),
        };
        assert_sound(&assistant);
        (model.requests()[0].tools[0].plan().parameter_names().count(), outline(&assistant)[2].clone())
    };
    let (shown, result) = play(Some(Source::new(Admin))).await;
    assert_eq!((shown, result.as_str()), (2, r#"list {"deleted":true,"group":"ops"}"#));
    let (shown, result) = play(Some(Source::new("nobody"))).await;
    assert_eq!((shown, result.as_str()), (1, "list failed(invalid_arguments)"));
    assert_eq!(play(None).await.0, 1);
}

#[tokio::test]
async fn results_are_shown_live_in_each_request_and_stored_as_they_were() {
    let live = Arc::new(AtomicUsize::new(0));
    let model = ScriptedModel::new([reply().tool_call("list", "{}"), reply().text("a"), reply().text("b")]);
    let assistant = Assistant::builder(model.clone()).tools(tools![{ list(&live) }]).build().unwrap();
    assistant.prompt("go").await.unwrap();
    live.store(7, Ordering::SeqCst);
    assistant.prompt("again").await.unwrap();
    let shown: Vec<String> = model.requests()[1..].iter().map(|request| request.messages[2].text()).collect();
    assert_eq!(shown, ["{}", "{} (seen 7 times)"]);
    assert_eq!(assistant.messages().get(2).unwrap().text(), "{}");
}

#[tokio::test]
async fn a_model_is_sent_only_what_it_takes() {
    let picture = || Part::image(b"png", "image/png");
    let photo = ToolBuilder::new("photo")
        .description("Takes one.")
        .build(move |_: Value, _: ToolContext| async move { ToolOutput::image(b"png", "image/png") });
    let mut text_only = Capabilities::default();
    (text_only.images, text_only.documents, text_only.audio) = (false, false, false);
    let info = ModelInfo::new("local", "chat", "tiny").with_capabilities(text_only);
    let model = ScriptedModel::new([reply().tool_call("photo", "{}"), reply().text("fine")]).with_info(info);
    let assistant = Assistant::builder(model.clone()).tools(tools![{ photo.unwrap() }]).build().unwrap();
    let custom = agent::message::CustomMessage::new("note", Value::Null).with_for_model(vec![picture()]);
    assistant.prompt(vec![Part::text("look"), picture()]).with_message(custom).await.unwrap();
    for message in &*model.requests()[1].messages {
        let said: String = message.content().iter().filter_map(Part::as_text).collect();
        if message.role() != "assistant" {
            assert!(said.contains("a picture was here (image/png, 3 bytes)"), "{}: {said}", message.role());
        }
    }
    assert!(
        assistant.messages().get(0).unwrap().content()[1].as_text().is_none(),
        "the conversation keeps them"
    );
}

#[derive(ToolArgs, Debug, PartialEq)]
struct City {
    name: String,
}

#[tokio::test]
async fn an_answer_of_a_type_is_asked_for_as_the_model_can() {
    let mut native = Capabilities::default();
    native.native_output = true;
    let info = ModelInfo::new("a", "b", "c").with_capabilities(native);
    let model = ScriptedModel::new([r#"{"name": "Paris"}"#]).with_info(info);
    let assistant = Assistant::builder(model.clone()).build().unwrap();
    assert_eq!(assistant.prompt("?").output::<City>().await.unwrap().value.name, "Paris");
    assert!(model.requests()[0].output.is_some() && model.requests()[0].tools.is_empty());
    let model = ScriptedModel::new([reply().tool_call("structured_output", r#"{"name": "Rome"}"#)]);
    let assistant = Assistant::builder(model.clone()).build().unwrap();
    assert_eq!(assistant.prompt("?").output::<City>().await.unwrap().value.name, "Rome");
    assert!(model.requests()[0].output.is_none() && model.requests()[0].tools.len() == 1);
}

#[tokio::test]
async fn a_request_shares_the_conversation_however_long_it_is() {
    let turns = 1000;
    let addresses: Arc<Mutex<(Vec<usize>, usize)>> = Arc::default();
    let seen = addresses.clone();
    let model = ScriptedModel::from_fn(move |request| {
        let mut seen = seen.lock().unwrap();
        let (list, first) = (request.messages.as_ptr().addr(), Arc::as_ptr(&request.messages[0]).addr());
        if seen.0.last() != Some(&list) {
            seen.0.push(list);
        }
        if seen.1 == 0 {
            seen.1 = first;
        }
        assert_eq!(seen.1, first, "messages are shared");
        if request.messages.len() > 2 * turns {
            reply().text("done")
        } else {
            reply().tool_call("list", "{}")
        }
    })
    .without_record();
    let assistant = Assistant::builder(model)
        .tools(tools![{
            ToolBuilder::new("list").description("Lists.").build(|_: Value, _: ToolContext| async {}).unwrap()
        }])
        .without_loop_guard()
        .max_turns(u32::try_from(turns).unwrap() + 1)
        .build()
        .unwrap();
    assistant.prompt("go").await.unwrap();
    assert_eq!(assistant.messages().len(), 2 * turns + 2);
    // It grows in place, by doubling: no request copied it.
    let copies = addresses.lock().unwrap().0.len();
    assert!(copies < 20, "the list of messages was at {copies} places");
    let again: Conversation =
        serde_json::from_str(&serde_json::to_string(&assistant.messages()).unwrap()).unwrap();
    assert!(again.is_sound() && matches!(again.last(), Some(Message::Assistant(_))));
}

/// The report of an answer speaks of what the model did: it wrote text, and called nothing.
#[tokio::test]
async fn an_answer_in_text_that_does_not_fit_is_told_as_an_answer() {
    let mut native = Capabilities::default();
    native.native_output = true;
    let with_schema = ModelInfo::new("a", "b", "c").with_capabilities(native);
    let without = ModelInfo::new("a", "b", "c");
    for (info, end) in [
        (with_schema, "Answer again with this fixed: with JSON alone, no words around it."),
        (without, "Give the answer again with this fixed, as arguments of the tool `structured_output`."),
    ] {
        let model = ScriptedModel::new([r#"{"name": {}}"#, "Paris, I think", "Really Paris"]).with_info(info);
        let assistant = Assistant::builder(model.clone()).build().unwrap();
        let error = assistant.prompt("?").output::<City>().await.unwrap_err();
        let told: Vec<String> =
            model.requests()[1..].iter().map(|request| request.messages.last().unwrap().text()).collect();
        assert!(told[0].starts_with("Invalid answer: 1 problem, attempt 1 of 3.\n1. /name: "), "{}", told[0]);
        assert!(
            told[0].ends_with(&format!("\nFields (? = optional):\n  name: string\n{end}")),
            "{}",
            told[0]
        );
        assert!(
            told[1]
                .starts_with("Invalid answer: 1 problem, attempt 2 of 3.\n1. (answer): plain text, not JSON"),
            "{}",
            told[1]
        );
        // For the developer the faults are enough.
        let text = error.to_string();
        assert!(text.starts_with("the answer does not fit: 1. (answer): plain text, not JSON"), "{text}");
        assert!(!text.contains("Answer again") && !text.contains("structured_output"), "{text}");
    }
}
