//! The model of a turn: chosen by the application, or by a fallback; what each of them gets, and what the events say.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::message::{AssistantMessage, Content, Message, Part, ProviderData, ProviderTool};
use agent::model::{
    Capabilities, ContextRules, Fallback, Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest,
    ModelStream, StepCx, reply,
};
use agent::testing::{Cassette, EventLog};
use agent::{Assistant, AssistantBuilder, EventKind, ScriptedModel, json, tool, tools};

use crate::store_support::Folder;

/// Looks it up.
#[tool(inline, read_only)]
fn look_up() -> &'static str {
    "found"
}

fn model(name: &str) -> ScriptedModel {
    let name = name.to_owned();
    let info = ModelInfo::new(&*name, "acme-chat", &*name);
    ScriptedModel::from_fn(move |request| {
        let last = request.messages.last().unwrap();
        if last.role() == "user" {
            return reply().thinking("hm").tool_call_with_id("c1", "look_up", "{}");
        }
        reply().text(format!("{name} says: {}", last.text()))
    })
    .with_info(info)
}

/// The strong model looks up, and the cheap one answers.
fn two(strong: &ScriptedModel, cheap: &ScriptedModel, asked: &Arc<AtomicU32>) -> AssistantBuilder {
    let asked = asked.clone();
    Assistant::builder(strong.clone())
        .named_model("cheap", cheap.clone())
        .tools(tools![look_up])
        .select_model(move |turn| {
            asked.fetch_add(1, Ordering::Relaxed);
            async move { Ok((turn.turn() > 1).then(|| "cheap".into())) }
        })
}

#[tokio::test]
async fn each_switch_is_an_event_with_what_was_lost() {
    let (strong, cheap, log, asked) = (model("strong"), model("cheap"), EventLog::new(), Arc::default());
    let assistant = two(&strong, &cheap, &asked).on_event(log.listener()).build().unwrap();
    assert_eq!(assistant.prompt("Go.").await.unwrap().text(), "cheap says: found");
    log.assert_sequence(&[
        "turn 2 begins",
        "model strong/strong to cheap/cheap, lost 1 thinking part",
        "message assistant \"cheap says: found\"",
    ]);
    // The thinking of one is not sent to the other, and the call is.
    let sent = &cheap.requests()[0].messages;
    assert!(!format!("{sent:?}").contains("hm") && sent[1].as_assistant().unwrap().tool_calls().count() == 1);
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    // And back.
    assistant.prompt("Again.").await.unwrap();
    log.assert_sequence(&["model cheap/cheap to strong/strong, lost nothing"]);
    let thought = |message: &Message| message.content().iter().any(|part| *part == Part::thinking("hm"));
    let back = strong.requests().pop().unwrap();
    assert!(back.messages.iter().any(|message| thought(message)), "its own thinking is there again");
}

#[tokio::test]
async fn an_unknown_name_and_a_hook_that_fails_are_errors_of_the_run() {
    type Choice = Result<Option<String>, agent::hooks::HookError>;
    let fails: [fn() -> Choice; 3] =
        [|| Ok(Some("none".into())), || Err("no budget".into()), || panic!("no")];
    for (fail, text) in fails.into_iter().zip(["no model named `none`", "no budget", "a hook panicked"]) {
        let builder = Assistant::builder(model("strong")).select_model(move |_| {
            let choice = fail();
            async move { choice }
        });
        let assistant = builder.build().unwrap();
        let error = assistant.prompt("Go.").await.unwrap_err();
        assert_eq!(error.code(), "request", "{error}");
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(assistant.messages().len(), 1);
    }
}

#[tokio::test]
async fn a_durable_run_remembers_the_choice() {
    let rehearse = |asked: &Arc<AtomicU32>| {
        let assistant = two(&model("strong"), &model("cheap"), asked).build().unwrap();
        Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "Go."))
    };
    let asked = Arc::default();
    let run = rehearse(&asked);
    assert_eq!(run.play().await.unwrap().text(), "cheap says: found");
    let steps = run.steps();
    assert!(steps.contains(&"r/1/select/0".to_owned()), "{steps:?}");
    for at in 0..steps.len() {
        let asked = Arc::default();
        let run = rehearse(&asked);
        let outcome = match run.crash_before_step(at).await.unwrap() {
            Some(outcome) => outcome,
            None => run.play().await.unwrap(),
        };
        assert_eq!(
            (outcome.text().as_str(), asked.load(Ordering::Relaxed)),
            ("cheap says: found", 2),
            "{at}"
        );
    }
}

#[tokio::test]
async fn a_fallback_that_answers_is_a_switch_too() {
    let failing = ScriptedModel::from_fn(|request| {
        if request.messages.len() == 1 {
            return reply().text("First.");
        }
        reply().error(ModelError::new(ModelErrorKind::Overloaded, "no capacity"))
    });
    let first = failing.with_info(ModelInfo::new("first", "acme-chat", "first"));
    let second = ScriptedModel::from_fn(|_| reply().text("Second."));
    let second = second.with_info(ModelInfo::new("second", "acme-chat", "second"));
    let log = EventLog::new();
    let assistant =
        Assistant::builder(Fallback::new([first, second])).on_event(log.listener()).build().unwrap();
    assistant.prompt("One.").await.unwrap();
    log.assert_never("model ");
    assert_eq!(assistant.prompt("Two.").await.unwrap().text(), "Second.");
    log.assert_sequence(&[
        "turn 1 begins",
        "turn 1 begins",
        "model first/first to second/second, lost nothing",
    ]);
    assert!(log.events().iter().any(|event| matches!(event.kind, EventKind::ModelSwitched { .. })));
}

