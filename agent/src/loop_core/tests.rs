//! Properties of the loop that cannot be tested through its events.

use super::large::cut;
use crate::message::{OutcomeKind, Part, ToolResultMessage};

fn cut_text(texts: &[&str], max: usize) -> String {
    let parts: Vec<Part> = texts.iter().map(|text| Part::text(*text)).collect();
    let mut result = ToolResultMessage::new("c", "t", OutcomeKind::Completed).with_content(parts);
    cut(&mut result, max, None);
    result.text()
}

#[test]
fn long_results_keep_their_ends() {
    assert_eq!(cut_text(&["short"], 5), "short");
    let text = cut_text(&["0123456789", "abcdefghij"], 8);
    assert!(text.starts_with("0123\n[… 12 of 20 bytes are left out here;"), "{text}");
    assert!(text.ends_with("…]\nghij"), "{text}");
    let text = cut_text(&["01", "23456789"], 8);
    assert!(text.starts_with("0123\n") && text.ends_with("\n6789"), "{text}");
    let text = cut_text(&["01234567", "89"], 8);
    assert!(text.ends_with("\n6789"), "{text}");
}

#[test]
fn texts_are_cut_between_characters() {
    let text = cut_text(&["ééééé"], 5);
    assert!(text.starts_with("é\n[… 6 of 10 bytes") && text.ends_with("\né"), "{text}");
    assert!(cut_text(&["x"], 0).contains("1 of 1 bytes"));
}

#[test]
fn parts_without_text_stay() {
    let parts = vec![Part::text("a".repeat(100)), Part::image(b"png", "image/png")];
    let mut result = ToolResultMessage::new("c", "t", OutcomeKind::Completed).with_content(parts);
    result.structured = Some(serde_json::json!({"long": true}));
    cut(&mut result, 10, Some("h-1"));
    assert_eq!(result.content.len(), 2);
    assert!(result.text().contains("read it with `read_result`, handle `h-1`"));
    assert_eq!(result.structured, None);
}

