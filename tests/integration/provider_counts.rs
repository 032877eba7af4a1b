//! Counts of tokens by a provider, before a request.

use agent::message::Message;
use agent::model::{Fallback, ManagedTool, Model as _, ModelErrorKind, ModelRequest, StepCx};
use agent::provider::gemini::Gemini;
use agent::provider::http::{HttpModel, HttpModelBuilder};
use agent::{Assistant, CancelToken, ScriptedModel, json, tool, tools};
use serde_json::Value;

use crate::provider_support::*;

/// Signs in.
#[tool]
fn sign_in(#[arg(secret)] password: String) -> usize {
    password.len()
}

/// Returns the path of a recorded HTTP request, and its body.
fn read(request: &str) -> (String, Value) {
    let path = request.split(' ').nth(1).unwrap().to_owned();
    let body = request.split_once("\r\n\r\n").unwrap().1;
    (path, serde_json::from_str(body).unwrap())
}

fn keys(body: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn each_provider_counts_what_a_run_would_send() {
    let model = |name: &str, server: &Server| -> HttpModelBuilder {
        HttpModel::builder(name).base_url(&server.url).key("sk-secret-key").options(quick())
    };
    for (name, path, answered, fields) in [
        (
            "anthropic/claude-sonnet-5",
            "/v1/messages/count_tokens",
            r#"{"input_tokens": 812}"#,
            &["messages", "model", "system", "tool_choice", "tools"][..],
        ),
        (
            "openai-responses/gpt-5",
            "/responses/input_tokens",
            r#"{"object": "response.input_tokens", "input_tokens": 812}"#,
            &["input", "instructions", "model", "tool_choice", "tools"],
        ),
        (
            "gemini/gemini-3-flash-preview",
            "/v1beta/models/gemini-3-flash-preview:countTokens",
            r#"{"totalTokens": 812, "cachedContentTokenCount": 0}"#,
            &["generateContentRequest"],
        ),
    ] {
        let server = Server::new([answer(200, &[], answered)]).await;
        let builder = Assistant::builder(model(name, &server).build().unwrap()).system("Be brief.");
        let assistant = builder
            .tools(tools![sign_in])
            .request(|request| request.with_temperature(0.5).with_max_tokens(300))
            .conversation([Message::user("Hi")].into_iter().collect())
            .build()
            .unwrap();
        assert_eq!(assistant.count_context().await.unwrap(), Some(812), "{name}");
        assert_eq!(assistant.messages().len(), 1, "nothing is added");
        let [request] = &server.requests()[..] else { panic!("one request") };
        assert!(request.contains("sk-secret-key") && !request.contains("event-stream"), "{request}");
        let (sent_to, body) = read(request);
        assert_eq!((sent_to.as_str(), keys(&body)), (path, fields.to_vec()), "{name}");
    }
    let server = Server::new([answer(200, &[], r#"{"totalTokens": 5}"#)]).await;
    let vertex = model("gemini/gemini-3-flash-preview", &server).protocol(Gemini::default().with_version(""));
    let counted = vertex.build().unwrap().count_tokens(&StepCx::new(), &hi()).await.unwrap();
    let (path, body) = read(&server.requests()[0]);
    assert_eq!(
        (counted, path.as_str(), keys(&body)),
        (Some(5), "/models/gemini-3-flash-preview:countTokens", vec!["contents"])
    );
}

#[tokio::test]
async fn a_whole_request_of_gemini_names_its_model() {
    let server = Server::new([answer(200, &[], r#"{"totalTokens": 5}"#)]).await;
    let model = HttpModel::builder("gemini/gemini-3-flash-preview").base_url(&server.url).key("k");
    model.options(quick()).build().unwrap().count_tokens(&StepCx::new(), &hi()).await.unwrap();
    let (_, body) = read(&server.requests()[0]);
    assert_eq!(body["generateContentRequest"]["model"], "models/gemini-3-flash-preview");
    assert!(body["generateContentRequest"]["contents"].is_array());
}

#[tokio::test]
async fn tools_that_anthropic_runs_are_left_out() {
    let server = Server::new([answer(200, &[], r#"{"input_tokens": 9}"#)]).await;
    let request = hi().with_managed_tools([ManagedTool::web_search()]);
    let model = server.anthropic().build().unwrap();
    assert_eq!(model.count_tokens(&StepCx::new(), &request).await.unwrap(), Some(9));
    assert!(!server.requests()[0].contains("web_search"));
}

#[tokio::test]
async fn without_an_endpoint_nothing_is_sent() {
    let server = Server::new([answer(200, &[], "{}")]).await;
    let model = server.openai().build().unwrap();
    assert_eq!(model.count_tokens(&StepCx::new(), &hi()).await.unwrap(), None);
    assert_eq!(ScriptedModel::new(["Hi"]).count_tokens(&StepCx::new(), &hi()).await.unwrap(), None);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_fallback_asks_its_first_model_and_has_the_smallest_window() {
    let server = Server::new([answer(200, &[], r#"{"input_tokens": 9}"#)]).await;
    let large = HttpModel::builder("anthropic/claude-sonnet-5").base_url(&server.url).key("k");
    let large = large.options(quick()).build().unwrap();
    let windows = |model: &HttpModel| model.context_window().unwrap();
    let small = HttpModel::builder("openai/gpt-4o").key("k").build().unwrap();
    assert!(windows(&small) < windows(&large));
    let both = Fallback::new([large, small.clone()]);
    assert_eq!(both.context_window(), small.context_window());
    assert_eq!(both.count_tokens(&StepCx::new(), &hi()).await.unwrap(), Some(9));
    let assistant = Assistant::builder(both).build().unwrap();
    assert_eq!(assistant.context().window, small.context_window());
    // A model whose window is unknown may answer, too.
    let unknown = HttpModel::builder("openai/of-tomorrow").key("k").build().unwrap();
    assert_eq!(Fallback::new([small, unknown]).context_window(), None);
}

#[tokio::test]
async fn what_goes_wrong_is_an_error_without_secrets() {
    let call = agent::message::ToolCall::new("c1", "sign_in", r#"{"password": "hunter2-hunter2"}"#);
    let reply = agent::message::AssistantMessage::new([agent::message::Part::from(call)]);
    let result =
        agent::message::ToolResultMessage::new("c1", "sign_in", agent::message::OutcomeKind::Completed);
    let request = ModelRequest::new([Message::user("Hi"), reply.into(), result.into()])
        .with_tools(agent::Registry::new(tools![sign_in]).unwrap().definitions());
    let quoted =
        r#"{"error": {"type": "invalid_request_error", "message": "not hunter2-hunter2 of sk-secret-key"}}"#;
    for (status, body, expected) in [
        (400, quoted.to_owned(), ModelErrorKind::InvalidRequest),
        (
            401,
            r#"{"error": {"type": "authentication_error", "message": "no"}}"#.to_owned(),
            ModelErrorKind::Auth,
        ),
        (200, "<html>".to_owned(), ModelErrorKind::Protocol),
        (200, json!({"input_tokens": "many"}).to_string(), ModelErrorKind::Protocol),
        (200, " ".repeat(100_000), ModelErrorKind::Protocol),
    ] {
        let server = Server::new([answer(status, &[], &body)]).await;
        let model = server.anthropic().build().unwrap();
        let error = model.count_tokens(&StepCx::new(), &request).await.unwrap_err();
        assert_eq!(error.kind(), expected, "{error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("sk-secret"), "{shown}");
    }
    // Retried like a reply, unless the caller retries.
    let busy = || answer(529, &["retry-after-ms: 1"], "busy");
    let server = Server::new([busy(), answer(200, &[], r#"{"input_tokens": 3}"#)]).await;
    let model = server.anthropic().build().unwrap();
    assert_eq!(model.count_tokens(&StepCx::new(), &hi()).await.unwrap(), Some(3));
    // What the body says decides, too.
    let spent = r#"{"error": {"message": "no money left", "code": "insufficient_quota"}}"#;
    let server = Server::new([answer(429, &[], spent)]).await;
    let model = HttpModel::builder("openai-responses/gpt-5").base_url(&server.url).key("k").options(quick());
    model.build().unwrap().count_tokens(&StepCx::new(), &hi()).await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
    let server = Server::new([busy()]).await;
    let model = server.anthropic().build().unwrap();
    let step = StepCx::new().retried_by_caller();
    let error = model.count_tokens(&step, &hi()).await.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ModelErrorKind::Overloaded, 1));
}

#[tokio::test]
async fn a_cancelled_count_ends() {
    let server = Server::new([vec![head(None), Step::Stall]]).await;
    let cancel = CancelToken::new();
    let step = StepCx::new().with_cancel(cancel.clone());
    let counted = server.anthropic().build().unwrap().count_tokens(&step, &hi());
    let cancelled = async {
        while server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel("enough");
    };
    let (counted, ()) = tokio::join!(counted, cancelled);
    let error = counted.unwrap_err();
    assert!(error.is_aborted() && error.to_string().contains("enough"), "{error}");
}
