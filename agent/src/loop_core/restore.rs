//! Restores a run from its stored messages by replaying them through the loop, without events.

use std::sync::Arc;

use super::agent_loop::Phase;
use super::budget::Spent;
use super::calls::{CACHED, NOT_RUN};
use super::context::is_replaced;
use super::{AgentLoop, CallEnd, LoopConfig, ModelReply, Step};
use crate::args::REFUSAL;
use crate::message::{Conversation, Message, OutcomeKind, ToolCall, ToolResultMessage};
use crate::tool::outcome::{OutcomeCode, ToolOutcome};
use crate::tool::output::{Control, ToolOutput};

#[derive(Clone, Debug)]
pub(crate) struct StoredMessage {
    pub(crate) turn: u32,
    pub(crate) message: Arc<Message>,
    pub(crate) is_cut: bool,
    /// The effect of a result on the run. It is read from the stored call, because messages do not contain it.
    pub(crate) control: Control,
}

impl AgentLoop {
    /// Rebuilds a run from the `stored` messages that it added to the conversation `before`. The run is [suspended](Self::is_suspended)
    /// before its next step. Returns `None` if the messages end the run, or if a run with this configuration cannot have added them.
    pub(crate) fn restore(
        run: Arc<str>,
        config: Arc<LoopConfig>,
        before: &[Arc<Message>],
        stored: &[StoredMessage],
    ) -> Option<Self> {
        let mut rest = stored;
        let prompts = take_injected(&mut rest, 1);
        let mut core = Self::begin(run, config, before.iter().cloned().collect(), prompts, true);
        while let Some(next) = rest.first() {
            let turn = core.turn;
            match (core.next(), &*next.message) {
                (Step::Poll { .. }, _) if core.phase == Phase::PollFirst => {
                    core.record_messages(Vec::new()).ok()?;
                }
                (Step::Poll { .. }, _) => {
                    let messages = take_injected(&mut rest, turn.saturating_add(1));
                    core.record_messages(messages).ok()?;
                }
                (Step::CallModel { .. }, Message::Assistant(reply))
                    if next.turn == turn && is_replaced(reply) =>
                {
                    core.record_replaced_reply(reply.clone()).ok()?;
                    rest = rest.get(1..)?;
                }
                (Step::CallModel { .. }, Message::Assistant(reply)) if next.turn == turn => {
                    let mut reply = ModelReply::new(reply.clone());
                    reply.is_cut = next.is_cut;
                    core.record_reply(reply).ok()?;
                    // The loop itself ends the calls of a reply that was cut, so their stored results are skipped.
                    rest = rest.get(1..)?;
                    if core.batch.is_cut {
                        let results =
                            rest.iter().take_while(|stored| stored.message.as_tool_result().is_some());
                        rest = rest.get(results.count()..)?;
                    }
                }
                (Step::Prepare { key, calls }, Message::ToolResult(_)) => {
                    let (results, others) = rest.split_at_checked(calls.len())?;
                    let mut outcomes = Vec::with_capacity(calls.len());
                    for (call, stored) in calls.iter().zip(results) {
                        let result =
                            stored.message.as_tool_result().filter(|result| result.call_id == call.id)?;
                        let outcome = outcome_of(result);
                        core.tool_calls += u64::from(has_run(&outcome));
                        outcomes.push(outcome);
                    }
                    core.count_tries(&calls, &mut outcomes);
                    for ((ord, outcome), stored) in (key.ord..).zip(outcomes).zip(results) {
                        let mut end = CallEnd::new(outcome);
                        end.control = stored.control;
                        core.record_prepared(ord, Err(end)).ok()?;
                    }
                    rest = others;
                }
                (Step::TurnEnd { .. }, _) if next.turn > turn => {
                    core.record_turn_end(Some(true)).ok()?;
                }
                _ => return None,
            }
        }
        if core.end().is_some() {
            return None;
        }
        // The texts of the replayed messages may differ, so the stored messages replace them.
        let added = core.conversation.shared().get(before.len() + stored.len()..)?;
        let messages = before.iter().cloned().chain(stored.iter().map(|stored| stored.message.clone()));
        core.conversation = messages.chain(added.iter().cloned()).collect::<Conversation>();
        core.is_suspended = true;
        Some(core)
    }

