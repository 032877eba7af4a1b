//! Attempts of a model in durable runs are the engine's: its client sends each request once.

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::{Assistant, RunStop};

use super::provider_support::{Server, Step, answer, anthropic_stream};

fn busy() -> Vec<Step> {
    let body = r#"{"type":"error","error":{"type":"api_error","message":"busy"}}"#;
    answer(500, &["content-type: application/json"], body)
}

fn good() -> Vec<Step> {
    answer(200, &["content-type: text/event-stream"], anthropic_stream())
}

#[tokio::test]
async fn one_attempt_of_the_engine_is_one_request() {
    let server = Server::new([busy(), busy(), good()]).await;
    let assistant = Assistant::builder(server.anthropic().build().unwrap()).build().unwrap();
    let run = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "Hi"));
    // A rehearsal has one attempt.
    let outcome = run.play().await.unwrap();
    assert_eq!((outcome.stop, server.requests().len()), (RunStop::Error, 1), "{:?}", outcome.detail);
    // In a run without an engine the client tries again by itself.
    assert_eq!(assistant.prompt("Hi").await.unwrap().text(), "Hello");
    assert_eq!(server.requests().len(), 3);
}
