//! Assistants as tools on a durable engine, such as Restate. The calling run starts a separate run for each call, and waits for it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::child::{NO_ANSWER, answer, did_fail, failure, too_deep, too_many};
use super::error::RunError;
use super::parent::EngineChild;
use super::perform::Performer;
use super::served::ServedAssistant;
use crate::loop_core::{AgentLoop, CHILD_HANDLE, CallEnd, End, Spent};
use crate::message::{ToolCall, UserMessage};
use crate::step_key::StepKey;
use crate::tool::outcome::ToolOutcome;
use crate::tool::value::Tool;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChildReport {
    pub(crate) outcome: ToolOutcome,
    pub(crate) spent: Spent,
    /// The time that the steps of the run took, if the tool has a time limit.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub(crate) worked: Duration,
}

pub(crate) fn is_child_handle(handle: &str) -> bool {
    handle == CHILD_HANDLE
}

pub(crate) fn waiting_child() -> CallEnd {
    CallEnd::new(ToolOutcome::Deferred { handle: CHILD_HANDLE.to_owned() })
}

pub(crate) fn too_many_children(max: u32) -> CallEnd {
    CallEnd::ran(too_many(max), 0)
}

impl Performer {
    pub(crate) fn is_child(&self, tool: &str) -> bool {
        self.config.registry.get(tool).is_some_and(Tool::is_of_assistant)
    }

    /// Returns the time limit that the tool itself sets, or `None` if it sets none or is unlimited.
    pub(crate) fn time_limit_of(&self, tool: &str) -> Option<Duration> {
        self.config.registry.get(tool)?.policy().timeout.filter(|limit| *limit < Duration::MAX)
    }

    /// Returns the first message of the run that a call starts. `depth` is the depth of the run that makes the call.
    ///
    /// # Errors
    /// Returns the end of the call if it starts no run.
    pub(crate) async fn child_message(
        &self,
        key: &StepKey,
        call: &ToolCall,
        depth: usize,
    ) -> Result<UserMessage, Box<CallEnd>> {
        if self.config.max_depth == 0 {
            return Err(Box::new(CallEnd::ran(too_deep(depth), 0)));
        }
        let child = std::sync::Arc::new(EngineChild::Begins(Mutex::default()));
        let context = self.context.clone().with_idempotency_key(key.to_string()).adding_state(child.clone());
        let result = self.config.registry.call(call, &context).await;
        let message = match &*child {
            EngineChild::Begins(first) => first.lock().unwrap_or_else(PoisonError::into_inner).take(),
            EngineChild::Ended(_) => None,
        };
        match (&result.outcome, message) {
            (ToolOutcome::Deferred { handle }, Some(message)) if is_child_handle(handle) => Ok(message),
            _ => Err(Box::new(CallEnd::ran(result.outcome, 0).with_coercions(result.coercions))),
        }
    }
}

impl ServedAssistant {
    pub(crate) fn child_report(&self, run: &AgentLoop, value: &Result<Option<Value>, String>) -> ChildReport {
        let outcome = match run.end() {
            Some(End::Limit(reached)) => failure(RunError::Limit(reached.clone())),
            Some(End::Aborted { reason }) => ToolOutcome::aborted(reason),
            Some(End::Error { message }) => did_fail(message),
            _ => match value {
                Err(error) => did_fail(error),
                Ok(None) if self.is_typed => did_fail(NO_ANSWER),
                Ok(value) => {
                    let value = value.as_ref().filter(|_| self.is_typed);
                    answer(value, run.run_id(), run.turn(), run.usage(), run.added())
                }
            },
        };
        ChildReport { outcome, spent: run.spent(), worked: Duration::ZERO }
    }
}
