//! Calls that waited for decisions: rules of the application may be others by now.

use std::collections::HashMap;

use super::RunSteps;
use crate::durable::journal::{RetryPolicy, RunJournal};
use crate::loop_core::{ApprovalRequest, CallEnd, Decided, ReadyCall, request_id};
use crate::message::{Message, ToolCall};
use crate::runtime::CheckedAgain;
use crate::steps::{StepError, Steps};
use crate::{DenialCode, StepKey, StepKind, ToolOutcome};

/// What was decided on a call.
#[derive(Clone, Copy, Default)]
struct Standing {
    is_approved: bool,
    /// Whether a person changed its arguments.
    is_edited: bool,
    /// How often it was asked about beside the first time.
    asked_again: u32,
}

/// The calls of a segment on their way.
struct Waiting {
    calls: Vec<(StepKey, ToolCall)>,
    standing: HashMap<u32, Standing>,
    ends: HashMap<u32, CallEnd>,
}

impl<J: RunJournal> RunSteps<'_, J> {
    /// Checks calls again that waited for decisions, and runs those that may still run. A call that would run with other arguments than
    /// were decided on, or that needs a decision now, is asked about under a new id; after that wait, all are checked once more.
    pub(super) async fn tools_that_waited(
        &self,
        calls: Vec<(StepKey, ToolCall)>,
        waited: HashMap<u32, Decided>,
    ) -> Result<Vec<CallEnd>, StepError> {
        let order: Vec<u32> = calls.iter().map(|(key, _)| key.ord).collect();
        let standing = waited.into_iter().map(|(ord, decided)| {
            let is_edited = matches!(decided, Decided::Allow(Some(_)));
            (ord, Standing { is_approved: matches!(decided, Decided::Allow(_)), is_edited, asked_again: 0 })
        });
        let mut waiting = Waiting { calls, standing: standing.collect(), ends: HashMap::new() };
        let mut round = 0;
        while !waiting.calls.is_empty() {
            let requests = self.check_again(&mut waiting, round).await?;
            round += 1;
            if requests.is_empty() || !self.ask_again(&mut waiting, requests).await? {
                break;
            }
        }
        let Waiting { calls, standing, mut ends } = waiting;
        if !calls.is_empty() {
            let asked: Vec<_> = calls.iter().map(|(key, call)| (key.ord, call.args.clone())).collect();
            for ((ord, args), mut end) in asked.into_iter().zip(self.tools(calls).await?) {
                let standing = standing.get(&ord).copied().unwrap_or_default();
                if standing.is_edited && standing.asked_again > 0 {
                    // The loop does not know of the last change.
                    end.edited_args.get_or_insert(args);
                }
                ends.insert(ord, end);
            }
        }
        Ok(order.into_iter().filter_map(|ord| ends.remove(&ord)).collect())
    }

    /// Asks the rules about each call, and returns the requests for decisions that are needed now.
    async fn check_again(
        &self,
        waiting: &mut Waiting,
        round: u32,
    ) -> Result<Vec<(u32, ApprovalRequest)>, StepError> {
        let Waiting { calls, standing, ends } = waiting;
        let Some((key, _)) = calls.first() else { return Ok(Vec::new()) };
        let (served, reply, cancel) = (self.served.clone(), self.state().reply.clone(), self.cancel.clone());
        let sent = |call: &ToolCall| {
            let mut calls = reply.as_deref().and_then(Message::as_assistant)?.tool_calls();
            calls.find(|sent| sent.id == call.id).cloned()
        };
        let ready = calls.iter().map(|(key, call)| {
            let Standing { is_approved, is_edited, .. } = standing.get(&key.ord).copied().unwrap_or_default();
            let sent = sent(call).unwrap_or_else(|| call.clone());
            (ReadyCall { sent, is_edited, is_approved }, call.clone())
        });
        let ready: Vec<_> = ready.collect();
        let name = if round == 0 { format!("{key}/again") } else { format!("{key}/again/{}", round + 1) };
        let run = key.run.clone();
        let work = async move { Ok(served.steps.check_again(&run, ready, reply, cancel).await) };
        let checked: Vec<CheckedAgain> = self.step(name, RetryPolicy::ONE_ATTEMPT, work).await?;
        let mut requests = Vec::new();
        for ((key, call), checked) in calls.iter_mut().zip(checked) {
            match checked {
                CheckedAgain::Runs => {}
                CheckedAgain::RunsWith(args) => call.args = args,
                CheckedAgain::Asks { args, checked } => {
                    call.args = args;
                    let standing = standing.entry(key.ord).or_default();
                    standing.asked_again += 1;
                    let approval = StepKey::new(key.run.clone(), key.turn, StepKind::Approval, key.ord);
                    let id = request_id(&approval, standing.asked_again);
                    requests.push((key.ord, self.served.steps.approval_request(id, call, checked)));
                }
                CheckedAgain::Ends(end) => {
                    ends.insert(key.ord, *end);
                }
            }
        }
        calls.retain(|(key, _)| !ends.contains_key(&key.ord));
        Ok(requests)
    }

    /// Asks for decisions; true if somebody outside was waited for.
    async fn ask_again(
        &self,
        waiting: &mut Waiting,
        requests: Vec<(u32, ApprovalRequest)>,
    ) -> Result<bool, StepError> {
        let Waiting { calls, standing, ends } = waiting;
        let (ords, requests): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        let Some(run) = calls.first().map(|(key, _)| key.run.clone()) else { return Ok(false) };
        let (decided, has_waited) = self.decide(run, requests).await?;
        for (ord, (_, decided)) in ords.into_iter().zip(decided) {
            let standing = standing.entry(ord).or_default();
            match decided {
                Decided::Allow(edited) => {
                    standing.is_approved = true;
                    standing.is_edited |= edited.is_some();
                    let call = calls.iter_mut().find(|(key, _)| key.ord == ord);
                    if let (Some((_, call)), Some(args)) = (call, edited) {
                        call.args = args;
                    }
                }
                Decided::AllowEnded(end) => {
                    ends.insert(ord, end);
                }
                Decided::Deny(message) => {
                    let outcome = ToolOutcome::denied(DenialCode::DENIED, message);
                    ends.insert(ord, CallEnd::new(outcome));
                }
                Decided::Later => {}
            }
        }
        calls.retain(|(key, _)| !ends.contains_key(&key.ord));
        Ok(has_waited)
    }
}