#[test]
fn questions_do_not_reopen_a_call_that_has_ended() {
    use super::{AgentLoop, CallEnd, LoopConfig, ModelReply, Ready, Step};
    use crate::message::{AssistantMessage, Conversation, Message};
    use crate::tool::output::ToolOutput;

    let mut run = AgentLoop::new("r", LoopConfig::default(), Conversation::new(), [Message::user("go")]);
    loop {
        match run.next() {
            Step::Poll { .. } => run.record_messages(Vec::new()).unwrap(),
            Step::CallModel { .. } => {
                let calls = ["a", "b"].map(|id| Part::tool_call(id, "t", "{}"));
                run.record_reply(ModelReply::new(AssistantMessage::new(calls))).unwrap();
            }
            Step::Prepare { .. } => {
                run.record_prepared(0, Ok(Ready::default())).unwrap();
                run.record_prepared(1, Ok(Ready::default())).unwrap();
            }
            Step::CallTools { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    run.record_call_end(0, CallEnd::ran(ToolOutput::text("done"), 1)).unwrap();
    while run.take_event().is_some() {}
    let before = run.clone();
    let question = serde_json::json!({
        "request_id": "q", "call_id": "a", "tool": "t", "message": "Sure?", "schema": {}, "number": 0,
    });
    let mut end = CallEnd::ran(ToolOutput::empty(), 1);
    end.asked.push(serde_json::from_value(question).unwrap());
    run.record_call_end(0, end.clone()).unwrap();
    assert_eq!(run, before);
    // Call `b` still runs, so its question is accepted.
    run.record_call_end(1, end).unwrap();
    assert_eq!(run.questions().len(), 1);
}

#[test]
fn a_deferred_call_keeps_its_coercions() {
    use super::{AgentLoop, CallEnd, EventKind, LoopConfig, ModelReply, Ready, Step};
    use crate::args::{Coercion, CoercionRule};
    use crate::message::{AssistantMessage, Conversation, Message};
    use crate::tool::{outcome::ToolOutcome, output::ToolOutput};

    let (path, from, to) = ("/n".to_owned(), "3".into(), 3.into());
    let coercion = Coercion { path, from, to, rule: CoercionRule::TextToInteger };
    let mut run = AgentLoop::new("r", LoopConfig::default(), Conversation::new(), [Message::user("go")]);
    loop {
        match run.next() {
            Step::Poll { .. } => run.record_messages(Vec::new()).unwrap(),
            Step::CallModel { .. } => {
                let call = Part::tool_call("a", "t", r#"{"n": "3"}"#);
                run.record_reply(ModelReply::new(AssistantMessage::new([call]))).unwrap();
            }
            Step::Prepare { .. } => run.record_prepared(0, Ok(Ready::default())).unwrap(),
            Step::CallTools { .. } => {
                let later = ToolOutcome::Deferred { handle: "h".to_owned() };
                let end = CallEnd::ran(later, 1).with_coercions(vec![coercion.clone()]);
                run.record_call_end(0, end).unwrap();
            }
            Step::Await { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    let mut run: AgentLoop = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
    while run.take_event().is_some() {}
    run.record_call_end(0, CallEnd::ran(ToolOutput::text("done"), 1)).unwrap();
    assert_eq!(run.coercions().collect::<Vec<_>>(), [("a", &[coercion.clone()][..])]);
    let event = run.take_event().unwrap();
    let EventKind::ToolExecutionEnd { result, .. } = &event.kind else { panic!("{event:?}") };
    assert_eq!(result.coercions, [coercion]);
}

#[test]
fn continuations_count_for_each_answer_and_apart_from_pauses() {
    use StopReason::{MaxTokens, Pause, Stop};
    use std::sync::Arc;

    use super::{AgentLoop, End, LoopConfig, ModelReply, Queue, Step};
    use crate::message::{AssistantMessage, Conversation, Message, StopReason};

    let play = |continue_length, replies: &[StopReason]| -> (End, Vec<String>) {
        let config = LoopConfig { continue_length, ..LoopConfig::default() };
        let mut run = AgentLoop::new("r", config, Conversation::new(), [Message::user("go")]);
        let (mut replies, mut follow_ups) = (replies.iter().cloned(), vec![Message::user("And now?")]);
        let end = loop {
            match run.next() {
                Step::Poll { queue: Queue::FollowUp, .. } => {
                    run.record_messages(follow_ups.pop().map(Arc::new).into_iter().collect()).unwrap();
                }
                Step::Poll { .. } => run.record_messages(Vec::new()).unwrap(),
                Step::CallModel { .. } => {
                    let mut reply = AssistantMessage::from("text");
                    reply.stop_reason = replies.next().unwrap();
                    run.record_reply(ModelReply::new(reply)).unwrap();
                }
                Step::TurnEnd { .. } => run.record_turn_end(None).unwrap(),
                Step::Done(end) => break end,
                other => panic!("{other:?}"),
            }
        };
        let others = run.conversation().iter().map(Message::role).filter(|role| *role != "assistant");
        (end, others.map(str::to_owned).collect())
    };
    // A pause does not use up a continuation, and the answer to the follow-up has a continuation of its own.
    let (end, others) = play(1, &[Pause, MaxTokens, MaxTokens, MaxTokens, Stop]);
    assert_eq!(
        (end, others),
        (End::Completed, ["user", "custom", "user", "custom"].map(str::to_owned).into())
    );
    // Continuations after a cut do not count toward the limit of pauses.
    let mut replies = vec![MaxTokens; 10];
    replies.extend([Pause, Stop, Stop]);
    assert_eq!(play(20, &replies).0, End::Completed);
    let pauses = vec![Pause; 11];
    assert!(matches!(play(20, &pauses).0, End::Limit(_)));
}

#[cfg(feature = "runtime")]
#[test]
fn the_limit_of_tokens_counts_no_requests() {
    use super::{AgentLoop, LoopConfig, UsageLimits};
    use crate::message::{Conversation, Message};

    let limits = UsageLimits { requests: Some(0), ..UsageLimits::default() };
    let config = LoopConfig { limits, ..LoopConfig::default() };
    let mut run = AgentLoop::new("r", config, Conversation::new(), [Message::user("go")]);
    assert_eq!(run.limit_of_tokens(), None);
    let budget = run.tree_budget();
    assert_eq!(budget.limit_of_tokens(), None);
}

#[cfg(feature = "runtime")]
#[test]
fn a_snapshot_counts_against_the_limits_that_it_is_resumed_with() {
    use super::{AgentLoop, LoopConfig, UsageLimits};
    use crate::message::{Conversation, Message};

    let limited = |tool_calls| {
        let limits = UsageLimits { tool_calls: Some(tool_calls), ..UsageLimits::default() };
        LoopConfig { limits, ..LoopConfig::default() }
    };
    let mut run = AgentLoop::new("r", limited(1), Conversation::new(), [Message::user("go")]);
    let budget = run.tree_budget();
    assert_eq!(budget.take_call(), Ok(()));
    assert_eq!(run.tree_budget().take_call(), Err(1));
    let mut resumed = run.snapshot();
    resumed.set_config(&std::sync::Arc::new(limited(2)));
    let budget = resumed.tree_budget();
    assert_eq!((budget.take_call(), budget.take_call(), budget.take_call()), (Ok(()), Ok(()), Err(2)));
}

/// Tests that retries are counted correctly in runs that are stored or restored at every step.
mod tries {
    use std::sync::Arc;

    use crate::loop_core::restore::StoredMessage;
    use crate::loop_core::{AgentLoop, CallEnd, LoopConfig, ModelReply, Ready, Step, ToolEntry};
    use crate::message::{AssistantMessage, Conversation, Message, Part};
    use crate::tool::outcome::{OutcomeCode, ToolOutcome};
    use crate::tool::output::{Control, ToolOutput};

    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }

        fn outcome(&mut self) -> ToolOutcome {
            match self.below(6) {
                0 => ToolOutcome::Completed(ToolOutput::text("done")),
                1 => crate::tool::error::ToolError::retry(format!("try {}", self.below(2))).into(),
                _ => {
                    let issues: Vec<_> =
                        ["a", "b", "c", "d"].into_iter().filter(|_| self.below(2) == 0).collect();
                    let mut text = "Invalid arguments for `t`: some problems.".to_owned();
                    for (number, issue) in (1..).zip(issues) {
                        let got = self.below(100);
                        let line = format!("\n{number}. /{issue}: wrong type; got number {got}");
                        text += &line;
                    }
                    text +=
                        "\nParameters (? = optional):\n  a: integer\nCall `t` again with all of these fixed.";
                    ToolOutcome::failed(OutcomeCode::INVALID_ARGUMENTS, text)
                }
            }
        }
    }

    /// The outcomes of the calls of each turn.
    type Script = Vec<Vec<ToolOutcome>>;

    fn outcome<'s>(script: &'s Script, id: &str) -> &'s ToolOutcome {
        let (turn, at) = id.split_once('.').unwrap();
        &script[turn.parse::<usize>().unwrap()][at.parse::<usize>().unwrap()]
    }

    /// Drives a run to its end. With `reload`, the run is stored and loaded before each step.
    fn play(mut core: AgentLoop, script: &Script, reload: bool) -> AgentLoop {
        loop {
            if reload {
                core = serde_json::from_str(&serde_json::to_string(&core).unwrap()).unwrap();
            }
            match core.next() {
                Step::Poll { .. } => core.record_messages(Vec::new()).unwrap(),
                Step::CallModel { key, .. } => {
                    let turn = key.turn as usize - 1;
                    let calls = script.get(turn).map_or(0, Vec::len);
                    let calls = (0..calls).map(|at| Part::tool_call(format!("{turn}.{at}"), "t", "{}"));
                    let parts: Vec<_> = calls.chain([Part::text("so")]).collect();
                    core.record_reply(ModelReply::new(AssistantMessage::new(parts))).unwrap();
                }
                Step::Prepare { key, calls } => {
                    for (ord, call) in (key.ord..).zip(calls) {
                        let prepared = match outcome(script, &call.id) {
                            refused @ ToolOutcome::Failed { .. } => Err(CallEnd::new(refused.clone())),
                            _ => Ok(Ready::default()),
                        };
                        core.record_prepared(ord, prepared).unwrap();
                    }
                }
                Step::CallTools { calls } => {
                    for (key, call) in calls {
                        let end = CallEnd::ran(outcome(script, &call.id).clone(), 0);
                        core.record_call_end(key.ord, end).unwrap();
                    }
                }
                Step::TurnEnd { .. } => core.record_turn_end(None).unwrap(),
                Step::Done(_) => return core,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn tries_are_counted_alike_wherever_a_run_is_stored_or_restored() {
        let (mut restored, mut exhausted) = (0, 0);
        for seed in 0..60 {
            let mut random = Random(seed);
            let script: Script =
                (0..9).map(|_| (0..=random.below(2)).map(|_| random.outcome()).collect()).collect();
            let max_retries = u32::try_from(random.below(3)).unwrap();
            let mut config = LoopConfig { max_turns: 50, max_retries, ..LoopConfig::default() };
            // With a small limit, the texts of failures are cut, too.
            let max_result_bytes = [60, 130, 220, 100_000][usize::try_from(random.below(4)).unwrap()];
            let entry = ToolEntry { max_result_bytes: Some(max_result_bytes), ..ToolEntry::default() };
            config.tools.insert("t".to_owned(), entry);
            let config = Arc::new(config);
            let new = || AgentLoop::new("r", (*config).clone(), Conversation::new(), [Message::user("go")]);
            let whole = play(new(), &script, false);
            let texts = |core: &AgentLoop| -> Vec<String> {
                let outcome = |message: &Message| message.as_tool_result().map(|result| result.code.clone());
                core.added()
                    .iter()
                    .map(|message| format!("{:?} {}", outcome(message), message.text()))
                    .collect()
            };
            exhausted += texts(&whole).iter().filter(|text| text.contains("retries_exhausted")).count();
            assert_eq!(texts(&play(new(), &script, true)), texts(&whole), "stored, seed {seed}");
            let mut turn = 1;
            let mut replies = 0;
            let stored: Vec<StoredMessage> = whole
                .added()
                .iter()
                .map(|message| {
                    if message.as_assistant().is_some() {
                        replies += 1;
                        turn = replies;
                    }
                    StoredMessage {
                        turn,
                        message: message.clone(),
                        is_cut: false,
                        control: Control::Continue,
                    }
                })
                .collect();
            for count in 1..stored.len() {
                let Some(core) = AgentLoop::restore("r".into(), config.clone(), &[], &stored[..count]) else {
                    continue;
                };
                restored += 1;
                let mut core = core;
                core.resume();
                assert_eq!(
                    texts(&play(core, &script, false)),
                    texts(&whole),
                    "restored from {count}, seed {seed}"
                );
            }
        }
        assert!(restored > 600 && exhausted > 100, "{restored} {exhausted}");
    }
}
