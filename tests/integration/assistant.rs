//! The assistant: turns, side-by-side calls, errors, cancelling, events.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::message::{Message, OutcomeKind, Part, StopReason, Usage};
use agent::model::{ModelError, ModelErrorKind, ModelRequest, ScriptedModel, reply, reply_with};
use agent::{
    Assistant, AssistantBuilder, CancelToken, Control, DynamicTool, EventKind, RunError, RunStop,
    ToolContext, ToolError, ToolOutput, ToolSet,
};
use expect_test::expect;
use serde_json::{Value, json};
use tokio::time::sleep;

/// The tools of the worked traces: `double`, `slow` (150 ms, deaf), `fast`, `wait` (until cancelled), `boom`, …
fn tools() -> ToolSet {
    fn tool<F>(name: &str, body: fn(Value, ToolContext) -> F) -> DynamicTool
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let schema = match name {
            "double" => {
                json!({"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]})
            }
            _ => json!({"type": "object"}),
        };
        DynamicTool::new(name, "A tool of a test.", schema, body).unwrap()
    }
    ToolSet::new()
        .with(tool("double", |args, _| async move {
            Ok(ToolOutput::text((args["value"].as_i64().unwrap_or_default() * 2).to_string()))
        }))
        .with(tool("fast", |_, _| async { Ok(ToolOutput::text("fast done")) }))
        .with(tool("slow", |_, _| async {
            sleep(Duration::from_millis(150)).await;
            Ok(ToolOutput::text("slow done"))
        }))
        .with(tool("wait", |_, cx| async move {
            cx.cancelled().await;
            Err(ToolError::new("told to stop"))
        }))
        .with(tool("deaf", |_, _| std::future::pending()))
        .with(tool("boom", |_, _| async { Err(ToolError::new("kaput")) }))
        .with(tool("halt", |_, _| async { Ok(ToolOutput::text("halted").with_control(Control::EndNow)) }))
        .with(tool("finish", |_, _| async {
            Ok(ToolOutput::text("finished").with_control(Control::EndIfAll))
        }))
        .with(tool("key", |_, cx| async move { Ok(ToolOutput::text(cx.idempotency_key())) }))
}

fn assistant(model: &ScriptedModel) -> AssistantBuilder {
    Assistant::builder(model.clone()).tools(tools())
}

fn last(request: &ModelRequest) -> String {
    request.messages.last().map(|message| message.text()).unwrap_or_default()
}

/// Each message in a word or two: what a conversation must hold.
fn outline(assistant: &Assistant) -> Vec<String> {
    let one = |message: &Message| match message {
        Message::User(message) => format!("user {}", message.text()),
        Message::Assistant(message) => {
            let calls: Vec<_> = message.tool_calls().map(|call| call.name.as_str()).collect();
            format!("{} {}{}", message.stop_reason, message.text(), calls.join(","))
        }
        Message::ToolResult(result) => match &result.code {
            None => format!("{} {}", result.tool, result.text()),
            Some(code) => format!("{} {}({code})", result.tool, result.outcome),
        },
        other => other.role().to_owned(),
    };
    assistant.messages().iter().map(one).collect()
}

/// Every call has exactly one result, in call order, right behind its message.
fn assert_sound(assistant: &Assistant) {
    let mut owed = std::collections::VecDeque::new();
    for message in assistant.messages().iter() {
        match message {
            Message::ToolResult(result) => assert_eq!(owed.pop_front().as_ref(), Some(&result.call_id)),
            _ => assert!(owed.is_empty(), "{owed:?} have no result"),
        }
        if let Some(reply) = message.as_assistant().filter(|reply| !reply.stop_reason.is_failure()) {
            owed.extend(reply.tool_calls().map(|call| call.id.clone()));
        }
    }
    assert!(owed.is_empty(), "{owed:?} have no result");
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_goes_back() {
    let model = ScriptedModel::new([
        reply().tool_call("double", r#"{"value": 4}"#).usage(Usage::new(10, 5)),
        reply_with(|request| reply().text(last(request)).usage(Usage::new(20, 1))),
    ]);
    let assistant = assistant(&model).system("Be brief.").build().unwrap();
    let output = assistant.prompt("double 4").await.unwrap();
    assert_eq!((output.text().as_str(), output.turns, output.stop), ("8", 2, RunStop::Completed));
    assert_eq!((output.usage.total, output.messages.len()), (36, 4));
    assert_eq!(outline(&assistant), ["user double 4", "tool_use double", "double 8", "stop 8"]);
    let requests = model.requests();
    assert_eq!(requests[1].system.as_deref(), Some("Be brief."));
    assert_eq!((requests[0].messages.len(), requests[1].messages.len(), requests[0].tools.len()), (1, 3, 9));
    assert!(Arc::ptr_eq(&requests[0].messages[0], &requests[1].messages[0]), "messages are shared");
}

#[tokio::test(start_paused = true)]
async fn calls_run_side_by_side_and_results_keep_their_order() {
    let calls = reply()
        .tool_call("slow", "")
        .tool_call("fast", "{}")
        .tool_call("dubble", r#"{"value": 1}"#)
        .tool_call("double", "{}")
        .tool_call("slow", "{}")
        .tool_call("boom", "{}")
        .tool_call("double", r#"{"value":"#);
    let assistant = assistant(&ScriptedModel::new([calls, reply().text("ok")])).build().unwrap();
    let begun = tokio::time::Instant::now();
    assistant.prompt("go").await.unwrap();
    assert_eq!(begun.elapsed().as_millis(), 150);
    assert_eq!(
        outline(&assistant)[2..9],
        [
            "slow slow done",
            "fast fast done",
            "dubble failed(unknown_tool)",
            "double failed(invalid_arguments)",
            "slow slow done",
            "boom failed(tool_error)",
            "double failed(invalid_arguments)",
        ]
    );
    assert_sound(&assistant);
}

#[tokio::test(start_paused = true)]
async fn at_most_so_many_calls_run_at_once() {
    let many = (0..40).fold(reply(), |reply, _| reply.tool_call("slow", "{}"));
    let assistant = assistant(&ScriptedModel::new([many, reply().text("ok")])).build().unwrap();
    let begun = tokio::time::Instant::now();
    assistant.prompt("go").await.unwrap();
    assert_eq!(begun.elapsed().as_millis(), 450, "40 calls of 150 ms, 16 at a time");
    assert_sound(&assistant);
}

#[tokio::test]
async fn the_events_of_a_run_are_those_of_the_worked_trace() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = seen.clone();
    let model = ScriptedModel::new([
        reply().tool_call_with_id("k1", "dubble", r#"{"value":1}"#).tool_call_with_id("k2", "fast", ""),
        reply().text("ok"),
    ])
    .with_chunk_size(usize::MAX);
    let assistant = assistant(&model)
        .on_event(move |event| record.lock().unwrap().push(serde_json::to_value(event).unwrap()))
        .build()
        .unwrap();
    let output = assistant.prompt("go").await.unwrap();
    let seen = seen.lock().unwrap();
    assert!(
        seen.iter().zip(1..).all(|(event, seq)| event["seq"] == seq && event["run_id"] == *output.run_id)
    );
    let at = |event: &Value, pointer| event.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let line = |event: &Value| {
        let fields =
            ["/update", "/message/role", "/message/call_id", "/message/stop_reason", "/call_id", "/outcome"]
                .into_iter()
                .chain(["/code", "/assistant", "/stop"])
                .filter_map(|pointer| at(event, pointer));
        let words: Vec<_> =
            [event["turn"].to_string()].into_iter().chain(at(event, "/type")).chain(fields).collect();
        words.join(" ") + "\n"
    };
    expect![[r#"
        0 agent_start
        1 turn_start
        1 message_start user
        1 message_end user
        1 message_start assistant stop
        1 message_update tool_call_start
        1 message_update tool_call_delta
        1 message_update tool_call_end
        1 message_update tool_call_start
        1 message_update tool_call_delta
        1 message_update tool_call_end
        1 message_end assistant tool_use
        1 tool_execution_start k1
        1 tool_execution_end k1 failed unknown_tool
        1 tool_execution_start k2
        1 tool_execution_end k2 completed
        1 message_start tool_result k1
        1 message_end tool_result k1
        1 message_start tool_result k2
        1 message_end tool_result k2
        1 turn_end tool_use
        2 turn_start
        2 message_start assistant stop
        2 message_update text_start
        2 message_update text_delta
        2 message_update text_end
        2 message_end assistant stop
        2 turn_end stop
        2 agent_end completed
    "#]]
    .assert_eq(&seen.iter().map(line).collect::<String>());
    assert_eq!(seen[14]["args"], json!({}));
    assert_eq!(seen[15]["content"], json!([{"type": "text", "text": "fast done"}]));
    assert_eq!(seen[20]["tool_results"], json!(["k1", "k2"]));
    assert_eq!(seen[28]["messages"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn the_turn_limit_is_an_error_that_can_be_continued() {
    let model = ScriptedModel::from_fn(|_| reply().tool_call("fast", "{}"));
    let endless = assistant(&model).max_turns(3).build().unwrap();
    let error = endless.prompt("go").await.unwrap_err();
    assert!(error.is_limit());
    assert!(error.to_string().contains("limit of 3 turns"), "{error}");
    assert_sound(&endless);
    assert_eq!(endless.messages().len(), 7);
    let model = ScriptedModel::new([reply().tool_call("fast", "{}"), reply().text("done")]);
    assert_eq!(assistant(&model).max_turns(2).build().unwrap().prompt("go").await.unwrap().text(), "done");
}

#[tokio::test]
async fn a_cut_reply_runs_no_call() {
    let cut = || reply().text("I will").tool_call("fast", "{}").tool_call("double", r#"{"value"#);
    let model = ScriptedModel::new([
        cut().stop_reason(StopReason::MaxTokens),
        cut().usage(Usage::new(5, 100)),
        reply().text("sorry"),
    ]);
    let assistant = assistant(&model).request(|request| request.with_max_tokens(100)).build().unwrap();
    assistant.prompt("go").await.unwrap();
    let outline = outline(&assistant);
    assert_eq!(outline[2..4], ["fast failed(truncated)", "double failed(truncated)"]);
    assert_eq!(outline[5..7], ["fast failed(truncated)", "double failed(truncated)"]);
    assert_sound(&assistant);
}

#[tokio::test]
async fn an_error_of_the_model_keeps_what_had_arrived() {
    let model = ScriptedModel::new([
        reply()
            .text("The answer is")
            .tool_call("fast", "{}")
            .error(ModelError::new(ModelErrorKind::Connection, "lost")),
        reply().text("42").stop_reason(StopReason::Error),
        reply().text("42"),
    ]);
    let assistant = assistant(&model).build().unwrap();
    let error = assistant.prompt("go").await.unwrap_err();
    assert!(error.as_model_error().unwrap().is_connection(), "{error}");
    assert_eq!(outline(&assistant), ["user go", "error The answer isfast"]);
    assert_eq!(
        assistant.messages().last().unwrap().as_assistant().unwrap().error.as_deref(),
        Some("connection: lost")
    );
    assert!(assistant.prompt("again").await.is_err());
    assert_eq!(assistant.prompt("once more").await.unwrap().text(), "42");
    let sent: Vec<_> = model.requests()[2].messages.iter().map(|message| message.text()).collect();
    assert_eq!(sent, ["go", "again", "once more"], "failed replies are left out");
}

#[tokio::test]
async fn a_pause_is_gone_on_from() {
    let model =
        ScriptedModel::new([reply().text("wait").stop_reason(StopReason::Pause), reply().text("here")]);
    let assistant = assistant(&model).build().unwrap();
    assert_eq!(assistant.prompt("go").await.unwrap().text(), "here");
    assert_eq!(model.requests()[1].messages.len(), 2);
}

#[tokio::test]
async fn a_tool_can_end_the_run() {
    let model = ScriptedModel::new([reply().tool_call("fast", "{}").tool_call("halt", "{}")]);
    let output = assistant(&model).build().unwrap().prompt("go").await.unwrap();
    assert_eq!((output.stop, output.turns), (RunStop::Terminated, 1));
    let both = || reply().tool_call("finish", "{}").tool_call("finish", "{}");
    let model = ScriptedModel::new([both().tool_call("fast", "{}"), both()]);
    let output = assistant(&model).build().unwrap().prompt("go").await.unwrap();
    assert_eq!((output.stop, output.turns), (RunStop::Terminated, 2));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_gives_every_call_its_result() {
    let calls = || {
        ["fast", "slow", "wait", "deaf"].into_iter().fold(reply(), |reply, name| reply.tool_call(name, "{}"))
    };
    let assistant = assistant(&ScriptedModel::new([calls(), reply().text("never")])).build().unwrap();
    let token = CancelToken::new();
    let (run, stop) = (assistant.prompt("go").cancel(token.clone()), async {
        sleep(Duration::from_millis(10)).await;
        token.cancel("user stop");
    });
    let (result, ()) = tokio::join!(run.into_future(), stop);
    assert!(matches!(result, Err(RunError::Aborted { reason }) if reason == "user stop"));
    assert_eq!(
        outline(&assistant)[2..],
        ["fast fast done", "slow slow done", "wait interrupted(aborted)", "deaf interrupted(aborted)",]
    );
    assert_sound(&assistant);
    assert_eq!(assistant.prompt("on").await.unwrap().text(), "never");
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_a_place_end_at_once_when_cancelled() {
    let calls = (0..20).fold(reply(), |reply, _| reply.tool_call("wait", "{}"));
    let assistant = assistant(&ScriptedModel::new([calls])).max_concurrency(2).build().unwrap();
    let (asking, canceller) = (assistant.clone(), assistant.clone());
    let run = tokio::spawn(async move { asking.prompt("go").await });
    sleep(Duration::from_secs(1)).await;
    assert!(canceller.is_busy());
    let begun = tokio::time::Instant::now();
    canceller.cancel("enough");
    assert!(run.await.unwrap().unwrap_err().is_aborted());
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(outline(&canceller).iter().filter(|line| line.contains("aborted")).count(), 20);
    assert_sound(&canceller);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_reply_keeps_its_text_and_asks_for_nothing() {
    let model = ScriptedModel::new([reply().text("Once upon").tool_call("fast", "{}").hang()]);
    let assistant = assistant(&model).build().unwrap();
    let (result, ()) = tokio::join!(assistant.prompt("go").into_future(), async {
        sleep(Duration::from_secs(1)).await;
        assistant.cancel("user stop");
    });
    assert!(result.unwrap_err().is_aborted());
    assert_eq!(outline(&assistant), ["user go", "aborted Once uponfast"]);
    let message = assistant.messages();
    assert_eq!(message.last().unwrap().as_assistant().unwrap().error.as_deref(), Some("user stop"));
}

#[tokio::test]
async fn cancelled_before_it_begins() {
    let model = ScriptedModel::new(["never"]);
    let assistant = assistant(&model).build().unwrap();
    let token = CancelToken::new();
    token.cancel("too late");
    assert!(assistant.prompt("go").cancel(token).await.unwrap_err().is_aborted());
    assert_eq!((outline(&assistant), model.requests().len()), (vec!["user go".to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_prompt_leaves_a_sound_conversation_wherever_it_stood() {
    for millis in [5, 50, 200] {
        let model = ScriptedModel::new([
            reply().tool_call("fast", "{}").tool_call("slow", "{}").tool_call("deaf", "{}"),
            reply().text("half").hang(),
        ]);
        let ends = Arc::new(AtomicUsize::new(0));
        let count = ends.clone();
        let assistant = assistant(&model)
            .on_event(move |event| {
                count.fetch_add(
                    usize::from(matches!(event.kind, EventKind::AgentEnd { .. })),
                    Ordering::SeqCst,
                );
            })
            .build()
            .unwrap();
        let run =
            tokio::time::timeout(Duration::from_millis(millis), assistant.prompt("go").into_future()).await;
        assert!(run.is_err(), "it was dropped");
        assert_sound(&assistant);
        assert!(!assistant.is_busy());
        assert_eq!(ends.load(Ordering::SeqCst), 1);
        let lines = outline(&assistant);
        assert_eq!(lines[2], "fast fast done");
        assert_eq!(lines[3] == "slow slow done", millis == 200);
        assert_eq!(lines[4], "deaf interrupted(aborted)");
    }
    let model = ScriptedModel::new([reply().text("half").hang()]);
    let assistant = assistant(&model).build().unwrap();
    let run = tokio::time::timeout(Duration::from_millis(5), assistant.prompt("go").into_future()).await;
    assert!(run.is_err());
    assert_eq!(outline(&assistant), ["user go", "aborted half"]);
}

#[tokio::test(start_paused = true)]
async fn one_prompt_at_a_time_and_reset_waits_for_it() {
    let assistant = assistant(&ScriptedModel::new([reply().tool_call("slow", "{}"), reply().text("ok")]))
        .build()
        .unwrap();
    let first = tokio::spawn({
        let assistant = assistant.clone();
        async move { assistant.prompt("go").await }
    });
    sleep(Duration::from_millis(10)).await;
    assert!(assistant.prompt("me too").await.unwrap_err().is_busy());
    assistant.reset().await;
    assert!(matches!(first.await.unwrap(), Err(RunError::Aborted { reason }) if reason == "reset"));
    assert!(assistant.messages().is_empty());
    assistant.wait_until_idle().await;
    assert_eq!(assistant.prompt("again").await.unwrap().text(), "ok");
}

#[tokio::test]
async fn a_listener_that_panics_is_not_told_again() {
    let told = Arc::new(AtomicUsize::new(0));
    let (first, second) = (told.clone(), told.clone());
    let assistant = assistant(&ScriptedModel::new(["ok"]))
        .on_event(move |event| {
            first.fetch_add(100, Ordering::SeqCst);
            assert!(event.seq < 2, "listener gives up");
        })
        .on_event(move |_| {
            second.fetch_add(1, Ordering::SeqCst);
        })
        .build()
        .unwrap();
    assistant.prompt("go").await.unwrap();
    assert_eq!(told.load(Ordering::SeqCst), 200 + 11);
}

#[tokio::test]
async fn every_call_has_a_key_of_its_own() {
    let model =
        ScriptedModel::new([reply().tool_call("key", "{}").tool_call("key", "{}"), reply().text("ok")]);
    let assistant = assistant(&model).build().unwrap();
    let output = assistant.prompt("go").await.unwrap();
    let keys: Vec<_> =
        output.messages.iter().filter_map(|message| message.as_tool_result()).map(|r| r.text()).collect();
    assert_eq!(keys, [format!("{}/1/tool/0", output.run_id), format!("{}/1/tool/1", output.run_id)]);
}

#[tokio::test]
async fn pictures_and_structured_results_reach_the_model() {
    let picture =
        DynamicTool::new("picture", "Takes a picture.", json!({"type": "object"}), |_: Value, _| async {
            Ok::<_, ToolError>(ToolOutput::image(b"png".to_vec(), "image/png").with_metadata("camera", 2))
        });
    let model = ScriptedModel::new([reply().tool_call("picture", ""), reply().text("nice")]);
    let assistant = Assistant::builder(model.clone()).tools(picture.unwrap()).build().unwrap();
    assistant.prompt([Part::text("look"), Part::image_url("https://example.org/a.png")]).await.unwrap();
    let request = &model.requests()[1];
    let result = request.messages[2].as_tool_result().unwrap();
    assert_eq!(result.content, [Part::image(b"png", "image/png")]);
    assert_eq!(
        (result.outcome.clone(), result.metadata["camera"].clone()),
        (OutcomeKind::Completed, json!(2))
    );
}
