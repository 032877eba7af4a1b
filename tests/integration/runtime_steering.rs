//! Messages that come while calls run, or wait for a word.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use agent::message::{Message, UserMessage};
use agent::model::reply;
use agent::run::Queue;
use agent::{
    Assistant, Decision, Decisions, EventKind, RunStop, ScriptedModel, run::SteeringPolicy, tool, tools,
};
use tokio::time::{Instant, sleep};

use crate::assistant_support::{assert_sound, outline};

/// Takes 50 ms.
#[tool]
async fn work(n: u32) -> u32 {
    sleep(Duration::from_millis(50)).await;
    n
}

/// Somebody has to allow it.
#[tool(approval = "always", inline)]
fn pay(n: u32) -> u32 {
    n
}

fn calls() -> ScriptedModel {
    ScriptedModel::new([
        reply().tool_call("work", r#"{"n": 1}"#),
        reply().tool_call("work", r#"{"n": 2}"#).tool_call("work", r#"{"n": 3}"#),
        reply().tool_call("work", r#"{"n": 4}"#),
        reply().text("done"),
    ])
}

/// Steers with these messages while the first call runs.
fn steered(policy: SteeringPolicy, messages: &'static [&'static str]) -> Assistant {
    let assistant =
        Assistant::builder(calls()).tools(tools![work]).sequential().steering_policy(policy).build().unwrap();
    let (same, is_done) = (assistant.clone(), AtomicBool::new(false));
    assistant
        .subscribe(move |event| {
            if matches!(event.kind, EventKind::ToolExecutionStart { .. })
                && !is_done.swap(true, Ordering::Relaxed)
            {
                for text in messages {
                    same.steer(*text);
                }
            }
        })
        .forever();
    assistant
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_left_over_skips_no_calls_of_the_turn_before_it() {
    for policy in [SteeringPolicy::SkipUnstarted, SteeringPolicy::CancelRunning] {
        let assistant = steered(policy, &["S1", "S2"]);
        assistant.prompt("go").await.unwrap();
        // Told at the first call's start: the call does not run. What is left over of it is heard later.
        assert_eq!(
            outline(&assistant),
            [
                "user go",
                "tool_use work",
                "work interrupted(steered)",
                "user S1",
                "tool_use work,work",
                "work 2",
                "work 3",
                "user S2",
                "tool_use work",
                "work 4",
                "stop done"
            ],
            "{policy:?}"
        );
        assert_sound(&assistant);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_beside_one_that_was_left_over_counts() {
    let assistant = steered(SteeringPolicy::SkipUnstarted, &["S1", "S2"]);
    let (same, seen) = (assistant.clone(), AtomicU32::new(0));
    assistant
        .subscribe(move |event| {
            // When the first call of the second turn has ended.
            if matches!(event.kind, EventKind::ToolExecutionEnd { ran: true, .. })
                && seen.fetch_add(1, Ordering::Relaxed) == 0
            {
                // The one that was left over goes; the new one is news all the same.
                let left = same.queued(Queue::Steering);
                let Some(Message::User(left)) = left.first().map(|message| &**message) else {
                    panic!("nothing left")
                };
                assert!(same.remove_queued(left.id.as_deref().unwrap()));
                same.steer("S3");
            }
        })
        .forever();
    assistant.prompt("go").await.unwrap();
    let said = outline(&assistant);
    assert_eq!(
        said[4..8],
        ["tool_use work,work", "work 2", "work interrupted(steered)", "user S3"],
        "{said:?}"
    );
}

/// An approver that never answers; says whether it was dropped.
struct Asked(Arc<AtomicBool>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn asking(policy: SteeringPolicy, takes: Duration, dropped: &Arc<AtomicBool>) -> Assistant {
    let model = ScriptedModel::new([
        reply().tool_call("pay", r#"{"n": 1}"#).tool_call("work", r#"{"n": 2}"#),
        reply().text("done"),
    ]);
    let dropped = dropped.clone();
    Assistant::builder(model)
        .tools(tools![work, pay])
        .steering_policy(policy)
        .on_approval(move |_| {
            let asked = Asked(dropped.clone());
            async move {
                sleep(takes).await;
                drop(asked);
                Decision::Allow
            }
        })
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_message_while_somebody_is_asked_takes_the_question_back() {
    let hour = Duration::from_secs(3600);
    for policy in [SteeringPolicy::SkipUnstarted, SteeringPolicy::CancelRunning] {
        let dropped = Arc::default();
        let assistant = asking(policy, hour, &dropped);
        let (begun, same) = (Instant::now(), assistant.clone());
        let steers = async {
            sleep(Duration::from_millis(20)).await;
            assert!(!dropped.load(Ordering::SeqCst), "it is asked");
            same.steer("never mind")
        };
        let (output, receipt) = tokio::join!(assistant.prompt("go").into_future(), steers);
        assert_eq!(output.unwrap().stop, RunStop::Completed);
        assert!(dropped.load(Ordering::SeqCst) && begun.elapsed() < hour, "nobody is asked any longer");
        assert!(matches!(receipt.delivered().await, agent::run::Delivery::Delivered { turn: 2, .. }));
        let said = outline(&assistant);
        assert_eq!(
            said[2..],
            ["pay interrupted(steered)", "work interrupted(steered)", "user never mind", "stop done"],
            "{policy:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_the_batch_leaves_the_question_open() {
    let dropped = Arc::default();
    let assistant = asking(SteeringPolicy::AfterBatch, Duration::from_secs(60), &dropped);
    let same = assistant.clone();
    let steers = async {
        sleep(Duration::from_millis(20)).await;
        same.steer("and then?");
    };
    let (output, ()) = tokio::join!(assistant.prompt("go").into_future(), steers);
    output.unwrap();
    assert_eq!(outline(&assistant)[2..], ["pay 1", "work 2", "user and then?", "stop done"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_with_a_decision_does_not_stop_what_was_decided_on() {
    let model = ScriptedModel::new([reply().tool_call("pay", r#"{"n": 1}"#), reply().text("done")]);
    let assistant = Assistant::builder(model)
        .tools(tools![pay])
        .steering_policy(SteeringPolicy::CancelRunning)
        .build()
        .unwrap();
    let suspended = assistant.prompt("go").await.unwrap().snapshot.expect("it waits");
    let allowed = Decisions::new().allow(&suspended.requests()[0]);
    assistant.resume(&suspended, allowed).with_message(Message::user("and hurry")).await.unwrap();
    assert_eq!(outline(&assistant)[2..], ["pay 1", "user and hurry", "stop done"]);
}

#[test]
fn a_message_may_use_the_assistant_while_it_is_made() {
    struct Waiting(Assistant);
    impl From<Waiting> for UserMessage {
        fn from(Waiting(assistant): Waiting) -> Self {
            format!("{} wait", assistant.queued(Queue::Steering).len()).into()
        }
    }
    let assistant = Assistant::builder(ScriptedModel::new([""; 0])).build().unwrap();
    assistant.steer(Waiting(assistant.clone()));
    assistant.follow_up(Waiting(assistant.clone()));
    let texts = [Queue::Steering, Queue::FollowUp].map(|queue| assistant.queued(queue)[0].text());
    assert_eq!(texts, ["0 wait", "1 wait"]);
}
