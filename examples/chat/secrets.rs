//! Secret arguments: hides them on the screen and in the log.

use agent::{Registry, ToolDefinition, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The placeholder for a secret.
pub(crate) const SECRET: &str = "[secret]";

/// The keys of arguments. The first three are of calls, in the bodies of providers and of MCP. `edited_args` is of results: the arguments
/// that a person gave the call instead.
const ARGUMENTS: [&str; 4] = ["arguments", "input", "args", "edited_args"];

/// A reply that calls a tool contains one of these texts. They are from the protocols of providers and the events of models.
const CALLS: [&str; 5] = ["tool_use", "tool_call", "function_call", "functionCall", "\"function\""];

/// The values of all `"name"` keys in a text that contains JSON.
fn names(text: &str) -> Vec<&str> {
    let after = text.split("\"name\"").skip(1);
    after
        .filter_map(|rest| {
            rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?.split('"').next()
        })
        .collect()
}

/// The known tools by name. The definition is None for a tool without secret arguments. Clones share the tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    tools: Arc<RwLock<BTreeMap<String, Option<ToolDefinition>>>>,
}

impl Secrets {
    /// Adds the tools of this registry. The tools of earlier registries stay known.
    pub(crate) fn learn(&self, registry: &Registry) {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        for tool in registry.definitions().iter() {
            let has_secrets = tool.plan().without_secrets(&Value::Null).is_some();
            tools.insert(tool.name().to_owned(), has_secrets.then(|| tool.clone()));
        }
    }

    /// Whether no known tool has secret arguments.
    pub(crate) fn is_empty(&self) -> bool {
        self.read(|tools| tools.values().all(Option::is_none))
    }

    /// Whether the reply possibly calls a tool with secrets. An unknown name counts too: it may be a misspelled one.
    pub(crate) fn are_called_in(&self, reply: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let called = names(reply);
        let is_harmless = |name: &&str| self.read(|tools| matches!(tools.get(*name), Some(None)));
        let is_secret = |name: &str, tool: &Option<ToolDefinition>| {
            tool.is_some() && reply.contains(&format!("\"{name}\""))
        };
        self.read(|tools| tools.iter().any(|(name, tool)| is_secret(name, tool)))
            || CALLS.iter().any(|word| reply.contains(word))
                && (called.is_empty() || !called.iter().all(is_harmless))
    }

    /// Hides the secret arguments of all calls in a body, at any depth. `server` is the MCP server whose traffic this is. None: the names
    /// in the body are the ones that the model uses.
    pub(crate) fn hide(&self, body: &mut Value, server: Option<&str>) {
        match body {
            Value::Array(values) => values.iter_mut().for_each(|value| self.hide(value, server)),
            Value::Object(object) => {
                let name = object.get("name").or_else(|| object.get("tool"));
                let name = name.and_then(Value::as_str).map(str::to_owned);
                for (key, value) in object {
                    match &name {
                        Some(name) if ARGUMENTS.contains(&key.as_str()) => {
                            self.hide_arguments(name, value, server);
                        }
                        _ => self.hide(value, server),
                    }
                }
            }
            _ => {}
        }
    }

    fn hide_arguments(&self, name: &str, arguments: &mut Value, server: Option<&str>) {
        let hidden = self.read(|tools| match server {
            None => match tools.get(name) {
                Some(tool) => tool.as_ref().map(|tool| hidden(tool, arguments)),
                // An unknown name may be a misspelled one, of a tool with secrets.
                None => tools.values().any(Option::is_some).then(|| SECRET.into()),
            },
            Some(server) => match tools.get(&format!("{server}__{name}")) {
                Some(tool) => tool.as_ref().map(|tool| hidden(tool, arguments)),
                // The tool may be registered under another name, so it may be one with secrets.
                None => tools.values().any(Option::is_some).then(|| SECRET.into()),
            },
        });
        if let Some(hidden) = hidden {
            *arguments = hidden;
        }
    }

