//! Secret arguments in a recording: the text `[secret]` in the file, and the substitutes that tools receive on replay.

use super::exchange::RecordedExchange;
use crate::args::withheld;
use crate::message::{AssistantMessage, Content, Message, Part, ToolArguments, ToolResultMessage};
use crate::model::ModelRequest;
use crate::quoted::quoted_forms;
use crate::testing::sample::samples;
use crate::tool::secrets::SecretArguments;
use serde_json::{Value, json};
use std::sync::Arc;

/// The text that [`SecretArguments`] writes instead of a secret.
pub(super) const WITHHELD: &str = "[secret]";
/// The maximum number of sample calls that are generated for each definition of a tool, to find substitutes for secrets.
const SAMPLES: usize = 24;
/// The keys of messages and their parts whose texts stay unchanged, because a reply cannot be replayed without these texts.
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

/// The keys of messages and parts under which objects with keys of [`STRUCTURE`] are nested. In all other values, such as arguments, a key
/// of the same name has no special meaning.
const NESTED: [&str; 3] = ["content", "for_model", "provider_data"];

pub(super) struct SecretValues {
    arguments: SecretArguments,
    /// The texts of secrets, the longest first.
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

    /// Records the secrets of a reply, and returns the reply with substitutes for the secrets. If possible, a call with substitutes is
    /// valid exactly if the call with the secrets is valid.
    pub(super) fn add_reply(&mut self, reply: &AssistantMessage) -> AssistantMessage {
        let texts = self.arguments.texts([&Arc::new(Message::Assistant(reply.clone()))]);
        self.add_texts(texts);
        // A JSON text that contains secrets is hidden as a whole, so other texts must not contain it either.
        let whole = reply.tool_calls().flat_map(|call| {
            let shown = self.arguments.arguments(&call.name, &call.args).and_then(|shown| shown.value());
            let (shown, value) = (shown.unwrap_or_default(), call.args.value().unwrap_or_default());
            let paths = hidden_paths(&value, &shown);
            let texts =
                paths.into_iter().filter_map(move |path| Some(value.pointer(&path)?.as_str()?.to_owned()));
            texts.filter(|text| {
                serde_json::from_str::<Value>(text).is_ok_and(|inner| inner.is_object() || inner.is_array())
            })
        });
        let whole: Vec<String> = whole.collect();
        self.add_texts(whole);
        let mut reply = reply.clone();
        for part in &mut reply.content {
            let Content::ToolCall(call) = &mut part.content else { continue };
            if let Some(args) = self.substitute(&call.name, &call.args) {
                call.args = args;
                // The provider's data of a call may contain the arguments, so the data is removed.
                part.provider_data = None;
            }
        }
        reply
    }

