//! The driver: what happens to a call before its body runs.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use super::assistant::Config;
use super::cache::CallKey;
use super::drive::Driver;
use super::hooks::{BeforeCall, ToolCallInfo};
use super::records::Found;
use super::telemetry;
use crate::args::{Coercions, Plan};
use crate::loop_core::{AgentLoop, Answer, CallEnd, Note, Prepared, Ready, Signature, SteeringPolicy};
use crate::message::{Message, ToolArguments, ToolCall};
use crate::tool::invoke::{panic_text, prepared};
use crate::tool::registry::unknown_among;
use crate::{
    DenialCode, FailureCode, InterruptionCode, Source, Tool, ToolDefinition, ToolOutcome, ToolReply,
};

pub(super) const STEERED: &str = "The call was not run, or was stopped, because of a new message.";

impl Driver {
    /// Looks at each call of a segment, in call order.
    pub(super) async fn prepare(&mut self, first: u32, calls: Vec<ToolCall>) {
        let count = calls.len();
        for (ord, call) in (first..).zip(calls) {
            self.note(Note::CallStarted(ord));
            self.emit().await;
            if self.stop.is_set() {
                return;
            }
            let (prepared, has_begun) = if self.is_steered() {
                (Prepared::Ended(CallEnd::new(steered())), false)
            } else {
                let Some((prepared, has_begun)) = self.found_or_prepared(ord, &call).await else { return };
                if let Prepared::Ended(end) = &prepared
                    && end.outcome.is_error()
                {
                    let tool = self.config.registry.get(&call.name).map(|tool| &**tool);
                    telemetry::record_refusal(tool, &call, &end.outcome, &self.context);
                }
                (prepared, has_begun)
            };
            self.note(Note::CallPrepared(ord, prepared));
            if has_begun {
                self.core(|core, _| core.approve(ord));
            }
            self.emit().await;
            if self.stop.is_set() {
                return;
            }
        }
        self.is_steered();
        // All of them are known by now.
        self.answer(Answer::Prepared(vec![Prepared::Ready(Ready::default()); count]));
    }

    /// Whether a message came in this turn, which goes before calls that have not begun. One that was left over when the
    /// turn began has its own turn: the model goes on with the one before it.
    pub(super) fn is_steered(&self) -> bool {
        self.config.rules.steering != SteeringPolicy::AfterBatch
            && self
                .core(|core, rest| {
                    let waits = rest.steering.has_new_messages();
                    if waits {
                        core.steered();
                    }
                    waits
                })
                .unwrap_or_default()
    }

    /// Prepares a call, and says whether it had begun before: a run that resumes after its process died looks its calls up. Returns
    /// `None` if the run was stopped meanwhile.
    async fn found_or_prepared(&mut self, ord: u32, call: &ToolCall) -> Option<(Prepared, bool)> {
        match Box::pin(self.found(ord, call)).await {
            None => self.prepare_call(call).await.map(|prepared| (prepared, false)),
            Some(Found::Ended(end)) => Some((Prepared::Ended(*end), false)),
            // It was allowed before it began.
            Some(Found::Begun) => self.prepare_call(call).await.map(|prepared| match prepared {
                Prepared::Ready(ready) => (Prepared::Ready(Ready { approval: None, ..ready }), true),
                ended @ Prepared::Ended(_) => (ended, false),
            }),
        }
    }

