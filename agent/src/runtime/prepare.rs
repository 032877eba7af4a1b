//! Checks calls before their tools run.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::assistant::Assistant;
use super::checked::{CheckedArguments, check};
use super::hooks::{BeforeCall, ToolCallInfo, hook_error};
use super::perform::Performer;
use super::telemetry;
use crate::loop_core::{CallEnd, Prepared, Ready, Signature};
use crate::message::{Message, ToolArguments, ToolCall};
use crate::panics::panic_text;
use crate::tool::registry::unknown_among;
use crate::tool::{
    definition::ToolDefinition,
    outcome::{OutcomeCode, ToolOutcome},
    value::Tool,
};

impl Performer {
    /// Prepares a call: decides whether it may run, with which arguments, and whether a person is asked. `tools` are the tools of the turn,
    /// if the application chooses them. Results are looked up in the cache of `assistant`. Returns `None` if the run is stopped first.
    pub(super) async fn prepare_call(
        &self,
        sent: &ToolCall,
        reply: Option<&Arc<Message>>,
        tools: Option<&[ToolDefinition]>,
        assistant: Option<&Assistant>,
    ) -> Option<PreparedCall> {
        match self.checked_call(sent, reply, tools, assistant).await {
            Ok((ready, checked)) => Some((Prepared::Ready(ready), Some(checked))),
            Err(Some(end)) => Some((Prepared::Ended(end), None)),
            Err(None) => None,
        }
    }

    /// Returns a call that may run. The error is the end of the call, or `None` if the run is stopped first.
    async fn checked_call(
        &self,
        sent: &ToolCall,
        reply: Option<&Arc<Message>>,
        tools: Option<&[ToolDefinition]>,
        assistant: Option<&Assistant>,
    ) -> Result<(Ready, Arc<CheckedArguments>), Option<Box<CallEnd>>> {
        let ended = |outcome: ToolOutcome| Some(Box::new(CallEnd::new(outcome)));
        let source = self.context.source();
        let tool = self.find(&sent.name, tools).map_err(|unknown| ended(*unknown))?;
        let checked = |args: &ToolArguments| match check(tool, args, source) {
            Ok(checked) => Ok(Arc::new(checked)),
            Err(refused) => Err(ended(*refused)),
        };
        let mut call = Cow::Borrowed(sent);
        let mut valid = checked(&call.args)?;
        let policy = tool.policy();
        let guards = self.config.rules.loop_guard.is_some() && !policy.allow_repeat;
        let (mut is_replaced, mut must_ask) = (false, false);
        for hook in &self.config.hooks {
            let info =
                ToolCallInfo::new(reply.cloned(), (*call).clone(), Some(valid.clone()), self.context.clone());
            let decided = self.hook(|| hook.before_tool_call(info)).await.ok_or(None)?;
            match decided.map_err(|error| ended(hook_error(&error.to_string())))? {
                BeforeCall::Continue => {}
                BeforeCall::RequireApproval => must_ask = true,
                BeforeCall::Replace(args) => {
                    call.to_mut().args = ToolArguments::from(args);
                    is_replaced = true;
                    valid = checked(&call.args)?;
                }
                BeforeCall::Block { reason, control } => {
                    let mut end = CallEnd::new(ToolOutcome::denied(OutcomeCode::BLOCKED, reason));
                    end.control = control;
                    end.signature = guards.then(|| Signature::of_hash(&call.name, valid.accepted().hash()));
                    return Err(Some(Box::new(end)));
                }
            }
        }
        let needed = catch_unwind(AssertUnwindSafe(|| policy.approval.applies(valid.accepted())));
        must_ask |= needed.map_err(|payload| {
            let text = format!("the approval rule panicked: {}", panic_text(payload));
            ended(hook_error(&text))
        })?;
        // `approval` is computed before `signature`, because `value` creates the JSON value from which `hash` is then computed.
        let approval = must_ask.then(|| ToolArguments::from(valid.value().clone()));
        let signature = guards.then(|| Signature::of_hash(&call.name, valid.accepted().hash()));
        let mut ready = Ready { signature, approval, ..Ready::default() };
        // If the call waits for a decision, the cache is not read here, but when the call runs.
        let caches = |_: &&Assistant| !must_ask && self.config.can_cache(tool, &self.context);
        if let Some(assistant) = assistant.filter(caches) {
            let known = assistant.cache().get(&self.config.cache_key(&call.name, &valid, &self.context));
            ready.cached =
                known.map(|output| Box::new(CallEnd::new(output).with_coercions(valid.coercions().to_vec())));
        }
        ready.args = is_replaced.then(|| call.into_owned().args);
        Ok((ready, valid))
    }

    /// Returns the tool with this name, or an `UNKNOWN_TOOL` outcome if the model does not have the tool in this turn.
    fn find(&self, name: &str, tools: Option<&[ToolDefinition]>) -> Result<&Tool, Box<ToolOutcome>> {
        let unknown = |text: String| Box::new(ToolOutcome::failed(OutcomeCode::UNKNOWN_TOOL, text));
        match tools {
            None => self.config.registry.fetch(name).map_err(|error| unknown(error.to_string())),
            Some(tools) => {
                let is_there = tools.iter().any(|tool| tool.name() == name);
                let tool = self.config.registry.get(name).filter(|_| is_there);
                tool.ok_or_else(|| unknown(unknown_among(tools, name).to_string()))
            }
        }
    }
}

impl Performer {
    /// Records in the trace a call that was refused or failed before its tool could run.
    pub(super) fn record_refusal(&self, call: &ToolCall, prepared: &Prepared) {
        if let Prepared::Ended(end) = prepared
            && end.outcome.is_error()
        {
            telemetry::record_refusal(
                self.config.registry.get(&call.name),
                call,
                &end.outcome,
                &self.context,
            );
        }
    }
}

/// The result of preparing a call, and its checked arguments if it may run.
pub(super) type PreparedCall = (Prepared, Option<Arc<CheckedArguments>>);
