//! Calls that were checked before their run was suspended are checked again when it is resumed: days may lie between.

use serde::{Deserialize, Serialize};

use crate::loop_core::{CallEnd, Note, Prepared, ReadyCall};
use crate::message::{ToolArguments, ToolCall};
use crate::runtime::assistant::Config;
use crate::runtime::cache::canonical;
use crate::runtime::drive::Driver;
use crate::runtime::segment::checked_args;
use crate::runtime::telemetry;
use crate::{StepKey, ToolContext};

/// What a call comes to that was checked before.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckedAgain {
    /// It runs as it was checked.
    Runs,
    /// It runs with other arguments, which need no approval.
    RunsWith(ToolArguments),
    /// It waits for a decision on other arguments than were decided on, or for its first one: `args` as it would run, and in their
    /// canonical form.
    Asks { args: ToolArguments, checked: ToolArguments },
    /// It does not run.
    Ends(Box<CallEnd>),
}

impl Driver {
    /// Asks the rules of the assistant about each call that may run since the run was resumed.
    pub(in crate::runtime) async fn check_again(&mut self, calls: Vec<(StepKey, ToolCall)>) {
        let mut asks = Vec::new();
        for (key, call) in calls {
            let ready = self.core(|core, _| core.ready_call(key.ord)).flatten();
            let Some(ready) = ready else { continue };
            let asked = ready.asked(&call).clone();
            let Some(prepared) = Box::pin(self.prepare_call(&asked)).await else { return };
            match checked_again(&self.config, &self.context, &ready, &call, &asked, prepared) {
                CheckedAgain::Runs => {}
                CheckedAgain::RunsWith(args) => {
                    self.core(|core, _| core.replace_args(key.ord, args));
                }
                CheckedAgain::Asks { args, checked } => asks.push((key.ord, args, checked)),
                CheckedAgain::Ends(end) => {
                    self.note(Note::CallEnded(key.ord, *end));
                    self.emit().await;
                }
            }
            if self.stop.is_set() {
                return;
            }
        }
        for (ord, args, checked) in asks {
            self.core(|core, _| core.ask_again(ord, args, checked));
            self.emit().await;
        }
    }
}

/// Compares what the rules say now with what was decided. `call` is the call as it would run, `asked` what the rules were asked about.
pub(in crate::runtime) fn checked_again(
    config: &Config,
    context: &ToolContext,
    ready: &ReadyCall,
    call: &ToolCall,
    asked: &ToolCall,
    prepared: Prepared,
) -> CheckedAgain {
    let tool = config.registry.get(&call.name).map(|tool| &**tool);
    let mut end = match prepared {
        Prepared::Ended(end) => end,
        Prepared::Ready(now) => {
            let args = now.args.unwrap_or_else(|| asked.args.clone());
            let checked = |args: &ToolArguments| {
                let call = ToolCall::new(&*call.id, &*call.name, args.clone());
                tool.map(|tool| checked_args(tool, &call, context)).unwrap_or_default()
            };
            let now_checked = checked(&args);
            let is_same = canonical(&now_checked) == canonical(&checked(&call.args));
            return match (ready.is_approved, now.approval.is_some(), is_same) {
                (true, _, true) | (false, false, true) => CheckedAgain::Runs,
                (false, false, false) => CheckedAgain::RunsWith(args),
                // A decision counts for the arguments that it was made on.
                (true, _, false) | (false, true, _) => {
                    CheckedAgain::Asks { args, checked: ToolArguments::from(now_checked) }
                }
            };
        }
    };
    if end.outcome.is_error() {
        telemetry::record_refusal(tool, call, &end.outcome, context);
    }
    if ready.is_edited {
        end.edited_args = Some(call.args.clone());
    }
    CheckedAgain::Ends(Box::new(end))
}
