//! Long conversations in small windows: what is sent fits, nothing is lost, and every failure says what happened.

use std::sync::{Arc, Mutex};

use agent::message::{Conversation, Message, MessageList, Usage, UserMessage};
use agent::model::{
    ContextReport, ContextRules, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ScriptedReply, reply,
};
use agent::store::MemoryStore;
use agent::testing::EventLog;
use agent::{Assistant, AssistantBuilder, Event, EventKind, RunError, ScriptedModel, json, tool, tools};

use crate::assistant_support::assert_sound;

pub(crate) const WINDOW: u64 = 12_000;

/// Reads a page of the book.
#[tool(inline, read_only)]
fn read_page(number: u32) -> String {
    format!("page {number}: {}", "word ".repeat(400))
}

/// Reads the plan, which is needed all the time.
#[tool(inline, read_only)]
fn read_plan() -> String {
    format!("the plan: {}", "step ".repeat(300))
}

fn info() -> ModelInfo {
    ModelInfo::new("acme", "acme-chat", "large-1")
}

pub(crate) fn is_summary(request: &ModelRequest) -> bool {
    request.system.as_deref().is_some_and(|system| system.starts_with("You keep the record"))
}

pub(crate) fn tokens(request: &ModelRequest) -> u64 {
    let text: usize = request.messages.iter().map(|message| message.text().len() + 40).sum();
    (text / 4) as u64
}

const RECORD: &str = r#"{"goal": "Read the book", "decisions": ["Page by page"], "open": ["The last page"],
    "facts": [{"text": "The words repeat.", "calls": ["call_1", "call_999"]}]}"#;

/// Reads page after page. What it does follows from the last message alone, so it does the same on every replay.
pub(crate) fn next_reply(request: &ModelRequest, pages: u32) -> ScriptedReply {
    let usage = Usage::new(tokens(request), 20);
    if is_summary(request) {
        return reply().text(RECORD).usage(usage);
    }
    let last = request.messages.last().unwrap().text();
    let page = last.strip_prefix("page ").and_then(|rest| rest.split_once(':')?.0.parse().ok()).unwrap_or(0);
    if page >= pages {
        return reply().text(format!("I read {page} pages.")).usage(usage);
    }
    let next = page + 1;
    let call = reply().text(format!("I go on with page {next}. ").repeat(12));
    call.tool_call_with_id(format!("call_{next}"), "read_page", json!({"number": next})).usage(usage)
}

pub(crate) fn reader(pages: u32) -> ScriptedModel {
    ScriptedModel::from_fn(move |request| next_reply(request, pages)).with_info(info())
}

pub(crate) fn rules() -> ContextRules {
    ContextRules::new().window(WINDOW)
}

pub(crate) fn builder(model: ScriptedModel) -> AssistantBuilder {
    Assistant::builder(model)
        .tools(tools![read_page, read_plan])
        .max_turns(500)
        .request(|request| request.with_max_tokens(2_000))
}

/// Asserts that each request fits, can be sent, and begins like the one before it unless the view was changed between them.
pub(crate) fn assert_fit(requests: &[ModelRequest]) {
    for request in requests {
        assert!(tokens(request) < WINDOW - 2_000, "{} tokens", tokens(request));
        if is_summary(request) {
            let has_results = request.messages.iter().any(|message| message.role() == "tool_result");
            assert!(request.tools.is_empty() && !has_results);
        } else {
            let sent: Conversation = request.messages.iter().cloned().collect();
            assert!(sent.is_sound(), "{sent:?}");
        }
    }
}

fn kinds(events: &[Event], name: &str) -> usize {
    events.iter().filter(|event| serde_json::to_value(event).unwrap()["type"] == name).count()
}

