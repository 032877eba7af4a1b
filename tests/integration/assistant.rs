//! The assistant: turns, side-by-side calls, errors of the model, events.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent::message::{OutcomeKind, Part, StopReason, ToolResultMessage, Usage};
use agent::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest, reply, reply_with};
use agent::{
    Assistant, EventKind, Progress, RunStop, ScriptedModel, Tool, ToolBuilder, ToolContext, ToolError,
    ToolOutput, ToolSet,
};
use expect_test::expect;
use serde_json::{Value, json};

use crate::assistant_support::{assert_sound, assistant, outline};

fn last(request: &ModelRequest) -> String {
    request.messages.last().map(|message| message.text()).unwrap_or_default()
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

#[tokio::test]
async fn ends_keep_their_order_while_progress_is_read() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let opened = gate.clone();
    let waits = ToolBuilder::new("waits").description("Waits.").build(move |_: Value, _: ToolContext| {
        let opened = opened.clone();
        async move {
            opened.notified().await;
            "opened"
        }
    });
    let reports = ToolBuilder::new("reports").description("Reports.");
    let reports = reports.build(|_: Value, cx: ToolContext| async move {
        cx.progress(Progress::new("begun"));
        "reported"
    });
    let model =
        ScriptedModel::new([reply().tool_call("waits", "{}").tool_call("reports", "{}"), reply().text("ok")]);
    let tools = ToolSet::new().with(waits.unwrap()).with(reports.unwrap());
    let mut run = Assistant::builder(model).tools(tools).build().unwrap().prompt("go").stream();
    let mut ends = Vec::new();
    while let Some(event) = run.next().await {
        match &event.kind {
            // The second call has ended here, and its end is not recorded yet.
            EventKind::ToolExecutionUpdate { .. } => gate.notify_one(),
            EventKind::ToolExecutionEnd { result, .. } => ends.push(result.tool.clone()),
            _ => {}
        }
    }
    assert_eq!(ends, ["reports", "waits"]);
}

#[tokio::test(start_paused = true)]
async fn at_most_so_many_calls_run_at_once() {
    let many = (0..40).fold(reply(), |reply, _| reply.tool_call("slow", "{}"));
    let model = ScriptedModel::new([many, reply().text("ok")]);
    let assistant = assistant(&model).without_loop_guard().build().unwrap();
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
    expect![[r"
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
    "]]
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
    assert_eq!(assistant.messages().last().unwrap().as_assistant().unwrap().error.as_deref(), Some("lost"));
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
    let output = assistant(&model).without_loop_guard().build().unwrap().prompt("go").await.unwrap();
    assert_eq!((output.stop, output.turns), (RunStop::Terminated, 2));
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
    let results = output.messages.iter().filter_map(|message| message.as_tool_result());
    let keys: Vec<_> = results.map(ToolResultMessage::text).collect();
    assert_eq!(keys, [format!("{}/1/tool/0", output.run_id), format!("{}/1/tool/1", output.run_id)]);
}

#[tokio::test]
async fn pictures_and_structured_results_reach_the_model() {
    let picture = Tool::new("picture", "Takes a picture.", json!({"type": "object"}), |_: Value, _| async {
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

#[tokio::test]
async fn a_part_that_comes_whole_is_told_when_it_comes() {
    let picture = Part::image(vec![1, 2, 3], "image/png");
    let model = ScriptedModel::new([
        reply().text("Look:").part(picture.clone()).text("A point."),
        reply().part(picture.clone()),
    ]);
    let assistant = assistant(&model).build().unwrap();
    let told = async |prompt: &str| {
        let mut run = assistant.prompt(prompt).stream();
        let mut told = Vec::new();
        while let Some(event) = run.next().await {
            match &event.kind {
                EventKind::MessageStart { message, .. } if message.as_assistant().is_some() => {
                    told.push("begins".to_owned());
                }
                EventKind::MessageUpdate { update: ModelEvent::Part { content_index, part, .. }, .. } => {
                    assert_eq!(**part, picture);
                    told.push(format!("picture {content_index}"));
                }
                EventKind::MessageUpdate { update: ModelEvent::TextStart { content_index, .. }, .. } => {
                    told.push(format!("text {content_index}"));
                }
                _ => {}
            }
        }
        told
    };
    assert_eq!(told("draw").await, ["begins", "text 0", "picture 1", "text 2"]);
    // Also where there is nothing else.
    assert_eq!(told("again").await, ["begins", "picture 0"]);
}
