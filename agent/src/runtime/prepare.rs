//! The driver: what happens to a call before its body runs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use super::approval::Decision;
use super::cache::cache_key;
use super::drive::Driver;
use super::hooks::{BeforeCall, ToolCallInfo};
use crate::args::Coercions;
use crate::loop_core::{
    Answer, ApprovalRequest, CallEnd, Decided, Note, Prepared, Ready, Signature, SteeringPolicy,
};
use crate::message::{Message, ToolArguments, ToolCall};
use crate::tool::invoke::panic_text;
use crate::{DenialCode, FailureCode, InterruptionCode, StepKey, Tool, ToolOutcome, ToolReply};

pub(super) const STEERED: &str = "The call was not run, or was stopped, because of a new message.";

impl Driver {
    /// Looks at each call of a segment, in call order.
    pub(super) async fn prepare(&mut self, first: u32, calls: Vec<ToolCall>) {
        let count = calls.len();
        for (ord, call) in (first..).zip(calls) {
            self.note(Note::CallStarted(ord));
            self.emit().await;
            if self.stop.is_now() {
                return;
            }
            let prepared = if self.is_steered() {
                Prepared::Ended(CallEnd::new(steered()))
            } else {
                match self.prepare_call(call).await {
                    Some(prepared) => prepared,
                    None => return,
                }
            };
            self.note(Note::CallPrepared(ord, prepared));
            self.emit().await;
            if self.stop.is_now() {
                return;
            }
        }
        // All of them are known by now.
        self.answer(Answer::Prepared(vec![Prepared::Ready(Ready::default()); count]));
    }

    /// Whether a message waits that comes before calls which have not begun.
    pub(super) fn is_steered(&self) -> bool {
        self.config.rules.steering != SteeringPolicy::AfterBatch
            && self
                .core(|core, rest| {
                    let waits = !rest.steering.is_empty();
                    if waits {
                        core.steered();
                    }
                    waits
                })
                .unwrap_or_default()
    }

    /// What the call comes to before it runs; none when the run was stopped meanwhile.
    async fn prepare_call(&mut self, mut call: ToolCall) -> Option<Prepared> {
        let tool = match self.config.registry.fetch(&call.name) {
            Ok(tool) => tool.clone(),
            Err(unknown) => {
                return Some(ended(ToolOutcome::failed(FailureCode::UNKNOWN_TOOL, unknown.to_string())));
            }
        };
        let mut checked = match check(&*tool, &call.args) {
            Ok(coercions) => coercions,
            Err(reply) => return Some(Prepared::Ended(CallEnd::new(reply))),
        };
        let (mut is_replaced, mut must_ask) = (false, false);
        let assistant = self.core(|core, _| core.conversation().shared().last().cloned()).flatten();
        let assistant = assistant.filter(|message| matches!(**message, Message::Assistant(_)));
        for hook in self.config.hooks.clone() {
            let args = value_of(&*tool, &call.args, &checked);
            let info = ToolCallInfo::new(assistant.clone(), call.clone(), args, self.context.clone());
            match self.hook(|| hook.before_tool_call(info)).await? {
                Ok(BeforeCall::Continue) => {}
                Ok(BeforeCall::RequireApproval) => must_ask = true,
                Ok(BeforeCall::Replace(args)) => {
                    call.args = ToolArguments::from(args);
                    is_replaced = true;
                    checked = match check(&*tool, &call.args) {
                        Ok(coercions) => coercions,
                        Err(reply) => return Some(Prepared::Ended(CallEnd::new(reply))),
                    };
                }
                Ok(BeforeCall::Block { reason, control }) => {
                    let outcome = ToolOutcome::Denied { code: DenialCode::BLOCKED, message: reason };
                    let mut end = CallEnd::new(outcome);
                    end.control = control;
                    return Some(Prepared::Ended(end));
                }
                Err(error) => return Some(ended(hook_error(&error.to_string()))),
            }
        }
        let mut ready = Ready::default();
        let policy = tool.policy();
        let guards = self.config.rules.loop_guard.is_some() && !policy.allow_repeat;
        let caches = self.caches(&*tool);
        let plan = tool.definition().plan();
        let needed = catch_unwind(AssertUnwindSafe(|| policy.approval.is_needed(plan, call.args.text())));
        must_ask |= match needed {
            Ok(needed) => needed,
            Err(payload) => {
                let text = format!("the approval rule panicked: {}", panic_text(payload));
                return Some(ended(hook_error(&text)));
            }
        };
        if guards || caches || must_ask {
            let args = value_of(&*tool, &call.args, &checked);
            ready.signature = guards.then(|| Signature::of(&call.name, &args));
            if caches {
                let key = cache_key(&call.name, &args);
                let known = self.core(|_, rest| rest.cache.get(&key)).flatten();
                ready.cached =
                    known.map(|output| CallEnd::new(ToolReply::new(output).with_coercions(checked)));
            }
            ready.approval = must_ask.then(|| ToolArguments::from(args));
        }
        ready.args = is_replaced.then_some(call.args);
        Some(Prepared::Ready(ready))
    }

