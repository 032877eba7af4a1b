//! Models, tools, hooks and listeners that misbehave, and runs that are cancelled or dropped at every point where they
//! wait: the conversation is sound, nothing is left running, and the next prompt works.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use agent::ScriptedModel;
use agent::message::{Message, Part};
use agent::model::{ModelError, ModelErrorKind, reply};
use agent::{
    Assistant, BeforeCall, EventKind, RunError, RunOutput, Tool, ToolContext, ToolError, ToolOutput, ToolSet,
    Value, hooks::AfterCall, json, run::Delivery,
};
use tokio::time::sleep;

use crate::assistant_support::{assert_sound, assistant, outline, tools};

/// Polls a future so often, then lets go of it.
struct Polls<'f, F> {
    future: Pin<&'f mut F>,
    left: usize,
}

impl<F: Future> Future for Polls<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        let polled = self.future.as_mut().poll(cx).map(Some);
        if self.left == 0 && polled.is_pending() {
            return Poll::Ready(None);
        }
        polled
    }
}

/// An assistant whose every part waits: hooks, tools, approvals.
fn waiting() -> Assistant {
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        n if n > 8 => reply().text("done"),
        _ => reply()
            .text("calling")
            .tool_call("slow", "{}")
            .tool_call("fast", "{}")
            .tool_call("double", r#"{"value": 2}"#),
    });
    let nap = || sleep(Duration::from_millis(1));
    assistant(&model)
        .without_loop_guard()
        .max_concurrency(2)
        .before_tool_call(move |_| async move {
            nap().await;
            Ok(BeforeCall::RequireApproval)
        })
        .on_approval(move |_| async move {
            nap().await;
            agent::Decision::Allow
        })
        .after_tool_call(move |_, _| async move {
            nap().await;
            Ok(AfterCall::default())
        })
        .transform_context(move |messages, _| async move {
            nap().await;
            Ok(messages)
        })
        .before_request(move |request, _| async move {
            nap().await;
            Ok(request)
        })
        .on_turn_end(move |_| async move {
            nap().await;
            Ok(None)
        })
        .build()
        .unwrap()
}

/// What a run is told, and whether each call has an end for its start.
fn watched(assistant: &Assistant) -> Arc<Mutex<Vec<String>>> {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let write = told.clone();
    assistant
        .subscribe(move |event| {
            let word = match &event.kind {
                EventKind::AgentStart => "start".to_owned(),
                EventKind::AgentEnd { .. } => "end".to_owned(),
                EventKind::ToolExecutionStart { call, .. } => format!("+{}", call.id),
                EventKind::ToolExecutionEnd { result, .. } => format!("-{}", result.call_id),
                _ => return,
            };
            write.lock().unwrap().push(word);
        })
        .forever();
    told
}

