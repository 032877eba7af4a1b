//! The one driver with steps of an application: what breaks its contract ends the run with a typed error, and never hangs.

use std::sync::Arc;

use agent::ScriptedModel;
use agent::message::{AssistantMessage, Conversation, Message, MessageList, Part, ToolCall};
use agent::model::reply;
use agent::run::{Queue, SteeringPolicy};
use agent::steps::{SharedLoop, StepError, Steps, drive};
use agent::{Assistant, EventKind, RunStop, ToolOutcome, ToolOutput, steps::StepKey, tool, tools};
use agent::{
    Event, UsageLimits,
    loop_core::{AgentLoop, CallDecision, CallEnd, End, LoopConfig, ModelReply, Ready},
};

/// A way to break the contract.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    NoEnd,
    WrongCall,
    NotPrepared,
    PreparedTwice,
    FewDecisions,
    FewLater,
    PreparedAgain,
    DefersAgain,
    QueuesReply,
    StopsAlways,
    EventsFail,
    /// Records a wrong call, and then receives no events.
    WrongCallUnheard,
}

struct Faulty(Fault);

impl Steps for Faulty {
    async fn model(&mut self, key: StepKey, _: MessageList, _: &SharedLoop) -> Result<ModelReply, StepError> {
        let calls = [Part::tool_call("a", "t", "{}"), Part::tool_call("b", "t", "{}")];
        Ok(ModelReply::new(if key.turn == 1 { AssistantMessage::new(calls) } else { "done".into() }))
    }

    async fn prepare(
        &mut self,
        key: StepKey,
        calls: Vec<Arc<ToolCall>>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        for (ord, _) in (key.ord..).zip(calls) {
            let mut ready = Ready::default();
            let asks = matches!(self.0, Fault::FewDecisions | Fault::FewLater);
            ready.approval = asks.then(|| "{}".into());
            run.lock().record_prepared(ord, Ok(ready))?;
            if self.0 == Fault::NotPrepared {
                return Ok(());
            }
            if self.0 == Fault::PreparedAgain {
                run.lock().record_prepared(ord, Ok(Ready::default()))?;
            }
        }
        if self.0 == Fault::PreparedTwice {
            run.lock().record_prepared(7, Ok(Ready::default()))?;
        }
        Ok(())
    }

    async fn approvals(
        &mut self,
        _: Vec<(StepKey, agent::run::ApprovalRequest)>,
        _: &SharedLoop,
    ) -> Result<Vec<CallDecision>, StepError> {
        Ok(vec![if self.0 == Fault::FewLater { CallDecision::Later } else { CallDecision::Allow(None) }])
    }

    async fn poll(&mut self, _: StepKey, _: Queue, _: &SharedLoop) -> Result<Vec<Arc<Message>>, StepError> {
        let reply = (self.0 == Fault::QueuesReply).then(|| Arc::new(Message::assistant("I said so.")));
        Ok(reply.into_iter().collect())
    }

    async fn await_deferred(
        &mut self,
        deferred: Vec<(StepKey, String)>,
    ) -> Result<Option<Vec<CallEnd>>, StepError> {
        let again = |(_, handle)| CallEnd::ran(ToolOutcome::Deferred { handle }, 1);
        Ok(Some(deferred.into_iter().map(again).collect()))
    }

