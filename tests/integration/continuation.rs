//! Replies that are not the end: pauses of providers, and answers that their token limit cut.

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::hooks::Hooks;
use agent::message::{CustomMessage, Message, Part, StopReason, Usage};
use agent::model::{ModelError, ModelErrorKind, ModelRequest, OutputSchema, ScriptedReply, reply};
use agent::run::Limit;
use agent::store::MemoryStore;
use agent::testing::EventLog;
use agent::{Assistant, AssistantBuilder, EventKind, RunError, RunStop, ScriptedModel, json, tool, tools};

use crate::assistant_support::assert_sound;

/// Adds two numbers.
#[tool(inline)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

fn builder(model: &ScriptedModel) -> AssistantBuilder {
    Assistant::builder(model.clone()).tools(tools![add]).request(|request| request.with_max_tokens(100))
}

fn cut(text: &str) -> ScriptedReply {
    reply().text(text).stop_reason(StopReason::MaxTokens)
}

fn last(request: &ModelRequest) -> String {
    request.messages.last().unwrap().text()
}

#[tokio::test]
async fn a_provider_that_pauses_without_end_ends_the_run() {
    for (pauses, is_completed) in [(10, true), (11, false)] {
        let paused = (0..pauses).map(|_| reply().text("wait").stop_reason(StopReason::Pause));
        let model = ScriptedModel::new(paused.chain([reply().text("here")]));
        let assistant = builder(&model).build().unwrap();
        match assistant.prompt("go").await {
            Ok(output) => assert!(is_completed && output.text() == "here", "{pauses}"),
            Err(RunError::Limit(reached)) => {
                assert!(!is_completed, "{pauses}");
                assert_eq!(
                    (reached.limit, reached.allowed, reached.used),
                    (Limit::Continuations, 10.0, 11.0)
                );
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(model.requests().len(), 11);
        assert_sound(&assistant);
    }
    // Calls between pauses are progress.
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        ..30 if request.messages.len() % 3 == 1 => reply().text("wait").stop_reason(StopReason::Pause),
        ..30 => reply().tool_call("add", json!({"a": request.messages.len(), "b": 1})),
        _ => reply().text("done"),
    });
    assert_eq!(builder(&model).build().unwrap().prompt("go").await.unwrap().text(), "done");
}

#[tokio::test]
async fn a_cut_text_is_continued_as_often_as_asked() {
    let model = |cuts: usize| {
        ScriptedModel::from_fn(move |request| {
            let at = request.messages.iter().filter(|message| message.as_assistant().is_some()).count();
            let text = format!("{at} ");
            if at < cuts { cut(&text) } else { reply().text(text) }
        })
    };
    for (cuts, times, text, requests) in
        [(1, 0, "0 ", 1), (1, 1, "0 1 ", 2), (2, 1, "0 1 ", 2), (3, 3, "0 1 2 3 ", 4), (9, 3, "0 1 2 3 ", 4)]
    {
        let model = model(cuts);
        let log = EventLog::new();
        let assistant = builder(&model).continue_length(times).on_event(log.listener()).build().unwrap();
        let output = assistant.prompt("Count.").await.unwrap();
        let continued = log.events().into_iter().filter_map(|event| match event.kind {
            EventKind::ReplyContinued { count, .. } => Some(count as usize),
            _ => None,
        });
        assert_eq!(continued.collect::<Vec<_>>(), (1..requests).collect::<Vec<_>>());
        assert_eq!((output.text().as_str(), model.requests().len()), (text, requests), "{cuts} {times}");
        assert_eq!((output.stop, output.turns as usize), (RunStop::Completed, requests));
        assert_sound(&assistant);
        let asked = model.requests();
        assert!(asked.iter().skip(1).all(|request| last(request).contains("exactly where it ends")));
        assert!(asked.iter().all(|request| request.max_tokens == Some(100)));

        // A durable run does the same, wherever its process dies.
        let service = || {
            let assistant = builder(&model).continue_length(times).build().unwrap();
            Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "Count."))
        };
        let run = service();
        let outcome = run.play().await.unwrap();
        assert_eq!(outcome.text(), text);
        for at in 0..run.steps().len() {
            let run = service();
            let outcome = match run.crash_before_step(at).await.unwrap() {
                Some(outcome) => outcome,
                None => run.play().await.unwrap(),
            };
            assert_eq!(outcome.text(), text, "{cuts} {times}, at step {at}");
        }
    }
}

#[tokio::test]
async fn a_session_that_stopped_within_an_answer_continues_it() {
    let store = MemoryStore::new();
    let open = |model: &ScriptedModel| builder(model).continue_length(2).store(store.clone()).session("ann");
    let first = ScriptedModel::from_fn(|request| {
        assert!(request.messages.len() == 1, "the process dies here");
        cut("Once ")
    });
    let ann = open(&first).await.unwrap();
    assert!(ann.prompt("Tell me.").await.is_err());
    let second = ScriptedModel::new([reply().text("And then.")]);
    let ann = open(&second).await.unwrap();
    let output = ann.prompt("Well?").await.unwrap();
    assert_eq!(output.text(), "And then.");
    assert_sound(&ann);
}

