//! Asks for decisions on calls, converts them for the loop, and continues suspended runs with decisions that arrived later.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, join_all, select};
use serde_json::Value;

use super::{Approver, Decision, Resumption};
use crate::args::Plan;
use crate::loop_core::{ApprovalRequest, CallDecision, CallEnd, Step, gone_child};
use crate::message::{Message, ToolArguments, ToolCall};
use crate::panics::{catch, catch_future};
use crate::runtime::checked::check;
use crate::runtime::config::Config;
use crate::runtime::hooks::{BeforeCall, HookError, ToolCallInfo, hook_error};
use crate::runtime::in_process::InProcessSteps;
use crate::runtime::perform::Performer;
use crate::runtime::segment::keep_whole;
use crate::runtime::telemetry;
use crate::step_key::{StepKey, StepKind};
use crate::steps::StepError;
use crate::tool::BoxFuture;
use crate::tool::context::ToolContext;
use crate::tool::invoke::mark_untrusted;
use crate::tool::outcome::{OutcomeCode, ToolOutcome};
use crate::tool::output::Control;
use crate::tool::secrets::SecretArguments;
use crate::tool::value::Tool;

impl InProcessSteps {
    /// Asks the application's function whether calls may run. If there is no function, or if it decides `Later` on one call, all decisions
    /// are `Later`. Returns an empty list if a steering message arrives first, because the calls are then skipped.
    pub(in crate::runtime) async fn decide(
        &mut self,
        requests: Vec<(StepKey, ApprovalRequest)>,
    ) -> Result<Vec<CallDecision>, StepError> {
        let config = self.performer.config.clone();
        let Some(approver) = &config.approver else { return Ok(vec![CallDecision::Later; requests.len()]) };
        let mut decided = self.performer.ask_approver(approver, requests.iter().map(|(_, request)| request));
        let watches = config.rules.may_be_steered();
        let assistant = self.assistant.clone();
        let asking = async move {
            loop {
                if !watches {
                    return Some(decided.await);
                }
                match select(decided, pin!(assistant.steered())).await {
                    Either::Left((decisions, _)) => return Some(decisions),
                    Either::Right(((), _)) if assistant.is_steered() => return None,
                    // The message was already taken from the queue, so the wait continues.
                    Either::Right(((), open)) => decided = open,
                }
            }
        };
        let Some(decisions) = self.performer.until_stopped(asking).await.ok_or_else(|| self.stopped())?
        else {
            self.look_for_steering();
            return Ok(Vec::new());
        };
        if decisions.contains(&Decision::Later) {
            return Ok(vec![CallDecision::Later; requests.len()]);
        }
        let made = requests.into_iter().map(|(_, request)| request).zip(decisions);
        self.decided(made.collect()).await
    }

    async fn decided(
        &mut self,
        made: Vec<(ApprovalRequest, Decision)>,
    ) -> Result<Vec<CallDecision>, StepError> {
        let reply = self.last_reply();
        let mut all = Vec::with_capacity(made.len());
        for (request, decision) in made {
            let mut decided = self.performer.decided(&request, decision);
            // A resumed run checks all its calls again before they run, and asks the hooks during that check.
            if !self.checks_again {
                let asked = self.performer.ask_about_edit(request, decided, reply.clone()).await;
                decided = asked.ok_or_else(|| self.stopped())?;
            }
            all.push(decided);
        }
        Ok(all)
    }

