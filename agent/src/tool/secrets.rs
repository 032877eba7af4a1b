//! Withholds the secret arguments of calls and messages, so that the calls and messages can be shown or stored.
#![allow(dead_code, reason = "which parts are used depends on the features")]

use super::definition::ToolDefinition;
use super::source::Source;
use super::value::Tool;
use crate::args::{Plan, all_texts, hidden, secret_texts, withheld};
use crate::message::{Content, Message, ProviderData, ToolArguments, ToolCall};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A filter that withholds the secret arguments of calls. The definitions of the tools say which arguments are secret.
///
/// If any tool has secrets, all arguments of a call of an unknown tool are withheld: the unknown name may be a misspelled name of a tool
/// with secrets.
#[derive(Clone, Default)]
pub(crate) struct SecretArguments {
    lists: Vec<Arc<[ToolDefinition]>>,
    /// Whether arguments of unknown tools are withheld. If `false`, nothing is withheld.
    hides_unknown: bool,
}

impl SecretArguments {
    /// Creates the filter. An argument is withheld if any definition of its tool marks it as secret.
    pub(crate) fn new(lists: impl IntoIterator<Item = Arc<[ToolDefinition]>>) -> Self {
        let mut secrets = Self { lists: Vec::new(), hides_unknown: false };
        lists.into_iter().for_each(|list| secrets.add(list));
        secrets
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn are_of(&self, list: &Arc<[ToolDefinition]>) -> bool {
        matches!(&self.lists[..], [only] if Arc::ptr_eq(only, list))
    }

    pub(crate) fn add(&mut self, list: Arc<[ToolDefinition]>) {
        if !self.lists.iter().any(|known| Arc::ptr_eq(known, &list)) {
            self.hides_unknown |= list.iter().any(|tool| tool.plan().graph().has_secrets());
            self.lists.push(list);
        }
    }

    pub(crate) fn definitions<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a ToolDefinition> {
        self.lists.iter().flat_map(|list| list.iter()).filter(move |known| known.name() == tool)
    }

    /// Makes the filter withhold the arguments of calls of unknown tools, for a reader that may lack the definitions of some tools.
    pub(crate) fn hiding_unknown(mut self) -> Self {
        self.hides_unknown = true;
        self
    }

    pub(crate) fn is_needed(&self) -> bool {
        self.hides_unknown
    }

    /// Returns the `Plan` of the tool's definition that was added last; `None` for an unknown tool.
    pub(crate) fn plan(&self, tool: &str) -> Option<&Plan> {
        let mut known = self.lists.iter().rev().flat_map(|list| list.iter());
        known.find(|known| known.name() == tool).map(ToolDefinition::plan)
    }

    pub(crate) fn may_hide(&self, tool: &str) -> bool {
        let mut known = self.definitions(tool).peekable();
        self.hides_unknown
            && (known.peek().is_none() || known.any(|known| known.plan().graph().has_secrets()))
    }

    /// Returns the arguments without secrets; `None` if nothing has to be withheld.
    pub(crate) fn value(&self, tool: &str, args: &Value) -> Option<Value> {
        if !self.hides_unknown {
            return None;
        }
        let mut shown: Option<Value> = None;
        let mut is_known = false;
        for definition in self.definitions(tool) {
            is_known = true;
            if let Some((less, true)) = withheld(definition.plan(), shown.as_ref().unwrap_or(args)) {
                shown = Some(less);
            }
        }
        // Empty arguments of an unknown tool have nothing to withhold.
        let is_empty = args.as_object().is_some_and(serde_json::Map::is_empty);
        if is_known || is_empty { shown } else { Some(hidden()) }
    }

    /// Returns sent arguments without secrets; `None` if nothing has to be withheld. Text that is not JSON may be withheld as a whole.
    pub(crate) fn arguments(&self, tool: &str, args: &ToolArguments) -> Option<ToolArguments> {
        if !self.hides_unknown {
            return None;
        }
        let sent = args.value().unwrap_or_else(|| Value::String(args.text().to_owned()));
        self.value(tool, &sent).map(ToolArguments::from)
    }

    /// Returns the call without secrets; `None` if nothing has to be withheld.
    pub(crate) fn call(&self, call: &ToolCall) -> Option<ToolCall> {
        let args = self.arguments(&call.name, &call.args)?;
        Some(ToolCall::new(&*call.id, &*call.name, args))
    }

    /// Returns the message without secret arguments, and the ids of the calls whose arguments were withheld; `None` if nothing has to be
    /// withheld.
    pub(crate) fn message(&self, message: &Message) -> Option<(Message, Vec<String>)> {
        match message {
            Message::ToolResult(result) => {
                let sent = result.edited_args.as_ref()?;
                let args = self.arguments(&result.tool, sent)?;
                let quoted = Quoted::of(self, [(&*result.tool, sent)]);
                let mut result = result.clone();
                result.edited_args = Some(args);
                quoted.drop_data(&mut result.provider_data, &mut result.extra);
                Some((Message::ToolResult(result), Vec::new()))
            }
            Message::Assistant(reply) => {
                let without = reply.tool_calls().filter_map(|call| self.call(call)).collect::<Vec<_>>();
                if without.is_empty() {
                    return None;
                }
                let left_out = without.iter().map(|call| call.id.clone()).collect();
                let is_less = |call: &ToolCall| self.arguments(&call.name, &call.args).is_some();
                let sent = reply.tool_calls().filter(|call| is_less(call));
                let quoted = Quoted::of(self, sent.map(|call| (&*call.name, &call.args)));
                let (mut reply, mut without) = (reply.clone(), without.into_iter());
                for part in &mut reply.content {
                    match &mut part.content {
                        Content::ToolCall(call) if is_less(call) => {
                            *call = without.next()?;
                            // The provider's data of a call may quote the arguments of the call.
                            (part.provider_data, part.extra) = (None, serde_json::Map::new());
                        }
                        Content::Opaque(opaque) if quoted.is_in(&opaque.data) => opaque.data = Value::Null,
                        _ => quoted.drop_data(&mut part.provider_data, &mut part.extra),
                    }
                }
                quoted.drop_data(&mut reply.provider_data, &mut reply.extra);
                reply.usage.raw.take_if(|raw| quoted.is_in(raw));
                reply.usage.extra.retain(|_, value| !quoted.is_in(value));
                Some((Message::Assistant(reply), left_out))
            }
            _ => None,
        }
    }

    pub(crate) fn shown(&self, message: &Arc<Message>) -> Arc<Message> {
        self.message(message).map_or_else(|| message.clone(), |(message, _)| Arc::new(message))
    }
}

/// Secret texts from the arguments of calls. Provider data that contains one of them is dropped.
struct Quoted(Vec<String>);

impl Quoted {
    fn of<'c>(
        secrets: &SecretArguments,
        calls: impl IntoIterator<Item = (&'c str, &'c ToolArguments)>,
    ) -> Self {
        let mut texts = Vec::new();
        calls.into_iter().for_each(|(tool, args)| secrets.add_texts(tool, args, &mut texts));
        texts.retain(|text| !text.is_empty());
        Self(texts)
    }

