//! Secret arguments in a recording: what is written in their place, and what a tool gets on replay.

use super::file::Exchange;
use crate::args::withheld;
use crate::message::{AssistantMessage, Content, Message, Part, ToolArguments, ToolResultMessage};
use crate::model::ModelRequest;
use crate::quoted::quoted_forms;
use crate::testing::sample::samples;
use crate::tool::secrets::SecretArguments;
use serde_json::{Value, json};
use std::sync::Arc;

/// Stands for a secret. It is what [`SecretArguments`] writes.
pub(super) const WITHHELD: &str = "[secret]";
/// The number of argument objects from which values are taken that stand for secrets.
const SAMPLES: usize = 24;
/// The names of texts that a reply needs as they are, to be replayed.
const STRUCTURE: [&str; 12] = [
    "role",
    "type",
    "id",
    "name",
    "tool",
    "call_id",
    "outcome",
    "code",
    "stop_reason",
    "model",
    "provider",
    "api",
];

/// The tools of the requests so far, and the secrets of their calls.
pub(super) struct SecretValues {
    arguments: SecretArguments,
    /// The longest first.
    texts: Vec<String>,
}

impl Default for SecretValues {
    fn default() -> Self {
        Self { arguments: SecretArguments::new([]), texts: Vec::new() }
    }
}

impl SecretValues {
    pub(super) fn add_request(&mut self, request: &ModelRequest) {
        self.arguments.add(request.tools.clone());
        let texts = self.arguments.texts(&*request.messages);
        self.add_texts(texts);
    }

    /// Returns the reply as it is written: with values that a tool takes as it took the secrets.
    pub(super) fn add_reply(&mut self, reply: &AssistantMessage) -> AssistantMessage {
        let texts = self.arguments.texts([&Arc::new(Message::Assistant(reply.clone()))]);
        self.add_texts(texts);
        // A text that is withheld as a whole, because it has secrets, is repeated as a whole.
        let whole = reply.tool_calls().flat_map(|call| {
            let shown = self.arguments.arguments(&call.name, &call.args).and_then(|shown| shown.value());
            let (shown, value) = (shown.unwrap_or_default(), call.args.value().unwrap_or_default());
            let places = hidden_places(&value, &shown);
            let texts =
                places.into_iter().filter_map(move |place| Some(value.pointer(&place)?.as_str()?.to_owned()));
            texts.filter(|text| {
                serde_json::from_str::<Value>(text).is_ok_and(|inner| inner.is_object() || inner.is_array())
            })
        });
        let whole: Vec<String> = whole.collect();
        self.add_texts(whole);
        let mut reply = reply.clone();
        for part in &mut reply.content {
            let Content::ToolCall(call) = &mut part.content else { continue };
            if let Some(args) = self.stand_in(&call.name, &call.args) {
                call.args = args;
                // What a provider keeps with a call may quote it.
                part.provider_data = None;
            }
        }
        reply
    }

    /// Puts the values that stand for secrets back where something else replaced them, for example because of the parameter's name.
    pub(super) fn restore(&self, exchange: &mut Exchange, reply: &AssistantMessage) {
        for (at, call) in
            reply.content.iter().enumerate().filter_map(|(at, part)| Some((at, part.as_tool_call()?)))
        {
            let shown = self.arguments.arguments(&call.name, &call.args).and_then(|shown| shown.value());
            let (Some(shown), Some(value)) = (shown, call.args.value()) else { continue };
            let written =
                exchange.reply.as_mut().and_then(|reply| reply.pointer_mut(&format!("/content/{at}/args")));
            let Some(written) = written else { continue };
            // Arguments as text have no names by which something is replaced.
            for place in hidden_places(&value, &shown).into_iter().filter(|place| !place.is_empty()) {
                if let (Some(written), Some(value)) = (written.pointer_mut(&place), value.pointer(&place)) {
                    *written = value.clone();
                }
            }
        }
    }

    fn add_texts(&mut self, texts: Vec<String>) {
        self.texts.extend(texts.into_iter().filter(|text| text != WITHHELD));
        self.texts.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        self.texts.dedup();
    }

