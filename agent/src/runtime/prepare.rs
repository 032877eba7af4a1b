//! What happens to a call before its body runs.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use super::assistant::Config;
use super::cache::{CallKey, ResultCache};
use super::hooks::{BeforeCall, ToolCallInfo};
use super::perform::Performer;
use crate::args::{Coercions, Plan};
use crate::loop_core::{AgentLoop, CallEnd, Prepared, Ready, Signature};
use crate::message::{Message, ToolArguments, ToolCall};
use crate::tool::invoke::{panic_text, prepared};
use crate::tool::registry::unknown_among;
use crate::{DenialCode, FailureCode, Source, Tool, ToolDefinition, ToolOutcome, ToolReply};

impl Performer {
    /// Returns what follows for a call before it runs: whether it may, with which arguments, and who has to decide. `tools` are those of the
    /// turn, if the application chooses them. Returns `None` if the run is stopped first.
    pub(super) async fn prepare_call(
        &self,
        sent: &ToolCall,
        reply: Option<&Arc<Message>>,
        tools: Option<&[ToolDefinition]>,
        cache: Option<&ResultCache>,
    ) -> Option<Prepared> {
        match self.checked_call(sent, reply, tools, cache).await {
            Ok(ready) => Some(Prepared::Ready(ready)),
            Err(Some(end)) => Some(Prepared::Ended(*end)),
            Err(None) => None,
        }
    }

    /// Like [`prepare_call`](Self::prepare_call). An error is the end of the call, or nothing if the run is stopped first.
    async fn checked_call(
        &self,
        sent: &ToolCall,
        reply: Option<&Arc<Message>>,
        tools: Option<&[ToolDefinition]>,
        cache: Option<&ResultCache>,
    ) -> Result<Ready, Option<Box<CallEnd>>> {
        let ended = |outcome: ToolOutcome| Some(Box::new(CallEnd::new(outcome)));
        let source = self.context.source();
        let checked = |tool: &dyn Tool, args: &ToolArguments| {
            check(tool, args, source).map_err(|refused| Some(Box::new(CallEnd::new(refused))))
        };
        let tool = self.find(&sent.name, tools).map_err(|unknown| ended(*unknown))?;
        let tool = &**tool;
        let mut call = Cow::Borrowed(sent);
        let mut valid = checked(tool, &call.args)?;
        let policy = tool.policy();
        let guards = self.config.rules.loop_guard.is_some() && !policy.allow_repeat;
        let (mut is_replaced, mut must_ask) = (false, false);
        for hook in &self.config.hooks {
            let info = ToolCallInfo::new(
                reply.cloned(),
                (*call).clone(),
                Some((tool, &valid)),
                self.context.clone(),
            );
            let decided = self.hook(|| hook.before_tool_call(info)).await.ok_or(None)?;
            match decided.map_err(|error| ended(hook_error(&error.to_string())))? {
                BeforeCall::Continue => {}
                BeforeCall::RequireApproval => must_ask = true,
                BeforeCall::Replace(args) => {
                    call.to_mut().args = ToolArguments::from(args);
                    is_replaced = true;
                    valid = checked(tool, &call.args)?;
                }
                BeforeCall::Block { reason, control } => {
                    let mut end = CallEnd::new(ToolOutcome::denied(DenialCode::BLOCKED, reason));
                    end.control = control;
                    end.signature = guards.then(|| Signature::of(&call.name, &valid.value(tool, &call.args)));
                    return Err(Some(Box::new(end)));
                }
            }
        }
        let (plan, text) = (valid.plan(tool), valid.text(&call.args));
        let needed = catch_unwind(AssertUnwindSafe(|| policy.approval.is_needed(plan, text)));
        must_ask |= needed.map_err(|payload| {
            let text = format!("the approval rule panicked: {}", panic_text(payload));
            ended(hook_error(&text))
        })?;
        let mut ready = Ready::default();
        if guards || must_ask {
            let args = valid.value(tool, &call.args);
            ready.signature = guards.then(|| Signature::of(&call.name, &args));
            ready.approval = must_ask.then(|| ToolArguments::from(args));
        }
        // A call that waits for a decision is looked up after it was allowed.
        if let Some(cache) = cache.filter(|_| !must_ask && self.config.can_cache(tool, &self.context)) {
            let key = CallKey::new(&self.config, tool, &call, &valid, &self.context);
            let known = cache.get(&key);
            ready.cached =
                known.map(|output| CallEnd::new(ToolReply::new(output).with_coercions(valid.coercions)));
        }
        ready.args = is_replaced.then(|| call.into_owned().args);
        Ok(ready)
    }