    /// Returns whether the data quotes a secret: as a key or a value, within a text, or within JSON that is encoded as a text.
    fn is_in(&self, data: &Value) -> bool {
        let is_quoted = |leaf: &str| {
            self.0.iter().any(|secret| leaf.contains(secret.as_str()))
                || serde_json::from_str(leaf)
                    .is_ok_and(|inner: Value| !inner.is_string() && !inner.is_number() && self.is_in(&inner))
        };
        match data {
            Value::Object(map) => map.iter().any(|(key, value)| is_quoted(key) || self.is_in(value)),
            Value::Array(items) => items.iter().any(|item| self.is_in(item)),
            Value::String(text) => is_quoted(text),
            Value::Null => false,
            other => self.0.contains(&other.to_string()),
        }
    }

    fn drop_data(&self, data: &mut Option<Box<ProviderData>>, extra: &mut serde_json::Map<String, Value>) {
        data.take_if(|data| self.is_in(&data.data));
        extra.retain(|key, value| !self.0.contains(key) && !self.is_in(value));
    }
}

/// Minimum length of a secret that is removed from other texts, in characters. Shorter texts occur in ordinary words.
const MIN_SEARCHED: usize = 4;

impl SecretArguments {
    /// Returns the secrets of all calls in these messages, so that other texts can be searched for them.
    pub(crate) fn texts<'m>(&self, messages: impl IntoIterator<Item = &'m Arc<Message>>) -> Vec<String> {
        if !self.hides_unknown {
            return Vec::new();
        }
        let mut texts = Vec::new();
        for message in messages {
            match &**message {
                Message::Assistant(reply) => {
                    reply.tool_calls().for_each(|call| self.add_texts(&call.name, &call.args, &mut texts));
                }
                Message::ToolResult(result) => {
                    let edited = result.edited_args.iter();
                    edited.for_each(|args| self.add_texts(&result.tool, args, &mut texts));
                }
                _ => {}
            }
        }
        texts.retain(|text| text.chars().count() >= MIN_SEARCHED);
        // The longest secrets come first, because a secret may be a part of a longer secret.
        texts.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        texts.dedup();
        texts
    }

    fn add_texts(&self, tool: &str, args: &ToolArguments, texts: &mut Vec<String>) {
        let args = args.value().unwrap_or_else(|| Value::String(args.text().to_owned()));
        let mut is_known = false;
        for definition in self.definitions(tool) {
            is_known = true;
            let graph = definition.plan().graph();
            if graph.has_secrets() {
                texts.extend(secret_texts(graph, &args));
                // If the arguments are a list, any item may be a secret. Only the keys of an object tell which values are secret.
                if let Value::Array(items) = &args {
                    texts.extend(items.iter().filter(|item| !item.is_object()).flat_map(all_texts));
                }
            }
        }
        if !is_known {
            texts.extend(all_texts(&args));
        }
    }
}

