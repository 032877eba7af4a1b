//! The loop as a value, driven by chance: whatever is answered, aborted, steered and decided when, the conversation is
//! sound, the events keep their grammar, and a run that is stored at any step ends the same.

use std::collections::HashMap;

use agent::message::{AssistantMessage, Conversation, Message, Part, StopReason, ToolArguments, Usage};
use agent::{Control, Registry, ToolOutcome, ToolOutput, json, tool, tool::OutcomeCode, tools};
use agent::{
    Event, EventKind, RunStop, UsageLimits,
    loop_core::{AgentLoop, CallDecision, CallEnd, LoopConfig, ModelReply, Ready, Step},
    run::SteeringPolicy,
};
use proptest::prelude::*;

/// Choices, one byte each; zeros when they are used up, so that every run ends.
struct Chance<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Chance<'_> {
    fn below(&mut self, n: u8) -> u8 {
        self.bytes.next().map_or(0, |byte| byte % n)
    }

    fn one_in(&mut self, n: u8) -> bool {
        self.below(n) == n - 1
    }

    fn outcome(&mut self) -> ToolOutcome {
        match self.below(8) {
            0..=2 => ToolOutput::text(format!("done {}", self.below(3))).into(),
            3 => ToolOutput::text("stop").with_control(Control::EndNow).into(),
            4 => ToolOutput::text("stop").with_control(Control::EndIfAll).into(),
            5 => agent::ToolError::retry("better").into(),
            6 => ToolOutcome::failed(OutcomeCode::TOOL_ERROR, "kaput"),
            _ => ToolOutcome::Deferred { handle: "later".into() },
        }
    }

    fn end(&mut self) -> CallEnd {
        CallEnd::ran(self.outcome(), 1)
    }

    #[expect(clippy::result_large_err, reason = "a short-lived value, one for each call")]
    fn prepared(&mut self) -> Result<Ready, CallEnd> {
        match self.below(6) {
            0 => Err(CallEnd::new(ToolOutcome::failed(OutcomeCode::INVALID_ARGUMENTS, "no"))),
            1 => {
                let mut ready = Ready::default();
                ready.approval = Some(ToolArguments::default());
                Ok(ready)
            }
            2 => {
                let mut ready = Ready::default();
                ready.cached = Some(Box::new(CallEnd::new(ToolOutcome::from(ToolOutput::text("known")))));
                Ok(ready)
            }
            3 => Ok(Ready::default().guarded("t", &json!({}))),
            _ => Ok(Ready::default()),
        }
    }

    fn reply(&mut self) -> ModelReply {
        let calls = self.below(5);
        // Ids twice, unknown tools, an exclusive one.
        let call =
            |n: u8| Part::tool_call(format!("c{}", n % 3), ["a", "b", "solo"][usize::from(n % 3)], "{}");
        let mut parts: Vec<Part> = (0..calls).map(call).collect();
        if self.one_in(2) {
            parts.insert(0, Part::text("hm"));
        }
        let mut message = AssistantMessage::new(parts);
        message.usage = Usage::new(10, 5);
        match self.below(12) {
            9 => message.stop_reason = StopReason::MaxTokens,
            10 => message.stop_reason = StopReason::Error,
            11 => message.stop_reason = StopReason::Aborted,
            8 => message.stop_reason = StopReason::Pause,
            _ => {}
        }
        ModelReply::new(message)
    }

    fn messages(&mut self) -> Vec<std::sync::Arc<Message>> {
        (0..self.below(3)).map(|n| Message::user(format!("m{n}")).into()).collect()
    }

    fn decided(&mut self) -> CallDecision {
        match self.below(5) {
            0 => CallDecision::Deny("no".into()),
            1 => CallDecision::Allow(Some(json!({"edited": true}).into())),
            2 => CallDecision::AllowEnded(CallEnd::new(ToolOutcome::failed(
                OutcomeCode::INVALID_ARGUMENTS,
                "no",
            ))),
            3 => CallDecision::Later,
            _ => CallDecision::Allow(None),
        }
    }
}