#[tokio::test]
async fn results_are_cleared_and_messages_compacted_and_the_conversation_stays_complete() {
    let (model, log) = (reader(80), EventLog::new());
    let assistant = builder(model.clone()).manage_context(rules()).on_event(log.listener()).build().unwrap();
    let output = assistant.prompt("Read 80 pages.").await.unwrap();
    assert_eq!(output.text(), "I read 80 pages.");

    let all = assistant.messages();
    assert_eq!(all.len(), 1 + 2 * 80 + 1);
    let results = all.iter().filter_map(Message::as_tool_result);
    assert!(results.enumerate().all(|(at, result)| result.text().starts_with(&format!("page {}:", at + 1))));
    assert_sound(&assistant);
    assert_fit(&model.requests());

    let events = log.events();
    let (clears, compactions) = (kinds(&events, "context_cleared"), kinds(&events, "compaction_end"));
    assert!(clears >= 5 && compactions >= 1, "{}", log.outline());
    assert_eq!(compactions, kinds(&events, "compaction_start"));
    for event in &events {
        if let EventKind::ContextCleared { tokens_before, tokens_after, .. } = event.kind {
            // A fifth of what is usable, or a tenth if messages would have to be compacted.
            assert!(tokens_before - tokens_after >= 1_000, "{tokens_before} to {tokens_after}");
        }
    }
    // The summary counts for the run: its requests are beside those of the turns.
    let summaries = model.requests().iter().filter(|request| is_summary(request)).count();
    let input: u64 = model.requests().iter().map(tokens).sum();
    assert_eq!((summaries, output.usage.input), (compactions, input));
    let last = model.requests().pop().unwrap();
    let summary = last.messages[0].text();
    assert!(summary.contains("Goal: Read the book") && summary.contains("\"Read 80 pages.\""), "{summary}");
    // An id that does not occur is left out, and one that does is kept.
    assert!(summary.contains("(calls: call_1)"), "{summary}");
    // The view is the one that the recorded changes make, also after it was stored.
    let stored = serde_json::to_string(&all).unwrap();
    let loaded: Conversation = serde_json::from_str(&stored).unwrap();
    assert_eq!(loaded.view(), all.view());
    assert!(assistant.context().used < WINDOW);
}

#[tokio::test]
async fn a_few_large_steps_leave_the_beginning_of_requests_as_it_is() {
    let model = reader(100);
    let assistant = builder(model.clone()).manage_context(rules()).build().unwrap();
    assistant.prompt("Read 100 pages.").await.unwrap();
    let requests: Vec<_> = model.requests().into_iter().filter(|request| !is_summary(request)).collect();
    let text =
        |messages: &MessageList| -> Vec<String> { messages.iter().map(|message| message.text()).collect() };
    let is_changed = |pair: &&[ModelRequest]| {
        let (before, after) = (text(&pair[0].messages), text(&pair[1].messages));
        !after.starts_with(&before)
    };
    let changes = requests.windows(2).filter(is_changed).count();
    assert_eq!(changes, assistant.messages().view_changes().len());
    // Each page has about 500 tokens, and each clear reclaims at least four of them.
    assert!((10..=25).contains(&changes), "{changes} changes in {} requests", requests.len());
}

/// A tool with a long description.
#[tool(read_only)]
fn translate(text: String) -> String {
    text
}

#[tokio::test]
async fn a_tool_that_the_model_gets_later_counts_before_its_first_request() {
    // 30 pages are about 18,000 of 38,000 tokens, and the tool has 4,000: with the error of the estimate more than 60 %.
    for (long, clears) in [(true, 1), (false, 0)] {
        let (model, log) = (reader(31), EventLog::new());
        let text = if long { "word ".repeat(3_200) } else { "Translates.".to_owned() };
        let assistant = Assistant::builder(model.clone())
            .tools(tools![read_page])
            .tools(tools![translate].describe("translate", &text))
            .prepare_tools(|turn| async move {
                let is_late = turn.turn() > 30;
                Ok(turn.filter(|tool| is_late || tool.name() != "translate"))
            })
            .max_turns(500)
            .manage_context(ContextRules::new().window(40_000))
            .request(|request| request.with_max_tokens(2_000))
            .on_event(log.listener())
            .build()
            .unwrap();
        assistant.prompt("Read 31 pages.").await.unwrap();
        assert_eq!(kinds(&log.events(), "context_cleared"), clears, "{}", log.outline());
        let requests = model.requests();
        assert_eq!((requests[29].tools.len(), requests[30].tools.len()), (2, 3)); // with `read_result`
        let is_whole = requests[30].messages[2].text().starts_with("page 1: word");
        assert_eq!(is_whole, !long, "the request with the new tool is the first that was cleared");
    }
}

