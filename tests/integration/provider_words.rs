//! What the errors and warnings of a provider say: where, and without what is secret.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use agent::json;
use agent::model::{ManagedTool, Model as _, ModelInfo, ModelRequest, StepCx};
use agent::provider::{Protocol as _, gemini::Gemini, http::HttpModel};

use crate::provider_support::*;
use crate::trace_support::{EveryLine, hear};

async fn ask(
    model: &HttpModel,
) -> (String, Result<agent::message::AssistantMessage, agent::model::ModelError>) {
    drain(model.stream(&StepCx::new(), &hi())).await
}

#[tokio::test]
async fn a_wrong_address_is_named_without_what_is_secret_in_it() {
    let hint = "check `base_url`";
    for (status, body, expected) in [
        (404, r#"{"detail":"Not Found"}"#, hint),
        (404, "<html>not here</html>", hint),
        (405, r#"{"detail":"Method Not Allowed"}"#, hint),
        (200, "<html>welcome</html>", hint),
        (403, "<html>who are you?</html>", hint),
        (400, r#"{"error":{"message":"bad"}}"#, ""),
        (502, "<html>bad gateway</html>", ""),
    ] {
        let server = Server::new([answer(status, &[], body)]).await;
        let url = format!("{}/v9?key=hush#x", server.url).replacen("://", "://u:hush@", 1);
        let model = HttpModel::builder("openai/gpt-4o").base_url(url).key("k").options(quick()).build();
        let text = ask(&model.unwrap()).await.1.unwrap_err().to_string();
        assert!(!text.contains("hush"), "{text}");
        let is_named = text.contains(&format!("{}/v9", server.url)) && text.contains(expected);
        assert_eq!(is_named && text.contains(hint), !expected.is_empty(), "{status} {body}: {text}");
    }
}

#[tokio::test]
async fn short_keys_do_not_spoil_texts() {
    for (key, expected) in
        [("k", "max_tokens is too large for k"), ("k-1234567", "max_tokens is too large for [redacted]")]
    {
        let body = format!(r#"{{"error":{{"message":"max_tokens is too large for {key}"}}}}"#);
        let server = Server::new([answer(400, &[], &body)]).await;
        let told = Arc::new(Mutex::new(String::new()));
        let table = told.clone();
        let options = quick().on_traffic(move |traffic| {
            let mut told = table.lock().unwrap();
            writeln!(told, "{:?}", traffic.kind).unwrap();
        });
        let model =
            HttpModel::builder("openai/gpt-4o").base_url(&*server.url).key(key).options(options).build();
        let error = ask(&model.unwrap()).await.1.unwrap_err();
        assert_eq!(error.message(), expected);
        let told = told.lock().unwrap();
        assert!(told.contains(expected), "{told}");
        assert!(told.contains(r#"("authorization", "[redacted]")"#) && !told.contains("Bearer"), "{told}");
    }
}

#[test]
fn a_limit_that_gemini_lacks_is_left_out_with_a_warning() {
    let log = EveryLine::default();
    let _guard = hear(log.clone());
    let model = ModelInfo::new("gemini", Gemini::API, "gemini-3-pro");
    let request = ModelRequest::default().with_managed_tools([ManagedTool::web_search().max_uses(2)]);
    let http = Gemini::default().encode(&model, &request).unwrap();
    assert_eq!(http.json()["tools"], json!([{"googleSearch": {}}]));
    let text = log.text();
    let warning = text.lines().find(|line| line.starts_with("WARN"));
    assert!(warning.is_some_and(|line| line.contains("max_uses")), "{text}");
}