    pub(in crate::runtime) async fn continue_with(
        &mut self,
        resumption: Resumption,
    ) -> Result<(), StepError> {
        // Without records, nothing shows which calls had begun, so calls of `once` tools must not run.
        if self.records.is_none() {
            self.give_up_lost().await?;
        }
        if resumption.is_empty() {
            return Ok(());
        }
        let Resumption { decided, arrived, answered, children } = resumption;
        if !decided.is_empty() {
            let decided = self.decided(decided).await?;
            self.run.lock().record_decisions(decided)?;
            self.emit().await;
        }
        for (ord, mut outcome) in arrived {
            let (turn, tool) = {
                let run = self.run.lock();
                (run.turn(), run.tool_of(ord).unwrap_or_default().to_owned())
            };
            if let Some(tool) = self.performer.config.registry.get(&tool) {
                mark_untrusted(tool, &mut outcome);
            }
            let mut end = CallEnd::ran(outcome, 0);
            let key = StepKey::new(self.performer.run_id.clone(), turn, StepKind::Tool, ord);
            keep_whole(&self.performer.config, &self.assistant, &key, &tool, &mut end).await;
            if let Some(records) = self.records.clone() {
                Box::pin(records.finish(&key, &end)).await;
            }
            self.run.lock().record_call_end(ord, end)?;
            self.emit().await;
        }
        for (ord, inputs) in answered {
            self.run.lock().record_inputs(ord, inputs);
            self.emit().await;
        }
        if !children.is_empty() {
            // `as_parent` counts the usage of the children, so it is called before the children leave the run.
            self.as_parent();
        }
        for (ord, resumption) in children {
            let name = self.run.lock().child_tool(ord).map(str::to_owned);
            let tool = name.and_then(|name| self.performer.config.registry.get(&name));
            if !tool.is_some_and(Tool::is_of_assistant) {
                self.end_gone(ord).await?;
                continue;
            }
            if let Some(child) = self.run.lock().continue_child(ord) {
                self.continued.insert(ord, (child, resumption));
            }
        }
        self.run.lock().continue_calls();
        Ok(())
    }

    /// Ends a call that waits for a sub-agent, because its tool no longer runs one.
    async fn end_gone(&mut self, ord: u32) -> Result<(), StepError> {
        let end = CallEnd::new(gone_child());
        if let Some(records) = self.records.clone() {
            let turn = self.run.lock().turn();
            let key = StepKey::new(self.performer.run_id.clone(), turn, StepKind::Tool, ord);
            Box::pin(records.finish(&key, &end)).await;
        }
        self.run.lock().record_call_end(ord, end)?;
        self.emit().await;
        Ok(())
    }

    /// Ends the next calls of `once` tools and of unknown tools, because they may have begun before the run was stored.
    async fn give_up_lost(&mut self) -> Result<(), StepError> {
        let next = self.run.lock().next();
        let Step::CallTools { calls } = next else { return Ok(()) };
        for (key, call) in calls {
            let tool = self.performer.config.registry.get(&call.name);
            // A call that runs a sub-agent is not lost, because the snapshot contains the run of the sub-agent.
            if tool.is_some_and(Tool::is_of_assistant) {
                continue;
            }
            let effect = tool.map(|tool| tool.policy().effect);
            if effect.unwrap_or_default() == crate::tool::policy::Effect::Once {
                let reason = crate::message::LOST.to_owned();
                let lost = ToolOutcome::Interrupted { code: OutcomeCode::LOST, reason };
                self.run.lock().record_call_end(key.ord, CallEnd::new(lost))?;
                self.emit().await;
            }
        }
        Ok(())
    }
}

