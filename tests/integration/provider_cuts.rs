//! Answers that are cut at many places, over real connections: each is the whole reply or a typed error that keeps what came, and
//! half a call is never run. (Every byte of every protocol is cut beside the readers, without connections.)

use std::time::Duration;

use agent::model::{Model as _, ModelErrorKind as K, ModelEvent, StepCx};
use agent::provider::http::HttpOptions;
use agent::{Assistant, tool, tools};
use tokio::task::JoinSet;

use crate::provider_support::*;

/// Adds one.
#[tool]
fn increment(a: u32) -> String {
    format!("it ran with {a}")
}

/// Text, then a call, as each protocol streams it; in the order of [`Server::all`].
fn streams() -> [String; 4] {
    let join = |events: &[&str], end: &str| {
        events.iter().map(|event| format!("data: {event}{end}")).collect::<Vec<_>>().concat()
    };
    [
        join(
            &[
                r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hé"}}],"usage":{"prompt_tokens":3}}"#,
                r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"increment","arguments":"{\"a\""}}]}}]}"#,
                r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
                "[DONE]",
            ],
            "\n\n",
        ),
        join(
            &[
                r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}"#,
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","content":[]}}"#,
                r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hé"}"#,
                r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"t1","name":"increment","arguments":""}}"#,
                r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"a\""}"#,
                r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"t1","name":"increment","arguments":"{\"a\":1}"}}"#,
                r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}"#,
            ],
            "\n\n",
        ),
        join(
            &[
                r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":3}}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hé"}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"increment","input":{}}}"#,
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
                r#"{"type":"content_block_stop","index":1}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#,
                r#"{"type":"message_stop"}"#,
            ],
            "\n\n",
        ),
        join(
            &[
                r#"{"candidates":[{"content":{"parts":[{"text":"Hé"}]}}],"usageMetadata":{"promptTokenCount":3}}"#,
                r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"increment","args":{"a":1}}}]}}]}"#,
                r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3}}"#,
            ],
            "\r\n\r\n",
        ),
    ]
}

/// How an answer ends after what came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// As if it were all.
    Close,
    /// With bytes still promised.
    Short,
    /// By a reset, which may take with it what was under way.
    Abort,
    /// Not at all.
    Stall,
}

/// One answer, cut: what a reader of the model gets, and what an assistant does about it.
async fn cut(which: usize, body: String, at: usize, end: End, options: HttpOptions) {
    let name = format!("protocol {which} cut at {at}, then {end:?}");
    let length = (end == End::Short).then_some(body.len());
    let mut steps = vec![head(length), send(&body.as_bytes()[..at])];
    match end {
        End::Close => {}
        End::Short => steps.push(Step::Reset),
        End::Abort => steps.extend([Step::Wait(Duration::from_millis(5)), Step::Abort]),
        End::Stall => steps.push(Step::Stall),
    }
    let model = |server: &Server| {
        let (builder, ..) = server.all().into_iter().nth(which).unwrap();
        builder.options(options.clone()).build().unwrap()
    };
    let server = Server::new([steps.clone()]).await;
    let mut stream = model(&server).stream(&StepCx::new(), &hi());
    let (mut text, mut told_input, mut error) = (String::new(), 0, None);
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                text.push_str(event.text_delta().unwrap_or_default());
                if let ModelEvent::Usage { usage } = event {
                    told_input = usage.input;
                }
            }
            Err(failed) => error = Some(failed),
        }
    }
    assert!("Hé".starts_with(&text), "{name}: {text:?}");
    // Counts that came are told, whatever the connection does then.
    if end != End::Abort && which != 1 && !text.is_empty() {
        assert_eq!(told_input, 3, "{name}");
    }
    let partial = stream.into_partial();
    assert_eq!(partial.text(), text, "{name}");
    assert!(partial.tool_calls().all(|call| call.args.text() == r#"{"a":1}"#), "{name}: half a call");
    let is_whole = error.is_none();
    if let Some(error) = error {
        let kinds: &[K] = match end {
            End::Close => &[K::Protocol],
            End::Short => &[K::Connection],
            End::Abort => &[K::Connection, K::Protocol],
            End::Stall => &[K::Timeout],
        };
        assert!(kinds.contains(&error.kind()) && error.is_retryable(), "{name}: {error:?}");
        assert!(at < body.len() || end == End::Abort, "{name}: {error:?}");
    }

    // The reply that follows says that the call was answered.
    let (_, good, _) = server.all().into_iter().nth(which).unwrap();
    let server = Server::new([steps, answer(200, &[], good)]).await;
    let assistant = Assistant::builder(model(&server)).tools(tools![increment]).build().unwrap();
    let run = assistant.prompt("Hi").await;
    let ran = server.requests().get(1).is_some_and(|request| request.contains("it ran with 1"));
    assert_eq!(run.is_ok(), ran, "{name}: {run:?}");
    assert_eq!(server.requests().len(), 1 + usize::from(ran), "{name}");
    assert!(ran == is_whole || end == End::Abort, "{name}");
    let cut_early = body.len() - at > 200;
    assert!(!(ran && cut_early), "{name}: a call was run before the reply said that it was whole");
}

#[tokio::test]
async fn an_answer_that_is_cut_anywhere_is_whole_or_an_error_and_half_a_call_is_never_run() {
    let options = quick().with_max_retries(0).with_idle_timeout(Duration::from_secs(1));
    let mut cuts = JoinSet::new();
    for (which, body) in streams().into_iter().enumerate() {
        // A step that falls on every place of an event in turn, and the ends of all events.
        let sampled = (0..body.len()).step_by(37);
        let ends = body.match_indices("data: ").map(|(at, _)| at).chain([body.len()]);
        for at in sampled.chain(ends) {
            for end in [End::Close, End::Short, End::Abort, End::Stall] {
                while cuts.len() >= 96 {
                    cuts.join_next().await.unwrap().unwrap();
                }
                cuts.spawn(cut(which, body.clone(), at, end, options.clone()));
            }
        }
    }
    while let Some(done) = cuts.join_next().await {
        done.unwrap();
    }
}