    /// Returns the messages of a request without secret arguments. Reports about arguments that may have secrets are left out, too: those
    /// about the values that stand for secrets differ.
    pub(super) fn messages<'a>(
        &'a self,
        messages: &'a [Arc<Message>],
    ) -> impl Iterator<Item = Arc<Message>> + 'a {
        messages.iter().map(|message| {
            let shown = self.arguments.shown(message);
            match &*shown {
                Message::ToolResult(result) if is_report(result) && self.arguments.may_hide(&result.tool) => {
                    let mut result = result.clone();
                    result.content = vec![Part::text(WITHHELD)];
                    result.structured = None;
                    Arc::new(Message::ToolResult(result))
                }
                _ => shown,
            }
        })
    }

    /// Takes the texts of secrets out of an exchange.
    pub(super) fn clean(&self, exchange: &mut Exchange) {
        if self.texts.is_empty() {
            return;
        }
        // The definitions of tools are not secret.
        for (key, value) in exchange.request.as_object_mut().into_iter().flatten() {
            if key != "tools" {
                self.walk(value);
            }
        }
        [&mut exchange.reply, &mut exchange.error].into_iter().flatten().for_each(|value| self.walk(value));
    }

    /// Values nest no deeper than messages do.
    fn walk(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for secret in &self.texts {
                    for form in quoted_forms(secret) {
                        if text.contains(&form) {
                            *text = text.replace(&form, WITHHELD);
                        }
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item)),
            Value::Object(map) => {
                for (key, value) in map {
                    if !(value.is_string() && STRUCTURE.contains(&key.as_str())) {
                        self.walk(value);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns arguments with values in place of the secrets, which are accepted if the secrets were, and refused if not; `None` if
    /// there are no secrets. The values do not depend on the secrets otherwise.
    fn stand_in(&self, tool: &str, sent: &ToolArguments) -> Option<ToolArguments> {
        let shown = self.arguments.arguments(tool, sent)?;
        let (Some(sent_value), Some(shown_value)) = (sent.value(), shown.value()) else {
            // What cannot be read is replaced by what cannot be read.
            return Some(WITHHELD.into());
        };
        if let Value::String(text) = &sent_value
            && serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok()
        {
            // The JSON text of an object is sent again, as it was read.
            let inner = ToolArguments::from(text.as_str());
            let inner = self.stand_in(tool, &inner).unwrap_or(inner);
            return Some(json!(inner.text()).into());
        }
        if sent_value.is_object() && self.arguments.definitions(tool).next().is_none() {
            // Of an unknown tool, keys are not known either. Arguments that are no object are not sent again.
            return Some(json!({WITHHELD: WITHHELD}).into());
        }
        let plans: Vec<_> =
            self.arguments.definitions(tool).map(crate::tool::definition::ToolDefinition::plan).collect();
        let verdicts =
            |text: &str| plans.iter().map(|plan| plan.parse::<Value>(text).is_ok()).collect::<Vec<_>>();
        let wanted = verdicts(sent.text());
        let fits = |value: &Value| verdicts(&value.to_string()) == wanted;
        if fits(&shown_value) {
            return Some(shown);
        }
        let mut values: Vec<Value> =
            [json!(WITHHELD), json!(0), json!(1), json!(false), json!(-1), json!(0.5), json!(1e300)].into();
        for plan in &plans {
            for sample in samples(plan.schema(), SAMPLES, 0) {
                let Some((hidden, true)) = withheld(plan, &sample) else { continue };
                let places = hidden_places(&sample, &hidden);
                values.extend(places.iter().filter_map(|place| sample.pointer(place).cloned()));
            }
        }
        let places = hidden_places(&sent_value, &shown_value);
        let with = |base: &Value, place: &str, value: &Value| {
            let mut out = base.clone();
            if let Some(at) = out.pointer_mut(place) {
                *at = value.clone();
            }
            out
        };
        // Each by itself, beside the others as they were sent.
        let mut made = shown_value.clone();
        for place in &places {
            if let Some(value) = values.iter().find(|value| fits(&with(&sent_value, place, value))) {
                made = with(&made, place, value);
            }
        }
        if fits(&made) {
            return Some(made.into());
        }
        let same = |value: &Value| places.iter().fold(shown_value.clone(), |all, at| with(&all, at, value));
        let found = values.iter().map(same).find(|all| fits(all));
        Some(found.map_or(shown, ToolArguments::from))
    }
}

/// Whether a result is a report about arguments.
fn is_report(result: &ToolResultMessage) -> bool {
    matches!(result.code.as_deref(), Some("invalid_arguments" | "retries_exhausted"))
}

/// Returns the places where a value is withheld, as JSON pointers.
fn hidden_places(sent: &Value, shown: &Value) -> Vec<String> {
    fn walk(sent: &Value, shown: &Value, path: &str, places: &mut Vec<String>) {
        match (sent, shown) {
            (Value::Object(sent), Value::Object(shown)) => {
                for (key, value) in sent {
                    if let Some(shown) = shown.get(key) {
                        let key = key.replace('~', "~0").replace('/', "~1");
                        walk(value, shown, &format!("{path}/{key}"), places);
                    }
                }
            }
            (Value::Array(sent), Value::Array(shown)) => {
                for (at, (value, shown)) in sent.iter().zip(shown).enumerate() {
                    walk(value, shown, &format!("{path}/{at}"), places);
                }
            }
            (_, Value::String(text)) if text == WITHHELD => places.push(path.to_owned()),
            _ => {}
        }
    }
    let mut places = Vec::new();
    walk(sent, shown, "", &mut places);
    places
}