#[tokio::test]
async fn without_the_call_nothing_is_changed() {
    let model = reader(80);
    let assistant = builder(model.clone()).build().unwrap();
    assistant.prompt("Read 80 pages.").await.unwrap();
    assert_eq!(model.requests().last().unwrap().messages.len(), 161);
    assert!(!assistant.definitions().iter().any(|tool| tool.name() == "read_result"));
}

#[tokio::test]
async fn a_result_that_was_removed_can_be_read_again() {
    let model = ScriptedModel::from_fn(|request| {
        let last = request.messages.last().unwrap().text();
        if last.starts_with("page 30") {
            let args = json!({"handle": "call_2", "offset": 6, "length": 6});
            return reply().tool_call_with_id("again", "read_result", args);
        }
        if last.starts_with("[bytes") {
            return reply().text(last);
        }
        next_reply(request, 30)
    });
    let assistant = builder(model.clone()).manage_context(rules()).build().unwrap();
    let answer = assistant.prompt("Read 30 pages.").await.unwrap().text();
    assert_eq!(answer, "[bytes 6 to 12 of 2008]\n: word");
    let cleared = model.requests().pop().unwrap().messages.iter().find_map(|message| {
        let result = message.as_tool_result().filter(|result| result.call_id == "call_2")?;
        Some(result.text())
    });
    let line = "`read_result` with the handle `call_2` returns it; the call may be repeated]";
    assert!(cleared.is_none_or(|text| text.ends_with(line)));

    let unknown = ScriptedModel::new([
        reply().tool_call("read_result", json!({"handle": "call_77"})),
        reply().text("No."),
    ]);
    let assistant = builder(unknown).manage_context(rules()).build().unwrap();
    let output = assistant.prompt("Read it.").await.unwrap();
    assert!(output.messages[2].text().contains("there is no result `call_77`"), "{:?}", output.messages[2]);
}

#[tokio::test]
async fn a_removed_result_is_found_although_every_call_has_the_same_id() {
    let wanted = Arc::new(Mutex::new(0));
    let page_of_line = wanted.clone();
    let model = ScriptedModel::from_fn(move |request| {
        let last = request.messages.last().unwrap().text();
        let Some(rest) = last.strip_prefix("page ") else {
            let is_read = last.starts_with("[bytes");
            return if is_read { reply().text(last) } else { read_with_one_id(request, 1) };
        };
        let page: u32 = rest.split_once(':').unwrap().0.parse().unwrap();
        if page < 30 {
            return read_with_one_id(request, page + 1);
        }
        let is_removed = |message: &Arc<Message>| message.text().starts_with("[the result");
        let at = request.messages.iter().rposition(is_removed).unwrap();
        *page_of_line.lock().unwrap() = at / 2;
        let line = request.messages[at].text();
        let args = json!({"handle": line.split('`').nth(5).unwrap(), "length": 10});
        reply().tool_call_with_id("again", "read_result", args)
    });
    let builder = builder(model.with_info(info())).manage_context(rules().without_compaction());
    let answer = builder.build().unwrap().prompt("Read 30 pages.").await.unwrap().text();
    assert!(answer.contains(&format!("]\npage {}: ", wanted.lock().unwrap())), "{answer}");
}