    async fn tools(
        &mut self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        for (key, _) in calls {
            let is_wrong = matches!(self.0, Fault::WrongCall | Fault::WrongCallUnheard);
            let ord = if is_wrong { key.ord + 5 } else { key.ord };
            let end = match self.0 {
                Fault::DefersAgain => CallEnd::ran(ToolOutcome::Deferred { handle: key.to_string() }, 1),
                _ => CallEnd::ran(ToolOutput::text("ok"), 1),
            };
            run.lock().record_call_end(ord, end)?;
            if self.0 == Fault::NoEnd {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn before_step(&mut self, _: &SharedLoop) -> Result<(), StepError> {
        if self.0 == Fault::StopsAlways { Err(StepError::failed("no")) } else { Ok(()) }
    }

    async fn event(&mut self, _: Event, run: &SharedLoop) -> Result<(), StepError> {
        match self.0 {
            Fault::EventsFail => Err(StepError::cancelled("no more")),
            Fault::WrongCallUnheard if run.lock().end().is_some() => Err(StepError::engine("gone")),
            _ => Ok(()),
        }
    }
}

fn begin() -> SharedLoop {
    let prompt = Message::user("go");
    SharedLoop::new(AgentLoop::new("r", LoopConfig::default(), Conversation::new(), [prompt]))
}

#[tokio::test]
async fn a_broken_contract_ends_the_run_with_a_typed_error() {
    for (fault, wanted) in [
        (Fault::NoEnd, "no result of call 1 was recorded".to_owned()),
        (Fault::WrongCall, "the run does not wait for a result of call 5".to_owned()),
        (Fault::WrongCallUnheard, "the run does not wait for a result of call 5".to_owned()),
        (Fault::NotPrepared, "no result of call 1 was recorded".to_owned()),
        (Fault::PreparedTwice, "the run does not wait for a result of call 7".to_owned()),
        (Fault::FewDecisions, "the run waits for 2 results, 1 were recorded".to_owned()),
        (Fault::FewLater, "the run waits for 2 results, 1 were recorded".to_owned()),
        (Fault::PreparedAgain, "the run does not wait for a result of call 0".to_owned()),
        (Fault::DefersAgain, "the result of call 0 is awaited, and cannot be deferred again".to_owned()),
        (Fault::QueuesReply, "a queue cannot have a message of the role assistant".to_owned()),
    ] {
        let run = begin();
        let error = drive(&run, &mut Faulty(fault)).await.unwrap_err();
        assert!(
            matches!(&error, StepError::Record(record) if record.to_string() == wanted),
            "{fault:?}: {error}"
        );
        let run = run.into_inner();
        assert_eq!(run.end(), Some(&End::error(wanted)), "{fault:?}");
        assert!(run.conversation().is_sound(), "{fault:?}");
    }
}

#[tokio::test]
async fn steps_that_always_stop_end_the_run_once() {
    for (fault, end) in [
        (Fault::None, End::Completed),
        (Fault::StopsAlways, End::error("no")),
        (Fault::EventsFail, End::aborted("no more")),
    ] {
        let run = begin();
        drive(&run, &mut Faulty(fault)).await.unwrap();
        assert_eq!(run.lock().end(), Some(&end), "{fault:?}");
        assert!(run.lock().take_event().is_none(), "all events are received");
    }
}

/// Pays.
#[tool(inline, approval = "always")]
fn pay(amount: u64) -> String {
    format!("{amount} paid")
}

#[tokio::test]
async fn a_listener_that_cancels_a_suspended_run_leaves_it_suspended() {
    let model = ScriptedModel::new([reply().tool_call("pay", r#"{"amount": 5}"#), reply().text("paid")]);
    let assistant = Assistant::builder(model).tools(tools![pay]).build().unwrap();
    let same = assistant.clone();
    assistant
        .subscribe(move |event| {
            if matches!(event.kind, EventKind::RunSuspended { .. }) {
                same.cancel("too late");
            }
        })
        .forever();
    let output = assistant.prompt("go").await.unwrap();
    assert_eq!(output.stop, RunStop::Suspended);
    assert_eq!(output.snapshot.unwrap().requests().len(), 1);
}

#[tokio::test]
async fn a_run_can_be_looked_at_while_it_is_driven() {
    let model = ScriptedModel::new([reply().tool_call("look_at_me", "{}"), reply().text("done")]);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let assistant =
        Assistant::builder(model).tools(tools![look_at_me]).limits(UsageLimits::default()).build().unwrap();
    let (same, log) = (assistant.clone(), seen.clone());
    assistant
        .subscribe(move |event| {
            log.lock().unwrap().push((event.kind.clone(), same.messages().len(), same.pending_calls().len()));
        })
        .forever();
    assistant.prompt("go").await.unwrap();
    let seen = seen.lock().unwrap();
    let at = |is: fn(&EventKind) -> bool| seen.iter().find(|(kind, ..)| is(kind)).map(|(_, a, b)| (*a, *b));
    assert_eq!(at(|kind| matches!(kind, EventKind::ToolExecutionStart { .. })), Some((2, 1)));
    assert_eq!(at(|kind| matches!(kind, EventKind::AgentEnd { .. })), Some((4, 0)));
}

/// Looks.
#[tool(inline)]
fn look_at_me() -> &'static str {
    "seen"
}

/// Prepares the first call, and then fails once.
struct FailsOnce {
    has_failed: bool,
    ran: Vec<u32>,
}

impl Steps for FailsOnce {
    async fn model(
        &mut self,
        key: StepKey,
        messages: MessageList,
        run: &SharedLoop,
    ) -> Result<ModelReply, StepError> {
        Faulty(Fault::None).model(key, messages, run).await
    }

    async fn prepare(
        &mut self,
        key: StepKey,
        calls: Vec<Arc<ToolCall>>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        for (ord, _) in (key.ord..).zip(calls) {
            run.lock().record_prepared(ord, Ok(Ready::default()))?;
            if !std::mem::replace(&mut self.has_failed, true) {
                return Err(StepError::engine("the journal is gone"));
            }
        }
        Ok(())
    }

    async fn tools(
        &mut self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        for (key, _) in calls {
            self.ran.push(key.ord);
            run.lock()
                .record_call_end(key.ord, CallEnd::ran(ToolOutcome::Completed(ToolOutput::text("ok")), 0))?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_step_that_failed_midway_is_taken_again_from_there() {
    let (run, mut steps) = (begin(), FailsOnce { has_failed: false, ran: Vec::new() });
    let error = drive(&run, &mut steps).await.unwrap_err();
    assert!(matches!(error, StepError::Engine { .. }));
    drive(&run, &mut steps).await.unwrap();
    assert_eq!(steps.ran, [0, 1]);
    assert!(run.lock().end().is_some_and(End::is_completed));
}

/// A message arrives before the look of this number. Calls are prepared, decided on and run.
struct Steered {
    at_look: u32,
    looks: u32,
    took: Vec<&'static str>,
}

impl Steps for Steered {
    async fn model(
        &mut self,
        key: StepKey,
        messages: MessageList,
        run: &SharedLoop,
    ) -> Result<ModelReply, StepError> {
        Faulty(Fault::None).model(key, messages, run).await
    }

    async fn is_steered(&mut self, _: &SharedLoop) -> Result<bool, StepError> {
        self.looks += 1;
        Ok(self.looks >= self.at_look)
    }

    async fn prepare(
        &mut self,
        _: StepKey,
        calls: Vec<Arc<ToolCall>>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        self.took.push("prepare");
        for (ord, _) in (0..).zip(calls) {
            let mut ready = Ready::default();
            ready.approval = (ord == 0).then(|| "{}".into());
            run.lock().record_prepared(ord, Ok(ready))?;
        }
        Ok(())
    }

    async fn approvals(
        &mut self,
        requests: Vec<(StepKey, agent::run::ApprovalRequest)>,
        _: &SharedLoop,
    ) -> Result<Vec<CallDecision>, StepError> {
        self.took.push("approvals");
        Ok(vec![CallDecision::Allow(None); requests.len()])
    }

    async fn tools(
        &mut self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        self.took.push("tools");
        Faulty(Fault::None).tools(calls, run).await
    }
}

#[tokio::test]
async fn performers_say_that_they_are_steered_and_the_driver_skips_the_calls() {
    let drive_with = async |policy, at_look| {
        let mut config = LoopConfig::default();
        config.steering = policy;
        let prompt = Message::user("Hi");
        let run = SharedLoop::new(AgentLoop::new("run-1", config, Conversation::new(), [prompt]));
        let mut steps = Steered { at_look, looks: 0, took: Vec::new() };
        drive(&run, &mut steps).await.unwrap();
        let run = run.into_inner();
        assert!(run.end().is_some_and(End::is_completed));
        let results = run.conversation().iter().filter_map(Message::as_tool_result);
        let results: Vec<_> = results.map(|result| result.outcome.as_str().to_owned()).collect();
        (steps.took, results)
    };
    let all = ["prepare", "approvals", "tools"];
    for (at_look, took) in [(1, &all[..0]), (2, &all[..1]), (3, &all[..2])] {
        let (steps, results) = drive_with(SteeringPolicy::SkipUnstarted, at_look).await;
        assert_eq!((steps.as_slice(), results), (took, vec!["interrupted".to_owned(); 2]), "{at_look}");
    }
    for (policy, at_look) in [(SteeringPolicy::SkipUnstarted, 4), (SteeringPolicy::AfterBatch, 1)] {
        let (took, results) = drive_with(policy, at_look).await;
        assert_eq!((took, results), (all.to_vec(), vec!["completed".to_owned(); 2]));
    }
}
