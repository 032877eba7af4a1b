//! The execution of one call: its attempts, and the hooks after them.

use std::sync::Arc;

use tokio::time::Instant;

use super::checked::CheckedArguments;
use super::config::Config;
use super::hooks::{AfterCall, ToolCallInfo, call_hook, hook_error};
use crate::loop_core::CallEnd;
use crate::message::{Message, Part, ToolCall};
use crate::step_key::StepKey;
use crate::tool::{
    context::ToolContext,
    invoke::{InvokedArguments, InvokedCall},
    outcome::{OutcomeCode, ToolOutcome},
    output::{Control, ToolOutput},
    policy::Effect,
    value::Tool,
};

pub(super) struct CallBody {
    pub(super) config: Arc<Config>,
    pub(super) key: StepKey,
    pub(super) call: Arc<ToolCall>,
    pub(super) context: ToolContext,
    pub(super) max_attempts: u32,
    /// The reply that contains the call. Set only if there are hooks.
    pub(super) reply: Option<Arc<Message>>,
    pub(super) checked: Option<Arc<CheckedArguments>>,
    pub(super) continues_child: bool,
    pub(super) begun: Instant,
}

/// Returns the maximum number of attempts. Calls to sub-agents, and to tools with the effect `Once`, are never repeated.
fn max_attempts(config: &Config, tool: &str) -> u32 {
    let tool = config.registry.get(tool).filter(|tool| !tool.is_of_assistant());
    let policy = tool.map(Tool::policy).filter(|policy| policy.effect != Effect::Once);
    policy.and_then(|policy| policy.max_attempts).unwrap_or(1).max(1)
}

impl CallBody {
    pub(super) fn new(
        config: &Arc<Config>,
        key: StepKey,
        call: Arc<ToolCall>,
        context: ToolContext,
        reply: Option<Arc<Message>>,
        checked: Option<Arc<CheckedArguments>>,
    ) -> Self {
        let (config, max_attempts) = (config.clone(), max_attempts(config, &call.name));
        let context = context.with_idempotency_key(key.to_text()).with_attempt(1, max_attempts);
        let reply = reply.filter(|_| !config.hooks.is_empty());
        let (continues_child, begun) = (false, Instant::now());
        Self { config, key, call, context, max_attempts, reply, checked, continues_child, begun }
    }

    /// Checks the arguments now if there are hooks, or if the caller reads the arguments (`is_read`). Otherwise, the tool checks the
    /// arguments when it runs.
    pub(super) fn check(&mut self, is_read: bool) {
        let checked = self.checked.take().filter(|checked| checked.is_of(&self.call));
        self.checked = match checked {
            None if is_read || !self.config.hooks.is_empty() => {
                self.config.checked(&self.call, &self.context)
            }
            checked => checked,
        };
    }

    /// Runs the tool, and repeats it after a panic or a timeout, until `max_attempts` is reached or the run is cancelled. Then calls the
    /// hooks, if [`ended_by_itself`] accepts the outcome.
    pub(super) async fn perform(&self, first_attempt: u32) -> CallEnd {
        let (InvokedCall { outcome, coercions, asked }, attempt) = self.attempts(first_attempt).await;
        let millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut end = CallEnd::ran(outcome, millis).with_coercions(coercions);
        (end.attempt, end.asked) = (attempt, asked);
        if self.config.hooks.is_empty() || !ended_by_itself(&end.outcome) {
            return end;
        }
        Box::pin(self.after(end)).await
    }

    async fn attempts(&self, first: u32) -> (InvokedCall, u32) {
        let mut attempt = first;
        let mut context = self.context.clone();
        if attempt > 1 {
            context = self.context_of(attempt, self.max_attempts.max(attempt));
        }
        loop {
            let arguments = match &self.checked {
                Some(checked) => InvokedArguments::Accepted(checked.accepted()),
                None => InvokedArguments::Sent(self.call.args.text()),
            };
            let result = self.config.registry.run_call(&self.call, arguments, &context).await;
            if attempt >= self.max_attempts
                || self.context.is_cancelled()
                || !went_wrong_outside(&result.outcome)
            {
                return (result, attempt);
            }
            attempt += 1;
            tracing::warn!(tool = %self.call.name, attempt, "a tool is run again");
            context = self.context_of(attempt, self.max_attempts);
        }
    }

    fn context_of(&self, attempt: u32, max: u32) -> ToolContext {
        self.context.clone().with_attempt(attempt, max)
    }

    /// Passes the end of the call to each hook, which may change it. An error of a hook replaces the outcome, lets the run continue, and
    /// skips the later hooks.
    async fn after(&self, mut end: CallEnd) -> CallEnd {
        let Self { config, call, context, reply, checked, .. } = self;
        let info = ToolCallInfo::new(reply.clone(), (**call).clone(), checked.clone(), context.clone());
        for hook in &config.hooks {
            match call_hook(|| hook.after_tool_call(info.clone(), end.outcome.clone())).await {
                Ok(change) => apply(change, &mut end),
                Err(error) => {
                    end.outcome = hook_error(&error.to_string());
                    end.control = Control::Continue;
                    break;
                }
            }
        }
        end
    }
}

/// Returns whether the tool panicked or timed out, so that a retry may succeed.
fn went_wrong_outside(outcome: &ToolOutcome) -> bool {
    matches!(outcome, ToolOutcome::Failed { code, .. } if *code == OutcomeCode::PANIC || *code == OutcomeCode::TIMEOUT)
}

/// Returns whether `after_tool_call` is called for this outcome.
fn ended_by_itself(outcome: &ToolOutcome) -> bool {
    match outcome {
        ToolOutcome::Completed(_) | ToolOutcome::Retry { .. } | ToolOutcome::Denied { .. } => true,
        ToolOutcome::Failed { code, .. } => {
            *code != OutcomeCode::TIMEOUT && *code != OutcomeCode::INVALID_ARGUMENTS
        }
        _ => false,
    }
}

fn apply(change: AfterCall, end: &mut CallEnd) {
    let AfterCall { content, metadata, is_error, control } = change;
    end.control = control.unwrap_or(end.control);
    if content.is_none() && metadata.is_none() && is_error.is_none() {
        return;
    }
    let is_error = is_error.unwrap_or(end.outcome.is_error());
    let metadata = metadata.unwrap_or_else(|| end.outcome.metadata().cloned().unwrap_or_default());
    if is_error {
        let text = match &content {
            Some(parts) => parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n"),
            None => end.outcome.text().into_owned(),
        };
        match &mut end.outcome {
            ToolOutcome::Retry { message, metadata: own }
            | ToolOutcome::Failed { message, metadata: own, .. }
            | ToolOutcome::Denied { message, metadata: own, .. } => (*message, *own) = (text, metadata),
            outcome => {
                let code = OutcomeCode::new("hook_set_error");
                *outcome = ToolOutcome::Failed { code, message: text, metadata };
            }
        }
        return;
    }
    let mut output = match std::mem::replace(&mut end.outcome, ToolOutcome::Completed(ToolOutput::empty())) {
        ToolOutcome::Completed(output) => output,
        other => ToolOutput::text(other.text()),
    };
    if let Some(content) = content {
        output.content = content;
        // The structured data of the old result would contradict the new content.
        output.structured = None;
    }
    output.metadata = metadata;
    end.outcome = ToolOutcome::Completed(output);
}
