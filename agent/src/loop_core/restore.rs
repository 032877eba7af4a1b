//! Restores a run from its stored messages, by taking the loop through them again without events.

use std::sync::Arc;

use super::agent_loop::Phase;
use super::{AgentLoop, CallEnd, Effect, LoopConfig, Prepared, Reply, Verdict};
use crate::args::REFUSAL;
use crate::message::{Conversation, Message, OutcomeKind, ToolCall, ToolResultMessage};
use crate::{DenialCode, FailureCode, InterruptionCode, ToolOutcome, ToolOutput};

/// A stored message of the run.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// The turn it belongs to.
    pub(crate) turn: u32,
    pub(crate) message: Arc<Message>,
    /// Whether it is a reply that was cut.
    pub(crate) is_cut: bool,
}

impl AgentLoop {
    /// Returns the run with these messages after a conversation, at the first step of which nothing is stored. The run counts as
    /// [suspended](Self::is_suspended). Returns `None` if the messages are not those of a run by these rules, or if the run would have
    /// ended.
    pub(crate) fn restore(
        run: Arc<str>,
        config: Arc<LoopConfig>,
        before: &[Arc<Message>],
        said: &[Said],
    ) -> Option<Self> {
        let mut rest = said;
        let prompts = injected(&mut rest, 1);
        let mut core = Self::begin(run, config, before.iter().cloned().collect(), prompts, true);
        while let Some(next) = rest.first() {
            let turn = core.turn;
            match (core.next(), &*next.message) {
                (Effect::Poll { .. }, _) if core.phase == Phase::PollFirst => {
                    core.record_messages(Vec::new()).ok()?;
                }
                (Effect::Poll { .. }, _) => {
                    let messages = injected(&mut rest, turn.saturating_add(1));
                    core.record_messages(messages).ok()?;
                }
                (Effect::CallModel { .. }, Message::Assistant(reply)) if next.turn == turn => {
                    let mut reply = Reply::new(reply.clone());
                    reply.is_cut = next.is_cut;
                    core.record_reply(reply).ok()?;
                    // The calls of a reply that was cut end by themselves.
                    rest = rest.get(1..)?;
                    if core.batch.is_cut {
                        let results = rest.iter().take_while(|said| said.message.as_tool_result().is_some());
                        rest = rest.get(results.count()..)?;
                    }
                }
                (Effect::Prepare { key, calls }, Message::ToolResult(_)) => {
                    let (results, others) = rest.split_at_checked(calls.len())?;
                    let mut outcomes = Vec::with_capacity(calls.len());
                    for (call, said) in calls.iter().zip(results) {
                        let result =
                            said.message.as_tool_result().filter(|result| result.call_id == call.id)?;
                        let outcome = outcome_of(result);
                        core.tool_calls += u64::from(has_run(&outcome));
                        outcomes.push(outcome);
                    }
                    core.count_tries(&calls, &mut outcomes);
                    for (ord, outcome) in (key.ord..).zip(outcomes) {
                        core.record_prepared(ord, Prepared::Ended(CallEnd::new(outcome))).ok()?;
                    }
                    rest = others;
                }
                (Effect::TurnEnd { .. }, _) if next.turn > turn => {
                    core.record_turn_end(Verdict { go_on: Some(true), is_queued: false }).ok()?;
                }
                _ => return None,
            }
        }
        if core.end().is_some() {
            return None;
        }
        // Uses the stored messages, because the ones made again may be spelled differently.
        let made = core.conversation.shared().get(before.len() + said.len()..)?;
        let stored = before.iter().cloned().chain(said.iter().map(|said| said.message.clone()));
        core.conversation = stored.chain(made.iter().cloned()).collect::<Conversation>();
        core.is_suspended = true;
        Some(core)
    }

    /// Counts the tries of a segment in the order in which they ended: calls are refused before the others run. What was counted is
    /// replaced, because an end is counted; the stored message has the outcome.
    fn count_tries(&mut self, calls: &[ToolCall], outcomes: &mut [ToolOutcome]) {
        for refused in [true, false] {
            for (call, outcome) in calls.iter().zip(&mut *outcomes) {
                if is_refusal(outcome) == refused && self.count_retries(&call.name, &mut outcome.clone()) {
                    *outcome = ToolOutcome::failed(FailureCode::TOOL_ERROR, "");
                }
            }
        }
    }

    /// Whether the calls of the last reply do not run because it was cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.batch.is_cut
    }
}

/// Takes the messages with which a turn begins.
fn injected(rest: &mut &[Said], turn: u32) -> Vec<Arc<Message>> {
    let is_injected = |said: &&Said| {
        said.turn == turn && !matches!(*said.message, Message::Assistant(_) | Message::ToolResult(_))
    };
    let count = rest.iter().take_while(is_injected).count();
    let (messages, others) = rest.split_at(count);
    *rest = others;
    messages.iter().map(|said| said.message.clone()).collect()
}

