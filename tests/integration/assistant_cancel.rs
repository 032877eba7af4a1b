//! Runs that are cancelled, dropped or reset: the conversation is sound wherever they stood.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent::model::reply;
use agent::{CancelToken, EventKind, RunError, ScriptedModel};
use tokio::time::sleep;

use crate::assistant_support::{assert_sound, assistant, outline};

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
    assert!(matches!(result, Err(RunError::Aborted { reason, .. }) if reason == "user stop"));
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
    let builder = assistant(&ScriptedModel::new([calls]));
    let assistant = builder.max_concurrency(2).without_loop_guard().build().unwrap();
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
    assert!(matches!(first.await.unwrap(), Err(RunError::Aborted { reason, .. }) if reason == "reset"));
    assert!(assistant.messages().is_empty());
    assistant.wait_until_idle().await;
    assert_eq!(assistant.prompt("again").await.unwrap().text(), "ok");
}