/// Ids of calls are unique only within one reply.
fn read_with_one_id(request: &ModelRequest, page: u32) -> ScriptedReply {
    let call = reply().tool_call_with_id("call_1", "read_page", json!({"number": page}));
    call.usage(Usage::new(tokens(request), 20))
}

#[tokio::test]
async fn pins_kept_tools_and_the_newest_results_stay() {
    for marks_the_tool in [false, true] {
        let model = ScriptedModel::from_fn(|request| {
            let is_first = !request.messages.iter().any(|message| message.role() == "tool_result");
            if is_first {
                reply().tool_call_with_id("plan", "read_plan", "{}")
            } else {
                next_reply(request, 60)
            }
        });
        let builder = Assistant::builder(model.clone()).max_turns(500);
        let builder = builder.request(|request| request.with_max_tokens(2_000));
        let builder = if marks_the_tool {
            /// Reads the plan, which is needed all the time.
            #[tool(inline, name = "read_plan", read_only, keep_result)]
            fn keep_plan() -> String {
                read_plan()
            }
            builder.tools(tools![read_page, keep_plan]).manage_context(rules().without_compaction())
        } else {
            let rules = rules().keep_results_of(["read_plan"]);
            builder.tools(tools![read_page, read_plan]).manage_context(rules.without_compaction())
        };
        let assistant = builder.build().unwrap();
        let contract = UserMessage::from(format!("The contract: {}", "clause ".repeat(100))).pinned();
        assistant.prompt("Read 60 pages.").with_message(contract).await.unwrap();
        for request in model.requests().iter().skip(5) {
            let texts: Vec<String> = request.messages.iter().map(|message| message.text()).collect();
            assert!(texts.iter().any(|text| text.starts_with("The contract")));
            assert!(texts.iter().any(|text| text.starts_with("the plan")));
            let is_result = |text: &&String| text.starts_with("page") || text.starts_with("[the result");
            let results: Vec<&String> = texts.iter().filter(is_result).collect();
            assert!(results.iter().rev().take(3).all(|text| text.starts_with("page")), "{results:?}");
        }
    }
}

#[tokio::test]
async fn pins_that_leave_no_room_are_an_error() {
    let assistant = builder(reader(1)).manage_context(rules()).build().unwrap();
    let contract = UserMessage::from("clause ".repeat(4_000)).pinned();
    let error = assistant.prompt(contract).await.unwrap_err();
    assert!(matches!(error, RunError::Context { pins_are_too_large: true, .. }), "{error}");
    assert!(error.to_string().contains("unpin"), "{error}");
}

/// A conversation of texts, which cannot be cleared.
pub(crate) fn chat(words: usize, turns: usize) -> Conversation {
    let pairs = (0..turns).flat_map(|turn| {
        let question = Message::user(format!("Question {turn}: {}", "why ".repeat(words)));
        [question, Message::assistant(format!("Answer {turn}"))]
    });
    pairs.collect()
}