fn assert_balanced(told: &[String]) {
    assert_eq!(told.first().map(String::as_str), Some("start"), "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("end"), "{told:?}");
    let count = |sign: char| told.iter().filter(|word| word.starts_with(sign)).count();
    assert_eq!(count('+'), count('-'), "{told:?}");
}

/// A run that waits for its reader after each event.
async fn read(assistant: &Assistant) -> Result<RunOutput, RunError> {
    let mut run = assistant.prompt("go").stream();
    while run.next().await.is_some() {
        tokio::task::yield_now().await;
    }
    run.output().await
}

/// How many polls a whole run takes.
async fn length() -> usize {
    let assistant = waiting();
    let _told = watched(&assistant);
    let mut polls = 0;
    let mut run = pin!(read(&assistant));
    let output = std::future::poll_fn(|cx| {
        polls += 1;
        run.as_mut().poll(cx)
    })
    .await;
    assert_eq!(output.unwrap().text(), "done");
    polls
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_dropped_wherever_it_waits() {
    let polls = length().await;
    assert!(polls > 30, "{polls}");
    for left in 1..polls {
        let assistant = waiting();
        let told = watched(&assistant);
        {
            let mut run = pin!(read(&assistant));
            assert!(Polls { future: run.as_mut(), left }.await.is_none(), "{left} of {polls}");
        }
        // The pinned future is dropped at the end of its block.
        assert!(!assistant.is_busy(), "{left}");
        assert_sound(&assistant);
        assert_balanced(&told.lock().unwrap());
        assert!(assistant.pending_calls().is_empty());
        assert_eq!(assistant.prompt("again").await.unwrap().text(), "done", "{left}");
        assert_sound(&assistant);
    }
    tokio::task::yield_now().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "no task is left");
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_cancelled_wherever_it_waits() {
    let polls = length().await;
    for left in 1..polls {
        let assistant = waiting();
        let told = watched(&assistant);
        let kept = assistant.follow_up("later");
        let mut run = pin!(read(&assistant));
        assert!(Polls { future: run.as_mut(), left }.await.is_none());
        assistant.cancel("enough");
        assistant.cancel("too late");
        match run.await {
            Err(RunError::Aborted { reason, .. }) => {
                assert_eq!(reason, "enough");
                let waits = assistant.queued(agent::run::Queue::FollowUp).len();
                assert_eq!(
                    usize::from(kept.status().is_none()),
                    waits,
                    "{left}: what is not delivered stays"
                );
            }
            // It had taken the follow-up, and was done but for telling so.
            Ok(output) => assert_eq!(output.text(), "done", "{left}"),
            Err(error) => panic!("{left}: {error}"),
        }
        assert!(!assistant.is_busy());
        assert_sound(&assistant);
        assert_balanced(&told.lock().unwrap());
        assert_eq!(assistant.prompt("again").await.unwrap().text(), "done", "{left}");
    }
    tokio::task::yield_now().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "no task is left");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_in_one_message() {
    let calls = (0..1000).fold(reply(), |reply, n| reply.tool_call_with_id("same", "ok", json!({"n": n})));
    let model = ScriptedModel::new([calls, reply().text("done")]);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, high) = (running.clone(), most.clone());
    let ok = Tool::new("ok", "Waits.", json!({"type": "object"}), move |_: Value, _: ToolContext| {
        let (now, high) = (now.clone(), high.clone());
        async move {
            high.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(Duration::from_millis(1)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            ToolOutput::text("ok")
        }
    });
    let assistant = Assistant::builder(model).tools(ToolSet::new().with(ok.unwrap())).build().unwrap();
    assert_eq!(assistant.prompt("go").await.unwrap().text(), "done");
    assert_eq!(assistant.messages().len(), 1003);
    assert_eq!(most.load(Ordering::SeqCst), 16);
    assert_sound(&assistant);
}

#[tokio::test]
async fn equal_calls_of_one_reply_are_a_loop_too() {
    let calls = (0..4).fold(reply(), |reply, _| reply.tool_call("fast", "{}"));
    let assistant = assistant(&ScriptedModel::new([calls, reply().text("done")])).build().unwrap();
    assert_eq!(assistant.prompt("go").await.unwrap().text(), "done");
    let refused = "fast failed(repeated_call)";
    assert_eq!(outline(&assistant)[2..6], ["fast fast done", "fast fast done", refused, refused]);
}

#[tokio::test]
async fn garbage_of_a_model_is_answered_and_the_next_prompt_works() {
    let scripts = [
        reply(),
        reply().text(""),
        reply().tool_call("", ""),
        reply().tool_call("nope", "{").tool_call("double", "null").tool_call("double", "[[[["),
        reply().tool_call_with_id("", "fast", "{}").tool_call_with_id("", "fast", "{}"),
        reply().part(Part::image(b"png", "image/png")).tool_call("fast", "\u{0}"),
    ];
    for (n, script) in scripts.into_iter().enumerate() {
        let model = ScriptedModel::new([script, reply().text("fine"), reply().text("and on")]);
        let assistant = assistant(&model).build().unwrap();
        let output = assistant.prompt("go").await;
        assert!(output.is_ok(), "{n}: {output:?}");
        assert_sound(&assistant);
        assert!(assistant.prompt("again").await.is_ok(), "{n}");
    }
    let broken = reply()
        .text("half")
        .tool_call("fast", "{")
        .error(ModelError::new(ModelErrorKind::Connection, "lost"));
    let assistant = assistant(&ScriptedModel::new([broken, reply().text("fine")])).build().unwrap();
    assert!(assistant.prompt("go").await.unwrap_err().as_model_error().unwrap().is_connection());
    assert_eq!(assistant.last_error().as_deref(), Some("lost"));
    assert_eq!(assistant.prompt("again").await.unwrap().text(), "fine");
    assert_eq!(assistant.last_error(), None);
}

#[tokio::test]
async fn a_result_of_100_mb_is_cut_in_the_conversation_and_whole_in_its_event() {
    let big =
        Tool::new("big", "Returns much.", json!({"type": "object"}), |_: Value, _: ToolContext| async {
            ToolOutput::text("x".repeat(100_000_000))
        });
    let model = ScriptedModel::new([reply().tool_call("big", "{}"), reply().text("done")]);
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let assistant = Assistant::builder(model)
        .tools(ToolSet::new().with(big.unwrap()))
        .on_event(move |event| {
            if let EventKind::ToolExecutionEnd { result, .. } = &event.kind {
                count.store(result.outcome.text().len(), Ordering::SeqCst);
            }
        })
        .build()
        .unwrap();
    assistant.prompt("go").await.unwrap();
    let text = assistant.messages().get(2).unwrap().text();
    assert!(text.len() < 66_000 && text.contains("of 100000000 bytes are left out"), "{}", text.len());
    assert_eq!(seen.load(Ordering::SeqCst), 100_000_000);
}

#[tokio::test]
async fn a_long_result_is_kept_in_a_file_and_read_from_there() {
    let folder = std::env::temp_dir().join(format!("agent-spill-{}", std::process::id()));
    let long =
        Tool::new("long", "Returns much.", json!({"type": "object"}), |_: Value, _: ToolContext| async {
            ToolOutput::text((0..2000).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat())
        });
    let model = ScriptedModel::from_fn(|request| {
        match request.messages.last().and_then(|last| last.as_tool_result()) {
            None => reply().tool_call("long", "{}"),
            Some(result) if result.tool == "long" => {
                let text = result.text();
                let handle = text.split("handle `").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
                reply().tool_call("read_result", json!({"handle": handle, "offset": 8000, "length": 30}))
            }
            Some(result) => reply().text(result.text()),
        }
    });
    let assistant = Assistant::builder(model)
        .tools(ToolSet::new().with(long.unwrap()))
        .max_result_bytes(1000)
        .spill_results(&folder)
        .build()
        .unwrap();
    let text = assistant.prompt("go").await.unwrap().text();
    let _ = std::fs::remove_dir_all(&folder);
    assert!(text.starts_with("[bytes 8000 to 8030 of 18890]\n") && text.contains("line 90"), "{text}");
    let call = agent::message::ToolCall::new("c", "read_result", r#"{"handle": "../etc/passwd"}"#);
    let refused = assistant.registry().call(&call, &ToolContext::new()).await;
    assert!(refused.outcome.text().contains("there is no result"));
}

#[tokio::test(start_paused = true)]
async fn tools_that_fail_from_outside_are_run_again_where_that_is_allowed() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let flaky =
        Tool::new("flaky", "Fails twice.", json!({"type": "object"}), move |_: Value, cx: ToolContext| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            async move {
                match n {
                    0 => panic!("the first time"),
                    1 => std::future::pending().await,
                    _ => ToolOutput::text(format!("attempt {} of {}", cx.attempt(), cx.max_attempts())),
                }
            }
        });
    let flaky = flaky.unwrap();
    let once = flaky.clone();
    let play = async |tool: Tool| {
        let model = ScriptedModel::new([reply().tool_call("flaky", "{}"), reply().text("done")]);
        let assistant = Assistant::builder(model).tools(ToolSet::new().with(tool)).build().unwrap();
        assistant.prompt("go").await.unwrap();
        assistant.messages().get(2).unwrap().text()
    };
    assert_eq!(
        play(
            flaky
                .configure(|options| options.effect(agent::tool::Effect::Idempotent).max_attempts(3))
                .unwrap()
        )
        .await,
        "attempt 3 of 3"
    );
    runs.store(0, Ordering::SeqCst);
    assert!(play(once).await.contains("crashed"), "what must not happen twice is not tried again");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn hooks_that_panic_are_results_or_end_the_run() {
    let model =
        || ScriptedModel::new([reply().tool_call("fast", "{}"), reply().text("done"), reply().text("on")]);
    let before = assistant(&model()).before_tool_call(|_| async { panic!("before") }).build().unwrap();
    before.prompt("go").await.unwrap();
    assert_eq!(outline(&before)[2], "fast failed(hook_error)");
    let after = assistant(&model()).after_tool_call(|_, _| async { panic!("after") }).build().unwrap();
    after.prompt("go").await.unwrap();
    assert_eq!(outline(&after)[2], "fast failed(hook_error)");
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let request = assistant(&model())
        .transform_context(move |messages, _| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            async move { if n == 0 { panic!("context") } else { Ok(messages) } }
        })
        .build()
        .unwrap();
    let error = request.prompt("go").await.unwrap_err();
    assert!(matches!(&error, RunError::Request { message, .. } if message.contains("context")), "{error}");
    assert_eq!(outline(&request), ["user go", "error "]);
    assert_sound(&request);
    assert_eq!(request.prompt("again").await.unwrap().text(), "done");
}

#[tokio::test]
async fn receipts_say_what_became_of_messages() {
    let assistant = assistant(&ScriptedModel::new(["a", "b", "c"])).build().unwrap();
    let (steered, again) = (assistant.steer("s"), assistant.follow_up("f"));
    let gone = assistant.follow_up("g");
    assert!(assistant.remove_queued(gone.id()));
    assert_eq!(gone.delivered().await, Delivery::Cleared);
    let output = assistant.prompt("go").await.unwrap();
    let Delivery::Delivered { run_id, turn, .. } = steered.delivered().await else { panic!("{steered:?}") };
    assert_eq!((run_id, turn), (output.run_id, 1));
    assert!(matches!(again.status(), Some(Delivery::Delivered { turn: 2, .. })));
    let open = assistant.follow_up("never");
    drop(assistant);
    assert_eq!(open.delivered().await, Delivery::Closed);
}

#[tokio::test]
async fn a_run_is_a_stream_that_is_never_ahead_of_its_reader() {
    let model = ScriptedModel::new([reply().tool_call("fast", "{}"), reply().text("never")]);
    let assistant = assistant(&model).build().unwrap();
    let mut run = assistant.prompt("go").stream();
    let handle = run.handle();
    let mut seqs = Vec::new();
    while let Some(event) = run.next().await {
        seqs.push(event.seq);
        if matches!(event.kind, EventKind::ToolExecutionStart { .. }) {
            assert!(handle.snapshot().is_some());
            handle.cancel("seen");
        }
    }
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert!(matches!(run.output().await, Err(RunError::Aborted { reason, .. }) if reason == "seen"));
    assert_eq!(outline(&assistant)[2], "fast interrupted(aborted)");
    // Before its first poll, a stream is cancelled by its handle alone.
    let mut early = assistant.prompt("again").stream();
    assistant.cancel("there is no current run");
    early.handle().cancel("early");
    while early.next().await.is_some() {}
    assert!(matches!(early.output().await, Err(RunError::Aborted { reason, .. }) if reason == "early"));
    let mut dropped = assistant.prompt("again").stream();
    assert!(dropped.next().await.is_some());
    assert!(assistant.is_busy());
    drop(dropped);
    assert!(!assistant.is_busy());
    assert_sound(&assistant);
}

#[tokio::test]
async fn forks_go_their_own_ways() {
    let template =
        assistant(&ScriptedModel::from_fn(|request| reply().text(request.messages.len().to_string())))
            .build()
            .unwrap();
    template.prompt("go").await.unwrap();
    let (one, two) = (template.fork(), template.fork());
    let (a, b) = tokio::join!(one.prompt("x").into_future(), two.prompt("y").into_future());
    assert_eq!((a.unwrap().text(), b.unwrap().text()), ("3".to_owned(), "3".to_owned()));
    assert_eq!((template.messages().len(), one.messages().len()), (2, 4));
    assert_eq!(tools().len(), 9);
}

#[tokio::test]
async fn equal_calls_are_answered_from_the_cache_until_it_is_reset() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let roll = Tool::new(
        "roll",
        "Rolls.",
        json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        move |args: Value, _: ToolContext| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            async move {
                if args["n"] == 13 {
                    Err(ToolError::new("unlucky"))
                } else {
                    Ok(ToolOutput::text(n.to_string()))
                }
            }
        },
    );
    let calls = || {
        [r#"{"n": 1}"#, r#"{"n": "1"}"#, r#"{"n": 2}"#, r#"{"n": 13}"#]
            .into_iter()
            .fold(reply(), |reply, args| reply.tool_call("roll", args))
    };
    let model = ScriptedModel::from_fn(move |request| {
        match request.messages.last().and_then(|last| last.as_tool_result()) {
            None => calls(),
            Some(_) => reply().text("done"),
        }
    });
    let assistant = Assistant::builder(model)
        .tools(ToolSet::new().with(roll.unwrap().configure(|options| options.cache(true)).unwrap()))
        .sequential()
        .build()
        .unwrap();
    assistant.prompt("go").await.unwrap();
    let texts: Vec<_> = assistant
        .messages()
        .iter()
        .filter(|message| matches!(message, Message::ToolResult(_)))
        .map(Message::text)
        .collect();
    assert_eq!(texts, ["0", "0", "1", "unlucky"]);
    assistant.prompt("again").await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 4, "failures are not kept, results are");
    assistant.reset().await;
    assistant.prompt("go").await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 7);
}