    /// Whether results of the tool are kept.
    pub(super) fn caches(&self, tool: &dyn Tool) -> bool {
        let policy = tool.policy();
        // What must not happen twice is kept only when the tool itself says so.
        policy.cache.unwrap_or(self.config.cache && policy.effect != crate::Effect::Once)
    }

    /// Asks whether calls may run; true when nobody knows yet and the run is suspended.
    pub(super) async fn approve(&mut self, requests: Vec<(StepKey, ApprovalRequest)>) -> bool {
        let Some(approver) = self.config.approver.clone() else { return self.suspend().await };
        let asked = requests.iter().map(|(_, request)| {
            let (approver, request) = (approver.clone(), request.clone());
            async move { approver(request).await }
        });
        let asked: Vec<_> = asked.collect();
        let decisions =
            self.hook(|| Box::pin(async move { Ok(futures_util::future::join_all(asked).await) })).await;
        let decisions = match decisions {
            None => return false,
            Some(Ok(decisions)) => decisions,
            Some(Err(error)) => {
                let text = format!("the decision could not be made: {error}");
                vec![Decision::Deny(text); requests.len()]
            }
        };
        let is_open = decisions.contains(&Decision::Later);
        let decided = requests.into_iter().zip(decisions);
        let decided = decided.map(|((_, request), decision)| self.decided(&request, decision)).collect();
        self.answer(Answer::Decisions(decided));
        self.emit().await;
        if is_open { self.suspend().await } else { false }
    }

    /// Changed arguments are checked like any others.
    pub(super) fn decided(&self, request: &ApprovalRequest, decision: Decision) -> Decided {
        match decision {
            Decision::Allow => Decided::Allow(None),
            Decision::Deny(reason) => Decided::Deny(reason),
            Decision::Later => Decided::Later,
            Decision::AllowWith(args) => {
                let args = ToolArguments::from(args);
                let Some(tool) = self.config.registry.get(&request.call.name) else {
                    return Decided::Allow(Some(args));
                };
                match check(&**tool, &args) {
                    Ok(_) => Decided::Allow(Some(args)),
                    Err(reply) => {
                        let mut end = CallEnd::new(reply);
                        end.edited_args = Some(args);
                        Decided::AllowEnded(end)
                    }
                }
            }
        }
    }
}

/// The tool's own check.
#[expect(clippy::result_large_err, reason = "the reply is what the call comes to")]
fn check(tool: &dyn Tool, args: &ToolArguments) -> Result<Coercions, ToolReply> {
    // A check that panics is left to the call itself, which turns panics into results.
    match catch_unwind(AssertUnwindSafe(|| tool.validate(args.text()))) {
        Ok(Ok(coercions)) => Ok(coercions),
        Ok(Err(refusal)) => Err(refusal.into()),
        Err(_) => Ok(Coercions::default()),
    }
}

/// The checked arguments as a value.
pub(super) fn value_of(tool: &dyn Tool, args: &ToolArguments, coercions: &Coercions) -> Value {
    // Where nothing was changed, the text says it.
    let plain = coercions.is_empty().then(|| args.value()).flatten();
    plain.unwrap_or_else(|| {
        let parsed = tool.definition().plan().parse::<Value>(args.text());
        parsed.map(|parsed| parsed.value).unwrap_or_default()
    })
}

fn ended(outcome: ToolOutcome) -> Prepared {
    Prepared::Ended(CallEnd::new(outcome))
}

pub(super) fn hook_error(text: &str) -> ToolOutcome {
    ToolOutcome::failed(FailureCode::new("hook_error"), format!("A hook of the application failed: {text}"))
}

pub(super) fn steered() -> ToolOutcome {
    ToolOutcome::Interrupted { code: InterruptionCode::STEERED, reason: STEERED.to_owned() }
}