#[tokio::test]
async fn a_summary_that_fails_says_so_and_the_run_goes_on_as_long_as_it_fits() {
    let verbose = format!(r#"{{"goal": "x", "facts": [{{"text": "{}"}}]}}"#, "word ".repeat(3_000));
    let loops = format!(r#"{{"goal": "x", "decisions": [{}]}}"#, [r#""again""#; 9].join(","));
    let cases: [(&str, ScriptedReply, &str); 9] = [
        ("error", reply().error(ModelError::new(ModelErrorKind::Overloaded, "no capacity")), "no capacity"),
        ("empty", reply().text(""), "not a JSON object"),
        ("prose", reply().text("They talked."), "not a JSON object"),
        ("no goal", reply().text(r#"{"goal": " ", "facts": [{"text": "x"}]}"#), "`goal` is empty"),
        ("nothing", reply().text(r#"{"goal": "x"}"#), "all empty"),
        (
            "invented",
            reply().text(r#"{"goal": "x", "facts": [{"text": "y", "calls": ["a", "b"]}]}"#),
            "2 of 2 ids",
        ),
        ("loop", reply().text(loops), "more than 4 times"),
        ("long", reply().text(verbose), "write a shorter one"),
        ("call", reply().tool_call("read_page", json!({"number": 1})), "not a JSON object"),
    ];
    for (name, answer, reason) in cases {
        let answer = Arc::new(Mutex::new(Some(answer)));
        let model = ScriptedModel::from_fn(move |request| {
            if !is_summary(request) {
                return reply().text("Because.");
            }
            // The second answer is an empty one.
            answer.lock().unwrap().take().unwrap_or_else(|| reply().text("{}"))
        });
        let log = EventLog::new();
        let assistant = builder(model.clone())
            .conversation(chat(600, 15))
            .manage_context(rules())
            .on_event(log.listener())
            .build()
            .unwrap();
        let before = assistant.messages().len();
        let answered = assistant.prompt("And now?").await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(answered.text(), "Because.", "{name}");
        assert_eq!(assistant.messages().len(), before + 2, "{name}");
        let asked: Vec<_> = model.requests().into_iter().filter(is_summary).collect();
        // An error is not sent back, anything else once, with the report.
        assert_eq!(asked.len(), if name == "error" { 1 } else { 2 }, "{name}");
        let told = if name == "error" { log.outline() } else { asked[1].messages.last().unwrap().text() };
        assert!(told.contains(reason), "{name}: {told}");
        log.assert_sequence(&[
            "compaction begins: size",
            "compaction fails",
            "message assistant \"Because.\"",
        ]);
        // No other one is tried before the conversation has grown.
        assistant.prompt("And then?").await.unwrap();
        assert_eq!(
            model.requests().iter().filter(|request| is_summary(request)).count(),
            asked.len(),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_report_lets_the_model_correct_its_summary() {
    let model = ScriptedModel::from_fn(|request| {
        if !is_summary(request) {
            return reply().text("Because.");
        }
        let fixed = r#"{"goal": "Know why", "open": ["Why"]}"#;
        reply().text(if request.messages.len() == 1 { "Sorry?" } else { fixed }).usage(Usage::new(7, 1))
    });
    let log = EventLog::new();
    let assistant = builder(model.clone())
        .conversation(chat(600, 15))
        .manage_context(rules())
        .on_event(log.listener())
        .build()
        .unwrap();
    let output = assistant.prompt("And now?").await.unwrap();
    log.assert_sequence(&["compaction begins: size", "compaction ends", "message assistant \"Because.\""]);
    assert_eq!((output.usage.input, output.usage.output), (14, 2));
    assert!(model.requests().last().unwrap().messages[0].text().contains("Know why"));
}

#[tokio::test]
async fn what_does_not_fit_at_all_is_an_error_that_names_both_reasons() {
    let failing = || reply().error(ModelError::new(ModelErrorKind::Overloaded, "no capacity"));
    let model =
        ScriptedModel::from_fn(
            move |request| {
                if is_summary(request) { failing() } else { reply().text("Because.") }
            },
        );
    let assistant = builder(model).conversation(chat(1_000, 30)).manage_context(rules()).build().unwrap();
    let error = assistant.prompt("And now?").await.unwrap_err();
    assert_eq!(error.code(), "context");
    let text = error.to_string();
    assert!(text.contains("of 10,000 tokens, and compaction failed: overloaded: no capacity"), "{text}");
    let RunError::Context { summary, needed, .. } = error else { panic!("{error}") };
    assert!(summary.is_some() && needed > WINDOW, "{summary:?}");
    // Nothing is lost, and another model could continue.
    assert_eq!(assistant.messages().len(), 61);
    assert_sound(&assistant);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_continues_once_its_summary_works_again() {
    let works = Arc::new(Mutex::new(false));
    let is_working = works.clone();
    let model = ScriptedModel::from_fn(move |request| {
        if !is_summary(request) {
            return reply().text("Because.");
        }
        if *is_working.lock().unwrap() {
            return reply().text(r#"{"goal": "Know why", "open": ["Why"]}"#);
        }
        reply().error(ModelError::new(ModelErrorKind::Overloaded, "no capacity"))
    });
    let assistant =
        builder(model.clone()).conversation(chat(1_000, 30)).manage_context(rules()).build().unwrap();
    for _ in 0..2 {
        let error = assistant.prompt("And now?").await.unwrap_err().to_string();
        assert!(error.contains("compaction failed: overloaded: no capacity"), "{error}");
    }
    *works.lock().unwrap() = true;
    assert_eq!(assistant.prompt("And now?").await.unwrap().text(), "Because.");
    assert!(model.requests().last().unwrap().messages[0].text().contains("Know why"));
    assert_sound(&assistant);
}

#[tokio::test]
async fn a_request_that_the_provider_finds_too_long_is_compacted_and_sent_once_more() {
    for (limit, names_limit) in [(4_000, true), (4_000, false), (0, true)] {
        let model = ScriptedModel::from_fn(move |request| {
            if !is_summary(request) && tokens(request) > limit {
                let text = if names_limit {
                    format!("prompt is too long: {} tokens > 8000 maximum", tokens(request))
                } else {
                    "too long".to_owned()
                };
                return reply().error(ModelError::new(ModelErrorKind::ContextTooLong, text));
            }
            if is_summary(request) {
                return reply().text(r#"{"goal": "Know why", "open": ["Why"]}"#);
            }
            reply().text("Because.")
        });
        let log = EventLog::new();
        let assistant = builder(model.clone())
            .conversation(chat(220, 20))
            .manage_context(rules())
            .on_event(log.listener())
            .build()
            .unwrap();
        let answered = assistant.prompt("And now?").await;
        let asked = model.requests();
        assert_eq!(asked.iter().filter(|request| is_summary(request)).count(), 1);
        assert_eq!(asked.len(), 3, "one request, one summary, one retry");
        log.assert_sequence(&["compaction begins: too_long", "compaction ends"]);
        if limit > 0 {
            assert_eq!(answered.unwrap().text(), "Because.");
            let changes = json!(assistant.messages().view_changes());
            let lowered = changes.as_array().unwrap().iter().find_map(|change| change["tokens"].as_u64());
            assert_eq!(lowered, names_limit.then_some(8_000));
            assert_eq!(assistant.context().usable, Some(if names_limit { 6_000 } else { WINDOW - 2_000 }));
        } else {
            let error = answered.unwrap_err();
            assert_eq!(error.code(), "context");
            assert!(error.to_string().contains("the provider says: prompt is too long"), "{error}");
        }
        assert_sound(&assistant);
    }
    // Without management, it is the error of the model, at once.
    let error = ModelError::new(ModelErrorKind::ContextTooLong, "too long");
    let model = ScriptedModel::new([reply().error(error)]);
    let error = builder(model.clone()).build().unwrap().prompt("Hi").await.unwrap_err();
    assert_eq!((error.code(), model.requests().len()), ("model", 1));
}

#[tokio::test]
async fn a_stored_compaction_outside_of_a_run_is_used_by_the_next_process() {
    let store = MemoryStore::new();
    let open = |model: &ScriptedModel| {
        builder(model.clone())
            .manage_context(ContextRules::new().window(100_000))
            .store(store.clone())
            .session("ann")
    };
    let first = reader(10);
    let ann = open(&first).await.unwrap();
    ann.prompt("Read 10 pages.").await.unwrap();
    ann.prompt("Thanks.").await.unwrap();
    let done = ann.compact(Some("the pages")).await.unwrap().unwrap();
    assert!(done.tokens_after < done.tokens_before && done.usage.input > 0, "{done:?}");
    let summary = first.requests().into_iter().rfind(is_summary).unwrap();
    assert!(summary.messages[0].text().contains("keep above all: the pages"));

    let second = reader(0);
    let ann = open(&second).await.unwrap();
    ann.prompt("And?").await.unwrap();
    let sent = &second.requests()[0].messages;
    assert!(sent[0].text().contains("Goal: Read the book"), "{:?}", sent[0]);
    // A fork has the same view, and a reset none.
    let fork = ann.fork();
    assert_eq!(fork.messages().view_changes().len(), 1);
    ann.reset().await;
    assert!(ann.messages().view_changes().is_empty());
    ann.prompt("Hello").await.unwrap();
    assert_eq!(second.requests().last().unwrap().messages.len(), 1);
}

#[test]
fn rules_that_cannot_be_used_are_found_when_the_assistant_is_built() {
    let build = |rules| builder(reader(1)).manage_context(rules).build().unwrap_err().to_string();
    assert_eq!(
        build(ContextRules::new()),
        "the context cannot be managed: the context window of the model is unknown; set it with `window`"
    );
    assert!(build(rules().target(0.9)).contains("0 < target (0.9)"));
    assert!(build(rules().compact_with("cheap")).contains("no model named `cheap`"));
    let twice =
        builder(reader(1)).named_model("a", reader(1)).named_model("a", reader(1)).build().unwrap_err();
    assert_eq!(twice.to_string(), "two models are named `a`");
}

#[tokio::test]
async fn secret_arguments_are_not_sent_for_a_summary() {
    /// Logs in.
    #[tool(inline)]
    fn log_in(user: String, #[arg(secret)] password: String) -> String {
        format!("{user} is in{}", &password[..0])
    }
    let model = ScriptedModel::from_fn(|request| {
        if is_summary(request) {
            assert!(!request.messages[0].text().contains("hunter2"));
            return reply().text(r#"{"goal": "Log in", "open": ["x"]}"#);
        }
        match request.messages.last().unwrap().text().as_str() {
            "Log in." => reply().tool_call("log_in", json!({"user": "ann", "password": "hunter2"})),
            _ => reply().text("In."),
        }
    });
    let assistant = builder(model.clone()).tools(tools![log_in]).manage_context(rules()).build().unwrap();
    assistant.prompt("Log in.").await.unwrap();
    assistant.prompt("word ".repeat(2_000)).await.unwrap();
    assistant.prompt("Thanks.").await.unwrap();
    assistant.compact(None).await.unwrap().unwrap();
    assert!(model.requests().iter().any(is_summary));
}

#[tokio::test]
async fn every_size_of_window_gives_requests_that_fit_and_are_sound() {
    let chat = chat(700, 40);
    let whole = ContextReport::of(&ModelRequest::new(chat.shared().iter().cloned()), &info()).used;
    for share in [2, 4, 8] {
        let window = whole / share;
        let model = ScriptedModel::from_fn(|request| {
            if is_summary(request) {
                return reply().text(r#"{"goal": "Know why", "open": ["Why"]}"#);
            }
            reply().text("Because.")
        });
        let assistant = Assistant::builder(model.clone())
            .conversation(chat.clone())
            .request(|request| request.with_max_tokens(window / 4))
            .manage_context(ContextRules::new().window(window))
            .build()
            .unwrap();
        for turn in 0..10 {
            assistant
                .prompt(format!("Now {turn}?"))
                .await
                .unwrap_or_else(|error| panic!("1/{share}: {error}"));
        }
        for request in model.requests().iter().filter(|request| !is_summary(request)) {
            let sent: Conversation = request.messages.iter().cloned().collect();
            let needed = ContextReport::of(request, &info()).used;
            assert!(sent.is_sound() && needed <= window, "1/{share}: {needed} of {window}");
        }
    }
}