/// A model with a known window.
struct Sized(ModelInfo);

impl Model for Sized {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let text = request.messages.len().to_string();
        ModelStream::from_reply(cx, &self.0, async move { Ok(AssistantMessage::from(text)) })
    }

    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn context_window(&self) -> Option<u64> {
        Some(20_000)
    }

    fn max_output(&self) -> Option<u64> {
        Some(4_000)
    }
}

#[tokio::test]
async fn a_cassette_has_the_window_of_the_model_that_it_recorded() {
    let folder = Folder::new();
    let path = folder.path("window.json");
    let recorded = Cassette::record(&path, Sized(ModelInfo::new("acme", "acme-chat", "large")));
    let managed = |model| Assistant::builder(model).manage_context(ContextRules::new()).build();
    let assistant = managed(recorded.clone()).unwrap();
    assistant.prompt("Hi").await.unwrap();
    assert_eq!(assistant.context().usable, Some(16_000));
    let played = Cassette::play(&path).unwrap();
    assert_eq!((played.context_window(), played.max_output()), (Some(20_000), Some(4_000)));
    assert_eq!(managed(played).unwrap().prompt("Hi").await.unwrap().text(), "1");
}

/// A model of this protocol, whose replies have state of it.
fn stateful(provider: &str, api: &str) -> ScriptedModel {
    let (name, data) = (provider.to_owned(), ProviderData::new(provider, json!({"signature": provider})));
    let mut search = ProviderTool::new("web_search");
    (search.id, search.output) = (Some("w1".into()), Some(json!(["found"])));
    let search = Part::new(Content::ProviderTool(Box::new(search))).with_provider_data(data.clone());
    ScriptedModel::from_fn(move |_| {
        let thinking = Part::thinking(format!("hm {name}")).with_provider_data(data.clone());
        reply().part(thinking).part(search.clone()).text(format!("{name} says so"))
    })
    .with_info(ModelInfo::new(provider, api, provider))
}

#[tokio::test]
async fn three_protocols_in_turn_get_their_own_state_back_and_none_of_the_others() {
    let apis = [
        ("anthropic", "anthropic-messages"),
        ("openai", "openai-responses"),
        ("gemini", "gemini-generate-content"),
    ];
    let models = apis.map(|(provider, api)| stateful(provider, api));
    let (log, asked) = (EventLog::new(), Arc::new(AtomicU32::new(0)));
    let names = apis.map(|(provider, _)| provider);
    let assistant = Assistant::builder(models[0].clone())
        .named_model(names[1], models[1].clone())
        .named_model(names[2], models[2].clone())
        .select_model(move |_| {
            let at = asked.fetch_add(1, Ordering::Relaxed) as usize % 3;
            async move { Ok((at > 0).then(|| names[at].into())) }
        })
        .on_event(log.listener())
        .build()
        .unwrap();
    for _ in 0..7 {
        assistant.prompt([Part::text("And this?"), Part::image(vec![1, 2, 3], "image/png")]).await.unwrap();
    }
    for (at, model) in models.iter().enumerate() {
        for (round, request) in model.requests().iter().enumerate() {
            let before = round * 3 + at;
            assert_eq!(request.messages.len(), before * 2 + 1);
            for (number, message) in request.messages.iter().enumerate() {
                if message.role() == "user" {
                    assert!(message.content().iter().any(|part| matches!(part.content, Content::Image(_))));
                    continue;
                }
                let author = number / 2 % 3;
                let (has_data, has_thinking) = (
                    message.content().iter().filter(|part| part.provider_data.is_some()).count(),
                    message.content().iter().any(|part| matches!(part.content, Content::Thinking { .. })),
                );
                // There and back: nothing was lost of its own.
                let own = if author == at { (2, true) } else { (0, false) };
                assert_eq!((has_data, has_thinking), own, "{at} gets message {number}: {message:?}");
                assert!(message.text().contains(&format!("{} says so", apis[author].0)), "{message:?}");
            }
        }
    }
    log.assert_sequence(&[
        "model anthropic/anthropic to openai/openai, lost 1 thinking part",
        "model openai/openai to gemini/gemini, lost 2 thinking parts",
        "model gemini/gemini to anthropic/anthropic, lost 2 thinking parts",
    ]);
}

#[tokio::test]
async fn a_model_of_a_turn_answers_in_a_form_that_it_knows() {
    let mut native = Capabilities::default();
    native.native_output = true;
    let strong = ModelInfo::new("strong", "acme-chat", "strong").with_capabilities(native);
    let cheap = ScriptedModel::new([reply().tool_call("structured_output", r#"{"result": 42}"#)]);
    let assistant = Assistant::builder(ScriptedModel::new([""; 0]).with_info(strong))
        .named_model("cheap", cheap.clone())
        .select_model(|_| async { Ok(Some("cheap".into())) })
        .build()
        .unwrap();
    assert_eq!(assistant.prompt("6 * 7?").output::<u32>().await.unwrap().value, 42);
    assert!(cheap.requests()[0].output.is_none());
}
