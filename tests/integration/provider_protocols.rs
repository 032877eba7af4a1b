//! Every protocol over the same transport, through the same mishaps.

use std::time::Instant;

use agent::model::{Model as _, ModelErrorKind as K, StepCx};
use agent::provider::http::HttpModel;

use crate::provider_support::*;

async fn ask(
    model: &HttpModel,
) -> (String, Result<agent::message::AssistantMessage, agent::model::ModelError>) {
    drain(model.stream(&StepCx::new(), &hi())).await
}

/// What may happen on the way to the first piece of an answer, and how often it is asked then.
fn mishaps(error_event: &str) -> Vec<(Vec<Step>, &'static str)> {
    let page = "<html><body>502 Bad Gateway</body></html>";
    vec![
        (answer(429, &["retry-after-ms: 1"], "{}"), "429"),
        (answer(429, &["retry-after: 0"], "[]"), "429 with a list"),
        (answer(500, &[], r#"{"error":{"message":"oops"}}"#), "500"),
        (answer(502, &["content-type: text/html"], page), "an HTML page"),
        (answer(408, &[], ""), "408"),
        (answer(503, &[], b"\xFF\xFE"), "a body that is no text"),
        (vec![head(None), send(error_event)], "an error event on a 200"),
        (vec![head(Some(10_000)), send(": hi\n\n"), Step::Reset], "a reset before the reply"),
        (vec![head(None), send(": hi\n\n"), Step::Stall], "a stall before the reply"),
        (vec![Step::Reset], "no answer"),
    ]
}

#[tokio::test]
async fn every_protocol_survives_every_mishap() {
    // Side by side: some mishaps are silence.
    tokio::join!(survives(0), survives(1), survives(2), survives(3));
}

async fn survives(which: usize) {
    let nobody = Server::new([Vec::new()]).await;
    let (_, good, error_event) = nobody.all().into_iter().nth(which).unwrap();
    for (steps, what) in mishaps(error_event) {
        let server = Server::new([steps, answer(200, &[], &good)]).await;
        let (builder, ..) = server.all().into_iter().nth(which).unwrap();
        let model = builder.build().unwrap();
        let api = model.info().api.clone();
        let (text, reply) = ask(&model).await;
        assert_eq!((text.as_str(), reply.unwrap().text().as_str()), ("Hello", "Hello"), "{api}: {what}");
        assert_eq!(server.requests().len(), 2, "{api}: {what}");
    }
    // Once something was handed out, it is kept, and nobody is asked again.
    let good = String::from_utf8(good).unwrap();
    let cut = good.find("Hello\"").or(good.find("lo\"")).unwrap();
    let end = cut + good[cut..].find("\n\n").or(good[cut..].find("\r\n\r\n").map(|at| at + 2)).unwrap() + 2;
    for (step, kind) in [
        (send(error_event), K::Overloaded),
        (Step::Stall, K::Timeout),
        (send("data: {nope\n\n"), K::Protocol),
    ] {
        let server = Server::new([vec![head(None), send(&good[..end]), step]]).await;
        let (builder, ..) = server.all().into_iter().nth(which).unwrap();
        let (text, reply) = ask(&builder.build().unwrap()).await;
        assert_eq!((text.as_str(), reply.unwrap_err().kind()), ("Hello", kind), "{which}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn gemini_says_in_the_body_how_long_to_wait() {
    let body = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow",
        "details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.12s"}]}}"#;
    let server = Server::new([answer(429, &[], body), answer(200, &[], GEMINI)]).await;
    let [.., (builder, _, _)] = server.all();
    let begun = Instant::now();
    assert_eq!(ask(&builder.build().unwrap()).await.1.unwrap().text(), "Hello");
    assert!((120..10_000).contains(&begun.elapsed().as_millis()));
    let requests = server.requests();
    assert!(
        requests[0].starts_with("POST /v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse"),
        "{}",
        requests[0]
    );
    assert!(requests[0].contains("x-goog-api-key: sk-secret-key") && !requests[0].contains("key=sk"));
}

#[tokio::test]
async fn what_a_reply_cost_is_known_where_prices_are() {
    let server = Server::new([answer(200, &[], CHAT)]).await;
    let cost = ask(&server.openai().build().unwrap()).await.1.unwrap().usage.cost.unwrap();
    assert!((cost.total - (7.0 * 2.5 + 2.0 * 10.0) / 1e6).abs() < 1e-12, "{cost:?}");
    let unknown =
        ask(&server.openai().catalogue(agent::provider::Catalogue::default()).build().unwrap()).await.1;
    assert!(unknown.unwrap().usage.cost.is_some());
}
