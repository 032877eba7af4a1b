//! Questions of tools to a person: answered in place, or by a run that was suspended.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::model::reply;
use agent::run::{PendingCall, ResumeError};
use agent::store::{MemoryStore, Store as _};
use agent::tool::{AskError, Question, QuestionInput};
use agent::{
    Assistant, AssistantBuilder, CancelToken, Decisions, RunError, RunStop, ScriptedModel, SuspendedRun,
    ToolArgs, ToolContext, ToolError, Value, json, tool, tools,
};

/// What the bodies did.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<String>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(ToolArgs)]
struct Seat {
    /// The number of the coach.
    #[arg(range(1..=20))]
    coach: u8,
    window: bool,
}

/// Books a seat.
#[tool(asks)]
pub(crate) async fn book(to: String, cx: &ToolContext, log: &Log) -> Result<String, ToolError> {
    log.add(format!("begin {to}"));
    let seat: Seat = cx.ask(format!("Which seat to {to}?")).await?;
    let is_sure: bool = cx.ask("Are you sure?").await?;
    log.add(format!("book {to} {} {} {is_sure}", seat.coach, seat.window));
    Ok(format!("{to}: coach {}", seat.coach))
}

/// Pays, and asks afterwards.
#[tool]
async fn pay(cx: &ToolContext, log: &Log) -> Result<String, ToolError> {
    log.add("paid");
    let receipt: bool = cx.ask("Do you want a receipt?").await?;
    Ok(format!("receipt: {receipt}"))
}

/// Looks at two things.
#[tool(read_only)]
pub(crate) async fn look(cx: &ToolContext) -> Result<String, ToolError> {
    let (first, second) = tokio::join!(cx.ask::<String>("First?"), cx.ask::<Vec<u8>>("Second?"));
    Ok(format!("{} {:?}", first?, second?))
}

/// Looks at two things, and takes longer for the first one after a restart.
#[tool(read_only)]
async fn look_late(cx: &ToolContext, begun: &AtomicU32) -> Result<String, ToolError> {
    let is_again = begun.fetch_add(1, Ordering::SeqCst) > 0;
    let first = async {
        if is_again {
            tokio::task::yield_now().await;
        }
        cx.ask::<String>("First?").await
    };
    let (first, second) = tokio::join!(first, cx.ask::<String>("Second?"));
    Ok(format!("{} {}", first?, second?))
}

/// Looks something up.
#[tool(allow_repeat)]
fn find(what: String, log: &Log) -> String {
    log.add(format!("find {what}"));
    format!("{what} found")
}

pub(crate) fn model(calls: &[(&str, Value)]) -> ScriptedModel {
    let calls = calls.iter().fold(reply(), |reply, (tool, args)| reply.tool_call(*tool, args.to_string()));
    ScriptedModel::new([calls, reply().text("Done.")])
}

pub(crate) fn assistant(log: &Arc<Log>, calls: &[(&str, Value)]) -> AssistantBuilder {
    Assistant::builder(model(calls)).tools(tools![book, pay, look, find]).shared_state(log.clone())
}

pub(crate) fn stored(run: &SuspendedRun) -> SuspendedRun {
    serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap()
}

pub(crate) fn result(assistant: &Assistant, at: usize) -> String {
    assistant.messages().get(at).unwrap().text()
}

