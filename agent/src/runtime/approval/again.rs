//! Checks the calls of a resumed run again, under the current rules, before they run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::canonical::canonical;
use crate::loop_core::{AgentLoop, CallEnd, Prepared, ReadyCall, RecordError, Step};
use crate::message::{ToolArguments, ToolCall};
use crate::runtime::checked::CheckedArguments;
use crate::runtime::in_process::InProcessSteps;
use crate::runtime::perform::Performer;
use crate::runtime::prepare::PreparedCall;
use crate::runtime::telemetry;
use crate::step_key::StepKey;
use crate::steps::StepError;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckedAgain {
    Runs,
    RunsWith(ToolArguments),
    /// The call waits for a decision: its arguments are no longer the approved ones, or the call now needs approval. `checked` is `args`
    /// after coercion.
    Asks {
        args: ToolArguments,
        checked: ToolArguments,
    },
    Ends(Box<CallEnd>),
}

impl InProcessSteps {
    /// Checks calls again before they run. Returns the calls that run now, with their current arguments, or `None` if another step comes
    /// first, such as a decision on a call.
    pub(in crate::runtime) async fn check_again(
        &mut self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
    ) -> Result<Option<Vec<(StepKey, Arc<ToolCall>)>>, StepError> {
        let mut asks = Vec::new();
        for (key, call) in calls {
            let Some(ready) = self.run.lock().ready_call(key.ord) else { continue };
            // The call was checked before its sub-agent began, and the sub-agent now continues.
            if self.continued.contains_key(&key.ord) {
                continue;
            }
            let asked = ready.call_for_hooks(&call).clone();
            let prepared = Box::pin(self.prepare_call(key.ord, &asked)).await?;
            let valid = self.checked.get(&key.ord).cloned();
            let checked = self.performer.checked_again(&ready, &call, &asked, (prepared, valid));
            if let CheckedAgain::Asks { args, checked } = checked {
                asks.push((key.ord, args, checked));
            } else {
                checked.apply(&mut self.run.lock(), key.ord)?;
            }
            self.emit().await;
            self.check_stop()?;
        }
        for (ord, args, checked) in asks {
            CheckedAgain::Asks { args, checked }.apply(&mut self.run.lock(), ord)?;
            self.emit().await;
        }
        let next = self.run.lock().next_if_settled();
        Ok(match next {
            Some(Step::CallTools { calls }) => Some(calls),
            _ => None,
        })
    }
}

impl CheckedAgain {
    pub(crate) fn apply(self, run: &mut AgentLoop, ord: u32) -> Result<(), RecordError> {
        match self {
            Self::Runs => {}
            Self::RunsWith(args) => run.replace_args(ord, args),
            Self::Asks { args, checked } => run.ask_again(ord, args, checked),
            Self::Ends(end) => run.record_call_end(ord, *end)?,
        }
        Ok(())
    }
}

impl Performer {
    /// Decides whether a call still runs after a new check under the current rules. `call` has the arguments with which the call would
    /// run. `asked` has the arguments that the new check received. `prepared` and `valid` are the result of the new check.
    pub(in crate::runtime) fn checked_again(
        &self,
        ready: &ReadyCall,
        call: &ToolCall,
        asked: &ToolCall,
        (prepared, valid): PreparedCall,
    ) -> CheckedAgain {
        let mut end = match prepared {
            Prepared::Ended(end) => end,
            Prepared::Ready(now) => {
                let args = now.args.unwrap_or_else(|| asked.args.clone());
                let value = |valid: &Option<Arc<CheckedArguments>>| {
                    valid.as_ref().map(|valid| valid.value().clone()).unwrap_or_default()
                };
                let is_same = args == call.args
                    || canonical(&value(&valid))
                        == canonical(&value(&self.config.checked(call, &self.context)));
                return match (ready.is_approved, now.approval.is_some(), is_same) {
                    (true, _, true) | (false, false, true) => CheckedAgain::Runs,
                    (false, false, false) => CheckedAgain::RunsWith(args),
                    // A decision counts only for its arguments, so changed arguments need a new decision. A call without a decision needs
                    // one if the current rules require approval.
                    (true, _, false) | (false, true, _) => {
                        CheckedAgain::Asks { args, checked: ToolArguments::from(value(&valid)) }
                    }
                };
            }
        };
        if end.outcome.is_error() {
            let tool = self.config.registry.get(&call.name);
            telemetry::record_refusal(tool, call, &end.outcome, &self.context);
        }
        if ready.is_edited {
            end.edited_args = Some(call.args.clone());
        }
        CheckedAgain::Ends(end)
    }
}