    /// What the call comes to before it runs; none when the run was stopped meanwhile.
    pub(super) async fn prepare_call(&mut self, sent: &ToolCall) -> Option<Prepared> {
        let mut call = Cow::Borrowed(sent);
        let tool = match self.find(&call.name).await? {
            Ok(tool) => tool,
            Err(outcome) => return Some(ended(outcome)),
        };
        let source = self.context.source().cloned();
        let mut checked = match check(&*tool, &call.args, source.as_ref()) {
            Ok(checked) => checked,
            Err(reply) => return Some(Prepared::Ended(CallEnd::new(reply))),
        };
        let policy = tool.policy();
        let guards = self.config.rules.loop_guard.is_some() && !policy.allow_repeat;
        let (mut is_replaced, mut must_ask) = (false, false);
        let assistant = self.core(|core, _| core.conversation().shared().last().cloned()).flatten();
        let assistant = assistant.filter(|message| matches!(**message, Message::Assistant(_)));
        for hook in self.config.hooks.clone() {
            let (own, asked) = ((&*tool, &checked), call.clone().into_owned());
            let info = ToolCallInfo::new(assistant.clone(), asked, Some(own), self.context.clone());
            match self.hook(|| hook.before_tool_call(info)).await? {
                Ok(BeforeCall::Continue) => {}
                Ok(BeforeCall::RequireApproval) => must_ask = true,
                Ok(BeforeCall::Replace(args)) => {
                    call.to_mut().args = ToolArguments::from(args);
                    is_replaced = true;
                    checked = match check(&*tool, &call.args, source.as_ref()) {
                        Ok(checked) => checked,
                        Err(reply) => return Some(Prepared::Ended(CallEnd::new(reply))),
                    };
                }
                Ok(BeforeCall::Block { reason, control }) => {
                    let outcome = ToolOutcome::denied(DenialCode::BLOCKED, reason);
                    let mut end = CallEnd::new(outcome);
                    end.control = control;
                    end.signature =
                        guards.then(|| Signature::of(&call.name, &checked.value(&*tool, &call.args)));
                    return Some(Prepared::Ended(end));
                }
                Err(error) => return Some(ended(hook_error(&error.to_string()))),
            }
        }
        let mut ready = Ready::default();
        let (plan, text) = (checked.plan(&*tool), checked.text(&call.args));
        let needed = catch_unwind(AssertUnwindSafe(|| policy.approval.is_needed(plan, text)));
        must_ask |= match needed {
            Ok(needed) => needed,
            Err(payload) => {
                let text = format!("the approval rule panicked: {}", panic_text(payload));
                return Some(ended(hook_error(&text)));
            }
        };
        if guards || must_ask {
            let args = checked.value(&*tool, &call.args);
            ready.signature = guards.then(|| Signature::of(&call.name, &args));
            ready.approval = must_ask.then(|| ToolArguments::from(args));
        }
        // A call that waits for a decision is looked up when it was allowed.
        if !must_ask && self.config.can_cache(&*tool, &self.context) {
            let key = CallKey::new(&self.config, &*tool, &call, &checked, &self.context);
            let known = self.assistant.cache().get(&key);
            ready.cached =
                known.map(|output| CallEnd::new(ToolReply::new(output).with_coercions(checked.coercions)));
        }
        ready.args = is_replaced.then(|| call.into_owned().args);
        Some(Prepared::Ready(ready))
    }

    /// The tool of this name, if the model has it in this turn.
    async fn find(&mut self, name: &str) -> Option<Result<Arc<dyn Tool>, ToolOutcome>> {
        let unknown = |text: String| ToolOutcome::failed(FailureCode::UNKNOWN_TOOL, text);
        if self.config.preparers.is_empty() {
            return Some(match self.config.registry.fetch(name) {
                Ok(tool) => Ok(tool.clone()),
                Err(error) => Err(unknown(error.to_string())),
            });
        }
        let tools = match Box::pin(self.turn_tools(true)).await? {
            Ok(tools) => tools,
            Err(error) => return Some(Err(hook_error(&error.to_string()))),
        };
        let is_there = tools.iter().any(|tool| tool.name() == name);
        let tool = self.config.registry.get(name).filter(|_| is_there).cloned();
        Some(tool.ok_or_else(|| unknown(unknown_among(&tools, name).to_string())))
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

fn ended(outcome: ToolOutcome) -> Prepared {
    Prepared::Ended(CallEnd::new(outcome))
}

pub(super) fn hook_error(text: &str) -> ToolOutcome {
    ToolOutcome::failed(FailureCode::new("hook_error"), format!("A hook of the application failed: {text}"))
}

pub(super) fn steered() -> ToolOutcome {
    ToolOutcome::Interrupted { code: InterruptionCode::STEERED, reason: STEERED.to_owned() }
}
