//! Calls and messages without their secret arguments, as they may be shown or stored. The one place that knows how.
#![allow(dead_code, reason = "which parts are used depends on the features")]

use super::definition::ToolDefinition;
use super::source::Source;
use super::traits::Tool;
use crate::args::{all_texts, hidden, secret_texts, withheld};
use crate::message::{Content, Message, ToolArguments, ToolCall};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Withholds the secret arguments of calls, by the definitions of their tools.
///
/// What a call without a known tool holds is not known either: it is withheld as a whole where any of the tools has secrets, because
/// its name may be a misspelled one.
#[derive(Clone)]
pub(crate) struct SecretArguments {
    lists: Vec<Arc<[ToolDefinition]>>,
    hides_unknown: bool,
}

impl SecretArguments {
    /// Takes all definitions of each tool: what one of them marks as secret is withheld.
    pub(crate) fn new(lists: impl IntoIterator<Item = Arc<[ToolDefinition]>>) -> Self {
        let mut kept: Vec<Arc<[ToolDefinition]>> = Vec::new();
        for list in lists {
            if !kept.iter().any(|known| Arc::ptr_eq(known, &list)) {
                kept.push(list);
            }
        }
        let hides_unknown =
            kept.iter().flat_map(|list| list.iter()).any(|tool| tool.plan().graph().has_secrets());
        Self { lists: kept, hides_unknown }
    }

    /// Withholds the arguments of every call whose tool is not among these, for one who does not know all tools of the conversation.
    pub(crate) fn hiding_unknown(mut self) -> Self {
        self.hides_unknown = true;
        self
    }

    /// Whether any call can have arguments that are withheld.
    pub(crate) fn is_needed(&self) -> bool {
        self.hides_unknown
    }

    /// Whether a call of this tool can have arguments that are withheld.
    pub(crate) fn may_hide(&self, tool: &str) -> bool {
        let mut known =
            self.lists.iter().flat_map(|list| list.iter()).filter(|known| known.name() == tool).peekable();
        self.hides_unknown
            && (known.peek().is_none() || known.any(|known| known.plan().graph().has_secrets()))
    }

    /// Returns the arguments of a call of this tool without secrets; `None` if nothing has to be withheld.
    pub(crate) fn value(&self, tool: &str, args: &Value) -> Option<Value> {
        if !self.hides_unknown {
            return None;
        }
        let mut shown: Option<Value> = None;
        let mut is_known = false;
        for definition in self.lists.iter().flat_map(|list| list.iter()).filter(|known| known.name() == tool)
        {
            is_known = true;
            if let Some((less, true)) = withheld(definition.plan(), shown.as_ref().unwrap_or(args)) {
                shown = Some(less);
            }
        }
        // Nothing can be withheld of no arguments.
        let is_empty = args.as_object().is_some_and(serde_json::Map::is_empty);
        if is_known || is_empty { shown } else { Some(hidden()) }
    }

    /// The same for arguments as they were sent. Text that is not JSON is withheld as a whole.
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

    /// Returns the message without secrets, and the ids of the calls whose arguments were withheld; `None` if nothing has to be
    /// withheld.
    pub(crate) fn message(&self, message: &Message) -> Option<(Message, Vec<String>)> {
        match message {
            Message::ToolResult(result) => {
                // The arguments that a person set have secrets, too.
                let args = self.arguments(&result.tool, result.edited_args.as_ref()?)?;
                let mut result = result.clone();
                result.edited_args = Some(args);
                Some((Message::ToolResult(result), Vec::new()))
            }
            Message::Assistant(reply) => {
                let mut reply = std::borrow::Cow::Borrowed(reply);
                let mut left_out = Vec::new();
                for at in 0..reply.content.len() {
                    let Some(part) = reply.content.get(at) else { break };
                    let Some(call) = part.as_tool_call().and_then(|call| self.call(call)) else { continue };
                    left_out.push(call.id.clone());
                    let Some(part) = reply.to_mut().content.get_mut(at) else { break };
                    part.content = Content::ToolCall(call);
                    // What a provider keeps with a call may quote it.
                    part.provider_data = None;
                }
                (!left_out.is_empty()).then(|| (Message::Assistant(reply.into_owned()), left_out))
            }
            _ => None,
        }
    }

    /// Returns the message as it may be shown.
    pub(crate) fn shown(&self, message: &Arc<Message>) -> Arc<Message> {
        self.message(message).map_or_else(|| message.clone(), |(message, _)| Arc::new(message))
    }
}

/// A shorter text occurs in ordinary words: to take it out of texts would spoil them.
const MIN_SEARCHED: usize = 4;

impl SecretArguments {
    /// Returns the secrets of all calls in these messages, as they may occur in other texts.
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
        // The longest first, because one may be a part of another.
        texts.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        texts.dedup();
        texts
    }

    fn add_texts(&self, tool: &str, args: &ToolArguments, texts: &mut Vec<String>) {
        let args = args.value().unwrap_or_else(|| Value::String(args.text().to_owned()));
        let mut is_known = false;
        for definition in self.lists.iter().flat_map(|list| list.iter()).filter(|known| known.name() == tool)
        {
            is_known = true;
            let graph = definition.plan().graph();
            if graph.has_secrets() {
                texts.extend(secret_texts(graph, &args));
            }
        }
        if !is_known {
            texts.extend(all_texts(&args));
        }
    }
}

/// Returns the arguments of a call of this tool as they may be shown, by all definitions that it has for the source.
pub(crate) fn without_secrets(tool: &dyn Tool, source: Option<&Source>, args: Value) -> Value {
    let own = source.map(|source| catch_unwind(AssertUnwindSafe(|| tool.definition_for(source))));
    let own = match own {
        None => None,
        Some(Ok(Ok(own))) => own,
        // Without its definition it is not known what is secret.
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
    use crate::args::{Plan, PlanOptions};
    use crate::message::{AssistantMessage, OutcomeKind, Part, ProviderData, ToolResultMessage, UserMessage};
    use serde_json::json;

    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Open {
        user: String,
        password: String,
    }

    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Closed {
        user: String,
        #[schemars(extend("x-secret" = true))]
        password: String,
    }

    fn definition(name: &str, is_secret: bool) -> ToolDefinition {
        let options = PlanOptions::default();
        let plan = if is_secret {
            Plan::for_type::<Closed>(name, options)
        } else {
            Plan::for_type::<Open>(name, options)
        };
        ToolDefinition::without_description(plan.unwrap()).unwrap()
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
    fn messages_are_shown_without_secrets() {
        let secrets = secrets(&[("log_in", true), ("look", false)]);
        let data = ProviderData::new("gemini", json!({"sig": "p"}));
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
        assert_eq!((look.as_tool_call().unwrap().args.text(), &look.provider_data), (ARGS, &Some(data)));
        let mut result = ToolResultMessage::new("a", "log_in", OutcomeKind::Completed);
        assert!(secrets.message(&result.clone().into()).is_none());
        result.edited_args = Some(ARGS.into());
        let (shown, left_out) = secrets.message(&result.into()).unwrap();
        assert!(left_out.is_empty());
        let edited = shown.as_tool_result().unwrap().edited_args.clone().unwrap();
        assert_eq!(edited.value().unwrap(), json!({"user": "ann", "password": "[secret]"}));
        assert!(secrets.message(&UserMessage::from("p").into()).is_none());
    }
}
