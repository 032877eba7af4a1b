//! The arguments of a call, checked once before its body runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::args::{Coercions, Plan};
use crate::message::{ToolArguments, ToolCall};
use crate::tool::definition::ToolDefinition;
use crate::tool::invoke::{panic_text, prepared};
use crate::tool::outcome::{FailureCode, ToolOutcome, ToolReply};
use crate::tool::source::Source;
use crate::tool::traits::Tool;

/// The arguments of a call, as its tool accepted them. Hooks, approval, records, the cache and hooks after the call read what was parsed here.
pub(crate) struct CheckedArguments {
    tool: Arc<dyn Tool>,
    args: ToolArguments,
    /// The text after the tool prepared it, if it changed it.
    prepared: Option<String>,
    /// The definition that the run's source is shown, if that is another one.
    own: Option<ToolDefinition>,
    coercions: Coercions,
    value: OnceLock<Value>,
}

/// Checks arguments by their tool, on behalf of the run's source.
#[expect(clippy::result_large_err, reason = "the reply is the result of the call")]
pub(super) fn check(
    tool: &Arc<dyn Tool>,
    args: &ToolArguments,
    source: Option<&Source>,
) -> Result<CheckedArguments, ToolReply> {
    let checked = |prepared, own, coercions| {
        let (tool, args) = (tool.clone(), args.clone());
        Ok(CheckedArguments { tool, args, prepared, own, coercions, value: OnceLock::new() })
    };
    let shown = |source| catch_unwind(AssertUnwindSafe(|| tool.definition_for(source))).map_err(panic_text);
    let own = match source.map(shown) {
        None | Some(Ok(Ok(None))) => None,
        Some(Ok(Ok(own))) => own,
        // The call itself reports the error.
        Some(Ok(Err(_)) | Err(_)) => return checked(None, None, Coercions::default()),
    };
    let prepared = prepared(&**tool, args.text())
        .map_err(|error| ToolReply::new(ToolOutcome::failed(FailureCode::PREPARE_ERROR, error.message())))?;
    let text = prepared.as_deref().unwrap_or(args.text());
    let validated = catch_unwind(AssertUnwindSafe(|| match &own {
        Some(own) => own.plan().parse::<Value>(text).map(|parsed| parsed.coercions),
        None => tool.validate(text),
    }));
    match validated.map_err(panic_text) {
        Ok(Ok(coercions)) => checked(prepared, own, coercions),
        Ok(Err(refusal)) => Err(refusal.into()),
        // A check that panics is left to the call itself, which turns panics into results.
        Err(_) => checked(None, None, Coercions::default()),
    }
}

impl CheckedArguments {
    pub(super) fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    pub(super) fn plan(&self) -> &Plan {
        self.own.as_ref().unwrap_or_else(|| self.tool.definition()).plan()
    }

    /// Returns the text that the tool parses.
    pub(super) fn text(&self) -> &str {
        self.prepared.as_deref().unwrap_or_else(|| self.args.text())
    }

    pub(super) fn coercions(&self) -> &Coercions {
        &self.coercions
    }

    /// Returns the arguments with canonical names and every digit, which the text alone does not have. Parsed on the first use.
    pub(super) fn value(&self) -> &Value {
        let parse = || self.plan().parse::<Value>(self.text()).map(|parsed| parsed.value).unwrap_or_default();
        self.value.get_or_init(parse)
    }

    /// Whether the call still has the arguments that were checked.
    pub(super) fn is_of(&self, call: &ToolCall) -> bool {
        self.args == call.args
    }
}
