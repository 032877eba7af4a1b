//! The scripted replies of a scenario.

use agent::ScriptedModel;
use agent::message::{Cost, Part, StopReason, ToolArguments, Usage};
use agent::model::{ModelError, ModelErrorKind, ModelRequest, ScriptedReply, reply, reply_with};
use serde_json::Value;

use super::given::{Call, Given, Scripted, Tokens};
use std::sync::Arc;

/// A model that gives these replies, each part in one piece.
pub(crate) fn scripted(given: &Arc<Given>) -> ScriptedModel {
    let replies = (0..given.model.len()).map(|at| one(given, at));
    ScriptedModel::new(replies).with_chunk_size(usize::MAX).with_whole_arguments()
}

fn one(given: &Arc<Given>, at: usize) -> ScriptedReply {
    let script = &given.model[at];
    if script.template.is_none() {
        return parts(script, script.text.as_deref());
    }
    let given = given.clone();
    reply_with(move |request: &ModelRequest| {
        let script = &given.model[at];
        let last = request.messages.last().map(|message| message.text()).unwrap_or_default();
        parts(script, script.template.as_ref().map(|template| template.replace("{last}", &last)).as_deref())
    })
}

/// In the order thinking, text, calls; then how it ends.
fn parts(script: &Scripted, text: Option<&str>) -> ScriptedReply {
    let mut parts = reply();
    if let Some(thinking) = &script.thinking {
        parts = parts.thinking(thinking);
    }
    if let Some(text) = text {
        parts = parts.text(text);
    }
    for call in &script.calls {
        parts = parts.tool_call_with_id(&*call.id, &*call.name, arguments(call));
    }
    if let Some(tokens) = &script.usage {
        parts = parts.usage(usage(tokens));
    }
    if let Some(reason) = &script.stop_reason {
        parts = parts.stop_reason(StopReason::from(&**reason));
    }
    if let Some(error) = script.error.as_ref().or(script.throws.as_ref()) {
        parts = parts.error(ModelError::new(ModelErrorKind::Other, error));
    }
    match &script.aborted {
        Some(reason) => parts.error(ModelError::aborted(reason)),
        None => parts,
    }
}

fn arguments(call: &Call) -> ToolArguments {
    match &call.args {
        Some(Value::String(text)) => ToolArguments::from(text.as_str()),
        Some(value) => ToolArguments::from(value.clone()),
        // Not streamed, like no arguments.
        None => ToolArguments::default(),
    }
}

/// The call as a part of a message.
pub(crate) fn call_part(call: &Call) -> Part {
    Part::tool_call(&*call.id, &*call.name, arguments(call))
}

fn usage(tokens: &Tokens) -> Usage {
    let mut usage = Usage::new(tokens.input, tokens.output);
    usage.total = tokens.total.unwrap_or(usage.total);
    (usage.cache_read, usage.cache_write) = (tokens.cache_read, tokens.cache_write);
    usage.reasoning = tokens.reasoning;
    usage.cost = tokens.cost.as_ref().map(|money| {
        let mut cost = Cost::default();
        (cost.input, cost.output, cost.total) = (money.input, money.output, money.total);
        cost
    });
    usage
}
