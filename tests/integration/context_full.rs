//! Replies that end because the window does: the conversation is compacted, and the request is made once more.

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::message::{Conversation, Message, StopReason, Usage};
use agent::model::{ModelError, ModelErrorKind, ModelRequest, ScriptedReply, reply};
use agent::run::Limit;
use agent::store::MemoryStore;
use agent::testing::EventLog;
use agent::{Assistant, AssistantBuilder, EventKind, RunError, RunStop, ScriptedModel, UsageLimits, json};

use crate::assistant_support::assert_sound;
use crate::context_runs::{builder, is_summary, next_reply, rules, tokens};

/// Begins with a text and a call, and ends where the window does.
fn half(request: &ModelRequest) -> ScriptedReply {
    let call = reply().text("I go on").tool_call_with_id("half", "read_page", json!({"number": 1}));
    call.stop_reason(StopReason::ContextFull).usage(Usage::new(tokens(request), 5))
}

/// Reads pages in a window that is smaller than the rules say.
fn small_window(limit: u64, pages: u32) -> ScriptedModel {
    ScriptedModel::from_fn(move |request| {
        if !is_summary(request) && tokens(request) > limit {
            half(request)
        } else {
            next_reply(request, pages)
        }
    })
}

#[tokio::test]
async fn the_request_is_made_again_with_fewer_messages_and_the_half_reply_counts_for_nothing_but_its_tokens()
{
    let (model, log, store) = (small_window(3_000, 12), EventLog::new(), MemoryStore::new());
    let open = |model: &ScriptedModel| builder(model.clone()).manage_context(rules()).store(store.clone());
    let assistant = open(&model).on_event(log.listener()).session("book").await.unwrap();
    let output = assistant.prompt("Read 12 pages.").await.unwrap();
    assert_eq!((output.text().as_str(), output.stop), ("I read 12 pages.", RunStop::Completed));
    let failed: Vec<_> = assistant
        .messages()
        .iter()
        .filter_map(Message::as_assistant)
        .filter(|reply| reply.stop_reason.is_failure())
        .map(|reply| reply.error.clone().unwrap_or_default())
        .collect();
    assert!(!failed.is_empty());
    let expected = "the reply was cut before it was complete, so the request was made again";
    assert!(failed.iter().all(|error| error == expected), "{failed:?}");
    assert_sound(&assistant);
    let asked = model.requests();
    assert!(
        asked
            .iter()
            .all(|request| request.messages.iter().all(|message| !message.text().ends_with("I go on")))
    );
    // Every message that began has ended, also the half one, and its tokens are counted.
    let kinds = |name: &str| log.events().iter().filter(|event| json!(event)["type"] == name).count();
    assert_eq!(kinds("message_start"), kinds("message_end"));
    let input: u64 = asked.iter().map(tokens).sum();
    assert_eq!(output.usage.input, input);
    assert_eq!(kinds("tool_execution_start"), 12, "the call of the half reply did not run");

    // What is stored is the same conversation, and the next process continues it.
    let next = small_window(3_000, 0);
    let again = open(&next).session("book").await.unwrap();
    assert_eq!(again.messages().len(), assistant.messages().len());
    again.prompt("Thanks.").await.unwrap();
}

#[tokio::test]
async fn a_window_that_is_full_again_is_an_error_of_the_context() {
    let model =
        ScriptedModel::from_fn(
            |request| {
                if is_summary(request) { next_reply(request, 1) } else { half(request) }
            },
        );
    let long: Conversation = (0..10)
        .flat_map(|turn| {
            [Message::user(format!("{turn}: {}", "why ".repeat(300))), Message::assistant("Because.")]
        })
        .collect();
    let assistant = builder(model.clone()).manage_context(rules()).conversation(long).build().unwrap();
    let error = assistant.prompt("And now?").await.unwrap_err();
    assert!(matches!(error, RunError::Context { .. }), "{error}");
    assert!(error.to_string().contains("the context window was full"), "{error}");
    assert_sound(&assistant);
}

#[tokio::test]
async fn without_management_the_reply_is_one_that_was_cut() {
    let model = ScriptedModel::from_fn(|request| match request.messages.last() {
        Some(last) if last.role() == "tool_result" => reply().text("Once more."),
        _ => half(request),
    });
    let assistant = builder(model.clone()).build().unwrap();
    let output = assistant.prompt("Read.").await.unwrap();
    assert_eq!(output.text(), "Once more.");
    let result = assistant.messages().iter().find_map(|message| message.as_tool_result().cloned()).unwrap();
    assert_eq!(result.code.as_deref(), Some("truncated"));
}

#[tokio::test]
async fn a_durable_run_makes_the_request_again_in_a_step_of_its_own() {
    let model = small_window(3_000, 12);
    let assistant = builder(model.clone()).manage_context(rules()).build().unwrap();
    let run = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "Read."));
    let outcome = run.play().await.unwrap();
    assert_eq!((outcome.text().as_str(), outcome.stop), ("I read 12 pages.", RunStop::Completed));
    assert!(run.steps().iter().any(|step| step.ends_with("/again")), "{:?}", run.steps());
}