    /// Returns the tool of this name, if the model has it in this turn.
    fn find(&self, name: &str, tools: Option<&[ToolDefinition]>) -> Result<&Arc<dyn Tool>, Box<ToolOutcome>> {
        let unknown = |text: String| Box::new(ToolOutcome::failed(FailureCode::UNKNOWN_TOOL, text));
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

impl Config {
    /// Signs a run that may be stored, if there is a key.
    pub(super) fn sign(&self, run: &mut AgentLoop) {
        if let Some(signer) = &self.signer {
            signer.sign(run);
        }
    }

    /// Of the tool's parameters as they are now, for this run's source.
    pub(super) fn fingerprint(&self, tool: &str) -> u64 {
        self.rules.tools.get(tool).map_or(0, |tool| tool.fingerprint)
    }
}

/// Arguments that were checked.
pub(super) struct Checked {
    /// As the tool prepared them, where it changed them.
    prepared: Option<String>,
    /// The tool as the source is shown it, where that is not as everybody is.
    own: Option<ToolDefinition>,
    pub(super) coercions: Coercions,
}

/// The tool's own check, on behalf of the run's source.
#[expect(clippy::result_large_err, reason = "the reply is what the call comes to")]
pub(super) fn check(
    tool: &dyn Tool,
    args: &ToolArguments,
    source: Option<&Source>,
) -> Result<Checked, ToolReply> {
    let asked = |source| catch_unwind(AssertUnwindSafe(|| tool.definition_for(source))).map_err(panic_text);
    let own = match source.map(asked) {
        None | Some(Ok(Ok(None))) => None,
        Some(Ok(Ok(own))) => own,
        // The call itself says what is wrong.
        Some(Ok(Err(_)) | Err(_)) => return Ok(Checked::unknown()),
    };
    let prepared = prepared(tool, args.text())
        .map_err(|error| ToolReply::new(ToolOutcome::failed(FailureCode::PREPARE_ERROR, error.message())))?;
    let text = prepared.as_deref().unwrap_or(args.text());
    let checked = catch_unwind(AssertUnwindSafe(|| match &own {
        Some(own) => own.plan().parse::<Value>(text).map(|parsed| parsed.coercions),
        None => tool.validate(text),
    }));
    match checked.map_err(panic_text) {
        Ok(Ok(coercions)) => Ok(Checked { prepared, own, coercions }),
        Ok(Err(refusal)) => Err(refusal.into()),
        // A check that panics is left to the call itself, which turns panics into results.
        Err(_) => Ok(Checked::unknown()),
    }
}

impl Checked {
    fn unknown() -> Self {
        Self { prepared: None, own: None, coercions: Coercions::default() }
    }

    pub(super) fn plan<'a>(&'a self, tool: &'a dyn Tool) -> &'a Plan {
        self.own.as_ref().unwrap_or_else(|| tool.definition()).plan()
    }

    pub(super) fn text<'a>(&'a self, args: &'a ToolArguments) -> &'a str {
        self.prepared.as_deref().unwrap_or_else(|| args.text())
    }

    pub(super) fn prepared(&self) -> Option<&str> {
        self.prepared.as_deref()
    }

    /// The checked arguments as a value: canonical names, and every digit. The text alone does not have them.
    pub(super) fn value(&self, tool: &dyn Tool, args: &ToolArguments) -> Value {
        let parsed = self.plan(tool).parse::<Value>(self.text(args));
        parsed.map(|parsed| parsed.value).unwrap_or_default()
    }
}

pub(super) fn hook_error(text: &str) -> ToolOutcome {
    ToolOutcome::failed(FailureCode::new("hook_error"), format!("A hook of the application failed: {text}"))
}
