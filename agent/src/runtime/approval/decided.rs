//! What follows from a decision: the call runs, as it was asked for or with changed arguments, or it ends.

use std::sync::Arc;

use serde_json::Value;

use super::Decision;
use crate::loop_core::{ApprovalRequest, CallDecision, CallEnd};
use crate::message::{Message, ToolArguments, ToolCall};
use crate::runtime::checked::check;
use crate::runtime::config::Config;
use crate::runtime::hooks::{BeforeCall, HookError, ToolCallInfo, hook_error};
use crate::runtime::perform::Performer;
use crate::runtime::telemetry;
use crate::tool::context::ToolContext;
use crate::tool::outcome::{OutcomeCode, ToolOutcome};
use crate::tool::output::Control;
use crate::tool::secrets::SecretArguments;
use crate::tool::value::Tool;

impl Performer {
    /// Returns what follows from a decision now.
    pub(crate) fn decided(&self, request: &ApprovalRequest, decision: Decision) -> CallDecision {
        decided(&self.config, &self.context, request, decision)
    }

    /// Asks the hooks about a decision that changed the arguments of its call. Returns `None` if the run is stopped first.
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
        let edited = Edited::new(&self.config, &self.context, request, args, reply);
        for hook in &self.config.hooks {
            let info = edited.info.clone();
            if let Some(end) = edited.end(self.hook(|| hook.before_tool_call(info)).await?) {
                return Some(CallDecision::AllowEnded(end));
            }
        }
        Some(decided)
    }
}

/// Returns what follows from a decision now: the tool may be another one than when the request was made, and changed arguments are checked
/// like any others.
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

/// A call whose arguments a person changed, as hooks are asked about it. The person has decided: of what a hook says, only
/// that the call is blocked counts, or that the hook failed.
struct Edited {
    tool: Option<Tool>,
    info: ToolCallInfo,
}

impl Edited {
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

    /// How the call ends for what a hook says of it; none where it may run.
    fn end(&self, said: Result<BeforeCall, HookError>) -> Option<CallEnd> {
        let (outcome, control) = match said {
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

/// Returns the changed arguments, with the secrets that the model sent wherever the person left their markers.
///
/// # Errors
/// Returns the path of a marker whose secret is unknown.
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

/// Replaces values that are unchanged since they were shown with those that were sent.
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
        // Items have no names, so the secret of an item that was changed or moved is unknown.
        (Value::Array(edited), Value::Array(shown), Value::Array(sent)) if edited.len() == shown.len() => {
            for ((value, shown), sent) in edited.iter_mut().zip(shown).zip(sent) {
                if value == shown {
                    value.clone_from(sent);
                }
            }
        }
        _ => {}
    }
}

/// Returns the path of the first marker that is in the position of a secret. `hidden` is `edited` with all secrets replaced by markers.
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
