//! The driver: asking whether calls may run, and going on when it was said later.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, join_all, select};

use super::edits::with_sent_secrets;
use super::{Decision, Resumption};
use crate::args::Plan;
use crate::loop_core::{Answer, ApprovalRequest, CallEnd, Decided, Effect, Note, SteeringPolicy};
use crate::message::{Message, ToolArguments, ToolCall};
use crate::panics::catch;
use crate::runtime::assistant::Config;
use crate::runtime::drive::Driver;
use crate::runtime::hooks::{BeforeCall, HookError, ToolCallInfo};
use crate::runtime::prepare::{check, hook_error};
use crate::runtime::segment::keep_whole;
use crate::runtime::telemetry;
use crate::{
    Control, DenialCode, FailureCode, InterruptionCode, StepKey, StepKind, Tool, ToolContext, ToolOutcome,
};

impl Driver {
    /// Asks whether calls may run; true when nobody knows yet and the run is suspended.
    pub(in crate::runtime) async fn approve(&mut self, requests: Vec<(StepKey, ApprovalRequest)>) -> bool {
        if self.is_steered() {
            self.core(|core, _| core.ask_no_more());
            return false;
        }
        let Some(approver) = self.config.approver.clone() else { return self.suspend().await };
        let asked = requests.iter().map(|(_, request)| {
            let (approver, plan) = (approver.clone(), self.own_plan(&request.call.name));
            let request = request.clone().with_plan(plan);
            async move { approver(request).await }
        });
        let asked: Vec<_> = asked.collect();
        let watches = self.config.rules.steering != SteeringPolicy::AfterBatch;
        let assistant = self.assistant.clone();
        let decisions = self.hook(|| {
            Box::pin(async move {
                let mut decided = join_all(asked);
                loop {
                    if !watches {
                        return Ok(Some(decided.await));
                    }
                    match select(decided, pin!(assistant.steered())).await {
                        Either::Left((decisions, _)) => return Ok(Some(decisions)),
                        Either::Right(((), _)) if assistant.is_steered() => return Ok(None),
                        // One that was heard before.
                        Either::Right(((), open)) => decided = open,
                    }
                }
            })
        });
        let decisions = match decisions.await {
            None => return false,
            Some(Ok(None)) => {
                self.is_steered();
                self.core(|core, _| core.ask_no_more());
                return false;
            }
            Some(Ok(Some(decisions))) => decisions,
            Some(Err(error)) => {
                let text = format!("the decision could not be made: {error}");
                vec![Decision::Deny(text); requests.len()]
            }
        };
        if decisions.contains(&Decision::Later) {
            return self.suspend().await;
        }
        let decided = requests.into_iter().map(|(_, request)| request).zip(decisions);
        if let Some(decided) = self.decided(decided.collect()).await {
            self.answer(Answer::Decisions(decided));
        }
        false
    }

    /// What reads the arguments of this tool for the run's source, if that is not what reads those of everybody.
    fn own_plan(&self, tool: &str) -> Option<Plan> {
        let (source, tool) = (self.context.source()?, self.config.registry.get(tool)?);
        let own = catch(|| tool.definition_for(source)).ok()?;
        own.ok().flatten().map(|own| own.plan().clone())
    }

    /// What decisions come to now; none when the run was stopped meanwhile.
    async fn decided(&mut self, made: Vec<(ApprovalRequest, Decision)>) -> Option<Vec<Decided>> {
        let mut all = Vec::with_capacity(made.len());
        for (request, decision) in made {
            let mut one = decided(&self.config, &self.context, &request, decision);
            // Those of a resumed run are all checked again.
            if let Decided::Allow(Some(args)) = &one
                && !self.config.hooks.is_empty()
                && !self.checks_again
            {
                let reply = self.core(|core, _| core.conversation().shared().last().cloned()).flatten();
                let edited = Edited::new(&self.config, &self.context, request, args, reply);
                for hook in self.config.hooks.clone() {
                    let info = edited.info.clone();
                    if let Some(end) = edited.end(self.hook(|| hook.before_tool_call(info)).await?) {
                        one = Decided::AllowEnded(end);
                        break;
                    }
                }
            }
            all.push(one);
        }
        Some(all)
    }

    /// Goes on with a run that was suspended, or stored while it went on.
    pub(in crate::runtime) async fn go_on(&mut self, resumption: Resumption) {
        self.core(|core, _| core.resume());
        self.emit().await;
        let Resumption { decided, arrived, left } = resumption;
        self.left = left;
        self.checks_again = self.core(|core, _| core.checks_again()).unwrap_or_default();
        if decided.is_empty() && arrived.is_empty() {
            // Where calls are recorded, it is known which of them had begun.
            if self.records.is_none() {
                self.give_up_lost().await;
            }
            return;
        }
        if !decided.is_empty() {
            let Some(decided) = self.decided(decided).await else { return };
            self.answer(Answer::Decisions(decided));
            self.emit().await;
        }
        for (ord, outcome) in arrived {
            let mut end = CallEnd::ran(outcome, 0);
            let turn = self.core(|core, _| core.turn()).unwrap_or_default();
            let key = StepKey::new(self.run_id.clone(), turn, StepKind::Tool, ord);
            keep_whole(&self.config, &self.assistant, &key, None, &mut end).await;
            if let Some(records) = self.records.clone() {
                Box::pin(records.finish(&key, &end)).await;
            }
            self.note(Note::CallEnded(ord, end));
            self.emit().await;
        }
        let next = self.core(|core, _| core.next());
        if matches!(next, Some(Effect::Await { deferred }) if deferred.is_empty()) {
            self.answer(Answer::Outcomes(Vec::new()));
        }
    }

