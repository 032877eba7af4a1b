//! The arguments of a call, checked once before its tool runs.

use serde_json::Value;

use crate::args::{Coercion, Plan};
use crate::message::{ToolArguments, ToolCall};
use crate::tool::body::AcceptedArguments;
use crate::tool::outcome::ToolOutcome;
use crate::tool::source::Source;
use crate::tool::value::Tool;

/// The arguments of a call as its tool accepted them, parsed once for the tool's function, hooks, approvals, records and the cache.
pub(crate) struct CheckedArguments {
    tool: Tool,
    args: ToolArguments,
    accepted: AcceptedArguments,
}

pub(super) fn check(
    tool: &Tool,
    args: &ToolArguments,
    source: Option<&Source>,
) -> Result<CheckedArguments, Box<ToolOutcome>> {
    match tool.check(args.text(), source) {
        Ok(accepted) => Ok(CheckedArguments { tool: tool.clone(), args: args.clone(), accepted }),
        Err(error) => Err(Box::new(error.into_outcome(tool.definition().name()))),
    }
}

impl CheckedArguments {
    pub(super) fn tool(&self) -> &Tool {
        &self.tool
    }

    pub(super) fn accepted(&self) -> &AcceptedArguments {
        &self.accepted
    }

    pub(super) fn plan(&self) -> &Plan {
        self.accepted.definition().plan()
    }

    pub(super) fn text(&self) -> &str {
        self.accepted.text()
    }

    pub(super) fn coercions(&self) -> &[Coercion] {
        self.accepted.coercions()
    }

    /// Returns the arguments after coercion, with parameter names in place of aliases. A number that a float cannot hold is rounded here,
    /// but not in [`text`](Self::text). Returns `null` if only the tool itself can parse the arguments.
    pub(super) fn value(&self) -> &Value {
        self.accepted.value()
    }

    pub(super) fn is_of(&self, call: &ToolCall) -> bool {
        self.args == call.args
    }
}