    pub(crate) fn spent_for(config: Arc<LoopConfig>, added: &[Arc<Message>]) -> Spent {
        let mut run = Self::begin("".into(), config, Conversation::new(), Vec::new(), true);
        for message in added {
            match &**message {
                Message::Assistant(reply) => {
                    run.requests += 1;
                    run.usage += &reply.usage;
                }
                Message::ToolResult(result) => {
                    run.tool_calls += u64::from(has_run(&outcome_of(result)));
                    if let Some(spent) = run.spent_of(&result.tool, &result.metadata) {
                        run.count_child(spent);
                    }
                }
                _ => {}
            }
        }
        run.spent()
    }

    /// Counts the tries. Refused calls are counted first, because they ended first. A counted outcome becomes a failure without text, so
    /// that the loop does not count the outcome again. The stored message keeps the text.
    fn count_tries(&mut self, calls: &[Arc<ToolCall>], outcomes: &mut [ToolOutcome]) {
        for refused in [true, false] {
            for (call, outcome) in calls.iter().zip(&mut *outcomes) {
                if is_refusal(outcome) == refused && self.count_retries(&call.name, &mut outcome.clone()) {
                    *outcome = ToolOutcome::failed(OutcomeCode::TOOL_ERROR, "");
                }
            }
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.batch.is_cut
    }
}

fn take_injected(rest: &mut &[StoredMessage], turn: u32) -> Vec<Arc<Message>> {
    let is_injected = |stored: &&StoredMessage| {
        stored.turn == turn && !matches!(*stored.message, Message::Assistant(_) | Message::ToolResult(_))
    };
    let count = rest.iter().take_while(is_injected).count();
    let (messages, others) = rest.split_at(count);
    *rest = others;
    messages.iter().map(|stored| stored.message.clone()).collect()
}

pub(crate) fn outcome_of(result: &ToolResultMessage) -> ToolOutcome {
    let text = || result.text();
    let code = || result.code.clone().unwrap_or_default();
    match &result.outcome {
        OutcomeKind::Completed => {
            let mut output = ToolOutput::parts(result.content.clone());
            output.structured.clone_from(&result.structured);
            output.metadata.clone_from(&result.metadata);
            ToolOutcome::Completed(output)
        }
        OutcomeKind::Retry => ToolOutcome::Retry { message: text(), metadata: result.metadata.clone() },
        OutcomeKind::Denied => {
            let code = OutcomeCode::from(code());
            ToolOutcome::Denied { code, message: text(), metadata: result.metadata.clone() }
        }
        OutcomeKind::Interrupted => {
            ToolOutcome::Interrupted { code: OutcomeCode::from(code()), reason: text() }
        }
        OutcomeKind::Failed | OutcomeKind::Other(_) => {
            let code = OutcomeCode::from(code());
            ToolOutcome::Failed { code, message: text(), metadata: result.metadata.clone() }
        }
    }
}

/// Returns whether the arguments of the call were refused. The last try of a tool has the code `retries_exhausted`, whether its arguments
/// were refused or the tool asked for another call. The beginning of the text distinguishes these two cases.
fn is_refusal(outcome: &ToolOutcome) -> bool {
    match outcome {
        ToolOutcome::Failed { code, message, .. } => {
            *code == OutcomeCode::INVALID_ARGUMENTS
                || (*code == OutcomeCode::new("retries_exhausted") && message.starts_with(REFUSAL))
        }
        _ => false,
    }
}

/// The codes with which a call fails before its tool runs.
const NOT_BEGUN: [&str; 9] = [
    "unknown_tool",
    "invalid_arguments",
    "prepare_error",
    "truncated",
    "repeated_call",
    "hook_error",
    "approval_stale",
    "secrets_not_kept",
    "no_result",
];

/// Returns whether a call with this outcome counts against the limit of calls. The code `limit` has two meanings: the call was refused, or
/// its sub-agent ran and reached a limit. Only the text tells them apart.
pub(super) fn has_run(outcome: &ToolOutcome) -> bool {
    match outcome {
        ToolOutcome::Completed(output) => !output.metadata.contains_key(CACHED),
        ToolOutcome::Retry { .. } => true,
        ToolOutcome::Failed { code, message, .. } if code.as_str() == "limit" => {
            !message.starts_with(NOT_RUN)
        }
        ToolOutcome::Failed { code, .. } => !NOT_BEGUN.contains(&code.as_str()) && !is_refusal(outcome),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_core::{Queue, Ready};
    use crate::message::{AssistantMessage, Part, Usage};

    fn stored(turn: u32, message: impl Into<Message>) -> StoredMessage {
        StoredMessage { turn, message: Arc::new(message.into()), is_cut: false, control: Control::Continue }
    }

    fn calls(ids: &[&str]) -> AssistantMessage {
        AssistantMessage::new(ids.iter().map(|id| Part::tool_call(*id, "t", "{}")))
    }

    fn result(id: &str) -> ToolResultMessage {
        ToolResultMessage::new(id, "t", OutcomeKind::Completed).with_content("done")
    }

    fn restore(stored: &[StoredMessage]) -> Option<AgentLoop> {
        AgentLoop::restore("run-1".into(), Arc::default(), &[Arc::new(Message::user("before"))], stored)
    }

    fn complete_run() -> Vec<StoredMessage> {
        vec![
            stored(1, Message::user("go")),
            stored(1, calls(&["a", "b"])),
            stored(1, result("a")),
            stored(1, result("b")),
            stored(2, Message::user("steer")),
            stored(2, calls(&["c"])),
            stored(2, result("c")),
            stored(3, AssistantMessage::from("done")),
        ]
    }

    #[test]
    fn a_run_is_restored_to_the_step_after_its_last_message() {
        let whole = complete_run();
        let next = |count: usize| restore(whole.get(..count).unwrap()).unwrap().next();
        assert!(matches!(next(0), Step::Poll { queue: Queue::Steering, .. }));
        assert!(matches!(next(1), Step::Poll { queue: Queue::Steering, .. }));
        assert!(matches!(next(2), Step::Prepare { calls, .. } if calls.len() == 2));
        assert!(matches!(next(4), Step::TurnEnd { summary, .. } if summary.turn == 1));
        assert!(matches!(next(5), Step::CallModel { key, .. } if key.to_string() == "run-1/2/model/0"));
        assert!(matches!(next(6), Step::Prepare { key, .. } if key.turn == 2));
        assert!(matches!(next(8), Step::TurnEnd { summary, .. } if summary.turn == 3));
    }

    #[test]
    fn the_messages_are_the_stored_ones_and_are_counted() {
        let whole = complete_run();
        let core = restore(&whole).unwrap();
        assert_eq!((core.conversation().len(), core.added().len(), core.tool_calls), (9, 8, 3));
        assert!(core.added().iter().zip(&whole).all(|(one, stored)| Arc::ptr_eq(one, &stored.message)));
        assert!(core.is_suspended() && !core.was_stored());
    }

    #[test]
    fn calls_that_ran_count_whatever_their_tool_calls_its_failure() {
        let counts =
            |code: &'static str, text: &str| has_run(&ToolOutcome::failed(OutcomeCode::new(code), text));
        assert!(
            ["tool_error", "no_room", "child_failed", "retries_exhausted"]
                .iter()
                .all(|code| counts(code, ""))
        );
        assert!(!["invalid_arguments", "hook_error"].iter().any(|code| counts(code, "")));
        assert!(!counts("limit", &format!("{NOT_RUN} no more than 2 tool calls may run.")));
        assert!(counts("limit", "The sub-agent did not finish: it made 3 requests."));
        assert!(!counts("retries_exhausted", REFUSAL));
    }

    #[test]
    fn calls_that_ran_before_a_crash_count_against_the_limit() {
        let mut config = LoopConfig::default();
        config.limits.tool_calls = Some(2);
        let stored = [stored(1, Message::user("go")), stored(1, calls(&["a", "b", "c", "d"]))];
        let mut core = AgentLoop::restore("run-1".into(), Arc::new(config), &[], &stored).unwrap();
        let refused = ToolOutcome::failed(OutcomeCode::new("prepare_error"), "no");
        let done = || ToolOutcome::Completed(ToolOutput::text("done"));
        core.record_prepared(0, Err(CallEnd::ran(done(), 1))).unwrap();
        core.record_prepared(1, Err(CallEnd::ran(refused, 1))).unwrap();
        core.record_prepared(2, Err(CallEnd::ran(done(), 1))).unwrap();
        core.record_prepared(3, Ok(Ready::default())).unwrap();
        let last = core.conversation().last().unwrap().as_tool_result().unwrap().clone();
        assert_eq!((last.call_id.as_str(), last.code.as_deref(), core.tool_calls), ("d", Some("limit"), 2));
    }

    #[test]
    fn a_reused_result_counts_neither_in_the_run_nor_after_a_crash() {
        let mut run = vec![stored(1, Message::user("go")), stored(1, calls(&["a"]))];
        let mut live = restore(&run).unwrap();
        let known = CallEnd::new(ToolOutcome::Completed(ToolOutput::text("known")));
        live.record_prepared(0, Ok(Ready { cached: Some(Box::new(known)), ..Ready::default() })).unwrap();
        run.push(stored(1, live.conversation().last().unwrap().clone()));
        assert_eq!((live.tool_calls, restore(&run).unwrap().tool_calls), (0, 0));
    }

    #[test]
    fn calls_of_a_cut_reply_do_not_run() {
        let mut cut = stored(1, calls(&["a"]));
        cut.is_cut = true;
        let core = restore(&[stored(1, Message::user("go")), cut]).unwrap();
        assert_eq!(
            core.conversation().last().unwrap().as_tool_result().unwrap().code.as_deref(),
            Some("truncated")
        );
        assert!(matches!(core.next(), Step::TurnEnd { .. }));
    }

    #[test]
    fn a_reply_that_was_replaced_counts_and_the_request_is_made_again() {
        let core = || restore(&[stored(1, Message::user("go"))]).unwrap();
        let mut first = core();
        first.record_messages(Vec::new()).unwrap();
        let mut half = calls(&["a"]);
        half.usage = Usage::new(90, 10);
        first.record_replaced_reply(half).unwrap();
        assert!(matches!(first.next(), Step::CallModel { key, .. } if key.to_string() == "run-1/1/model/0"));
        assert!(first.conversation().is_sound());
        let kept = first.conversation().last().unwrap().as_assistant().unwrap().clone();
        assert!(kept.stop_reason.is_failure());

        let prompt = stored(1, Message::user("go"));
        let again = restore(&[prompt.clone(), stored(1, kept.clone())]).unwrap();
        assert!(matches!(again.next(), Step::CallModel { .. }));
        assert_eq!((again.usage().total, again.requests), (100, 1));
        let whole = restore(&[prompt, stored(1, kept), stored(1, AssistantMessage::from("done"))]).unwrap();
        assert!(matches!(whole.next(), Step::TurnEnd { .. }));
        assert!(core().record_replaced_reply(calls(&[])).is_err());
    }

    #[test]
    fn messages_that_no_run_can_have_added_are_not_restored() {
        let prompt = stored(1, Message::user("go"));
        for odd in [
            vec![prompt.clone(), stored(1, result("a"))],
            vec![prompt.clone(), stored(1, calls(&["a", "b"])), stored(1, result("a"))],
            vec![prompt.clone(), stored(1, calls(&["a"])), stored(1, result("x"))],
            vec![prompt.clone(), stored(1, AssistantMessage::from("x")), stored(1, Message::user("y"))],
            vec![prompt, stored(2, AssistantMessage::from("x"))],
        ] {
            assert!(restore(&odd).is_none(), "{odd:?}");
        }
    }
}