pub(crate) fn without_secrets(tool: &Tool, source: Option<&Source>, args: Value) -> Value {
    let own = source.map(|source| catch_unwind(AssertUnwindSafe(|| tool.definition_for(source))));
    let own = match own {
        None => None,
        Some(Ok(Ok(own))) => own,
        // Without the definition for the source, it is unknown which arguments are secret, so all are withheld.
        Some(_) => return hidden(),
    };
    let definitions = [Some(tool.definition()), own.as_ref()];
    definitions
        .into_iter()
        .flatten()
        .fold(args, |args, definition| withheld(definition.plan(), &args).map_or(args, |(shown, _)| shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::PlanOptions;
    use crate::message::{AssistantMessage, OutcomeKind, Part, ToolResultMessage, UserMessage};
    use serde_json::json;

    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct OpenLogin {
        user: String,
        password: String,
    }

    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct ClosedLogin {
        user: String,
        #[schemars(extend("x-secret" = true))]
        password: String,
    }

    fn definition(name: &str, is_secret: bool) -> ToolDefinition {
        let options = PlanOptions::default();
        let plan = if is_secret {
            Plan::for_type::<ClosedLogin>(name, options)
        } else {
            Plan::for_type::<OpenLogin>(name, options)
        };
        ToolDefinition::new(plan.unwrap(), "Does it.").unwrap()
    }

    fn secrets(tools: &[(&str, bool)]) -> SecretArguments {
        let tools: Vec<_> = tools.iter().map(|(name, is_secret)| definition(name, *is_secret)).collect();
        SecretArguments::new([tools.into()])
    }

    const ARGS: &str = r#"{"user": "ann", "password": "p"}"#;

    #[test]
    fn calls_are_shown_without_secrets() {
        let both = secrets(&[("log_in", true), ("look", false)]);
        let shown = |secrets: &SecretArguments, tool: &str, args: &str| {
            secrets.arguments(tool, &args.into()).map(|args| args.text().to_owned())
        };
        let hidden = Some(r#""[secret]""#.to_owned());
        let known = Some(r#"{"user":"ann","password":"[secret]"}"#.to_owned());
        assert_eq!(shown(&both, "log_in", ARGS), known);
        assert_eq!(shown(&both, "log_in", &ARGS[..20]), hidden);
        assert_eq!(shown(&both, "log_in", r#"{"user": "ann"}"#), None);
        assert_eq!(shown(&both, "look", ARGS), None);
        assert_eq!(shown(&both, "look", "p"), None);
        assert_eq!(shown(&both, "log_inn", ARGS), hidden, "a misspelled tool");
        assert_eq!(shown(&both, "log_inn", ""), None);
        let open = secrets(&[("look", false)]);
        assert_eq!(shown(&open, "log_in", ARGS), None);
        assert_eq!(shown(&open.hiding_unknown(), "log_in", ARGS), hidden);
        let lists = [[definition("log_in", false)].into(), [definition("log_in", true)].into()];
        assert_eq!(shown(&SecretArguments::new(lists), "log_in", ARGS), known, "one of two definitions");
    }

    #[test]
    fn secrets_that_were_sent_in_a_list_are_found() {
        let secrets = secrets(&[("login", true)]).hiding_unknown();
        let texts = |args: Value| {
            let call = Part::tool_call("1", "login", args.to_string());
            secrets.texts([&Arc::new(Message::from(AssistantMessage::new([call])))])
        };
        assert_eq!(texts(json!(["hunter2"])), ["hunter2"]);
        let nested = json!([["hunter2"], {"password": "swordfish", "user": "annabel"}]);
        assert_eq!(texts(nested), ["swordfish", "hunter2"]);
    }

    #[test]
    fn messages_are_shown_without_secrets() {
        let secrets = secrets(&[("log_in", true), ("look", false)]);
        let data = ProviderData::new("gemini", json!({"sig": "x7"}));
        let reply = AssistantMessage::new([
            Part::text("Hello."),
            Part::tool_call("a", "log_in", ARGS).with_provider_data(data.clone()),
            Part::tool_call("b", "look", ARGS).with_provider_data(data.clone()),
        ]);
        let (shown, left_out) = secrets.message(&reply.into()).unwrap();
        assert_eq!(left_out, ["a"]);
        let [_, log_in, look] = shown.content() else { panic!("three parts") };
        assert_eq!(log_in.as_tool_call().unwrap().args.value().unwrap()["password"], "[secret]");
        assert_eq!(log_in.provider_data, None);
        assert_eq!(
            (look.as_tool_call().unwrap().args.text(), look.provider_data.as_deref()),
            (ARGS, Some(&data))
        );
        let mut result = ToolResultMessage::new("a", "log_in", OutcomeKind::Completed);
        assert!(secrets.message(&result.clone().into()).is_none());
        result.edited_args = Some(ARGS.into());
        let (shown, left_out) = secrets.message(&result.into()).unwrap();
        assert!(left_out.is_empty());
        let edited = shown.as_tool_result().unwrap().edited_args.clone().unwrap();
        assert_eq!(edited.value().unwrap(), json!({"user": "ann", "password": "[secret]"}));
        assert!(secrets.message(&UserMessage::from("p").into()).is_none());
    }

    #[test]
    fn what_a_provider_keeps_with_a_message_may_quote_its_calls() {
        let secrets = secrets(&[("log_in", true), ("look", false)]);
        let args = r#"{"user": "ann", "password": "s\"3\u00e9cret"}"#;
        let secret = "s\"3\u{e9}cret";
        let raw = |quoted: Value| ProviderData::new("acme", json!({"blocks": [{"kept": 1, "raw": quoted}]}));
        let quotes = [
            json!({"password": secret}),
            json!(format!("password={secret}!")),
            json!(args),
            json!(json!({"arguments": args}).to_string()),
            json!({ secret: 1 }),
        ];
        for quoted in quotes {
            let data = raw(quoted.clone());
            let mut reply = AssistantMessage::new([
                Part::text("Hello.").with_provider_data(data.clone()),
                Part::tool_call("a", "log_in", args),
                Part::opaque("acme", quoted.clone()),
            ]);
            reply.content[1].extra.insert("input".to_owned(), json!("anything"));
            for extra in [&mut reply.content[0].extra, &mut reply.extra, &mut reply.usage.extra] {
                extra.insert("raw".to_owned(), quoted.clone());
                extra.insert("kept".to_owned(), json!(1));
            }
            (reply.provider_data, reply.usage.raw) = (Some(Box::new(data)), Some(Box::new(quoted.clone())));
            let (Message::Assistant(shown), _) = secrets.message(&reply.into()).unwrap() else {
                panic!("a reply")
            };
            assert_eq!((&shown.provider_data, &shown.usage.raw), (&None, &None), "{quoted}");
            assert_eq!(
                (&shown.content[0].provider_data, shown.content[1].extra.len()),
                (&None, 0),
                "{quoted}"
            );
            for extra in [&shown.content[0].extra, &shown.extra, &shown.usage.extra] {
                assert_eq!(json!(extra), json!({"kept": 1}), "{quoted}");
            }
            let text = serde_json::to_string(&shown).unwrap();
            assert!(!text.contains("cret") || !text.contains("s\\\"3"), "{text}");
        }
        // Data that quotes no secret stays: a provider needs it back.
        let mut reply = AssistantMessage::new([Part::tool_call("a", "log_in", args)]);
        reply.provider_data = Some(Box::new(raw(json!("sig-7"))));
        let (shown, _) = secrets.message(&reply.clone().into()).unwrap();
        let Message::Assistant(shown) = shown else { panic!("a reply") };
        assert_eq!(shown.provider_data, reply.provider_data);
    }
}
