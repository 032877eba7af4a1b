//! The data about a sub-agent's run that both formats (AG-UI and AI SDK) send.
#![cfg_attr(
    not(all(feature = "ui-ag-ui", feature = "ui-ai-sdk")),
    allow(dead_code, reason = "each format reads its own part")
)]

use serde_json::{Value, json};

use super::super::view::ShownEnd;
use super::calls::CallEnding;

#[derive(Clone)]
pub(super) struct ChildRun {
    pub(super) run_id: String,
    pub(super) tool: String,
    pub(super) call_id: String,
    /// The id of the run that made the call, if that run also belongs to a sub-agent.
    pub(super) parent: Option<String>,
    pub(super) message_id: String,
    /// The position in `UiCalls` of the main run's call that contains this run, at any depth.
    pub(super) outermost: usize,
    pub(super) is_suspended: bool,
}

pub(super) enum ChildEnd<'a> {
    Completed,
    /// The run did not complete. The word names the reason, such as `interrupted`.
    Stopped(&'a str),
    Suspended(Vec<String>),
}

impl ChildEnd<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Completed => "completed",
            Self::Stopped(word) => word,
            Self::Suspended(_) => "suspended",
        }
    }
}

pub(super) fn run_facts(child: &ChildRun, call_id: &str, state: &str) -> Value {
    let mut facts = json!({"runId": child.run_id, "tool": child.tool, "toolCallId": call_id, "state": state});
    if let Some(parent) = &child.parent {
        facts["parentRunId"] = json!(parent);
    }
    facts
}

pub(super) fn call_facts(
    child: &ChildRun,
    tool: &str,
    call_id: &str,
    input: &Value,
    end: Option<&CallEnding>,
) -> Value {
    let mut facts = json!({"runId": child.run_id, "toolCallId": call_id, "tool": tool, "input": input});
    let Some(end) = end else {
        facts["state"] = json!("running");
        return facts;
    };
    facts["state"] = json!(end.outcome);
    if let Some(code) = &end.code {
        facts["code"] = json!(code);
    }
    match &end.shown {
        ShownEnd::Output(output) => facts["output"] = output.clone(),
        ShownEnd::Refused { text, .. } | ShownEnd::Error(text) => facts["errorText"] = json!(text),
        ShownEnd::Denied => {}
    }
    facts
}