impl Performer {
    /// Asks the application's function about all requests at once. If the function panics for a request, the decision is `Deny`.
    pub(in crate::runtime) fn ask_approver<'r>(
        &self,
        approver: &Approver,
        requests: impl Iterator<Item = &'r ApprovalRequest>,
    ) -> BoxFuture<'static, Vec<Decision>> {
        let asked = requests.map(|request| {
            let request = request.clone().with_plan(self.own_plan(&request.call.name));
            let approver = approver.clone();
            async move {
                let decided = catch_future(|| approver(request)).await;
                decided.unwrap_or_else(|panic| {
                    Decision::Deny(format!("the decision could not be made: {panic}"))
                })
            }
        });
        Box::pin(join_all(asked.collect::<Vec<_>>()))
    }

    /// Returns the tool's [`Plan`] for the source of the run, if the tool has different parameters for this source.
    fn own_plan(&self, tool: &str) -> Option<Plan> {
        let (source, tool) = (self.context.source()?, self.config.registry.get(tool)?);
        let own = catch(|| tool.definition_for(source)).ok()?;
        own.ok().flatten().map(|own| own.plan().clone())
    }

    pub(crate) fn decided(&self, request: &ApprovalRequest, decision: Decision) -> CallDecision {
        decided(&self.config, &self.context, request, decision)
    }

    /// Asks the hooks about a decision that changed the arguments of its call. If a hook blocks the call or fails, the decision contains
    /// the end of the call. Returns `None` if the run is stopped first.
    pub(in crate::runtime) async fn ask_about_edit(
        &self,
        request: ApprovalRequest,
        decided: CallDecision,
        reply: Option<Arc<Message>>,
    ) -> Option<CallDecision> {
        let CallDecision::Allow(Some(args)) = &decided else { return Some(decided) };
        if self.config.hooks.is_empty() {
            return Some(decided);
        }
        let edited = EditedCall::new(&self.config, &self.context, request, args, reply);
        for hook in &self.config.hooks {
            let info = edited.info.clone();
            if let Some(end) = edited.end(self.hook(|| hook.before_tool_call(info)).await?) {
                return Some(CallDecision::AllowEnded(end));
            }
        }
        Some(decided)
    }
}

/// Converts a decision for the loop. An allowed call ends with an error if its tool has changed since the request. Arguments that a person
/// changed are checked like arguments of the model.
fn decided(
    config: &Config,
    context: &ToolContext,
    request: &ApprovalRequest,
    decision: Decision,
) -> CallDecision {
    let name = &request.call.name;
    let now = config.registry.get(name);
    let shown = now;
    let refused = |outcome| telemetry::record_refusal(shown, &request.call, outcome, context);
    let tool = now.filter(|_| request.fingerprint == config.fingerprint(name));
    match (decision, tool) {
        (Decision::Deny(message), _) => {
            refused(&ToolOutcome::denied(OutcomeCode::DENIED, message.clone()));
            CallDecision::Deny(message)
        }
        (Decision::Later, _) => CallDecision::Later,
        (_, None) => {
            let text = format!(
                "The call was not run: `{name}` is not what it was when a decision on this call was requested. \
                 If it still exists, make the call again with its current parameters."
            );
            let stale = ToolOutcome::failed(OutcomeCode::new("approval_stale"), text);
            refused(&stale);
            CallDecision::AllowEnded(CallEnd::new(stale))
        }
        (Decision::Allow, _) => CallDecision::Allow(None),
        (Decision::AllowWith(args), Some(tool)) => {
            let args = match with_sent_secrets(&config.secrets(), request, args) {
                Ok(args) => ToolArguments::from(args),
                Err(path) => {
                    let text = format!(
                        "The call was not run: a person changed its arguments and gave no value for the secret at `{path}`."
                    );
                    let unknown = ToolOutcome::failed(OutcomeCode::INVALID_ARGUMENTS, text);
                    refused(&unknown);
                    return CallDecision::AllowEnded(CallEnd::new(unknown));
                }
            };
            match check(tool, &args, context.source()) {
                Ok(_) => CallDecision::Allow(Some(args)),
                Err(outcome) => {
                    let edited = ToolCall { args: args.clone(), ..request.call.clone() };
                    telemetry::record_refusal(shown, &edited, &outcome, context);
                    let mut end = CallEnd::new(*outcome);
                    end.edited_args = Some(args);
                    CallDecision::AllowEnded(end)
                }
            }
        }
    }
}

/// A call with arguments that a person changed. A hook can still block the call, but cannot change the arguments again.
struct EditedCall {
    tool: Option<Tool>,
    info: ToolCallInfo,
}

