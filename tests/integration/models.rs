//! The scripted model, through the trait.

use std::sync::Arc;

use agent::ScriptedModel;
use agent::message::{Message, Part, ProviderData, StopReason, Usage};
use agent::model::{Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, StepCx, reply, reply_with};

fn ask(text: &str) -> ModelRequest {
    ModelRequest::new([Message::user(text)])
}

#[tokio::test]
async fn a_script_is_played_in_order_and_recorded() {
    let model = ScriptedModel::new([
        reply().thinking("hm").tool_call("get_weather", r#"{"city":42}"#).tool_call("now", ""),
        reply_with(|request| reply().text(request.messages[0].text()).usage(Usage::new(7, 1))),
    ]);
    let shared: Arc<dyn Model> = Arc::new(model.clone());
    let first = shared.call(&StepCx::new(), &ask("one")).await.unwrap();
    let calls: Vec<_> = first.tool_calls().map(|call| (&*call.id, &*call.name, call.args.text())).collect();
    assert_eq!(calls, [("call_1", "get_weather", r#"{"city":42}"#), ("call_2", "now", "{}")]);
    assert_eq!(first.stop_reason, StopReason::ToolUse);
    assert_eq!(first.provider, "scripted");
    let second = shared.call(&StepCx::new(), &ask("two")).await.unwrap();
    assert_eq!((second.text(), second.usage.total), ("two".to_owned(), 8));
    let asked: Vec<_> = model.requests().iter().map(|request| request.messages[0].text()).collect();
    assert_eq!(asked, ["one", "two"]);
    assert_eq!(model.remaining(), 0);
    let error = shared.call(&StepCx::new(), &ask("three")).await.unwrap_err();
    assert_eq!(error.message(), "the script has 2 replies, and this is request 3");
    let unrecorded = ScriptedModel::new(["Hello!"]).without_record();
    unrecorded.call(&StepCx::new(), &ask("one")).await.unwrap();
    let error = unrecorded.call(&StepCx::new(), &ask("two")).await.unwrap_err();
    assert_eq!(error.message(), "the script has 1 reply, and this is request 2");
}

#[tokio::test]
async fn text_comes_in_pieces_and_arguments_too() {
    let model =
        ScriptedModel::new([reply().text("grüße aus Köln").tool_call("f", r#"{"a":1}"#)]).with_chunk_size(5);
    let mut stream = model.stream(&StepCx::new(), &ask("hi"));
    let mut deltas = Vec::new();
    while let Some(event) = stream.next().await {
        deltas.extend(event.unwrap().delta().map(str::to_owned));
    }
    assert_eq!(deltas, ["grüße", " aus ", "Köln", r#"{"a":"#, "1}"]);
    assert_eq!(stream.reply().await.unwrap().text(), "grüße aus Köln");
}

#[tokio::test]
async fn parts_keep_their_provider_data() {
    let signed = Part::thinking("hm").with_provider_data(ProviderData::new("acme", "sig"));
    let hidden = Part::redacted_thinking(ProviderData::new("acme", "secret"));
    let model = ScriptedModel::new([reply().part(signed.clone()).part(hidden.clone()).text("ok")])
        .with_info(ModelInfo::new("acme", "acme-chat", "a-1"));
    let message = model.call(&StepCx::new(), &ask("hi")).await.unwrap();
    assert_eq!(message.content, [signed, hidden, Part::text("ok")]);
    assert_eq!(message.api, "acme-chat");
}

#[tokio::test]
async fn errors_come_after_the_parts() {
    let lost = ModelError::new(ModelErrorKind::Connection, "lost");
    let model = ScriptedModel::new([reply().text("The answer is").error(lost)]);
    let mut stream = model.stream(&StepCx::new(), &ask("hi"));
    let mut end = None;
    while let Some(event) = stream.next().await {
        end = Some(event);
    }
    assert!(end.unwrap().unwrap_err().is_connection());
    assert_eq!(stream.partial().text(), "The answer is");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_reply_is_ended_by_its_token() {
    let model = ScriptedModel::new([reply().text("wait").hang()]);
    let cx = StepCx::new();
    let token = cx.cancel.clone();
    let asked = tokio::spawn(model.call(&cx, &ask("hi")));
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(!asked.is_finished());
    token.cancel("user stop");
    let error = asked.await.unwrap().unwrap_err();
    assert!(error.is_aborted() && error.message() == "user stop", "{error}");
}

#[tokio::test]
async fn a_function_answers_for_ever_and_may_look_at_the_requests() {
    let model = ScriptedModel::from_fn(|request| reply().text(format!("{}!", request.messages[0].text())));
    for text in ["a", "b", "c"] {
        assert_eq!(model.call(&StepCx::new(), &ask(text)).await.unwrap().text(), format!("{text}!"));
    }
    let (inner, outer) = (model.clone(), model.clone());
    let nosy = ScriptedModel::new([reply_with(move |_| reply().text(inner.requests().len().to_string()))]);
    assert_eq!(nosy.call(&StepCx::new(), &ask("?")).await.unwrap().text(), "3");
    assert_eq!(outer.requests().len(), 3);
}