    fn read<T>(&self, look: impl FnOnce(&BTreeMap<String, Option<ToolDefinition>>) -> T) -> T {
        look(&self.tools.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The arguments without their secrets. JSON stays JSON, and a text of JSON stays a text.
fn hidden(tool: &ToolDefinition, arguments: &Value) -> Value {
    let without = |arguments: &Value| tool.plan().without_secrets(arguments);
    match arguments {
        Value::String(text) => {
            let shown = serde_json::from_str(text).ok().and_then(|arguments| without(&arguments));
            Value::String(shown.map_or_else(|| SECRET.to_owned(), |shown| shown.to_string()))
        }
        arguments => without(arguments).unwrap_or_else(|| SECRET.into()),
    }
}

/// The edited arguments with the real secrets in place of the unchanged placeholders. None: a placeholder is in a place where no secret
/// was.
pub(crate) fn restored(edited: &Value, shown: &Value, real: &Value) -> Option<Value> {
    if edited == shown {
        return Some(real.clone());
    }
    match edited {
        Value::Object(edited) => {
            let entries = edited.iter().map(|(key, value)| {
                Some((key.clone(), restored(value, &shown[key.as_str()], &real[key.as_str()])?))
            });
            entries.collect::<Option<_>>().map(Value::Object)
        }
        Value::Array(edited) => {
            let items = edited.iter().enumerate().map(|(at, value)| {
                let (shown, real) = original(edited, at, shown, real)?;
                restored(value, shown, real)
            });
            items.collect::<Option<_>>().map(Value::Array)
        }
        Value::String(text) if text == SECRET => None,
        value => Some(value.clone()),
    }
}

/// Returns the shown and the real item from which the item at `at` of an edited list was made: the item that looks the same, or else, if the
/// list has as many items as before, the item at the same position. Returns `None` if several items look the same but have different
/// secrets.
fn original<'v>(
    edited: &[Value],
    at: usize,
    shown: &'v Value,
    real: &'v Value,
) -> Option<(&'v Value, &'v Value)> {
    const NOTHING: &Value = &Value::Null;
    let all = shown.as_array().map(Vec::as_slice).unwrap_or_default();
    let (item, pair) = (&edited[at], |at: usize| (&shown[at], &real[at]));
    let has_count = all.len() == edited.len();
    if has_count && all[at] == *item {
        return Some(pair(at));
    }
    let mut same = (0..all.len()).filter(|at| all[*at] == *item).map(pair);
    match same.next() {
        Some(first) => same.all(|other| other.1 == first.1).then_some(first),
        None if has_count && !edited.contains(&all[at]) => Some(pair(at)),
        None => Some((NOTHING, NOTHING)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::{json, tool, tools};

    /// Signs in.
    #[tool(inline)]
    fn sign_in(user: String, #[arg(secret)] pin: u32) -> String {
        format!("{user} {pin}")
    }

    /// Says hello.
    #[tool(inline)]
    fn greet(name: String) -> String {
        name
    }

    fn secrets() -> Secrets {
        let secrets = Secrets::default();
        assert!(secrets.is_empty());
        secrets.learn(&Registry::new(tools![sign_in, greet]).unwrap());
        assert!(!secrets.is_empty());
        secrets
    }

    #[test]
    fn calls_are_found_in_the_bodies_of_every_provider() {
        let args = json!({"user": "ann", "pin": 4711});
        let text = args.to_string();
        let bodies = [
            json!({"messages": [{"tool_calls": [{"id": "1", "function": {"name": "sign_in", "arguments": text}}]}]}),
            json!({"input": [{"type": "function_call", "name": "sign_in", "arguments": text}]}),
            json!({"messages": [{"content": [{"type": "tool_use", "name": "sign_in", "input": args}]}]}),
            json!({"contents": [{"parts": [{"functionCall": {"name": "sign_in", "args": args}}]}]}),
            json!([{"name": "sign_in", "arguments": r#"{"user": "ann", "pin": 4711"#}]),
            json!([{"role": "tool_result", "tool": "sign_in", "edited_args": args}]),
            json!([{"name": "sing_in", "arguments": args}]),
        ];
        for mut body in bodies {
            let before = body.to_string();
            secrets().hide(&mut body, None);
            let shown = body.to_string();
            assert!(before.contains("4711") && !shown.contains("4711") && shown.contains(SECRET), "{shown}");
        }
        assert!(secrets().are_called_in(r#"{"type":"tool_use","name":"sign_in"}"#));
        for reply in [
            r#"{"type":"tool_use","name":"sing_in"}"#,
            r#"{"tool_calls":[{"function":{"name": "greet"}},{"function":{"name": "sing_in"}}]}"#,
            r#"{"functionCall":{"args":{}}}"#,
            r#"{"type":"tool_call_start","index":0,"id":"1","name":"sing_in"}"#,
        ] {
            assert!(secrets().are_called_in(reply), "a name that is not known: {reply}");
        }
        assert!(!secrets().are_called_in(r#"{"type":"tool_use","name" : "greet"}"#));
        assert!(!secrets().are_called_in(r#"{"text":"I can use sign_in."}"#));
        let mut other = json!([{"name": "greet", "arguments": {"name": "4711"}}]);
        let before = other.clone();
        secrets().hide(&mut other, None);
        assert_eq!(other, before);
    }

    #[test]
    fn tools_of_a_server_go_by_their_name_here() {
        let secrets = Secrets::default();
        secrets.learn(&Registry::new(tools![sign_in, greet].prefix("docs__")).unwrap());
        let call = |name: &str| {
            let mut call =
                json!({"params": {"name": name, "arguments": {"user": "ann", "pin": 4711, "name": "x"}}});
            secrets.hide(&mut call, Some("docs"));
            call["params"]["arguments"].to_string()
        };
        assert_eq!(call("sign_in"), r#"{"user":"ann","pin":"[secret]","name":"[secret]"}"#);
        assert!(call("greet").contains("4711"));
        assert_eq!(call("renamed"), r#""[secret]""#);
    }

    #[test]
    fn an_edit_keeps_the_secrets_that_it_leaves_alone() {
        let real = json!({"user": "ann", "pin": 4711, "more": [{"pin": 1}, {"pin": 2}]});
        let shown = json!({"user": "ann", "pin": SECRET, "more": [{"pin": SECRET}, {"pin": SECRET}]});
        let edit = |edited: Value| restored(&edited, &shown, &real);
        assert_eq!(
            edit(json!({"user": "bob", "pin": SECRET, "more": [{"pin": SECRET}, {"pin": 3}]})),
            Some(json!({"user": "bob", "pin": 4711, "more": [{"pin": 1}, {"pin": 3}]}))
        );
        assert_eq!(edit(json!({"pin": 12})), Some(json!({"pin": 12})));
        // Items of a list keep their own secrets, wherever they move.
        let list =
            |pins: [&str; 2]| json!([{"user": "ann", "pin": pins[0]}, {"user": "bob", "pin": pins[1]}]);
        let items = |edited: Value| super::restored(&edited, &list([SECRET, SECRET]), &list(["1", "2"]));
        assert_eq!(
            items(json!([{"user": "bob", "pin": SECRET}])),
            Some(json!([{"user": "bob", "pin": "2"}]))
        );
        assert_eq!(
            items(json!([{"user": "bob", "pin": SECRET}, {"user": "ann", "pin": SECRET}])),
            Some(json!([{"user": "bob", "pin": "2"}, {"user": "ann", "pin": "1"}]))
        );
        assert_eq!(
            items(json!([{"user": "ann", "pin": SECRET}, {"user": "eve", "pin": SECRET}])),
            Some(json!([{"user": "ann", "pin": "1"}, {"user": "eve", "pin": "2"}]))
        );
        assert_eq!(items(json!([{"user": "eve", "pin": SECRET}, {"user": "ann", "pin": SECRET}])), None);
        assert_eq!(edit(json!({"user": SECRET})), None);
        assert_eq!(edit(json!({"new": SECRET})), None);
    }
}
