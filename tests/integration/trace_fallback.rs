//! Traces of the requests of a fallback.

use std::collections::BTreeSet;

use agent::message::Usage;
use agent::model::{Fallback, ModelError, ModelErrorKind, ModelInfo, ScriptedReply, reply};
use agent::{Assistant, ScriptedModel};

use crate::trace_conventions::{assert_conforms, field, index, traced};
use crate::trace_support::{Span, Traces};

/// Model, kind of error and tokens of input.
type Attempt = (String, Option<String>, Option<String>);

/// The requests of a prompt: model, kind of error and tokens of input, and the index of the span around.
fn attempts(traces: &Traces) -> Vec<(Attempt, usize)> {
    let spans = traces.spans.lock().unwrap();
    let own = |span: &Span, name| field(span, name).map(str::to_owned);
    spans
        .iter()
        .filter(|span| span.name == "chat")
        .map(|span| {
            let name = own(span, "gen_ai.request.model").unwrap();
            ((name, own(span, "error.type"), own(span, "gen_ai.usage.input_tokens")), index(span.parent))
        })
        .collect()
}

#[tokio::test]
async fn each_attempt_of_a_fallback_is_a_request_of_its_own() {
    let named = |name: &str, said: fn() -> ScriptedReply| {
        ScriptedModel::from_fn(move |_| said())
            .with_info(ModelInfo::new("acme", "acme-chat", name).with_server(name, 443))
    };
    let busy = || reply().error(ModelError::new(ModelErrorKind::Overloaded, "a text of the provider"));
    let late = || {
        reply()
            .usage(Usage::new(7, 0))
            .text("Half")
            .error(ModelError::new(ModelErrorKind::Connection, "gone"))
    };
    let good = || reply().text("Because.").usage(Usage::new(120, 34));
    let failed = |name: &str, kind: &str| (name.to_owned(), Some(kind.to_owned()), None);
    let answered = |name: &str| (name.to_owned(), None, Some("120".to_owned()));
    let broken = ("a".to_owned(), Some("transport".to_owned()), Some("7".to_owned()));
    let nested = Fallback::new([named("b", busy), named("c", good)]);
    let nested = Fallback::new([named("a", busy)]).or(nested);
    for (model, wanted) in [
        (Fallback::new([named("a", good), named("b", busy)]), vec![answered("a")]),
        (Fallback::new([named("a", busy), named("b", good)]), vec![failed("a", "overloaded"), answered("b")]),
        (nested, vec![failed("a", "overloaded"), failed("b", "overloaded"), answered("c")]),
        (
            Fallback::new([named("a", busy), named("b", busy)]),
            vec![failed("a", "overloaded"), failed("b", "overloaded")],
        ),
        (Fallback::new([named("a", late), named("b", good)]), vec![broken]),
    ] {
        for is_captured in [false, true] {
            let (traces, _guard) = traced();
            let builder = Assistant::builder(model.clone());
            let builder = if is_captured { builder.capture_content() } else { builder };
            let _ = builder.build().unwrap().prompt("Why?").session_id("s-1").await;
            assert_conforms(&traces);
            let (seen, around): (Vec<_>, BTreeSet<_>) = attempts(&traces).into_iter().unzip();
            assert_eq!(seen, wanted);
            let spans = traces.spans.lock().unwrap();
            let [around] = around.into_iter().collect::<Vec<_>>()[..] else { panic!("{spans:#?}") };
            assert_eq!(spans[around].name, "agent.fallback");
            assert_eq!(spans[index(spans[around].parent)].name, "turn");
            for chat in spans.iter().filter(|span| span.name == "chat") {
                assert_eq!(field(chat, "server.address"), field(chat, "gen_ai.request.model"));
                assert_eq!(field(chat, "gen_ai.conversation.id"), Some("s-1"));
                assert_eq!(field(chat, "gen_ai.input.messages").is_some(), is_captured);
                assert_eq!(field(chat, "gen_ai.output.messages").is_some(), is_captured);
                assert!(
                    field(chat, "error.type").is_some()
                        || field(chat, "gen_ai.response.time_to_first_chunk").is_some()
                );
            }
            let events = traces.events.lock().unwrap();
            let exceptions =
                events.iter().filter(|(_, fields)| fields.contains_key("exception.type")).count();
            assert_eq!(
                exceptions,
                wanted.iter().filter(|(_, error, _)| error.is_some()).count(),
                "one for each"
            );
        }
    }
}

#[tokio::test]
async fn an_attempt_of_a_fallback_that_is_cancelled_ends_so() {
    let (traces, _guard) = traced();
    let info = |name: &str| ModelInfo::new("acme", "acme-chat", name);
    let busy = reply().error(ModelError::new(ModelErrorKind::Overloaded, "busy"));
    let first = ScriptedModel::new([busy]).with_info(info("a"));
    let second = ScriptedModel::new([reply().text("Late").hang()]).with_info(info("b"));
    let assistant = Assistant::builder(Fallback::new([first, second])).build().unwrap();
    let run = assistant.prompt("Why?");
    let run = tokio::time::timeout(std::time::Duration::from_millis(50), run);
    run.await.unwrap_err();
    drop(assistant);
    assert_conforms(&traces);
    let attempts = attempts(&traces);
    let kinds: Vec<_> = attempts.iter().map(|((name, error, _), _)| (&**name, error.as_deref())).collect();
    assert_eq!(kinds, [("a", Some("overloaded")), ("b", Some("cancelled"))]);
}