#[tokio::test]
async fn a_suspended_body_starts_again_and_has_its_earlier_answers() {
    let log = Arc::new(Log::default());
    let build = || assistant(&log, &[("book", json!({"to": "Rome"}))]).approval_key([7; 32]).build().unwrap();
    let first = build();
    let output = first.prompt("Go").await.unwrap();
    assert_eq!(output.stop, RunStop::Suspended);

    // Each answer is given in another process.
    let suspended = stored(&output.snapshot.unwrap());
    let [question] = &suspended.questions()[..] else { panic!("{suspended:?}") };
    assert_eq!((question.message.as_str(), question.tool.as_str()), ("Which seat to Rome?", "book"));
    assert_eq!(question.request_id, format!("{}/1/tool/0/ask/0", output.run_id));
    assert!(matches!(&suspended.pending()[..], [PendingCall::Question { tool, .. }] if tool == "book"));
    assert_eq!(question.schema["properties"]["coach"]["maximum"], 20);
    let decisions = Decisions::new().accept(question, json!({"coach": "7", "window": "true"}));
    let decisions: Decisions = serde_json::from_str(&serde_json::to_string(&decisions).unwrap()).unwrap();
    let second = build();
    let output = second.resume(&suspended, decisions).await.unwrap();
    assert_eq!(output.stop, RunStop::Suspended);

    let suspended = stored(&output.snapshot.unwrap());
    let [question] = &suspended.questions()[..] else { panic!("{suspended:?}") };
    assert_eq!(
        (question.message.as_str(), question.schema["properties"]["value"]["type"].as_str()),
        ("Are you sure?", Some("boolean"))
    );
    let third = Assistant::builder(ScriptedModel::new(["Done."])).tools(tools![book, pay, look, find]);
    let third = third.shared_state(log.clone()).approval_key([7; 32]).build().unwrap();
    let output = third.resume(&suspended, Decisions::new().accept(question, true)).await.unwrap();
    assert_eq!(output.text(), "Done.");
    assert_eq!(result(&third, 2), "Rome: coach 7");
    assert_eq!(log.lines(), ["begin Rome", "begin Rome", "begin Rome", "book Rome 7 true true"]);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_refused_and_the_run_stays_suspended() {
    let log = Arc::new(Log::default());
    let assistant = assistant(&log, &[("book", json!({"to": "Rome"}))]).build().unwrap();
    let suspended = assistant.prompt("Go").await.unwrap().snapshot.unwrap();
    let question = &suspended.questions()[0];
    let wrong = Decisions::new().accept(question, json!({"coach": 70}));
    let Err(RunError::Resume(ResumeError::InputRefused { error: AskError::Refused { report, .. }, .. })) =
        assistant.resume(&suspended, wrong).await
    else {
        panic!("it is refused")
    };
    assert!(report.contains("coach") && report.contains("window"), "{report}");
    assert_eq!(log.lines(), ["begin Rome"], "nothing ran");

    // Twice, for another question, changed, or none.
    let right = json!({"coach": 7, "window": false});
    let twice = Decisions::new().accept(question, right.clone()).input(question, QuestionInput::Decline);
    assert!(matches!(
        assistant.resume(&suspended, twice).await,
        Err(RunError::Resume(ResumeError::AnsweredTwice { .. }))
    ));
    let mut other = serde_json::to_value(question).unwrap();
    other["request_id"] = json!("other/ask/0");
    let other: Question = serde_json::from_value(other).unwrap();
    assert!(matches!(
        assistant.resume(&suspended, Decisions::new().accept(&other, right.clone())).await,
        Err(RunError::Resume(ResumeError::NotPending { .. }))
    ));
    let mut changed = serde_json::to_value(question).unwrap();
    changed["message"] = json!("Do you like music?");
    let changed: Question = serde_json::from_value(changed).unwrap();
    assert!(matches!(
        assistant.resume(&suspended, Decisions::new().accept(&changed, right.clone())).await,
        Err(RunError::Resume(ResumeError::ApprovalMismatch { what: "question", .. }))
    ));
    assert!(matches!(
        assistant.resume(&suspended, Decisions::new()).await,
        Err(RunError::Resume(ResumeError::Undecided { .. }))
    ));
    let later = Decisions::new().input(question, QuestionInput::Later);
    assert!(matches!(
        assistant.resume(&suspended, later).await,
        Err(RunError::Resume(ResumeError::Undecided { .. }))
    ));
    let output = assistant.resume(&suspended, Decisions::new().accept(question, right)).await.unwrap();
    assert_eq!(output.stop, RunStop::Suspended, "the second question");
}

#[tokio::test]
async fn a_body_with_effects_waits_in_place_only() {
    let log = Arc::new(Log::default());
    let alone = assistant(&log, &[("pay", json!({}))]).build().unwrap();
    assert_eq!(alone.prompt("Go").await.unwrap().text(), "Done.");
    assert!(result(&alone, 2).contains("cannot wait for an answer"), "{}", result(&alone, 2));
    let asked = assistant(&log, &[("pay", json!({}))]);
    let asked = asked.on_question(|_| async { QuestionInput::Accept(json!(true)) }).build().unwrap();
    asked.prompt("Go").await.unwrap();
    assert_eq!(result(&asked, 2), "receipt: true");
    assert_eq!(log.lines(), ["paid", "paid"], "no body began twice");
}

#[tokio::test]
async fn questions_that_are_asked_together_wait_together() {
    let log = Arc::new(Log::default());
    let assistant =
        assistant(&log, &[("look", json!({})), ("find", json!({"what": "tea"}))]).build().unwrap();
    let suspended = assistant.prompt("Go").await.unwrap().snapshot.unwrap();
    assert_eq!(log.lines(), ["find tea"], "the other call ran to its end");
    let questions = suspended.questions();
    assert_eq!(
        questions.iter().map(|question| &*question.message).collect::<Vec<_>>(),
        ["First?", "Second?"]
    );
    let one = Decisions::new().accept(&questions[0], "a");
    let Err(RunError::Resume(ResumeError::Undecided { request_id, .. })) =
        assistant.resume(&suspended, one).await
    else {
        panic!("one is missing")
    };
    assert_eq!(request_id, questions[1].request_id);
    let both = Decisions::new().accept(&questions[1], json!([1, "2"])).accept(&questions[0], "a");
    assistant.resume(&suspended, both).await.unwrap();
    assert_eq!(result(&assistant, 2), "a [1, 2]");
    assert_eq!(log.lines(), ["find tea"], "it did not run again");
}

#[tokio::test]
async fn questions_that_come_in_another_order_after_the_restart_have_their_own_answers() {
    let assistant = Assistant::builder(model(&[("look_late", json!({}))]));
    let assistant = assistant.tools(tools![look_late]).state(AtomicU32::new(0)).build().unwrap();
    let suspended = assistant.prompt("Go").await.unwrap().snapshot.unwrap();
    let questions = suspended.questions();
    let both = Decisions::new().accept(&questions[0], "a").accept(&questions[1], "b");
    assistant.resume(&suspended, both).await.unwrap();
    assert_eq!(result(&assistant, 2), "a b");
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_place_is_kept_while_another_question_waits() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = seen.clone();
    let assistant = Assistant::builder(model(&[("look", json!({}))]))
        .tools(tools![look])
        .on_question(move |question: Question| {
            asked.lock().unwrap().push(question.message.clone());
            async move {
                if question.message == "Second?" {
                    return QuestionInput::Later;
                }
                tokio::time::sleep(Duration::from_secs(60)).await;
                QuestionInput::Accept(json!("a"))
            }
        })
        .build()
        .unwrap();
    let mut run = assistant.prompt("Go").stream();
    let mut kinds = Vec::new();
    while let Some(event) = run.next().await {
        kinds.push(serde_json::to_value(&*event).unwrap()["type"].as_str().unwrap().to_owned());
    }
    assert!(kinds.iter().any(|kind| kind == "question_resolved"), "{kinds:?}");
    let suspended = run.output().await.unwrap().snapshot.unwrap();
    let [question] = &suspended.questions()[..] else { panic!("{suspended:?}") };
    assistant.resume(&suspended, Decisions::new().accept(question, json!([1]))).await.unwrap();
    assert_eq!(result(&assistant, 2), "a [1]");
    assert_eq!(*seen.lock().unwrap(), ["First?", "Second?"], "each is asked once");
}

#[tokio::test]
async fn an_answer_in_place_is_asked_again_three_times() {
    let log = Arc::new(Log::default());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let reports = seen.clone();
    let answers =
        Arc::new(Mutex::new(vec![json!({"coach": 7, "window": false}), json!("x"), json!({"coach": 0})]));
    let build = |answers: Arc<Mutex<Vec<Value>>>| {
        let reports = reports.clone();
        assistant(&log, &[("book", json!({"to": "Rome"}))])
            .on_question(move |question: Question| {
                reports.lock().unwrap().push((question.request_id.clone(), question.report.is_some()));
                let answer = answers.lock().unwrap().pop().unwrap_or(json!(true));
                async move { QuestionInput::Accept(answer) }
            })
            .build()
            .unwrap()
    };
    let assistant = build(answers);
    let output = assistant.prompt("Go").await.unwrap();
    assert_eq!(result(&assistant, 2), "Rome: coach 7");
    let key = format!("{}/1/tool/0/ask", output.run_id);
    let expected = [("0", false), ("0/2", true), ("0/3", true), ("1", false)];
    let expected: Vec<_> =
        expected.iter().map(|(id, has_report)| (format!("{key}/{id}"), *has_report)).collect();
    assert_eq!(*seen.lock().unwrap(), expected);

    let assistant = build(Arc::new(Mutex::new(vec![json!(1), json!(2), json!(3)])));
    assistant.prompt("Go").await.unwrap();
    assert!(result(&assistant, 2).starts_with("the answer does not fit: "), "{}", result(&assistant, 2));
}

#[tokio::test]
async fn a_person_may_decline_or_dismiss_and_a_handler_may_fail() {
    let log = Arc::new(Log::default());
    let expected = [
        (Some(QuestionInput::Decline), "the person declined to answer"),
        (Some(QuestionInput::Cancel), "the person dismissed the question"),
        (None, "the question could not be asked"),
    ];
    for (input, text) in expected {
        let assistant = assistant(&log, &[("book", json!({"to": "Rome"}))]);
        let assistant = assistant
            .on_question(move |_| {
                let input = input.clone();
                async move { input.expect("no window") }
            })
            .build()
            .unwrap();
        assert_eq!(assistant.prompt("Go").await.unwrap().text(), "Done.");
        assert_eq!(result(&assistant, 2), text);
    }
}

#[tokio::test]
async fn what_a_handler_leaves_for_later_suspends_and_is_announced_once() {
    let log = Arc::new(Log::default());
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let assistant = assistant(&log, &[("book", json!({"to": "Rome"}))])
        .on_question(move |_| {
            let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
            async move { if is_first { QuestionInput::Later } else { QuestionInput::Accept(json!(true)) } }
        })
        .build()
        .unwrap();
    let mut run = assistant.prompt("Go").stream();
    let mut kinds = Vec::new();
    while let Some(event) = run.next().await {
        kinds.push(serde_json::to_value(&*event).unwrap()["type"].as_str().unwrap().to_owned());
    }
    let output = run.output().await.unwrap();
    let around = kinds.iter().position(|kind| kind == "question_asked").unwrap();
    assert_eq!(&kinds[around - 1..], ["tool_execution_start", "question_asked", "run_suspended"]);
    let suspended = output.snapshot.unwrap();
    let seat = Decisions::new().accept(&suspended.questions()[0], json!({"coach": 2, "window": true}));
    let mut run = assistant.resume(&suspended, seat).stream();
    let mut kinds = Vec::new();
    while let Some(event) = run.next().await {
        kinds.push(serde_json::to_value(&*event).unwrap()["type"].as_str().unwrap().to_owned());
    }
    let resumed =
        ["run_resumed", "question_resolved", "question_asked", "question_resolved", "tool_execution_end"];
    assert_eq!(kinds[..5], resumed);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

/// Asks something else each time.
#[tool(read_only)]
async fn change_mind(cx: &ToolContext, count: &AtomicU32) -> Result<String, ToolError> {
    let question = format!("Question {}?", count.fetch_add(1, Ordering::SeqCst));
    cx.ask(question).await.map_err(ToolError::from)
}

#[tokio::test]
async fn a_body_that_asks_something_else_the_second_time_ends() {
    let assistant = Assistant::builder(model(&[("change_mind", json!({}))]))
        .tools(tools![change_mind])
        .state(AtomicU32::new(0))
        .build()
        .unwrap();
    let suspended = assistant.prompt("Go").await.unwrap().snapshot.unwrap();
    let answer = Decisions::new().accept(&suspended.questions()[0], "a");
    assistant.resume(&suspended, answer).await.unwrap();
    let messages = assistant.messages();
    let result = messages.get(2).unwrap().as_tool_result().unwrap();
    assert_eq!(result.code.as_deref(), Some("ask_changed"));
}

#[derive(ToolArgs)]
struct Login {
    user: String,
    #[arg(secret)]
    password: String,
}

/// Logs in.
#[tool(read_only)]
async fn log_in(cx: &ToolContext, log: &Log) -> Result<String, ToolError> {
    let login: Login = cx.ask("Who are you?").await?;
    log.add(format!("{} {}", login.user, login.password));
    let code: u32 = cx.ask("The code?").await?;
    Ok(format!("in with {code}"))
}

#[tokio::test]
async fn a_secret_input_goes_to_the_body_and_nowhere_else() {
    let log = Arc::new(Log::default());
    let seen = Arc::new(Mutex::new(String::new()));
    let sink = seen.clone();
    let store = MemoryStore::new();
    let assistant = Assistant::builder(model(&[("log_in", json!({}))]))
        .tools(tools![log_in])
        .shared_state(log.clone())
        .store(store.clone())
        .on_event(move |event| *sink.lock().unwrap() += &serde_json::to_string(event).unwrap())
        .build()
        .unwrap();
    let suspended = assistant.prompt("Go").await.unwrap().snapshot.unwrap();
    let secret = json!({"user": "ann", "password": "hunter2"});
    let answer = Decisions::new().accept(&suspended.questions()[0], secret.clone());
    assert!(!format!("{answer:?}").contains("hunter2"));
    let suspended = assistant.resume(&suspended, answer).await.unwrap().snapshot.unwrap();
    let text = serde_json::to_string(&suspended).unwrap();
    let records = store.list(agent::store::InvocationQuery::default()).await.unwrap();
    for written in [&text, &*seen.lock().unwrap(), &format!("{records:?}")] {
        assert!(!written.contains("hunter2"), "{written}");
    }
    // After it was stored, it is asked again.
    let stored: SuspendedRun = serde_json::from_str(&text).unwrap();
    let answer = Decisions::new().accept(&stored.questions()[0], 5);
    assert!(
        matches!(assistant.resume(&stored, answer).await, Err(RunError::Resume(ResumeError::NotSigned))),
        "a stored run is signed"
    );
    // In memory it is still known.
    let answer = Decisions::new().accept(&suspended.questions()[0], 5);
    assistant.resume(&suspended, answer).await.unwrap();
    assert_eq!(result(&assistant, 2), "in with 5");
    assert_eq!(log.lines(), ["ann hunter2", "ann hunter2"]);
}

#[tokio::test]
async fn a_stored_question_is_signed_and_a_secret_is_asked_again() {
    let log = Arc::new(Log::default());
    let build = |model: ScriptedModel| {
        let builder = Assistant::builder(model).tools(tools![log_in]).shared_state(log.clone());
        builder.approval_key([3; 32]).build().unwrap()
    };
    let assistant = build(model(&[("log_in", json!({}))]));
    let suspended = stored(&assistant.prompt("Go").await.unwrap().snapshot.unwrap());
    let login = |password: &str| json!({"user": "ann", "password": password});
    let answer = Decisions::new().accept(&suspended.questions()[0], login("hunter2"));
    let suspended = assistant.resume(&suspended, answer).await.unwrap().snapshot.unwrap();
    let text = serde_json::to_string(&suspended).unwrap();
    assert!(text.contains("The code?") && !text.contains("hunter2"));
    let changes = [
        ("The code?", "Your bank account?"),
        ("\"ask/1\"", "\"ask/2\""),
        ("/ask/1", "/ask/2"),
        ("\"number\":1", "\"number\":0"),
    ];
    for (from, to) in changes {
        if !text.contains(from) {
            continue;
        }
        let tampered: SuspendedRun = serde_json::from_str(&text.replace(from, to)).unwrap();
        let answer = Decisions::new().accept(&tampered.questions()[0], 5);
        let error = build(ScriptedModel::new(["Done."])).resume(&tampered, answer).await.unwrap_err();
        assert!(matches!(error, RunError::Resume(ResumeError::Changed)), "{from}: {error}");
    }
    // The first question is asked again, because its input has a secret.
    let suspended = stored(&suspended);
    let other = build(ScriptedModel::new(["Done."]));
    let answer = Decisions::new().accept(&suspended.questions()[0], 5);
    let suspended = other.resume(&suspended, answer).await.unwrap().snapshot.unwrap();
    assert_eq!(suspended.questions()[0].message, "Who are you?");
    let answer = Decisions::new().accept(&suspended.questions()[0], login("other"));
    other.resume(&suspended, answer).await.unwrap();
    assert_eq!(result(&other, 2), "in with 5");
    assert_eq!(log.lines(), ["ann hunter2", "ann other"]);
}

#[tokio::test]
async fn questions_of_sub_agents_reach_the_top() {
    let log = Arc::new(Log::default());
    let to_rome = ("book", json!({"to": "Rome"}));
    let expert = assistant(&log, std::slice::from_ref(&to_rome)).build().unwrap();
    let middle = Assistant::builder(model(&[("ask_expert", json!({"task": "Rome"}))]));
    let middle = middle.tools(expert.as_tool("ask_expert", "Knows trains.")).build().unwrap();
    let root = |model: ScriptedModel| {
        let root = Assistant::builder(model).tools(middle.as_tool("ask_office", "Knows people."));
        root.approval_key([9; 32])
    };
    let assistant = root(model(&[("ask_office", json!({"task": "Rome"}))])).build().unwrap();
    let suspended = stored(&assistant.prompt("Go").await.unwrap().snapshot.unwrap());
    let [question] = &suspended.questions()[..] else { panic!("{suspended:?}") };
    assert_eq!(question.path.to_string(), "ask_office > ask_expert");
    let seat = Decisions::new().accept(question, json!({"coach": 3, "window": true}));
    let suspended = stored(&assistant.resume(&suspended, seat).await.unwrap().snapshot.unwrap());
    let sure = Decisions::new().accept(&suspended.questions()[0], "true");
    assert_eq!(assistant.resume(&suspended, sure).await.unwrap().text(), "Done.");
    assert_eq!(log.lines(), ["begin Rome", "begin Rome", "begin Rome", "book Rome 3 true true"]);

    // With a function at the top, nothing waits.
    let log = Arc::new(Log::default());
    let expert = self::assistant(&log, &[to_rome]).build().unwrap();
    let top = Assistant::builder(model(&[("ask_expert", json!({"task": "Rome"}))]))
        .tools(expert.as_tool("ask_expert", "Knows trains."))
        .on_question(|question: Question| async move {
            assert_eq!(question.path.to_string(), "ask_expert");
            let is_seat = question.schema["properties"]["coach"].is_object();
            QuestionInput::Accept(if is_seat { json!({"coach": 3, "window": true}) } else { json!(true) })
        })
        .build()
        .unwrap();
    assert_eq!(top.prompt("Go").await.unwrap().text(), "Done.");
    assert_eq!(log.lines(), ["begin Rome", "book Rome 3 true true"]);
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_tool_stands_still_while_a_person_thinks() {
    /// Asks, and then takes its time.
    #[tool(timeout = "10s")]
    async fn slow(work: u64, cx: &ToolContext) -> Result<String, ToolError> {
        tokio::time::sleep(Duration::from_secs(8)).await;
        let is_sure: bool = cx.ask("Sure?").await?;
        tokio::time::sleep(Duration::from_secs(work)).await;
        Ok(format!("{is_sure}"))
    }
    for (work, expected) in [(8, "true"), (11, "The tool did not finish within 10 s.")] {
        let assistant = Assistant::builder(model(&[("slow", json!({"work": work}))]))
            .tools(tools![slow])
            .on_question(|_| async {
                tokio::time::sleep(Duration::from_secs(3_600)).await;
                QuestionInput::Accept(json!(true))
            })
            .build()
            .unwrap();
        assistant.prompt("Go").await.unwrap();
        assert_eq!(result(&assistant, 2), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_wait_for_an_answer() {
    let log = Arc::new(Log::default());
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    let assistant = assistant(&log, &[("pay", json!({}))]).on_question(move |_| {
        stop.cancel("enough");
        std::future::pending()
    });
    let assistant = assistant.build().unwrap();
    let begun = tokio::time::Instant::now();
    let error = assistant.prompt("Go").cancel(cancel).await.unwrap_err();
    assert!(matches!(error, RunError::Aborted { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(1), "the body ended by itself");
    assert!(result(&assistant, 2).contains("enough"), "{}", result(&assistant, 2));
}

/// Asks in another task, and does not end.
#[tool(timeout = "10s")]
async fn ask_elsewhere(cx: &ToolContext) {
    let cx = cx.clone();
    let asking = tokio::spawn(async move {
        let _ = cx.ask::<bool>("Sure?").await;
        std::future::pending::<()>().await;
    });
    let _ = asking.await;
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_also_waits_for_the_answer_to_a_question_of_another_task() {
    for seconds in [5, 20] {
        let cx = ToolContext::new().on_question(move |_| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            QuestionInput::Accept(json!(true))
        });
        let begun = tokio::time::Instant::now();
        let call = crate::macro_support::outcome(tools![ask_elsewhere], "ask_elsewhere", "{}", &cx);
        let outcome = tokio::time::timeout(Duration::from_secs(100), call).await.expect("it ends");
        assert_eq!((outcome.code(), begun.elapsed().as_secs()), (Some("timeout"), seconds + 10));
    }
}