/// Runs alone.
#[tool(exclusive)]
fn solo() {}

fn config(chance: &mut Chance<'_>) -> LoopConfig {
    let mut config = LoopConfig::default();
    config.max_turns = u32::from(chance.below(6)) + 1;
    config.sequential = chance.one_in(5);
    config.steering =
        [SteeringPolicy::AfterBatch, SteeringPolicy::SkipUnstarted][usize::from(chance.below(2))];
    config.limits = UsageLimits { tool_calls: chance.one_in(4).then_some(3), ..UsageLimits::default() };
    config.with_tools(&Registry::new(tools![solo]).unwrap())
}

/// Drives one run by chance; gives its events and the loop.
fn run(bytes: &[u8]) -> (Vec<Event>, AgentLoop) {
    let mut chance = Chance { bytes: bytes.iter() };
    let config = config(&mut chance);
    let history = Conversation::from_iter([Message::user("before"), Message::assistant("yes")]);
    let mut run = AgentLoop::new("r", config, history, [Message::user("go")]);
    let mut events = Vec::new();
    for _ in 0..400 {
        events.extend(std::iter::from_fn(|| run.take_event()));
        assert_eq!(run.next(), run.next(), "asking changes nothing");
        if chance.one_in(24) {
            run.abort("enough");
            events.extend(std::iter::from_fn(|| run.take_event()));
            assert!(run.conversation().is_sound(), "{:?}", run.conversation());
        }
        if chance.one_in(12) {
            run.steered();
            // Calls that waited for decisions have ended.
            events.extend(std::iter::from_fn(|| run.take_event()));
        }
        if chance.one_in(6) {
            let stored = serde_json::to_string(&run).unwrap();
            let again: AgentLoop = serde_json::from_str(&stored).unwrap();
            assert_eq!(again, run, "{stored}");
            run = again;
        }
        // A result that does not fit changes nothing.
        let before = run.clone();
        let wrong = match run.next() {
            Step::TurnEnd { .. } => run.record_decisions(vec![chance.decided()]),
            _ => run.record_turn_end(None),
        };
        assert!(wrong.is_err());
        assert_eq!(run, before);
        match run.next() {
            Step::Done(_) => break,
            Step::Poll { .. } => run.record_messages(chance.messages()).unwrap(),
            Step::CallModel { messages, .. } => {
                assert!(messages.iter().cloned().collect::<Conversation>().is_sound());
                if chance.one_in(2) {
                    run.record_reply_start(AssistantMessageStart::shared()).unwrap();
                    if chance.one_in(8) {
                        run.abort("while it streams");
                        continue;
                    }
                }
                run.record_reply(chance.reply()).unwrap();
            }
            Step::Prepare { calls, key, .. } => {
                for (ord, _) in (key.ord..).zip(calls) {
                    // Out of turn, and twice.
                    if chance.one_in(4) {
                        let _ = run.record_call_start(ord + u32::from(chance.below(3)));
                    }
                    if chance.one_in(2) {
                        run.record_call_start(ord).unwrap();
                    }
                    run.record_prepared(ord, chance.prepared()).unwrap();
                }
            }
            Step::Approve { requests, .. } => {
                if chance.one_in(4) {
                    assert!(!run.suspend().is_empty());
                    run.resume();
                }
                run.record_decisions(requests.iter().map(|_| chance.decided()).collect()).unwrap();
            }
            Step::CallTools { mut calls, .. } => {
                // In any order.
                while !calls.is_empty() {
                    let at = usize::from(chance.below(u8::try_from(calls.len()).unwrap()));
                    let (key, _) = calls.remove(at);
                    if chance.one_in(2) {
                        run.record_call_update(key.ord, agent::Progress::new("half")).unwrap();
                    }
                    run.record_call_end(key.ord, chance.end()).unwrap();
                    // After its end, and perhaps after that of the segment.
                    let _ = run.record_call_update(key.ord, agent::Progress::new("late"));
                }
            }
            Step::Await { deferred, .. } => {
                if chance.one_in(2) {
                    assert!(!run.suspend().is_empty());
                    run.resume();
                }
                for (key, _) in deferred {
                    run.record_call_end(key.ord, chance.end()).unwrap();
                }
            }
            Step::TurnEnd { .. } => {
                let go_on = [None, Some(true), Some(false), None][usize::from(chance.below(4))];
                if chance.one_in(4) {
                    run.expect_messages();
                }
                run.record_turn_end(go_on).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    if run.end().is_none() {
        run.abort("too long");
    }
    events.extend(std::iter::from_fn(|| run.take_event()));
    (events, run)
}

struct AssistantMessageStart;

impl AssistantMessageStart {
    fn shared() -> std::sync::Arc<Message> {
        std::sync::Arc::new(AssistantMessage::default().into())
    }
}

/// Where the grammar of the events stands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Outside,
    Turn,
    Message,
    Preflight,
    Approvals,
    Running,
    Suspended,
    Results,
    Over,
}

/// Holds the events against the grammar, written down a second time.
#[expect(clippy::too_many_lines, reason = "one grammar")]
pub(crate) fn assert_grammar(events: &[Event]) {
    let mut at = At::Outside;
    let mut calls: HashMap<String, u8> = HashMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut results = 0;
    let mut open_message: Option<&'static str> = None;
    let mut turn = 0;
    let told: Vec<_> = events.iter().map(|event| format!("{} {:?}", event.seq, event.kind)).collect();
    for (n, event) in events.iter().enumerate() {
        let fail = |why: &str| -> ! { panic!("event {}: {why}\n{}", event.seq, told[..=n].join("\n")) };
        if event.seq != n as u64 + 1 {
            fail("the numbers have a gap");
        }
        if at == At::Over {
            fail("something after the end");
        }
        if at == At::Suspended && !matches!(event.kind, EventKind::RunResumed) {
            fail("something while it is suspended");
        }
        match &event.kind {
            EventKind::AgentStart if n == 0 && event.turn == 0 => {}
            EventKind::TurnStart if at == At::Outside => {
                turn += 1;
                at = At::Turn;
                calls.clear();
                order.clear();
                results = 0;
            }
            EventKind::MessageStart { message, .. } => {
                if open_message.is_some() {
                    fail("a message in a message");
                }
                match message.role() {
                    "user" if at == At::Turn && order.is_empty() => open_message = Some("user"),
                    "assistant" if at == At::Turn => {
                        open_message = Some("assistant");
                        at = At::Message;
                    }
                    "tool_result" => {
                        open_message = Some("result");
                        at = At::Results;
                    }
                    _ => fail("a message out of place"),
                }
            }
            EventKind::MessageEnd { message, .. } => {
                let role = open_message.take();
                match (message.role(), role) {
                    ("user", Some("user")) => {}
                    ("assistant", Some("assistant")) => at = At::Turn,
                    ("tool_result", Some("result")) => {
                        let id = message.as_tool_result().map(|result| result.call_id.clone()).unwrap();
                        if order.get(results) != Some(&id) || calls.get(&id) != Some(&2) {
                            fail("a result before its call's end, or out of order");
                        }
                        results += 1;
                    }
                    _ => fail("the end of another message"),
                }
            }
            EventKind::MessageUpdate { .. } if at == At::Message => {}
            EventKind::ToolExecutionStart { call, .. } => {
                if !matches!(at, At::Turn | At::Preflight | At::Results) {
                    fail("a start out of place");
                }
                if at == At::Results && results < order.len() {
                    fail("a segment before the results of the last one");
                }
                if calls.insert(call.id.clone(), 1).is_some() {
                    fail("a second start");
                }
                order.push(call.id.clone());
                at = At::Preflight;
            }
            EventKind::ToolExecutionEnd { result, .. } => {
                if calls.insert(result.call_id.clone(), 2) != Some(1) {
                    fail("an end without a start, or a second one");
                }
                if at == At::Preflight && order.last() != Some(&result.call_id) {
                    at = At::Running;
                }
            }
            EventKind::ToolExecutionUpdate { call_id, .. } => {
                if calls.get(call_id) != Some(&1) {
                    fail("an update after the end");
                }
                at = At::Running;
            }
            EventKind::ApprovalRequired { .. } if matches!(at, At::Preflight | At::Approvals) => {
                at = At::Approvals;
            }
            EventKind::ApprovalResolved { call_id, .. } if at == At::Approvals => {
                if calls.get(call_id) != Some(&1) {
                    fail("a decision on a call that has ended");
                }
            }
            EventKind::QuestionAsked { question, .. } => {
                if calls.get(&question.call_id) != Some(&1) {
                    fail("a question of a call that does not run");
                }
                at = At::Running;
            }
            EventKind::QuestionResolved { call_id, .. } => {
                if calls.get(call_id) != Some(&1) {
                    fail("an answer for a call that has ended");
                }
            }
            EventKind::RunSuspended { pending, .. } => {
                if pending.is_empty() {
                    fail("nothing is waited for");
                }
                at = At::Suspended;
            }
            EventKind::RunResumed => at = At::Approvals,
            EventKind::TurnEnd { tool_results, .. } => {
                if *tool_results != order || results != order.len() {
                    fail("a turn without all results");
                }
                at = At::Outside;
            }
            EventKind::AgentEnd { .. } if at == At::Outside => at = At::Over,
            other => fail(&format!("out of place at {at:?}: {other:?}")),
        }
        if event.turn != turn {
            fail("the wrong turn");
        }
    }
    assert_eq!(at, At::Over, "{}", told.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_interleaving_keeps_the_invariants(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (events, run) = run(&bytes);
        assert_grammar(&events);
        prop_assert!(run.conversation().is_sound(), "{:?}", run.conversation());
        prop_assert!(run.end().is_some());
        prop_assert!(run.turn() <= 6);
        let roles = run.added().len();
        match &events.last().unwrap().kind {
            EventKind::AgentEnd { stop, messages, .. } => {
                prop_assert_eq!(messages.len(), roles);
                prop_assert_ne!(*stop, RunStop::Suspended);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_same_answers_give_the_same_run() {
    let bytes: Vec<u8> = (0..200u32).map(|n| u8::try_from(n * 37 % 251).unwrap()).collect();
    let ((first, _), (second, _)) = (run(&bytes), run(&bytes));
    assert_eq!(first, second);
}

#[test]
fn a_higher_version_is_refused_and_says_so() {
    let run = AgentLoop::new("r", LoopConfig::default(), Conversation::new(), [Message::user("go")]);
    let mut stored = serde_json::to_value(&run).unwrap();
    stored["version"] = 99.into();
    let error = serde_json::from_value::<AgentLoop>(stored).unwrap_err().to_string();
    assert!(error.contains("version 99"), "{error}");
}

#[test]
fn a_thousand_calls_of_one_message_are_a_batch() {
    let mut run = AgentLoop::new("r", LoopConfig::default(), Conversation::new(), [Message::user("go")]);
    run.record_messages(Vec::new()).unwrap();
    let calls = (0..1000).map(|_| Part::tool_call("same", "t", "{}"));
    run.record_reply(ModelReply::new(AssistantMessage::new(calls))).unwrap();
    for ord in 0..1000 {
        run.record_prepared(ord, Ok(Ready::default())).unwrap();
    }
    let Step::CallTools { calls, .. } = run.next() else { panic!("{:?}", run.next()) };
    assert_eq!(calls.len(), 1000);
    run.abort("enough");
    assert!(run.conversation().is_sound());
    assert_eq!(run.conversation().len(), 1002);
}