    /// Restores the substitutes for secret arguments in the recorded reply. The scrubber may have removed them, for example under a key
    /// like `password`.
    pub(super) fn restore(&self, exchange: &mut RecordedExchange, reply: &AssistantMessage) {
        for (at, call) in
            reply.content.iter().enumerate().filter_map(|(at, part)| Some((at, part.as_tool_call()?)))
        {
            let shown = self.arguments.arguments(&call.name, &call.args).and_then(|shown| shown.value());
            let (Some(shown), Some(value)) = (shown, call.args.value()) else { continue };
            let written =
                exchange.reply.as_mut().and_then(|reply| reply.pointer_mut(&format!("/content/{at}/args")));
            let Some(written) = written else { continue };
            // The path is empty if the arguments are a single text, which is not restored, because it may contain other secrets.
            for path in hidden_paths(&value, &shown).into_iter().filter(|path| !path.is_empty()) {
                if let (Some(written), Some(value)) = (written.pointer_mut(&path), value.pointer(&path)) {
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

    /// Returns the messages of a request without secret arguments. Reports on the arguments of tools that may have secrets are replaced by
    /// [`WITHHELD`]: on replay, these tools get substitutes for the secrets, so their reports may differ.
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

    pub(super) fn clean(&self, exchange: &mut RecordedExchange) {
        self.clean_request(&mut exchange.request);
        if !self.texts.is_empty() {
            let ends = [&mut exchange.reply, &mut exchange.error].into_iter().flatten();
            ends.for_each(|value| self.walk(value, true));
        }
    }

    pub(super) fn clean_request(&self, request: &mut Value) {
        if self.texts.is_empty() {
            return;
        }
        for (key, value) in request.as_object_mut().into_iter().flatten() {
            if key != "tools" {
                self.walk(value, key != "metadata" && key != "provider_options");
            }
        }
    }

    /// Removes the texts of secrets from a value. If `has_structure` is true, texts under the keys of [`STRUCTURE`] stay unchanged. The
    /// recursion is bounded, because the nesting of messages is limited.
    fn walk(&self, value: &mut Value, has_structure: bool) {
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
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, has_structure)),
            Value::Object(map) => {
                for (key, value) in map {
                    let is_in = |keys: &[&str]| has_structure && keys.contains(&key.as_str());
                    if !(value.is_string() && is_in(&STRUCTURE)) {
                        self.walk(value, is_in(&NESTED));
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the arguments with substitutes for the secrets, or `None` if there are no secrets. If possible, the substitutes are valid
    /// exactly if the secrets are valid. The substitutes reveal nothing else about the secrets.
    fn substitute(&self, tool: &str, sent: &ToolArguments) -> Option<ToolArguments> {
        let shown = self.arguments.arguments(tool, sent)?;
        let (Some(sent_value), Some(shown_value)) = (sent.value(), shown.value()) else {
            return Some(WITHHELD.into());
        };
        if let Value::String(text) = &sent_value
            && serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok()
        {
            // The arguments are the JSON text of an object. The object is parsed, and written as a text again with substitutes.
            let inner = ToolArguments::from(text.as_str());
            let inner = self.substitute(tool, &inner).unwrap_or(inner);
            return Some(json!(inner.text()).into());
        }
        if sent_value.is_object() && self.arguments.definitions(tool).next().is_none() {
            // The keys of an unknown tool's arguments may be secret, too, so the whole object is replaced.
            return Some(json!({WITHHELD: WITHHELD}).into());
        }
        let plans: Vec<_> =
            self.arguments.definitions(tool).map(crate::tool::definition::ToolDefinition::plan).collect();
        let verdicts =
            |text: &str| plans.iter().map(|plan| plan.parse::<Value>(text).is_ok()).collect::<Vec<_>>();
        let expected = verdicts(sent.text());
        let fits = |value: &Value| verdicts(&value.to_string()) == expected;
        if fits(&shown_value) {
            return Some(shown);
        }
        let mut values: Vec<Value> =
            [json!(WITHHELD), json!(0), json!(1), json!(false), json!(-1), json!(0.5), json!(1e300)].into();
        for plan in &plans {
            for sample in samples(plan.schema(), SAMPLES, 0) {
                let Some((hidden, true)) = withheld(plan, &sample) else { continue };
                let paths = hidden_paths(&sample, &hidden);
                values.extend(paths.iter().filter_map(|path| sample.pointer(path).cloned()));
            }
        }
        let paths = hidden_paths(&sent_value, &shown_value);
        let with = |base: &Value, path: &str, value: &Value| {
            let mut out = base.clone();
            if let Some(at) = out.pointer_mut(path) {
                *at = value.clone();
            }
            out
        };
        // First, a substitute is found for each secret alone, while the other secrets keep their sent values.
        let mut made = shown_value.clone();
        for path in &paths {
            if let Some(value) = values.iter().find(|value| fits(&with(&sent_value, path, value))) {
                made = with(&made, path, value);
            }
        }
        if fits(&made) {
            return Some(made.into());
        }
        let same = |value: &Value| paths.iter().fold(shown_value.clone(), |all, at| with(&all, at, value));
        let found = values.iter().map(same).find(|all| fits(all));
        Some(found.map_or(shown, ToolArguments::from))
    }
}

fn is_report(result: &ToolResultMessage) -> bool {
    matches!(result.code.as_deref(), Some("invalid_arguments" | "retries_exhausted"))
}

fn hidden_paths(sent: &Value, shown: &Value) -> Vec<String> {
    fn walk(sent: &Value, shown: &Value, path: &str, paths: &mut Vec<String>) {
        match (sent, shown) {
            (Value::Object(sent), Value::Object(shown)) => {
                for (key, value) in sent {
                    if let Some(shown) = shown.get(key) {
                        let key = key.replace('~', "~0").replace('/', "~1");
                        walk(value, shown, &format!("{path}/{key}"), paths);
                    }
                }
            }
            (Value::Array(sent), Value::Array(shown)) => {
                for (at, (value, shown)) in sent.iter().zip(shown).enumerate() {
                    walk(value, shown, &format!("{path}/{at}"), paths);
                }
            }
            (_, Value::String(text)) if text == WITHHELD => paths.push(path.to_owned()),
            _ => {}
        }
    }
    let mut paths = Vec::new();
    walk(sent, shown, "", &mut paths);
    paths
}
