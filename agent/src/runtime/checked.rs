//! The arguments of a call, checked once before its body runs.

use serde_json::Value;

use crate::args::{Coercion, Plan};
use crate::message::{ToolArguments, ToolCall};
use crate::tool::body::AcceptedArguments;
use crate::tool::outcome::ToolOutcome;
use crate::tool::source::Source;
use crate::tool::value::Tool;

/// The arguments of a call, as its tool accepted them. The body, hooks, approval, records and the cache read these parsed
/// arguments.
pub(crate) struct CheckedArguments {
    tool: Tool,
    args: ToolArguments,
    accepted: AcceptedArguments,
}

/// Checks arguments with their tool, on behalf of the run's source. If the arguments are refused, returns the outcome of the call.
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

    /// Returns the arguments as the tool accepted them.
    pub(super) fn accepted(&self) -> &AcceptedArguments {
        &self.accepted
    }

    pub(super) fn plan(&self) -> &Plan {
        self.accepted.definition().plan()
    }

    /// Returns the text that the tool parsed.
    pub(super) fn text(&self) -> &str {
        self.accepted.text()
    }

    pub(super) fn coercions(&self) -> &[Coercion] {
        self.accepted.coercions()
    }

    /// Returns the arguments after coercion, under canonical names. Numbers that a float cannot hold are rounded; the [text](Self::text)
    /// has all their digits. `null` if only the tool itself can parse the arguments.
    pub(super) fn value(&self) -> &Value {
        self.accepted.value()
    }

    /// Returns whether the call has the arguments that were checked.
    pub(super) fn is_of(&self, call: &ToolCall) -> bool {
        self.args == call.args
    }
}