    /// Calls that may have begun when the run was stored, and must not run twice. It is not known what became of them.
    async fn give_up_lost(&mut self) {
        let Some(Effect::CallTools { calls }) = self.core(|core, _| core.next()) else { return };
        for (key, call) in calls {
            let effect = self.config.registry.get(&call.name).map(|tool| tool.policy().effect);
            if effect.unwrap_or_default() == crate::Effect::Once {
                let reason = crate::message::LOST.to_owned();
                let lost = ToolOutcome::Interrupted { code: InterruptionCode::LOST, reason };
                self.note(Note::CallEnded(key.ord, CallEnd::new(lost)));
                self.emit().await;
            }
        }
    }
}

/// What a decision comes to now: the tool may be another one than when it was asked, and changed arguments are checked
/// like any others.
pub(in crate::runtime) fn decided(
    config: &Config,
    context: &ToolContext,
    request: &ApprovalRequest,
    decision: Decision,
) -> Decided {
    let name = &request.call.name;
    let now = config.registry.get(name).map(|tool| &**tool);
    let refused = |outcome| telemetry::record_refusal(now, &request.call, outcome, context);
    let tool = now.filter(|_| request.fingerprint == config.fingerprint(name));
    match (decision, tool) {
        (Decision::Deny(message), _) => {
            refused(&ToolOutcome::denied(DenialCode::DENIED, message.clone()));
            Decided::Deny(message)
        }
        (Decision::Later, _) => Decided::Later,
        (_, None) => {
            let text = format!(
                "The call was not run: `{name}` is not what it was when somebody was asked about this call. If it \
                 is still there, call it again by the parameters it has now."
            );
            let stale = ToolOutcome::failed(FailureCode::new("approval_stale"), text);
            refused(&stale);
            Decided::AllowEnded(CallEnd::new(stale))
        }
        (Decision::Allow, _) => Decided::Allow(None),
        (Decision::AllowWith(args), Some(tool)) => {
            let args = match with_sent_secrets(&config.secrets(), request, args) {
                Ok(args) => ToolArguments::from(args),
                Err(path) => {
                    let text = format!(
                        "The call was not run: a person changed its arguments and gave no value for the secret at `{path}`."
                    );
                    let unknown = ToolOutcome::failed(FailureCode::INVALID_ARGUMENTS, text);
                    refused(&unknown);
                    return Decided::AllowEnded(CallEnd::new(unknown));
                }
            };
            match check(tool, &args, context.source()) {
                Ok(_) => Decided::Allow(Some(args)),
                Err(reply) => {
                    let edited = ToolCall { args: args.clone(), ..request.call.clone() };
                    telemetry::record_refusal(now, &edited, &reply.outcome, context);
                    let mut end = CallEnd::new(reply);
                    end.edited_args = Some(args);
                    Decided::AllowEnded(end)
                }
            }
        }
    }
}

/// A call whose arguments a person changed, as hooks are asked about it. The person has decided: of what a hook says, only
/// that the call is blocked counts, or that the hook failed.
pub(in crate::runtime) struct Edited {
    tool: Option<Arc<dyn Tool>>,
    pub(in crate::runtime) info: ToolCallInfo,
}

impl Edited {
    pub(in crate::runtime) fn new(
        config: &Config,
        context: &ToolContext,
        request: ApprovalRequest,
        args: &ToolArguments,
        reply: Option<Arc<Message>>,
    ) -> Self {
        let call = ToolCall { args: args.clone(), ..request.call };
        let tool = config.registry.get(&call.name).cloned();
        let checked =
            tool.as_deref().and_then(|tool| Some((tool, check(tool, args, context.source()).ok()?)));
        let reply = reply.filter(|message| matches!(**message, Message::Assistant(_)));
        let checked = checked.as_ref().map(|(tool, checked)| (*tool, checked));
        let info = ToolCallInfo::new(reply, call, checked, context.clone());
        Self { tool, info }
    }

    /// How the call ends for what a hook says of it; none where it may run.
    pub(in crate::runtime) fn end(&self, said: Result<BeforeCall, HookError>) -> Option<CallEnd> {
        let (outcome, control) = match said {
            Ok(BeforeCall::Block { reason, control }) => {
                (ToolOutcome::denied(DenialCode::BLOCKED, reason), control)
            }
            Ok(_) => return None,
            Err(error) => (hook_error(&error.to_string()), Control::Continue),
        };
        let call = self.info.call();
        telemetry::record_refusal(self.tool.as_deref(), call, &outcome, self.info.context());
        let mut end = CallEnd::new(outcome);
        end.control = control;
        end.edited_args = Some(call.args.clone());
        Some(end)
    }
}