/// Returns how a call ended, as far as its message says.
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
            let code = DenialCode::from(code());
            ToolOutcome::Denied { code, message: text(), metadata: result.metadata.clone() }
        }
        OutcomeKind::Interrupted => {
            ToolOutcome::Interrupted { code: InterruptionCode::from(code()), reason: text() }
        }
        OutcomeKind::Failed | OutcomeKind::Other(_) => {
            let code = FailureCode::from(code());
            ToolOutcome::Failed { code, message: text(), metadata: result.metadata.clone() }
        }
    }
}

/// Whether the call was refused, however often its tool was tried.
fn is_refusal(outcome: &ToolOutcome) -> bool {
    match outcome {
        ToolOutcome::Failed { code, message, .. } => {
            *code == FailureCode::INVALID_ARGUMENTS
                || (*code == FailureCode::new("retries_exhausted") && message.starts_with(REFUSAL))
        }
        _ => false,
    }
}

/// Whether it counted against the limit of calls.
fn has_run(outcome: &ToolOutcome) -> bool {
    match outcome {
        ToolOutcome::Completed(_) | ToolOutcome::Retry { .. } => true,
        ToolOutcome::Failed { code, .. } => {
            [FailureCode::TOOL_ERROR, FailureCode::PANIC, FailureCode::TIMEOUT].contains(code)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_core::Queue;
    use crate::message::{AssistantMessage, Part};

    fn said(turn: u32, message: impl Into<Message>) -> Said {
        Said { turn, message: Arc::new(message.into()), is_cut: false }
    }

    fn calls(ids: &[&str]) -> AssistantMessage {
        AssistantMessage::new(ids.iter().map(|id| Part::tool_call(*id, "t", "{}")))
    }

    fn result(id: &str) -> ToolResultMessage {
        ToolResultMessage::new(id, "t", OutcomeKind::Completed).with_content("done")
    }

    fn restore(said: &[Said]) -> Option<AgentLoop> {
        AgentLoop::restore("run-1".into(), Arc::default(), &[Arc::new(Message::user("before"))], said)
    }

    fn a_whole_run() -> Vec<Said> {
        vec![
            said(1, Message::user("go")),
            said(1, calls(&["a", "b"])),
            said(1, result("a")),
            said(1, result("b")),
            said(2, Message::user("steer")),
            said(2, calls(&["c"])),
            said(2, result("c")),
            said(3, AssistantMessage::from("done")),
        ]
    }

    #[test]
    fn a_run_stands_where_its_messages_end() {
        let whole = a_whole_run();
        let next = |count: usize| restore(whole.get(..count).unwrap()).unwrap().next();
        assert!(matches!(next(0), Effect::Poll { queue: Queue::Steering, .. }));
        assert!(matches!(next(1), Effect::Poll { queue: Queue::Steering, .. }));
        assert!(matches!(next(2), Effect::Prepare { calls, .. } if calls.len() == 2));
        assert!(matches!(next(4), Effect::TurnEnd { summary, .. } if summary.turn == 1));
        assert!(matches!(next(5), Effect::CallModel { key, .. } if key.to_string() == "run-1/2/model/0"));
        assert!(matches!(next(6), Effect::Prepare { key, .. } if key.turn == 2));
        assert!(matches!(next(8), Effect::TurnEnd { summary, .. } if summary.turn == 3));
    }

    #[test]
    fn the_messages_are_the_stored_ones_and_are_counted() {
        let whole = a_whole_run();
        let core = restore(&whole).unwrap();
        assert_eq!((core.conversation().len(), core.added().len(), core.tool_calls), (9, 8, 3));
        let stored = core.added().iter().zip(&whole);
        assert!(stored.into_iter().all(|(one, said)| Arc::ptr_eq(one, &said.message)));
        assert!(core.is_suspended() && !core.was_stored());
    }

    #[test]
    fn calls_of_a_cut_reply_do_not_run() {
        let mut cut = said(1, calls(&["a"]));
        cut.is_cut = true;
        let core = restore(&[said(1, Message::user("go")), cut]).unwrap();
        assert_eq!(
            core.conversation().last().unwrap().as_tool_result().unwrap().code.as_deref(),
            Some("truncated")
        );
        assert!(matches!(core.next(), Effect::TurnEnd { .. }));
    }

    #[test]
    fn what_is_no_run_is_not_restored() {
        let prompt = said(1, Message::user("go"));
        for odd in [
            vec![prompt.clone(), said(1, result("a"))],
            vec![prompt.clone(), said(1, calls(&["a", "b"])), said(1, result("a"))],
            vec![prompt.clone(), said(1, calls(&["a"])), said(1, result("x"))],
            vec![prompt.clone(), said(1, AssistantMessage::from("x")), said(1, Message::user("y"))],
            vec![prompt, said(2, AssistantMessage::from("x"))],
        ] {
            assert!(restore(&odd).is_none(), "{odd:?}");
        }
    }
}