impl EditedCall {
    fn new(
        config: &Config,
        context: &ToolContext,
        request: ApprovalRequest,
        args: &ToolArguments,
        reply: Option<Arc<Message>>,
    ) -> Self {
        let call = ToolCall { args: args.clone(), ..request.call };
        let tool = config.registry.get(&call.name).cloned();
        let checked = config.checked(&call, context);
        let reply = reply.filter(|message| matches!(**message, Message::Assistant(_)));
        let info = ToolCallInfo::new(reply, call, checked, context.clone());
        Self { tool, info }
    }

    fn end(&self, result: Result<BeforeCall, HookError>) -> Option<CallEnd> {
        let (outcome, control) = match result {
            Ok(BeforeCall::Block { reason, control }) => {
                (ToolOutcome::denied(OutcomeCode::BLOCKED, reason), control)
            }
            Ok(_) => return None,
            Err(error) => (hook_error(&error.to_string()), Control::Continue),
        };
        let call = self.info.call();
        telemetry::record_refusal(self.tool.as_ref(), call, &outcome, self.info.context());
        let mut end = CallEnd::new(outcome);
        end.control = control;
        end.edited_args = Some(call.args.clone());
        Some(end)
    }
}

/// Returns the arguments that a person edited, with their secrets. The person saw the marker `"[secret]"` in place of each secret. An
/// unchanged marker is replaced by the secret that the model sent.
///
/// # Errors
/// Returns the path of the first marker that cannot be replaced.
fn with_sent_secrets(
    secrets: &SecretArguments,
    request: &ApprovalRequest,
    mut edited: Value,
) -> Result<Value, String> {
    let tool = &request.call.name;
    let sent = request.args_with_secrets().and_then(ToolArguments::value);
    if let (Some(shown), Some(sent)) = (request.call.args.value(), sent) {
        restore_unchanged(&mut edited, &shown, &sent);
    }
    let remaining =
        secrets.value(tool, &edited).and_then(|hidden| find_marker(&edited, &hidden, String::new()));
    remaining.map_or(Ok(edited), Err)
}

/// Replaces each value in `edited` that equals its value in `shown` by its value in `sent`.
fn restore_unchanged(edited: &mut Value, shown: &Value, sent: &Value) {
    if edited == shown {
        edited.clone_from(sent);
        return;
    }
    match (edited, shown, sent) {
        (Value::Object(edited), Value::Object(shown), Value::Object(sent)) => {
            for (key, value) in edited {
                if let (Some(shown), Some(sent)) = (shown.get(key), sent.get(key)) {
                    restore_unchanged(value, shown, sent);
                }
            }
        }
        // Items have no names, so an item is restored only if it is unchanged at its index. If several items look the same without their
        // secrets, none of them is restored, because the person may have moved them.
        (Value::Array(edited), Value::Array(all), Value::Array(sent)) if edited.len() == all.len() => {
            let is_alone = |item: &Value| all.iter().filter(|other| *other == item).count() == 1;
            for ((value, shown), sent) in edited.iter_mut().zip(all).zip(sent) {
                if value == shown && shown != sent && is_alone(shown) {
                    value.clone_from(sent);
                }
            }
        }
        _ => {}
    }
}

/// Returns the path of the first secret in `edited` that is still the marker for hidden values. `hidden` is `edited` with every secret
/// replaced by the marker.
fn find_marker(edited: &Value, hidden: &Value, path: String) -> Option<String> {
    match (edited, hidden) {
        (Value::Object(edited), Value::Object(hidden)) => edited
            .iter()
            .find_map(|(key, value)| find_marker(value, hidden.get(key)?, format!("{path}/{key}"))),
        (Value::Array(edited), Value::Array(hidden)) => {
            let mut items = edited.iter().zip(hidden).enumerate();
            items.find_map(|(at, (value, hidden))| find_marker(value, hidden, format!("{path}/{at}")))
        }
        _ => (*edited == crate::args::hidden() && edited == hidden).then_some(path),
    }
}

#[cfg(test)]
mod tests;