/// Refuses the first request of a run as too long.
fn refuses_once() -> ScriptedModel {
    ScriptedModel::from_fn(|request| {
        if is_summary(request) {
            return reply().text(r#"{"goal": "Know why", "open": ["Why"]}"#);
        }
        if request.messages.iter().any(|message| message.text().starts_with("<summary>")) {
            return reply().text("Because.");
        }
        reply().error(ModelError::new(ModelErrorKind::ContextTooLong, "too long"))
    })
}

fn long_chat() -> Conversation {
    let pair =
        |at| [Message::user(format!("Question {at}: {}", "why ".repeat(220))), Message::assistant("x")];
    (0..20).flat_map(pair).collect()
}

fn at_most(requests: u64) -> UsageLimits {
    UsageLimits { requests: Some(requests), ..UsageLimits::default() }
}

#[tokio::test]
async fn a_request_that_is_made_again_takes_a_place_in_the_limits() {
    // The one that was refused, the summary, and the one that is made again.
    for (requests, is_answered) in [(1, false), (2, false), (3, true)] {
        let model = refuses_once();
        let assistant = builder(model.clone()).conversation(long_chat()).manage_context(rules());
        let assistant = assistant.limits(at_most(requests)).build().unwrap();
        let ended = assistant.prompt("And now?").await;
        assert_eq!(ended.is_ok(), is_answered, "{requests}");
        // A summary is not paid for where nothing could follow it.
        assert_eq!(model.requests().len() as u64, if is_answered { requests } else { 1 });
        if let Err(error) = ended {
            assert_eq!(error.as_limit().map(|reached| reached.limit), Some(Limit::Requests), "{error}");
        }
        assert_sound(&assistant);
    }
    // On an engine, too.
    for (requests, stop) in [(1, RunStop::Limit), (2, RunStop::Limit), (3, RunStop::Completed)] {
        let assistant = builder(refuses_once()).manage_context(rules()).limits(at_most(requests));
        let service = Service::new(&assistant.build().unwrap()).unwrap();
        let request = RunRequest::new("r", "And now?").with_history(long_chat().shared().to_vec());
        assert_eq!(Rehearsal::new(service, request).play().await.unwrap().stop, stop, "{requests}");
    }
}

/// A conversation that gets a summary before the next request, whose first answer is refused if so asked.
fn summarized(is_corrected: bool) -> (ScriptedModel, AssistantBuilder) {
    let model = ScriptedModel::from_fn(move |request| {
        let reply = match request.messages.len() {
            _ if !is_summary(request) => reply().text("Because."),
            1 if is_corrected => reply().text("Sorry?"),
            _ => reply().text(r#"{"goal": "Know why", "open": ["Why"]}"#),
        };
        reply.usage(Usage::new(7, 1))
    });
    let assistant = builder(model.clone()).conversation(crate::context_runs::chat(600, 15));
    (model, assistant.manage_context(rules()))
}

#[tokio::test]
async fn a_summary_takes_its_place_in_the_limits_before_it_is_made() {
    for (is_corrected, allowed, made) in
        [(false, 1, 0), (false, 2, 1), (true, 1, 0), (true, 2, 1), (true, 3, 2)]
    {
        let (model, assistant) = summarized(is_corrected);
        let log = EventLog::new();
        let assistant = assistant.limits(at_most(allowed)).on_event(log.listener()).build().unwrap();
        // Without a summary the request fits, too, and its own place was taken first.
        assert_eq!(assistant.prompt("And now?").await.unwrap().text(), "Because.");
        let summaries = model.requests().iter().filter(|request| is_summary(request)).count();
        assert_eq!((summaries, model.requests().len()), (made, made + 1), "{is_corrected} {allowed}");
        let end = log.events().into_iter().find_map(|event| match event.kind {
            EventKind::CompactionEnd { error, .. } => Some(error),
            _ => None,
        });
        let is_complete = made == 1 + usize::from(is_corrected);
        let refused = end.unwrap().map(|error| error.contains("request"));
        assert_eq!(refused, (!is_complete).then_some(true), "{is_corrected} {allowed}");
    }
}

#[tokio::test]
async fn the_tokens_of_a_summary_count_before_the_request_that_follows() {
    let (model, assistant) = summarized(false);
    let limits = UsageLimits { total_tokens: Some(8), ..UsageLimits::default() };
    let assistant = assistant.limits(limits).build().unwrap();
    let error = assistant.prompt("And now?").await.unwrap_err();
    assert_eq!(error.as_limit().map(|reached| reached.limit), Some(Limit::TotalTokens), "{error}");
    assert_eq!(model.requests().iter().map(is_summary).collect::<Vec<_>>(), [true]);
    // The summary is kept.
    assert_eq!(assistant.messages().view_changes().len(), 1);
}

#[tokio::test]
async fn a_request_of_a_sub_agent_that_is_made_again_takes_a_place_in_the_limits_of_its_tree() {
    let ask = |requests: Option<u64>| async move {
        let child = ScriptedModel::from_fn(|request| {
            if !is_summary(request) && tokens(request) > 3_000 {
                return reply().error(ModelError::new(ModelErrorKind::ContextTooLong, "too long"));
            }
            next_reply(request, 12)
        });
        let expert = builder(child.clone()).manage_context(rules()).build().unwrap();
        let root = ScriptedModel::new([
            reply().tool_call("ask", r#"{"task": "Read."}"#),
            reply().text("It was read."),
        ]);
        let limits = UsageLimits { requests, ..UsageLimits::default() };
        let root = Assistant::builder(root).tools(expert.as_tool("ask", "Reads.")).limits(limits);
        let ended = root.build().unwrap().prompt("Read.").await;
        (ended, child.requests())
    };
    let (ended, sent) = ask(None).await;
    ended.unwrap();
    let refused = sent.iter().filter(|request| !is_summary(request) && tokens(request) > 3_000).count();
    assert!(refused > 0, "no request was too long");
    // Those of the sub-agent, with summaries, and two of the root.
    let all = sent.len() as u64 + 2;
    assert!(ask(Some(all)).await.0.is_ok());
    let error = ask(Some(all - 1)).await.0.unwrap_err();
    assert_eq!(error.as_limit().map(|reached| reached.limit), Some(Limit::Requests), "{error}");
}