#[tokio::test]
async fn a_message_of_the_user_takes_precedence_over_the_rest_of_an_answer() {
    let model = ScriptedModel::new([cut("Once "), reply().text("Sorry.")]);
    let assistant = builder(&model).continue_length(2).build().unwrap();
    let mut run = assistant.prompt("Tell me.").stream();
    while let Some(event) = run.next().await {
        if event.text_delta().is_some()
            && assistant.queued(agent::run::Queue::Steering).is_empty()
            && event.turn == 1
        {
            assistant.steer("Stop.");
        }
    }
    assert_eq!(last(&model.requests()[1]), "Stop.");
    assert_eq!(run.output().await.unwrap().text(), "Sorry.");
}

#[tokio::test]
async fn what_cannot_be_continued_by_text_is_asked_for_again_with_more_room() {
    let half = || reply().text("I add").tool_call("add", r#"{"a": 1, "b"#).stop_reason(StopReason::MaxTokens);
    let thinking = || reply().part(Part::thinking("Hm")).stop_reason(StopReason::MaxTokens);
    let call = || reply().tool_call("add", json!({"a": 1, "b": 2}));
    for first in [half(), thinking()] {
        let first = std::sync::Mutex::new(Some(first.usage(Usage::new(10, 100))));
        let model = ScriptedModel::from_fn(move |request| {
            if last(request) == "3" {
                reply().text("3.")
            } else {
                first.lock().unwrap().take().unwrap_or_else(call)
            }
        });
        let assistant = builder(&model).continue_length(1).build().unwrap();
        let output = assistant.prompt("1 + 2?").await.unwrap();
        assert_eq!((output.text().as_str(), output.usage.output), ("3.", 100));
        let asked = model.requests();
        let room: Vec<_> = asked.iter().map(|request| request.max_tokens.unwrap()).collect();
        assert_eq!(room, [100, 200, 100], "more room for one turn only");
        assert_eq!(asked[1].messages.len(), 1, "the first reply is not sent");
        assert_sound(&assistant);
    }
    // Once only, and the call of the second reply does not count, as ever.
    let model =
        ScriptedModel::from_fn(
            move |request| {
                if request.messages.len() > 2 { reply().text("I cannot.") } else { half() }
            },
        );
    let assistant = builder(&model).continue_length(3).build().unwrap();
    assert_eq!(assistant.prompt("1 + 2?").await.unwrap().text(), "I cannot.");
    let room: Vec<_> = model.requests().iter().map(|request| request.max_tokens.unwrap()).collect();
    assert_eq!(room, [100, 200, 100]);
    let assistant = builder(&model).continue_length(3).build().unwrap();
    let run = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "1 + 2?"));
    assert_eq!(run.play().await.unwrap().text(), "I cannot.");
    assert_eq!(run.steps().iter().filter(|step| step.ends_with("/room")).count(), 1, "{:?}", run.steps());
    // A reply that failed did not need more room, however much of its limit it had used.
    let error = || ModelError::new(ModelErrorKind::Other, "broken off");
    let model = ScriptedModel::from_fn(move |_| thinking().usage(Usage::new(10, 100)).error(error()));
    let assistant = builder(&model).continue_length(3).build().unwrap();
    assert!(
        matches!(assistant.prompt("1 + 2?").await, Err(RunError::Model(error)) if error.message() == "broken off")
    );
    assert_eq!(model.requests().len(), 1);
    // Without a limit of the request there is nothing to double.
    let model = ScriptedModel::new([thinking()]);
    let assistant = Assistant::builder(model.clone()).continue_length(3).build().unwrap();
    assert_eq!(assistant.prompt("1 + 2?").await.unwrap().text(), "");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn structured_output_is_never_joined() {
    let replies = || [cut(r#"{"result": 4"#), reply().text(r#"{"result": 42}"#)];
    let model = ScriptedModel::new(replies());
    let assistant = builder(&model).continue_length(2).build().unwrap();
    assert_eq!(assistant.prompt("6 * 7?").output::<u32>().await.unwrap().value, 42);
    assert_eq!(model.requests()[1].max_tokens, Some(200));
    let model = ScriptedModel::new(replies());
    let schema = OutputSchema::new("number", json!({"type": "integer"}));
    let assistant = Assistant::builder(model.clone())
        .continue_length(2)
        .request(|request| request.with_max_tokens(100).with_output(schema))
        .build()
        .unwrap();
    let output = assistant.prompt("6 * 7?").await.unwrap();
    assert_eq!(output.answer, Some(json!(42)));
    assert!(output.messages.iter().all(|message| !matches!(&**message, Message::Custom(_))));
}

#[tokio::test]
async fn a_window_that_is_full_and_a_refusal_are_not_continued() {
    for stop in [StopReason::ContextFull, StopReason::ContentFilter] {
        let model = ScriptedModel::new([reply().text("Once").stop_reason(stop)]);
        let assistant = builder(&model).continue_length(2).build().unwrap();
        assert_eq!(assistant.prompt("Tell me.").await.unwrap().text(), "Once");
        assert_eq!(model.requests().len(), 1);
    }
}

#[tokio::test]
async fn hooks_that_hide_messages_of_the_application_do_not_hide_the_question_for_the_rest() {
    struct Hidden;
    impl Hooks for Hidden {
        fn convert(&self, _: &CustomMessage) -> Option<Vec<Part>> {
            None
        }
    }
    let model = ScriptedModel::new([cut("Once "), reply().text("upon")]);
    let assistant = builder(&model).hooks(Hidden).continue_length(2).build().unwrap();
    assert_eq!(assistant.prompt("Tell me.").await.unwrap().text(), "Once upon");
    assert!(last(&model.requests()[1]).contains("exactly where it ends"));
}
